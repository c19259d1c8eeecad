//! Group I: an interrupted turn goes on. Partial decisions, the budget of turns, cancellation, streams, what is sent.

use std::sync::{Arc, Mutex};

use crate::common::*;
use holdpoint::*;
use serde_json::{Value, json};
use tokio::sync::Notify;

const USER: &str = "go";

fn delete(path: &str) -> Reply {
    Reply::call("delete", json!({ "path": path }))
}

fn deletes<const N: usize>(paths: [&str; N]) -> Reply {
    Reply::calls(paths.map(|path| ("delete", json!({ "path": path }))))
}

fn ran(path: &str) -> String {
    format!(r#"delete ran with {{"path":"{path}"}}"#)
}

fn texts(told: &[(String, String, bool)]) -> Vec<&str> {
    told.iter().map(|(_, text, _)| text.as_str()).collect()
}

/// The open pause of the call with this provider's id.
fn of_call(pauses: &[PauseView], id: &str) -> PauseView {
    let is_it = |pause: &&PauseView| pause.call.as_ref().is_some_and(|call| call.call_id == id);
    pauses.iter().find(is_it).unwrap_or_else(|| panic!("no pause of {id}: {pauses:?}")).clone()
}

async fn events(runner: &Runner, run: RunId) -> Vec<RunEvent> {
    let journal = runner.runtime().read_journal(run).await.unwrap();
    journal.iter().flat_map(|entry| entry.events.iter().cloned()).collect()
}

/// What the tools did, in the order in which they did it.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A tool that notes when it begins and when it ends, and lets others go first in between.
struct Noting(Log);

#[async_trait::async_trait]
impl RunTool for Noting {
    async fn run(&self, context: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        self.0.note(format!("{} begins", context.call_id));
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        self.0.note(format!("{} ends", context.call_id));
        Ok(format!("{} is done", context.call_id).into())
    }
}

fn noting(name: &str, shape: ToolShape, log: &Log) -> Tool {
    Tool::builder(name).shape(shape).needs_approval(true).runner(Noting(log.clone())).build().unwrap()
}

/// A tool that says when it has begun, and ends when somebody cancels the run.
struct UntilCancelled {
    begun: Arc<Notify>,
    effects: Effects,
}

#[async_trait::async_trait]
impl RunTool for UntilCancelled {
    async fn run(&self, context: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        self.effects.happen();
        self.begun.notify_one();
        context.cancelled.cancelled().await;
        Ok("stopped half way".into())
    }
}

fn until_cancelled(begun: &Arc<Notify>, effects: &Effects) -> ToolBuilder {
    let (begun, effects) = (begun.clone(), effects.clone());
    Tool::builder("slow").needs_approval(true).runner(UntilCancelled { begun, effects })
}

/// Approves everything, goes on, and cancels the run as soon as the slow tool has begun.
async fn cancel_in_the_middle(runner: &Runner, agent: &Agent, begun: &Notify) -> (RunOutcome, Run) {
    let outcome = runner.run(agent, USER).await.unwrap();
    for pause in outcome.pauses() {
        runner.approve(pause).await.unwrap();
    }
    let run = outcome.run_id();
    let (ended, cancelled) = tokio::join!(async { runner.resume(agent, run).await }, async {
        begun.notified().await;
        runner.cancel(run, ActorId::local(), "enough").await
    });
    cancelled.unwrap();
    (ended.unwrap(), runner.read(run).await.unwrap())
}

// Partial decisions.

#[tokio::test]
async fn a_gated_tool_stops_the_run_with_one_pause() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let runner = Runner::in_memory(ScriptedModel::new([delete("a"), Reply::text("done")]));
    let outcome = runner.run(&agent, USER).await.unwrap();
    assert!(outcome.is_paused());
    let [pause] = outcome.pauses() else { panic!("{outcome:?}") };
    assert_eq!((pause.pause.state.clone(), effects.count()), (PauseState::Open { expires_at: None }, 0));
    assert_eq!(runner.pause(pause.id()).await.unwrap(), *pause);
}

#[tokio::test]
async fn a_decided_pause_is_no_longer_asked_and_the_session_gets_each_result_once() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let runner = Runner::in_memory(ScriptedModel::new([delete("a"), Reply::text("done")]));
    let session = SessionId::new("s").unwrap();
    let outcome = runner.run(&agent, USER).session("s").await.unwrap();
    let paused = runner.session_items(&session, &agent).await.unwrap();
    assert_eq!((paused.len(), told(&paused).len()), (2, 0), "the message and the call, without an outcome");
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    assert_eq!(runner.read(outcome.run_id()).await.unwrap().open_pauses(), []);
    runner.resume(&agent, outcome.run_id()).await.unwrap();
    let items = runner.session_items(&session, &agent).await.unwrap();
    assert_eq!(items[..2], paused[..], "what was there stays as it was");
    assert_eq!(told(&items), [("call_1_0".to_owned(), ran("a"), false)]);
    assert_eq!(items.len(), 4);
}

