//! Group E: approval of shell commands and of changes to files, and the order in which they are done.

use std::sync::{Arc, Mutex};

use crate::common::journal::*;
use crate::common::*;
use holdpoint::tools::apply_patch::{ApplyPatchTool, PatchEditor, PatchOperation};
use holdpoint::tools::shell::{CommandOutcome, CommandOutput, ShellAction, ShellExecutor, ShellTool};
use holdpoint::*;
use serde_json::{Value, json};

/// A machine of which only is noted what is done to it.
#[derive(Clone, Default)]
struct Machine(Arc<Mutex<Vec<String>>>);

impl Machine {
    /// Notes a begin and an end, with time for others to come in between.
    async fn work(&self, what: &str) {
        self.0.lock().unwrap().push(format!("begin {what}"));
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        self.0.lock().unwrap().push(format!("end {what}"));
    }

    /// What was done from begin to end before anything else began; panics where two overlap.
    fn done(&self) -> Vec<String> {
        let noted = self.0.lock().unwrap().clone();
        let pair = |pair: &[String]| match pair {
            [begin, end] if begin[6..] == end[4..] => end[4..].to_owned(),
            _ => panic!("they overlap: {noted:?}"),
        };
        noted.chunks(2).map(pair).collect()
    }
}

#[async_trait::async_trait]
impl ShellExecutor for Machine {
    async fn execute(&self, _: &ToolContext, action: ShellAction) -> Result<Vec<CommandOutput>, ToolFailure> {
        let mut outputs = Vec::new();
        for command in action.commands {
            self.work(&command).await;
            let outcome = CommandOutcome::Exit { exit_code: Some(0) };
            outputs.push(CommandOutput { stdout: command, stderr: String::new(), outcome });
        }
        Ok(outputs)
    }
}

#[async_trait::async_trait]
impl PatchEditor for Machine {
    async fn apply(&self, _: &ToolContext, operations: Vec<PatchOperation>) -> Result<String, String> {
        let paths: Vec<&str> = operations.iter().map(PatchOperation::path).collect();
        self.work(&format!("patch {}", paths.join(" "))).await;
        Ok("patched".to_owned())
    }
}

/// A tool of this group with one call of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Family {
    Shell,
    Patch,
}

const FAMILIES: [Family; 2] = [Family::Shell, Family::Patch];

impl Family {
    fn tool(self, machine: &Machine) -> ToolBuilder {
        match self {
            Self::Shell => ShellTool::builder(machine.clone()),
            Self::Patch => ApplyPatchTool::builder(machine.clone()),
        }
    }

    fn call(self) -> (&'static str, Value) {
        match self {
            Self::Shell => ("shell", json!({"commands": ["rm -r build"]})),
            Self::Patch => ("apply_patch", json!({"operation": {"type": "delete_file", "path": "a.txt"}})),
        }
    }

    /// What the call does.
    fn does(self) -> &'static str {
        match self {
            Self::Shell => "rm -r build",
            Self::Patch => "patch a.txt",
        }
    }

    /// What the model is told when the call was done.
    fn result(self) -> String {
        let told = match self {
            Self::Shell => {
                json!({"output": [{"stdout": "rm -r build", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]})
            }
            Self::Patch => json!({"status": "completed", "output": "patched"}),
        };
        CanonicalJson::from_serialize(&told).unwrap().as_str().to_owned()
    }

    /// What the model is told when the call was denied with these words.
    fn denial(self, words: &str) -> String {
        let told = match self {
            Self::Shell => {
                json!({"output": [{"stdout": "", "stderr": words, "outcome": {"type": "exit", "exit_code": null}}]})
            }
            Self::Patch => json!({"status": "failed", "output": words}),
        };
        CanonicalJson::from_serialize(&told).unwrap().as_str().to_owned()
    }
}

struct Desk {
    family: Family,
    runner: Runner,
    model: ScriptedModel,
    agent: Agent,
    machine: Machine,
}

/// One agent with one tool of this family, which is set up further, and a model that calls it once.
fn desk(family: Family, set_up: impl FnOnce(ToolBuilder) -> ToolBuilder) -> Desk {
    let machine = Machine::default();
    let tool = set_up(family.tool(&machine)).build().unwrap();
    let model = ScriptedModel::new([Reply::calls([family.call()]), Reply::text("Done.")]);
    Desk { family, runner: Runner::in_memory(model.clone()), model, agent: agent("Ops", [tool]), machine }
}

/// The same, always held.
fn held_desk(family: Family) -> Desk {
    desk(family, |tool| tool.needs_approval(true))
}

