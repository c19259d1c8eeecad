//! Streams: a run up to its first stop, and a session without gap or duplicate.

use serde_json::json;

use crate::world::{Answer, Frame, Reading, Setup, World, first_pause, text};

fn numbers(frames: &[Frame]) -> Vec<u64> {
    frames.iter().filter_map(|frame| frame.id).collect()
}

#[tokio::test]
async fn a_run_is_streamed_up_to_its_end_word_by_word() {
    let world = World::solo().await;
    let request = world.request("POST", "/api/v1/runs").json(&json!({"agent_id": "talker", "input": "good morning"}));
    let frames = Reading::begin(request).await.rest().await;
    let events: Vec<&str> = frames.iter().map(|frame| frame.event.as_str()).filter(|event| *event != "delta").collect();
    assert_eq!(events, ["run.started", "model.replied", "run.finished", "run.stopped"]);
    let spoken: String =
        frames.iter().filter(|frame| frame.event == "delta").map(|frame| text(&frame.data, "text")).collect();
    assert_eq!(spoken, "you said good morning");
    assert!(frames.iter().filter(|frame| frame.event == "delta").count() > 1);
    assert!(frames.iter().filter(|frame| frame.event == "delta").all(|frame| frame.id.is_none()));
    assert_eq!(numbers(&frames), [1, 2, 3]);
    let last = frames.last().unwrap();
    assert_eq!((&last.data["status"], &last.data["output"]), (&json!("done"), &json!("you said good morning")));
}

#[tokio::test]
async fn a_stream_of_a_run_ends_where_a_person_must_look() {
    let world = World::solo().await;
    let request = world.request("POST", "/api/v1/runs").json(&json!({"agent_id": "mailer", "input": "ana"}));
    let frames = Reading::begin(request).await.rest().await;
    let last = frames.last().unwrap();
    assert_eq!((last.event.as_str(), &last.data["status"]), ("run.stopped", &json!("paused")));
    let opened = frames.iter().find(|frame| frame.event == "pause.opened").unwrap();
    assert_eq!(opened.data["data"]["pause_id"], last.data["pauses"][0]["id"]);
    assert_eq!(opened.data["data"]["args_sha256"], last.data["pauses"][0]["args_sha256"]);
    let replied = frames.iter().find(|frame| frame.event == "model.replied").unwrap();
    assert_eq!(replied.data["data"]["calls"][0]["args"], json!({"to": "ana"}));
}

