//! Every state meets every input: each pair is handled or refused with a code, and none panics.
//!
//! The table says which inputs a state takes in at least one of their forms. Each pair is tried in many forms: with every
//! call, frame and pause of the run, and with some that do not exist.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::{World, actor, brief, play, run_id, session};
use holdpoint_core::Refusal;
use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::ids::{CallPath, FramePath, PauseId, RuleId};
use holdpoint_core::input::{Confirmation, Input, ReplyInput, StartInput, SupersedeInput};
use holdpoint_core::json::{CanonicalJson, Digest};
use holdpoint_core::message::Usage;
use holdpoint_core::policy::{GuardrailPhase, GuardrailResult, NewRule, PauseTerms, Screening, Verdict};
use holdpoint_core::tool::{CallRecord, Effect, Outcome, ToolKind};

/// A state's name and how to get there.
const STATES: &[(&str, &str)] = &[
    ("not started", ""),
    ("checking input", "given agent: checks input\n user: go"),
    ("awaiting model", "user: go"),
    ("awaiting model again", "user: go\n model: pay#a\n policy: allow\n tool 1.0: \"x\""),
    ("last model call", "given agent: turns 1\n user: go"),
    ("after a bad reply", "user: go\n model: pay#"),
    ("requested", "user: go\n model: pay & fetch"),
    ("held", "user: go\n model: pay & fetch\n policy: hold until +10m & hold"),
    ("held for two", "user: go\n model: pay\n policy: hold quorum 2\n bo: approve #1"),
    ("held for somebody else", "user: go\n model: pay\n policy: hold for bo"),
    ("overdue", "user: go\n model: pay\n policy: hold until +10m\n clock +10m"),
    ("allowed", "user: go\n model: pay\n policy: allow"),
    ("approved", "user: go\n model: pay\n policy: hold\n ana: always approve #1"),
    ("denied", "user: go\n model: pay\n policy: hold\n ana: deny #1"),
    ("started", "user: go\n model: pay\n policy: allow\n start"),
    ("started, repeatable", "given tool pay: idempotent\n user: go\n model: pay\n policy: allow\n start"),
    ("in doubt", "user: go\n model: pay\n policy: allow\n start\n crash"),
    (
        "asked",
        "given tool ask: question\n user: go\n model: ask {\"questions\": [{\"question\": \"A?\"}]}\n policy: hold",
    ),
    ("confirming", "user: go\n model asks until +10m: sure?"),
    ("checking output", "given agent: checks output\n user: go\n model says: done"),
    ("staged", "user: go\n model: pay\n policy: hold\n ana adds: more"),
    ("inner awaiting model", "given tool helper: agent\n user: go\n model: helper\n policy: allow"),
    ("inner checking input", "given tool helper: agent, checks input\n user: go\n model: helper\n policy: allow"),
    (
        "inner checking output",
        "given tool helper: agent, checks output\n user: go\n model: helper\n policy: allow\n model 1.0 says: done",
    ),
    (
        "inner held",
        "given tool helper: agent\n user: go\n model: helper\n policy: allow\n model 1.0: pay\n policy: hold",
    ),
    (
        "inner started",
        "given tool helper: agent\n user: go\n model: helper & pay\n policy: allow & hold\n model 1.0: pay\n policy: allow\n start",
    ),
    (
        "inner given up",
        "given tool helper: agent\n user: go\n model: helper & pay\n policy: allow & hold\n model 1.0: pay & sell
         policy: allow & skip\n start\n policy: halt \"no\"",
    ),
    ("handing off", "given tool to: handoff\n user: go\n model: to & pay\n policy: allow & hold"),
    ("done", "user: go\n model says: done"),
    ("failed", "user: go\n model: pay\n policy: hold\n fail: \"gone\""),
    ("cancelled", "user: go\n model: pay\n policy: hold\n cancel"),
    ("cancelled, call under way", "user: go\n model: pay & sell\n policy: allow & hold\n start\n cancel"),
    (
        "done with a rule",
        "user: go\n model: pay\n policy: hold\n ana: always deny #1 \"no\" for session\n model says: done",
    ),
];

