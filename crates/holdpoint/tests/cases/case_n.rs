//! Group N: what is said while a run is paused waits its turn, and reaches the model once, after the pending results.

use std::sync::{Arc, OnceLock};

use crate::common::journal::*;
use crate::common::*;
use holdpoint::*;
use serde_json::{Value, json};

fn delete(path: &str) -> Reply {
    Reply::call("delete", json!({"path": path}))
}

struct Desk {
    runner: Runner,
    model: ScriptedModel,
    agent: Agent,
    effects: Effects,
}

fn desk(replies: impl IntoIterator<Item = Reply>) -> Desk {
    let effects = Effects::default();
    let model = ScriptedModel::new(replies);
    Desk { runner: Runner::in_memory(model.clone()), model, agent: agent("Ops", [gated(&effects)]), effects }
}

impl Desk {
    async fn start(&self) -> RunOutcome {
        self.runner.run(&self.agent, "go").await.unwrap()
    }

    async fn approve(&self, paused: &RunOutcome) -> RunOutcome {
        self.runner.approve(&paused.pauses()[0]).await.unwrap();
        self.runner.resume(&self.agent, paused.run_id()).await.unwrap()
    }
}

fn texts(staged: &[Content]) -> Vec<String> {
    staged.iter().map(Content::to_text).collect()
}

const RAN: &str = r#"result: delete ran with {"path":"a"}"#;

#[tokio::test]
async fn staged_input_keeps_its_order_and_goes_into_the_document() {
    let desk = desk([delete("a"), Reply::text("Done.")]);
    let paused = desk.start().await;
    let mut state = desk.runner.state(&desk.agent, paused.run_id()).await.unwrap();
    let mut first = String::from("first");
    state.add_input(first.as_str()).unwrap();
    first.push_str(" and changed");
    state.add_input(Content::Parts(vec![Part::Text("second".to_owned())])).unwrap();
    assert_eq!(texts(state.run().staged()), ["first", "second"]);
    let restored = RunState::from_json(&desk.agent, &state.to_json()).unwrap();
    assert_eq!(restored.run().staged(), state.run().staged());
    let mut copy = restored.run().staged().to_vec();
    copy.clear();
    assert_eq!(texts(restored.run().staged()), ["first", "second"]);
    let mut restored = restored;
    restored.approve(&paused.pauses()[0]).unwrap();
    let elsewhere = Runner::in_memory(desk.model.clone());
    assert_eq!(text_of(&elsewhere.resume_state(&desk.agent, restored).await.unwrap()), "Done.");
    assert_eq!(conversation(&desk.model), ["user: go", "model: delete", RAN, "user: first", "user: second"]);
}

#[tokio::test]
async fn a_document_without_staged_input_has_none_and_one_of_an_unknown_shape_is_refused() {
    let desk = desk([delete("a"), Reply::text("Done.")]);
    let paused = desk.start().await;
    let json = saved(&desk.runner, &desk.agent, &paused).await;
    assert!(RunState::from_json(&desk.agent, &json).unwrap().run().staged().is_empty());
    let with = |staged: Value| tampered(&json, |events| events.push(json!({ "input.staged": staged })));
    let good = json!({"content": {"text": "more"}, "by": "eva"});
    assert_eq!(texts(RunState::from_json(&desk.agent, &with(good.clone())).unwrap().run().staged()), ["more"]);
    let refused = |json: &str| RunState::from_json(&desk.agent, json).unwrap_err().code();
    assert_eq!(refused(&with(json!({"content": {"text": "more"}, "by": "eva", "role": "system"}))), "state_corrupt");
    assert_eq!(refused(&with(json!({"content": {"text": "more"}}))), "state_corrupt");
    let of_format = |format: u64| {
        let mut document: Value = serde_json::from_str(&with(good.clone())).unwrap();
        document["format"] = json!(format);
        document.to_string()
    };
    assert_eq!(refused(&of_format(0)), "not_a_state");
    assert_eq!(refused(&of_format(u64::from(u32::MAX))), "format_newer");
}

