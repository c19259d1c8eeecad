//! Group H: agents used as tools. An inner agent lives in the outer run's journal, so its pauses are the outer run's.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::common::*;
use holdpoint::*;
use serde_json::{Value, json};

const USER: &str = "go";

fn delete(path: &str) -> Reply {
    Reply::call("delete", json!({ "path": path }))
}

fn ask(input: &str) -> Reply {
    Reply::call("ask_inner", json!({ "input": input }))
}

/// An outer agent with an inner one as the tool `ask_inner`, which has these tools. Each call builds them afresh, as
/// another process would.
fn nested(tools: impl IntoIterator<Item = Tool>) -> Agent {
    agent("Outer", [agent("Inner", tools).as_tool("ask_inner", "Asks.").build().unwrap()])
}

/// The outer agent asks once; the inner one gives these replies.
fn script(inner: impl IntoIterator<Item = Reply>) -> ScriptedModel {
    ScriptedModel::new([ask("x"), Reply::text("outer done")]).for_agent("ask_inner", inner)
}

/// A fresh process: nothing of the old one is there but what the state carries.
fn elsewhere(model: &ScriptedModel) -> Runner {
    Runner::in_memory(model.clone())
}

/// The state as it leaves one process.
async fn carried(runner: &Runner, agent: &Agent, run: RunId) -> String {
    runner.state(agent, run).await.unwrap().to_json()
}

fn only(state: &RunState) -> PauseView {
    let mut pauses = state.pauses();
    assert_eq!(pauses.len(), 1, "{pauses:?}");
    pauses.remove(0)
}

/// A gated tool that keeps what it was told: the path it deletes, the application's fields, a secret.
fn witness(seen: &Arc<Mutex<Vec<Value>>>) -> Tool {
    let seen = seen.clone();
    Tool::builder("delete").needs_approval(true).runner(Witness(seen)).build().unwrap()
}

struct Witness(Arc<Mutex<Vec<Value>>>);

#[async_trait::async_trait]
impl RunTool for Witness {
    async fn run(&self, context: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        let secret = context.context.secret("key").cloned().unwrap_or_default();
        let path = arguments.to_value()["path"].clone();
        self.0.lock().unwrap().push(json!([path, context.context.data(), secret]));
        Ok("gone".into())
    }
}

#[tokio::test]
async fn an_inner_pause_survives_the_process_and_the_outer_run_ends() {
    let model = script([delete("a"), Reply::text("inner done")]);
    let before = Effects::default();
    let outer = nested([gated(&before)]);
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&outer, USER).await.unwrap();
    let json = carried(&runner, &outer, outcome.run_id()).await;
    drop((outer, runner));

    let after = Effects::default();
    let outer = nested([gated(&after)]);
    let mut state = RunState::from_json(&outer, &json).unwrap();
    let pause = only(&state);
    assert_eq!((pause.agent.as_str(), pause.call.as_ref().unwrap().tool.as_str()), ("Outer/ask_inner", "delete"));
    state.approve(&pause).unwrap();
    assert_eq!(after.count(), 0, "a decision in a state runs nothing");
    let done = elsewhere(&model).resume_state(&outer, state).await.unwrap();
    assert_eq!((text_of(&done).as_str(), before.count(), after.count()), ("outer done", 0, 1));
    let last = model.requests().pop().unwrap();
    assert_eq!(told(&last.items), [("call_1_0".to_owned(), "inner done".to_owned(), false)]);
    // The inner agent went on where it stood: its model was asked twice in all, not from the start again.
    let inner = model.requests().iter().filter(|request| request.agent.as_str() == "Outer/ask_inner").count();
    assert_eq!(inner, 2);
}