#[tokio::test]
async fn what_was_settled_before_is_left_alone_by_every_later_resume() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let model = ScriptedModel::new([deletes(["a", "b"]), Reply::text("done")]);
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&agent, USER).await.unwrap();
    let (first, second) = (of_call(outcome.pauses(), "call_1_0"), of_call(outcome.pauses(), "call_1_1"));
    runner.approve(&first).await.unwrap();
    for _ in 0..3 {
        let outcome = runner.resume(&agent, outcome.run_id()).await.unwrap();
        assert_eq!((outcome.pauses(), effects.count(), model.calls()), (&[second.clone()][..], 1, 1));
    }
    runner.deny(&second).message("no").await.unwrap();
    let done = runner.resume(&agent, outcome.run_id()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(runner.resume(&agent, outcome.run_id()).await.unwrap(), done, "a finished run stays finished");
    }
    assert_eq!((effects.count(), model.calls()), (1, 2));
    assert_eq!(texts(&told(&model.requests()[1].items)), [ran("a").as_str(), "no"]);
}

#[tokio::test]
async fn a_session_shows_the_results_of_decided_calls_and_none_of_those_that_wait() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let runner = Runner::in_memory(ScriptedModel::new([deletes(["a", "b"]), Reply::text("done")]));
    let session = SessionId::new("s").unwrap();
    let outcome = runner.run(&agent, USER).session("s").await.unwrap();
    runner.approve(of_call(outcome.pauses(), "call_1_1")).await.unwrap();
    runner.resume(&agent, outcome.run_id()).await.unwrap();
    let results = told(&runner.session_items(&session, &agent).await.unwrap());
    assert_eq!(results, [("call_1_1".to_owned(), ran("b"), false)]);
    runner.approve(of_call(outcome.pauses(), "call_1_0")).await.unwrap();
    runner.resume(&agent, outcome.run_id()).await.unwrap();
    let results = told(&runner.session_items(&session, &agent).await.unwrap());
    // In the model's order, each once, whichever was decided first.
    assert_eq!(texts(&results), [ran("a"), ran("b")]);
}

#[tokio::test]
async fn calls_that_nobody_decided_stay_open_whatever_the_predicate_says_now() {
    let (effects, holds) = (Effects::default(), Arc::new(Mutex::new(true)));
    let now = holds.clone();
    let tool = counted("delete", &effects)
        .needs_approval_when(move |_, _| {
            let holds = *now.lock().unwrap();
            async move { holds }
        })
        .build()
        .unwrap();
    let agent = agent("Ops", [tool]);
    let runner = Runner::in_memory(ScriptedModel::new([deletes(["a", "b"]), Reply::text("done")]));
    let outcome = runner.run(&agent, USER).await.unwrap();
    *holds.lock().unwrap() = false;
    runner.approve(of_call(outcome.pauses(), "call_1_0")).await.unwrap();
    let resumed = runner.resume(&agent, outcome.run_id()).await.unwrap();
    assert_eq!((resumed.pauses(), effects.count()), (&[of_call(outcome.pauses(), "call_1_1")][..], 1));
}

#[tokio::test]
async fn decisions_spread_over_several_resumes_and_processes_run_each_call_once() {
    let model = ScriptedModel::new([deletes(["a", "b", "c"]), Reply::text("done")]);
    let effects = Effects::default();
    let build = || agent("Ops", [gated(&effects)]);
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&build(), USER).await.unwrap();
    let mut json = runner.state(&build(), outcome.run_id()).await.unwrap().to_json();
    for (count, id) in (1u32..).zip(["call_1_1", "call_1_2", "call_1_0"]) {
        let agent = build();
        let mut state = RunState::from_json(&agent, &json).unwrap();
        assert_eq!(state.pauses().len() as u32, 4 - count);
        let pause = of_call(&state.pauses(), id);
        state.approve(&pause).unwrap();
        let runner = Runner::in_memory(model.clone());
        let outcome = runner.resume_state(&agent, state).await.unwrap();
        assert_eq!((effects.count(), outcome.is_paused()), (count, count < 3));
        json = runner.state(&agent, outcome.run_id()).await.unwrap().to_json();
    }
    let last = model.requests().pop().unwrap();
    assert_eq!(
        (model.calls(), texts(&told(&last.items))),
        (2, ["a", "b", "c"].map(ran).iter().map(String::as_str).collect())
    );
}