#[tokio::test]
async fn nothing_is_staged_for_a_run_that_will_not_call_its_model_again() {
    let code = |result: Result<Run, RunError>| result.unwrap_err().code();
    // Done.
    let desk = desk([delete("a"), Reply::text("Done.")]);
    let paused = desk.start().await;
    let done = desk.approve(&paused).await;
    assert_eq!(code(desk.runner.stage_input(done.run_id(), "more").await), "run_finished");
    let mut state = desk.runner.state(&desk.agent, done.run_id()).await.unwrap();
    assert_eq!(state.add_input("more").unwrap_err().code(), "run_finished");
    // Cancelled.
    let paused = desk.start().await;
    desk.runner.cancel(paused.run_id(), ActorId::local(), "enough").await.unwrap();
    assert_eq!(code(desk.runner.stage_input(paused.run_id(), "more").await), "run_finished");
    // Failed.
    let failed = desk.runner.run(&desk.agent, "go").turns_max(0).await.unwrap();
    assert!(matches!(failed, RunOutcome::Failed { .. }), "{failed:?}");
    assert_eq!(code(desk.runner.stage_input(failed.run_id(), "more").await), "run_finished");
    // Paused in the last model call that it may make.
    let paused = desk.runner.run(&desk.agent, "go").turns_max(1).await.unwrap();
    assert!(paused.is_paused());
    assert_eq!(code(desk.runner.stage_input(paused.run_id(), "more").await), "out_of_turn");
    let mut state = desk.runner.state(&desk.agent, paused.run_id()).await.unwrap();
    assert_eq!(state.add_input("more").unwrap_err().code(), "out_of_turn");
    assert!(state.run().staged().is_empty());
    // Nobody.
    assert_eq!(code(desk.runner.stage_input(desk.runner.runtime().name_run(), "more").await), "not_found");
}

#[tokio::test]
async fn input_staged_where_a_result_would_end_the_run_is_heard_first() {
    // There it is refused, because the result might end the run; here the model is called once more instead.
    let effects = Effects::default();
    let finish = FinishRule::FirstToolResult;
    let agent = Agent::builder("Ops").tool(gated(&effects)).finish(finish).build().unwrap();
    let model = ScriptedModel::new([delete("a"), Reply::text("Heard.")]);
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&agent, "go").await.unwrap();
    runner.stage_input(paused.run_id(), "one more thing").await.unwrap();
    runner.approve(&paused.pauses()[0]).await.unwrap();
    assert_eq!(text_of(&runner.resume(&agent, paused.run_id()).await.unwrap()), "Heard.");
    assert_eq!(conversation(&model), ["user: go", "model: delete", RAN, "user: one more thing"]);
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn staged_input_reaches_the_model_after_the_result_of_the_approved_call() {
    let desk = desk([delete("a"), Reply::text("Done.")]);
    let paused = desk.start().await;
    desk.runner.stage_input(paused.run_id(), "and be quick").await.unwrap();
    let done = desk.approve(&paused).await;
    assert_eq!(text_of(&done), "Done.");
    assert_eq!(conversation(&desk.model), ["user: go", "model: delete", RAN, "user: and be quick"]);
    let run = desk.runner.read(done.run_id()).await.unwrap();
    assert!(run.staged().is_empty());
    assert_eq!(run.items().len(), 5, "it is part of the conversation now");
}

#[tokio::test]
async fn staged_input_waits_until_the_call_is_decided() {
    let desk = desk([delete("a"), Reply::text("Done.")]);
    let paused = desk.start().await;
    desk.runner.stage_input(paused.run_id(), "hurry").await.unwrap();
    let still = desk.runner.resume(&desk.agent, paused.run_id()).await.unwrap();
    assert_eq!(still.pauses(), paused.pauses());
    assert_eq!(desk.model.calls(), 1, "the model is not called while somebody is asked");
    assert_eq!(texts(desk.runner.read(paused.run_id()).await.unwrap().staged()), ["hurry"]);
    assert_eq!(desk.effects.count(), 0);
    assert_eq!(text_of(&desk.approve(&paused).await), "Done.");
    assert_eq!(conversation(&desk.model).last().unwrap(), "user: hurry");
}

