//! What an operator reads in the log: what happened to which run, and nothing of what was said or done.

use serde_json::{Value, json};

use crate::world::{Place, Server};

/// The messages of the log, each with its fields, of the lines that the runtime wrote.
fn lines(place: &Place) -> Vec<Value> {
    let text = place.log();
    let lines =
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}")));
    lines.filter(|line| line["target"] == "holdpoint_runtime::log").collect()
}

fn start(server: &Server, agent: &str, input: &str) -> Value {
    let (status, run) = server.post("/api/v1/runs?wait=30", &json!({"agent_id": agent, "input": input}));
    assert_eq!(status, 201, "{run}");
    run
}

fn decide(server: &Server, run: &Value, body: &Value) {
    let path = format!("/api/v1/pauses/{}/decide?wait=30", run["pauses"][0]["id"].as_str().unwrap());
    let (status, decided) = server.post(&path, body);
    assert_eq!(status, 200, "{decided}");
}

#[test]
fn what_happens_to_a_run_is_logged_with_ids_and_names_and_without_a_word_of_it() {
    let place = Place::new();
    let server = place.serve(&["--log-format", "json", "--log", "info"]);
    let approved = start(&server, "refund-desk", "S3CRET-INPUT please");
    decide(&server, &approved, &json!({"decision": "approve"}));
    let denied = start(&server, "refund-desk", "again");
    decide(&server, &denied, &json!({"decision": "deny", "message": "S3CRET-WORDS"}));
    let cancelled = start(&server, "refund-desk", "a third time");
    let path = format!("/api/v1/runs/{}", cancelled["run_id"].as_str().unwrap());
    server.post(&format!("{path}/cancel"), &json!({"reason": "S3CRET-REASON"}));
    for run in [&approved, &denied] {
        server.until(&format!("/api/v1/runs/{}", run["run_id"].as_str().unwrap()), |run| run["status"] == "done");
    }
    server.terminate();

    let lines = lines(&place);
    let told = |run: &Value| -> Vec<(String, Value)> {
        let of_run = lines.iter().filter(|line| line["run.id"] == run["run_id"]);
        of_run.map(|line| (line["message"].as_str().unwrap().to_owned(), line.clone())).collect()
    };
    let messages = |run: &Value| told(run).into_iter().map(|(message, _)| message).collect::<Vec<_>>();
    assert_eq!(messages(&approved), ["run started", "paused for a person", "pause decided", "run finished"]);
    assert_eq!(messages(&denied), ["run started", "paused for a person", "pause decided", "run finished"]);
    assert_eq!(messages(&cancelled), ["run started", "paused for a person", "pause withdrawn", "run finished"]);
    let lines = told(&approved);
    for (_, line) in &lines {
        assert_eq!((&line["level"], &line["session.id"]), (&json!("INFO"), &approved["session_id"]), "{line}");
    }
    assert_eq!(lines[0].1["agent"], "refund-desk");
    let paused = &lines[1].1;
    assert_eq!((&paused["agent"], &paused["tool"]), (&json!("refund-desk"), &json!("issue_refund")));
    assert_eq!((&paused["kind"], &paused["pause.id"]), (&json!("approval"), &approved["pauses"][0]["id"]));
    assert_eq!(lines[2].1["decision"], "approve");
    assert_eq!(lines[3].1["outcome"], "done");
    assert_eq!(told(&denied)[2].1["decision"], "deny");
    assert_eq!(told(&cancelled)[3].1["outcome"], "cancelled");
    let log = place.log();
    for word in ["S3CRET", "A-1001", "120.5", "no money moved", "please"] {
        assert!(!log.contains(word), "{word} is in {log}");
    }
}

#[test]
fn a_call_that_is_in_doubt_after_a_kill_is_logged_loudly() {
    let place = Place::new();
    let agent = "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: { name: once }\nspec:\n  type: chat_model_agent\n  model: { primary: scripted/once.json }\n  tools:\n    - name: act\n      description: acts\n      parameters: { type: object }\n      approval: never\n      command: { argv: [\"/bin/sh\", \"-c\", \"echo ran >> ran.txt; sleep 60\"] }\n";
    place.write("agents/once.yaml", agent);
    place.write("agents/once.json", r#"{"replies": [{"calls": [{"tool": "act", "arguments": {}}]}, "over"]}"#);
    let server = place.serve(&["--log-format", "json"]);
    let (_, run) = server.post("/api/v1/runs", &json!({"agent_id": "once", "input": "act"}));
    crate::world::await_file(&place.join("ran.txt"));
    server.kill();
    let server = place.serve(&["--log-format", "json"]);
    let path = format!("/api/v1/runs/{}", run["run_id"].as_str().unwrap());
    server.until(&path, |run| run["pauses"][0]["kind"] == "in_doubt");
    server.terminate();
    let lines = lines(&place);
    let doubt = lines.iter().find(|line| line["level"] == "WARN").unwrap_or_else(|| panic!("{lines:?}"));
    assert_eq!((&doubt["run.id"], &doubt["agent"], &doubt["tool"]), (&run["run_id"], &json!("once"), &json!("act")));
    assert!(doubt["message"].as_str().unwrap().contains("in doubt"), "{doubt}");
}