#[tokio::test]
async fn one_call_id_in_two_agents_is_decided_twice() {
    let effects = Effects::default();
    let [left, right] = ["Left", "Right"].map(|name| agent(name, [gated(&effects)]));
    let outer =
        agent("Outer", [left.as_tool("left", "L.").build().unwrap(), right.as_tool("right", "R.").build().unwrap()]);
    let inner = || {
        |request: &ModelRequest| match told(&request.items).pop() {
            Some((_, text, _)) => Reply::text(text),
            None => Reply::empty().and_call_as("same", "delete", json!({"path": "a"})),
        }
    };
    let both = Reply::calls([("left", json!({"input": "x"})), ("right", json!({"input": "x"}))]);
    let model =
        ScriptedModel::new([both, Reply::text("done")]).for_agent_by("left", inner()).for_agent_by("right", inner());
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&outer, USER).await.unwrap();
    let of = |agent: &str| outcome.pauses().iter().find(|pause| pause.agent.as_str() == agent).unwrap();
    runner.approve(of("Outer/left")).await.unwrap();
    runner.deny(of("Outer/right")).message("not this one").await.unwrap();
    let done = runner.resume(&outer, outcome.run_id()).await.unwrap();
    assert_eq!((text_of(&done).as_str(), effects.count()), ("done", 1));
    let last = model.requests().pop().unwrap();
    assert_eq!(texts(&told(&last.items)), [ran("a").as_str(), "not this one"]);
}

// Shells and patches.

/// Runs these calls of a shell and a patch tool, approves them all in reverse order, goes on; says what was done.
async fn approved_in_reverse(calls: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let log = Log::default();
    let tools = [noting("shell", ToolShape::Shell, &log), noting("apply_patch", ToolShape::ApplyPatch, &log)];
    let agent = agent("Ops", tools);
    let reply = calls.iter().fold(Reply::empty(), |reply, (id, tool)| reply.and_call_as(*id, *tool, json!({"id": id})));
    let model = ScriptedModel::new([reply, Reply::text("done")]);
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&agent, USER).await.unwrap();
    assert_eq!((outcome.pauses().len(), log.lines().len()), (calls.len(), 0));
    for (id, _) in calls.iter().rev() {
        // By its own id alone: nothing of what the provider named it is needed.
        runner.approve(of_call(outcome.pauses(), id).id()).await.unwrap();
    }
    let done = runner.resume(&agent, outcome.run_id()).await.unwrap();
    assert_eq!(text_of(&done), "done");
    let results = told(&model.requests()[1].items).into_iter().map(|(_, text, _)| text).collect();
    (log.lines(), results)
}

#[tokio::test]
async fn an_approved_shell_call_runs_on_resume() {
    let (log, results) = approved_in_reverse(&[("sh", "shell")]).await;
    assert_eq!((log, results), (["sh begins", "sh ends"].map(str::to_owned).to_vec(), vec!["sh is done".to_owned()]));
}

#[tokio::test]
async fn an_approved_patch_runs_on_resume() {
    let (log, results) = approved_in_reverse(&[("ap", "apply_patch")]).await;
    assert_eq!((log, results), (["ap begins", "ap ends"].map(str::to_owned).to_vec(), vec!["ap is done".to_owned()]));
}

#[tokio::test]
async fn approved_patches_and_shells_run_one_after_the_other_in_the_models_order() {
    let calls = [("1", "apply_patch"), ("2", "shell"), ("3", "apply_patch"), ("4", "shell")];
    let (log, results) = approved_in_reverse(&calls).await;
    let in_order: Vec<String> =
        calls.iter().flat_map(|(id, _)| [format!("{id} begins"), format!("{id} ends")]).collect();
    assert_eq!(log, in_order);
    assert_eq!(results, calls.map(|(id, _)| format!("{id} is done")));
}

#[tokio::test]
async fn whatever_a_provider_names_its_calls_a_pause_is_found_by_its_own_id() {
    // Items of a response rather than calls; ids with anything in them; one id that looks like a pause.
    let odd = ["shi_0a1b", "ap item/7", "pau_0198c0ffee007000800000000000beef_1"];
    let (log, results) = approved_in_reverse(&[(odd[0], "shell"), (odd[1], "apply_patch"), (odd[2], "shell")]).await;
    assert_eq!(log.len(), 6);
    assert_eq!(results, odd.map(|id| format!("{id} is done")));
}

// What comes first, and what it costs.

#[tokio::test]
async fn an_approved_tool_runs_before_the_model_is_asked_again() {
    let model = ScriptedModel::new([delete("a"), Reply::text("done")]);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (seen, counter) = (asked.clone(), model.clone());
    let tool = Tool::builder("delete")
        .needs_approval(true)
        .function(move |_, _: std::collections::BTreeMap<String, String>| {
            seen.lock().unwrap().push(counter.calls());
            async { "gone" }
        })
        .unwrap();
    let agent = agent("Ops", [tool]);
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&agent, USER).await.unwrap();
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    runner.resume(&agent, outcome.run_id()).await.unwrap();
    assert_eq!((asked.lock().unwrap().as_slice(), model.calls()), (&[1][..], 2));
    assert_eq!(texts(&told(&model.requests()[1].items)), ["gone"]);
}