impl Desk {
    async fn start(&self) -> RunOutcome {
        let paused = self.runner.run(&self.agent, "go").await.unwrap();
        assert_eq!((paused.pauses().len(), self.machine.done().len()), (1, 0), "{paused:?}");
        paused
    }

    async fn go_on(&self, paused: &RunOutcome) {
        let done = self.runner.resume(&self.agent, paused.run_id()).await.unwrap();
        assert_eq!(text_of(&done), "Done.", "{:?}", self.family);
    }

    /// Runs to the end without a pause.
    async fn run_through(&self, formatter: Option<DenialFormatter>) -> RunId {
        let run = self.runner.run(&self.agent, "go");
        let done = formatter.into_iter().fold(run, RunRequest::denial_formatter).await.unwrap();
        assert_eq!(text_of(&done), "Done.", "{:?}", self.family);
        done.run_id()
    }

    fn assert_done(&self) {
        assert_eq!(self.machine.done(), [self.family.does()]);
        assert_eq!(told(&self.model.requests()[1].items), [("call_1_0".to_owned(), self.family.result(), false)]);
    }

    fn assert_denied(&self, words: &str) {
        assert!(self.machine.done().is_empty());
        let expected = ("call_1_0".to_owned(), self.family.denial(words), true);
        assert_eq!(told(&self.model.requests()[1].items), [expected]);
    }
}

fn says(text: &'static str) -> DenialFormatter {
    DenialFormatter::new(move |_| async move { Ok(Some(text.to_owned())) })
}

#[tokio::test]
async fn a_gated_command_or_patch_waits_for_a_person_and_then_is_done_once() {
    for family in FAMILIES {
        let desk = held_desk(family);
        let paused = desk.start().await;
        let pause = &paused.pauses()[0];
        let call = pause.call.as_ref().unwrap();
        let (tool, arguments) = family.call();
        assert_eq!((call.tool.as_str(), call.arguments.to_value()), (tool, arguments));
        assert_eq!((pause.pause.kind, desk.model.calls()), (PauseKind::Approval, 1));
        desk.runner.approve(pause).await.unwrap();
        desk.go_on(&paused).await;
        desk.assert_done();
    }
}

#[tokio::test]
async fn a_predicate_is_not_asked_again_about_an_approved_command_or_patch() {
    for (family, by_state) in FAMILIES.into_iter().flat_map(|family| [(family, false), (family, true)]) {
        let asked = Effects::default();
        let counts = asked.clone();
        let desk = desk(family, move |tool| {
            tool.needs_approval_when(move |_, _| {
                // A second answer would be another one, and would count.
                let holds = counts.happen() == 1;
                async move { holds }
            })
        });
        let paused = desk.start().await;
        if by_state {
            let mut state = RunState::from_json(&desk.agent, &saved(&desk.runner, &desk.agent, &paused).await).unwrap();
            state.approve(&paused.pauses()[0]).unwrap();
            let elsewhere = Runner::in_memory(desk.model.clone());
            assert_eq!(text_of(&elsewhere.resume_state(&desk.agent, state).await.unwrap()), "Done.");
        } else {
            desk.runner.approve(&paused.pauses()[0]).await.unwrap();
            desk.go_on(&paused).await;
        }
        desk.assert_done();
        assert_eq!(asked.count(), 1, "{family:?}");
    }
}

#[tokio::test]
async fn a_decider_that_approves_a_command_or_patch_has_it_done_without_a_pause() {
    for family in FAMILIES {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        let desk = desk(family, move |tool| {
            tool.needs_approval(true).on_approval("night watch", move |context, arguments| {
                kept.lock().unwrap().push((context.call_id, arguments.to_value()));
                async { AutoDecision::Approve }
            })
        });
        let run = desk.run_through(None).await;
        desk.assert_done();
        assert_eq!(*seen.lock().unwrap(), [("call_1_0".to_owned(), family.call().1)]);
        let events = events(&desk.runner, run).await;
        let allowed = events.iter().find(|event| event.name() == "call.allowed").unwrap();
        let expected = json!({"call.allowed": {"call": "1.0", "by": {"decider": "night watch"}}});
        assert_eq!(serde_json::to_value(allowed).unwrap(), expected);
        assert!(!events.iter().any(|event| event.name() == "pause.opened"));
    }
}

