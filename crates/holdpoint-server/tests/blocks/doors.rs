//! One pause, many doors: what begins here is decided elsewhere and the other way round, and every subscriber learns it.

use holdpoint_testkit::model_server::Answer as Reply;
use serde_json::{Value, json};

use crate::client::{Client, is, is_block, until_asked};
use crate::stage::{Stage, message};

fn trade(symbol: &str) -> Value {
    json!({"symbol": symbol, "quantity": 100})
}

/// A run that began here and waits, with a second subscriber who watches.
async fn held(stage: &Stage, calls: Reply) -> (Client, Client) {
    let mut client = stage.connect().await;
    stage.model.push(calls);
    client.send(&message("trader", "s", "Mua")).await;
    until_asked(&mut client).await;
    let mut watcher = stage.connect().await;
    watcher.subscribe("s", 0).await;
    until_asked(&mut watcher).await;
    (client, watcher)
}

/// Reads to the end of the run, and sees that everybody was told how the request ended.
async fn both_learn(clients: (Client, Client), outcome: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for mut client in [clients.0, clients.1] {
        let told = client.until(is("message_stop")).await;
        let resolved: Vec<&Value> = told.iter().filter(|event| event["type"] == "approval_resolved").collect();
        assert_eq!(resolved.len(), 1, "{told:?}");
        assert_eq!((&resolved[0]["approval_key"], &resolved[0]["outcome"]), (&json!("s_1"), &json!(outcome)));
        all = told;
    }
    all
}

/// The open pauses of the session, by the native API.
async fn pauses(stage: &Stage) -> Vec<Value> {
    let answer = stage.get("/api/v1/pauses?status=open&session=s").await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()["pauses"].as_array().unwrap().clone()
}

