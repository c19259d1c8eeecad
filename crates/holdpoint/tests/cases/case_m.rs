//! Group M: what a session holds before, during and after a pause, and what output guardrails have to do with it.
use std::future::IntoFuture as _;
use std::sync::{Arc, Mutex};

use crate::common::*;
use holdpoint::*;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// A run can go on with or without somebody watching; what is written down must be the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Plain,
    Streamed,
}

const WAYS: [Way; 2] = [Way::Plain, Way::Streamed];

async fn go_on(way: Way, request: ResumeRequest) -> Result<RunOutcome, RunError> {
    match way {
        Way::Plain => request.await,
        Way::Streamed => request.stream().await?.completed().await,
    }
}

fn desk() -> SessionId {
    SessionId::new("desk").unwrap()
}

/// The session's items in short: `user: …`, `call: …`, `result: …`, `said: …`.
async fn told(runner: &Runner, agent: &Agent) -> Vec<String> {
    let items = runner.session_items(&desk(), agent).await.unwrap();
    let short = |item: &Arc<Item>| match &**item {
        Item::User(content) => vec![format!("user: {}", content.to_text())],
        Item::Assistant { text, calls } => {
            let calls = calls.iter().map(|call| format!("call: {} {}", call.tool, call.arguments));
            text.iter().map(|text| format!("said: {text}")).chain(calls).collect()
        }
        Item::ToolResult { output, .. } => vec![format!("result: {}", output.to_text())],
    };
    items.iter().flat_map(short).collect()
}

fn delete_once() -> ScriptedModel {
    ScriptedModel::new([Reply::call("delete", json!({"path": "a"})), Reply::text("Gone.")])
}

/// Runs to the pause in the session.
async fn paused(runner: &Runner, agent: &Agent) -> RunOutcome {
    let outcome = runner.run(agent, "go").session("desk").await.unwrap();
    assert!(outcome.is_paused(), "{outcome:?}");
    outcome
}

const ASKED: [&str; 2] = ["user: go", r#"call: delete {"path":"a"}"#];
const RAN: &str = r#"result: delete ran with {"path":"a"}"#;

/// An agent whose output is looked at; the guardrail counts, and trips on output with these words in it.
fn guarded(tools: impl IntoIterator<Item = Tool>, looks: &Effects, trips_on: &'static str, rule: FinishRule) -> Agent {
    let looks = looks.clone();
    let guardrail = OutputGuardrail::new("words", move |_, output| {
        looks.happen();
        async move {
            match output.to_text().contains(trips_on) {
                true => TextVerdict::Trip("not these words".to_owned()),
                false => TextVerdict::Pass,
            }
        }
    });
    let builder = Agent::builder("Ops").instructions("Do.").finish(rule).output_guardrail(guardrail);
    tools.into_iter().fold(builder, AgentBuilder::tool).build().unwrap()
}

#[tokio::test]
async fn three_turns_of_a_conversation_approved_restored_and_denied() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let model = ScriptedModel::by(|request| {
        let said = holdpoint_models::scripted::last_said(request);
        match request.turn {
            1 => Reply::call("delete", json!({"path": said})),
            _ => Reply::text(format!("{said} is settled.")),
        }
    });
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(SystemClock::shared()));
    let process = || Runner::builder().store(store.clone()).model(Arc::new(model.clone())).build();
    let run = |runner: Runner, path: &'static str| {
        let agent = agent.clone();
        async move { runner.run(&agent, path).session("desk").await.unwrap() }
    };

    // Approved.
    let runner = process();
    let first = run(runner.clone(), "a").await;
    assert_eq!(told(&runner, &agent).await.len(), 2, "the message and the call, without a result");
    runner.approve(&first.pauses()[0]).await.unwrap();
    assert_eq!(text_of(&runner.resume(&agent, first.run_id()).await.unwrap()), "a is settled.");
    assert_eq!((told(&runner, &agent).await.len(), effects.count()), (4, 1));

    // Restored in another process, from a document, then approved.
    let second = run(runner.clone(), "b").await;
    let json = runner.state(&agent, second.run_id()).await.unwrap().to_json();
    drop(runner);
    let runner = process();
    let mut state = RunState::from_json(&agent, &json).unwrap();
    state.approve(state.pauses()[0].id()).unwrap();
    assert_eq!(text_of(&runner.resume_state(&agent, state).await.unwrap()), "b is settled.");
    assert_eq!((told(&runner, &agent).await.len(), effects.count()), (8, 2));

    // Denied.
    let third = run(runner.clone(), "c").await;
    runner.deny(&third.pauses()[0]).message("keep c").await.unwrap();
    assert_eq!(text_of(&runner.resume(&agent, third.run_id()).await.unwrap()), "c is settled.");
    let told = told(&runner, &agent).await;
    assert_eq!((told.len(), effects.count()), (12, 2));
    assert_eq!(
        told[8..],
        ["user: c", r#"call: delete {"path":"c"}"#, "result: keep c", "said: c is settled."].map(str::to_owned)
    );
    // Each turn's model was shown the turns before, whole.
    let shown: Vec<usize> = model.requests().iter().map(|request| request.items.len()).collect();
    assert_eq!(shown, [1, 3, 5, 7, 9, 11]);
}

