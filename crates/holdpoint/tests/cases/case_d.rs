//! Group D: the gate in front of function tools. Policy, guardrails, and what the model is told of a denial.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::*;
use futures_util::future::BoxFuture;
use holdpoint::*;
use serde_json::{Value, json};

const USER: &str = "go";

fn once(reply: Reply) -> ScriptedModel {
    ScriptedModel::new([reply, Reply::text("done")])
}

fn delete_a() -> Reply {
    Reply::call("delete", json!({"path": "a"}))
}

/// A call as a provider might send it: the arguments need not be JSON.
fn raw(id: &str, tool: &str, arguments: &str) -> ProposedCall {
    ProposedCall { id: id.to_owned(), tool: tool.to_owned(), arguments: arguments.to_owned() }
}

/// A formatter that says the same to everybody.
fn says(text: &'static str) -> DenialFormatter {
    DenialFormatter::new(move |_| async move { Ok(Some(text.to_owned())) })
}

/// What the model was told of the calls so far.
async fn told_in(runner: &Runner, run: RunId) -> Vec<(String, String, bool)> {
    told(&runner.read(run).await.unwrap().items())
}

fn texts(told: &[(String, String, bool)]) -> Vec<&str> {
    told.iter().map(|(_, text, _)| text.as_str()).collect()
}

/// A tool that always fails.
struct Fails;

#[async_trait::async_trait]
impl RunTool for Fails {
    async fn run(&self, _: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        Err(ToolFailure::new("it broke"))
    }
}

/// A tool that panics.
struct Panics;

#[async_trait::async_trait]
impl RunTool for Panics {
    async fn run(&self, _: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        panic!("a tool of a test panics on purpose")
    }
}

fn failing(name: &str) -> ToolBuilder {
    Tool::builder(name).runner(Fails)
}

/// A guardrail that counts how often it looks.
fn guardrail(looks: &Effects, verdict: CallVerdict) -> ToolGuardrail {
    let looks = looks.clone();
    ToolGuardrail::new("limit", move |_, _| {
        looks.happen();
        let verdict = verdict.clone();
        async move { verdict }
    })
}

// The gate itself.

