//! The machine: its clock, its limits, and the port to listen on.

use std::net::{SocketAddr, TcpListener};
use std::time::{SystemTime, UNIX_EPOCH};

use super::report::{Finding, Report};

/// 2026-01-01: a clock before this was never set.
const EARLIEST_SECONDS: u64 = 1_767_225_600;

/// Files that a busy server needs: a connection is one.
const FILES_WANTED: u64 = 4_096;

pub(super) fn look(report: &mut Report) {
    report.add("clock", clock());
    if let Some(finding) = files() {
        report.add("files", finding);
    }
}

fn clock() -> Finding {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or(0);
    match seconds >= EARLIEST_SECONDS {
        true => Finding::fine("the clock is set"),
        false => Finding::failure("the clock was never set", "set it: deadlines, leases and certificates go by it"),
    }
}

#[cfg(unix)]
fn files() -> Option<Finding> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    // A server takes all that it may have.
    Some(match limit.maximum {
        None => Finding::fine("any number of files may be open"),
        Some(count) if count >= FILES_WANTED => Finding::fine(format!("{count} files may be open at once")),
        Some(count) => Finding::caution(
            format!("only {count} files may be open at once, and each connection is one"),
            format!("raise the limit for a busy server: ulimit -Hn {FILES_WANTED}"),
        ),
    })
}

#[cfg(not(unix))]
fn files() -> Option<Finding> {
    None
}

/// Whether the server could listen now.
pub(super) fn listen(address: SocketAddr) -> Finding {
    match TcpListener::bind(address) {
        Ok(_) => Finding::fine(format!("{address} is free")),
        Err(error) => Finding::caution(
            format!("{address} cannot be listened on: {error}"),
            "another holdpoint may be running; choose another address with --listen",
        ),
    }
}