/// Which inputs each state takes, by the first word or two of their names. What every state under way takes is left out:
/// a context, an agent, a cancellation, a failure, and (but for the last call) staged input.
const TAKEN: &[(&str, &str)] = &[
    ("not started", "start"),
    ("checking input", "input check, stage, supersession"),
    ("awaiting model", "reply, stage, supersession"),
    ("awaiting model again", "reply, stage, supersession"),
    ("last model call", "reply, stage, supersession"),
    ("after a bad reply", "reply, stage, supersession"),
    ("requested", "screening, stage, supersession"),
    ("held", "decision, decisions, stage, supersession"),
    ("held for two", "decision, decisions, stage, supersession"),
    ("held for somebody else", "stage, supersession"),
    ("overdue", "deadline, stage, supersession"),
    ("allowed", "start of calls, objection, second hold, stage, supersession"),
    ("approved", "start of calls, objection, second hold, decision, decisions, stage, supersession, rule's end"),
    ("denied", "words, decision, decisions, stage, supersession"),
    ("started", "outcome, orphaned, stage, supersession"),
    ("started, repeatable", "outcome, orphaned, stage, supersession"),
    ("in doubt", "decision, decisions, stage, supersession"),
    ("asked", "decision, decisions, stage, supersession"),
    ("confirming", "decision, decisions, stage, supersession"),
    ("checking output", "output check, stage, supersession"),
    ("staged", "decision, decisions, stage, supersession"),
    ("inner awaiting model", "reply, stage, supersession"),
    ("inner checking input", "input check, stage, supersession"),
    ("inner checking output", "output check, stage, supersession"),
    ("inner held", "decision, decisions, stage, supersession"),
    ("inner started", "outcome, orphaned, decision, decisions, stage, supersession"),
    ("inner given up", "outcome, orphaned, decision, decisions, stage, supersession"),
    ("handing off", "objection, second hold, decision, decisions, stage, supersession"),
    ("done", ""),
    ("failed", ""),
    ("cancelled", ""),
    ("cancelled, call under way", "outcome"),
    ("done with a rule", "decision, decisions, rule's end"),
];

#[test]
fn every_state_takes_or_refuses_every_input() {
    for ((name, script), (expected_name, expected)) in STATES.iter().zip(TAKEN) {
        assert_eq!(name, expected_name);
        let world = play(script);
        let inputs = inputs(&world);
        assert_eq!(inputs.keys().len(), COLUMNS.len(), "every kind of input is tried");
        let is_under_way = world.run.session().is_some() && world.run.end().is_none();
        let taken: Vec<&str> = COLUMNS
            .iter()
            .filter(|column| inputs[*column].iter().map(|input| is_taken(&world, input)).fold(false, |a, b| a | b))
            .filter(|column| !(is_under_way && ALWAYS_TAKEN.contains(column)))
            .copied()
            .collect();
        let mut expected: Vec<&str> = expected.split(", ").filter(|column| !column.is_empty()).collect();
        expected.sort_by_key(|column| COLUMNS.iter().position(|known| known == column));
        assert_eq!(taken, expected, "{name}");
    }
}

#[test]
fn no_input_changes_how_a_run_ended() {
    for (name, script) in STATES {
        let world = play(script);
        for (column, inputs) in inputs(&world) {
            for input in inputs {
                let mut world = world.clone();
                let end = world.run.end().cloned();
                let answer = world.give(input);
                if let (Some(end), Ok(events)) = (end, answer) {
                    assert_eq!(world.run.end(), Some(&end), "{name}: {column}");
                    assert!(events.len() <= 1, "{name}: {column}");
                }
            }
        }
    }
}

/// The kinds of input, in the order of the machine's table.
const COLUMNS: &[&str] = &[
    "start",
    "input check",
    "reply",
    "screening",
    "start of calls",
    "objection",
    "outcome",
    "words",
    "orphaned",
    "second hold",
    "output check",
    "decision",
    "decisions",
    "deadline",
    "supersession",
    "stage",
    "rule's end",
    "context",
    "agent",
    "cancellation",
    "failure",
];

const ALWAYS_TAKEN: &[&str] = &["context", "agent", "cancellation", "failure"];

/// Exhaustive, so that a new input must be given a column.
fn column(input: &Input) -> &'static str {
    match input {
        Input::Start(_) => "start",
        Input::InputChecked { .. } => "input check",
        Input::ModelReply(_) => "reply",
        Input::Screened(_) => "screening",
        Input::StartCalls(_) => "start of calls",
        Input::Blocked { .. } => "objection",
        Input::CallEnded { .. } => "outcome",
        Input::Worded(_) => "words",
        Input::Orphaned(_) => "orphaned",
        Input::HoldAgain { .. } => "second hold",
        Input::OutputChecked { .. } => "output check",
        Input::Decision(_) => "decision",
        Input::Decisions(_) => "decisions",
        Input::Supersede(_) => "supersession",
        Input::DeadlinePassed(_) => "deadline",
        Input::Stage { .. } => "stage",
        Input::RevokeRule { .. } => "rule's end",
        Input::SetContext(_) => "context",
        Input::SetAgent { .. } => "agent",
        Input::Cancel { .. } => "cancellation",
        Input::Fail { .. } => "failure",
    }
}

