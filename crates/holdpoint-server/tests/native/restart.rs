//! What was acknowledged is there after a restart, in good order or not, and goes on.

use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::ids::ActorId;
use holdpoint_core::message::Item;
use serde_json::json;

use crate::world::{World, first_pause, text};

#[tokio::test]
async fn a_pause_waits_through_a_restart_and_its_run_goes_on_after_a_decision() {
    let mut world = World::solo().await;
    let run = world.start("mailer", "ana").await;
    let pause = first_pause(&run);
    world.restart().await;
    let waiting = world.get(&format!("/api/v1/pauses/{pause}")).await.expect(200);
    assert_eq!(waiting, run["pauses"][0]);
    let decided = world.decide(&pause, json!({"decision": "approve"})).await.expect(200);
    assert_eq!(decided["run"]["output"], "outcome: sent");
    assert_eq!(world.effects.sent().len(), 1);
}

#[tokio::test]
async fn a_decision_that_was_acknowledged_survives_the_death_of_the_server() {
    let mut world = World::solo().await;
    let run = world.start("mailer", "ana and ben").await;
    let second = text(&run["pauses"][1], "id").to_owned();
    let path = format!("/api/v1/pauses/{}/decide", first_pause(&run));
    world.post(&path, json!({"decision": "deny", "message": "no"})).await.expect(200);
    world.kill_and_start().await;
    let read = world.get(&format!("/api/v1/runs/{}", text(&run, "run_id"))).await.expect(200);
    assert_eq!((&read["status"], read["pauses"].as_array().unwrap().len()), (&json!("paused"), 1));
    world.post(&path, json!({"decision": "approve"})).await.refuses(409, "already_decided");
    let decided = world.decide(&second, json!({"decision": "approve"})).await.expect(200);
    assert_eq!(decided["run"]["status"], "done");
    assert_eq!(world.effects.sent(), [r#"{"to":"ben"}"#]);
}

#[tokio::test]
async fn a_stop_lets_a_run_come_to_its_stop_point() {
    let mut world = World::solo().await;
    let run = world.start_sending().await;
    world.effects.open_gate();
    world.restart().await;
    let read = world.get(&format!("/api/v1/runs/{}", text(&run, "run_id"))).await.expect(200);
    assert_eq!((&read["status"], &read["output"]), (&json!("done"), &json!("outcome: sent")));
    assert_eq!(world.effects.sent().len(), 1);
}

#[tokio::test]
async fn a_stop_whose_time_runs_out_begins_nothing_more_and_cuts_off_no_tool() {
    let mut world = World::solo().await;
    let run = world.start_sending().await;
    let (runtime, effects) = (world.running().app().runtime().clone(), world.effects.clone());
    let ends_late = async {
        while !runtime.is_leaving() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        effects.open_gate();
    };
    tokio::join!(world.stop(), ends_late);
    let left = runtime.read_run(text(&run, "run_id").parse().unwrap()).await.unwrap();
    let has_result = left.items().iter().any(|item| matches!(&**item, Item::ToolResult { is_error: false, .. }));
    assert!(has_result && left.end().is_none(), "left after the tool, before the model: {:?}", left.items());
    world.serve_again().await;
    let path = format!("/api/v1/runs/{}?wait=60", text(&run, "run_id"));
    let read = world.get(&path).await.expect(200);
    assert_eq!((&read["status"], &read["output"]), (&json!("done"), &json!("outcome: sent")));
    assert_eq!(world.effects.sent().len(), 1);
}

#[tokio::test]
async fn a_start_that_is_stored_is_told_as_such_also_by_a_server_that_moves_nothing_more() {
    let mut world = World::solo().await;
    world.running().app().runtime().leave_runs();
    for _ in 0..30 {
        let start = json!({"agent_id": "talker", "input": "hello"});
        let started = world.post("/api/v1/runs", start).await.expect(201);
        assert_eq!(started["status"], "running");
    }
    world.restart().await;
    let runs = world.get("/api/v1/runs").await.expect(200)["runs"].as_array().unwrap().clone();
    assert_eq!(runs.len(), 30);
    for run in runs {
        let path = format!("/api/v1/runs/{}?wait=60", text(&run, "run_id"));
        assert_eq!(world.get(&path).await.expect(200)["output"], "you said hello");
    }
}

#[tokio::test]
async fn idempotency_keys_hold_across_a_restart() {
    let mut world = World::solo().await;
    let send = async |world: &World| {
        let request = world.request("POST", "/api/v1/runs?wait=30").header("idempotency-key", "k-1");
        crate::world::Answer::to(request.json(&json!({"agent_id": "mailer", "input": "ana"}))).await
    };
    let first = send(&world).await.expect(201);
    world.restart().await;
    assert_eq!(send(&world).await.expect(200), first);
}

#[tokio::test]
async fn a_run_that_takes_its_time_holds_up_no_other_that_the_worker_finds() {
    let world = World::solo().await;
    // Decided behind the server's back, so that only the worker can go on with them.
    let decide = async |pause: String| {
        let input = DecisionInput::new(pause.parse().unwrap(), Decision::Approve, ActorId::local());
        world.running().app().runtime().decide_pause(input).await.unwrap();
    };
    decide(first_pause(&world.start("doubter", "ana").await)).await;
    while world.effects.sent().is_empty() {
        tokio::task::yield_now().await;
    }
    let quick = world.start("mailer", "ben").await;
    decide(first_pause(&quick)).await;
    let done = world.get(&format!("/api/v1/runs/{}?wait=30", text(&quick, "run_id"))).await.expect(200);
    assert_eq!(done["output"], "outcome: sent");
}
