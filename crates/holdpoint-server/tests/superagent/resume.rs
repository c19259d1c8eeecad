//! One winner, a refusal that is one, deadlines that hold, and forms with more than a yes.

use std::time::Duration;

use futures_util::future::join_all;
use holdpoint_runtime::worker::Worker;
use holdpoint_testkit::model_server::{Answer, Gate};
use serde_json::json;

use crate::world::{Reading, World, saying};

const ASKS: &str = "Please confirm: 1,234 records will be deleted.";

/// A session of the agent that waits for a confirmation.
async fn held(world: &World, session: &str) {
    world.model.push(Answer::text(ASKS));
    world.say("approval-agent", session, "delete them").await.interrupt();
}

#[tokio::test]
async fn of_fifty_resumes_at_once_one_streams_and_the_others_are_told_that_they_lost() {
    let world = World::start().await;
    held(&world, "s").await;
    world.model.push(Answer::text("Deleted."));
    let resumes = (0..50).map(|_| world.resume("approval-agent", "s", json!({"confirm": true})));
    let answers = join_all(resumes).await;
    let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
    assert_eq!((won.len(), lost.len()), (1, 49));
    assert_eq!(won[0].frames(), ["Deleted.", "[DONE]"]);
    for answer in lost {
        assert_eq!((answer.status, answer.code().as_str()), (409, "no_pending_interrupt"), "{}", answer.body);
        assert_eq!(answer.json()["reason"], json!("already_resumed"));
    }
    // Asked once for the question, and once for what followed.
    assert_eq!(world.model.requests().len(), 2);
    let again = world.resume("approval-agent", "s", json!({"confirm": true})).await;
    assert_eq!((again.status, again.code().as_str()), (409, "no_pending_interrupt"));
}

#[tokio::test]
async fn a_model_that_thinks_for_long_after_a_resume_is_asked_once() {
    let world = World::start().await;
    held(&world, "s").await;
    let gate = Gate::closed();
    world.model.push(Answer::tokens(["Del"]).and_gate(&gate).and_tokens(["eted."]));
    let body = json!({"agent_id": "approval-agent", "session_id": "s", "input": {"confirm": true}});
    let mut reading = Reading::begin(world.request("POST", "/api/v1/chat/resume").json(&body)).await;
    assert_eq!(reading.next().await.unwrap(), "Del");
    // Whoever looks for runs that nobody moves does not find this one.
    let app = world.running().app();
    let sweep = Worker::new(app.runtime().clone(), app.agents().clone()).sweep().await.unwrap();
    assert!(sweep.is_idle(), "{sweep:?}");
    gate.open();
    assert_eq!(reading.next().await.unwrap(), "eted.");
    assert_eq!(reading.next().await.unwrap(), "[DONE]");
    assert_eq!(world.model.requests().len(), 2);
}

#[tokio::test]
async fn a_yes_and_a_no_that_race_have_one_winner_and_the_model_hears_only_that_one() {
    let world = World::start().await;
    for round in 0..10 {
        let session = format!("s{round}");
        held(&world, &session).await;
        world.model.push(Answer::text("I see."));
        let (yes, no) = tokio::join!(
            world.resume("approval-agent", &session, json!({"confirm": true})),
            world.resume("approval-agent", &session, json!({"confirm": false})),
        );
        let mut statuses = [yes.status, no.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409]);
        let heard = world.model.last_request().last_user();
        assert_eq!(heard.starts_with("Not confirmed"), no.status == 200, "{heard}");
    }
}

#[tokio::test]
async fn a_no_reaches_the_model_as_a_refusal() {
    let world = World::start().await;
    held(&world, "s").await;
    world.model.push(Answer::text("I will not delete anything."));
    let answer = world.resume("approval-agent", "s", json!({"confirm": false})).await;
    assert_eq!(answer.said(), "I will not delete anything.");
    let asked = world.model.last_request();
    assert_eq!(asked.last_user(), "Not confirmed. Do not go on with it.");
    assert_eq!(asked.messages().iter().filter(|message| message["role"] == "assistant").count(), 1);
}

#[tokio::test]
async fn a_yes_reaches_the_model_and_the_conversation_goes_on() {
    let world = World::start().await;
    held(&world, "s").await;
    world.model.push(Answer::text("Deleted."));
    assert_eq!(world.resume("approval-agent", "s", json!({"confirm": true})).await.said(), "Deleted.");
    assert_eq!(world.model.last_request().last_user(), "Confirmed. Go on.");
    world.model.push(Answer::text("You are welcome."));
    assert_eq!(world.say("approval-agent", "s", "thanks").await.said(), "You are welcome.");
    let roles: Vec<String> = world
        .model
        .last_request()
        .messages()
        .iter()
        .map(|message| message["role"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "user", "assistant", "user"], "the session is remembered");
}

