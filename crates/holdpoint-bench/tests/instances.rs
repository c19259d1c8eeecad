//! The short versions of the trials of several instances, each over real servers of its own. `cargo xtask linear` does
//! the long ones. What a trial prints first is how to repeat it.

#![cfg(target_os = "linux")]

use std::process::Command;

/// Runs a trial; it says itself whether it showed what it must.
fn trial(words: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdpoint-bench"));
    let ended = command.arg("instances").args(words.split(' ')).output().expect("the bench program runs");
    let said = format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{words}: {}\n{said}", ended.status);
    println!("{said}");
}

#[test]
fn over_postgres_what_clients_are_told_can_have_happened_whatever_goes_wrong() {
    trial("linear --store postgres --operations 1500 --pauses 80 --faults 1");
}

#[test]
fn over_redis_what_clients_are_told_can_have_happened_whatever_goes_wrong() {
    trial("linear --store redis --operations 1500 --pauses 80 --faults 1");
}

#[test]
fn over_postgres_a_store_that_does_not_compare_what_was_seen_is_found_out() {
    trial("linear --store postgres --operations 2000 --pauses 64 --control");
}

#[test]
fn over_redis_a_store_that_does_not_compare_what_was_seen_is_found_out() {
    trial("linear --store redis --operations 2000 --pauses 64 --control");
}

#[test]
fn over_postgres_every_deadline_fires_once_and_none_early_while_instances_come_and_go() {
    trial("deadlines --store postgres --deadlines 500 --faults 2");
}

#[test]
fn over_redis_every_deadline_fires_once_and_none_early_while_instances_come_and_go() {
    trial("deadlines --store redis --deadlines 500 --faults 2");
}

#[test]
fn over_postgres_a_run_whose_instance_died_goes_on_elsewhere_when_its_lease_is_over() {
    trial("take-over --store postgres");
}

#[test]
fn over_redis_a_run_whose_instance_died_goes_on_elsewhere_when_its_lease_is_over() {
    trial("take-over --store redis");
}
