//! Attacks that once succeeded: each is the shortest way in, and must stay shut.

use std::sync::Arc;
use std::time::Duration;

use crate::common::*;
use holdpoint::*;
use holdpoint_testkit::clock::TestClock;
use serde_json::json;
use tokio::sync::Notify;

fn clock() -> TestClock {
    TestClock::at(Timestamp::from_millis(1_794_735_000_000))
}

fn gated_named(name: &str, effects: &Effects) -> Tool {
    counted(name, effects).needs_approval(true).build().expect("a tool")
}

#[tokio::test]
async fn a_session_rule_that_another_run_used_up_lets_nothing_more_through_and_the_run_goes_on_asking() {
    let effects = Effects::default();
    let (a, b) = (agent("A", [gated(&effects)]), agent("B", [gated(&effects)]));
    let model = ScriptedModel::new([])
        .for_agent(
            "A",
            [
                Reply::calls([("delete", json!({"n": 1})), ("delete", json!({"n": 2}))]),
                Reply::call("delete", json!({"n": 3})),
                Reply::text("A done."),
            ],
        )
        .for_agent("B", [Reply::call("delete", json!({"n": 4})), Reply::text("B done.")]);
    let runner = Runner::in_memory(model);
    let paused = runner.run(&a, "go").session("shared").await.unwrap();
    let once = Always::in_session().any_agent().uses_max(1);
    runner.approve(&paused.pauses()[0]).always(once).await.unwrap();
    assert_eq!(text_of(&runner.run(&b, "go").session("shared").await.unwrap()), "B done.");
    runner.approve(&paused.pauses()[1]).await.unwrap();
    let again = runner.resume(&a, paused.run_id()).await.unwrap();
    assert_eq!(arguments(&again, 0), json!({"n": 3}), "the rule is spent, so somebody is asked");
    assert_eq!(effects.count(), 3);
}

#[tokio::test]
async fn an_always_that_makes_no_rule_is_not_acknowledged() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated_named("x", &effects), gated_named("y", &effects)]);
    let model = ScriptedModel::new([Reply::calls([("x", json!({})), ("y", json!({}))]), Reply::text("Done.")]);
    let runner = Runner::in_memory(model);
    let paused = runner.run(&agent, "go").await.unwrap();
    runner.approve(&paused.pauses()[0]).by("ana").always(Always::in_run()).await.unwrap();
    runner.approve(&paused.pauses()[1]).by("ana").await.unwrap();
    let refused = runner.approve(&paused.pauses()[1]).by("ana").always(Always::in_run()).await.unwrap_err();
    assert_eq!(refused.code(), "already_decided");
    assert_eq!(runner.read(paused.run_id()).await.unwrap().rules().len(), 1);
}

#[tokio::test]
async fn runs_that_cannot_go_on_do_not_starve_the_others() {
    let effects = Effects::default();
    let (unknown, known) = (agent("Unknown", [gated(&effects)]), agent("Known", [gated(&effects)]));
    let model = ScriptedModel::by(|request| match last_results(request).is_empty() {
        true => Reply::call("delete", json!({})),
        false => Reply::text("Done."),
    });
    let runner = Runner::in_memory(model);
    for _ in 0..3 {
        let paused = runner.run(&unknown, "go").await.unwrap();
        runner.approve(&paused.pauses()[0]).await.unwrap();
    }
    let paused = runner.run(&known, "go").await.unwrap();
    runner.approve(&paused.pauses()[0]).await.unwrap();
    let worker = runner.worker(std::slice::from_ref(&known)).unwrap().parallel_max(3);
    let first = worker.sweep().await.unwrap();
    assert_eq!((first.failed.len(), first.driven.len()), (3, 0));
    assert_eq!(worker.sweep().await.unwrap().driven, [paused.run_id()]);
}

#[tokio::test]
async fn a_state_that_used_another_runs_rule_goes_on_in_another_store() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated_named("x", &effects), gated_named("y", &effects)]);
    let model = ScriptedModel::by(|request| match (request.turn, last_said(request).as_str()) {
        (1, "one") => Reply::call("x", json!({})),
        (1, _) => Reply::calls([("x", json!({"n": 2})), ("y", json!({}))]),
        _ => Reply::text("Done."),
    });
    let runner = Runner::in_memory(model);
    let first = runner.run(&agent, "one").session("s").await.unwrap();
    runner.approve(&first.pauses()[0]).always(Always::in_session()).await.unwrap();
    runner.resume(&agent, first.run_id()).await.unwrap();
    let second = runner.run(&agent, "two").session("s").await.unwrap();
    assert_eq!(second.pauses().len(), 1, "x is settled by the rule");
    let mut state = runner.state(&agent, second.run_id()).await.unwrap();
    state.approve(&second.pauses()[0]).unwrap();
    let elsewhere = Runner::in_memory(ScriptedModel::by(|_| Reply::text("Done elsewhere.")));
    assert_eq!(text_of(&elsewhere.resume_state(&agent, state).await.unwrap()), "Done elsewhere.");
}

/// Replies to the second question only when it is told to.
struct Held {
    script: ScriptedModel,
    asked: Arc<Notify>,
    go_on: Arc<Notify>,
}

#[async_trait::async_trait]
impl Model for Held {
    async fn reply(&self, request: ModelRequest, deltas: DeltaSink) -> Result<ModelReply, ModelFault> {
        if request.turn > 1 {
            self.asked.notify_one();
            self.go_on.notified().await;
        }
        self.script.reply(request, deltas).await
    }

    fn name(&self) -> &str {
        "held"
    }
}

#[tokio::test]
async fn a_run_cancelled_from_elsewhere_while_an_outcome_waits_is_over_for_the_store_too() {
    let clock = clock();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.shared()));
    let agent = agent("Ops", [counted("look", &Effects::default()).build().unwrap()]);
    let script = ScriptedModel::new([Reply::call("look", json!({})), Reply::text("Done.")]);
    let (asked, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let model = Held { script: script.clone(), asked: asked.clone(), go_on: go_on.clone() };
    let build =
        |model: Arc<dyn Model>| Runner::builder().store(store.clone()).model(model).clock(clock.shared()).build();
    let (here, elsewhere) = (build(Arc::new(model)), build(Arc::new(script)));

    let mut stream = here.run(&agent, "go").session("s").stream();
    asked.notified().await;
    elsewhere.cancel(stream.run_id(), ActorId::local(), "stop").await.unwrap();
    // The outcome has waited long enough for company: it is written now, on top of the cancellation.
    clock.advance(Duration::from_millis(5));
    let ended = stream.completed().await.unwrap();
    assert!(matches!(ended, RunOutcome::Cancelled { .. }), "{ended:?}");
    assert!(store.claimable(10).await.unwrap().is_empty(), "nobody has to move a run that is over");
    go_on.notify_waiters();
    let next = elsewhere.run(&agent, "again").session("s").await.unwrap();
    assert_eq!(text_of(&next), "Done.");
}