#[tokio::test]
async fn a_result_that_was_committed_before_a_failure_is_kept_and_so_is_staged_input() {
    // We have no hooks that could fail after a tool; the nearest is the model call that follows.
    let desk = desk([delete("a"), Reply::text("Done.").after_faults(1, "overloaded")]);
    let paused = desk.start().await;
    desk.runner.stage_input(paused.run_id(), "and then?").await.unwrap();
    desk.runner.approve(&paused.pauses()[0]).await.unwrap();
    let error = desk.runner.resume(&desk.agent, paused.run_id()).await.unwrap_err();
    assert_eq!(error.code(), "model_unavailable");
    let run = desk.runner.read(paused.run_id()).await.unwrap();
    assert_eq!(texts(run.staged()), ["and then?"], "it was shown, but nothing came back");
    let done = desk.runner.resume(&desk.agent, paused.run_id()).await.unwrap();
    assert_eq!(text_of(&done), "Done.");
    assert_eq!(conversation(&desk.model), ["user: go", "model: delete", RAN, "user: and then?"]);
    assert_eq!(desk.effects.count(), 1);
}

/// A tool in the middle of whose work somebody cancels the run.
struct Cancelling {
    runner: Arc<OnceLock<Runner>>,
    effects: Effects,
}

#[async_trait::async_trait]
impl RunTool for Cancelling {
    async fn run(&self, context: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        self.effects.happen();
        let runner = self.runner.get().expect("the runner was given before the run");
        runner.cancel(context.run, ActorId::local(), "enough").await.map_err(ToolFailure::new)?;
        Ok("done all the same".into())
    }
}

#[tokio::test]
async fn staged_input_is_left_alone_when_the_run_is_cancelled_during_the_approved_call() {
    let effects = Effects::default();
    let cell = Arc::new(OnceLock::new());
    let tool = Tool::builder("delete")
        .needs_approval(true)
        .schema(json!({"type": "object"}))
        .runner(Cancelling { runner: cell.clone(), effects: effects.clone() })
        .build()
        .unwrap();
    let agent = agent("Ops", [tool]);
    let model = ScriptedModel::new([delete("a"), Reply::text("Done.")]);
    let runner = Runner::in_memory(model.clone());
    assert!(cell.set(runner.clone()).is_ok());
    let paused = runner.run(&agent, "go").await.unwrap();
    runner.stage_input(paused.run_id(), "and then?").await.unwrap();
    runner.approve(&paused.pauses()[0]).await.unwrap();
    let ended = runner.resume(&agent, paused.run_id()).await.unwrap();
    assert!(matches!(ended, RunOutcome::Cancelled { .. }), "{ended:?}");
    let run = runner.read(paused.run_id()).await.unwrap();
    assert_eq!(texts(run.staged()), ["and then?"]);
    assert_eq!(model.calls(), 1);
    let outcomes: Vec<Outcome> = events(&runner, paused.run_id())
        .await
        .into_iter()
        .filter_map(|event| match event {
            RunEvent::CallAnswered(answered) => Some(answered.outcome),
            _ => None,
        })
        .collect();
    assert_eq!(outcomes, [Outcome::Result("done all the same".into())], "what the tool did is known");
    assert_eq!(effects.count(), 1);
    assert_eq!(runner.resume(&agent, paused.run_id()).await.unwrap(), ended);
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn staged_input_is_admitted_once_when_the_resumed_run_is_streamed() {
    let desk = desk([delete("a"), Reply::text("Wait.").and_call("delete", json!({"path": "b"})), Reply::text("Done.")]);
    let paused = desk.start().await;
    desk.runner.stage_input(paused.run_id(), "be quick").await.unwrap();
    desk.runner.approve(&paused.pauses()[0]).await.unwrap();
    let mut stream = desk.runner.resume(&desk.agent, paused.run_id()).stream().await.unwrap();
    let mut admitted = Vec::new();
    while let Some(event) = stream.next().await {
        if let StreamEvent::Event { event: RunEvent::ModelReplied(replied), .. } = event {
            admitted.push(replied.admitted);
        }
    }
    assert_eq!(admitted, [1]);
    let paused = stream.completed().await.unwrap();
    desk.runner.deny(&paused.pauses()[0]).await.unwrap();
    let mut stream = desk.runner.resume(&desk.agent, paused.run_id()).stream().await.unwrap();
    assert_eq!(text_of(&stream.completed().await.unwrap()), "Done.");
    let said = conversation(&desk.model).into_iter().filter(|line| line == "user: be quick").count();
    assert_eq!(said, 1);
}