#[tokio::test]
async fn an_agent_three_levels_deep_pauses_as_often_as_it_must() {
    let effects = Effects::default();
    let build = || {
        let third = agent("Third", [gated(&effects)]);
        let second = agent("Second", [third.as_tool("ask_third", "3.").build().unwrap()]);
        agent("First", [second.as_tool("ask_second", "2.").build().unwrap()])
    };
    let rounds = ["a", "b", "c"];
    let model = ScriptedModel::new([Reply::call("ask_second", json!({"input": "x"})), Reply::text("first done")])
        .for_agent("ask_second", [Reply::call("ask_third", json!({"input": "y"})), Reply::text("second done")])
        .for_agent("ask_third", rounds.map(delete).into_iter().chain([Reply::text("third done")]));
    let runner = elsewhere(&model);
    let mut outcome = runner.run(&build(), USER).await.unwrap();
    let mut json = carried(&runner, &build(), outcome.run_id()).await;
    for (round, path) in (1u32..).zip(rounds) {
        // A new process for every round.
        let first = build();
        let mut state = RunState::from_json(&first, &json).unwrap();
        let pause = only(&state);
        assert_eq!(pause.agent.as_str(), "First/ask_second/ask_third");
        let call = pause.call.clone().unwrap();
        assert_eq!(
            (call.path.to_string(), call.arguments.to_value()),
            (format!("1.0/1.0/{round}.0"), json!({"path": path}))
        );
        state.approve(&pause).unwrap();
        let runner = elsewhere(&model);
        outcome = runner.resume_state(&first, state).await.unwrap();
        assert_eq!(effects.count(), round);
        json = carried(&runner, &first, outcome.run_id()).await;
    }
    assert_eq!(text_of(&outcome), "first done");
    assert_eq!(model.calls(), 2 + 2 + 4);
}

#[tokio::test]
async fn always_once_reaches_every_later_inner_run_also_with_another_context() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let model = ScriptedModel::new([ask("one"), ask("two"), Reply::text("outer done")])
        .for_agent("ask_inner", [delete("a"), delete("b"), Reply::text("inner done")]);
    let outer = nested([witness(&seen)]);
    let runner = elsewhere(&model);
    let context = Context::new(&json!({"tenant": "old"})).unwrap();
    let outcome = runner.run(&outer, USER).context(context).await.unwrap();
    let json = carried(&runner, &outer, outcome.run_id()).await;

    let given = Context::new(&json!({"tenant": "new"})).unwrap();
    let mut state = RunState::from_json_with_context(&outer, &json, given, ContextStrategy::Merge).unwrap();
    let pause = only(&state);
    state.approve_always(&pause, Always::in_run()).unwrap();
    let json = state.to_json();
    let given = Context::new(&json!({"tenant": "newer"})).unwrap();
    let state = RunState::from_json_with_context(&outer, &json, given, ContextStrategy::Merge).unwrap();
    let done = elsewhere(&model).resume_state(&outer, state).await.unwrap();
    assert_eq!(text_of(&done), "outer done");
    let newer = json!({"tenant": "newer"});
    let expected = ["a", "b", "a", "b"].map(|path| json!([path, newer, null]));
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn always_for_an_inner_agents_tool_is_not_always_for_the_outer_agents() {
    let effects = Effects::default();
    let inner = agent("Inner", [gated(&effects)]);
    let outer = agent("Outer", [inner.as_tool("ask_inner", "Asks.").build().unwrap(), gated(&effects)]);
    let model = ScriptedModel::new([ask("x"), delete("outer"), Reply::text("outer done")])
        .for_agent("ask_inner", [delete("a"), Reply::text("inner done")]);
    let runner = elsewhere(&model);
    let outcome = runner.run(&outer, USER).await.unwrap();
    runner.approve(&outcome.pauses()[0]).always(Always::in_run()).await.unwrap();
    let outcome = runner.resume(&outer, outcome.run_id()).await.unwrap();
    assert_eq!((outcome.pauses().len(), effects.count()), (1, 1));
    assert_eq!(outcome.pauses()[0].agent.as_str(), "Outer");
}

