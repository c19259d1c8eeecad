//! What is answered otherwise than it was there, because it is better so.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::player::Player;
use crate::world::Answer;

#[tokio::test]
async fn where_we_do_better_the_same_requests_are_answered_otherwise() {
    let mut player = Player::new().await;
    player.stream("07-stream-pause").await;
    player.stream("08-approve").await;
    let (captured, again) = player.play("09-approve-again-already-decided").await;
    assert_eq!((captured.status, again.types().last().unwrap().as_str()), (500, "finish"), "it is replayed");
    player.stream("17-approve-missing-toolCallId").await;
    let (captured, only) = player.play("17-approve-missing-toolCallId_2").await;
    assert_eq!((captured.status, only.types().last().unwrap().as_str()), (400, "finish"), "one call waits");

    let (captured, pause) = player.play("35-parallel-pause").await;
    let announced = |chunks: &[Value]| chunks.iter().filter(|chunk| chunk["type"] == "tool-call-approval").count();
    assert_eq!((announced(&captured.chunks), announced(&pause.chunks())), (1, 2), "every call is announced");
    let (captured, second_first) = player.play("36-parallel-approve-second-first").await;
    assert_eq!((captured.status, second_first.payloads("tool-result").len()), (500, 1), "in any order");
    let (_, first_last) = player.play("37-parallel-approve-first-last").await;
    assert_eq!(first_last.types().last().unwrap(), "finish");

    let (captured, mixed) = player.play("38-mixed-pause").await;
    assert!(!captured.types.contains(&"tool-result".to_owned()));
    assert_eq!(mixed.payloads("tool-result").len(), 1, "what is not held is told at once");
    player.stream("39-mixed-approve").await;

    player.stream("47-tool-suspend").await;
    let (captured, invalid) = player.play("48-resume-invalid-data").await;
    assert_eq!((captured.status, invalid.refusal()), (200, (400, "invalid_resume_data".to_owned())));
    player.stream("49-tool-suspend").await;
    let (captured, wrong) = player.play("50-approve-on-suspended-tool").await;
    assert_eq!((captured.status, wrong.refusal()), (200, (400, "invalid_resume_data".to_owned())));

    player.play("62-mem-new-message-while-suspended").await;
    let (captured, busy) = player.play("62-mem-new-message-while-suspended_2").await;
    assert_eq!((captured.status, busy.refusal()), (200, (409, "thread_busy".to_owned())));
    player.play("62-mem-new-message-while-suspended_3").await.1.json();
    player.stream("63-mem-approve-stale").await;
    assert_eq!(player.world.tools.calls().len(), 7, "each approved call ran once");
}

#[tokio::test]
async fn two_calls_are_shown_together_and_what_came_of_each_is_told_with_its_own_decision() {
    let mut player = Player::new().await;
    player.stream("32-parallel-pause").await;
    let (captured, first) = player.play("33-parallel-approve-first").await;
    assert_eq!(captured.types, ["tool-call-approval"], "there the second call is shown only now");
    assert_eq!(first.types(), ["tool-call", "tool-result", "tool-call-approval"]);
    let (captured, second) = player.play("34-parallel-decline-second").await;
    assert_eq!(captured.types[..2], ["tool-result", "tool-output-denied"], "there the first result was held back");
    assert_eq!(second.types()[..2], ["tool-call", "tool-output-denied"]);
    assert_eq!(second.types()[2..], captured.types[2..]);
    assert_eq!(second.payloads("tool-output-denied")[0]["approval"]["reason"], json!("keep b"));
    assert_eq!(player.world.tools.calls().len(), 1);
}

#[tokio::test]
async fn a_decision_that_is_repeated_is_replayed_where_it_failed_there() {
    let mut player = Player::new().await;
    player.answered("26-generate-pause", &["runId"]).await;
    let done = player.answered("27-approve-generate", &["runId", "text"]).await;
    let (captured, again) = player.play("28-approve-generate-again").await;
    assert_eq!((captured.status, again.json()), (500, done));

    player.stream("64-double-approve-concurrent").await;
    let names = ["64-double-approve-concurrent_2", "64-double-approve-concurrent_3", "64-double-approve-concurrent_4"];
    let answers = names.map(|name| Answer::to(player.request(name).1));
    for answer in join_all(answers).await {
        assert_eq!(answer.types().last().unwrap(), "finish");
    }
    assert_eq!(player.world.tools.calls().len(), 2, "there it ran twice for one approval");

    let memory = json!({"thread": "th-sub", "resource": "user-1"});
    let body = json!({"messages": "delete a.txt", "memory": memory});
    let held = player.world.post("/agents/mem-agent/stream", body).await;
    player.names.0.insert("call_71_deleteFile".to_owned(), held.waiting().pop().unwrap());
    let sent = player.answered("65c-send-tool-approval", &["accepted", "runId", "toolCallId"]).await;
    let (captured, again) = player.play("65d-send-tool-approval-again").await;
    assert_eq!((captured.status, again.json()), (500, sent));
    player.world.tools.wait_for_calls(3).await;
    assert_eq!(player.world.tools.calls().len(), 3);
}

#[tokio::test]
async fn what_is_not_there_is_said_at_once_and_nobody_sends_it_again() {
    let mut player = Player::new().await;
    player.stream("extra-3-pause").await;
    let (captured, foreign) = player.play("extra-4-approve-through-other-agent").await;
    assert_eq!((captured.status, foreign.refusal()), (200, (404, "run_not_found".to_owned())), "there it ran");
    let (captured, unnamed) = player.play("retry-400-not-retried").await;
    assert_eq!((captured.status, unnamed.refusal()), (400, (404, "run_not_found".to_owned())), "an id may be left out");
    for name in [
        "retry-unknown-run-default-client",
        "retry-unknown-run-default-client_2",
        "retry-unknown-run-default-client_3",
        "retry-unknown-run-default-client_4",
    ] {
        player.refused(name, 404, "run_not_found").await;
    }
    assert!(player.world.tools.calls().is_empty());
}
