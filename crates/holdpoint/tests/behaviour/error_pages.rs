//! Every code has a page, every page belongs to a code, the index lists them all, and pages show what is really said.
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use holdpoint::{
    ActorId, Agent, AgentId, Digest, Fault, InputGuardrail, ModelFault, ModelReply, PauseId, ProposedCall, Refusal,
    Reply, RuleId, RunEvent, RunId, RunOutcome, Runner, ScriptedModel, StoreFault, StoreFaultKind, TextVerdict,
    Timestamp, Tool,
};
use holdpoint_core::refusal::{failure, reply};
use serde_json::json;

/// Codes that no list in the code holds: a failed run carries the first three, a refused reply the others.
const IN_RUNS: [&str; 7] = [
    failure::GUARDRAIL_TRIPPED,
    failure::MODEL_MISBEHAVED,
    failure::TURNS_EXHAUSTED,
    reply::CALL_ID_EMPTY,
    reply::CALL_ID_REUSED,
    reply::REPLY_TOO_LARGE,
    reply::TOO_MANY_CALLS,
];

fn codes() -> BTreeSet<String> {
    let all = Refusal::CODES.iter().chain(Fault::CODES).chain(&IN_RUNS);
    all.map(|code| (*code).to_owned()).collect()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors")
}

fn pages() -> BTreeSet<String> {
    let files = fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let names = files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned());
    names.filter(|name| name != "README").collect()
}

/// The index without the codes that only the server tells; a test of the server holds those.
fn index() -> String {
    let index = fs::read_to_string(folder().join("README.md")).unwrap();
    let (before, rest) = index.split_once("## What the server refuses").unwrap();
    let (_, after) = rest.split_once("## What a page looks like").unwrap();
    format!("{before}{after}")
}