#[tokio::test]
async fn a_decider_is_asked_only_about_what_needs_approval_and_may_leave_it_to_a_person() {
    for family in FAMILIES {
        let asked = Effects::default();
        let abstains = |counts: Effects| {
            move |_: ToolContext, _: CanonicalJson| {
                counts.happen();
                async { AutoDecision::Abstain }
            }
        };
        let free = desk(family, |tool| tool.on_approval("night watch", abstains(asked.clone())));
        free.run_through(None).await;
        free.assert_done();
        assert_eq!(asked.count(), 0);
        let held = desk(family, |tool| tool.needs_approval(true).on_approval("night watch", abstains(asked.clone())));
        let paused = held.start().await;
        assert_eq!(asked.count(), 1);
        held.runner.approve(&paused.pauses()[0]).await.unwrap();
        held.go_on(&paused).await;
        held.assert_done();
        assert_eq!(asked.count(), 1, "the person's decision stands; nobody is asked after it");
    }
}

/// A desk whose decider denies with this reason.
fn denying_desk(family: Family, reason: &'static str) -> Desk {
    desk(family, |tool| {
        tool.needs_approval(true)
            .on_approval("night watch", move |_, _| async move { AutoDecision::Deny(reason.to_owned()) })
    })
}

#[tokio::test]
async fn a_deciders_reason_is_what_the_model_is_told_in_the_tools_own_form() {
    for family in FAMILIES {
        let desk = denying_desk(family, "not in production");
        desk.run_through(None).await;
        desk.assert_denied("not in production");
    }
}

#[tokio::test]
async fn an_empty_reason_of_a_decider_leaves_the_default_text() {
    for family in FAMILIES {
        let desk = denying_desk(family, "");
        desk.run_through(None).await;
        desk.assert_denied(DENIED_TEXT);
    }
}

#[tokio::test]
async fn a_deciders_reason_beats_the_formatter_and_an_empty_one_does_not() {
    for family in FAMILIES {
        for (reason, expected) in [("not in production", "not in production"), ("", "the formatter's words")] {
            let desk = denying_desk(family, reason);
            desk.run_through(Some(says("the formatter's words"))).await;
            desk.assert_denied(expected);
        }
    }
}

#[tokio::test]
async fn a_denied_command_has_no_exit_code_and_a_denied_patch_failed() {
    for (family, words) in FAMILIES.into_iter().flat_map(|family| [(family, None), (family, Some("keep it"))]) {
        let desk = held_desk(family);
        let paused = desk.start().await;
        let denial = desk.runner.deny(&paused.pauses()[0]);
        words.into_iter().fold(denial, DecideRequest::message).await.unwrap();
        desk.go_on(&paused).await;
        desk.assert_denied(words.unwrap_or(DENIED_TEXT));
    }
}

#[tokio::test]
async fn a_formatter_finds_the_words_for_a_denied_command_or_patch() {
    for family in FAMILIES {
        let desk = held_desk(family);
        let paused = desk.start().await;
        desk.runner.deny(&paused.pauses()[0]).await.unwrap();
        let resume = desk.runner.resume(&desk.agent, paused.run_id()).denial_formatter(says("ask ops first"));
        assert_eq!(text_of(&resume.await.unwrap()), "Done.");
        desk.assert_denied("ask ops first");
    }
}

#[tokio::test]
async fn a_constant_policy_and_a_predicate_that_says_so_are_alike_for_commands_and_patches() {
    for (family, holds) in FAMILIES.into_iter().flat_map(|family| [(family, true), (family, false)]) {
        let constant = desk(family, |tool| tool.needs_approval(holds));
        let predicate = desk(family, |tool| tool.needs_approval_when(move |_, _| async move { holds }));
        for desk in [constant, predicate] {
            let outcome = desk.runner.run(&desk.agent, "go").await.unwrap();
            assert_eq!((outcome.is_paused(), desk.machine.done().len()), (holds, usize::from(!holds)), "{family:?}");
        }
    }
}

// Their order.