#[tokio::test]
async fn a_replaced_context_asks_again_for_what_was_approved_in_an_inner_agent() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let model = script([delete("a"), delete("b"), Reply::text("inner done")]);
    let outer = nested([witness(&seen)]);
    let runner = elsewhere(&model);
    let outcome = runner.run(&outer, USER).await.unwrap();
    let mut state = runner.state(&outer, outcome.run_id()).await.unwrap();
    let first = only(&state);
    state.approve_always(&first, Always::in_run()).unwrap();
    let json = state.to_json();

    let given = Context::new(&json!({"tenant": "new"})).unwrap();
    let state = RunState::from_json_with_context(&outer, &json, given, ContextStrategy::Replace).unwrap();
    let again = only(&state);
    assert_ne!(again.id(), first.id());
    assert_eq!(again.call, first.call);
    let runner = elsewhere(&model);
    let outcome = runner.resume_state(&outer, state).await.unwrap();
    assert_eq!((outcome.pauses().len(), seen.lock().unwrap().len()), (1, 0), "neither approval nor rule stands");
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    let outcome = runner.resume(&outer, outcome.run_id()).await.unwrap();
    assert_eq!(arguments(&outcome, 0), json!({"path": "b"}));
    assert_eq!(*seen.lock().unwrap(), [json!(["a", {"tenant": "new"}, null])]);
}

// There a third strategy prefers what was stored. Here that is what happens when the caller gives nothing, and field by
// field where the caller gives something.
#[tokio::test]
async fn an_inner_agent_sees_the_stored_context_wherever_the_caller_gives_none() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let model = script([delete("a"), Reply::text("inner done")]);
    let outer = nested([witness(&seen)]);
    let runner = elsewhere(&model);
    let context = Context::new(&json!({"tenant": "old", "region": "eu"})).unwrap();
    let outcome = runner.run(&outer, USER).context(context).await.unwrap();
    let json = carried(&runner, &outer, outcome.run_id()).await;
    let given = Context::new(&json!({"tenant": "new"})).unwrap();
    for (state, expected) in [
        (RunState::from_json(&outer, &json), json!({"tenant": "old", "region": "eu"})),
        (
            RunState::from_json_with_context(&outer, &json, given, ContextStrategy::Merge),
            json!({"tenant": "new", "region": "eu"}),
        ),
    ] {
        let mut state = state.unwrap();
        let pause = only(&state);
        state.approve(&pause).unwrap();
        elsewhere(&model).resume_state(&outer, state).await.unwrap();
        assert_eq!(seen.lock().unwrap().pop().unwrap(), json!(["a", expected, null]));
    }
}

/// What was not data in the old process is given again by the new one, and reaches the inner agent's tools.
async fn secret_in_inner_agent(strategy: ContextStrategy) -> (Value, bool) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let model = script([delete("a"), Reply::text("inner done")]);
    let outer = nested([witness(&seen)]);
    let runner = elsewhere(&model);
    let context = Context::new(&json!({"a": 1})).unwrap().with_secret("key", "old key");
    let outcome = runner.run(&outer, USER).context(context).await.unwrap();
    let json = carried(&runner, &outer, outcome.run_id()).await;
    let given = Context::new(&json!({"b": 2})).unwrap().with_secret("key", "new key");
    let mut state = RunState::from_json_with_context(&outer, &json, given, strategy).unwrap();
    let pause = only(&state);
    state.approve(&pause).unwrap();
    let has_leaked = [json, state.to_json()].iter().any(|json| json.contains("old key") || json.contains("new key"));
    elsewhere(&model).resume_state(&outer, state).await.unwrap();
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 1);
    (seen[0].clone(), has_leaked)
}

#[tokio::test]
async fn a_merged_contexts_secrets_reach_the_inner_agents_tools() {
    assert_eq!(secret_in_inner_agent(ContextStrategy::Merge).await, (json!(["a", {"a": 1, "b": 2}, "new key"]), false));
}

