//! Group B: what is recorded when a run's state is approved or denied, and what the model reads.

use crate::common::journal::*;
use crate::common::*;
use holdpoint::*;
use serde_json::{Value, json};

fn delete(path: &str) -> (&'static str, Value) {
    ("delete", json!({"path": path}))
}

/// A run that stands at its first pauses: who runs it, what its model says, and its state in the keeper's hands.
struct Held {
    runner: Runner,
    model: ScriptedModel,
    agent: Agent,
    effects: Effects,
    state: RunState,
}

async fn held(replies: impl IntoIterator<Item = Reply>) -> Held {
    let effects = Effects::default();
    let model = ScriptedModel::new(replies);
    let runner = Runner::in_memory(model.clone());
    let agent = agent("Ops", [gated(&effects)]);
    let paused = runner.run(&agent, "clean up").await.unwrap();
    let state = runner.state(&agent, paused.run_id()).await.unwrap();
    Held { runner, model, agent, effects, state }
}

impl Held {
    /// Goes on in another process: only the JSON and the agents' code are there.
    async fn finish_elsewhere(self) -> Vec<String> {
        let json = self.state.to_json();
        let elsewhere = Runner::in_memory(self.model.clone());
        let state = RunState::from_json(&self.agent, &json).unwrap();
        let done = elsewhere.resume_state(&self.agent, state).await.unwrap();
        assert_eq!(text_of(&done), "Done.");
        results(&self.model)
    }

    async fn finish(self) -> Vec<String> {
        let done = self.runner.resume_state(&self.agent, self.state).await.unwrap();
        assert_eq!(text_of(&done), "Done.");
        results(&self.model)
    }
}

fn one() -> [Reply; 2] {
    [Reply::calls([delete("a")]), Reply::text("Done.")]
}

fn two() -> [Reply; 2] {
    [Reply::calls([delete("a"), delete("b")]), Reply::text("Done.")]
}

fn two_turns() -> [Reply; 3] {
    [Reply::calls([delete("a")]), Reply::calls([delete("b")]), Reply::text("Done.")]
}

fn decided(pause: &Pause) -> &Decision {
    match &pause.state {
        PauseState::Decided(decided) => &decided.decision,
        other => panic!("not decided: {other:?}"),
    }
}

fn denied(message: &str) -> Decision {
    Decision::Deny { message: Some(message.to_owned()) }
}