/// Whether the input is taken. Giving it asserts all that must hold, and a refusal must have a documented code.
fn is_taken(world: &World, input: &Input) -> bool {
    match world.clone().give(input.clone()) {
        Ok(_) => true,
        Err(refusal) => {
            assert!(Refusal::CODES.contains(&refusal.code()), "{refusal}");
            assert!(!refusal.to_string().is_empty());
            false
        }
    }
}

/// Every kind of input in many forms.
fn inputs(world: &World) -> BTreeMap<&'static str, Vec<Input>> {
    let frames = frames(world);
    let calls = calls(world);
    let mut inputs = vec![
        Input::Start(StartInput {
            session: session(),
            agent: brief("Support"),
            content: "go".into(),
            context: None,
            turns_max: None,
            by: actor("ana"),
            holds_every_call: false,
        }),
        Input::Stage { content: "more".into(), by: actor("ana"), request: None },
        Input::Supersede(SupersedeInput { content: "more".into(), by: actor("ana"), via: None, request: None }),
        Input::SetContext(Some(CanonicalJson::parse("{}").unwrap())),
        Input::SetContext(None),
        Input::Cancel { by: actor("ana"), reason: String::new(), request: None },
        Input::Fail { code: "x".to_owned(), message: String::new() },
    ];
    for number in 0..4 {
        let rule = RuleId { run: world.run.id(), number };
        inputs.push(Input::RevokeRule { rule, by: actor("ana") });
        inputs.push(Input::RevokeRule { rule: RuleId { run: run_id(2), number }, by: actor("ana") });
    }
    for frame in &frames {
        inputs.extend(of_frame(world, frame));
    }
    for call in &calls {
        inputs.extend(of_call(world, call));
    }
    for number in 0..4 {
        for run in [world.run.id(), run_id(2)] {
            inputs.extend(of_pause(PauseId { run, number }));
        }
    }
    inputs.extend(together(&inputs));
    let twice = |call: &CallPath| vec![call.clone(), call.clone()];
    inputs.extend(calls.iter().map(|call| Input::StartCalls(twice(call))));
    inputs.extend(calls.iter().map(|call| Input::Orphaned(twice(call))));
    let mut by_column: BTreeMap<&'static str, Vec<Input>> = BTreeMap::new();
    for input in inputs {
        by_column.entry(column(&input)).or_default().push(input);
    }
    by_column
}

fn frames(world: &World) -> Vec<FramePath> {
    let unknown = ["1.0", "1.1", "9.9", "1.0/1.0"].map(|path| path.parse().unwrap());
    let mut frames: Vec<FramePath> = world.run.frames().map(|(path, _)| path.clone()).chain(unknown).collect();
    frames.push(FramePath::root());
    frames.sort();
    frames.dedup();
    frames
}

fn calls(world: &World) -> Vec<CallPath> {
    let of_frames = world.run.frames().flat_map(|(path, frame)| {
        let turn = frame.turn();
        let calls = turn.map_or(0, |turn| turn.calls.len() as u32);
        (0..calls).map(move |index| path.call(turn.map_or(1, |turn| turn.number), index))
    });
    let unknown = ["1.0", "1.7", "2.0", "9.9", "1.0/1.0", "1.0/1.9"].map(|path| path.parse().unwrap());
    let mut calls: Vec<CallPath> = of_frames.chain(unknown).chain([CallPath::root()]).collect();
    calls.sort();
    calls.dedup();
    calls
}

fn of_frame(world: &World, frame: &FramePath) -> Vec<Input> {
    let turn = world.run.frame(frame).map_or(1, |frame| frame.turns + 1);
    let passed = |phase| vec![GuardrailResult { name: "g".to_owned(), phase, objection: None }];
    let objected = |phase| vec![GuardrailResult { name: "g".to_owned(), phase, objection: Some("no".to_owned()) }];
    let reply = |text: Option<&str>, calls: Vec<CallRecord>, admitted: u32, asks: bool| {
        Input::ModelReply(ReplyInput {
            frame: frame.clone(),
            turn,
            admitted,
            thinking: None,
            text: text.map(str::to_owned),
            calls,
            asks_confirmation: asks.then_some(Confirmation { reason: None, expires_at: None }),
            usage: Usage::request(1, 1),
        })
    };
    vec![
        Input::InputChecked { frame: frame.clone(), results: Vec::new() },
        Input::InputChecked { frame: frame.clone(), results: passed(GuardrailPhase::Input) },
        Input::InputChecked { frame: frame.clone(), results: objected(GuardrailPhase::Input) },
        Input::OutputChecked { frame: frame.clone(), results: passed(GuardrailPhase::Output) },
        Input::OutputChecked { frame: frame.clone(), results: objected(GuardrailPhase::Output) },
        reply(Some("done"), Vec::new(), 0, false),
        reply(Some("done"), Vec::new(), 1, false),
        reply(Some("sure?"), Vec::new(), 0, true),
        reply(None, Vec::new(), 0, false),
        reply(None, vec![record("a", "pay")], 0, false),
        reply(None, vec![record("a", "pay"), record("a", "pay")], 0, true),
        reply(None, vec![record("a", "pay"), record("a", "sell")], 0, false),
        reply(None, vec![record("", "pay")], u32::MAX, false),
        reply(None, vec![record("", "pay")], 0, false),
        Input::SetAgent { frame: frame.clone(), agent: brief("Sales") },
    ]
}