/// An agent with both tools, and a model that says these calls in one reply.
fn both(is_held: bool, calls: impl IntoIterator<Item = (&'static str, Value)>) -> (Runner, Agent, Machine) {
    let machine = Machine::default();
    let tools = FAMILIES.map(|family| family.tool(&machine).needs_approval(is_held).build().unwrap());
    let model = ScriptedModel::new([Reply::calls(calls), Reply::text("Done.")]);
    (Runner::in_memory(model), agent("Ops", tools), machine)
}

fn patch(path: &str) -> (&'static str, Value) {
    ("apply_patch", json!({"operation": {"type": "delete_file", "path": path}}))
}

fn shell(command: &str) -> (&'static str, Value) {
    ("shell", json!({"commands": [command]}))
}

#[tokio::test]
async fn commands_and_patches_of_a_reply_are_done_one_after_the_other_in_the_models_order() {
    let orders = [
        ([shell("make"), shell("test"), patch("a")], ["make", "test", "patch a"]),
        ([patch("a"), shell("make"), patch("b")], ["patch a", "make", "patch b"]),
    ];
    for (calls, expected) in orders {
        let (runner, agent, machine) = both(false, calls);
        assert_eq!(text_of(&runner.run(&agent, "go").await.unwrap()), "Done.");
        assert_eq!(machine.done(), expected);
    }
}

#[tokio::test]
async fn the_models_order_stands_whatever_order_people_decide_in() {
    let (runner, agent, machine) = both(true, [patch("a"), shell("make"), patch("b")]);
    let paused = runner.run(&agent, "go").await.unwrap();
    for pause in paused.pauses().iter().rev() {
        runner.approve(pause).await.unwrap();
    }
    assert_eq!(text_of(&runner.resume(&agent, paused.run_id()).await.unwrap()), "Done.");
    assert_eq!(machine.done(), ["patch a", "make", "patch b"]);
}

/// The same with a real shell and real files: each call needs what the one before it did.
#[cfg(unix)]
#[tokio::test]
async fn a_patch_finds_what_the_command_before_it_wrote_and_the_other_way_round() {
    use holdpoint::tools::apply_patch::FolderEditor;
    use holdpoint::tools::shell::LocalShell;
    let folder = tempfile::tempdir().unwrap();
    let shell_tool = ShellTool::builder(LocalShell::new(folder.path()).unwrap()).needs_approval(true).build().unwrap();
    let patch_tool =
        ApplyPatchTool::builder(FolderEditor::new(folder.path()).unwrap()).needs_approval(true).build().unwrap();
    let agent = agent("Ops", [shell_tool, patch_tool]);
    let update = json!({"operation": {"type": "update_file", "path": "a.txt", "diff": "@@\n-one\n+two\n"}});
    let calls = [shell("echo one > a.txt"), ("apply_patch", update), shell("cat a.txt")];
    let model = ScriptedModel::new([Reply::calls(calls), Reply::text("Done.")]);
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&agent, "go").await.unwrap();
    assert!(!folder.path().join("a.txt").exists());
    for pause in paused.pauses() {
        runner.approve(pause).await.unwrap();
    }
    assert_eq!(text_of(&runner.resume(&agent, paused.run_id()).await.unwrap()), "Done.");
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "two\n");
    let told = told(&model.requests()[1].items);
    assert!(told[2].1.contains(r#""stdout":"two\n""#), "{told:?}");
}

#[tokio::test]
async fn a_command_or_patch_without_an_id_refuses_the_whole_reply() {
    // There the order is then kept by item ids; we do nothing that cannot be told from another call.
    for (first, second) in [("", "p"), ("s", ""), ("", "")] {
        let machine = Machine::default();
        let tools = FAMILIES.map(|family| family.tool(&machine).build().unwrap());
        let (make, remove) = (shell("make"), patch("a"));
        let reply = Reply::empty().and_call_as(first, make.0, make.1).and_call_as(second, remove.0, remove.1);
        let runner = Runner::in_memory(ScriptedModel::new([reply, Reply::text("Done.")]));
        let done = runner.run(&agent("Ops", tools), "go").await.unwrap();
        assert_eq!(refused_replies(&runner, done.run_id()).await, ["call_id_empty"]);
        assert_eq!((text_of(&done).as_str(), machine.done().len()), ("Done.", 0));
    }
}

#[tokio::test]
async fn a_command_and_a_patch_have_ids_of_their_own() {
    for (ids, expected) in [(["s", "p"], vec!["make", "patch a"]), (["same", "same"], vec![])] {
        let machine = Machine::default();
        let tools = FAMILIES.map(|family| family.tool(&machine).build().unwrap());
        let (make, remove) = (shell("make"), patch("a"));
        let reply = Reply::empty().and_call_as(ids[0], make.0, make.1).and_call_as(ids[1], remove.0, remove.1);
        let model = ScriptedModel::new([reply, Reply::text("Done.")]);
        let runner = Runner::in_memory(model.clone());
        let done = runner.run(&agent("Ops", tools), "go").await.unwrap();
        assert_eq!(machine.done(), expected);
        let told: Vec<String> = told(&model.requests()[1].items).into_iter().map(|(id, ..)| id).collect();
        let refused = refused_replies(&runner, done.run_id()).await;
        match expected.is_empty() {
            true => assert_eq!((told.len(), refused), (0, vec!["call_id_reused".to_owned()])),
            false => assert_eq!((told, refused), (ids.map(str::to_owned).to_vec(), vec![])),
        }
    }
}
