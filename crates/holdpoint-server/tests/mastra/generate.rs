//! The same in one answer: the run so far, when it waits or is over.

use serde_json::{Value, json};

use crate::world::{World, deciding};

async fn paused(world: &World) -> (String, String, Value) {
    let answer = world.post("/agents/file-agent/generate", json!({"messages": "delete a.txt"})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let body = answer.json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&body["runId"]), text(&body["suspendPayload"]["toolCallId"]), body)
}

#[tokio::test]
async fn an_answer_without_calls_is_whole() {
    let world = World::start().await;
    let body = world.post("/agents/file-agent/generate", json!({"messages": "hi"})).await.json();
    assert_eq!((&body["finishReason"], &body["text"]), (&json!("stop"), &json!("Hello there, how can I help?")));
    assert_eq!(body["usage"], json!({"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}));
    assert_eq!(body["steps"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_held_call_suspends_it_and_an_approval_completes_it() {
    let world = World::start().await;
    let (run, call, body) = paused(&world).await;
    assert_eq!((&body["finishReason"], &body["text"], &body["usage"]), (&json!("suspended"), &json!(""), &json!({})));
    assert_eq!(body["suspendPayload"]["args"], json!({"path": "a.txt"}));
    assert_eq!(body["suspendPayload"]["resumeSchema"], body["resumeSchema"]);
    assert_eq!(body["toolCalls"][0]["payload"]["toolCallId"], json!(call));
    assert!(world.tools.calls().is_empty());

    let done = world.post("/agents/file-agent/approve-tool-call-generate", deciding(&run, &call)).await.json();
    assert_eq!((&done["finishReason"], &done["runId"]), (&json!("stop"), &json!(run)));
    let text = done["text"].as_str().unwrap();
    assert!(text.starts_with("I will delete it. Final answer after tool results: "), "{text}");
    assert_eq!(done["toolResults"][0]["payload"]["result"]["done"], json!({"path": "a.txt"}));
    assert_eq!(done["steps"].as_array().unwrap().len(), 2);
    assert_eq!(done["totalUsage"], json!({"inputTokens": 20, "outputTokens": 10, "totalTokens": 30}));
    assert_eq!(world.tools.calls().len(), 1);

    let again = world.post("/agents/file-agent/approve-tool-call-generate", deciding(&run, &call)).await.json();
    assert_eq!(again, done);
    assert_eq!(world.tools.calls().len(), 1);
}

#[tokio::test]
async fn a_refusal_completes_it_without_running_anything() {
    let world = World::start().await;
    let (run, call, _) = paused(&world).await;
    let body = json!({"runId": run, "toolCallId": call, "reason": "not today"});
    let done = world.post("/agents/file-agent/decline-tool-call-generate", body).await.json();
    assert_eq!(done["text"], json!("I will delete it. Final answer after tool results: not today"));
    assert_eq!(done["toolResults"], json!([]));
    assert!(world.tools.calls().is_empty());
    let late = world.post("/agents/file-agent/approve-tool-call-generate", deciding(&run, &call)).await;
    assert_eq!(late.refusal(), (409, "already_decided".to_owned()));
}

#[tokio::test]
async fn every_call_that_waits_is_named() {
    let world = World::start().await;
    let body = world.post("/agents/file-agent/generate", json!({"messages": "parallel delete"})).await.json();
    assert_eq!(body["toolCalls"].as_array().unwrap().len(), 2);
    assert_eq!(body["suspendPayloads"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_question_suspends_it_too() {
    let world = World::start().await;
    let body = world.post("/agents/file-agent/generate", json!({"messages": "suspend please"})).await.json();
    assert_eq!(body["finishReason"], json!("suspended"));
    assert_eq!(body["suspendPayload"]["suspendPayload"]["questions"][0]["question"], json!("Which env?"));
}
