//! The whole exchange of the specification, over a socket: every event with its fields, numbers and names.

use holdpoint_testkit::model_server::Answer as Reply;
use serde_json::{Value, json};

use crate::client::{is, until_asked};
use crate::stage::{Stage, message};

/// What an event is, in a few words.
fn told(event: &Value) -> String {
    let block = &event["content_block"]["type"];
    let number = event["seq"].as_u64().map_or("-".to_owned(), |seq| seq.to_string());
    let index = event["index"].as_u64().map_or(String::new(), |index| format!(" {index}"));
    let block = block.as_str().map_or(String::new(), |block| format!(" {block}"));
    format!("{number} {}{index}{block}", event["type"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn the_whole_exchange_of_the_specification_is_played() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    let args = json!({"symbol": "VNM", "quantity": 100, "side": "buy", "price": 82000});
    stage.model.push(Reply::empty().and_call_as("toolu_01", "execute_trade", args.to_string()));
    stage.model.push(Reply::text("Đã mua 100 VNM."));

    let mut ask = message("trader", "abc-123", "Mua 100 VNM");
    ask["request_id"] = json!("c1");
    client.send(&ask).await;
    let mut events = until_asked(&mut client).await;
    let approve = json!({"type": "approval", "request_id": "c2", "session_id": "abc-123",
        "approval_key": "abc-123_1", "decisions": [{"type": "approve"}]});
    client.send(&approve).await;
    events.extend(client.until(is("message_stop")).await);

    // Words come in as many pieces as the model speaks them.
    let pieces: Vec<String> = events.iter().map(told).collect();
    let mut whole = pieces.clone();
    whole.dedup();
    assert_eq!(
        whole,
        [
            "1 message_start",
            "2 group_start",
            "- content_block_start 0 tool_use",
            "- content_block_delta 0",
            "3 content_block_stop 0",
            "4 content_block_start 1 approval_request",
            "- content_block_stop 1",
            "5 approval_resolved",
            "- content_block_start 2 approval_result",
            "- content_block_delta 2",
            "6 content_block_stop 2",
            "- content_block_start 3 tool_result",
            "- content_block_delta 3",
            "7 content_block_stop 3",
            "8 group_end",
            "- content_block_start 4 text",
            "- content_block_delta 4",
            "9 content_block_stop 4",
            "- message_delta",
            "10 message_stop",
        ],
        "{events:#?}"
    );
    let of = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap();
    assert_eq!(of("message_start")["request_id"], "c1");
    assert_eq!(of("approval_resolved")["request_id"], "c2");
    assert_eq!(of("approval_resolved")["decided_by"], "local");
    assert_eq!(of("message_stop")["stop_reason"], "end_turn");
    assert_eq!(of("message_stop")["event_id"], "0000000010");
    let message_id = &of("message_start")["message_id"];
    for event in &events {
        assert_eq!((&event["session_id"], &event["message_id"]), (&json!("abc-123"), message_id), "{event}");
    }
    assert_eq!(stage.tools.calls().len(), 1);

    // Who comes later is told the same, each block whole.
    let mut late = stage.connect().await;
    let answer = late.subscribe("abc-123", 0).await;
    assert_eq!(answer["status"], "completed");
    assert_eq!((&answer["head_seq"], &answer["open"]), (&json!(10), &json!([])));
    let replayed: Vec<String> = late.until(is("message_stop")).await.iter().map(told).collect();
    assert_eq!(replayed, whole);

    // And so is who reads them as server-sent events.
    let sent = stage.server_sent("abc-123", 0, whole.len()).await;
    assert_eq!(sent.iter().map(told).collect::<Vec<_>>(), whole);
}

#[tokio::test]
async fn a_cursor_goes_on_where_it_was_and_one_beyond_the_end_is_taken_back() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    stage.model.push(Reply::text("Chào."));
    client.send(&message("trader", "s", "Xin chào")).await;
    let events = client.until(is("message_stop")).await;
    let head = events.last().unwrap()["seq"].as_u64().unwrap();

    let mut late = stage.connect().await;
    let answer = late.subscribe("s", 1).await;
    assert_eq!(answer["head_seq"], head);
    let rest = late.until(is("message_stop")).await;
    let numbers: Vec<u64> = rest.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(numbers, (2..=head).collect::<Vec<_>>());

    let mut ahead = stage.connect().await;
    ahead.subscribe("s", head + 7).await;
    let rewind = ahead.next().await;
    assert_eq!((&rewind["type"], &rewind["after"]), (&json!("rewind"), &json!(head)), "{rewind}");

    // Both are shown what comes next.
    stage.model.push(Reply::text("Tạm biệt."));
    client.send(&message("trader", "s", "Tạm biệt")).await;
    for watcher in [&mut late, &mut ahead] {
        let start = watcher.next().await;
        assert_eq!((&start["type"], &start["seq"]), (&json!("message_start"), &json!(head + 1)), "{start}");
        assert!(start.get("request_id").is_none());
        watcher.until(is("message_stop")).await;
    }
}

#[tokio::test]
async fn the_history_of_an_open_pause_tells_the_time_at_which_it_is_asked_for() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    stage.model.push(Reply::call("execute_trade", json!({"symbol": "VNM", "quantity": 1})));
    client.send(&message("trader", "s", "Mua")).await;
    until_asked(&mut client).await;
    stage.clock.advance(std::time::Duration::from_secs(60));
    let history = stage.history("s").await;
    let blocks = history.iter().filter_map(|message| message["content"].as_array()).flatten();
    let open = blocks.into_iter().find(|block| block["isResolved"] == json!(false)).expect("an open pause");
    let now = holdpoint_runtime::ports::clock::Clock::now(&stage.clock);
    assert_eq!(open["pause"]["server_time"], now.to_string(), "{open:#}");
}