#[tokio::test]
async fn at_the_pause_the_session_holds_the_call_and_after_it_each_item_once() {
    for way in WAYS {
        let effects = Effects::default();
        let look = counted("look", &Effects::default()).build().unwrap();
        let agent = agent("Ops", [gated(&effects), look]);
        // The run goes on for two more turns after the approval.
        let more = [Reply::call("look", json!({"at": "b"})), Reply::text("Gone.")];
        let model = ScriptedModel::new([Reply::call("delete", json!({"path": "a"}))].into_iter().chain(more));
        let runner = Runner::in_memory(model.clone());
        let outcome = paused(&runner, &agent).await;
        assert_eq!(told(&runner, &agent).await, ASKED);
        runner.approve(&outcome.pauses()[0]).await.unwrap();
        assert_eq!(told(&runner, &agent).await, ASKED, "deciding writes no result");
        go_on(way, runner.resume(&agent, outcome.run_id())).await.unwrap();
        let rest = [RAN, r#"call: look {"at":"b"}"#, r#"result: look ran with {"at":"b"}"#, "said: Gone."];
        let whole: Vec<&str> = ASKED.into_iter().chain(rest).collect();
        assert_eq!(told(&runner, &agent).await, whole, "{way:?}");
        // Going on once more writes nothing.
        go_on(way, runner.resume(&agent, outcome.run_id())).await.unwrap();
        assert_eq!(told(&runner, &agent).await, whole);
        // A model is shown exactly what is written down.
        let shown = model.requests().pop().unwrap().items.len();
        assert_eq!(shown, 5);
        assert_eq!(effects.count(), 1);
    }
}

#[tokio::test]
async fn the_call_of_an_mcp_server_is_written_down_with_its_id_at_the_pause() {
    let shape = ToolShape::Mcp { server: ToolName::new("files").unwrap() };
    let delete = counted("delete", &Effects::default()).shape(shape).needs_approval(true).build().unwrap();
    let agent = agent("Ops", [delete]);
    let model = ScriptedModel::new([Reply::empty().and_call_as("mcpr_1", "delete", json!({"path": "a"}))]);
    let runner = Runner::in_memory(model);
    let outcome = paused(&runner, &agent).await;
    let items = runner.session_items(&desk(), &agent).await.unwrap();
    let Item::Assistant { calls, .. } = &*items[1] else { panic!("{items:?}") };
    assert_eq!((calls[0].call_id.as_str(), calls[0].tool.as_str()), ("mcpr_1", "delete"));
    let call = runner.read(outcome.run_id()).await.unwrap();
    let call = call.call(&outcome.pauses()[0].call.as_ref().unwrap().path).unwrap().record.clone();
    assert_eq!(call.kind, ToolKind::Mcp { server: ToolName::new("files").unwrap() });
}

#[tokio::test]
async fn the_result_is_written_when_the_turn_goes_on_also_where_the_held_call_was_not_the_last() {
    for way in WAYS {
        let effects = Effects::default();
        let look = counted("look", &effects).build().unwrap();
        let agent = agent("Ops", [gated(&effects), look]);
        let calls = Reply::calls([("delete", json!({"path": "a"})), ("look", json!({})), ("look", json!({"n": 2}))]);
        let runner = Runner::in_memory(ScriptedModel::new([calls, Reply::text("Gone.")]));
        let outcome = paused(&runner, &agent).await;
        assert_eq!(effects.count(), 2, "what needs no approval has run");
        let looked = ["result: look ran with {}", r#"result: look ran with {"n":2}"#];
        assert_eq!(told(&runner, &agent).await[4..], looked);
        runner.approve(&outcome.pauses()[0]).await.unwrap();
        go_on(way, runner.resume(&agent, outcome.run_id())).await.unwrap();
        assert_eq!(told(&runner, &agent).await[4..], [RAN, looked[0], looked[1], "said: Gone."], "the model's order");
        assert_eq!(effects.count(), 3);
    }
}

#[tokio::test]
async fn a_call_that_was_written_down_is_closed_after_a_denial() {
    for way in WAYS {
        // As words for the model, and where the denial itself ends the run.
        for (rule, said) in [(FinishRule::ModelText, Some("said: Gone.")), (FinishRule::FirstToolResult, None)] {
            let (effects, looks) = (Effects::default(), Effects::default());
            let agent = guarded([gated(&effects)], &looks, "never", rule);
            let runner = Runner::in_memory(delete_once());
            let outcome = paused(&runner, &agent).await;
            runner.deny(&outcome.pauses()[0]).message("no").await.unwrap();
            let done = go_on(way, runner.resume(&agent, outcome.run_id())).await.unwrap();
            assert_eq!(text_of(&done), said.map_or("no", |_| "Gone."));
            let whole: Vec<&str> = ASKED.into_iter().chain(["result: no"]).chain(said).collect();
            assert_eq!(told(&runner, &agent).await, whole, "{way:?}");
            assert_eq!((effects.count(), looks.count()), (0, 1));
            // The conversation goes on without an open call.
            runner.run(&agent, "and now?").session("desk").await.unwrap();
        }
    }
}

// There, sessions are objects that are handed the context. Here the store keeps the session, and the context reaches
// what the application wrote: predicate, guardrails and tool.
#[tokio::test]
async fn the_stored_context_is_there_again_for_everything_that_runs_on_resume() {
    let seen: Arc<Mutex<Vec<(&str, Value)>>> = Arc::default();
    let note = |what: &'static str| {
        let seen = seen.clone();
        move |context: &Context| seen.lock().unwrap().push((what, context.data().clone()))
    };
    let (tool, guardrail, predicate, output) = (note("tool"), note("guardrail"), note("predicate"), note("output"));
    let delete = Tool::builder("delete")
        .guardrail(ToolGuardrail::new("look", move |context, _| {
            guardrail(&context.context);
            async { CallVerdict::Pass }
        }))
        .needs_approval_when(move |context, _| {
            predicate(&context.context);
            async { true }
        })
        .function(move |context, _: Value| {
            tool(&context.context);
            async { "deleted" }
        });
    let agent = Agent::builder("Ops").tool(delete.unwrap()).output_guardrail(OutputGuardrail::new("out", {
        move |context, _| {
            output(&context);
            async { TextVerdict::Pass }
        }
    }));
    let agent = agent.build().unwrap();
    let model = delete_once();
    let runner = Runner::in_memory(model.clone());
    let stored = Context::new(&json!({"tenant": 7})).unwrap().with_secret("token", "s3cret");
    let outcome = runner.run(&agent, "go").session("desk").context(stored).await.unwrap();
    let json = runner.state(&agent, outcome.run_id()).await.unwrap().to_json();
    assert!(!json.contains("s3cret"));
    let mut state = RunState::from_json(&agent, &json).unwrap();
    state.approve(&outcome.pauses()[0]).unwrap();
    let elsewhere = Runner::in_memory(model);
    elsewhere.resume_state(&agent, state).await.unwrap();
    let data = json!({"tenant": 7});
    let expected = ["predicate", "guardrail", "tool", "output"].map(|what| (what, data.clone()));
    assert_eq!(*seen.lock().unwrap(), expected);
    // The session travelled too.
    assert_eq!(told(&elsewhere, &agent).await.len(), 4);
}

// There, a result whose run was cancelled before its guardrails spoke is not kept. Here what a tool did is never
// forgotten; what a cancelled run does not have is an output.
#[tokio::test]
async fn a_cancelled_run_keeps_what_its_tool_did_and_gives_nothing_out() {
    for rule in [FinishRule::ModelText, FinishRule::FirstToolResult] {
        let (effects, looks) = (Effects::default(), Effects::default());
        let running = Arc::new(Notify::new());
        let (count, runs) = (effects.clone(), running.clone());
        let delete = Tool::builder("delete").needs_approval(true).function(move |context, _: Value| {
            let (count, runs) = (count.clone(), runs.clone());
            async move {
                count.happen();
                runs.notify_one();
                context.cancelled.cancelled().await;
                "deleted half of it"
            }
        });
        let agent = guarded([delete.unwrap()], &looks, "never", rule);
        let runner = Runner::in_memory(delete_once());
        let outcome = paused(&runner, &agent).await;
        runner.approve(&outcome.pauses()[0]).await.unwrap();
        let driving = tokio::spawn(runner.resume(&agent, outcome.run_id()).into_future());
        running.notified().await;
        runner.cancel(outcome.run_id(), ActorId::local(), "stop").await.unwrap();
        let ended = driving.await.unwrap().unwrap();
        assert!(matches!(ended, RunOutcome::Cancelled { .. }), "{ended:?}");
        assert_eq!(told(&runner, &agent).await[2..], ["result: deleted half of it"]);
        assert_eq!(runner.resume(&agent, outcome.run_id()).await.unwrap(), ended);
        assert_eq!((effects.count(), looks.count()), (1, 0));
    }
}

#[tokio::test]
async fn an_approved_result_is_written_once_whether_or_not_the_output_guardrail_trips() {
    for way in WAYS {
        for trips_on in ["never", "Gone"] {
            let (effects, looks) = (Effects::default(), Effects::default());
            let agent = guarded([gated(&effects)], &looks, trips_on, FinishRule::ModelText);
            let runner = Runner::in_memory(delete_once());
            let outcome = paused(&runner, &agent).await;
            assert_eq!((told(&runner, &agent).await, looks.count()), (ASKED.map(str::to_owned).to_vec(), 0));
            runner.approve(&outcome.pauses()[0]).await.unwrap();
            let ended = go_on(way, runner.resume(&agent, outcome.run_id())).await.unwrap();
            match (&ended, trips_on) {
                (RunOutcome::Done(_), "never") => {}
                (RunOutcome::Failed { code, .. }, "Gone") if code == "guardrail_tripped" => {}
                _ => panic!("{way:?} {trips_on}: {ended:?}"),
            }
            let told = told(&runner, &agent).await;
            assert_eq!(told[..2], ASKED);
            assert_eq!(told.iter().filter(|told| *told == RAN).count(), 1, "{told:?}");
            assert_eq!((effects.count(), looks.count()), (1, 1));
            // Resuming what is over neither runs nor writes nor looks.
            assert_eq!(go_on(way, runner.resume(&agent, outcome.run_id())).await.unwrap(), ended);
            assert_eq!((effects.count(), looks.count()), (1, 1));
        }
    }
}

#[tokio::test]
async fn the_result_of_a_nested_approved_call_is_written_once() {
    for way in WAYS {
        let effects = Effects::default();
        let inner = agent("Inner", [gated(&effects)]);
        let outer = agent("Outer", [inner.as_tool("ask_inner", "Asks.").build().unwrap()]);
        let model = ScriptedModel::new([Reply::call("ask_inner", json!({"input": "x"})), Reply::text("outer")])
            .for_agent("ask_inner", [Reply::call("delete", json!({"path": "a"})), Reply::text("inner")]);
        let runner = Runner::in_memory(model);
        let outcome = paused(&runner, &outer).await;
        let asked = ["user: go", r#"call: ask_inner {"input":"x"}"#];
        assert_eq!(told(&runner, &outer).await, asked);
        runner.approve(&outcome.pauses()[0]).await.unwrap();
        go_on(way, runner.resume(&outer, outcome.run_id())).await.unwrap();
        // The outer conversation has the inner agent's output; the inner call is in the journal, once.
        assert_eq!(told(&runner, &outer).await[2..], ["result: inner", "said: outer"], "{way:?}");
        let inner_call = outcome.pauses()[0].call.as_ref().unwrap().path.clone();
        assert_eq!(answers(&runner, outcome.run_id(), &inner_call).await, [RAN.replace("result: ", "")]);
        assert_eq!(effects.count(), 1);
    }
}

/// What was written down as the outcome of a call, each time that it was.
async fn answers(runner: &Runner, run: RunId, call: &CallPath) -> Vec<String> {
    let journal = runner.runtime().read_journal(run).await.unwrap();
    let outcome = |event: &RunEvent| match event {
        RunEvent::CallAnswered(answered) if answered.call == *call => Some(answered.outcome.clone()),
        _ => None,
    };
    let outcomes = journal.iter().flat_map(|entry| entry.events.iter()).filter_map(outcome);
    outcomes.map(|outcome| outcome.to_output(&ToolKind::Function).to_text()).collect()
}

#[tokio::test]
async fn equal_ids_of_nested_calls_belong_to_their_own_agent() {
    for way in WAYS {
        let effects = Effects::default();
        let inner = agent("Inner", [gated(&effects)]);
        let outer = agent("Outer", [inner.as_tool("ask_inner", "Asks.").build().unwrap(), gated(&effects)]);
        let calls = Reply::calls([("ask_inner", json!({"input": "x"})), ("ask_inner", json!({"input": "y"}))]);
        let calls = calls.and_call_as("call_0", "delete", json!({"path": "a"}));
        let model =
            ScriptedModel::new([calls, Reply::text("outer")]).for_agent_by("ask_inner", |request| match request.turn {
                1 => Reply::empty().and_call_as("call_0", "delete", json!({"path": "a"})),
                _ => Reply::text(format!("inner {}", holdpoint_models::scripted::last_results(request)[0].1)),
            });
        let runner = Runner::in_memory(model);
        let outcome = paused(&runner, &outer).await;
        assert_eq!(outcome.pauses().len(), 3);
        // By where they stand: the outer one, then the inner ones.
        let mut pauses = outcome.pauses().to_vec();
        pauses.sort_by_key(|pause| pause.call.as_ref().unwrap().path.clone());
        assert_eq!(pauses[2].agent.as_str(), "Outer");
        runner.deny(&pauses[0]).message("not x").await.unwrap();
        runner.respond(&pauses[1], "y by hand").await.unwrap();
        runner.approve(&pauses[2]).await.unwrap();
        go_on(way, runner.resume(&outer, outcome.run_id())).await.unwrap();
        let told = told(&runner, &outer).await;
        assert_eq!(told[4..], ["result: inner not x", "result: inner y by hand", RAN, "said: outer"], "{way:?}");
        assert_eq!(effects.count(), 1);
    }
}

#[tokio::test]
async fn whoever_goes_on_writes_into_the_session_that_the_run_began_in() {
    for way in WAYS {
        let (effects, looks) = (Effects::default(), Effects::default());
        // The approved tool's result is the output.
        let agent = guarded([gated(&effects)], &looks, "never", FinishRule::FirstToolResult);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(SystemClock::shared()));
        let process = || Runner::builder().store(store.clone()).model(Arc::new(delete_once())).build();
        let outcome = paused(&process(), &agent).await;
        let runner = process();
        runner.approve(&outcome.pauses()[0]).await.unwrap();
        // The session is not named again: the run knows it.
        let done = go_on(way, process().resume(&agent, outcome.run_id())).await.unwrap();
        assert_eq!(text_of(&done), r#"delete ran with {"path":"a"}"#);
        assert_eq!(told(&runner, &agent).await, [ASKED[0], ASKED[1], RAN], "{way:?}");
        assert_eq!((effects.count(), looks.count()), (1, 1));
    }
}

#[tokio::test]
async fn nothing_is_written_twice_where_the_model_was_away_after_the_approved_tool() {
    for way in WAYS {
        let effects = Effects::default();
        let agent = agent("Ops", [gated(&effects)]);
        let gone = Reply::text("Gone.").after_faults(2, "away");
        let runner = Runner::in_memory(ScriptedModel::new([Reply::call("delete", json!({"path": "a"})), gone]));
        let outcome = paused(&runner, &agent).await;
        runner.approve(&outcome.pauses()[0]).await.unwrap();
        for _ in 0..2 {
            let fault = go_on(way, runner.resume(&agent, outcome.run_id())).await.unwrap_err();
            assert_eq!(fault.code(), "model_unavailable");
            assert_eq!(told(&runner, &agent).await, [ASKED[0], ASKED[1], RAN]);
        }
        go_on(way, runner.resume(&agent, outcome.run_id())).await.unwrap();
        assert_eq!(told(&runner, &agent).await, [ASKED[0], ASKED[1], RAN, "said: Gone."], "{way:?}");
        assert_eq!(effects.count(), 1);
    }
}

#[tokio::test]
async fn a_sibling_that_completed_is_kept_through_the_pause_and_not_rerun() {
    for way in WAYS {
        for is_restored in [false, true] {
            let (effects, looked, looks) = (Effects::default(), Effects::default(), Effects::default());
            let look = counted("look", &looked).build().unwrap();
            let agent = guarded([look, gated(&effects)], &looks, "never", FinishRule::ModelText);
            let calls = Reply::calls([("look", json!({})), ("delete", json!({"path": "a"}))]);
            let model = ScriptedModel::new([calls, Reply::text("Gone.")]);
            let runner = Runner::in_memory(model.clone());
            let outcome = paused(&runner, &agent).await;
            let at_pause = told(&runner, &agent).await;
            assert_eq!(at_pause[3], "result: look ran with {}");
            let (runner, request) = match is_restored {
                false => {
                    runner.approve(&outcome.pauses()[0]).await.unwrap();
                    (runner.clone(), runner.resume(&agent, outcome.run_id()))
                }
                true => {
                    let json = runner.state(&agent, outcome.run_id()).await.unwrap().to_json();
                    let mut state = RunState::from_json(&agent, &json).unwrap();
                    state.approve(&outcome.pauses()[0]).unwrap();
                    let elsewhere = Runner::in_memory(model.clone());
                    (elsewhere.clone(), elsewhere.resume_state(&agent, state))
                }
            };
            go_on(way, request).await.unwrap();
            let whole: Vec<String> = at_pause.into_iter().chain([RAN.to_owned(), "said: Gone.".to_owned()]).collect();
            assert_eq!(told(&runner, &agent).await, whole, "{way:?} {is_restored}");
            assert_eq!((looked.count(), effects.count(), looks.count()), (1, 1, 1));
        }
    }
}

#[tokio::test]
async fn a_turn_that_is_only_a_held_call_goes_on_after_a_turn_with_results() {
    for way in WAYS {
        let (effects, looks) = (Effects::default(), Effects::default());
        let look = counted("look", &effects).build().unwrap();
        let agent = guarded([look, gated(&effects)], &looks, "never", FinishRule::ModelText);
        let turns = [Reply::call("look", json!({})), Reply::call("delete", json!({"path": "a"})), Reply::text("Gone.")];
        let runner = Runner::in_memory(ScriptedModel::new(turns));
        let outcome = paused(&runner, &agent).await;
        runner.approve(&outcome.pauses()[0]).await.unwrap();
        go_on(way, runner.resume(&agent, outcome.run_id())).await.unwrap();
        let expected = ["call: look {}", "result: look ran with {}", ASKED[1], RAN, "said: Gone."];
        assert_eq!(told(&runner, &agent).await[1..], expected, "{way:?}");
        assert_eq!((effects.count(), looks.count()), (2, 1));
    }
}

// There, an old snapshot of a partial approval is refused because its format cannot prove what ran. Here an old copy is
// refused because the store knows that the run has moved on.
#[tokio::test]
async fn an_old_copy_of_a_partly_approved_run_is_refused_before_anything_runs() {
    for way in WAYS {
        let effects = Effects::default();
        let agent = agent("Ops", [gated(&effects)]);
        let calls = Reply::calls([("delete", json!({"n": 1})), ("delete", json!({"n": 2}))]);
        let runner = Runner::in_memory(ScriptedModel::new([calls, Reply::text("Gone.")]));
        let outcome = paused(&runner, &agent).await;
        let mut state = runner.state(&agent, outcome.run_id()).await.unwrap();
        state.approve(&outcome.pauses()[0]).unwrap();
        let copy = state.to_json();
        let still = runner.resume_state(&agent, state).await.unwrap();
        assert_eq!((still.pauses().len(), effects.count()), (1, 1));
        let mut old = RunState::from_json(&agent, &copy).unwrap();
        old.approve(&outcome.pauses()[1]).unwrap();
        let before = told(&runner, &agent).await;
        let refused = go_on(way, runner.resume_state(&agent, old)).await.unwrap_err();
        assert_eq!(refused.code(), "state_stale", "{way:?}");
        assert_eq!((told(&runner, &agent).await, effects.count()), (before, 1));
        runner.approve(&still.pauses()[0]).await.unwrap();
        go_on(way, runner.resume(&agent, outcome.run_id())).await.unwrap();
        assert_eq!(effects.count(), 2);
    }
}

#[tokio::test]
async fn a_partly_decided_turn_is_given_out_only_after_the_output_guardrail_spoke() {
    let answers: [fn(&Runner, &PauseView) -> DecideRequest; 3] = [
        |runner, pause| runner.approve(pause),
        |runner, pause| runner.deny(pause).message("no"),
        |runner, pause| runner.respond(pause, "by hand"),
    ];
    let ran = [1, 0, 0];
    for way in WAYS {
        for is_restored in [false, true] {
            for (answer, ran) in answers.iter().zip(ran) {
                for trips_on in ["never", "Gone"] {
                    let (effects, looks) = (Effects::default(), Effects::default());
                    let agent = guarded([gated(&effects)], &looks, trips_on, FinishRule::ModelText);
                    let calls = Reply::calls([("delete", json!({"n": 1})), ("delete", json!({"n": 2}))]);
                    let model = ScriptedModel::new([calls, Reply::text("Gone.")]);
                    let runner = Runner::in_memory(model.clone());
                    let outcome = paused(&runner, &agent).await;
                    runner.approve(&outcome.pauses()[0]).await.unwrap();
                    let still = go_on(way, runner.resume(&agent, outcome.run_id())).await.unwrap();
                    assert_eq!((still.pauses().len(), looks.count()), (1, 0), "nothing is given out yet");
                    let runner = match is_restored {
                        false => runner,
                        true => {
                            let json = runner.state(&agent, outcome.run_id()).await.unwrap().to_json();
                            let elsewhere = Runner::in_memory(model);
                            let state = RunState::from_json(&agent, &json).unwrap();
                            assert!(elsewhere.resume_state(&agent, state).await.unwrap().is_paused());
                            elsewhere
                        }
                    };
                    answer(&runner, &still.pauses()[0]).await.unwrap();
                    let ended = go_on(way, runner.resume(&agent, outcome.run_id())).await.unwrap();
                    assert_eq!(ended.text().is_some(), trips_on == "never", "{ended:?}");
                    assert_eq!((looks.count(), effects.count()), (1, 1 + ran), "{way:?} {is_restored} {trips_on}");
                    let results = told(&runner, &agent).await.into_iter().filter(|told| told.starts_with("result"));
                    assert_eq!(results.count(), 2);
                }
            }
        }
    }
}

#[tokio::test]
async fn a_run_that_is_cancelled_while_its_output_is_looked_at_gives_nothing_out() {
    for way in WAYS {
        let effects = Effects::default();
        let (looking, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (looks, goes) = (looking.clone(), go.clone());
        let guardrail = OutputGuardrail::new("slow", move |_, _| {
            let (looks, goes) = (looks.clone(), goes.clone());
            async move {
                looks.notify_one();
                goes.notified().await;
                TextVerdict::Pass
            }
        });
        let agent = Agent::builder("Ops").tool(gated(&effects)).output_guardrail(guardrail).build().unwrap();
        let runner = Runner::in_memory(delete_once());
        let outcome = paused(&runner, &agent).await;
        runner.approve(&outcome.pauses()[0]).await.unwrap();
        let driving = tokio::spawn(go_on(way, runner.resume(&agent, outcome.run_id())));
        looking.notified().await;
        runner.cancel(outcome.run_id(), ActorId::local(), "stop").await.unwrap();
        go.notify_one();
        let ended = driving.await.unwrap().unwrap();
        assert!(matches!(ended, RunOutcome::Cancelled { .. }), "{way:?}: {ended:?}");
        assert_eq!(ended.output(), None);
        assert_eq!(runner.resume(&agent, outcome.run_id()).await.unwrap(), ended);
        assert_eq!(effects.count(), 1);
    }
}

#[tokio::test]
async fn a_guarded_agents_pause_is_written_down_and_goes_on() {
    for way in WAYS {
        let (effects, looks) = (Effects::default(), Effects::default());
        let agent = guarded([gated(&effects)], &looks, "never", FinishRule::ModelText);
        let model = delete_once();
        let runner = Runner::in_memory(model.clone());
        let mut stream = runner.run(&agent, "go").session("desk").stream();
        let outcome = stream.completed().await.unwrap();
        assert_eq!(stream.pauses(), outcome.pauses());
        // The pause is safe before any guardrail has looked, and the call is in the session.
        assert_eq!((told(&runner, &agent).await, looks.count()), (ASKED.map(str::to_owned).to_vec(), 0));
        runner.approve(&outcome.pauses()[0]).await.unwrap();
        let done = go_on(way, runner.resume(&agent, outcome.run_id())).await.unwrap();
        assert_eq!((text_of(&done).as_str(), looks.count(), effects.count()), ("Gone.", 1, 1), "{way:?}");
    }
}

#[tokio::test]
async fn a_guarded_agent_that_is_not_handed_over_to_holds_nothing_up() {
    for way in WAYS {
        let (effects, looks) = (Effects::default(), Effects::default());
        let strict = guarded([], &looks, "", FinishRule::ModelText);
        let strict = Agent::builder("Desk").tool(gated(&effects)).handoff_named("over", &strict).build().unwrap();
        let runner = Runner::in_memory(delete_once());
        let outcome = paused(&runner, &strict).await;
        runner.approve(&outcome.pauses()[0]).await.unwrap();
        let done = go_on(way, runner.resume(&strict, outcome.run_id())).await.unwrap();
        assert_eq!((text_of(&done).as_str(), looks.count(), effects.count()), ("Gone.", 0, 1), "{way:?}");
        assert_eq!(told(&runner, &strict).await[2..], [RAN, "said: Gone."]);
    }
}
