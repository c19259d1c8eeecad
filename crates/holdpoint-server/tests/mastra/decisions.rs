//! A stream ends where a person must look, and what was decided is what happens.

use serde_json::json;

use crate::world::{World, deciding};

const PAUSED: [&str; 10] = [
    "start",
    "step-start",
    "text-start",
    "text-delta",
    "tool-call-input-streaming-start",
    "tool-call-delta",
    "text-end",
    "tool-call-input-streaming-end",
    "tool-call",
    "tool-call-approval",
];

const AFTER: [&str; 8] =
    ["step-finish", "step-start", "text-start", "text-delta", "text-end", "step-finish", "finish", ""];

#[tokio::test]
async fn a_held_call_ends_the_stream_and_runs_once_when_it_is_approved() {
    let world = World::start().await;
    let paused = world.say("delete a.txt").await;
    let mut types = paused.types();
    // The end of the text may stand on either side of the arguments.
    types.sort();
    let mut expected = PAUSED.map(str::to_owned);
    expected.sort();
    assert_eq!(types, expected);
    let (run, call) = (paused.run(), paused.waiting().pop().unwrap());
    let approval = &paused.payloads("tool-call-approval")[0];
    assert_eq!((&approval["toolName"], &approval["args"]), (&json!("deleteFile"), &json!({"path": "a.txt"})));
    let schema: serde_json::Value = serde_json::from_str(approval["resumeSchema"].as_str().unwrap()).unwrap();
    assert_eq!(schema["required"], json!(["approved"]));
    assert!(world.tools.calls().is_empty(), "nothing ran");

    let resumed = world.approve(&run, &call).await;
    let after: Vec<&str> = ["tool-call", "tool-result"].into_iter().chain(AFTER[..7].iter().copied()).collect();
    assert_eq!(resumed.types(), after);
    assert_eq!(resumed.run(), run);
    let result = &resumed.payloads("tool-result")[0];
    assert_eq!((&result["toolCallId"], &result["args"]), (&json!(call), &json!({"path": "a.txt"})));
    assert_eq!(world.tools.calls_by_tool(), [r#"deleteFile {"path":"a.txt"}"#]);
    assert!(resumed.text().starts_with("Final answer after tool results: "), "{}", resumed.text());
    let finish = &resumed.payloads("finish")[0];
    assert_eq!(finish["stepResult"], json!({"reason": "stop", "isContinued": false}));
    assert_eq!(finish["output"]["usage"], json!({"inputTokens": 20, "outputTokens": 10, "totalTokens": 30}));
    assert!(resumed.payloads("finish")[0].get("messages").is_none(), "it is lean");
}

#[tokio::test]
async fn a_declined_call_never_runs_and_the_model_is_told_the_reason() {
    let world = World::start().await;
    for (body, reason) in [
        (json!({"reason": "policy forbids it"}), "policy forbids it"),
        (json!({"info": "not on a Friday"}), "not on a Friday"),
        (json!({"reason": "  "}), "Tool call was not approved by the user"),
        (json!({}), "Tool call was not approved by the user"),
    ] {
        let (run, calls) = world.held("delete a.txt").await;
        let mut whole = deciding(&run, &calls[0]);
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let resumed = world.post("/agents/file-agent/decline-tool-call", whole).await;
        let after: Vec<&str> =
            ["tool-call", "tool-output-denied"].into_iter().chain(AFTER[..7].iter().copied()).collect();
        assert_eq!(resumed.types(), after);
        let denied = &resumed.payloads("tool-output-denied")[0];
        assert_eq!(denied["approval"], json!({"id": calls[0], "approved": false, "reason": reason}));
        assert_eq!(resumed.text(), format!("Final answer after tool results: {reason}"));
    }
    assert!(world.tools.calls().is_empty());
}

#[tokio::test]
async fn every_call_that_waits_is_announced_and_they_are_decided_in_any_order() {
    for first in [0, 1] {
        let world = World::start().await;
        let (run, calls) = world.held("parallel delete").await;
        assert_eq!(calls.len(), 2);
        let second = 1 - first;
        let partly = world.approve(&run, &calls[first]).await;
        assert_eq!(partly.types(), ["tool-call", "tool-result", "tool-call-approval"]);
        assert_eq!(partly.waiting(), [calls[second].clone()]);
        assert_eq!(world.tools.calls().len(), 1);
        let rest = world.decline(&run, &calls[second], "enough").await;
        assert_eq!(rest.types()[..4], ["tool-call", "tool-output-denied", "step-finish", "step-start"]);
        assert_eq!(rest.payloads("tool-output-denied")[0]["toolCallId"], json!(calls[second]));
        assert_eq!(rest.types().last().unwrap(), "finish");
        let path = ["one.txt", "two.txt"][first];
        assert_eq!(world.tools.calls_by_tool(), [format!(r#"deleteFile {{"path":"{path}"}}"#)]);
    }
}

#[tokio::test]
async fn the_id_may_be_left_out_where_one_call_waits_and_only_there() {
    let world = World::start().await;
    let (run, calls) = world.held("parallel delete").await;
    let refused = world.post("/agents/file-agent/approve-tool-call", json!({ "runId": run })).await;
    assert_eq!(refused.refusal(), (409, "ambiguous_target".to_owned()));
    assert_eq!(refused.json()["waiting"], json!(calls));
    assert!(world.tools.calls().is_empty());
    world.approve(&run, &calls[0]).await.chunks();
    let resumed = world.post("/agents/file-agent/approve-tool-call", json!({ "runId": run })).await;
    assert_eq!(resumed.payloads("tool-result").last().unwrap()["toolCallId"], json!(calls[1]));
    assert_eq!(world.tools.calls().len(), 2);
}

#[tokio::test]
async fn a_contrary_decision_is_told_who_decided_and_when() {
    let world = World::start().await;
    let (run, calls) = world.held("delete a.txt").await;
    world.approve(&run, &calls[0]).await.chunks();
    let late = world.decline(&run, &calls[0], "too late").await;
    assert_eq!(late.refusal(), (409, "already_decided".to_owned()));
    let body = late.json();
    assert_eq!((&body["outcome"], &body["decidedBy"]), (&json!("approve"), &json!("local")));
    assert!(body["decidedAt"].as_str().unwrap().starts_with("2026-11-15T"), "{body}");

    let (run, calls) = world.held("delete a.txt").await;
    world.decline(&run, &calls[0], "no").await.chunks();
    let late = world.approve(&run, &calls[0]).await;
    assert_eq!(late.refusal(), (409, "already_decided".to_owned()));
    assert_eq!(late.json()["outcome"], json!("deny"));
    assert_eq!(world.tools.calls().len(), 1, "only what was approved");
}

#[tokio::test]
async fn the_same_decision_again_replays_what_followed() {
    let world = World::start().await;
    let (run, calls) = world.held("delete a.txt").await;
    let first = world.approve(&run, &calls[0]).await;
    let again = world.approve(&run, &calls[0]).await;
    assert_eq!(again.types(), first.types());
    assert_eq!((again.text(), again.run()), (first.text(), run));
    assert_eq!(world.tools.calls().len(), 1);

    let (run, calls) = world.held("delete a.txt").await;
    let first = world.decline(&run, &calls[0], "no").await;
    let again = world.decline(&run, &calls[0], "no, and for another reason").await;
    assert_eq!((again.types(), again.text()), (first.types(), first.text()));
}

#[tokio::test]
async fn a_run_may_wait_more_than_once_under_one_name() {
    let world = World::start().await;
    let (run, calls) = world.held("twostep").await;
    let second = world.approve(&run, &calls[0]).await;
    assert_eq!(second.types().last().unwrap(), "tool-call-approval");
    assert_eq!(second.run(), run);
    let end = world.approve(&run, &second.waiting()[0]).await;
    assert_eq!(end.types().last().unwrap(), "finish");
    assert_eq!(
        world.tools.calls_by_tool(),
        [r#"deleteFile {"path":"first.txt"}"#, r#"deleteFile {"path":"second.txt"}"#]
    );
}

#[tokio::test]
async fn a_tool_that_fails_is_told_and_the_run_goes_on() {
    let world = World::start().await;
    let (run, calls) = world.held("fail it").await;
    let resumed = world.approve(&run, &calls[0]).await;
    assert_eq!(resumed.types()[..3], ["tool-call", "tool-error", "step-finish"]);
    let error = &resumed.payloads("tool-error")[0];
    assert_eq!((&error["toolName"], &error["args"]), (&json!("failTool"), &json!({"x": 1})));
    assert!(error["error"]["message"].is_string());
    assert_eq!(resumed.types().last().unwrap(), "finish");
}

#[tokio::test]
async fn a_deadline_that_has_passed_is_gone() {
    let world = World::start().await;
    let (run, calls) = world.held("delete a.txt").await;
    world.clock.advance(std::time::Duration::from_secs(300));
    for late in [world.approve(&run, &calls[0]).await, world.decline(&run, &calls[0], "no").await] {
        assert_eq!(late.refusal(), (410, "expired".to_owned()));
        assert!(late.json()["expiredAt"].is_string());
    }
    assert!(world.tools.calls().is_empty());
}
