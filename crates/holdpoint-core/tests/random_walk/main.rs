//! Seeded random walks through the machine. After every step a watcher, which knows only inputs and events, asserts what
//! must hold of every run; at the end of every walk the run is driven to its end.
//!
//! `HOLDPOINT_WALK_SEEDS` says how many walks, `HOLDPOINT_WALK_FROM` the first seed. A failing walk prints the command
//! that repeats it.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod cast;
mod dice;
mod mutants;
mod tamper;
mod walk;
mod watch;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use mutants::{Honest, Machine, Mutant};
use walk::Seen;

/// How many walks the normal test run makes.
const SEEDS: u64 = 10_000;
/// Within how many walks each planted fault must be noticed.
const MUTANT_SEEDS: u64 = 400;

#[test]
fn whatever_happens_the_guarantees_hold() {
    let from = from_environment("HOLDPOINT_WALK_FROM", 1);
    let count = from_environment("HOLDPOINT_WALK_SEEDS", SEEDS);
    let seen = walk_all(from, count);
    println!("{count} walks from seed {from}: {seen:?}");
    if count >= SEEDS {
        check_reach(&seen);
    }
}

/// Walks that never get anywhere prove nothing: every event and most refusals must have been met, often.
fn check_reach(seen: &Seen) {
    for (what, at_least) in REACH {
        let count = seen.counts.get(*what).copied().unwrap_or(0);
        assert!(count >= *at_least, "{what} was met {count} times in all walks, not {at_least}");
    }
}

/// About half of what 10,000 walks meet, so that other seeds do too.
const REACH: &[(&str, u64)] = &[
    ("run.started", 10_000),
    ("guardrails.ran", 4_000),
    ("model.replied", 10_000),
    ("reply.refused", 900),
    ("call.allowed", 7_000),
    ("call.denied", 1_000),
    ("pause.opened", 8_000),
    ("pause.voted", 300),
    ("pause.decided", 7_000),
    ("pause.expired", 200),
    ("pause.withdrawn", 300),
    ("call.started", 8_000),
    ("call.released", 100),
    ("call.answered", 10_000),
    ("agent.handed_off", 1_000),
    ("input.staged", 600),
    ("rule.made", 900),
    ("rule.revoked", 50),
    ("context.set", 300),
    ("agent.set", 200),
    ("run.finished", 10_000),
    ("refused already_decided", 1_000),
    ("refused decision_not_allowed", 200),
    ("refused expired", 100),
    ("refused invalid_answers", 100),
    ("refused invalid_arguments", 70),
    ("refused invalid_rule", 800),
    ("refused not_an_approver", 200),
    ("refused not_found", 6_000),
    ("refused out_of_turn", 4_000),
    ("refused run_finished", 900),
    ("refused stale_view", 1_000),
    ("refused withdrawn", 10),
    ("in doubt", 100),
    ("nested pauses", 1_000),
    ("rule used", 90),
    ("approved by waiting", 30),
    ("edited", 300),
    ("decided together", 300),
    ("implied", 500),
    ("superseded", 100),
    ("late outcome", 50),
    ("done", 3_000),
    ("failed", 1_000),
    ("cancelled", 400),
];

#[test]
fn the_watcher_notices_every_planted_fault() {
    let missed: Vec<&str> =
        Mutant::ALL.iter().filter(|mutant| noticed_at(**mutant).is_none()).map(|mutant| mutant.name()).collect();
    assert_eq!(missed, Vec::<&str>::new(), "faults that no walk noticed");
}

/// The first seed whose walk notices the fault, and what it said.
fn noticed_at(mutant: Mutant) -> Option<(u64, String)> {
    let noticed = (1..=MUTANT_SEEDS).find_map(|seed| walk::walk(seed, mutant).err().map(|problem| (seed, problem)));
    println!("{}: {noticed:?}", mutant.name());
    noticed
}

/// A journal in which something was left out, repeated, moved or put in from another run is refused, or nothing in it
/// breaks a guarantee; and nobody panics over it.
#[test]
fn a_careful_reader_accepts_no_journal_that_breaks_a_guarantee() {
    let from = from_environment("HOLDPOINT_WALK_FROM", 1);
    let count = from_environment("HOLDPOINT_WALK_SEEDS", SEEDS) / 20 + 1;
    let mut refused = 0;
    for seed in from..from + count {
        for event in 0..3 {
            refused += u64::from(tamper::is_refused(seed, event).unwrap_or_else(|problem| {
                panic!("seed {seed}: a reader accepts a journal in which {problem}");
            }));
        }
    }
    println!("{refused} of {} tampered journals were refused", 3 * count);
    assert!(refused * 3 >= count || count < SEEDS / 20, "only {refused} tampered journals were refused");
}

/// Walks from each seed, on as many threads as there are cores.
fn walk_all(from: u64, count: u64) -> Seen {
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let walk_some = || {
        let mut seen = Seen::default();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return seen;
            }
            seen.add(walk_one(from + index));
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(walk_some)).collect();
        let mut seen = Seen::default();
        for worker in workers {
            match worker.join() {
                Ok(part) => seen.add(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        seen
    })
}

fn walk_one(seed: u64) -> Seen {
    let walked = std::panic::catch_unwind(|| walk::walk(seed, Honest));
    let problem = match walked {
        Ok(Ok(seen)) => return seen,
        Ok(Err(problem)) => problem,
        Err(_) => "the machine panicked".to_owned(),
    };
    panic!(
        "seed {seed}: {problem}\n\
         HOLDPOINT_WALK_FROM={seed} HOLDPOINT_WALK_SEEDS=1 cargo test -p holdpoint-core --test random_walk"
    );
}

fn from_environment(name: &str, unless_set: u64) -> u64 {
    std::env::var(name).map_or(unless_set, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

/// How often things were met.
pub(crate) type Counts = BTreeMap<String, u64>;

#[test]
fn a_walk_is_the_same_every_time() {
    for seed in [1, 42, 4711] {
        assert_eq!(walk::walk(seed, Honest), walk::walk(seed, Honest));
    }
    assert_eq!(Honest.name(), "honest");
}