#[tokio::test]
async fn other_fields_reach_the_model_by_their_labels() {
    let world = World::start().await;
    world.model.push(Answer::text("Are you sure?"));
    let state = world.say("form-agent", "s", "mua").await.interrupt();
    assert_eq!(
        state["fields"],
        json!([
            {"name": "confirm", "type": "confirm", "label": "Xác nhận", "required": true},
            {"name": "region", "type": "select", "label": "Khu vực", "required": false, "options": ["eu", "us"]},
            {"name": "comment", "type": "text", "label": "Ghi chú", "required": false},
        ])
    );
    world.model.push(Answer::text("Done."));
    let input = json!({"confirm": true, "region": "eu", "comment": "after 18:00"});
    assert_eq!(world.resume("form-agent", "s", input).await.said(), "Done.");
    assert_eq!(world.model.last_request().last_user(), "Confirmed. Go on.\nKhu vực: eu\nGhi chú: after 18:00");
}

#[tokio::test]
async fn a_deadline_holds_across_a_restart() {
    let mut world = World::start().await;
    held(&world, "s").await;
    world.clock.advance(Duration::from_secs(299));
    world.restart().await;
    assert_eq!(world.state("approval-agent", "s").await["interrupted"], json!(true));
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(world.state("approval-agent", "s").await, json!({"interrupted": false}));
    let late = world.resume("approval-agent", "s", json!({"confirm": true})).await;
    assert_eq!((late.status, late.code().as_str()), (409, "no_pending_interrupt"));
    assert_eq!(late.json()["reason"], json!("expired"));
    assert_eq!(world.model.requests().len(), 1, "nothing went on");
    world.model.push(Answer::text("Hello again."));
    assert_eq!(world.say("approval-agent", "s", "hello?").await.said(), "Hello again.");
}

#[tokio::test]
async fn what_expired_while_no_server_ran_makes_room_for_the_next_message_at_once() {
    let mut world = World::start().await;
    held(&world, "s").await;
    world.clock.advance(Duration::from_secs(3_600));
    world.restart().await;
    world.model.push(Answer::text("Hello again."));
    assert_eq!(world.say("approval-agent", "s", "hello?").await.said(), "Hello again.");
}

#[tokio::test]
async fn a_session_that_waits_is_resumed_after_a_restart() {
    let mut world = World::start().await;
    held(&world, "s").await;
    let before = world.state("approval-agent", "s").await;
    world.restart().await;
    assert_eq!(world.state("approval-agent", "s").await, before);
    world.model.push(Answer::text("Deleted."));
    assert_eq!(world.resume("approval-agent", "s", json!({"confirm": true})).await.said(), "Deleted.");
}

#[tokio::test]
async fn what_waits_is_shown_and_answered_as_it_was_asked_whatever_became_of_the_file() {
    let mut world = World::start().await;
    world.model.push(Answer::text("Are you sure?"));
    let asked = world.say("form-agent", "changed", "mua").await.interrupt();
    world.model.push(Answer::text("Are you sure?"));
    world.say("form-agent", "gone", "mua").await.interrupt();

    let file = world.files.get_mut("agents/form.yaml").unwrap();
    *file = file.replace("comment", "note").replace("Bạn đặt lệnh.", "Bạn không đặt lệnh.");
    world.restart().await;
    assert_eq!(world.state("form-agent", "changed").await["state"], asked);
    world.model.push(Answer::text("Done."));
    let input = json!({"confirm": true, "comment": "as asked"});
    assert_eq!(world.resume("form-agent", "changed", input).await.said(), "Done.");
    assert_eq!(world.model.last_request().instructions(), "Bạn đặt lệnh.");

    world.files.remove("agents/form.yaml");
    world.files.remove("agents/desk.yaml");
    world.restart().await;
    world.model.push(Answer::text("Done."));
    assert_eq!(world.resume("form-agent", "gone", json!({"confirm": true})).await.said(), "Done.");
    let gone = world.say("form-agent", "gone", "mua").await;
    assert_eq!((gone.status, gone.code().as_str()), (404, "agent_not_found"));
}

#[tokio::test]
async fn a_message_into_a_session_that_waits_is_refused_and_says_which_key_to_decide() {
    let world = World::start().await;
    held(&world, "s").await;
    let refused = world.say("approval-agent", "s", "hello?").await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "interrupt_pending"));
    assert!(refused.json()["error"].as_str().unwrap().contains("s_1"), "{}", refused.body);
    // Another agent has a conversation of its own under the same name.
    world.model.push(Answer::text("Hi."));
    assert_eq!(world.say("plain-agent", "s", "hello?").await.said(), "Hi.");
    assert_eq!(world.state("approval-agent", "s").await["interrupted"], json!(true));
}

