//! Group F: approval of batches of actions at a screen, under the tool's two names.

use std::sync::{Arc, Mutex, OnceLock};

use crate::common::journal::*;
use crate::common::*;
use holdpoint::tools::computer::{Button, Computer, ComputerTool, Point, Screenshot};
use holdpoint::*;
use serde_json::{Value, json};

/// A screen of which only is noted what is done at it.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<String>>>);

impl Paper {
    fn note(&self, text: impl Into<String>) -> Result<(), ToolFailure> {
        self.0.lock().unwrap().push(text.into());
        Ok(())
    }

    fn noted(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl Computer for Paper {
    async fn screenshot(&self) -> Result<Screenshot, ToolFailure> {
        self.note("screenshot")?;
        Ok(Screenshot { media_type: "image/png".to_owned(), bytes: b"png".to_vec() })
    }

    async fn click(&self, at: Point, _: Button, _: &[String]) -> Result<(), ToolFailure> {
        self.note(format!("click {} {}", at.x, at.y))
    }

    async fn double_click(&self, _: Point, _: &[String]) -> Result<(), ToolFailure> {
        self.note("double_click")
    }

    async fn move_to(&self, _: Point, _: &[String]) -> Result<(), ToolFailure> {
        self.note("move")
    }

    async fn drag(&self, _: &[Point], _: &[String]) -> Result<(), ToolFailure> {
        self.note("drag")
    }

    async fn scroll(&self, _: Point, _: Point, _: &[String]) -> Result<(), ToolFailure> {
        self.note("scroll")
    }

    async fn type_text(&self, text: &str) -> Result<(), ToolFailure> {
        self.note(format!("type {text}"))
    }

    async fn keypress(&self, _: &[String]) -> Result<(), ToolFailure> {
        self.note("keypress")
    }

    async fn wait(&self) -> Result<(), ToolFailure> {
        self.note("wait")
    }
}

/// What a batch does, and the picture after it.
const DONE: [&str; 3] = ["click 1 2", "type hello", "screenshot"];

fn click() -> Value {
    json!({"type": "click", "x": 1, "y": 2})
}

fn typing() -> Value {
    json!({"type": "type", "text": "hello"})
}

/// A batch of two actions.
fn batch() -> Value {
    json!({"actions": [click(), typing()]})
}

fn acts() -> Reply {
    Reply::call("computer", batch())
}

struct Desk {
    runner: Runner,
    model: ScriptedModel,
    agent: Agent,
    paper: Paper,
}

/// An agent with a screen, which is set up further, and what its model says.
fn desk(set_up: impl FnOnce(ToolBuilder) -> ToolBuilder, replies: impl IntoIterator<Item = Reply>) -> Desk {
    let paper = Paper::default();
    let tool = set_up(ComputerTool::builder(paper.clone())).build().unwrap();
    let model = ScriptedModel::new(replies);
    Desk { runner: Runner::in_memory(model.clone()), model, agent: agent("Ops", [tool]), paper }
}

/// An agent with a gated screen, and a model that acts once.
fn held_desk() -> Desk {
    desk(|tool| tool.needs_approval(true), [acts(), Reply::text("Done.")])
}

impl Desk {
    async fn start(&self) -> RunOutcome {
        let paused = self.runner.run(&self.agent, "go").await.unwrap();
        assert_eq!((paused.pauses().len(), self.paper.noted().len()), (1, 0), "{paused:?}");
        paused
    }

    async fn go_on(&self, paused: &RunOutcome) -> RunOutcome {
        self.runner.resume(&self.agent, paused.run_id()).await.unwrap()
    }
}

/// The content that the model was told of its first call, and whether it is an error.
fn first_told(model: &ScriptedModel) -> (Content, bool) {
    let items = model.requests().pop().unwrap().items;
    let result = items.iter().find_map(|item| match &**item {
        Item::ToolResult { output, is_error, .. } => Some((output.clone(), *is_error)),
        _ => None,
    });
    result.unwrap()
}

// The gate.

#[tokio::test]
async fn a_predicate_is_asked_once_for_each_action_and_any_one_holds_the_batch() {
    for (holding, is_held) in [(None, false), (Some("click"), true), (Some("type"), true)] {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        let desk = desk(
            move |tool| {
                tool.needs_approval_when(move |context, action: Value| {
                    let holds = holding.is_some_and(|name| action["type"] == name);
                    seen.lock().unwrap().push((context.call_id, action));
                    async move { holds }
                })
            },
            [acts(), Reply::text("Done.")],
        );
        let outcome = desk.runner.run(&desk.agent, "go").await.unwrap();
        let id = || "call_1_0".to_owned();
        assert_eq!(*asked.lock().unwrap(), [(id(), click()), (id(), typing())]);
        assert_eq!((outcome.is_paused(), desk.paper.noted().is_empty()), (is_held, is_held), "{holding:?}");
    }
}

#[tokio::test]
async fn a_predicate_is_asked_about_the_one_action_of_the_older_form_too() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let desk = desk(
        move |tool| {
            tool.needs_approval_when(move |_, action: Value| {
                seen.lock().unwrap().push(action);
                async { true }
            })
        },
        [Reply::call("computer", json!({"action": click()})), Reply::text("Done.")],
    );
    let paused = desk.start().await;
    assert_eq!(*asked.lock().unwrap(), [click()]);
    desk.runner.approve(&paused.pauses()[0]).await.unwrap();
    assert_eq!(text_of(&desk.go_on(&paused).await), "Done.");
    assert_eq!(desk.paper.noted(), ["click 1 2", "screenshot"]);
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_screen_without_a_policy_needs_no_approval() {
    let desk = desk(|tool| tool, [acts(), Reply::text("Done.")]);
    assert_eq!(text_of(&desk.runner.run(&desk.agent, "go").await.unwrap()), "Done.");
    assert_eq!(desk.paper.noted(), DONE);
}

#[tokio::test]
async fn a_gated_batch_opens_one_pause_that_shows_every_action() {
    let desk = held_desk();
    let paused = desk.start().await;
    let pause = &paused.pauses()[0];
    assert_eq!((pause.pause.kind, arguments(&paused, 0)), (PauseKind::Approval, batch()));
    assert_eq!((pause.call.as_ref().unwrap().tool.as_str(), desk.model.calls()), ("computer", 1));
}

#[tokio::test]
async fn an_approved_batch_does_all_its_actions_and_gives_back_the_picture() {
    let desk = held_desk();
    let paused = desk.start().await;
    desk.runner.approve(&paused.pauses()[0]).await.unwrap();
    assert!(desk.paper.noted().is_empty(), "done when the run goes on, not by the decision itself");
    assert_eq!(text_of(&desk.go_on(&paused).await), "Done.");
    assert_eq!(desk.paper.noted(), DONE);
    let picture = Part::Image { media_type: "image/png".to_owned(), source: Source::Base64("cG5n".to_owned()) };
    assert_eq!(first_told(&desk.model), (Content::Parts(vec![picture]), false));
}

/// The placeholder and the words that the model is told in place of a picture.
fn assert_denied(model: &ScriptedModel, words: &str) {
    let (Content::Parts(parts), is_error) = first_told(model) else { panic!("parts expected") };
    let [Part::Image { media_type, source: Source::Base64(data) }, Part::Text(text)] = parts.as_slice() else {
        panic!("a picture and words expected: {parts:?}")
    };
    // One pixel: a PNG tells its width and height in bytes 16 to 24.
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).unwrap();
    assert_eq!(
        (media_type.as_str(), &bytes[1..4], &bytes[16..24]),
        ("image/png", &b"PNG"[..], &[0, 0, 0, 1, 0, 0, 0, 1][..])
    );
    assert_eq!((text.as_str(), is_error), (words, true));
}

#[tokio::test]
async fn a_denied_batch_is_told_as_a_placeholder_picture_with_the_words_and_marked_as_an_error() {
    for words in [None, Some("not on this page")] {
        let desk = held_desk();
        let paused = desk.start().await;
        let denial = desk.runner.deny(&paused.pauses()[0]);
        words.into_iter().fold(denial, DecideRequest::message).await.unwrap();
        assert_eq!(text_of(&desk.go_on(&paused).await), "Done.");
        assert_denied(&desk.model, words.unwrap_or(DENIED_TEXT));
        assert!(desk.paper.noted().is_empty(), "no picture is taken either");
    }
}

/// A formatter that counts how often it is asked.
fn counting(asked: &Effects) -> DenialFormatter {
    let asked = asked.clone();
    DenialFormatter::new(move |_| {
        asked.happen();
        async { Ok(Some("ask the owner of the screen".to_owned())) }
    })
}

#[tokio::test]
async fn a_formatter_finds_the_words_for_a_denied_batch() {
    let (desk, asked) = (held_desk(), Effects::default());
    let paused = desk.start().await;
    desk.runner.deny(&paused.pauses()[0]).await.unwrap();
    let resume = desk.runner.resume(&desk.agent, paused.run_id()).denial_formatter(counting(&asked));
    assert_eq!(text_of(&resume.await.unwrap()), "Done.");
    assert_denied(&desk.model, "ask the owner of the screen");
    assert_eq!((asked.count(), desk.paper.noted().len()), (1, 0));
}

// When something else goes wrong meanwhile.

#[tokio::test]
async fn a_run_that_is_cancelled_while_the_predicate_is_asked_neither_acts_nor_asks() {
    for holds in [true, false] {
        let canceller: Arc<OnceLock<Runner>> = Arc::default();
        let shared = canceller.clone();
        let paper = Paper::default();
        let screen = ComputerTool::builder(paper.clone()).needs_approval_when(move |context: ToolContext, _| {
            let runner = shared.get().unwrap().clone();
            async move {
                // The second action's predicate finds the run cancelled already.
                let _ = runner.cancel(context.run, ActorId::local(), "enough").await;
                holds
            }
        });
        let deleted = Effects::default();
        let agent = agent("Ops", [gated(&deleted), screen.build().unwrap()]);
        let model = ScriptedModel::new([Reply::call("delete", json!({"path": "a"})), acts(), Reply::text("Done.")]);
        let runner = Runner::in_memory(model);
        canceller.set(runner.clone()).ok().unwrap();
        let paused = runner.run(&agent, "go").await.unwrap();
        runner.approve(&paused.pauses()[0]).await.unwrap();
        let ended = runner.resume(&agent, paused.run_id()).await.unwrap();
        assert!(matches!(ended, RunOutcome::Cancelled { .. }), "{holds}: {ended:?}");
        assert_eq!((paper.noted().len(), deleted.count()), (0, 1), "{holds}");
        let run = runner.read(paused.run_id()).await.unwrap();
        assert_eq!(run.open_pauses(), [], "{holds}");
    }
}

#[tokio::test]
async fn a_sibling_that_fails_changes_nothing_about_a_batch_held_or_not() {
    // There a failing sibling cancels the others; here each outcome stands on its own (rule 8).
    for is_held in [true, false] {
        let paper = Paper::default();
        let screen = ComputerTool::builder(paper.clone()).needs_approval_when(move |_, _| async move { is_held });
        let boom = Tool::builder("boom").runner(Fails).build().unwrap();
        let agent = agent("Ops", [boom, screen.build().unwrap()]);
        let model = ScriptedModel::new([acts().and_call("boom", json!({})), Reply::text("Done.")]);
        let runner = Runner::in_memory(model.clone());
        let mut outcome = runner.run(&agent, "go").await.unwrap();
        assert_eq!((outcome.pauses().len(), paper.noted().is_empty()), (usize::from(is_held), is_held));
        if let [pause] = outcome.pauses() {
            runner.approve(pause).await.unwrap();
            outcome = runner.resume(&agent, outcome.run_id()).await.unwrap();
        }
        assert_eq!((text_of(&outcome).as_str(), paper.noted()), ("Done.", DONE.map(str::to_owned).to_vec()));
        assert_eq!(results(&model), ["[image image/png]", "it broke"]);
    }
}

/// A tool that always fails.
struct Fails;

#[async_trait::async_trait]
impl RunTool for Fails {
    async fn run(&self, _: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        Err(ToolFailure::new("it broke"))
    }
}

#[tokio::test]
async fn a_formatter_is_not_asked_about_a_denied_batch_of_a_cancelled_run() {
    let (desk, asked) = (held_desk(), Effects::default());
    let paused = desk.start().await;
    desk.runner.deny(&paused.pauses()[0]).await.unwrap();
    desk.runner.cancel(paused.run_id(), ActorId::local(), "enough").await.unwrap();
    let resume = desk.runner.resume(&desk.agent, paused.run_id()).denial_formatter(counting(&asked));
    assert!(matches!(resume.await.unwrap(), RunOutcome::Cancelled { .. }));
    assert_eq!((asked.count(), desk.paper.noted().len(), desk.model.calls()), (0, 0, 1));
}

#[tokio::test]
async fn a_predicate_that_fails_for_one_action_is_still_asked_about_the_others_and_holds_the_batch() {
    // There the run fails; here what cannot be looked at is shown to a person, who is told why.
    let [error, panic] = ["no such page", "it panicked"].map(|why| format!("the approval rule failed: {why}"));
    let failures = [(&error, false, 0), (&error, false, 2), (&panic, true, 0), (&panic, true, 2)];
    for (reason, panics, failing) in failures {
        let clicks = [0, 1, 2].map(|x| json!({"type": "click", "x": x, "y": 2}));
        let (begun, ended) = (Effects::default(), Effects::default());
        let (begins, ends) = (begun.clone(), ended.clone());
        let desk = desk(
            move |tool| {
                tool.needs_approval_when(move |_, action: Value| {
                    begins.happen();
                    let ends = ends.clone();
                    async move {
                        if action["x"] == failing {
                            assert!(!panics, "a predicate of a test panics on purpose");
                            return Err("no such page");
                        }
                        for _ in 0..5 {
                            tokio::task::yield_now().await;
                        }
                        ends.happen();
                        Ok(false)
                    }
                })
            },
            [Reply::call("computer", json!({ "actions": clicks })), Reply::text("Done.")],
        );
        let paused = desk.start().await;
        assert_eq!((begun.count(), ended.count()), (3, 2), "{reason}");
        assert_eq!(paused.pauses()[0].pause.reason.as_ref(), Some(reason));
    }
}

// Later, and elsewhere.

#[tokio::test]
async fn an_approved_batch_is_done_by_whoever_goes_on_with_the_state() {
    let desk = held_desk();
    let paused = desk.start().await;
    let mut state = RunState::from_json(&desk.agent, &saved(&desk.runner, &desk.agent, &paused).await).unwrap();
    assert_eq!(state.pauses(), paused.pauses(), "restored with all its actions");
    state.approve(&state.pauses()[0]).unwrap();
    // Decided, not done, and kept once more.
    let state = RunState::from_json(&desk.agent, &state.to_json()).unwrap();
    assert!(desk.paper.noted().is_empty());
    let done = Runner::in_memory(desk.model.clone()).resume_state(&desk.agent, state).await.unwrap();
    assert_eq!((text_of(&done).as_str(), desk.paper.noted()), ("Done.", DONE.map(str::to_owned).to_vec()));
}

#[tokio::test]
async fn batches_that_wait_are_restored_as_they_were_in_both_forms() {
    let replies = [
        Reply::calls([
            ("computer", batch()),
            ("computer", json!({"action": click()})),
            ("computer", json!({"action": typing()})),
        ]),
        Reply::text("Done."),
    ];
    let desk = desk(|tool| tool.needs_approval(true), replies);
    let paused = desk.runner.run(&desk.agent, "go").await.unwrap();
    let mut state = RunState::from_json(&desk.agent, &saved(&desk.runner, &desk.agent, &paused).await).unwrap();
    let shown: Vec<Value> =
        state.pauses().iter().map(|pause| pause.call.as_ref().unwrap().arguments.to_value()).collect();
    assert_eq!(shown, [batch(), json!({"action": click()}), json!({"action": typing()})]);
    for pause in state.pauses().iter().rev() {
        state.approve(pause).unwrap();
    }
    let done = Runner::in_memory(desk.model.clone()).resume_state(&desk.agent, state).await.unwrap();
    assert_eq!(text_of(&done), "Done.");
    let expected = ["click 1 2", "type hello", "screenshot", "click 1 2", "screenshot", "type hello", "screenshot"];
    assert_eq!(desk.paper.noted(), expected, "queued in the model's order");
}

#[tokio::test]
async fn a_batch_that_was_done_is_not_done_again_when_its_siblings_are_decided() {
    let paper = Paper::default();
    let deleted = Effects::default();
    let screen = ComputerTool::builder(paper.clone()).needs_approval(true).build().unwrap();
    let agent = agent("Ops", [gated(&deleted), screen]);
    let model = ScriptedModel::new([acts().and_call("delete", json!({"path": "a"})), Reply::text("Done.")]);
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&agent, "go").await.unwrap();
    runner.approve(&paused.pauses()[0]).await.unwrap();
    let paused = runner.resume(&agent, paused.run_id()).await.unwrap();
    assert_eq!((paper.noted().len(), paused.pauses().len(), model.calls()), (3, 1, 1));
    // Nothing new to do, here and elsewhere.
    let paused = runner.resume(&agent, paused.run_id()).await.unwrap();
    let mut state = RunState::from_json(&agent, &saved(&runner, &agent, &paused).await).unwrap();
    state.approve(&paused.pauses()[0]).unwrap();
    let done = Runner::in_memory(model.clone()).resume_state(&agent, state).await.unwrap();
    assert_eq!((text_of(&done).as_str(), deleted.count()), ("Done.", 1));
    assert_eq!(paper.noted(), DONE);
}