#[tokio::test]
async fn a_replaced_contexts_secrets_reach_the_inner_agents_tools() {
    assert_eq!(secret_in_inner_agent(ContextStrategy::Replace).await, (json!(["a", {"b": 2}, "new key"]), false));
}

#[tokio::test]
async fn two_inner_runs_of_one_agent_go_on_independently() {
    let effects = Effects::default();
    let outer = nested([gated(&effects)]);
    let two = Reply::calls([("ask_inner", json!({"input": "left"})), ("ask_inner", json!({"input": "right"}))]);
    let model = ScriptedModel::new([two, Reply::text("outer done")]).for_agent_by("ask_inner", |request| {
        match (request.turn, &*request.items[0]) {
            (1, Item::User(input)) => delete(&input.to_text()),
            _ => Reply::text(told(&request.items).pop().map(|(_, text, _)| text).unwrap_or_default()),
        }
    });
    let runner = elsewhere(&model);
    let outcome = runner.run(&outer, USER).await.unwrap();
    let on = |outcome: &RunOutcome, path: &str| {
        let is_it = |index: &usize| arguments(outcome, *index) == json!({ "path": path });
        outcome.pauses()[(0..outcome.pauses().len()).find(is_it).unwrap()].clone()
    };
    assert_eq!(outcome.pauses().len(), 2);
    runner.approve(on(&outcome, "right")).await.unwrap();
    let outcome = runner.resume(&outer, outcome.run_id()).await.unwrap();
    assert_eq!((outcome.pauses().len(), effects.count()), (1, 1));
    assert_eq!(arguments(&outcome, 0), json!({"path": "left"}));
    runner.deny(&outcome.pauses()[0]).message("keep left").await.unwrap();
    let done = runner.resume(&outer, outcome.run_id()).await.unwrap();
    assert_eq!((text_of(&done).as_str(), effects.count()), ("outer done", 1));
    let last = model.requests().pop().unwrap();
    let told: Vec<(String, String)> = told(&last.items).into_iter().map(|(id, text, _)| (id, text)).collect();
    let expected = [("call_1_0", "keep left"), ("call_1_1", r#"delete ran with {"path":"right"}"#)];
    assert_eq!(told, expected.map(|(id, text)| (id.to_owned(), text.to_owned())));
}

#[tokio::test]
async fn inner_runs_stand_at_the_call_that_opened_them_whatever_ids_the_provider_gives() {
    let effects = Effects::default();
    let outer = nested([gated(&effects)]);
    let two = Reply::calls([("ask_inner", json!({"input": "x"})), ("ask_inner", json!({"input": "x"}))]);
    // The inner models number their calls alike and ask for the very same thing.
    let inner = [Reply::empty().and_call_as("call_0", "delete", json!({"path": "a"})), Reply::text("inner done")];
    let model = ScriptedModel::new([two, Reply::text("outer done")]).for_agent("ask_inner", inner);
    let runner = elsewhere(&model);
    let outcome = runner.run(&outer, USER).await.unwrap();
    let state = runner.state(&outer, outcome.run_id()).await.unwrap();
    let frames: Vec<String> = state.run().frames().map(|(path, _)| path.to_string()).collect();
    assert_eq!(frames, ["", "1.0", "1.1"]);
    let mut calls: Vec<String> =
        state.pauses().iter().map(|pause| pause.call.as_ref().unwrap().path.to_string()).collect();
    calls.sort_unstable();
    assert_eq!(calls, ["1.0/1.0", "1.1/1.0"]);
    // One approval runs one of them, also after the state was carried elsewhere.
    let mut state = RunState::from_json(&outer, &state.to_json()).unwrap();
    let pause = state.pauses().remove(0);
    state.approve(&pause).unwrap();
    let runner = elsewhere(&model);
    let outcome = runner.resume_state(&outer, state).await.unwrap();
    assert_eq!((outcome.pauses().len(), effects.count()), (1, 1));
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    let done = runner.resume(&outer, outcome.run_id()).await.unwrap();
    assert_eq!((text_of(&done).as_str(), effects.count()), ("outer done", 2));
}

#[tokio::test]
async fn denying_an_agent_tool_leaves_no_inner_run_in_the_state() {
    let effects = Effects::default();
    let inner = agent("Inner", [gated(&effects)]);
    let outer = agent("Outer", [inner.as_tool("ask_inner", "Asks.").needs_approval(true).build().unwrap()]);
    let model = script([delete("a"), Reply::text("inner done")]);
    let runner = elsewhere(&model);
    let outcome = runner.run(&outer, USER).await.unwrap();
    let mut state = runner.state(&outer, outcome.run_id()).await.unwrap();
    let pause = only(&state);
    state.deny_with(&pause, "not now").unwrap();
    let state = RunState::from_json(&outer, &state.to_json()).unwrap();
    assert_eq!((state.run().frames().count(), state.pauses().len()), (1, 0));
    let done = elsewhere(&model).resume_state(&outer, state).await.unwrap();
    assert_eq!((text_of(&done).as_str(), effects.count(), model.calls()), ("outer done", 0, 2));
    let last = model.requests().pop().unwrap();
    assert_eq!(told(&last.items), [("call_1_0".to_owned(), "not now".to_owned(), true)]);
}

#[tokio::test]
async fn an_agent_tool_and_the_tools_of_its_agent_are_asked_about_one_after_the_other() {
    let effects = Effects::default();
    let inner = agent("Inner", [gated(&effects)]);
    let outer = agent("Outer", [inner.as_tool("ask_inner", "Asks.").needs_approval(true).build().unwrap()]);
    let model = script([delete("a"), Reply::text("inner done")]);
    let runner = elsewhere(&model);
    let outcome = runner.run(&outer, USER).await.unwrap();
    assert_eq!((outcome.pauses().len(), model.calls()), (1, 1));
    assert_eq!(outcome.pauses()[0].agent.as_str(), "Outer");
    assert_eq!(arguments(&outcome, 0), json!({"input": "x"}));
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    let outcome = runner.resume(&outer, outcome.run_id()).await.unwrap();
    assert_eq!((outcome.pauses().len(), effects.count()), (1, 0));
    assert_eq!(outcome.pauses()[0].agent.as_str(), "Outer/ask_inner");
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    let done = runner.resume(&outer, outcome.run_id()).await.unwrap();
    assert_eq!((text_of(&done).as_str(), effects.count()), ("outer done", 1));
}

// We have no lazily-loaded tools. What stands in their place: a run remembers names, and code is found again by them.
#[tokio::test]
async fn an_inner_agents_tools_are_found_again_by_name() {
    let model = script([delete("a"), Reply::text("inner done")]);
    let runner = elsewhere(&model);
    let old = nested([gated(&Effects::default())]);
    let outcome = runner.run(&old, USER).await.unwrap();
    let json = carried(&runner, &old, outcome.run_id()).await;
    for shape in ["the same tools", "one tool more", "in another order and words"] {
        let effects = Effects::default();
        let other = counted("look", &Effects::default()).build().unwrap();
        let outer = match shape {
            "the same tools" => nested([gated(&effects)]),
            "one tool more" => nested([gated(&effects), other]),
            _ => nested([other, gated(&effects).rebuild().description("Deletes at last.").build().unwrap()]),
        };
        let mut state = RunState::from_json(&outer, &json).unwrap();
        let pause = only(&state);
        state.approve(&pause).unwrap();
        let done = elsewhere(&model).resume_state(&outer, state).await.unwrap();
        assert_eq!((text_of(&done).as_str(), effects.count()), ("outer done", 1), "{shape}");
    }
}

#[tokio::test]
async fn a_pending_call_is_not_rebound_to_a_tool_of_another_kind() {
    let model = script([delete("a"), Reply::text("inner done")]);
    let runner = elsewhere(&model);
    let effects = Effects::default();
    let old = nested([gated(&effects)]);
    let outcome = runner.run(&old, USER).await.unwrap();
    let json = carried(&runner, &old, outcome.run_id()).await;
    let shell = nested([gated(&effects).rebuild().shape(ToolShape::Shell).build().unwrap()]);
    let missing =
        |agent: &str, tool: &str| Refusal::ToolMissing { agent: agent.parse().unwrap(), tool: tool.to_owned() };
    assert_eq!(RunState::from_json(&shell, &json).unwrap_err(), missing("Outer/ask_inner", "delete"));
    // An agent tool that became a function leads nowhere: its inner agent is gone.
    let function = agent("Outer", [counted("ask_inner", &effects).build().unwrap()]);
    let refused = RunState::from_json(&function, &json).unwrap_err();
    assert!(matches!(refused.code(), "tool_missing" | "agent_missing"), "{refused}");
    assert_eq!(effects.count(), 0);
}

/// A paused nested run as a document, and where its parts stand.
async fn document() -> (Agent, Value) {
    let model = script([delete("a"), Reply::text("inner done")]);
    let outer = nested([gated(&Effects::default())]);
    let runner = elsewhere(&model);
    let outcome = runner.run(&outer, USER).await.unwrap();
    let json = carried(&runner, &outer, outcome.run_id()).await;
    (outer, serde_json::from_str(&json).unwrap())
}

/// The body of the only event of this name that matches, wherever it stands in the document.
fn event<'a>(document: &'a mut Value, name: &str, fits: impl Fn(&Value) -> bool) -> &'a mut Value {
    let entries = document["entries"].as_array_mut().unwrap().iter_mut();
    let events = entries.flat_map(|entry| entry["events"].as_array_mut().unwrap());
    let mut bodies = events.filter_map(|event| event.get_mut(name)).filter(|body| fits(body));
    bodies.next().unwrap_or_else(|| panic!("there is no {name}"))
}

