//! What was approved runs once: however many approve, whoever hangs up, whatever dies.

use futures_util::future::join_all;
use serde_json::json;

use crate::world::{Reading, World, deciding};

#[tokio::test]
async fn two_racing_approvals_run_the_tool_once_a_hundred_times() {
    let world = World::start().await;
    for round in 1..=100 {
        let (run, calls) = world.held("delete a.txt").await;
        let (one, other) = tokio::join!(world.approve(&run, &calls[0]), world.approve(&run, &calls[0]));
        for answer in [one, other] {
            assert_eq!(answer.payloads("tool-result").len(), 1, "round {round}");
            assert_eq!(answer.types().last().unwrap(), "finish", "round {round}");
        }
        assert_eq!(world.tools.calls().len(), round, "round {round}");
    }
}

#[tokio::test]
async fn a_yes_and_a_no_that_race_have_one_winner_and_the_tool_runs_only_if_it_was_yes() {
    let world = World::start().await;
    let mut ran = 0;
    for round in 0..30 {
        let (run, calls) = world.held("delete a.txt").await;
        let (yes, no) = tokio::join!(world.approve(&run, &calls[0]), world.decline(&run, &calls[0], "no"));
        let mut statuses = [yes.status, no.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "round {round}");
        ran += usize::from(yes.status == 200);
        assert_eq!(world.tools.calls().len(), ran, "round {round}");
    }
}

#[tokio::test]
async fn an_approval_while_the_tool_runs_joins_and_does_not_run_it_again() {
    let world = World::start().await;
    let (run, calls) = world.held("delete a.txt").await;
    world.tools.close();
    let first = world.request("POST", "/agents/file-agent/approve-tool-call").json(&deciding(&run, &calls[0]));
    let mut first = Reading::begin(first).await;
    assert_eq!(first.next().await.unwrap()["type"], json!("tool-call"));
    world.tools.wait_for_calls(1).await;
    let second = world.request("POST", "/agents/file-agent/approve-tool-call").json(&deciding(&run, &calls[0]));
    let mut second = Reading::begin(second).await;
    assert_eq!(second.next().await.unwrap()["type"], json!("tool-call"));
    world.tools.open();
    for reading in [&mut first, &mut second] {
        assert_eq!(reading.next().await.unwrap()["type"], json!("tool-result"));
        reading.until("finish").await;
        assert_eq!(reading.next().await, None);
    }
    assert_eq!(world.tools.calls().len(), 1);
}

#[tokio::test]
async fn a_client_that_hangs_up_while_the_tool_runs_loses_nothing() {
    let world = World::start().await;
    let (run, calls) = world.held("delete a.txt").await;
    world.tools.close();
    let request = world.request("POST", "/agents/file-agent/approve-tool-call").json(&deciding(&run, &calls[0]));
    let mut reading = Reading::begin(request).await;
    assert_eq!(reading.next().await.unwrap()["type"], json!("tool-call"));
    world.tools.wait_for_calls(1).await;
    drop(reading);
    world.tools.open();
    let whole = world.approve(&run, &calls[0]).await;
    assert_eq!(whole.payloads("tool-result").len(), 1);
    assert_eq!(whole.types().last().unwrap(), "finish");
    assert_eq!(world.tools.calls().len(), 1);
}

#[tokio::test]
async fn a_server_that_dies_while_the_tool_runs_asks_whether_it_happened_and_runs_nothing_again() {
    let mut world = World::start().await;
    let (run, calls) = world.held("delete a.txt").await;
    world.tools.close();
    let request = world.request("POST", "/agents/file-agent/approve-tool-call").json(&deciding(&run, &calls[0]));
    let mut reading = Reading::begin(request).await;
    reading.until("tool-call").await;
    world.tools.wait_for_calls(1).await;
    world.kill_and_start().await;
    world.tools.open();

    let again = world.approve(&run, &calls[0]).await;
    assert_eq!(again.types(), ["tool-call", "tool-call-suspended"], "the approval counts, and nobody knows more");
    let doubt = &again.payloads("tool-call-suspended")[0];
    assert_eq!(doubt["suspendPayload"]["type"], json!("in_doubt"));
    let id = doubt["toolCallId"].as_str().unwrap();
    assert_ne!(id, calls[0], "an approval that is sent once more cannot answer this");
    assert_eq!(world.tools.calls().len(), 1);
    let wrong = world.approve(&run, id).await;
    assert_eq!(wrong.refusal(), (400, "invalid_resume_data".to_owned()));

    let body = json!({"runId": run, "toolCallId": id, "resumeData": {"outcome": "happened", "result": "it is gone"}});
    let settled = world.post("/agents/file-agent/resume-stream", body).await;
    assert_eq!(settled.payloads("tool-result")[0]["result"], json!("it is gone"));
    assert_eq!(settled.types().last().unwrap(), "finish");
    assert_eq!(world.tools.calls().len(), 1);
}

#[tokio::test]
async fn what_waits_is_found_and_approved_after_a_restart() {
    let mut world = World::start().await;
    let (run, calls) = world.held("delete a.txt").await;
    world.restart().await;
    let waiting = world.suspended().await;
    assert_eq!((&waiting["total"], &waiting["runs"][0]["runId"]), (&json!(1), &json!(run)));
    let resumed = world.approve(&run, &calls[0]).await;
    assert_eq!(resumed.types().last().unwrap(), "finish");
    assert_eq!(world.tools.calls().len(), 1);
    assert_eq!(world.suspended().await, json!({"runs": [], "total": 0}));
}

#[tokio::test]
async fn a_start_that_is_sent_again_under_the_same_run_id_starts_one_run() {
    let world = World::start().await;
    let body = json!({"messages": "delete a.txt", "runId": "fixed-run-1"});
    let starts = (0..5).map(|_| world.post("/agents/file-agent/stream", body.clone()));
    let answers = join_all(starts).await;
    let waiting = answers[0].waiting();
    for answer in &answers {
        assert_eq!((answer.run(), answer.waiting()), ("fixed-run-1".to_owned(), waiting.clone()));
        assert_eq!(answer.text(), "I will delete it. ");
    }
    assert_eq!(world.model.requests().len(), 1);
    let other = json!({"messages": "what time", "runId": "fixed-run-1"});
    let taken = world.post("/agents/file-agent/stream", other).await;
    assert_eq!(taken.refusal(), (409, "run_id_taken".to_owned()));
    let resumed = world.approve("fixed-run-1", &waiting[0]).await;
    assert_eq!((resumed.run().as_str(), world.tools.calls().len()), ("fixed-run-1", 1));
}
