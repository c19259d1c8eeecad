//! Whoever watches a whole process: changes of pauses as they come, and what is counted and timed.
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::*;
use holdpoint::*;
use holdpoint_testkit::clock::TestClock;
use serde_json::json;

fn delete(path: &str) -> Reply {
    Reply::call("delete", json!({"path": path})).costing(Usage::request(100, 10))
}

fn change(news: &PauseNews) -> String {
    match news {
        PauseNews::Changed(change) => {
            let tool = change.tool.as_ref().map_or("-", |tool| tool.as_str());
            format!("{} {} {} {tool}", change.pause.number, change.change.name(), change.kind.name())
        }
        PauseNews::Missed(missed) => format!("missed {missed}"),
    }
}

#[tokio::test]
async fn whoever_watches_the_pauses_sees_them_open_and_end_in_all_sessions() {
    let clock = TestClock::default();
    let replies = [delete("a"), delete("b"), delete("c"), Reply::text("Done."), delete("d")];
    let runner = Runner::builder().model(Arc::new(ScriptedModel::new(replies))).clock(clock.shared());
    let runner = runner.pause_deadline(Duration::from_secs(60)).build();
    let agent = agent("Desk", [gated(&Effects::default())]);
    let mut watch = runner.runtime().watch_pauses();

    let outcome = runner.run(&agent, "go").session("s1").await.unwrap();
    let run = outcome.run_id();
    clock.advance(Duration::from_secs(5));
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    let outcome = runner.resume(&agent, run).await.unwrap();
    runner.deny(&outcome.pauses()[0]).await.unwrap();
    runner.resume(&agent, run).await.unwrap();
    clock.advance(Duration::from_secs(60));
    runner.runtime().expire_pauses(9).await.unwrap();
    runner.resume(&agent, run).await.unwrap();
    let outcome = runner.run(&agent, "go").session("s2").await.unwrap();
    runner.runtime().cancel_run(outcome.run_id(), ActorId::local(), "enough").await.unwrap();

    let mut seen = Vec::new();
    for _ in 0..8 {
        seen.push(watch.next().await.unwrap());
    }
    assert_eq!(
        seen.iter().map(change).collect::<Vec<_>>(),
        [
            "1 opened approval delete",
            "1 decided approval delete",
            "2 opened approval delete",
            "2 decided approval delete",
            "3 opened approval delete",
            "3 expired approval delete",
            "1 opened approval delete",
            "1 withdrawn approval delete",
        ]
    );
    let PauseNews::Changed(decided) = &seen[1] else { panic!("{:?}", seen[1]) };
    assert_eq!((decided.change, decided.waited()), (Change::Decided("approve"), Duration::from_secs(5)));
    let sessions =
        seen.iter().filter(|news| matches!(news, PauseNews::Changed(change) if change.session.as_str() == "s2"));
    assert_eq!(sessions.count(), 2);
}

#[tokio::test]
async fn a_watcher_that_is_too_slow_is_told_to_look_again() {
    let calls: Vec<_> = (0..100).map(|number| ("delete", json!({"path": number}))).collect();
    let model = ScriptedModel::by(move |_| Reply::calls(calls.clone()));
    let runner = Runner::in_memory(model);
    let agent = agent("Desk", [gated(&Effects::default())]);
    let mut watch = runner.runtime().watch_pauses();
    for _ in 0..12 {
        runner.run(&agent, "go").await.unwrap();
    }
    assert_eq!(watch.next().await, Some(PauseNews::Missed(176)));
    assert!(matches!(watch.next().await, Some(PauseNews::Changed(_))));
}

/// Writes down what it is told; panics where it is told to.
#[derive(Default)]
struct Ledger {
    lines: Mutex<Vec<String>>,
    panics: bool,
}

impl Ledger {
    fn note(&self, line: String) {
        self.lines.lock().unwrap().push(line);
        assert!(!self.panics, "the ledger is out of order");
    }
}

