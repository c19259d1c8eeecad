//! The small version of what thousands of idle sockets cost; `cargo xtask bench` opens all of them.

#![cfg(target_os = "linux")]

use std::process::Command;

#[test]
fn so_many_idle_sockets_as_a_server_must_bear_would_fit() {
    let bench = Command::new(env!("CARGO_BIN_EXE_holdpoint-bench")).args(["idle", "800"]).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&bench.stdout), String::from_utf8_lossy(&bench.stderr));
    assert!(bench.status.success() && said.contains("800 idle sockets"), "{}: {said}", bench.status);
    println!("{said}");
}