fn record(call_id: &str, tool: &str) -> CallRecord {
    CallRecord {
        call_id: call_id.to_owned(),
        tool: tool.parse().unwrap(),
        kind: ToolKind::Function,
        effect: Effect::AtMostOnce,
        arguments: CanonicalJson::parse("{}").unwrap(),
        problem: None,
        repeats: None,
    }
}

fn of_call(world: &World, call: &CallPath) -> Vec<Input> {
    let screened =
        |verdict: Verdict| Input::Screened(vec![Screening { call: call.clone(), verdict, guardrails: Vec::new() }]);
    let mut verdicts = vec![
        Verdict::Allow,
        Verdict::Hold { reason: None, expires_at: None, terms: PauseTerms::default() },
        Verdict::Deny { by: actor("guard"), message: None },
        Verdict::Deny { by: actor("guard"), message: Some("no".to_owned()) },
        Verdict::Approved { by: actor("bot") },
        Verdict::Invalid("bad".to_owned()),
        Verdict::Halt { guardrail: "g".to_owned(), message: "no".to_owned() },
    ];
    verdicts.extend(world.run.rules().iter().cloned().map(Verdict::Ruled));
    let outcomes = [
        Outcome::Result("x".into()),
        Outcome::Failure("x".to_owned()),
        Outcome::Invalid("x".to_owned()),
        Outcome::Denied("x".to_owned()),
        Outcome::Responded("x".to_owned()),
        Outcome::Expired,
        Outcome::Withdrawn,
        Outcome::Abandoned,
    ];
    let ended = outcomes.into_iter().map(|outcome| Input::CallEnded { call: call.clone(), outcome });
    let again = Input::HoldAgain { calls: vec![call.clone()], reason: "changed".to_owned(), expires_at: None };
    verdicts
        .into_iter()
        .map(screened)
        .chain(ended)
        .chain([
            Input::StartCalls(vec![call.clone()]),
            Input::Blocked { call: call.clone(), results: Vec::new(), message: "no".to_owned() },
            Input::Worded(vec![(call.clone(), "no".to_owned())]),
            Input::Orphaned(vec![call.clone()]),
            again,
        ])
        .collect()
}

/// The decisions among these inputs, each alone and each with one about another pause.
fn together(inputs: &[Input]) -> Vec<Input> {
    let given: Vec<&DecisionInput> = inputs.iter().filter_map(decision).collect();
    let alone = given.iter().map(|one| vec![(*one).clone()]);
    let pairs = given.iter().zip(given.iter().rev()).map(|(one, other)| vec![(*one).clone(), (*other).clone()]);
    alone.chain(pairs).map(Input::Decisions).collect()
}

fn decision(input: &Input) -> Option<&DecisionInput> {
    match input {
        Input::Decision(decision) => Some(decision),
        _ => None,
    }
}

fn of_pause(pause: PauseId) -> Vec<Input> {
    let answers = serde_json::from_str(r#"{"A?": ["x"]}"#).unwrap();
    let decisions = [
        Decision::Approve,
        Decision::ApproveEdited { arguments: CanonicalJson::parse(r#"{"a":1}"#).unwrap() },
        Decision::ApproveEdited { arguments: CanonicalJson::parse("1").unwrap() },
        Decision::Deny { message: None },
        Decision::deny("no"),
        Decision::Respond { content: "x".to_owned() },
        Decision::Answer { answers },
        Decision::Happened { result: "x".into() },
        Decision::RunAgain,
        Decision::Abandon,
    ];
    let plain = decisions.into_iter().map(|decision| DecisionInput::new(pause, decision, actor("ana")));
    let decided = plain.flat_map(|input| {
        let rule = Some(NewRule { apply_to_open: true, ..NewRule::default() });
        let seen = Some(Digest::of(b"another view"));
        let note = Some("please".to_owned());
        [
            input.clone(),
            DecisionInput { rule, ..input.clone() },
            DecisionInput { note, ..input.clone() },
            DecisionInput { seen, ..input },
        ]
    });
    decided.map(Input::Decision).chain([Input::DeadlinePassed(pause)]).collect()
}
