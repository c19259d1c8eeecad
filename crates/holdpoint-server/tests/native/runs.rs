//! Runs: started, waited for, read, listed, ended.

use serde_json::json;

use crate::world::{World, first_pause, text};

#[tokio::test]
async fn a_run_is_started_and_waited_for_up_to_its_first_pause() {
    let world = World::solo().await;
    let answer = world.post("/api/v1/runs?wait=30", json!({"agent_id": "mailer", "input": "ana"})).await;
    let run = answer.expect(201);
    assert_eq!(answer.header("location"), Some(format!("/api/v1/runs/{}", text(&run, "run_id")).as_str()));
    assert_eq!(run["status"], "paused");
    assert_eq!(run["agent"], "mailer");
    assert_eq!(run["started_by"], "local");
    let pause = &run["pauses"][0];
    assert_eq!(pause["kind"], "approval");
    assert_eq!(pause["status"], "open");
    assert_eq!(pause["tool"], "send_mail");
    assert_eq!(pause["args"], json!({"to": "ana"}));
    assert_eq!(pause["args_text"], r#"{"to":"ana"}"#);
    assert_eq!(pause["key"], format!("{}_1", text(&run, "session_id")));
    assert_eq!(pause["allowed_decisions"], json!(["approve", "approve_edited", "deny", "respond"]));
    assert_eq!(pause["approvals_needed"], 1);
    assert_eq!(pause["created_at"], crate::world::BEGINNING);
    assert_eq!(pause["expires_at"], json!(null));
    assert_eq!(world.effects.sent(), Vec::<String>::new());
}

#[tokio::test]
async fn a_run_that_needs_nobody_is_done_with_its_output() {
    let world = World::solo().await;
    let run = world.start("talker", "hello").await;
    assert_eq!((&run["status"], &run["output"]), (&json!("done"), &json!("you said hello")));
    assert_eq!(run["pauses"], json!([]));
    let read = world.get(&format!("/api/v1/runs/{}", text(&run, "run_id"))).await.expect(200);
    assert_eq!(read, run);
}

#[tokio::test]
async fn without_waiting_the_answer_comes_when_the_start_is_stored() {
    let world = World::solo().await;
    let run =
        world.post("/api/v1/runs", json!({"agent_id": "talker", "input": "hi", "session_id": "s-1"})).await.expect(201);
    assert_eq!(run["session_id"], "s-1");
    let read = world.get(&format!("/api/v1/runs/{}?wait=30", text(&run, "run_id"))).await.expect(200);
    assert_eq!(read["output"], "you said hi");
}

#[tokio::test]
async fn a_second_run_of_an_agent_in_a_session_must_wait_for_the_first() {
    let world = World::solo().await;
    let body = json!({"agent_id": "mailer", "input": "ana", "session_id": "s-1"});
    let first = world.post("/api/v1/runs?wait=30", body.clone()).await.expect(201);
    let problem = world.post("/api/v1/runs", body).await.refuses(409, "run_active");
    assert_eq!(problem["run_id"], first["run_id"]);
}

#[tokio::test]
async fn a_cancelled_run_withdraws_its_pauses_and_nothing_of_it_happens() {
    let world = World::solo().await;
    let run = world.start("mailer", "ana").await;
    let (id, pause) = (text(&run, "run_id").to_owned(), first_pause(&run));
    let ended =
        world.post(&format!("/api/v1/runs/{id}/cancel"), json!({"reason": "changed my mind"})).await.expect(200);
    assert_eq!(ended["status"], "cancelled");
    assert_eq!(ended["end"], json!({"code": "cancelled", "message": "changed my mind", "by": "local"}));
    let settled = world.get(&format!("/api/v1/pauses/{pause}")).await.expect(200);
    assert_eq!((&settled["status"], &settled["args"]), (&json!("withdrawn"), &json!({"to": "ana"})));
    world.decide(&pause, json!({"decision": "approve"})).await.refuses(409, "withdrawn");
    world.post(&format!("/api/v1/runs/{id}/cancel"), json!({})).await.refuses(409, "run_finished");
    assert_eq!(world.effects.sent(), Vec::<String>::new());
}

#[tokio::test]
async fn a_run_is_cancelled_without_a_body_too() {
    let world = World::solo().await;
    let run = world.start("mailer", "ana").await;
    let path = format!("/api/v1/runs/{}/cancel", text(&run, "run_id"));
    let ended = crate::world::Answer::to(world.request("POST", &path)).await.expect(200);
    assert_eq!(ended["end"]["message"], "cancelled by local");
}

#[tokio::test]
async fn what_cannot_start_is_refused_and_nothing_is_stored() {
    let world = World::solo().await;
    for (body, status, code) in [
        (json!({"agent_id": "nobody", "input": "x"}), 404, "agent_not_found"),
        (json!({"agent_id": "mailer"}), 400, "invalid_request"),
        (json!({"input": "x"}), 400, "invalid_request"),
        (json!({"agent_id": "mailer", "input": " "}), 400, "invalid_request"),
        (json!({"agent_id": "mailer", "input": 7}), 400, "invalid_request"),
        (json!({"agent_id": "mailer", "input": "x", "session_id": ""}), 400, "invalid_request"),
        (json!({"agent_id": "mailer", "input": "x", "session_id": "a\u{202e}b"}), 400, "invalid_request"),
        (json!({"agent_id": "mailer", "input": "x", "auto_approve": true}), 400, "invalid_request"),
        (json!([]), 400, "invalid_request"),
    ] {
        world.post("/api/v1/runs", body).await.refuses(status, code);
    }
    assert_eq!(world.everything().await, "");
}

#[tokio::test]
async fn runs_are_listed_newest_first_in_pages() {
    let world = World::solo().await;
    let mut started = Vec::new();
    for input in ["a", "b", "c", "d", "e"] {
        started.push(text(&world.start("talker", input).await, "run_id").to_owned());
        world.clock.advance(std::time::Duration::from_secs(1));
    }
    world.start("mailer", "ana").await;
    let (mut found, mut path) = (Vec::new(), "/api/v1/runs?agent=talker&limit=2".to_owned());
    loop {
        let page = world.get(&path).await.expect(200);
        found.extend(page["runs"].as_array().unwrap().iter().map(|run| text(run, "run_id").to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/api/v1/runs?agent=talker&limit=2&cursor={cursor}");
    }
    started.reverse();
    assert_eq!(found, started);
    let paused = world.get("/api/v1/runs?status=paused").await.expect(200);
    assert_eq!(paused["runs"].as_array().unwrap().len(), 1);
    assert_eq!(paused["runs"][0]["agent"], "mailer");
    world.get("/api/v1/runs?status=odd").await.refuses(400, "invalid_parameter");
}

#[tokio::test]
async fn agents_are_listed_with_their_tools_and_what_is_held() {
    let world = World::solo().await;
    let list = world.get("/api/v1/agents").await.expect(200);
    let names: Vec<&str> = list["agents"].as_array().unwrap().iter().map(|agent| text(agent, "name")).collect();
    assert_eq!(names, ["asker", "brief", "confirmer", "doubter", "mailer", "talker", "treasurer"]);
    assert_eq!(list["agents"][4]["type"], "chat_model_agent");
    let mailer = world.get("/api/v1/agents/mailer").await.expect(200);
    assert_eq!(mailer["description"], "The mailer of the tests.");
    assert_eq!(
        (&mailer["tools"][0]["held"], &mailer["tools"][0]["effect"]),
        (&json!("always"), &json!("at_most_once"))
    );
    world.get("/api/v1/agents/nobody").await.refuses(404, "agent_not_found");
}

#[tokio::test]
async fn ids_that_name_nothing_are_all_the_same() {
    let world = World::solo().await;
    for path in [
        "/api/v1/runs/run_0198c0ffee007000800000000000beef",
        "/api/v1/runs/run_x",
        "/api/v1/runs/%ff",
        "/api/v1/pauses/pau_0198c0ffee007000800000000000beef_1",
        "/api/v1/pauses/..%2f..",
        "/api/v1/requests/req_0198c0ffee007000800000000000beef",
        "/api/v1/requests/x",
    ] {
        world.get(path).await.refuses(404, "not_found");
    }
    for path in ["/api/v1/sessions/nobody", "/api/v1/sessions/nobody/history", "/api/v1/sessions/%00"] {
        world.get(path).await.refuses(404, "session_not_found");
    }
}

#[tokio::test]
async fn whoever_sees_only_their_own_is_shown_the_runs_of_their_own_sessions() {
    let world = World::with_keys().await;
    world.start_by("otto", "mailer", "a").await;
    let mut own = Vec::new();
    for input in ["b", "c"] {
        own.push(text(&world.start_by("agnes", "mailer", input).await, "run_id").to_owned());
    }
    own.reverse();
    let (mut found, mut path) = (Vec::new(), "/api/v1/runs?limit=1".to_owned());
    loop {
        let page = world.get_by("agnes", &path).await.expect(200);
        found.extend(page["runs"].as_array().unwrap().iter().map(|run| text(run, "run_id").to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/api/v1/runs?limit=1&cursor={cursor}");
    }
    assert_eq!(found, own);
    assert_eq!(world.get_by("ana", "/api/v1/runs").await.expect(200)["runs"].as_array().unwrap().len(), 3);
}