#[tokio::test]
async fn guardrails_that_passed_before_the_pause_look_again_on_resume() {
    let (effects, looks) = (Effects::default(), Effects::default());
    let counts = looks.clone();
    // It has nothing against the call at first; by the time that somebody approved, it has.
    let rail = ToolGuardrail::new("office hours", move |_, _| {
        let is_first = counts.happen() == 1;
        async move { if is_first { CallVerdict::Pass } else { CallVerdict::Reject("closed".to_owned()) } }
    });
    let agent = agent("Ops", [gated(&effects).rebuild().guardrail(rail).build().unwrap()]);
    let model = ScriptedModel::new([delete("a"), Reply::text("done")]);
    let runner = Runner::builder().model(Arc::new(model.clone())).guardrails_before_pause(true).build();
    let outcome = runner.run(&agent, USER).await.unwrap();
    assert_eq!((outcome.pauses().len(), looks.count()), (1, 1));
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    runner.resume(&agent, outcome.run_id()).await.unwrap();
    assert_eq!((looks.count(), effects.count()), (2, 0));
    assert_eq!(texts(&told(&model.requests()[1].items)), ["closed"]);
}

#[tokio::test]
async fn the_budget_of_model_calls_counts_across_resumes_and_processes() {
    let effects = Effects::default();
    let build = || agent("Ops", [gated(&effects)]);
    let model = ScriptedModel::new([delete("a"), delete("b"), Reply::text("never said")]);
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&build(), USER).turns_max(2).await.unwrap();
    let mut json = runner.state(&build(), outcome.run_id()).await.unwrap().to_json();
    let mut outcome = outcome;
    for _ in 0..2 {
        let agent = build();
        let mut state = RunState::from_json(&agent, &json).unwrap();
        let pause = state.pauses().remove(0);
        state.approve(&pause).unwrap();
        let runner = Runner::in_memory(model.clone());
        outcome = runner.resume_state(&agent, state).await.unwrap();
        json = runner.state(&agent, outcome.run_id()).await.unwrap().to_json();
    }
    assert!(matches!(&outcome, RunOutcome::Failed { code, .. } if code == "turns_exhausted"), "{outcome:?}");
    assert_eq!((effects.count(), model.calls()), (2, 2), "the approved calls still ran");
}

#[tokio::test]
async fn a_pause_costs_no_model_call() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let model = ScriptedModel::new([delete("a"), Reply::text("done")]);
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&agent, USER).turns_max(2).await.unwrap();
    // Nothing was decided, so there is nothing to do and nothing to pay for.
    for _ in 0..5 {
        assert_eq!(runner.resume(&agent, outcome.run_id()).await.unwrap(), outcome);
    }
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    let done = runner.resume(&agent, outcome.run_id()).await.unwrap();
    assert_eq!((text_of(&done).as_str(), model.calls(), effects.count()), ("done", 2, 1));
}

#[tokio::test]
async fn resuming_as_a_stream_costs_no_model_call_either() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let model = ScriptedModel::new([delete("a"), Reply::text("done")]);
    let runner = Runner::in_memory(model.clone());
    let mut stream = runner.run(&agent, USER).turns_max(2).stream();
    let outcome = stream.completed().await.unwrap();
    assert_eq!(stream.pauses(), outcome.pauses());
    for _ in 0..3 {
        let mut stream = runner.resume(&agent, outcome.run_id()).stream().await.unwrap();
        assert_eq!(stream.next().await, None, "nothing was decided, so nothing happens");
        assert_eq!(stream.completed().await.unwrap(), outcome);
    }
    runner.approve(&stream.pauses()[0]).await.unwrap();
    let done = runner.resume(&agent, outcome.run_id()).stream().await.unwrap().completed().await.unwrap();
    assert_eq!((text_of(&done).as_str(), model.calls(), effects.count()), ("done", 2, 1));
}

// Cancellation.

#[tokio::test]
async fn a_cancellation_reaches_an_approved_tool_and_what_it_did_is_written_down() {
    let (begun, effects) = (Arc::new(Notify::new()), Effects::default());
    let agent = agent("Ops", [until_cancelled(&begun, &effects).build().unwrap()]);
    let model = ScriptedModel::new([Reply::call("slow", json!({})), Reply::text("never said")]);
    let runner = Runner::in_memory(model.clone());
    let (ended, run) = cancel_in_the_middle(&runner, &agent, &begun).await;
    assert!(matches!(&ended, RunOutcome::Cancelled { reason, .. } if reason == "enough"), "{ended:?}");
    assert_eq!((texts(&told(&run.items())), effects.count(), model.calls()), (vec!["stopped half way"], 1, 1));
}

#[tokio::test]
async fn the_results_of_approved_siblings_are_kept_when_the_run_is_cancelled() {
    let (begun, slow, quick) = (Arc::new(Notify::new()), Effects::default(), Effects::default());
    let agent = agent("Ops", [gated(&quick), until_cancelled(&begun, &slow).build().unwrap()]);
    let reply = Reply::calls([("delete", json!({"path": "a"})), ("slow", json!({}))]);
    let runner = Runner::in_memory(ScriptedModel::new([reply, Reply::text("never said")]));
    let (ended, run) = cancel_in_the_middle(&runner, &agent, &begun).await;
    assert!(matches!(ended, RunOutcome::Cancelled { .. }), "{ended:?}");
    assert_eq!(texts(&told(&run.items())), [ran("a").as_str(), "stopped half way"]);
    let again = runner.resume(&agent, run.id()).await.unwrap();
    assert_eq!((again, quick.count(), slow.count()), (ended, 1, 1));
}