fn page(code: &str) -> String {
    let path = folder().join(format!("{code}.md"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_code_has_a_page() {
    assert_eq!(codes().difference(&pages()).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn a_code_stands_for_one_kind_of_trouble() {
    assert_eq!(codes().len(), Refusal::CODES.len() + Fault::CODES.len() + IN_RUNS.len());
}

#[test]
fn the_index_lists_every_page_once() {
    let index = index();
    for code in codes() {
        let row = format!("| [{code}]({code}.md) | ");
        assert_eq!(index.matches(&row).count(), 1, "{code}");
    }
    let rows = index.lines().filter(|line| line.starts_with("| [")).count();
    assert_eq!(rows, codes().len());
}

#[test]
fn every_page_has_its_parts_in_order() {
    for code in codes() {
        let headings: Vec<String> =
            page(&code).lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect();
        assert_eq!(headings, [&format!("# {code}"), "## When it happens", "## What to do", "## Example"], "{code}");
    }
}

/// The sentences that a page shows.
fn shown(code: &str) -> Vec<String> {
    let page = page(code);
    let (_, example) = page.split_once("## Example\n\n```text\n").unwrap_or_else(|| panic!("{code} has no example"));
    example.lines().take_while(|line| *line != "```").map(str::to_owned).collect()
}

#[track_caller]
fn check(code: &str, said: &[String]) {
    assert_eq!(shown(code), said, "{code}");
}

const RUN: &str = "run_0198c0ffee007000800000000000beef";

fn run() -> RunId {
    RUN.parse().unwrap()
}

fn pause() -> PauseId {
    "pau_0198c0ffee007000800000000000beef_1".parse().unwrap()
}

fn rule() -> RuleId {
    "rul_0198c0ffee007000800000000000beef_1".parse().unwrap()
}

fn at() -> Timestamp {
    "2026-11-15T09:30:00Z".parse().unwrap()
}

fn agent_id(id: &str) -> AgentId {
    id.parse().unwrap()
}

fn refusals() -> Vec<Refusal> {
    let digest = |text: &str| Digest::of(text.as_bytes());
    let (pause, run, at) = (pause(), run(), at());
    let in_doubt: &[&str] = &["happened", "run_again", "abandon"];
    vec![
        Refusal::AgentChanged { agent: agent_id("Support"), was: digest("old"), now: digest("new") },
        Refusal::AgentMissing(agent_id("Support/transfer_to_billing")),
        Refusal::AlreadyDecided { pause, outcome: "approve", by: ActorId::new("ana").unwrap(), at },
        Refusal::DecisionNotAllowed { pause, kind: "in_doubt", decision: "approve", allowed: in_doubt },
        Refusal::EditOfSeveral { pause, quorum: 2 },
        Refusal::Expired { pause, at },
        Refusal::FormatNewer { found: 2, newest: 1 },
        Refusal::InvalidAnswers { pause, problem: "question 2 has no answer".to_owned() },
        Refusal::InvalidArguments {
            pause,
            problem: r#"/amount_cents: "twenty-five" is not of type "integer""#.to_owned(),
        },
        Refusal::InvalidDefinition(r#"agent "Support": two tools are named refund"#.to_owned()),
        Refusal::InvalidRule("only an approval or a denial can be made to stand".to_owned()),
        Refusal::NotAState(r#"a document of kind "holdpoint.run" expected"#.to_owned()),
        Refusal::NotAnApprover { pause, by: ActorId::new("bo").unwrap() },
        Refusal::NumberOutOfRange { pause, number: "18446744073709551616".to_owned() },
        Refusal::PauseNotFound(pause),
        Refusal::RunNotFound(run),
        Refusal::RuleNotFound(rule()),
        Refusal::OutOfTurn { state: "paused", input: "a start" },
        Refusal::CallOutOfTurn { call: "2.0".parse().unwrap(), state: "held", input: "a tool outcome" },
        Refusal::OverLimit { what: "bytes in a message", limit: 1 << 20, found: 2_000_000 },
        Refusal::RunActive { run, agent: agent_id("Support") },
        Refusal::RunBusy { run, owner: "pid-4711-0badcafe".to_owned(), until: at },
        Refusal::RunFinished(run),
        Refusal::SessionNotFound("support-4711".parse().unwrap()),
        Refusal::StaleView { pause, held: digest("held"), seen: digest("seen") },
        Refusal::StateCorrupt("a definition does not have the digest it stands under".to_owned()),
        Refusal::StateStale { run, stored: 4, given: 2 },
        Refusal::StateTampered,
        Refusal::ToolMissing { agent: agent_id("Support"), tool: "refund".to_owned() },
        Refusal::Withdrawn { pause, at },
    ]
}

#[test]
fn refusals_say_what_their_pages_show() {
    for code in Refusal::CODES {
        let said = refusals().into_iter().filter(|refusal| refusal.code() == *code);
        check(code, &said.map(|refusal| refusal.to_string()).collect::<Vec<_>>());
    }
}

#[test]
fn faults_say_what_their_pages_show() {
    let source = ModelFault { model: "m".to_owned(), message: "gone".to_owned(), may_retry: true, source: None };
    let faults = [
        Fault::Contended { run: run() },
        Fault::Model { run: run(), source },
        Fault::Left { run: run() },
        StoreFault::new("load a run", StoreFaultKind::Corrupt).into(),
        StoreFault::new("append", StoreFaultKind::Full).into(),
        StoreFault::new("load a run", StoreFaultKind::Newer).into(),
        StoreFault::new("append", StoreFaultKind::Unavailable).into(),
        StoreFault::new("append", StoreFaultKind::Unknown).into(),
    ];
    assert_eq!(faults.iter().map(Fault::code).collect::<Vec<_>>(), Fault::CODES);
    for fault in &faults {
        check(fault.code(), &[fault.to_string()]);
    }
}

fn agent() -> Agent {
    let tool = Tool::builder("delete_file").function(|_, _: serde_json::Map<_, _>| async { "gone" }).unwrap();
    let guardrail = InputGuardrail::new("no passwords", |_, items| async move {
        match format!("{items:?}").contains("hunter2") {
            true => TextVerdict::Trip("the message holds a password".to_owned()),
            false => TextVerdict::Pass,
        }
    });
    Agent::builder("Support").tool(tool).input_guardrail(guardrail).build().unwrap()
}

#[tokio::test]
async fn failed_runs_say_what_their_pages_show() {
    let without_id = || Reply::empty().and_call_as("", "delete_file", json!({}));
    for (code, input, reply) in [
        (failure::TURNS_EXHAUSTED, "go on", Reply::call("delete_file", json!({}))),
        (failure::MODEL_MISBEHAVED, "go on", without_id()),
        (failure::GUARDRAIL_TRIPPED, "hunter2", Reply::text("never said")),
    ] {
        let runner = Runner::in_memory(ScriptedModel::by(move |_| reply.clone()));
        match runner.run(&agent(), input).await.unwrap() {
            RunOutcome::Failed { code: found, message, .. } => {
                assert_eq!(found, code);
                check(code, &[message]);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn refused_replies_say_what_their_pages_show() {
    let call = |id: &str, argument: u32| Reply::empty().and_call_as(id, "delete_file", json!({"n": argument}));
    let calls = (0..129).map(|index| ProposedCall {
        id: format!("call_{index}"),
        tool: "delete_file".to_owned(),
        arguments: "{}".to_owned(),
    });
    for (code, reply) in [
        (reply::CALL_ID_EMPTY, call("", 1)),
        (reply::CALL_ID_REUSED, call("a", 1).and_call_as("a", "delete_file", json!({"n": 2}))),
        (reply::REPLY_TOO_LARGE, Reply::text("x".repeat((4 << 20) + 1))),
        (reply::TOO_MANY_CALLS, ModelReply { calls: calls.collect(), ..ModelReply::default() }.into()),
    ] {
        let model = ScriptedModel::by(move |request| match request.turn {
            1 => reply.clone(),
            _ => Reply::text("Now I behave."),
        });
        let runner = Runner::in_memory(model.chunk_chars_max(8 << 20));
        let outcome = runner.run(&agent(), "go on").await.unwrap();
        assert_eq!(outcome.text().as_deref(), Some("Now I behave."), "{code}");
        let journal = runner.runtime().read_journal(outcome.run_id()).await.unwrap();
        let refused = journal.iter().flat_map(|entry| entry.events.iter()).find_map(|event| match event {
            RunEvent::ReplyRefused(refused) => Some((refused.code.clone(), refused.message.clone())),
            _ => None,
        });
        let (found, message) = refused.unwrap_or_else(|| panic!("{code}: nothing was refused"));
        assert_eq!(found, code);
        check(code, &[message]);
    }
}