#[tokio::test]
async fn a_resume_that_names_what_it_was_shown_answers_nothing_else() {
    let world = World::start().await;
    held(&world, "s").await;
    let shown = world.state("approval-agent", "s").await["state"]["checkpoint_id"].clone();
    let body = |checkpoint: &serde_json::Value| json!({"agent_id": "approval-agent", "session_id": "s", "input": {"confirm": true}, "checkpoint_id": checkpoint});
    let stale = world.post("/api/v1/chat/resume", body(&json!("approval-agent_s_1"))).await;
    assert_eq!((stale.status, stale.json()["reason"].clone()), (409, json!("stale")));
    assert_eq!(world.state("approval-agent", "s").await["interrupted"], json!(true));
    world.model.push(Answer::text("Deleted."));
    assert_eq!(world.post("/api/v1/chat/resume", body(&shown)).await.said(), "Deleted.");
}

#[tokio::test]
async fn a_client_that_hangs_up_right_after_resuming_has_decided() {
    let world = World::start().await;
    held(&world, "s").await;
    let gate = Gate::closed();
    world.model.push(Answer::tokens(["Del"]).and_gate(&gate).and_tokens(["eted."]));
    let body = json!({"agent_id": "approval-agent", "session_id": "s", "input": {"confirm": true}});
    let reading = Reading::begin(world.request("POST", "/api/v1/chat/resume").json(&body)).await;
    drop(reading);
    gate.reached().await;
    assert_eq!(world.state("approval-agent", "s").await, json!({"interrupted": false}));
    gate.open();
    let said = run_ends(&world, "s").await;
    assert_eq!(said, "Deleted.");
}

#[tokio::test]
async fn a_client_that_hangs_up_while_a_run_is_under_way_changes_nothing() {
    let world = World::start().await;
    let gate = Gate::closed();
    world.model.push(Answer::tokens(["Please "]).and_gate(&gate).and_tokens(["confirm."]));
    let request = world.request("POST", "/api/v1/chat/stream").json(&saying("approval-agent", "s", "go"));
    let mut reading = Reading::begin(request).await;
    assert_eq!(reading.next().await.unwrap(), "Please ");
    drop(reading);
    let busy = world.say("approval-agent", "s", "hello?").await;
    assert_eq!((busy.status, busy.code().as_str()), (409, "run_in_progress"));
    gate.open();
    let mut watch = world.running().app().runtime().watch_session(&"s".parse().unwrap(), 1);
    loop {
        if let holdpoint_runtime::use_cases::WatchItem::Event { event, .. } = watch.next().await.unwrap()
            && event.name() == "pause.opened"
        {
            break;
        }
    }
    assert_eq!(world.state("approval-agent", "s").await["state"]["reason"], json!("Please confirm."));
}

/// Waits for the end of a session's run, and says what came of it.
async fn run_ends(world: &World, session: &str) -> String {
    use holdpoint_core::event::{RunEnd, RunEvent};
    let mut watch = world.running().app().runtime().watch_session(&session.parse().unwrap(), 1);
    loop {
        if let holdpoint_runtime::use_cases::WatchItem::Event { event: RunEvent::RunFinished(end), .. } =
            watch.next().await.unwrap()
        {
            match end {
                RunEnd::Done(content) => return content.to_text(),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn what_is_held_or_under_way_can_be_ended() {
    let world = World::start().await;
    assert_eq!(world.abort("approval-agent", "s").await, json!({"status": "no_active_loop"}));
    held(&world, "s").await;
    assert_eq!(world.abort("approval-agent", "s").await, json!({"status": "aborted"}));
    assert_eq!(world.abort("approval-agent", "s").await, json!({"status": "no_active_loop"}));
    assert_eq!(world.state("approval-agent", "s").await, json!({"interrupted": false}));
    let late = world.resume("approval-agent", "s", json!({"confirm": true})).await;
    assert_eq!((late.status, late.json()["reason"].clone()), (409, json!("none")));

    let gate = Gate::closed();
    world.model.push(Answer::tokens(["One "]).and_gate(&gate).and_tokens(["two"]));
    let request = world.request("POST", "/api/v1/chat/stream?a2ui=true").json(&saying("approval-agent", "s", "go"));
    let mut reading = Reading::begin(request).await;
    assert!(reading.next().await.unwrap().contains("One "));
    assert_eq!(world.abort("approval-agent", "s").await, json!({"status": "aborted"}));
    assert!(reading.next().await.unwrap().contains("\"code\":\"aborted\""));
    assert!(reading.next().await.unwrap().contains("\"type\":\"done\""));
    assert_eq!(reading.next().await, None);
    world.model.push(Answer::text("Hello."));
    assert_eq!(world.say("approval-agent", "s", "hello?").await.said(), "Hello.");
}