#[tokio::test]
async fn calls_that_had_not_started_when_the_run_was_cancelled_never_do() {
    let (begun, effects, log) = (Arc::new(Notify::new()), Effects::default(), Log::default());
    // Shells go one after the other, so the second has not started when the first is stopped.
    let slow = until_cancelled(&begun, &effects).shape(ToolShape::Shell).build().unwrap();
    let agent = agent("Ops", [slow, noting("shell", ToolShape::Shell, &log)]);
    let reply = Reply::calls([("slow", json!({})), ("shell", json!({}))]);
    let runner = Runner::in_memory(ScriptedModel::new([reply, Reply::text("never said")]));
    let (ended, run) = cancel_in_the_middle(&runner, &agent, &begun).await;
    assert!(matches!(ended, RunOutcome::Cancelled { .. }), "{ended:?}");
    let results = told(&run.items());
    assert_eq!(results[0].1, "stopped half way");
    assert!(results[1].1.contains("The call was withdrawn; it did not run."), "{results:?}");
    assert_eq!((effects.count(), log.lines()), (1, vec![]));
    runner.resume(&agent, run.id()).await.unwrap();
    assert_eq!((effects.count(), log.lines()), (1, vec![]));
}

#[tokio::test]
async fn a_tool_that_ends_after_the_cancellation_is_told_once_in_the_stream_and_in_the_journal() {
    let (begun, effects) = (Arc::new(Notify::new()), Effects::default());
    let agent = agent("Ops", [until_cancelled(&begun, &effects).build().unwrap()]);
    let runner = Runner::in_memory(ScriptedModel::new([Reply::call("slow", json!({})), Reply::text("never said")]));
    let outcome = runner.run(&agent, USER).await.unwrap();
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    let mut stream = runner.resume(&agent, outcome.run_id()).stream().await.unwrap();
    let mut names = Vec::new();
    while let Some(event) = stream.next().await {
        let StreamEvent::Event { event, .. } = event else { continue };
        if event.name() == "call.started" {
            runner.cancel(outcome.run_id(), ActorId::local(), "enough").await.unwrap();
        }
        names.push(event.name());
    }
    let ended = stream.completed().await.unwrap();
    assert!(matches!(ended, RunOutcome::Cancelled { .. }), "{ended:?}");
    // The tool may end before or after the run does; it is written down once, with what it gave.
    let answered = |events: &[RunEvent]| {
        let outcome = |event: &RunEvent| match event {
            RunEvent::CallAnswered(answered) => Some(answered.outcome.clone()),
            _ => None,
        };
        events.iter().filter_map(outcome).collect::<Vec<_>>()
    };
    assert_eq!(names, ["call.started", "run.finished", "call.answered"]);
    let journal = events(&runner, outcome.run_id()).await;
    assert_eq!(answered(&journal), [Outcome::Result("stopped half way".into())]);
    assert_eq!(effects.count(), 1);
}

// What a model is sent, and what a stream tells. We keep no conversation at the provider's: the model is shown the
// whole one each time, and the promise is that nothing stands in it twice and nothing is missing.

/// Every item of a request, in a few words.
fn shown(request: &ModelRequest) -> Vec<String> {
    let words = |item: &Arc<Item>| match &**item {
        Item::User(content) => format!("user: {}", content.to_text()),
        Item::Assistant { text, calls } => {
            let calls: Vec<&str> = calls.iter().map(|call| call.call_id.as_str()).collect();
            format!("model: {}{}", text.as_deref().unwrap_or_default(), calls.join(" "))
        }
        Item::ToolResult { call_id, output, .. } => format!("{call_id}: {}", output.to_text()),
    };
    request.items.iter().map(words).collect()
}

#[tokio::test]
async fn after_a_resume_the_model_is_shown_every_item_once() {
    for streamed in [false, true] {
        let effects = Effects::default();
        let agent = agent("Ops", [gated(&effects)]);
        let model = ScriptedModel::new([deletes(["a", "b"]), Reply::text("done")]);
        let runner = Runner::in_memory(model.clone());
        let outcome = runner.run(&agent, USER).session("s").await.unwrap();
        for pause in outcome.pauses() {
            runner.approve(pause).await.unwrap();
        }
        if streamed {
            runner.resume(&agent, outcome.run_id()).stream().await.unwrap().completed().await.unwrap();
        } else {
            runner.resume(&agent, outcome.run_id()).await.unwrap();
        }
        let expected = [
            "user: go".to_owned(),
            "model: call_1_0 call_1_1".to_owned(),
            format!("call_1_0: {}", ran("a")),
            format!("call_1_1: {}", ran("b")),
        ];
        assert_eq!(shown(&model.requests()[1]), expected, "streamed: {streamed}");
    }
}