#[tokio::test]
async fn an_approval_is_recorded_in_the_state() {
    let mut held = held(one()).await;
    let pause = held.state.pauses().remove(0);
    assert_eq!(decided(held.state.approve(&pause).unwrap()), &Decision::Approve);
    assert_eq!(decided(&held.state.all_pauses()[0]), &Decision::Approve);
    assert!(held.state.pauses().is_empty(), "what is decided is no longer asked");
    assert_eq!(held.effects.count(), 0, "deciding runs nothing");
    let effects = held.effects.clone();
    assert_eq!(held.finish().await, [r#"delete ran with {"path":"a"}"#]);
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn an_unknown_pause_is_not_found_and_an_undecided_one_is_open() {
    let mut held = held(one()).await;
    let known = held.state.pauses().remove(0);
    let unknown = PauseId { number: 7, ..known.id() };
    assert_eq!(held.state.approve(unknown).unwrap_err().code(), "not_found");
    assert_eq!(held.state.run().pause(unknown).unwrap_err().code(), "not_found");
    assert!(matches!(held.state.all_pauses(), [pause] if pause.is_open()), "no decision is not a denial");
    let elsewhere = PauseId { run: "run_00000000000000000000000000000001".parse().unwrap(), number: 1 };
    assert_eq!(held.runner.approve(elsewhere).await.unwrap_err().code(), "not_found");
}

#[tokio::test]
async fn a_denial_is_recorded_in_the_state() {
    let mut held = held(one()).await;
    let pause = held.state.pauses().remove(0);
    assert_eq!(decided(held.state.deny(&pause).unwrap()), &Decision::Deny { message: None });
    let effects = held.effects.clone();
    assert_eq!(held.finish().await, [DENIED_TEXT]);
    assert_eq!(effects.count(), 0);
}

#[tokio::test]
async fn the_words_of_a_denial_are_recorded_with_it_and_reach_the_model() {
    let mut held = held(one()).await;
    let pause = held.state.pauses().remove(0);
    assert_eq!(decided(held.state.deny_with(&pause, "keep it until Friday").unwrap()), &denied("keep it until Friday"));
    assert_eq!(held.finish().await, ["keep it until Friday"]);
}

#[tokio::test]
async fn two_denied_calls_have_two_texts() {
    let mut held = held(two()).await;
    let pauses = held.state.pauses();
    held.state.deny_with(&pauses[0], "a is mine").unwrap();
    held.state.deny_with(&pauses[1], "b is yours").unwrap();
    assert_eq!(held.finish().await, ["a is mine", "b is yours"]);
}

#[tokio::test]
async fn an_empty_text_is_a_text() {
    let mut held = held(one()).await;
    let pause = held.state.pauses().remove(0);
    assert_eq!(decided(held.state.deny_with(&pause, "").unwrap()), &denied(""));
    assert_eq!(held.finish().await, [""]);
}

#[tokio::test]
async fn a_denial_made_to_stand_denies_later_calls() {
    let mut held = held(two_turns()).await;
    let pause = held.state.pauses().remove(0);
    held.state.deny_always(&pause, None, Always::in_run()).unwrap();
    assert_eq!(held.state.run().rules()[0].effect, RuleEffect::Deny { message: None });
    let effects = held.effects.clone();
    assert_eq!(held.finish().await, [DENIED_TEXT; 2]);
    assert_eq!(effects.count(), 0);
}

#[tokio::test]
async fn the_words_of_a_standing_denial_belong_to_the_call_and_to_the_rule() {
    for words in ["never again", ""] {
        let mut held = held(two_turns()).await;
        let pause = held.state.pauses().remove(0);
        held.state.deny_always(&pause, Some(words), Always::in_run()).unwrap();
        assert_eq!(decided(&held.state.all_pauses()[0]), &denied(words));
        assert_eq!(held.state.run().rules()[0].effect, RuleEffect::Deny { message: Some(words.to_owned()) });
        assert_eq!(held.finish().await, [words; 2]);
    }
}

#[tokio::test]
async fn an_empty_text_of_a_standing_denial_beats_the_formatter() {
    let mut held = held(two_turns()).await;
    let pause = held.state.pauses().remove(0);
    held.state.deny_always(&pause, Some(""), Always::in_run()).unwrap();
    let formatter = DenialFormatter::new(|_| async { Ok(Some("formatted".to_owned())) });
    held.runner.resume_state(&held.agent, held.state).denial_formatter(formatter).await.unwrap();
    assert_eq!(results(&held.model), ["", ""]);
}

#[tokio::test]
async fn the_words_of_a_denial_survive_json_and_another_process() {
    let mut held = held(two()).await;
    let pauses = held.state.pauses();
    held.state.deny_with(&pauses[0], "not this one").unwrap();
    held.state.deny_with(&pauses[1], "").unwrap();
    assert_eq!(held.finish_elsewhere().await, ["not this one", ""]);
}

#[tokio::test]
async fn a_standing_denial_and_its_words_survive_json_and_another_process() {
    let mut held = held(two_turns()).await;
    let pause = held.state.pauses().remove(0);
    held.state.deny_always(&pause, Some("closed for today"), Always::in_run()).unwrap();
    let effects = held.effects.clone();
    assert_eq!(held.finish_elsewhere().await, ["closed for today"; 2]);
    assert_eq!(effects.count(), 0);
}

#[tokio::test]
async fn a_denial_that_was_written_without_words_reads_as_one_without_words() {
    let mut held = held(one()).await;
    let pause = held.state.pauses().remove(0);
    held.state.deny(&pause).unwrap();
    let json = tampered(&held.state.to_json(), |events| {
        let at = place(events, "pause.decided");
        assert_eq!(events[at]["pause.decided"]["decision"], json!({"deny": {}}), "the text is optional in the journal");
    });
    let restored = RunState::from_json(&held.agent, &json).unwrap();
    assert_eq!(decided(&restored.all_pauses()[0]), &Decision::Deny { message: None });
    held.runner = Runner::in_memory(held.model.clone());
    held.state = restored;
    assert_eq!(held.finish().await, [DENIED_TEXT]);
}

#[tokio::test]
async fn a_rule_names_the_server_of_a_served_tool() {
    let effects = Effects::default();
    let server = ToolName::new("files").unwrap();
    let agent = agent("Ops", [gated_as(ToolShape::Mcp { server: server.clone() }, "delete", &effects)]);
    let runner = Runner::in_memory(ScriptedModel::new(one()));
    let paused = runner.run(&agent, "go").await.unwrap();
    let mut state = runner.state(&agent, paused.run_id()).await.unwrap();
    state.approve_always(&paused.pauses()[0], Always::in_run()).unwrap();
    let tool = ToolRef { class: ToolClass::Mcp { server }, name: ToolName::new("delete").unwrap() };
    assert_eq!(state.run().rules()[0].scope.tool, tool);
    let restored = RunState::from_json(&agent, &state.to_json()).unwrap();
    assert_eq!(restored.run().rules()[0].scope.tool, tool);
}

#[tokio::test]
async fn a_pending_call_keeps_its_tools_name_and_never_runs_without_it() {
    // We load no tools lazily; the nearest is a tool that the context offers or withholds.
    let effects = Effects::default();
    let is_open = |context: &Context| context.get("open") == Some(&json!(true));
    let tool = counted("delete", &effects).needs_approval(true).enabled_when(is_open).build().unwrap();
    let agent = agent("Ops", [tool]);
    let model = ScriptedModel::new(one());
    let runner = Runner::in_memory(model.clone());
    let context = |open: bool| Context::new(&json!({"open": open})).unwrap();
    let paused = runner.run(&agent, "go").context(context(true)).await.unwrap();
    let json = saved(&runner, &agent, &paused).await;
    let restore = || {
        let mut state = RunState::from_json(&agent, &json).unwrap();
        let pause = state.pauses().remove(0);
        assert_eq!(pause.call.as_ref().unwrap().tool.as_str(), "delete");
        state.approve(&pause).unwrap();
        (Runner::in_memory(model.clone()), state)
    };
    let (runner, state) = restore();
    let error = runner.resume_state(&agent, state).context(context(false)).await.unwrap_err();
    assert_eq!(error.code(), "tool_missing");
    assert_eq!(effects.count(), 0);
    let (runner, state) = restore();
    assert_eq!(text_of(&runner.resume_state(&agent, state).await.unwrap()), "Done.");
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn a_pending_call_finds_its_tool_again_in_the_agents_list_or_is_refused() {
    let mut held = held(one()).await;
    let pause = held.state.pauses().remove(0);
    held.state.approve(&pause).unwrap();
    let json = held.state.to_json();
    let other = || counted("archive", &held.effects).build().unwrap();
    let without = agent("Ops", [other()]);
    assert_eq!(RunState::from_json(&without, &json).unwrap_err().code(), "tool_missing");
    // Another place in the list, and a tool that was built anew: the name finds it.
    let with = agent("Ops", [other(), gated(&held.effects)]);
    let state = RunState::from_json(&with, &json).unwrap();
    let done = Runner::in_memory(held.model.clone()).resume_state(&with, state).await.unwrap();
    assert_eq!(text_of(&done), "Done.");
    assert_eq!(results(&held.model), [r#"delete ran with {"path":"a"}"#]);
    assert_eq!(held.effects.count(), 1);
}
