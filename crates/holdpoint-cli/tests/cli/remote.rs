//! Commands that talk to a running server.

use std::process::Output;

use serde_json::{Value, json};

use crate::terminal::Terminal;
use crate::world::{Place, Server, complained, printed};

fn ask(place: &Place, server: &Server, args: &[&str]) -> Output {
    place.holdpoint(args).env("HOLDPOINT_URL", format!("http://{}", server.address)).output().unwrap()
}

fn paused(server: &Server, agent: &str) -> (String, String) {
    let (_, run) = server.post("/api/v1/runs?wait=30", &json!({"agent_id": agent, "input": "go"}));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&run["run_id"]), text(&run["pauses"][0]["id"]))
}

#[test]
fn pauses_are_listed_and_decided_from_another_terminal() {
    let place = Place::new();
    let server = place.serve(&["--store", "memory:"]);
    let (approved, first) = paused(&server, "refund-desk");
    let (denied, second) = paused(&server, "refund-desk");
    let (answered, third) = paused(&server, "trip-planner");
    let listed = ask(&place, &server, &["inbox", "--json"]);
    let ids: Vec<Value> =
        printed(&listed).lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect();
    assert_eq!(ids, [json!(first), json!(second), json!(third)]);

    let done = ask(&place, &server, &["approve", &first, "--args", r#"{"order": "A-1001", "amount": 50}"#]);
    assert!(printed(&done).contains("is decided"), "{}{}", printed(&done), complained(&done));
    ask(&place, &server, &["deny", &second, "-m", "not today"]);
    let wrong = ask(&place, &server, &["answer", &third, "The sea"]);
    assert!(complained(&wrong).contains("2 answers are expected"), "{}", complained(&wrong));
    let right = ask(&place, &server, &["answer", &third, "The sea", "Walk, Read"]);
    assert!(right.status.success(), "{}", complained(&right));

    let output = |run: &str| {
        let done = server.until(&format!("/api/v1/runs/{run}"), |run| run["status"] == "done");
        done["output"].as_str().unwrap().to_owned()
    };
    assert!(output(&approved).contains(r#""amount":50"#), "{}", output(&approved));
    assert!(output(&denied).contains("not today"), "{}", output(&denied));
    assert!(output(&answered).contains("Walk"), "{}", output(&answered));

    let again = ask(&place, &server, &["approve", &first]);
    assert_eq!(again.status.code(), Some(1));
    assert!(complained(&again).contains("already_decided"), "{}", complained(&again));
    assert!(complained(&ask(&place, &server, &["inbox"])).contains("Nothing waits"));
    let sessions = printed(&ask(&place, &server, &["sessions"]));
    assert_eq!(sessions.lines().count(), 3, "{sessions}");
    let verified = printed(&ask(&place, &server, &["audit", "verify"]));
    assert!(verified.contains("✓ 3 records"), "{verified}");
    let url = format!("http://{}", server.address);
    for args in [["audit", "verify", "--url", &url], ["audit", "--url", &url, "verify"]] {
        let verified = place.run(&args);
        assert!(printed(&verified).contains("✓ 3 records"), "{}", complained(&verified));
    }
}

#[test]
fn records_that_were_cut_off_make_the_check_fail() {
    let place = Place::new();
    let server = place.serve(&[]);
    for _ in 0..2 {
        let (_, pause) = paused(&server, "refund-desk");
        ask(&place, &server, &["deny", &pause]);
    }
    assert_eq!(ask(&place, &server, &["audit", "verify"]).status.code(), Some(0));
    let (_, rest) = server.terminate();
    assert!(rest.contains("holdpoint.db"), "{rest}");
    let file = rusqlite::Connection::open(place.join("holdpoint.db")).unwrap();
    assert_eq!(file.execute("DELETE FROM audit WHERE n = 2", []).unwrap(), 1);
    drop(file);
    let server = place.serve(&[]);
    let found = ask(&place, &server, &["audit", "verify"]);
    let told = printed(&found);
    assert_eq!(found.status.code(), Some(1), "{told}");
    assert!(told.contains("broken at record 2") && told.contains("2 records were written"), "{told}");
}

#[test]
fn one_run_that_cannot_be_read_hides_no_other_pause() {
    let place = Place::new();
    let server = place.serve(&[]);
    let (broken, first) = paused(&server, "refund-desk");
    let (_, second) = paused(&server, "refund-desk");
    server.terminate();
    let file = rusqlite::Connection::open(place.join("holdpoint.db")).unwrap();
    let first_entry = "UPDATE entry SET body = x'7b7d' WHERE n = (SELECT min(n) FROM entry)";
    assert_eq!(file.execute(first_entry, []).unwrap(), 1);
    drop(file);
    let server = place.serve(&[]);
    let listed = ask(&place, &server, &["inbox", "--json"]);
    let told = printed(&listed);
    let lines: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{told}{}", complained(&listed));
    assert_eq!((&lines[0]["id"], &lines[0]["unreadable"]), (&json!(first), &json!(true)));
    assert_eq!((&lines[0]["run_id"], &lines[0]["tool"]), (&json!(broken), &json!("issue_refund")));
    assert_eq!((&lines[1]["id"], &lines[1]["unreadable"]), (&json!(second), &Value::Null));
    let mut command = place.holdpoint(&["inbox"]);
    command.env("TERM", "xterm-256color").env("HOLDPOINT_URL", format!("http://{}", server.address));
    let mut terminal = Terminal::open(command);
    terminal.see("cannot be answered");
    terminal.see("May this call run?");
    terminal.choose("");
    terminal.see("is decided");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn a_server_that_is_not_there_is_told_with_what_to_do() {
    let place = Place::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let told = place.run(&["inbox", "--url", &format!("http://{free}")]);
    assert_eq!(told.status.code(), Some(1));
    assert!(complained(&told).contains("holdpoint serve"), "{}", complained(&told));
}

#[test]
fn the_inbox_asks_one_after_the_other() {
    let place = Place::new();
    let server = place.serve(&["--store", "memory:"]);
    let (approved, _) = paused(&server, "refund-desk");
    let (denied, _) = paused(&server, "refund-desk");
    let mut command = place.holdpoint(&["inbox"]);
    command.env("TERM", "xterm-256color").env("HOLDPOINT_URL", format!("http://{}", server.address));
    let mut terminal = Terminal::open(command);
    terminal.see("May this call run?");
    terminal.choose("");
    terminal.see("is decided");
    terminal.see("May this call run?");
    terminal.choose("Deny");
    terminal.see("Why not?");
    terminal.choose("no more");
    terminal.see("is decided");
    assert_eq!(terminal.end().0, 0);
    let output =
        |run: &str| server.until(&format!("/api/v1/runs/{run}"), |run| run["status"] == "done")["output"].clone();
    assert!(output(&approved).as_str().unwrap().starts_with("Done."));
    assert!(output(&denied).as_str().unwrap().contains("no more"));
}

#[test]
fn an_agent_in_the_terminal_and_a_server_share_a_store() {
    let place = Place::new();
    let server = place.serve(&[]);
    let done = place.run(&["run", "--demo", "refund-desk", "refund it", "--yes"]);
    assert_eq!(done.status.code(), Some(0), "{}", complained(&done));
    assert!(printed(&done).contains("Done. The tool says"), "{}", printed(&done));
    // Left in the terminal, answered through the server, which goes on by itself.
    let left = place.run(&["run", "--demo", "refund-desk", "refund it"]);
    let pause: Value = serde_json::from_str(printed(&left).lines().last().unwrap()).unwrap();
    ask(&place, &server, &["approve", pause["id"].as_str().unwrap()]);
    let path = format!("/api/v1/runs/{}", pause["run_id"].as_str().unwrap());
    assert_eq!(server.until(&path, |run| run["status"] == "done")["started_by"], "local");
}