#[tokio::test]
async fn a_later_run_of_the_session_is_shown_what_was_said_before_the_pause_once() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let model =
        ScriptedModel::new([delete("a"), Reply::text("done")]).when_asked("more", [Reply::text("nothing more")]);
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&agent, USER).session("s").await.unwrap();
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    runner.resume(&agent, outcome.run_id()).await.unwrap();
    runner.run(&agent, "more?").session("s").await.unwrap();
    let result = format!("call_1_0: {}", ran("a"));
    let expected = ["user: go", "model: call_1_0", &result, "model: done", "user: more?"];
    assert_eq!(shown(&model.requests()[2]), expected);
}

#[tokio::test]
async fn the_answer_to_a_call_of_an_unknown_tool_is_not_given_again_on_resume() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let reply = Reply::empty().and_call_as("gone", "no_such_tool", json!({})).and_call_as("held", "delete", json!({}));
    let model = ScriptedModel::new([reply, Reply::text("done")]);
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&agent, USER).await.unwrap();
    let before = told(&runner.read(outcome.run_id()).await.unwrap().items());
    let unknown = ("gone".to_owned(), r#"there is no tool named "no_such_tool""#.to_owned(), true);
    assert_eq!(before, std::slice::from_ref(&unknown));
    runner.resume(&agent, outcome.run_id()).await.unwrap();
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    runner.resume(&agent, outcome.run_id()).await.unwrap();
    let held = ("held".to_owned(), "delete ran with {}".to_owned(), false);
    assert_eq!(told(&model.requests()[1].items), [unknown, held]);
}

#[tokio::test]
async fn results_of_one_approval_are_not_given_again_at_the_next() {
    for streamed in [false, true] {
        let effects = Effects::default();
        let build = || agent("Ops", [gated(&effects)]);
        let model = ScriptedModel::new([delete("a"), delete("b"), Reply::text("done")]);
        let runner = Runner::in_memory(model.clone());
        let outcome = runner.run(&build(), USER).await.unwrap();
        let mut json = runner.state(&build(), outcome.run_id()).await.unwrap().to_json();
        for _ in 0..2 {
            let agent = build();
            let mut state = RunState::from_json(&agent, &json).unwrap();
            let pause = state.pauses().remove(0);
            state.approve(&pause).unwrap();
            let runner = Runner::in_memory(model.clone());
            let resume = runner.resume_state(&agent, state);
            let outcome =
                if streamed { resume.stream().await.unwrap().completed().await } else { resume.await }.unwrap();
            json = runner.state(&agent, outcome.run_id()).await.unwrap().to_json();
        }
        let expected = [
            "user: go".to_owned(),
            "model: call_1_0".to_owned(),
            format!("call_1_0: {}", ran("a")),
            "model: call_2_0".to_owned(),
            format!("call_2_0: {}", ran("b")),
        ];
        assert_eq!(shown(&model.requests()[2]), expected, "streamed: {streamed}");
        assert_eq!((effects.count(), model.calls()), (2, 3));
    }
}

#[tokio::test]
async fn resuming_without_a_decision_sends_and_writes_nothing() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let model = ScriptedModel::new([delete("a"), Reply::text("done")]);
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&agent, USER).session("s").await.unwrap();
    let journal = runner.runtime().read_journal(outcome.run_id()).await.unwrap();
    for _ in 0..4 {
        assert_eq!(runner.resume(&agent, outcome.run_id()).await.unwrap(), outcome);
    }
    assert_eq!(runner.runtime().read_journal(outcome.run_id()).await.unwrap(), journal);
    assert_eq!((model.calls(), effects.count()), (1, 0));
}

#[tokio::test]
async fn what_came_up_while_the_run_was_paused_is_sent_after_the_results() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let model = ScriptedModel::new([delete("a"), Reply::text("done")]);
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&agent, USER).await.unwrap();
    runner.stage_input(outcome.run_id(), "and hurry").await.unwrap();
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    runner.resume(&agent, outcome.run_id()).await.unwrap();
    let result = format!("call_1_0: {}", ran("a"));
    assert_eq!(shown(&model.requests()[1]), ["user: go", "model: call_1_0", &result, "user: and hurry"]);
}