#[tokio::test]
async fn a_gated_call_that_nobody_decided_waits_instead_of_running() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let model = once(delete_a());
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&agent, USER).await.unwrap();
    let [pause] = outcome.pauses() else { panic!("one pause expected: {outcome:?}") };
    let call = pause.call.as_ref().unwrap();
    assert_eq!((pause.agent.as_str(), call.tool.as_str(), call.call_id.as_str()), ("Ops", "delete", "call_1_0"));
    assert_eq!((pause.pause.kind, call.arguments.as_str()), (PauseKind::Approval, r#"{"path":"a"}"#));
    assert_eq!((effects.count(), model.calls()), (0, 1));
    assert_eq!(told_in(&runner, outcome.run_id()).await, []);
}

#[tokio::test]
async fn held_calls_open_one_pause_each_and_the_others_run_at_once() {
    let (held, free) = (Effects::default(), Effects::default());
    let agent = agent("Ops", [gated(&held), counted("look", &free).build().unwrap()]);
    let model = once(Reply::calls([
        ("delete", json!({"path": "a"})),
        ("look", json!({"at": "b"})),
        ("delete", json!({"path": "c"})),
    ]));
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&agent, USER).await.unwrap();
    assert_eq!(outcome.pauses().len(), 2);
    assert_eq!([arguments(&outcome, 0), arguments(&outcome, 1)], [json!({"path": "a"}), json!({"path": "c"})]);
    assert_eq!((held.count(), free.count(), model.calls()), (0, 1, 1));
    let told = told_in(&runner, outcome.run_id()).await;
    assert_eq!(told, [("call_1_1".to_owned(), r#"look ran with {"at":"b"}"#.to_owned(), false)]);
}

#[tokio::test]
async fn an_inner_agents_pauses_stand_in_one_list_with_the_outer_ones() {
    let (inner_effects, outer_effects) = (Effects::default(), Effects::default());
    let inner = agent("Inner", [gated(&inner_effects)]);
    let ask = inner.as_tool("ask_inner", "Asks.").build().unwrap();
    let outer = agent("Outer", [ask, gated(&outer_effects)]);
    let model = once(Reply::calls([("ask_inner", json!({"input": "x"})), ("delete", json!({"path": "outer"}))]))
        .for_agent("ask_inner", [Reply::call("delete", json!({"path": "inner"})), Reply::text("inner done")]);
    let runner = Runner::in_memory(model);
    let outcome = runner.run(&outer, USER).await.unwrap();
    let mut asked: Vec<(&str, Value)> =
        (0..2).map(|index| (outcome.pauses()[index].agent.as_str(), arguments(&outcome, index))).collect();
    asked.sort_by_key(|(agent, _)| *agent);
    assert_eq!(asked, [("Outer", json!({"path": "outer"})), ("Outer/ask_inner", json!({"path": "inner"}))]);
    assert_eq!(outcome.pauses().len(), 2);
    assert_eq!((inner_effects.count(), outer_effects.count()), (0, 0));
    assert_eq!(told_in(&runner, outcome.run_id()).await, [], "the agent tool has no outcome while its agent waits");
}

#[tokio::test]
async fn one_call_id_in_two_agents_opens_two_pauses() {
    let effects = Effects::default();
    let [left, right] = ["Left", "Right"].map(|name| agent(name, [gated(&effects)]));
    let outer =
        agent("Outer", [left.as_tool("left", "L.").build().unwrap(), right.as_tool("right", "R.").build().unwrap()]);
    let same = || [Reply::empty().and_call_as("same", "delete", json!({"path": "a"})), Reply::text("done")];
    let model = once(Reply::calls([("left", json!({"input": "x"})), ("right", json!({"input": "x"}))]))
        .for_agent("left", same())
        .for_agent("right", same());
    let runner = Runner::in_memory(model);
    let outcome = runner.run(&outer, USER).await.unwrap();
    let mut asked: Vec<(&str, &str)> = outcome
        .pauses()
        .iter()
        .map(|pause| (pause.agent.as_str(), pause.call.as_ref().unwrap().call_id.as_str()))
        .collect();
    asked.sort_unstable();
    assert_eq!(asked, [("Outer/left", "same"), ("Outer/right", "same")]);
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    let outcome = runner.resume(&outer, outcome.run_id()).await.unwrap();
    assert_eq!((outcome.pauses().len(), effects.count()), (1, 1), "one approval runs one call");
}

#[tokio::test]
async fn a_constant_policy_and_a_predicate_that_says_so_are_alike() {
    for holds in [true, false] {
        let effects = Effects::default();
        let constant = counted("delete", &effects).needs_approval(holds).build().unwrap();
        let predicate =
            counted("delete", &effects).needs_approval_when(move |_, _| async move { holds }).build().unwrap();
        for tool in [constant, predicate] {
            let before = effects.count();
            let runner = Runner::in_memory(once(delete_a()));
            let outcome = runner.run(&agent("Ops", [tool]), USER).await.unwrap();
            assert_eq!((outcome.is_paused(), effects.count() - before), (holds, u32::from(!holds)));
        }
    }
    assert!(matches!(gated(&Effects::default()).approval(), Approval::Always));
    assert!(matches!(counted("look", &Effects::default()).build().unwrap().approval(), Approval::Never));
}

#[tokio::test]
async fn a_predicate_is_asked_once_about_the_calls_own_arguments() {
    let (effects, asked) = (Effects::default(), Arc::new(Mutex::new(Vec::new())));
    let seen = asked.clone();
    let tool = counted("delete", &effects)
        .needs_approval_when(move |context, arguments| {
            let is_system = arguments["path"] == "/etc";
            seen.lock().unwrap().push((context.call_id, context.agent.to_string(), arguments));
            async move { is_system }
        })
        .build()
        .unwrap();
    let agent = agent("Ops", [tool]);
    let model = once(Reply::calls([("delete", json!({"path": "/tmp"})), ("delete", json!({"path": "/etc"}))]));
    let runner = Runner::in_memory(model);
    let outcome = runner.run(&agent, USER).await.unwrap();
    assert_eq!((outcome.pauses().len(), effects.count()), (1, 1));
    assert_eq!(arguments(&outcome, 0), json!({"path": "/etc"}));
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    runner.resume(&agent, outcome.run_id()).await.unwrap();
    assert_eq!(effects.count(), 2);
    let expected = |id: &str, path: &str| (id.to_owned(), "Ops".to_owned(), json!({ "path": path }));
    // Not asked again on resume: the verdict was written down when the call was made.
    assert_eq!(*asked.lock().unwrap(), [expected("call_1_0", "/tmp"), expected("call_1_1", "/etc")]);
}

#[tokio::test]
async fn a_predicate_that_changes_its_arguments_changes_nothing_that_runs() {
    let ran = Arc::new(Mutex::new(Vec::new()));
    let tool = Tool::builder("delete")
        .needs_approval_when(|_, mut arguments| async move {
            arguments["path"] = json!("/etc/passwd");
            arguments["force"] = json!(true);
            true
        })
        .runner(Keeps(ran.clone()))
        .build()
        .unwrap();
    let agent = agent("Ops", [tool]);
    let runner = Runner::in_memory(once(delete_a()));
    let outcome = runner.run(&agent, USER).await.unwrap();
    assert_eq!(arguments(&outcome, 0), json!({"path": "a"}));
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    runner.resume(&agent, outcome.run_id()).await.unwrap();
    assert_eq!(*ran.lock().unwrap(), [r#"{"path":"a"}"#]);
}

/// A tool that keeps the bytes it was given.
struct Keeps(Arc<Mutex<Vec<String>>>);

#[async_trait::async_trait]
impl RunTool for Keeps {
    async fn run(&self, _: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        self.0.lock().unwrap().push(arguments.as_str().to_owned());
        Ok("kept".into())
    }
}

#[tokio::test]
async fn the_bytes_that_were_shown_are_the_bytes_that_run() {
    let ran = Arc::new(Mutex::new(Vec::new()));
    let tool = Tool::builder("pay").needs_approval(true).runner(Keeps(ran.clone())).build().unwrap();
    let agent = agent("Ops", [tool]);
    // Read once, when the call is made: numbers beyond 64 bits, key order and escapes come out the same both times.
    let written = r#"{ "to": "\u0061na", "amount": 123456789012345678901234567890.10, "a": 1e2 }"#;
    let runner = Runner::in_memory(once(Reply::empty().and_proposed(raw("p", "pay", written))));
    let outcome = runner.run(&agent, USER).await.unwrap();
    let call = outcome.pauses()[0].call.clone().unwrap();
    assert_eq!(call.digest, call.arguments.digest());
    assert!(call.arguments.as_str().contains("ana"), "{}", call.arguments);
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    runner.resume(&agent, outcome.run_id()).await.unwrap();
    assert_eq!(*ran.lock().unwrap(), [call.arguments.as_str()]);
}

// Arguments that cannot be looked at: our rule 6. There a person is asked; here nobody is, because nothing could run.

/// Six shapes of arguments that no predicate can look into, and what the model is told.
const UNREADABLE: [(&str, &str); 6] = [
    (r#"{"path": "#, "the arguments are not JSON"),
    ("delete everything", "the arguments are not JSON"),
    (r#"["a"]"#, "the arguments are not a JSON object"),
    (r#""a""#, "the arguments are not a JSON object"),
    ("42", "the arguments are not a JSON object"),
    ("null", "the arguments are not a JSON object"),
];

/// Runs a call with these arguments through a tool; says what the model was told and how far the run came.
async fn unreadable(tool: Tool, arguments: &str) -> (Vec<(String, String, bool)>, RunOutcome) {
    let agent = agent("Ops", [tool]);
    let runner = Runner::in_memory(once(Reply::empty().and_proposed(raw("x", "delete", arguments))));
    let outcome = runner.run(&agent, USER).await.unwrap();
    (told_in(&runner, outcome.run_id()).await, outcome)
}

fn assert_told(told: &[(String, String, bool)], problem: &str) {
    let [(id, text, is_error)] = told else { panic!("one result expected: {told:?}") };
    assert_eq!((id.as_str(), *is_error), ("x", true));
    assert!(text.starts_with(problem), "{text:?} does not begin with {problem:?}");
}

#[tokio::test]
async fn arguments_that_are_no_object_reach_neither_predicate_nor_person() {
    for (arguments, problem) in UNREADABLE {
        let (effects, asked) = (Effects::default(), Effects::default());
        let counts = asked.clone();
        let tool = counted("delete", &effects)
            .needs_approval_when(move |_, _| {
                counts.happen();
                async { true }
            })
            .build()
            .unwrap();
        let (told, outcome) = unreadable(tool, arguments).await;
        assert_told(&told, problem);
        assert_eq!((text_of(&outcome).as_str(), asked.count(), effects.count()), ("done", 0, 0), "{arguments}");
    }
}

#[tokio::test]
async fn a_constant_policy_asks_nobody_about_arguments_that_are_no_object() {
    for (arguments, problem) in UNREADABLE {
        let effects = Effects::default();
        let (told, outcome) = unreadable(gated(&effects), arguments).await;
        assert_told(&told, problem);
        assert_eq!((text_of(&outcome).as_str(), effects.count()), ("done", 0), "{arguments}");
    }
}

/// A policy written by hand, without the builder's help.
struct ByHand(Effects);

impl Predicate for ByHand {
    fn holds(&self, _: &ToolContext, arguments: &Value) -> BoxFuture<'static, Result<bool, String>> {
        self.0.happen();
        let holds = arguments["path"].is_string();
        Box::pin(async move { Ok(holds) })
    }
}

#[tokio::test]
async fn a_policy_written_by_hand_fails_closed_too() {
    for (arguments, problem) in UNREADABLE {
        let (effects, asked) = (Effects::default(), Effects::default());
        let approval = Approval::When(Arc::new(ByHand(asked.clone())));
        let tool = counted("delete", &effects).approval(approval).build().unwrap();
        let (told, outcome) = unreadable(tool.clone(), arguments).await;
        assert_told(&told, problem);
        assert_eq!((outcome.is_paused(), asked.count(), effects.count()), (false, 0, 0), "{arguments}");
        let (_, outcome) = unreadable(tool, r#"{"path": "a"}"#).await;
        assert_eq!((outcome.is_paused(), asked.count(), effects.count()), (true, 1, 0));
    }
}

#[tokio::test]
async fn nothing_can_be_denied_or_approved_about_a_call_that_cannot_run() {
    let (effects, asked) = (Effects::default(), Effects::default());
    let counts = asked.clone();
    let tool = counted("delete", &effects)
        .needs_approval_when(move |_, _| {
            counts.happen();
            async { true }
        })
        .build()
        .unwrap();
    let agent = agent("Ops", [tool]);
    let model = once(Reply::empty().and_proposed(raw("bad", "delete", "{")).and_call_as(
        "good",
        "delete",
        json!({"path": "a"}),
    ));
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&agent, USER).await.unwrap();
    let [pause] = outcome.pauses() else { panic!("only the readable call is asked about: {outcome:?}") };
    assert_eq!((pause.call.as_ref().unwrap().call_id.as_str(), asked.count()), ("good", 1));
    // The pause that the other call would have had does not exist, so no decision can let it run.
    let other = PauseId { run: outcome.run_id(), number: 2 };
    for decision in [Decision::Approve, Decision::deny("no")] {
        let refused = runner.decide(other, decision).await.unwrap_err();
        assert_eq!(refused.refusal(), Some(&Refusal::PauseNotFound(other)));
    }
    runner.approve(pause).await.unwrap();
    runner.resume(&agent, outcome.run_id()).await.unwrap();
    let told = told(&model.requests()[1].items);
    assert!(told[0].1.starts_with("the arguments are not JSON: "), "{told:?}");
    assert_eq!((told[0].2, told[1].1.as_str()), (true, r#"delete ran with {"path":"a"}"#));
    assert_eq!((effects.count(), asked.count()), (1, 1));
}

#[tokio::test]
async fn arguments_that_break_the_schema_are_told_before_policy_and_siblings() {
    let (effects, asked) = (Effects::default(), Effects::default());
    let counts = asked.clone();
    let delete = counted("delete", &effects)
        .schema(json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}))
        .needs_approval_when(move |_, _| {
            counts.happen();
            async { true }
        })
        .build()
        .unwrap();
    let agent = agent("Ops", [delete, failing("boom").build().unwrap()]);
    let model = once(
        Reply::empty()
            .and_call_as("wrong", "delete", json!({"path": 7}))
            .and_call_as("boom", "boom", json!({}))
            .and_call_as("right", "delete", json!({"path": "a"})),
    );
    let runner = Runner::in_memory(model);
    let outcome = runner.run(&agent, USER).await.unwrap();
    // There the predicate is asked about such arguments; here it only ever sees what fits the schema.
    assert_eq!((outcome.pauses().len(), asked.count(), effects.count()), (1, 1, 0));
    assert_eq!(arguments(&outcome, 0), json!({"path": "a"}));
    let told = told_in(&runner, outcome.run_id()).await;
    assert_eq!((told[0].0.as_str(), told[0].2), ("wrong", true));
    assert!(told[0].1.starts_with("the arguments do not fit the schema: /path: "), "{told:?}");
    assert_eq!(told[1], ("boom".to_owned(), "it broke".to_owned(), true));
}

#[tokio::test]
async fn a_predicate_that_fails_holds_the_call_and_says_why() {
    let failing: [(&str, Tool); 2] = [
        (
            "the approval rule failed: no such account",
            counted("delete", &Effects::default())
                .needs_approval_when(|_, _| async { Err::<bool, _>("no such account") })
                .build()
                .unwrap(),
        ),
        (
            // What it panicked with may hold anything, and is not shown.
            "the approval rule failed: it panicked",
            counted("delete", &Effects::default())
                .needs_approval_when(|_, _| async { panic!("a predicate of a test panics on purpose: s3cret") as bool })
                .build()
                .unwrap(),
        ),
    ];
    for (reason, tool) in failing {
        let runner = Runner::in_memory(once(delete_a()));
        let agent = agent("Ops", [tool]);
        let outcome = runner.run(&agent, USER).await.unwrap();
        assert_eq!(outcome.pauses()[0].pause.reason.as_deref(), Some(reason));
        assert!(!runner.state(&agent, outcome.run_id()).await.unwrap().to_json().contains("s3cret"));
        runner.approve(&outcome.pauses()[0]).await.unwrap();
        let done = runner.resume(&agent, outcome.run_id()).await.unwrap();
        assert_eq!(text_of(&done), "done");
    }
}

// Decisions belong to one tool. We have no lazily-loaded tools; the nearest twins are tools of one name in two families.

/// Makes a decision stand for `first` in every agent, hands over, and says whether a tool of the same name that is
/// reached another way still asks.
async fn twin_asks(first: ToolShape, second: ToolShape, decision: Decision) -> (bool, u32) {
    let effects = Effects::default();
    let tool = |shape: ToolShape| counted("look", &effects).shape(shape).needs_approval(true).build().unwrap();
    let other = agent("Other", [tool(second)]);
    let root = Agent::builder("Root").tool(tool(first)).handoff(&other).build().unwrap();
    let runner = Runner::in_memory(ScriptedModel::new([
        Reply::call("look", json!({"n": 1})),
        Reply::call("transfer_to_other", json!({})),
        Reply::call("look", json!({"n": 2})),
        Reply::text("done"),
    ]));
    let outcome = runner.run(&root, USER).await.unwrap();
    let always = Always::in_run().any_agent();
    runner.decide(&outcome.pauses()[0], decision).always(always).await.unwrap();
    let outcome = runner.resume(&root, outcome.run_id()).await.unwrap();
    (outcome.is_paused(), effects.count())
}

fn mcp() -> ToolShape {
    ToolShape::Mcp { server: ToolName::new("files").unwrap() }
}

#[tokio::test]
async fn a_standing_approval_of_a_function_is_not_one_of_its_twin() {
    assert_eq!(twin_asks(ToolShape::Function, mcp(), Decision::Approve).await, (true, 1));
    assert_eq!(twin_asks(ToolShape::Function, ToolShape::Function, Decision::Approve).await, (false, 2));
}

#[tokio::test]
async fn a_standing_approval_of_a_functions_twin_is_not_one_of_the_function() {
    assert_eq!(twin_asks(mcp(), ToolShape::Function, Decision::Approve).await, (true, 1));
    assert_eq!(twin_asks(mcp(), mcp(), Decision::Approve).await, (false, 2));
    let twins = [counted("look", &Effects::default()), counted("look", &Effects::default()).shape(mcp())];
    let twins = twins.map(|tool| tool.build().unwrap());
    let both = twins.into_iter().fold(Agent::builder("Ops"), AgentBuilder::tool).build();
    assert_eq!(both.unwrap_err().code(), "invalid_definition", "one agent cannot have both");
}

#[tokio::test]
async fn a_shells_decision_says_nothing_of_a_function_of_its_name() {
    assert_eq!(twin_asks(ToolShape::Shell, ToolShape::Function, Decision::Approve).await, (true, 1));
    assert_eq!(twin_asks(ToolShape::Shell, ToolShape::Function, Decision::deny("no")).await, (true, 0));
    assert_eq!(twin_asks(ToolShape::Shell, ToolShape::Shell, Decision::deny("no")).await, (false, 0));
}

// What the model is told of a denial.

#[tokio::test]
async fn a_denial_without_words_says_the_default_text() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let model = once(delete_a());
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&agent, USER).await.unwrap();
    runner.deny(&outcome.pauses()[0]).by("ana").await.unwrap();
    let done = runner.resume(&agent, outcome.run_id()).await.unwrap();
    assert_eq!((text_of(&done).as_str(), effects.count()), ("done", 0));
    let expected = ("call_1_0".to_owned(), "Tool execution was not approved.".to_owned(), true);
    assert_eq!(told(&model.requests()[1].items), [expected]);
}

#[tokio::test]
async fn a_formatter_finds_the_words_of_every_denial_without_any() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let formatter = DenialFormatter::new(move |denial: Denial| {
        let words = format!("{} may not {}", denial.agent, denial.tool);
        kept.lock().unwrap().push((denial.call_id, denial.default));
        async move { Ok(Some(words)) }
    });
    let effects = Effects::default();
    let by_code = counted("wipe", &effects)
        .needs_approval(true)
        .on_approval("night watch", |_, _| async { AutoDecision::Deny(String::new()) })
        .build()
        .unwrap();
    let agent = agent("Ops", [gated(&effects), by_code]);
    let model = once(Reply::calls([("delete", json!({"path": "a"})), ("wipe", json!({}))]));
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&agent, USER).denial_formatter(formatter.clone()).await.unwrap();
    assert_eq!(texts(&told_in(&runner, outcome.run_id()).await), ["Ops may not wipe"]);
    runner.deny(&outcome.pauses()[0]).await.unwrap();
    runner.resume(&agent, outcome.run_id()).denial_formatter(formatter).await.unwrap();
    assert_eq!(texts(&told(&model.requests()[1].items)), ["Ops may not delete", "Ops may not wipe"]);
    let asked = |id: &str| (id.to_owned(), DENIED_TEXT.to_owned());
    assert_eq!((seen.lock().unwrap().as_slice(), effects.count()), (&[asked("call_1_1"), asked("call_1_0")][..], 0));
}

#[tokio::test]
async fn a_formatter_that_fails_or_finds_nothing_leaves_the_default_text() {
    let formatters: [(&str, DenialFormatter); 4] = [
        ("fails", DenialFormatter::new(|_| async { Err("s3cret".to_owned()) })),
        ("finds nothing", DenialFormatter::new(|_| async { Ok(None) })),
        ("panics later", DenialFormatter::new(|_| async { panic!("a formatter panics on purpose: s3cret") })),
        ("panics at once", DenialFormatter::new(|_| -> std::future::Ready<_> { panic!("on purpose: s3cret") })),
    ];
    for (name, formatter) in formatters {
        let agent = agent("Ops", [gated(&Effects::default())]);
        let runner = Runner::builder().model(Arc::new(once(delete_a()))).denial_formatter(formatter).build();
        let outcome = runner.run(&agent, USER).await.unwrap();
        runner.deny(&outcome.pauses()[0]).await.unwrap();
        runner.resume(&agent, outcome.run_id()).await.unwrap();
        assert_eq!(texts(&told_in(&runner, outcome.run_id()).await), [DENIED_TEXT], "{name}");
        // What it failed with may hold anything: it is neither told nor kept.
        let state = runner.state(&agent, outcome.run_id()).await.unwrap().to_json();
        assert!(!state.contains("s3cret"), "{name}");
    }
}

#[tokio::test]
async fn what_is_said_of_a_call_that_did_not_run_is_text_also_where_the_tool_gives_json() {
    let gives_json = || {
        Tool::builder("delete")
            .needs_approval(true)
            .function(|_, _: std::collections::BTreeMap<String, String>| async { Json(json!({"deleted": 1})) })
            .unwrap()
    };
    let before = guardrail(&Effects::default(), CallVerdict::Reject("not on Fridays".to_owned()));
    let cases = [
        (gives_json(), Some("keep it"), "keep it"),
        (gives_json(), None, DENIED_TEXT),
        (
            gives_json().rebuild().guardrail(before.phases(&[GuardrailPhase::BeforePause])).build().unwrap(),
            None,
            "not on Fridays",
        ),
    ];
    for (tool, message, expected) in cases {
        let agent = agent("Ops", [tool]);
        let runner = Runner::in_memory(once(delete_a()));
        let outcome = runner.run(&agent, USER).await.unwrap();
        if let [pause] = outcome.pauses() {
            let denial = runner.deny(pause);
            let denial = match message {
                Some(words) => denial.message(words),
                None => denial,
            };
            denial.await.unwrap();
        }
        runner.resume(&agent, outcome.run_id()).await.unwrap();
        let items = runner.read(outcome.run_id()).await.unwrap().items();
        let output = items.iter().find_map(|item| match &**item {
            Item::ToolResult { output, is_error: true, .. } => Some(output.clone()),
            _ => None,
        });
        assert_eq!(output, Some(Content::Text(expected.to_owned())));
    }
}

/// The output of an agent that ends with its first tool outcome, whose only call is denied.
async fn output_of_denial(
    of_runner: Option<&'static str>,
    of_run: Option<&'static str>,
    words: Option<&str>,
) -> String {
    let effects = Effects::default();
    let agent = Agent::builder("Ops").tool(gated(&effects)).finish(FinishRule::FirstToolResult).build().unwrap();
    let model = ScriptedModel::new([delete_a()]);
    let builder = Runner::builder().model(Arc::new(model.clone()));
    let runner = of_runner.map(says).into_iter().fold(builder, RunnerBuilder::denial_formatter).build();
    let outcome = runner.run(&agent, USER).await.unwrap();
    assert!(outcome.is_paused(), "a call that waits is no outcome: {outcome:?}");
    let denial = runner.deny(&outcome.pauses()[0]);
    words.into_iter().fold(denial, DecideRequest::message).await.unwrap();
    let resume = runner.resume(&agent, outcome.run_id());
    let done = of_run.map(says).into_iter().fold(resume, ResumeRequest::denial_formatter).await.unwrap();
    assert_eq!((effects.count(), model.calls()), (0, 1));
    text_of(&done)
}

#[tokio::test]
async fn where_the_first_outcome_ends_the_run_the_default_text_is_its_output() {
    assert_eq!(output_of_denial(None, None, None).await, DENIED_TEXT);
}

#[tokio::test]
async fn where_the_first_outcome_ends_the_run_the_formatters_words_are_its_output() {
    assert_eq!(output_of_denial(Some("of the runner"), None, None).await, "of the runner");
}

#[tokio::test]
async fn the_formatter_of_a_resume_beats_the_runners() {
    assert_eq!(output_of_denial(Some("of the runner"), Some("of this run"), None).await, "of this run");
}

#[tokio::test]
async fn the_words_of_a_denial_are_its_output() {
    assert_eq!(output_of_denial(None, None, Some("keep it until Friday")).await, "keep it until Friday");
}

#[tokio::test]
async fn the_words_of_a_denial_beat_every_formatter() {
    let output = output_of_denial(Some("of the runner"), Some("of this run"), Some("of the person")).await;
    assert_eq!(output, "of the person");
}

#[tokio::test]
async fn empty_words_of_a_denial_are_words() {
    assert_eq!(output_of_denial(Some("of the runner"), Some("of this run"), Some("")).await, "");
}

#[tokio::test]
async fn the_first_outcome_does_not_end_a_run_while_a_sibling_waits() {
    let (held, free) = (Effects::default(), Effects::default());
    let agent = Agent::builder("Ops")
        .tool(counted("look", &free).build().unwrap())
        .tool(gated(&held))
        .finish(FinishRule::FirstToolResult)
        .build()
        .unwrap();
    let runner = Runner::in_memory(ScriptedModel::new([Reply::calls([
        ("look", json!({"at": "b"})),
        ("delete", json!({"path": "a"})),
    ])]));
    let outcome = runner.run(&agent, USER).await.unwrap();
    assert_eq!((outcome.pauses().len(), free.count(), held.count()), (1, 1, 0));
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    let done = runner.resume(&agent, outcome.run_id()).await.unwrap();
    assert_eq!((text_of(&done).as_str(), held.count()), (r#"look ran with {"at":"b"}"#, 1));
}

// Guardrails around the pause.

/// How often a guardrail looked before the pause and after it, whether a person was asked, and how often the tool ran.
async fn guarded(before_pause: bool, verdict: CallVerdict) -> (u32, u32, bool, u32) {
    let (effects, looks) = (Effects::default(), Effects::default());
    let tool = counted("delete", &effects).needs_approval(true).guardrail(guardrail(&looks, verdict)).build().unwrap();
    let agent = agent("Ops", [tool]);
    let runner = Runner::builder().model(Arc::new(once(delete_a()))).guardrails_before_pause(before_pause).build();
    let outcome = runner.run(&agent, USER).await.unwrap();
    let (asked, before) = (outcome.is_paused(), looks.count());
    if let [pause] = outcome.pauses() {
        runner.approve(pause).await.unwrap();
        runner.resume(&agent, outcome.run_id()).await.unwrap();
    }
    (before, looks.count() - before, asked, effects.count())
}

fn reject() -> CallVerdict {
    CallVerdict::Reject("too much".to_owned())
}

#[tokio::test]
async fn guardrails_look_only_after_the_approval_unless_said_otherwise() {
    assert_eq!(guarded(false, CallVerdict::Pass).await, (0, 1, true, 1));
    assert_eq!(guarded(false, reject()).await, (0, 1, true, 0), "the person is asked, then the guardrail objects");
}

#[tokio::test]
async fn guardrails_look_again_after_the_approval() {
    assert_eq!(guarded(true, CallVerdict::Pass).await, (1, 1, true, 1));
}

#[tokio::test]
async fn guardrails_look_before_the_pause_where_runner_run_or_guardrail_says_so() {
    for door in ["runner", "run", "guardrail"] {
        let looks = Effects::default();
        let both = [GuardrailPhase::BeforePause, GuardrailPhase::BeforeRun];
        let rail = guardrail(&looks, CallVerdict::Pass);
        let rail = if door == "guardrail" { rail.phases(&both) } else { rail };
        let tool = counted("delete", &Effects::default()).needs_approval(true).guardrail(rail).build().unwrap();
        let builder = Runner::builder().model(Arc::new(once(delete_a()))).guardrails_before_pause(door == "runner");
        let run = builder.build().run(&agent("Ops", [tool]), USER);
        let outcome = if door == "run" { run.guardrails_before_pause(true).await } else { run.await }.unwrap();
        assert_eq!((outcome.pauses().len(), looks.count()), (1, 1), "{door}");
    }
}

#[tokio::test]
async fn a_guardrails_objection_before_the_pause_is_told_and_nobody_is_asked() {
    assert_eq!(guarded(true, reject()).await, (1, 0, false, 0));
    let looks = Effects::default();
    let tool = counted("delete", &Effects::default()).needs_approval(true).guardrail(guardrail(&looks, reject()));
    let model = once(delete_a());
    let runner = Runner::in_memory(model.clone());
    let agent = agent("Ops", [tool.build().unwrap()]);
    let outcome = runner.run(&agent, USER).guardrails_before_pause(true).await.unwrap();
    assert_eq!(text_of(&outcome), "done");
    assert_eq!(told(&model.requests()[1].items), [("call_1_0".to_owned(), "too much".to_owned(), true)]);
    assert_eq!(runner.read(outcome.run_id()).await.unwrap().pauses(), []);
}

// Found on the way: a rule that approves was not followed by a guardrail that looks before the pause and only there.
#[tokio::test]
async fn a_standing_approval_passes_over_no_guardrail() {
    for phase in [GuardrailPhase::BeforePause, GuardrailPhase::BeforeRun] {
        let (effects, looks) = (Effects::default(), Effects::default());
        let counts = looks.clone();
        let rail = ToolGuardrail::new("limit", move |_, arguments: CanonicalJson| {
            counts.happen();
            let is_much = arguments.to_value()["amount"] == 1_000_000;
            async move { if is_much { reject() } else { CallVerdict::Pass } }
        });
        let tool = gated(&effects).rebuild().guardrail(rail.phases(&[phase])).build().unwrap();
        let agent = agent("Ops", [tool]);
        let pay = |amount: u32| Reply::call("delete", json!({ "amount": amount }));
        let model = ScriptedModel::new([pay(11), pay(1_000_000), pay(12), Reply::text("done")]);
        let runner = Runner::in_memory(model.clone());
        let outcome = runner.run(&agent, USER).await.unwrap();
        runner.approve(&outcome.pauses()[0]).always(Always::in_run()).await.unwrap();
        let done = runner.resume(&agent, outcome.run_id()).await.unwrap();
        assert_eq!((text_of(&done).as_str(), effects.count(), looks.count()), ("done", 2, 3), "{phase:?}");
        assert_eq!(told(&model.requests()[3].items)[1].1, "too much", "{phase:?}");
    }
}

#[tokio::test]
async fn guardrails_are_not_asked_about_an_approved_call_of_a_cancelled_run() {
    let (effects, looks) = (Effects::default(), Effects::default());
    let rail = guardrail(&looks, CallVerdict::Pass);
    let agent = agent("Ops", [gated(&effects).rebuild().guardrail(rail).build().unwrap()]);
    let runner = Runner::in_memory(once(delete_a()));
    let outcome = runner.run(&agent, USER).await.unwrap();
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    runner.cancel(outcome.run_id(), ActorId::local(), "enough").await.unwrap();
    let ended = runner.resume(&agent, outcome.run_id()).await.unwrap();
    assert!(matches!(ended, RunOutcome::Cancelled { .. }), "{ended:?}");
    assert_eq!((looks.count(), effects.count()), (0, 0));
    let told = told_in(&runner, outcome.run_id()).await;
    assert_eq!(texts(&told), ["The call was withdrawn; it did not run."]);
}

// Siblings and cancellation: our rule 8. There a failing sibling stops the others; here each outcome stands on its own.

#[tokio::test]
async fn a_sibling_that_fails_takes_no_denial_away() {
    let denied = |words: &str| ("held".to_owned(), words.to_owned(), true);
    let broke = |text: &str| ("boom".to_owned(), text.to_owned(), true);
    // The sibling fails before anybody decides.
    let told_before = sibling_and_denial(failing("boom"), None, Some("no")).await;
    assert_eq!(told_before, [denied("no"), broke("it broke")]);
    // It fails while the formatter finds the words, in the same resume.
    let told_with = sibling_and_denial(failing("boom").needs_approval(true), Some(says("sorry")), None).await;
    assert_eq!(told_with, [denied("sorry"), broke("it broke")]);
    // Both fail: the sibling by a panic, the formatter by an error.
    let fails = DenialFormatter::new(|_| async { Err("no words".to_owned()) });
    let panics = Tool::builder("boom").runner(Panics).needs_approval(true);
    let told_after = sibling_and_denial(panics, Some(fails), None).await;
    assert_eq!(told_after, [denied(DENIED_TEXT), broke("the tool panicked")]);
}

/// One call is denied, its sibling `boom` runs as soon as it may; says what the model is told of both.
async fn sibling_and_denial(
    boom: ToolBuilder,
    formatter: Option<DenialFormatter>,
    words: Option<&str>,
) -> Vec<(String, String, bool)> {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects), boom.build().unwrap()]);
    let model = once(Reply::empty().and_call_as("held", "delete", json!({})).and_call_as("boom", "boom", json!({})));
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&agent, USER).await.unwrap();
    for pause in outcome.pauses() {
        match pause.call.as_ref().unwrap().call_id.as_str() {
            "boom" => runner.approve(pause).await.unwrap(),
            _ => words.into_iter().fold(runner.deny(pause), DecideRequest::message).await.unwrap(),
        };
    }
    let resume = runner.resume(&agent, outcome.run_id());
    let done = formatter.into_iter().fold(resume, ResumeRequest::denial_formatter).await.unwrap();
    assert_eq!((text_of(&done).as_str(), effects.count()), ("done", 0));
    told(&model.requests()[1].items)
}

#[tokio::test]
async fn an_approved_call_runs_although_a_sibling_failed_meanwhile() {
    let effects = Effects::default();
    let held_boom = failing("held_boom").needs_approval(true).build().unwrap();
    let agent = agent("Ops", [gated(&effects), failing("boom").build().unwrap(), held_boom]);
    let model = once(Reply::calls([("boom", json!({})), ("held_boom", json!({})), ("delete", json!({"path": "a"}))]));
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&agent, USER).await.unwrap();
    assert_eq!(texts(&told_in(&runner, outcome.run_id()).await), ["it broke"]);
    for pause in outcome.pauses() {
        runner.approve(pause).await.unwrap();
    }
    let done = runner.resume(&agent, outcome.run_id()).await.unwrap();
    assert_eq!((text_of(&done).as_str(), effects.count()), ("done", 1));
    let told = told(&model.requests()[1].items);
    assert_eq!(texts(&told), ["it broke", "it broke", r#"delete ran with {"path":"a"}"#]);
}

#[tokio::test]
async fn a_guardrails_objection_before_the_pause_stands_beside_a_failing_sibling() {
    let effects = Effects::default();
    let rail = guardrail(&Effects::default(), reject());
    let agent =
        agent("Ops", [failing("boom").build().unwrap(), gated(&effects).rebuild().guardrail(rail).build().unwrap()]);
    let model = once(Reply::calls([("boom", json!({})), ("delete", json!({"path": "a"}))]));
    let runner = Runner::in_memory(model.clone());
    let done = runner.run(&agent, USER).guardrails_before_pause(true).await.unwrap();
    assert_eq!((text_of(&done).as_str(), effects.count()), ("done", 0));
    assert_eq!(texts(&told(&model.requests()[1].items)), ["it broke", "too much"]);
}

#[tokio::test]
async fn a_denial_stands_when_its_run_is_cancelled() {
    for point in ["after its words", "before its words", "while its words are found"] {
        let effects = Effects::default();
        let agent = agent("Ops", [gated(&effects)]);
        let runner = Runner::in_memory(once(delete_a()));
        let outcome = runner.run(&agent, USER).await.unwrap();
        let denial = runner.deny(&outcome.pauses()[0]).by("ana");
        let denial = if point == "after its words" { denial.message("keep it") } else { denial };
        denial.await.unwrap();
        let mut resume = runner.resume(&agent, outcome.run_id());
        if point == "while its words are found" {
            let canceller = runner.clone();
            resume = resume.denial_formatter(DenialFormatter::new(move |denial: Denial| {
                let runner = canceller.clone();
                async move {
                    runner.cancel(denial.run, ActorId::local(), "enough").await.unwrap();
                    Ok(Some("too late".to_owned()))
                }
            }));
        } else {
            runner.cancel(outcome.run_id(), ActorId::local(), "enough").await.unwrap();
        }
        let ended = resume.await.unwrap();
        assert!(matches!(ended, RunOutcome::Cancelled { .. }), "{point}: {ended:?}");
        let run = runner.read(outcome.run_id()).await.unwrap();
        let PauseState::Decided(decided) = &run.pauses()[0].state else { panic!("{point}: {:?}", run.pauses()) };
        assert_eq!((decided.decision.name(), decided.by.as_str()), ("deny", "ana"), "{point}");
        let expected = match point {
            "after its words" => "keep it",
            // The run ended before the words were durable. Either way nothing ran.
            _ => "The call was withdrawn; it did not run.",
        };
        assert_eq!((texts(&told(&run.items())), effects.count()), (vec![expected], 0), "{point}");
    }
}

// Agents used as tools.

#[tokio::test]
async fn denying_an_agent_tool_leaves_nothing_of_its_inner_run() {
    let effects = Effects::default();
    let inner = agent("Inner", [gated(&effects)]);
    let outer = agent("Outer", [inner.as_tool("ask_inner", "Asks.").needs_approval(true).build().unwrap()]);
    let model = once(Reply::call("ask_inner", json!({"input": "x"})))
        .for_agent("ask_inner", [delete_a(), Reply::text("inner done")]);
    let runner = Runner::in_memory(model.clone());
    let outcome = runner.run(&outer, USER).await.unwrap();
    runner.deny(&outcome.pauses()[0]).message("not now").await.unwrap();
    let run = runner.read(outcome.run_id()).await.unwrap();
    assert_eq!(run.frames().map(|(path, _)| path.to_string()).collect::<Vec<_>>(), [""]);
    let done = runner.resume(&outer, outcome.run_id()).await.unwrap();
    assert_eq!((text_of(&done).as_str(), effects.count()), ("done", 0));
    let agents: Vec<String> = model.requests().iter().map(|request| request.agent.to_string()).collect();
    assert_eq!(agents, ["Outer", "Outer"], "the inner model was never asked");
    assert_eq!(texts(&told(&model.requests()[1].items)), ["not now"]);
}

// How many run at once.

/// A tool that notes how many of its kind run at once.
struct Crowd {
    now: Arc<AtomicUsize>,
    peak: Arc<AtomicUsize>,
}

#[async_trait::async_trait]
impl RunTool for Crowd {
    async fn run(&self, _: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(now, Ordering::SeqCst);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        self.now.fetch_sub(1, Ordering::SeqCst);
        Ok("there".into())
    }
}

#[tokio::test]
async fn no_more_tools_run_at_once_than_the_settings_say() {
    // None at all could never end: it counts as one.
    for (limit, expected) in [(1, 1), (2, 2), (3, 3), (0, 1)] {
        let (now, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let tool = Tool::builder("join").runner(Crowd { now, peak: peak.clone() }).build().unwrap();
        let model =
            once(Reply::calls([("join", json!({"n": 1})), ("join", json!({"n": 2})), ("join", json!({"n": 3}))]));
        let runner =
            Runner::builder().model(Arc::new(model)).settings(|settings| settings.tools_parallel_max = limit).build();
        let done = runner.run(&agent("Ops", [tool]), USER).await.unwrap();
        assert_eq!((text_of(&done).as_str(), peak.load(Ordering::SeqCst)), ("done", expected), "at most {limit}");
    }
}