// The tool's two names.

const NAMES: [[&str; 2]; 2] = [["computer_use_preview", "computer"], ["computer", "computer_use_preview"]];

fn screen(name: &str, paper: &Paper) -> Tool {
    let builder = match name {
        "computer" => ComputerTool::builder(paper.clone()),
        _ => ComputerTool::preview_builder(paper.clone()),
    };
    builder.needs_approval(true).build().unwrap()
}

#[tokio::test]
async fn a_standing_decision_under_one_name_of_the_screen_holds_under_the_other() {
    for ([first, second], approves) in NAMES.into_iter().flat_map(|names| [(names, true), (names, false)]) {
        let paper = Paper::default();
        let relay = relay(screen(first, &paper), screen(second, &paper));
        let model = ScriptedModel::new([
            Reply::call(first, batch()),
            Reply::call("transfer_to_second", json!({})),
            Reply::call(second, batch()),
            Reply::text("Done."),
        ]);
        let runner = Runner::in_memory(model.clone());
        let paused = runner.run(&relay, "go").await.unwrap();
        let mut state = runner.state(&relay, paused.run_id()).await.unwrap();
        let always = Always::in_run().any_agent();
        let decision = if approves { Decision::Approve } else { Decision::deny("not here") };
        state.decide(&paused.pauses()[0], decision, Some(always)).unwrap();
        let state = RunState::from_json(&relay, &state.to_json()).unwrap();
        let done = Runner::in_memory(model).resume_state(&relay, state).await.unwrap();
        assert_eq!(text_of(&done), "Done.", "{first}, then {second}");
        assert_eq!(paper.noted().len(), if approves { 6 } else { 0 });
    }
}