// Inner runs have no second name there could be a map of: a path has one spelling.
#[tokio::test]
async fn an_inner_run_has_one_name_and_one_spelling_of_it() {
    let (outer, document) = document().await;
    assert!(RunState::from_json(&outer, &document.to_string()).is_ok());
    for spelling in ["01.0", "1.00", "+1.0", "1.0/", "ask_inner:call_1_0"] {
        let mut document = document.clone();
        event(&mut document, "call.started", |_| true)["call"] = json!(spelling);
        let refused = RunState::from_json(&outer, &document.to_string()).unwrap_err();
        assert_eq!(refused.code(), "state_corrupt", "{spelling}: {refused}");
    }
}

#[tokio::test]
async fn a_state_whose_inner_run_contradicts_itself_is_refused_whole() {
    type Break = fn(&mut Value);
    let breaks: [(&str, Break); 5] = [
        ("an inner run of a call that was never made", |document| {
            event(document, "call.started", |_| true)["call"] = json!("1.7");
        }),
        ("a reply in an inner run that never began", |document| {
            event(document, "model.replied", |body| body["frame"] == "1.0")["frame"] = json!("1.1");
        }),
        ("a pause about another inner run's call", |document| {
            event(document, "pause.opened", |_| true)["at"] = json!("1.1/1.0");
        }),
        ("a pause that holds other arguments than the inner call has", |document| {
            let inner = event(document, "model.replied", |body| body["frame"] == "1.0");
            inner["calls"][0]["arguments"] = json!({"path": "/etc"});
        }),
        ("an inner run that is not there at all", |document| {
            let entries = document["entries"].as_array_mut().unwrap();
            for entry in entries {
                entry["events"].as_array_mut().unwrap().retain(|event| event.get("call.started").is_none());
            }
        }),
    ];
    let (outer, whole) = document().await;
    for (what, damage) in breaks {
        let mut document = whole.clone();
        damage(&mut document);
        assert_ne!(document, whole, "{what}");
        let refused = RunState::from_json(&outer, &document.to_string()).unwrap_err();
        assert_eq!(refused.code(), "state_corrupt", "{what}: {refused}");
    }
}