#[tokio::test]
async fn a_hand_off_beside_a_held_call_takes_place_after_the_decision_and_is_told_once() {
    let effects = Effects::default();
    let other = agent("Other", []);
    let root = Agent::builder("Root").tool(gated(&effects)).handoff(&other).build().unwrap();
    let reply = Reply::calls([("transfer_to_other", json!({})), ("delete", json!({"path": "a"}))]);
    let model = ScriptedModel::new([reply]).for_agent("Other", [Reply::text("taken over")]);
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&root, USER).await.unwrap();
    assert_eq!((outcome.pauses().len(), model.calls()), (1, 1), "the held call is neither dropped nor overtaken");
    let json = runner.state(&root, outcome.run_id()).await.unwrap().to_json();
    let mut state = RunState::from_json(&root, &json).unwrap();
    let pause = state.pauses().remove(0);
    state.approve(&pause).unwrap();
    let done = Runner::in_memory(model.clone()).resume_state(&root, state).await.unwrap();
    assert_eq!((text_of(&done).as_str(), effects.count()), ("taken over", 1));
    let last = model.requests().pop().unwrap();
    assert_eq!(last.agent.as_str(), "Root/transfer_to_other");
    let result = format!("call_1_1: {}", ran("a"));
    let handed = "call_1_0: The conversation was handed over to Root/transfer_to_other.";
    assert_eq!(shown(&last), ["user: go", "model: call_1_0 call_1_1", handed, &result]);
}

#[tokio::test]
async fn a_resumed_stream_tells_only_what_is_new_and_its_numbers_go_on() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let runner = Runner::in_memory(ScriptedModel::new([delete("a"), Reply::text("done")]));
    let mut stream = runner.run(&agent, USER).session("s").stream();
    let mut last = 0;
    let mut names = Vec::new();
    while let Some(event) = stream.next().await {
        if let StreamEvent::Event { seq, event } = event {
            assert_eq!(seq, last + 1);
            last = seq;
            names.push(event.name());
        }
    }
    assert_eq!(names, ["run.started", "model.replied", "pause.opened"]);
    runner.approve(&stream.pauses()[0]).await.unwrap();
    let mut stream = runner.resume(&agent, stream.run_id()).stream().await.unwrap();
    let (mut names, mut words) = (Vec::new(), String::new());
    // The decision has a number too; it was made before this stream began.
    last += 1;
    while let Some(event) = stream.next().await {
        match event {
            StreamEvent::Event { seq, event } => {
                assert_eq!(seq, last + 1);
                last = seq;
                names.push(event.name());
            }
            StreamEvent::Delta { delta: Delta::Text(text), .. } => words += &text,
            StreamEvent::Delta { .. } => panic!("the first reply is not told again"),
        }
    }
    assert_eq!(names, ["call.started", "call.answered", "model.replied", "run.finished"]);
    assert_eq!((words.as_str(), effects.count()), ("done", 1));
}

#[tokio::test]
async fn the_runners_formatter_words_a_denial_on_a_streamed_resume() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let model = ScriptedModel::new([delete("a"), Reply::text("done")]);
    let formatter = DenialFormatter::new(|denial| async move { Ok(Some(format!("no {} today", denial.tool))) });
    let runner = Runner::builder().model(Arc::new(model.clone())).denial_formatter(formatter).build();
    let mut stream = runner.stream(&agent, USER);
    let outcome = stream.completed().await.unwrap();
    runner.deny(&outcome.pauses()[0]).await.unwrap();
    let mut stream = runner.resume(&agent, outcome.run_id()).stream().await.unwrap();
    let mut answered = Vec::new();
    while let Some(event) = stream.next().await {
        if let StreamEvent::Event { event: RunEvent::CallAnswered(call), .. } = event {
            answered.push(call.outcome);
        }
    }
    assert_eq!(answered, [Outcome::Denied("no delete today".to_owned())]);
    assert_eq!(texts(&told(&model.requests()[1].items)), ["no delete today"]);
    assert_eq!(effects.count(), 0);
}

// Screens. There a screen is set up at the start and disposed of at the end, and a pause lies in between. Here a tool is
// the application's own value: a pause holds on to nothing of it, and a resume needs nothing of the old one.

/// A screen that notes when it goes away.
struct Screen {
    effects: Effects,
    gone: Effects,
}

#[async_trait::async_trait]
impl RunTool for Screen {
    async fn run(&self, context: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        self.effects.happen();
        Ok(format!("attempt {}", context.attempt).into())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.gone.happen();
    }
}

fn screen(effects: &Effects, gone: &Effects) -> Agent {
    let runner = Screen { effects: effects.clone(), gone: gone.clone() };
    let tool = Tool::builder("computer").shape(ToolShape::Computer).needs_approval(true).runner(runner);
    agent("Ops", [tool.build().unwrap()])
}

fn click() -> ScriptedModel {
    let click: Value = json!({"actions": [{"type": "click", "x": 1, "y": 2}]});
    ScriptedModel::new([Reply::call("computer", click), Reply::text("done")])
}

#[tokio::test]
async fn a_screen_is_used_once_across_a_pause_and_stays_as_long_as_its_owner_wants() {
    let (effects, gone) = (Effects::default(), Effects::default());
    let agent = screen(&effects, &gone);
    let model = click();
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&agent, USER).await.unwrap();
    assert_eq!((effects.count(), gone.count()), (0, 0));
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    runner.resume(&agent, outcome.run_id()).await.unwrap();
    assert_eq!((effects.count(), gone.count()), (1, 0));
    assert_eq!(texts(&told(&model.requests()[1].items)), ["attempt 1"]);
}

