//! Nobody reads what the program says: it does what it was told, and ends with the number that it would end with anyway.

use std::process::{Command, Stdio};

use crate::world::{Place, await_answer, free_address};

/// The end of a pipe that nobody reads.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

fn code(mut command: Command) -> Option<i32> {
    command.stdin(Stdio::null()).status().unwrap().code()
}

#[test]
fn the_exit_code_is_the_same_when_nobody_reads_standard_error() {
    let place = Place::new();
    place.run(&["init"]);
    let free = format!("http://{}", free_address());
    for (args, expected) in [
        (&["check"][..], 0),
        (&["check", "elsewhere"], 1),
        (&["inbox", "--url", &free], 1),
        (&["run", "nobody", "hello"], 1),
        (&["run", "refund-desk", "refund it", "--store", "memory:"], 3),
        (&["run", "refund-desk", "refund it", "--yes", "--store", "memory:"], 0),
        (&["serve", "--store", "redis://127.0.0.1:1"], 1),
        (&["no-such-command"], 2),
    ] {
        let mut command = place.holdpoint(args);
        command.stdout(Stdio::null()).stderr(unread());
        assert_eq!(code(command), Some(expected), "{args:?}");
    }
}

#[test]
fn nothing_panics_when_nobody_reads_standard_output() {
    let place = Place::new();
    place.run(&["init"]);
    place.write("agents/bad.yaml", "kind: Agent\n");
    for args in [&["check"][..], &["check", "--format", "json"], &["--help"], &["completions", "bash"], &["doctor"]] {
        for is_err_read in [true, false] {
            let mut command = place.holdpoint(args);
            command.stdout(unread()).stderr(if is_err_read { Stdio::null() } else { unread() });
            let code = code(command);
            assert!(matches!(code, Some(0 | 1)), "{args:?} ended with {code:?}");
        }
    }
}

#[test]
fn a_server_serves_and_logs_although_nobody_reads_it() {
    let place = Place::new();
    let address = free_address();
    let mut command = place.holdpoint(&["serve", "--store", "memory:", "--log", "debug", "--listen", &address]);
    let mut server = command.stdin(Stdio::null()).stdout(unread()).stderr(unread()).spawn().unwrap();
    for path in ["/healthz", "/api/v1/agents", "/nowhere"] {
        let answer = await_answer(&address, path);
        assert!(answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.0 404"), "{answer}");
    }
    assert!(server.try_wait().unwrap().is_none(), "it still serves");
    server.kill().unwrap();
    server.wait().unwrap();
}