#[tokio::test]
async fn a_batch_that_waits_under_one_name_of_the_screen_is_done_under_the_other() {
    for ([then, now], decided) in NAMES.into_iter().flat_map(|names| [(names, true), (names, false)]) {
        let paper = Paper::default();
        let (old, new) = (agent("Ops", [screen(then, &paper)]), agent("Ops", [screen(now, &paper)]));
        let model = ScriptedModel::new([Reply::call(then, batch()), Reply::text("Done.")]);
        let runner = Runner::in_memory(model.clone());
        let paused = runner.run(&old, "go").await.unwrap();
        let mut state = runner.state(&old, paused.run_id()).await.unwrap();
        if decided {
            state.approve(&paused.pauses()[0]).unwrap();
        }
        let mut state = RunState::from_json(&new, &state.to_json()).unwrap();
        if !decided {
            assert_eq!(state.pauses(), paused.pauses());
            state.approve(&paused.pauses()[0]).unwrap();
        }
        let done = Runner::in_memory(model).resume_state(&new, state).await.unwrap();
        assert_eq!((text_of(&done).as_str(), paper.noted()), ("Done.", DONE.map(str::to_owned).to_vec()), "{then}");
    }
}

#[tokio::test]
async fn a_screen_under_its_exact_name_comes_before_one_under_the_other() {
    for [name, other] in NAMES {
        let (paper, other_paper) = (Paper::default(), Paper::default());
        // Whichever stands first in the list.
        for tools in
            [[screen(name, &paper), screen(other, &other_paper)], [screen(other, &other_paper), screen(name, &paper)]]
        {
            paper.0.lock().unwrap().clear();
            let agent = agent("Ops", tools);
            let model = ScriptedModel::new([Reply::call(name, batch()), Reply::text("Done.")]);
            let runner = Runner::in_memory(model.clone());
            let paused = runner.run(&agent, "go").await.unwrap();
            let mut state = RunState::from_json(&agent, &saved(&runner, &agent, &paused).await).unwrap();
            state.approve(&paused.pauses()[0]).unwrap();
            Runner::in_memory(model).resume_state(&agent, state).await.unwrap();
            assert_eq!((paper.noted().len(), other_paper.noted().len()), (3, 0), "{name}");
        }
    }
}

#[tokio::test]
async fn a_function_that_bears_the_screens_other_name_is_no_screen() {
    let (paper, ran) = (Paper::default(), Effects::default());
    let old = agent("Ops", [screen("computer_use_preview", &paper)]);
    let function = counted("computer_use_preview", &ran).build().unwrap();
    let new = agent("Ops", [screen("computer", &paper), function]);
    let runner = Runner::in_memory(ScriptedModel::new([Reply::call("computer_use_preview", batch())]));
    let paused = runner.run(&old, "go").await.unwrap();
    runner.approve(&paused.pauses()[0]).await.unwrap();
    let json = saved(&runner, &old, &paused).await;
    assert_eq!(RunState::from_json(&new, &json).unwrap_err().code(), "tool_missing");
    assert_eq!(runner.resume(&new, paused.run_id()).await.unwrap_err().code(), "tool_missing");
    assert_eq!((paper.noted().len(), ran.count()), (0, 0));
}