#[tokio::test]
async fn a_message_without_a_session_makes_one_and_cancel_ends_what_waits() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    stage.model.push(Reply::call("execute_trade", json!({"symbol": "VNM", "quantity": 1})));
    client.send(&json!({"type": "message", "agent_id": "trader", "content": "Mua"})).await;
    let events = until_asked(&mut client).await;
    let session = events[0]["session_id"].as_str().unwrap().to_owned();
    assert!(session.starts_with("ses_"), "{session}");

    client.send(&json!({"type": "cancel", "session_id": session, "request_id": "c9"})).await;
    let ended = client.until(is("message_stop")).await;
    let resolved = ended.iter().find(|event| event["type"] == "approval_resolved").unwrap();
    assert_eq!((&resolved["outcome"], &resolved["decided_by"]), (&json!("withdrawn"), &Value::Null));
    let stop = ended.last().unwrap();
    assert_eq!((&stop["stop_reason"], &stop["request_id"]), (&json!("cancelled"), &json!("c9")));
    // The same once more is the same answer.
    let again = client.ask(&json!({"type": "cancel", "session_id": session, "request_id": "c9"}), "message_stop").await;
    assert_eq!(again, *stop);
    let late = json!({"type": "approval", "session_id": session, "approval_key": format!("{session}_1"),
        "decisions": [{"type": "approve"}]});
    let refused = client.ask(&late, "approval_resolved").await;
    assert_eq!(refused["error"]["code"], "already_decided", "{refused}");
    assert_eq!(refused["error"]["details"]["outcome"], "withdrawn");
    assert!(stage.tools.calls().is_empty());

    // A run that began since then is not what it meant.
    stage.model.push(Reply::call("execute_trade", json!({"symbol": "FPT", "quantity": 2})));
    client.send(&message("trader", &session, "Mua nữa")).await;
    until_asked(&mut client).await;
    let again = client.ask(&json!({"type": "cancel", "session_id": session, "request_id": "c9"}), "message_stop").await;
    assert_eq!(again, *stop);
    let history = stage.history(&session).await;
    let last = history.iter().rev().flat_map(|message| message["content"].as_array()).flatten();
    let open = last.filter(|block| block["isResolved"] == json!(false)).count();
    assert_eq!(open, 1, "{history:#?}");
}

#[tokio::test]
async fn commands_over_http_are_answered_with_the_event_they_led_to() {
    let stage = Stage::solo().await;
    stage.model.push(Reply::call("execute_trade", json!({"symbol": "VNM", "quantity": 1})));
    let mut watcher = stage.connect().await;
    let mut ask = message("trader", "h", "Mua");
    ask["request_id"] = json!("h1");
    let started = stage.command("h", &ask).await;
    assert_eq!(started.status, 200, "{}", started.body);
    assert_eq!((&started.json()["type"], &started.json()["request_id"]), (&json!("message_start"), &json!("h1")));
    assert_eq!(stage.command("h", &ask).await.json(), started.json());

    let status = watcher.subscribe("h", 0).await;
    if status["open"] == json!([]) {
        until_asked(&mut watcher).await;
    }
    stage.model.push(Reply::text("Xong."));
    let approve = json!({"type": "approval", "request_id": "h2", "session_id": "h", "approval_key": "h_1",
        "decisions": [{"type": "approve"}]});
    let decided = stage.command("h", &approve).await;
    assert_eq!(decided.status, 200, "{}", decided.body);
    assert_eq!((&decided.json()["type"], &decided.json()["request_id"]), (&json!("approval_resolved"), &json!("h2")));
    // Somebody else is told without the name.
    let told = watcher.until(is("approval_resolved")).await;
    assert!(told.last().unwrap().get("request_id").is_none());
    watcher.until(is("message_stop")).await;
    assert_eq!(stage.command("h", &approve).await.json(), decided.json());
    let mut other = approve.clone();
    other["request_id"] = json!("h3");
    let refused = stage.command("h", &other).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (409, &json!("already_decided")));
    assert_eq!(refused.json()["error"]["details"]["decided_by"], "local");
    assert_eq!(stage.tools.calls().len(), 1);
}