// Snapshots written by an old release. The file is written once, with the format it is named after, and never again.

fn fixture() -> PathBuf {
    let states = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/states/format-1");
    PathBuf::from(states).join("nested-agent-held.json")
}

fn fixture_model() -> ScriptedModel {
    script([delete("backup.tar"), Reply::text("The inner agent is done.")])
}

#[tokio::test]
async fn a_fixture_is_written_once_and_only_when_asked_for() {
    let path = fixture();
    if std::env::var_os("HOLDPOINT_WRITE_FIXTURES").is_some() && !path.exists() {
        let outer = nested([gated(&Effects::default())]);
        let runner = Runner::in_memory(fixture_model());
        let context = Context::new(&json!({"tenant": "acme"})).unwrap();
        let outcome = runner.run(&outer, "remove the old backup").context(context).await.unwrap();
        let json = carried(&runner, &outer, outcome.run_id()).await;
        let pretty = serde_json::to_string_pretty(&serde_json::from_str::<Value>(&json).unwrap()).unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, pretty + "\n").unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&document["kind"], &document["format"]), (&json!("holdpoint.run"), &json!(1)));
    let written = "a8c9dabeb1c8327f4601241d5fdf1e4a3e9e0c501516755714ac90605815de0f";
    assert_eq!(Digest::of(text.as_bytes()).to_string(), written, "what an old release wrote never changes");
}