#[tokio::test]
async fn a_pause_keeps_no_tool_alive_and_another_one_goes_on() {
    let (effects, gone) = (Effects::default(), Effects::default());
    let model = click();
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&screen(&effects, &gone), USER).await.unwrap();
    assert_eq!(gone.count(), 1, "while somebody thinks, nothing of the agent is held in memory");
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    let done = runner.resume(&screen(&effects, &gone), outcome.run_id()).await.unwrap();
    assert_eq!((text_of(&done).as_str(), effects.count()), ("done", 1));
    assert_eq!(texts(&told(&model.requests()[1].items)), ["attempt 1"]);
}

// Found on the way: what a caller was told bore other times than what was stored.

/// A clock on which every look costs a millisecond.
#[derive(Clone, Default)]
struct Ticking(Arc<std::sync::atomic::AtomicI64>);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_794_735_000_000 + self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst))
    }

    fn sleep(&self, duration: std::time::Duration) -> futures_util::future::BoxFuture<'static, ()> {
        SystemClock.sleep(duration)
    }
}

#[tokio::test]
async fn what_a_caller_is_told_of_a_run_is_what_is_stored_to_the_millisecond() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let model = ScriptedModel::new([deletes(["a", "b"]), Reply::text("done")]);
    let runner = Runner::builder().model(Arc::new(model)).clock(Arc::new(Ticking::default())).build();
    let outcome = runner.run(&agent, USER).await.unwrap();
    let run = outcome.run_id();
    assert_eq!(outcome.pauses(), runner.read(run).await.unwrap().open_pauses());
    let inbox = runner.list_pauses(&PauseFilter::open()).await.unwrap().pauses;
    let listed: Vec<Timestamp> = inbox.iter().map(|line| line.row.opened_at).collect();
    assert_eq!(listed, outcome.pauses().iter().map(|pause| pause.pause.opened_at).collect::<Vec<_>>());

    let decided = runner.approve(&outcome.pauses()[0]).by("ana").await.unwrap();
    assert_eq!(*decided.run, runner.read(run).await.unwrap());
    let resumed = runner.resume(&agent, run).await.unwrap();
    assert_eq!(resumed.pauses(), &outcome.pauses()[1..]);
    let cancelled = runner.cancel(run, ActorId::local(), "enough").await.unwrap();
    assert_eq!(cancelled, runner.read(run).await.unwrap());
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn an_agent_that_changed_before_the_hand_off_to_it_goes_on_as_it_was_or_not_at_all() {
    let effects = Effects::default();
    let build = |instructions: &str| {
        let other = Agent::builder("Other").instructions(instructions).tool(gated(&effects)).build().unwrap();
        Agent::builder("Root").tool(gated(&effects)).handoff(&other).build().unwrap()
    };
    let both = Reply::calls([("transfer_to_other", json!({})), ("delete", json!({"path": "a"}))]);
    let model = ScriptedModel::new([both]).for_agent("Other", [delete("b"), Reply::text("done")]);
    let (old, new) = (build("Be kind."), build("Be quick."));
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&old, USER).await.unwrap();
    let json = runner.state(&old, outcome.run_id()).await.unwrap().to_json();
    for (policy, expected) in [
        (DriftPolicy::Pinned, Ok("Be kind.")),
        (DriftPolicy::Accept, Ok("Be quick.")),
        (DriftPolicy::Refuse, Err("agent_changed")),
    ] {
        let mut state = RunState::from_json(&new, &json).unwrap();
        let pause = state.pauses().remove(0);
        state.approve(&pause).unwrap();
        let runner = Runner::in_memory(model.clone());
        let resumed = runner.resume_state(&new, state).drift(policy).await;
        let (outcome, instructions) = match (resumed, expected) {
            (Ok(outcome), Ok(instructions)) => (outcome, instructions),
            (Err(error), Err(code)) => {
                assert_eq!(error.code(), code, "{policy:?}");
                continue;
            }
            (resumed, _) => panic!("{policy:?}: {resumed:?}"),
        };
        assert_eq!(&*model.requests().pop().unwrap().instructions, instructions, "{policy:?}");
        // The other agent pauses in its turn, and a third process goes on from there.
        let json = runner.state(&new, outcome.run_id()).await.unwrap().to_json();
        let mut state = RunState::from_json(&new, &json).unwrap();
        let pause = state.pauses().remove(0);
        state.approve(&pause).unwrap();
        let done = Runner::in_memory(model.clone()).resume_state(&new, state).drift(policy).await.unwrap();
        assert_eq!(text_of(&done), "done", "{policy:?}");
        assert_eq!(&*model.requests().pop().unwrap().instructions, instructions, "{policy:?}");
    }
    assert_eq!(effects.count(), 4);
}