impl Observer for Ledger {
    fn committed(&self, committed: &Committed<'_>) {
        let names: Vec<&str> = committed.events.iter().map(RunEvent::name).collect();
        self.note(format!("committed {}: {}", committed.session, names.join(" ")));
    }

    fn pause_changed(&self, change: &PauseChange) {
        self.note(format!("pause {} {}", change.pause.number, change.change.name()));
    }

    fn model_called(&self, call: &ModelCalled<'_>) {
        let tokens = call.usage.map(|usage| usage.input_tokens);
        self.note(format!("model {} of {}: {tokens:?} after {:?}", call.model, call.agent, call.duration));
    }

    fn tool_ran(&self, call: &ToolRan<'_>) {
        let ended = if call.is_ok { "ok" } else { "failed" };
        self.note(format!("tool {} at {}: {ended} after {:?}", call.tool, call.call, call.duration));
    }
}

/// Takes three seconds, and fails where the path says so.
struct Slow;

#[async_trait::async_trait]
impl RunTool for Slow {
    async fn run(&self, _: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        tokio::time::sleep(Duration::from_secs(3)).await;
        match arguments.as_str().contains("bad") {
            true => Err(ToolFailure::new("no")),
            false => Ok("gone".into()),
        }
    }
}

async fn observed(ledger: Arc<Ledger>) {
    let model = ScriptedModel::new([delete("a"), delete("bad"), Reply::text("Done.")]);
    let runner = Runner::builder().model(Arc::new(model)).observer(ledger).build();
    let tool = Tool::builder("delete").description("Deletes.").schema(json!({"type": "object"})).needs_approval(true);
    let agent = agent("Desk", [tool.runner(Slow).build().unwrap()]);
    let mut outcome = runner.run(&agent, "go").session("till").await.unwrap();
    while let [pause] = outcome.pauses() {
        runner.approve(pause).await.unwrap();
        outcome = runner.resume(&agent, outcome.run_id()).await.unwrap();
    }
    assert_eq!(text_of(&outcome), "Done.");
}

#[tokio::test(start_paused = true)]
async fn an_observer_is_told_what_was_committed_and_how_long_things_took() {
    let ledger = Arc::new(Ledger::default());
    observed(ledger.clone()).await;
    assert_eq!(
        *ledger.lines.lock().unwrap(),
        [
            "model scripted of Desk: Some(100) after 0ns",
            "pause 1 opened",
            "committed till: run.started model.replied pause.opened",
            "pause 1 decided",
            "committed till: pause.decided",
            "committed till: call.started",
            "tool delete at 1.0: ok after 3s",
            "model scripted of Desk: Some(100) after 0ns",
            "pause 2 opened",
            "committed till: call.answered model.replied pause.opened",
            "pause 2 decided",
            "committed till: pause.decided",
            "committed till: call.started",
            "tool delete at 2.0: failed after 3s",
            "model scripted of Desk: Some(0) after 0ns",
            "committed till: call.answered model.replied run.finished",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_stops_nothing() {
    observed(Arc::new(Ledger { panics: true, ..Ledger::default() })).await;
}

#[tokio::test]
async fn whoever_watches_the_pauses_sees_those_of_a_run_that_is_brought_in() {
    let (runner, agent) =
        (Runner::in_memory(ScriptedModel::new([delete("a")])), agent("Desk", [gated(&Effects::default())]));
    let outcome = runner.run(&agent, "go").await.unwrap();
    let mut state = runner.state(&agent, outcome.run_id()).await.unwrap();
    state.deny_with(&outcome.pauses()[0], "no").unwrap();
    let elsewhere = Runner::in_memory(ScriptedModel::by(|_| Reply::text("Done.")));
    let mut watch = elsewhere.runtime().watch_pauses();
    elsewhere.resume_state(&agent, state).await.unwrap();
    let seen = [watch.next().await.unwrap(), watch.next().await.unwrap()];
    assert_eq!(seen.each_ref().map(change), ["1 opened approval delete", "1 decided approval delete"]);
}