/// Goes on from the fixture after a decision; says what came out, how often the tool ran, and what the inner agent's
/// model was told.
async fn go_on_from_fixture(decide: impl FnOnce(&mut RunState, &PauseView)) -> (String, u32, Vec<String>) {
    let effects = Effects::default();
    let outer = nested([gated(&effects)]);
    let text = std::fs::read_to_string(fixture()).unwrap();
    let mut state = RunState::from_json(&outer, &text).unwrap();
    assert_eq!(state.context().data(), &json!({"tenant": "acme"}));
    let pause = only(&state);
    assert_eq!(pause.agent.as_str(), "Outer/ask_inner");
    assert_eq!(pause.call.as_ref().unwrap().arguments.to_value(), json!({"path": "backup.tar"}));
    decide(&mut state, &pause);
    let model = fixture_model();
    let done = elsewhere(&model).resume_state(&outer, state).await.unwrap();
    let inner = model.requests().into_iter().find(|request| request.agent.as_str() == "Outer/ask_inner").unwrap();
    let told = told(&inner.items).into_iter().map(|(_, text, _)| text).collect();
    (text_of(&done), effects.count(), told)
}

#[tokio::test]
async fn a_nested_state_of_format_1_is_read_approved_and_goes_on() {
    let (output, ran, told) = go_on_from_fixture(|state, pause| {
        state.approve(pause).unwrap();
    })
    .await;
    assert_eq!((output.as_str(), ran), ("outer done", 1));
    assert_eq!(told, [r#"delete ran with {"path":"backup.tar"}"#]);
}

#[tokio::test]
async fn a_nested_state_of_format_1_is_read_denied_and_goes_on() {
    let (output, ran, told) = go_on_from_fixture(|state, pause| {
        state.deny_with(pause, "keep it until Friday").unwrap();
    })
    .await;
    assert_eq!((output.as_str(), ran), ("outer done", 0));
    assert_eq!(told, ["keep it until Friday"]);
}

// Cancellation.

#[tokio::test]
async fn an_inner_pause_is_written_down_although_nobody_listens_to_the_stream_any_more() {
    let effects = Effects::default();
    let outer = nested([gated(&effects)]);
    let model = script([delete("a"), Reply::text("inner done")]);
    let runner = elsewhere(&model);
    let mut stream = runner.run(&outer, USER).session("s").stream();
    let run = stream.run_id();
    let mut watch = runner.runtime().watch_session(&SessionId::new("s").unwrap(), 1);
    assert!(stream.next().await.is_some());
    // Whoever read the stream goes away; the run does not.
    drop(stream);
    while !matches!(watch.next().await.unwrap(), WatchItem::Event { event: RunEvent::PauseOpened(_), .. }) {}
    let pauses = runner.read(run).await.unwrap().open_pauses();
    assert_eq!(pauses.len(), 1);
    runner.approve(&pauses[0]).await.unwrap();
    let done = runner.resume(&outer, run).await.unwrap();
    assert_eq!((text_of(&done).as_str(), effects.count()), ("outer done", 1));
}

#[tokio::test]
async fn an_inner_approval_that_came_before_the_cancellation_is_kept_and_what_was_not_decided_is_withdrawn() {
    let effects = Effects::default();
    let outer = nested([gated(&effects)]);
    let both = Reply::calls([("delete", json!({"path": "a"})), ("delete", json!({"path": "b"}))]);
    let model = script([both, Reply::text("inner done")]);
    let runner = elsewhere(&model);
    let outcome = runner.run(&outer, USER).await.unwrap();
    runner.approve(&outcome.pauses()[0]).by("ana").await.unwrap();
    runner.cancel(outcome.run_id(), ActorId::new("ben").unwrap(), "enough").await.unwrap();
    let ended = runner.resume(&outer, outcome.run_id()).await.unwrap();
    assert!(matches!(&ended, RunOutcome::Cancelled { by, .. } if by.as_str() == "ben"), "{ended:?}");
    let state = runner.state(&outer, outcome.run_id()).await.unwrap();
    let state = RunState::from_json(&outer, &state.to_json()).unwrap();
    let [first, second] = state.all_pauses() else { panic!("two pauses expected") };
    let PauseState::Decided(decided) = &first.state else { panic!("{first:?}") };
    assert_eq!((decided.decision.name(), decided.by.as_str()), ("approve", "ana"));
    assert!(matches!(second.state, PauseState::Withdrawn { .. }), "{second:?}");
    assert_eq!(effects.count(), 0);
    let late = runner.approve(&outcome.pauses()[1]).await.unwrap_err();
    assert_eq!(late.code(), "withdrawn");
}

// Found on the way: an agent that a pending call leads to may change while a person thinks, before it is at work at all.

/// An outer agent whose agent tool is held, with an inner agent of these instructions.
fn outer_with(instructions: &str) -> Agent {
    let inner = Agent::builder("Inner").instructions(instructions).build().unwrap();
    agent("Outer", [inner.as_tool("ask_inner", "Asks.").needs_approval(true).build().unwrap()])
}

#[tokio::test]
async fn an_inner_agent_that_changed_before_it_began_goes_on_as_it_was_or_not_at_all() {
    let model = script([Reply::text("inner done")]);
    let runner = elsewhere(&model);
    let outcome = runner.run(&outer_with("Be kind."), USER).await.unwrap();
    let json = carried(&runner, &outer_with("Be kind."), outcome.run_id()).await;
    let changed = outer_with("Be quick.");
    for (policy, expected) in [
        (DriftPolicy::Pinned, Ok("Be kind.")),
        (DriftPolicy::Accept, Ok("Be quick.")),
        (DriftPolicy::Refuse, Err("agent_changed")),
    ] {
        let mut state = RunState::from_json(&changed, &json).unwrap();
        let pause = only(&state);
        state.approve(&pause).unwrap();
        let resumed = elsewhere(&model).resume_state(&changed, state).drift(policy).await;
        match (resumed, expected) {
            (Ok(done), Ok(instructions)) => {
                assert_eq!(text_of(&done), "outer done");
                let inner = model.requests().into_iter().rfind(|request| request.agent.as_str() == "Outer/ask_inner");
                assert_eq!(&*inner.unwrap().instructions, instructions, "{policy:?}");
            }
            (Err(error), Err(code)) => assert_eq!(error.code(), code, "{policy:?}"),
            (resumed, _) => panic!("{policy:?}: {resumed:?}"),
        }
    }
}
