//! What is answered in the shape that was captured.

use serde_json::{Value, json};

use super::exchange::read;
use super::player::{Player, check_members};

#[tokio::test]
async fn streams_and_decisions_have_the_shape_that_was_captured() {
    let mut player = Player::new().await;
    for name in ["05-stream-text-only", "06-stream-tool-no-approval", "67-observe-plain-agent", "68-auth-header"] {
        player.stream(name).await;
    }
    for (pause, decision) in [
        ("07-stream-pause", "08-approve"),
        ("11-stream-pause", "12-decline-reason"),
        ("13-stream-pause", "14-decline-no-reason"),
        ("43-call-level-requireToolApproval", "44-call-level-approve"),
        ("45-tool-suspend", "46-resume-stream"),
        ("52-fail-tool-pause", "53-fail-tool-approve"),
        ("55-mem-stream-pause", "58-mem-approve"),
        ("60-mem-decline", "60-mem-decline_2"),
        ("71-client-run-id-reuse", "71-client-run-id-approve"),
        ("extra-1-pause", "extra-2-decline-with-info-field"),
        ("extra-5-pause", "extra-6-decline-blank-reason"),
        ("extra-7-approve-inside-onchunk", "extra-7-approve-inside-onchunk_2"),
    ] {
        player.stream(pause).await;
        player.stream(decision).await;
    }
    for name in ["40-twostep-pause", "41-twostep-approve-1", "42-twostep-approve-2"] {
        player.stream(name).await;
    }
}

#[tokio::test]
async fn refusals_have_the_form_that_was_captured_and_statuses_that_nobody_repeats() {
    let mut player = Player::new().await;
    player.stream("07-stream-pause").await;
    player.stream("08-approve").await;
    player.refused("10-decline-after-approve", 409, "already_decided").await;
    player.refused("15-approve-unknown-run", 404, "run_not_found").await;
    player.refused("16-decline-unknown-run", 404, "run_not_found").await;
    player.stream("17-approve-missing-toolCallId").await;
    player.refused("18-approve-wrong-toolCallId", 409, "tool_call_not_suspended").await;
    player.stream("19-approve-right-after-wrong").await;
    player.refused("20-approve-missing-runId", 400, "missing_field").await;
    player.refused("21-approve-unknown-agent", 404, "agent_not_found").await;
    player.refused("22-stream-unknown-agent", 404, "agent_not_found").await;
    player.refused("23-malformed-json", 400, "invalid_json").await;
    player.refused("24-stream-missing-messages", 400, "missing_field").await;
    player.refused("31-approve-generate-unknown-run", 404, "run_not_found").await;
    player.refused("04-agent-details-unknown", 404, "agent_not_found").await;
}

#[tokio::test]
async fn answers_in_one_piece_have_the_shape_that_was_captured() {
    let mut player = Player::new().await;
    let members =
        ["text", "usage", "steps", "finishReason", "warnings", "toolCalls", "toolResults", "runId", "messages"];
    player.answered("25-generate-text", &members).await;
    let paused =
        player.answered("26-generate-pause", &[&members[..], &["suspendPayload", "resumeSchema"]].concat()).await;
    assert_eq!(paused["finishReason"], json!("suspended"));
    player.answered("27-approve-generate", &members).await;
    player.answered("29-generate-pause", &members).await;
    player.answered("30-decline-generate", &members).await;
    player.answered("51-generate-suspend", &["finishReason", "suspendPayload", "runId"]).await;
    let agent = [
        "name",
        "description",
        "instructions",
        "tools",
        "agents",
        "workflows",
        "provider",
        "modelId",
        "defaultOptions",
    ];
    player.answered("03-agent-details", &agent).await;
    for name in ["01-list-agents", "02-list-agents-partial"] {
        let ours = player.answered(name, &["file-agent"]).await;
        let (ours, theirs) = (&ours["file-agent"], &read(name).json["file-agent"]);
        check_members(name, ours, theirs, &[&agent[..], &["id"]].concat());
        let tool = |agent: &Value| agent["tools"]["deleteFile"].clone();
        check_members(name, &tool(ours), &tool(theirs), &["id", "description", "requireApproval"]);
    }
    let listed = player.answered("54-list-suspended-runs-nothread", &["runs", "total"]).await;
    assert_eq!(listed["total"], json!(1), "what was asked before waits");
    let theirs = &read("54-list-suspended-runs-nothread").json["runs"][0];
    check_members("54", &listed["runs"][0], theirs, &["runId", "status", "suspendedAt", "toolCalls"]);
    let call = |run: &Value| run["toolCalls"][0].clone();
    let members = ["toolCallId", "toolName", "requiresApproval", "suspendPayload"];
    check_members("54", &call(&listed["runs"][0]), &call(theirs), &members);
    player.stream("55-mem-stream-pause").await;
    let listed = player.answered("56-mem-list-suspended-runs", &["runs", "total"]).await;
    assert_eq!((&listed["total"], &listed["runs"][0]["threadId"]), (&json!(1), &json!("th-1")));
    let members = ["messages", "total", "page", "perPage", "hasMore"];
    assert_eq!(player.answered("57-mem-list-thread-messages", &members).await["total"], json!(2));
    player.stream("58-mem-approve").await;
    assert_eq!(player.answered("59-mem-list-thread-messages-after", &members).await["total"], json!(3));
    player.stream("60-mem-decline").await;
    player.stream("60-mem-decline_2").await;
    assert_eq!(player.answered("61-mem-list-thread-messages-declined", &members).await["total"], json!(3));
}
