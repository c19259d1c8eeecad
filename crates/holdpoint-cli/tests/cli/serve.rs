//! `serve`: what it says, what it refuses, and what is left after it was killed.

use serde_json::{Value, json};

use crate::world::{Place, Server, await_file, complained};

/// Starts a run and waits for its first stop.
fn start(server: &Server, agent: &str, message: &str) -> Value {
    let body = json!({"agent_id": agent, "input": message});
    let (status, run) = server.post("/api/v1/runs?wait=30", &body);
    assert!((200..300).contains(&status), "{status} {run}");
    run
}

fn decide(server: &Server, pause: &Value, body: &Value) -> Value {
    let (status, decided) = server.post(&format!("/api/v1/pauses/{}/decide", pause["id"].as_str().unwrap()), body);
    assert_eq!(status, 200, "{decided}");
    decided
}

#[test]
fn without_agents_it_serves_demo_agents_and_says_so() {
    let place = Place::new();
    let server = place.serve(&[]);
    let run = start(&server, "refund-desk", "refund it");
    assert_eq!(run["status"], "paused", "{run}");
    let pause = &run["pauses"][0];
    assert_eq!((pause["tool"].as_str(), pause["args"]["amount"].as_f64()), (Some("issue_refund"), Some(120.5)));
    decide(&server, pause, &json!({"decision": "approve", "args_sha256": pause["args_sha256"]}));
    let path = format!("/api/v1/runs/{}", run["run_id"].as_str().unwrap());
    let done = server.until(&path, |run| run["status"] == "done");
    assert!(done["output"].as_str().unwrap().contains("no money moved"), "{done}");
    let (code, greeting) = server.terminate();
    assert_eq!(code, Some(0), "{greeting}");
    for part in
        ["store     sqlite://holdpoint.db", "survives crashes", "access    solo", "demo agents", "holdpoint init"]
    {
        assert!(greeting.contains(part), "{part} is not in {greeting}");
    }
}

#[test]
fn after_a_kill_everything_is_where_it_was() {
    let place = Place::new();
    place.run(&["init"]);
    let agent = "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: { name: once }\nspec:\n  type: chat_model_agent\n  model: { primary: scripted/once.json }\n  tools:\n    - name: act\n      description: acts\n      parameters: { type: object }\n      command: { argv: [\"/bin/sh\", \"-c\", \"echo ran >> ran.txt; sleep 3\"] }\n";
    place.write("agents/once.yaml", agent);
    place.write(
        "agents/once.json",
        r#"{"replies": [{"calls": [{"tool": "act", "arguments": {}}]}, "I was told: {result}"]}"#,
    );
    let server = place.serve(&[]);
    let waiting = start(&server, "refund-desk", "refund it");
    let denied = start(&server, "refund-desk", "refund another");
    decide(&server, &denied["pauses"][0], &json!({"decision": "deny", "message": "no"}));
    let path = |run: &Value| format!("/api/v1/runs/{}", run["run_id"].as_str().unwrap());
    server.until(&path(&denied), |run| run["status"] == "done");
    let running = start(&server, "once", "act");
    decide(&server, &running["pauses"][0], &json!({"decision": "approve"}));
    await_file(&place.join("ran.txt"));
    server.kill();

    let server = place.serve(&[]);
    let (_, still) = server.get(&path(&waiting));
    assert_eq!((&still["status"], &still["pauses"]), (&json!("paused"), &waiting["pauses"]));
    let (_, over) = server.get(&path(&denied));
    assert_eq!(
        (&over["status"], &over["output"]),
        (&json!("done"), &json!("I did not refund the order. I was told: no"))
    );
    // Whether the call took effect is not known: it is not repeated, a person is asked.
    let doubt = server.until(&path(&running), |run| run["pauses"][0]["kind"] == "in_doubt");
    decide(&server, &doubt["pauses"][0], &json!({"decision": "happened", "content": "it did"}));
    let done = server.until(&path(&running), |run| run["status"] == "done");
    assert_eq!(done["output"], "I was told: it did");
    assert_eq!(std::fs::read_to_string(place.join("ran.txt")).unwrap(), "ran\n");
    decide(&server, &still["pauses"][0], &json!({"decision": "approve"}));
    server.until(&path(&waiting), |run| run["status"] == "done");
    let (_, record) = server.get("/api/v1/audit/verify");
    assert_eq!(record["is_whole"], true, "{record}");
}

#[test]
fn a_change_of_a_file_is_served_within_three_seconds() {
    let place = Place::new();
    place.run(&["init"]);
    let server = place.serve(&["--store", "memory:"]);
    let path = place.join("agents/refund-desk.yaml");
    let text = std::fs::read_to_string(&path).unwrap().replace("version: \"1.0.0\"", "version: \"2.0.0\"");
    std::fs::write(&path, text).unwrap();
    let begin = std::time::Instant::now();
    server.until("/api/v1/agents/refund-desk", |agent| agent["version"] == "2.0.0");
    assert!(begin.elapsed().as_secs() < 3, "it took {:?}", begin.elapsed());
}

#[test]
fn a_public_address_without_credentials_refuses_to_start() {
    let place = Place::new();
    let refused = place.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(complained(&refused).contains("credentials"), "{}", complained(&refused));
    assert!(!place.join("holdpoint.db").exists(), "nothing was begun");
}

#[test]
fn a_second_server_on_the_same_address_is_told_so() {
    let place = Place::new();
    let server = place.serve(&["--store", "memory:"]);
    let refused = place.run(&["serve", "--store", "memory:", "--listen", &server.address]);
    assert_eq!(refused.status.code(), Some(1));
    let told = complained(&refused);
    assert!(told.contains("another process listens there") && told.contains("--listen"), "{told}");
}

#[test]
fn a_bad_agent_file_stops_a_strict_start_and_no_other() {
    let place = Place::new();
    place.run(&["init"]);
    place.write("agents/bad.yaml", "kind: Agent\n");
    let refused = place.run(&["serve", "--strict", "--listen", "127.0.0.1:0", "--store", "memory:"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(complained(&refused).contains("bad.yaml"), "{}", complained(&refused));
    let server = place.serve(&["--store", "memory:"]);
    let (_, listed) = server.get("/api/v1/agents");
    assert_eq!(listed["agents"].as_array().unwrap().len(), 4);
    let problem = &listed["diagnostics"][0];
    assert!(problem["file"].as_str().unwrap().ends_with("bad.yaml") && problem["line"] == 1, "{problem}");
}

#[test]
fn a_folder_that_was_named_and_is_not_there_is_an_error() {
    let place = Place::new();
    let refused = place.run(&["serve", "--agents", "elsewhere", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(complained(&refused).contains("elsewhere") && complained(&refused).contains("holdpoint init"));
}