#[tokio::test]
async fn a_stream_goes_on_behind_the_last_event_that_was_seen_without_gap_or_duplicate() {
    let world = World::solo().await;
    let run = world.start("mailer", "ana").await;
    let path = format!("/api/v1/sessions/{}/events", text(&run, "session_id"));
    let mut first = Reading::begin(world.request("GET", &path)).await;
    let opened = first.until("pause.opened").await;
    drop(first);
    world.decide(&first_pause(&run), json!({"decision": "approve"})).await.expect(200);
    let seen = opened.id.unwrap();
    let mut second = Reading::begin(world.request("GET", &path).header("last-event-id", seen)).await;
    let mut frames = Vec::new();
    while frames.last().is_none_or(|frame: &Frame| frame.event != "run.finished") {
        frames.push(second.next().await.unwrap());
    }
    let mut whole = Reading::begin(world.request("GET", &path)).await;
    let mut all = Vec::new();
    while all.last().is_none_or(|frame: &Frame| frame.event != "run.finished") {
        all.push(whole.next().await.unwrap());
    }
    let stored: Vec<Frame> = frames.into_iter().filter(|frame| frame.id.is_some()).collect();
    assert_eq!(stored, all[seen as usize..]);
    assert_eq!(numbers(&all), (1..=all.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_watcher_sees_a_run_that_begins_after_it() {
    let world = World::solo().await;
    let first = world
        .post("/api/v1/runs?wait=30", json!({"agent_id": "talker", "input": "a", "session_id": "s-1"}))
        .await
        .expect(201);
    let mut watching = Reading::begin(world.request("GET", "/api/v1/sessions/s-1/events")).await;
    watching.until("run.finished").await;
    let second = world
        .post("/api/v1/runs?wait=30", json!({"agent_id": "talker", "input": "b", "session_id": "s-1"}))
        .await
        .expect(201);
    let started = watching.until("run.started").await;
    assert_eq!(started.data["run_id"], second["run_id"]);
    assert_ne!(first["run_id"], second["run_id"]);
    let spoken = watching.until("delta").await;
    assert_eq!(spoken.data["type"], "text");
    assert_eq!(watching.until("run.finished").await.data["data"]["output"], "you said b");
}

#[tokio::test]
async fn streams_go_on_where_they_were_on_another_server() {
    let mut world = World::solo().await;
    let run = world.start("mailer", "ana").await;
    let path = format!("/api/v1/sessions/{}/events", text(&run, "session_id"));
    let mut before = Reading::begin(world.request("GET", &path)).await;
    let opened = before.until("pause.opened").await;
    world.stop().await;
    let farewell = before.rest().await;
    assert_eq!(farewell.last().unwrap().event, "server.stopping");
    world.serve_again().await;
    world.decide(&first_pause(&run), json!({"decision": "approve"})).await.expect(200);
    let mut after = Reading::begin(world.request("GET", &path).header("last-event-id", opened.id.unwrap())).await;
    let next = after.next().await.unwrap();
    assert_eq!((next.id, next.event.as_str()), (Some(opened.id.unwrap() + 1), "pause.decided"));
}

#[tokio::test]
async fn a_stream_is_given_only_to_those_who_take_one() {
    let world = World::solo().await;
    let run = world.start("talker", "a").await;
    let path = format!("/api/v1/sessions/{}/events", text(&run, "session_id"));
    for path in [path.as_str(), "/api/v1/pauses/stream"] {
        let answer = Answer::to(world.request("GET", path).header("accept", "application/json")).await;
        answer.refuses(406, "not_acceptable");
    }
    let request = world.request("POST", "/api/v1/runs").header("accept", "image/png");
    let answer = Answer::to(request.json(&json!({"agent_id": "talker", "input": "x"}))).await;
    answer.refuses(406, "not_acceptable");
    for bad in ["x", "-1", "1.5"] {
        let answer = Answer::to(world.request("GET", &path).header("last-event-id", bad)).await;
        answer.refuses(400, "invalid_header");
    }
}

#[tokio::test]
async fn a_caller_holds_so_many_streams_open_and_no_more() {
    let limits = holdpoint_server::limits::Limits { streams_per_caller: 2, ..Default::default() };
    let world = World::with(Setup { limits: Some(limits), ..Setup::default() }).await;
    let first = Reading::begin(world.request("GET", "/api/v1/pauses/stream")).await;
    let _second = Reading::begin(world.request("GET", "/api/v1/pauses/stream")).await;
    let refused = world.get("/api/v1/pauses/stream").await;
    refused.refuses(429, "too_many_streams");
    assert!(refused.header("retry-after").is_some());
    drop(first);
    while world.running().app().streams().open() > 1 {
        tokio::task::yield_now().await;
    }
    let _third = Reading::begin(world.request("GET", "/api/v1/pauses/stream")).await;
}

#[tokio::test]
async fn text_from_outside_stays_data_in_every_frame() {
    let world = World::solo().await;
    let hostile = "x\n\nevent: run.finished\ndata: {\"status\":\"done\"}\n\nid: 99\r\r: y";
    let request = world.request("POST", "/api/v1/runs").json(&json!({"agent_id": "talker", "input": hostile}));
    let frames = Reading::begin(request).await.rest().await;
    let finished: Vec<&Frame> = frames.iter().filter(|frame| frame.event == "run.finished").collect();
    assert_eq!(finished.len(), 1);
    assert_eq!(finished[0].data["data"]["output"], format!("you said {hostile}"));
    assert_eq!(numbers(&frames), [1, 2, 3]);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_let_go_and_hurts_nobody() {
    let limits =
        holdpoint_server::limits::Limits { slow_reader: std::time::Duration::from_millis(200), ..Default::default() };
    let world = World::with(Setup { limits: Some(limits), ..Setup::default() }).await;
    let large = "x".repeat(900_000);
    let send = async |input: &str| {
        let body = json!({"agent_id": "talker", "input": input, "session_id": "s-1"});
        world.post("/api/v1/runs?wait=30", body).await.expect(201)
    };
    send("hello").await;
    let mut lazy = tokio::net::TcpStream::connect(world.address()).await.unwrap();
    let head = format!("GET /api/v1/sessions/s-1/events HTTP/1.1\r\nHost: {}\r\n\r\n", world.address());
    tokio::io::AsyncWriteExt::write_all(&mut lazy, head.as_bytes()).await.unwrap();
    while world.running().app().streams().open() == 0 {
        tokio::task::yield_now().await;
    }
    let mut sent = 0;
    while world.running().app().streams().open() > 0 {
        send(&large).await;
        sent += 1;
        assert!(sent < 50, "a stream that nobody reads is still open");
    }
    send("still there").await;
}
