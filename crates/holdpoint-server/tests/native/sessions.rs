//! Sessions: who owns them, and what was said in them.

use serde_json::{Value, json};

use crate::world::{World, first_pause, text};

#[tokio::test]
async fn a_session_says_who_owns_it_and_how_much_happened_in_it() {
    let world = World::solo().await;
    let run = world
        .post("/api/v1/runs?wait=30", json!({"agent_id": "talker", "input": "a", "session_id": "s/1 ü"}))
        .await
        .expect(201);
    let session = world.get("/api/v1/sessions/s%2F1%20%C3%BC").await.expect(200);
    assert_eq!((&session["session_id"], &session["owner"]), (&json!("s/1 ü"), &json!("local")));
    assert_eq!((&session["runs"], &session["events"]), (&json!(1), &json!(3)));
    assert_eq!(session["created_at"], crate::world::BEGINNING);
    assert_eq!(session["latest_runs"][0]["run_id"], run["run_id"]);
    assert_eq!(session["latest_runs"][0]["status"], "finished");
}

#[tokio::test]
async fn sessions_are_listed_latest_first_in_pages() {
    let world = World::solo().await;
    for name in ["s-1", "s-2", "s-3"] {
        world
            .post("/api/v1/runs?wait=30", json!({"agent_id": "talker", "input": "a", "session_id": name}))
            .await
            .expect(201);
        world.clock.advance(std::time::Duration::from_secs(1));
    }
    let first = world.get("/api/v1/sessions?limit=2").await.expect(200);
    let names = |page: &Value| -> Vec<String> {
        page["sessions"].as_array().unwrap().iter().map(|session| text(session, "session_id").to_owned()).collect()
    };
    assert_eq!(names(&first), ["s-3", "s-2"]);
    let path = format!("/api/v1/sessions?limit=2&cursor={}", text(&first, "next_cursor"));
    assert_eq!(names(&world.get(&path).await.expect(200)), ["s-1"]);
}

#[tokio::test]
async fn what_was_said_is_told_with_calls_and_their_outcomes() {
    let world = World::solo().await;
    let body = json!({"agent_id": "mailer", "input": "ana", "session_id": "s-1"});
    let run = world.post("/api/v1/runs?wait=30", body).await.expect(201);
    world.decide(&first_pause(&run), json!({"decision": "deny", "message": "no"})).await.expect(200);
    world
        .post("/api/v1/runs?wait=30", json!({"agent_id": "talker", "input": "hi", "session_id": "s-1"}))
        .await
        .expect(201);
    let history = world.get("/api/v1/sessions/s-1/messages").await.expect(200);
    let said: Vec<(String, Value)> = history["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| (text(message, "role").to_owned(), message["text"].clone()))
        .collect();
    let expected = [
        ("user", json!("ana")),
        ("assistant", json!(null)),
        ("tool", json!("no")),
        ("assistant", json!("outcome: no")),
        ("user", json!("hi")),
        ("assistant", json!("you said hi")),
    ];
    assert_eq!(said, expected.map(|(role, text)| (role.to_owned(), text)));
    assert_eq!(history["messages"][1]["tool_calls"][0]["args"], json!({"to": "ana"}));
    assert_eq!(
        (&history["messages"][2]["tool"], &history["messages"][2]["is_error"]),
        (&json!("send_mail"), &json!(true))
    );
    let only = world.get("/api/v1/sessions/s-1/messages?agent=talker").await.expect(200);
    assert_eq!(only["messages"].as_array().unwrap().len(), 2);
    let page = world.get("/api/v1/sessions/s-1/messages?limit=1").await.expect(200);
    assert_eq!(page["messages"][0]["text"], "hi");
    let path = format!("/api/v1/sessions/s-1/messages?limit=1&cursor={}", text(&page, "next_cursor"));
    assert_eq!(world.get(&path).await.expect(200)["messages"][0]["text"], "ana");
}

#[tokio::test]
async fn a_session_of_somebody_else_looks_as_if_it_did_not_exist() {
    let world = World::with_keys().await;
    let body = json!({"agent_id": "talker", "input": "secret", "session_id": "s-1"});
    world.post_by("agnes", "/api/v1/runs?wait=30", body.clone()).await.expect(201);
    for path in [
        "/api/v1/sessions/s-1",
        "/api/v1/sessions/s-1/messages",
        "/api/v1/sessions/s-1/events",
        "/api/v1/runs?session=s-1",
    ] {
        let foreign = world.get_by("otto", path).await;
        foreign.refuses(404, "session_not_found");
        let unknown = world.get_by("otto", &path.replace("s-1", "s-2")).await;
        assert_eq!(foreign.body, unknown.body, "{path}");
    }
    assert_eq!(world.get_by("otto", "/api/v1/sessions").await.expect(200)["sessions"], json!([]));
    let refused = world.post_by("otto", "/api/v1/runs", body).await;
    refused.refuses(404, "session_not_found");
    assert!(!refused.body.contains("agnes"), "{}", refused.body);
    assert_eq!(world.get_by("agnes", "/api/v1/sessions").await.expect(200)["sessions"][0]["runs"], 1);
    assert_eq!(
        world.get_by("agnes", "/api/v1/runs?session=s-1").await.expect(200)["runs"].as_array().unwrap().len(),
        1
    );
}