async fn decide_natively(stage: &Stage, pause: &Value, body: Value) {
    let path = format!("/api/v1/pauses/{}/decide", pause["id"].as_str().unwrap());
    let answer = stage.post(&path, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
}

fn approve(key: &str, decisions: Value) -> Value {
    json!({"type": "approval", "session_id": "s", "approval_key": key, "decisions": decisions})
}

#[tokio::test]
async fn what_began_here_is_resumed_by_a_superagent_client() {
    let stage = Stage::solo().await;
    let clients = held(&stage, Reply::call("execute_trade", trade("VNM"))).await;
    stage.model.push(Reply::text("Xong."));
    let body = json!({"agent_id": "trader", "session_id": "s", "input": {"confirm": true}});
    let answer = stage.post("/api/v1/chat/resume", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let told = both_learn(clients, "decided").await;
    assert!(told.iter().any(|event| is_block(event, "approval_result")), "{told:?}");
    assert_eq!(stage.tools.calls().len(), 1);
}

#[tokio::test]
async fn what_began_here_is_decided_by_the_native_api() {
    let stage = Stage::solo().await;
    let clients = held(&stage, Reply::call("execute_trade", trade("VNM"))).await;
    stage.model.push(Reply::text("Thôi."));
    let open = pauses(&stage).await;
    decide_natively(&stage, &open[0], json!({"decision": "deny", "message": "no"})).await;
    let told = both_learn(clients, "decided").await;
    let result = told.iter().find(|event| event["delta"]["decisions"].is_array()).unwrap();
    assert_eq!(result["delta"]["decisions"][0]["type"], "reject", "{result}");
    assert_eq!(stage.tools.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn a_question_that_was_asked_here_is_answered_by_the_native_api() {
    let stage = Stage::solo().await;
    let questions = json!({"questions": [{"question": "Kỳ hạn?", "options": [{"label": "1 năm"}]}]});
    let clients = held(&stage, Reply::call("ask_user_question", questions)).await;
    stage.model.push(Reply::text("Cảm ơn!"));
    let open = pauses(&stage).await;
    let answers = json!({"decision": "answer", "answers": {"Kỳ hạn?": "1 năm"}});
    decide_natively(&stage, &open[0], answers).await;
    both_learn(clients, "decided").await;
    let history = stage.history("s").await;
    let shown = history.iter().find(|message| message["content"][0]["type"] == "approval_request").unwrap();
    assert_eq!(shown["content"][0]["submittedAnswers"], json!({"Kỳ hạn?": "1 năm"}));
}

#[tokio::test]
async fn a_cancelled_run_withdraws_its_request_for_everybody() {
    let stage = Stage::solo().await;
    let clients = held(&stage, Reply::call("execute_trade", trade("VNM"))).await;
    let body = json!({"agent_id": "trader", "session_id": "s"});
    let answer = stage.post("/api/v1/chat/abort", &body).await;
    assert_eq!(answer.json()["status"], "aborted", "{}", answer.body);
    let told = both_learn(clients, "withdrawn").await;
    assert_eq!(told.last().unwrap()["stop_reason"], "cancelled");
    assert_eq!(stage.tools.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn what_began_in_the_native_api_is_decided_here() {
    let stage = Stage::solo().await;
    stage.model.push(Reply::call("execute_trade", trade("VNM")));
    let body = json!({"agent_id": "trader", "session_id": "s", "input": "Mua"});
    let run = stage.post("/api/v1/runs?wait=30", &body).await.json();
    assert_eq!(run["status"], "paused", "{run}");
    let mut client = stage.connect().await;
    let subscribed = client.subscribe("s", 0).await;
    assert_eq!((&subscribed["status"], &subscribed["open"]), (&json!("waiting"), &json!(["s_1"])));
    until_asked(&mut client).await;
    stage.model.push(Reply::text("Xong."));
    client.send(&approve("s_1", json!([{"type": "approve"}]))).await;
    client.until(is("message_stop")).await;
    let read = stage.get(&format!("/api/v1/runs/{}", run["run_id"].as_str().unwrap())).await.json();
    assert_eq!((&read["status"], &read["output"]), (&json!("done"), &json!("Xong.")));
    assert_eq!(stage.tools.calls().len(), 1);
}

#[tokio::test]
async fn what_began_with_a_superagent_client_is_decided_here() {
    let stage = Stage::solo().await;
    stage.model.push(Reply::call("execute_trade", trade("VNM")));
    let body = json!({"agent_id": "trader", "session_id": "s", "message": "Mua"});
    let answer = stage.post("/api/v1/chat/stream", &body).await;
    assert!(answer.body.contains("INTERRUPT"), "{}", answer.body);
    stage.model.push(Reply::text("Xong."));
    let mut client = stage.connect().await;
    client.subscribe("s", 0).await;
    until_asked(&mut client).await;
    client.send(&approve("s_1", json!([{"type": "approve"}]))).await;
    client.until(is("message_stop")).await;
    let state = stage.get("/api/v1/chat/interrupt_state?agent_id=trader&session_id=s").await.json();
    assert_eq!(state, json!({"interrupted": false}));
    assert_eq!(stage.tools.calls().len(), 1);
}

#[tokio::test]
async fn a_confirmation_that_a_model_asks_for_is_decided_here() {
    let stage = Stage::solo().await;
    stage.model.push(Reply::text("I delete it. Please confirm."));
    let body = json!({"agent_id": "asker", "session_id": "s", "message": "Delete it"});
    let answer = stage.post("/api/v1/chat/stream", &body).await;
    assert!(answer.body.contains("INTERRUPT"), "{}", answer.body);
    let mut client = stage.connect().await;
    client.subscribe("s", 0).await;
    let told = until_asked(&mut client).await;
    let request = &told.iter().find(|event| is_block(event, "approval_request")).unwrap()["content_block"];
    assert_eq!(request["pause"]["kind"], "confirmation", "{request}");
    stage.model.push(Reply::text("Deleted."));
    client.send(&approve("s_1", json!([{"type": "approve"}]))).await;
    let told = client.until(|event| event["type"] == "message_stop" || event["type"] == "error").await;
    assert_eq!(told.last().unwrap()["type"], "message_stop", "{told:?}");
}

#[tokio::test]
async fn of_two_actions_one_is_decided_elsewhere_and_only_the_other_here() {
    let stage = Stage::solo().await;
    let calls = Reply::call("execute_trade", trade("VNM")).and_call("execute_trade", trade("FPT"));
    let (mut client, watcher) = held(&stage, calls).await;
    let open = pauses(&stage).await;
    let vnm = open.iter().find(|pause| pause["args"]["symbol"] == "VNM").unwrap();
    decide_natively(&stage, vnm, json!({"decision": "deny", "message": "no"})).await;
    let before = stage.everything().await;
    // What contradicts the decision that was made elsewhere is refused whole.
    let both = approve("s_1", json!([{"type": "approve"}, {"type": "approve"}]));
    let told = client.ask(&both, "approval_resolved").await;
    assert_eq!(told["error"]["code"], "already_decided", "{told}");
    assert_eq!(stage.everything().await, before, "nothing of it was applied");
    stage.model.push(Reply::text("Xong."));
    client.send(&approve("s_1", json!([{"type": "reject"}, {"type": "approve"}]))).await;
    let told = both_learn((client, watcher), "decided").await;
    let result = told.iter().find(|event| event["delta"]["decisions"].is_array()).unwrap();
    let kinds: Vec<&Value> = result["delta"]["decisions"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert_eq!(kinds, ["reject", "approve"]);
    assert_eq!(stage.tools.calls().len(), 1);
    assert!(stage.tools.calls()[0].contains("FPT"));
}

#[tokio::test]
async fn a_number_that_would_not_run_as_it_was_sent_is_refused_at_every_door() {
    let stage = Stage::solo().await;
    let (mut client, _watcher) = held(&stage, Reply::call("execute_trade", trade("VNM"))).await;
    let pause = pauses(&stage).await.remove(0);
    let before = stage.everything().await;
    let path = format!("/api/v1/pauses/{}/decide", pause["id"].as_str().unwrap());
    for number in [
        "18446744073709551616",
        "18446744073709551615",
        "9007199254740993",
        "1e400",
        "0.1000000000000000055511151231257827",
    ] {
        let args = format!(r#"{{"symbol":"VNM","quantity":5,"price":{number}}}"#);
        let native = format!(r#"{{"decision":"approve_edited","args":{args}}}"#);
        let request = stage.request("POST", &path).header("content-type", "application/json").body(native);
        let answer = crate::stage::Answer::to(request).await;
        assert_eq!((answer.status, &answer.json()["code"]), (422, &json!("number_out_of_range")), "{}", answer.body);
        let edit = format!(
            r#"{{"type":"approval","session_id":"s","approval_key":"s_1","decisions":[{{"type":"edit","edited_action":{{"name":"execute_trade","args":{args}}}}}]}}"#
        );
        client.send_frame(tokio_tungstenite::tungstenite::Message::text(edit)).await;
        let told = client.until(is("error")).await.pop().unwrap();
        assert_eq!(told["error"]["code"], "invalid_args", "{told}");
        assert_eq!(told["error"]["details"]["reason"], "number_out_of_range", "{told}");
    }
    assert_eq!(stage.everything().await, before);
    // The largest that every page keeps runs as it was sent.
    stage.model.push(Reply::text("Xong."));
    let args = r#"{"symbol":"VNM","quantity":5,"price":9007199254740991}"#;
    let native = format!(r#"{{"decision":"approve_edited","args":{args}}}"#);
    let request = stage.request("POST", &path).header("content-type", "application/json").body(native);
    assert_eq!(crate::stage::Answer::to(request).await.status, 200);
    client.until(is("message_stop")).await;
    assert!(stage.tools.calls()[0].contains("9007199254740991"), "{:?}", stage.tools.calls());
}

#[tokio::test]
async fn an_edit_that_the_policy_would_not_let_run_is_refused_before_it_is_recorded_at_every_door() {
    let stage = Stage::solo().await;
    let (mut client, _watcher) = held(&stage, Reply::call("execute_trade", trade("VNM"))).await;
    let pause = pauses(&stage).await.remove(0);
    let before = stage.everything().await;
    let too_much = json!({"symbol": "VNM", "quantity": 10_001});
    let path = format!("/api/v1/pauses/{}/decide", pause["id"].as_str().unwrap());
    let answer = stage.post(&path, &json!({"decision": "approve_edited", "args": too_much})).await;
    assert_eq!((answer.status, &answer.json()["code"]), (422, &json!("invalid_arguments")), "{}", answer.body);
    assert!(answer.body.contains("at most 10000 at once"), "{}", answer.body);
    let edit = |args: &Value| {
        approve("s_1", json!([{"type": "edit", "edited_action": {"name": "execute_trade", "args": args}}]))
    };
    let told = client.ask(&edit(&too_much), "approval_resolved").await;
    assert_eq!(told["error"]["code"], "invalid_args", "{told}");
    assert_eq!(stage.everything().await, before, "who edits can still mend it");
    stage.model.push(Reply::text("Xong."));
    let told = client.ask(&edit(&json!({"symbol": "VNM", "quantity": 10_000})), "approval_resolved").await;
    assert_eq!(told["type"], "approval_resolved", "{told}");
    client.until(is("message_stop")).await;
    assert!(stage.tools.calls()[0].contains("10000"), "{:?}", stage.tools.calls());
}

#[tokio::test]
async fn what_was_approved_elsewhere_is_told_also_where_the_rest_is_withdrawn_or_superseded() {
    for (agent, outcome) in [("trader", "withdrawn"), ("supersede", "superseded")] {
        let stage = Stage::solo().await;
        let mut client = stage.connect().await;
        stage.model.push(Reply::call("execute_trade", trade("VNM")).and_call("execute_trade", trade("FPT")));
        client.send(&crate::stage::message(agent, "s", "Mua")).await;
        until_asked(&mut client).await;
        let open = pauses(&stage).await;
        let vnm = open.iter().find(|pause| pause["args"]["symbol"] == "VNM").unwrap();
        decide_natively(&stage, vnm, json!({"decision": "approve"})).await;
        stage.model.push(Reply::text("Thôi."));
        match outcome {
            "withdrawn" => client.send(&json!({"type": "cancel", "session_id": "s"})).await,
            _ => client.send(&crate::stage::message(agent, "s", "Thôi")).await,
        }
        let told = client.until(is("message_stop")).await;
        let resolved = told.iter().find(|event| event["type"] == "approval_resolved").unwrap();
        assert_eq!(resolved["outcome"], outcome, "{resolved}");
        let shown = json!([{"type": "approve"}, {"type": "reject", "outcome": outcome}]);
        let result = told.iter().find(|event| event["delta"]["decisions"].is_array());
        assert_eq!(result.unwrap_or_else(|| panic!("{told:?}"))["delta"]["decisions"], shown);
        let history = stage.history("s").await;
        let mut blocks = history.iter().filter_map(|message| message["content"].as_array()).flatten();
        let request = blocks.find(|block| block["type"] == "approval_request").unwrap();
        assert_eq!(request["submittedDecisions"], shown, "{request}");
    }
}

#[tokio::test]
async fn a_decision_that_is_copied_is_meant_for_what_is_open_and_one_that_comes_too_late_says_for_which() {
    let stage = Stage::solo().await;
    let calls = Reply::call("execute_trade", trade("VNM")).and_call("execute_trade", trade("FPT"));
    let (mut client, _watcher) = held(&stage, calls.and_call("execute_trade", trade("HPG"))).await;
    let open = pauses(&stage).await;
    let of = |symbol: &str| open.iter().find(|pause| pause["args"]["symbol"] == symbol).unwrap();
    decide_natively(&stage, of("FPT"), json!({"decision": "deny", "message": "no"})).await;
    let each = approve("s_1", json!([{"type": "approve"}, {"type": "approve"}, {"type": "approve"}]));
    let told = client.ask(&each, "approval_resolved").await;
    assert_eq!(told["error"]["code"], "already_decided", "{told}");
    let sentence = told["error"]["message"].as_str().unwrap();
    assert!(sentence.contains("decisions[1] (execute_trade)") && sentence.contains("say reject"), "{sentence}");
    stage.model.push(Reply::text("Xong."));
    client.send(&approve("s_1", json!([{"type": "approve"}]))).await;
    client.until(is("message_stop")).await;
    let mut ran = stage.tools.calls();
    ran.sort();
    assert_eq!(ran.len(), 2, "{ran:?}");
    assert!(ran.iter().all(|call| !call.contains("FPT")), "{ran:?}");
    let late = client.ask(&approve("s_1", json!([{"type": "approve"}])), "approval_resolved").await;
    assert_eq!(late["error"]["details"]["outcomes"], json!(["approve", "reject", "approve"]), "{late}");
}

#[tokio::test]
async fn a_command_in_the_address_of_its_session_need_not_name_it() {
    let stage = Stage::solo().await;
    let (mut client, _watcher) = held(&stage, Reply::call("execute_trade", trade("VNM"))).await;
    let mut command = approve("s_1", json!([{"type": "reject"}]));
    command.as_object_mut().unwrap().remove("session_id");
    stage.model.push(Reply::text("Thôi."));
    let answer = stage.command("s", &command).await;
    assert_eq!((answer.status, &answer.json()["outcome"]), (200, &json!("decided")), "{}", answer.body);
    client.until(is("message_stop")).await;
}
