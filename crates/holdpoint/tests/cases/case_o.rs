//! Group O: states that were ever written down are read for ever. They lie in `fixtures/states/`, and are never changed.
//!
//! `HOLDPOINT_WRITE_FIXTURES=1 cargo test -p holdpoint --test case_o` writes those that the manifest does not list yet.
use std::collections::BTreeSet;
use std::future::IntoFuture as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::*;
use holdpoint::*;
use holdpoint_core::record::FORMAT;
use holdpoint_testkit::clock::TestClock;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{Notify, OnceCell};

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    /// States that every later version reads.
    states: Vec<Written>,
    /// Documents that no version accepts.
    refused: Vec<Refused>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    file: String,
    format: u64,
    writer: String,
    sha256: String,
    /// How far the run is, and what a person is shown.
    reads: Vec<String>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Refused {
    file: String,
    sha256: String,
    code: String,
}

fn shelf() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/states"))
}

fn text_of_file(file: &str) -> String {
    std::fs::read_to_string(shelf().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// A state of the shelf, by its name.
async fn shelved(name: &str) -> String {
    let file = format!("format-1/{name}.json");
    assert!(manifest().await.states.iter().any(|state| state.file == file), "{file} is not listed");
    text_of_file(&file)
}

/// What is listed. Other tests keep files of their own on the shelf; they look after those themselves.
async fn manifest() -> &'static Manifest {
    static MANIFEST: OnceCell<Manifest> = OnceCell::const_new();
    let read = || async {
        if std::env::var_os("HOLDPOINT_WRITE_FIXTURES").is_some() {
            write_missing().await;
        }
        serde_json::from_str(&text_of_file("MANIFEST.json")).unwrap()
    };
    MANIFEST.get_or_init(read).await
}

async fn write_missing() {
    let path = shelf().join("MANIFEST.json");
    let mut manifest: Manifest =
        std::fs::read(&path).map_or(Manifest::default(), |bytes| serde_json::from_slice(&bytes).unwrap());
    let known: BTreeSet<String> = manifest.states.iter().map(|state| state.file.clone()).collect();
    let refused: BTreeSet<String> = manifest.refused.iter().map(|case| case.file.clone()).collect();
    let desk = Desk::new();
    let documents = documents(&desk).await;
    let broken = broken(&documents[0].1);
    for (name, json) in &documents {
        let file = format!("format-{FORMAT}/{name}.json");
        if !known.contains(&file) {
            let reads = reads(&RunState::from_json(&desk.agent, json).unwrap());
            let writer = concat!("holdpoint ", env!("CARGO_PKG_VERSION")).to_owned();
            manifest.states.push(Written { sha256: write(&file, json), file, format: FORMAT, writer, reads });
        }
    }
    for (name, code, text) in broken {
        let file = format!("refused/{name}.json");
        if !refused.contains(&file) {
            manifest.refused.push(Refused { sha256: write(&file, &text), file, code: code.to_owned() });
        }
    }
    std::fs::write(path, serde_json::to_string_pretty(&manifest).unwrap() + "\n").unwrap();
}

/// Writes a new file, and gives its digest.
fn write(file: &str, text: &str) -> String {
    let path = shelf().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(!path.exists(), "{file} exists, and is not in the manifest");
    let text = format!("{text}\n");
    std::fs::write(path, &text).unwrap();
    Digest::of(text.as_bytes()).to_string()
}

/// A state in short, in words that do not depend on how it is stored or what our types are called.
fn reads(state: &RunState) -> Vec<String> {
    let run = state.run();
    let at = state.current_agent().map_or("nobody".to_owned(), ToString::to_string);
    let usage = state.usage();
    let cost = format!("{}+{} tokens in {} requests", usage.input_tokens, usage.output_tokens, usage.requests);
    let head = format!("{} of {at} {}, {} items, {cost}", run.id(), end_of(run), state.items().len());
    let pauses = state.all_pauses().iter().map(|pause| {
        let view = run.pause_view(pause.id);
        // As long as its turn lasts, which is how long these lines have always told of a call.
        let call = view.as_ref().and_then(|view| view.call.as_ref()).filter(|call| run.call(&call.path).is_some());
        let call = call.map_or(String::new(), |call| format!(" {} {} {}", call.call_id, call.tool, call.arguments));
        format!("pause {} {} {}{call}", pause.id.number, pause.kind.name(), answer_of(pause))
    });
    let rules = run.rules().iter().map(|rule| {
        let says = if rule.is_denial() { "denies" } else { "approves" };
        let (uses, conditions) = (run.rule_uses(rule.id), rule.scope.constraints.len());
        format!(
            "rule {} {says} {} by {}, {conditions} conditions, {uses} uses",
            rule.id, rule.scope.tool.name, rule.author
        )
    });
    let staged = run.staged().iter().map(|staged| format!("staged {}", staged.to_text()));
    let context = run.context().map(|context| format!("context {context}"));
    [head].into_iter().chain(pauses).chain(rules).chain(staged).chain(context).collect()
}

fn end_of(run: &Run) -> String {
    match RunOutcome::of(run) {
        RunOutcome::Done(done) => format!("done {:?}", done.output.to_text()),
        RunOutcome::Paused { pauses, .. } => format!("under way, {} open", pauses.len()),
        RunOutcome::Failed { code, .. } => format!("failed {code}"),
        RunOutcome::Cancelled { by, reason, .. } => format!("cancelled by {by}: {reason}"),
    }
}

fn answer_of(pause: &Pause) -> String {
    match &pause.state {
        PauseState::Open { expires_at: None } => "open".to_owned(),
        PauseState::Open { expires_at: Some(end) } => format!("open until {end}"),
        PauseState::Decided(decided) => format!("{} by {} at {}", decided.decision.name(), decided.by, decided.at),
        PauseState::Expired { at } => format!("expired at {at}"),
        PauseState::Withdrawn { reason, .. } => format!("withdrawn: {reason}"),
    }
}

/// The agent that the states are of. It may change: a run goes on with the definition that was stored with it.
struct Desk {
    agent: Agent,
    clerk: Agent,
    effects: Effects,
    started: Arc<Notify>,
    calls: Arc<Mutex<Vec<(String, String)>>>,
}

/// Every tool of the desk: counts, notes the call, and hangs where the context says so.
struct DeskTool {
    effects: Effects,
    started: Arc<Notify>,
    calls: Arc<Mutex<Vec<(String, String)>>>,
}

#[async_trait::async_trait]
impl RunTool for DeskTool {
    async fn run(&self, context: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        self.effects.happen();
        self.calls.lock().unwrap().push((context.call_id.clone(), context.idempotency_key()));
        self.started.notify_one();
        if context.context.get("hang").is_some() {
            std::future::pending::<()>().await;
        }
        if arguments.to_value().get("fail").is_some() {
            return Err(ToolFailure::new("the tool failed"));
        }
        Ok(Content::Text(format!("{} ran with {arguments}", context.tool)))
    }
}

/// Holds every call until two have approved it.
struct TwoMustLook;

#[async_trait::async_trait]
impl Policy for TwoMustLook {
    async fn verdict(&self, _: &ToolContext, _: &CanonicalJson) -> Result<PolicyVerdict, String> {
        let rule = Some("two must look".to_owned());
        Ok(PolicyVerdict::Hold(HoldTerms { rule, quorum: 2, ..HoldTerms::because("money moves") }))
    }
}

impl Desk {
    fn new() -> Self {
        let (effects, started, calls) = (Effects::default(), Arc::new(Notify::new()), Arc::default());
        let tool = |name: &str| {
            let runner = DeskTool { effects: effects.clone(), started: started.clone(), calls: Arc::clone(&calls) };
            Tool::builder(name).description("Does it.").schema(json!({"type": "object"})).runner(runner)
        };
        let gated = |name: &str, shape| tool(name).shape(shape).needs_approval(true).build().unwrap();
        let delete = || gated("delete", ToolShape::Function);
        let inner = Agent::builder("Inner").instructions("Help.").tool(delete()).build().unwrap();
        let clerk = Agent::builder("Clerk").instructions("File.").tool(delete()).build().unwrap();
        let guardrail = ToolGuardrail::new("paths", |_, arguments| async move {
            match arguments.to_value().get("forbidden") {
                Some(_) => CallVerdict::Reject("not that path".to_owned()),
                None => CallVerdict::Pass,
            }
        });
        let guardrail = guardrail.phases(&[GuardrailPhase::BeforePause, GuardrailPhase::BeforeRun]);
        let guarded = delete().rebuild().guardrail(guardrail).build().unwrap();
        let agent = Agent::builder("Desk")
            .instructions("Serve.")
            .model_settings(json!({"temperature": 0.5}))
            .tool(tool("look").effect(Effect::ReadOnly).build().unwrap())
            .tool(guarded)
            .tool(gated("pay", ToolShape::Function))
            .tool(tool("wire").policy(TwoMustLook).build().unwrap())
            .tool(gated("sh", ToolShape::Shell))
            .tool(gated("apply_patch", ToolShape::ApplyPatch))
            .tool(gated("computer", ToolShape::Computer))
            .tool(gated("read", ToolShape::Mcp { server: ToolName::new("files").unwrap() }))
            .tool(Tool::builder("ask_user").description("Asks.").shape(ToolShape::Question).build().unwrap())
            .tool(inner.as_tool("ask_inner", "Asks.").build().unwrap())
            .handoff(&clerk)
            .confirm_when(|words| words.contains("Shall I").then(|| "the model asks".to_owned()))
            .input_guardrail(InputGuardrail::new("manners", |_, _| async { TextVerdict::Pass }))
            .output_guardrail(OutputGuardrail::new("words", |_, _| async { TextVerdict::Pass }))
            .build()
            .unwrap();
        Self { agent, clerk, effects, started, calls }
    }
}

const KEY: [u8; 32] = [7; 32];

fn question() -> Value {
    json!({"questions": [{"question": "Which?", "options": [{"label": "old"}, {"label": "all"}]}]})
}

/// The states as this version writes them, the one with everything open first.
async fn documents(desk: &Desk) -> Vec<(&'static str, String)> {
    let agent = &desk.agent;
    let clock = TestClock::default();
    let scripted = |replies: Vec<Reply>| -> Runner {
        let model = ScriptedModel::new(replies)
            .for_agent("ask_inner", [Reply::call("delete", json!({"path": "inner"})), Reply::text("inner")])
            .for_agent("Clerk", [Reply::call("delete", json!({"path": "filed"})), Reply::text("filed")]);
        Runner::builder().model(Arc::new(model)).clock(clock.shared()).build()
    };
    let delete = |path: &str| Reply::call("delete", json!({"path": path})).costing(Usage::request(100, 10));
    let gone = || Reply::text("Gone.").costing(Usage::request(7, 3));
    let mut all = Vec::new();

    let opened = Reply::text("I see to it.")
        .and_call("look", json!({"at": "a"}))
        .and_call("look", json!({"fail": true}))
        .and_call("vanish", json!({}))
        .and_call("delete", json!({"path": "a", "n": 12.5}))
        .and_call("delete", json!({"path": "b", "forbidden": true}))
        .and_call("sh", json!({"command": ["ls", "-l"]}))
        .and_call("apply_patch", json!({"operation": "delete"}))
        .and_call("computer", json!({"actions": [{"type": "click"}]}))
        .and_call("read", json!({"path": "c"}))
        .and_call("ask_user", question());
    let runner = scripted(vec![opened.costing(Usage::request(100, 10)), gone()]);
    let context = Context::new(&json!({"tenant": "acme"})).unwrap();
    let outcome = runner.run(agent, "remove the old backup").by("ana").context(context).await.unwrap();
    let state = runner.state(agent, outcome.run_id()).await.unwrap();
    all.push(("paused", state.to_json()));
    all.push(("signed", state.to_json_signed(&StateKey::new(KEY).unwrap())));

    let mut decided = state.clone();
    let open = decided.pauses();
    let edited = Decision::ApproveEdited { arguments: CanonicalJson::parse(r#"{"path":"edited"}"#).unwrap() };
    decided.decide(&open[0], edited, None).unwrap();
    decided.deny(&open[1]).unwrap();
    decided.deny_with(&open[2], "").unwrap();
    decided.decide(&open[3], Decision::Respond { content: "by hand".to_owned() }, None).unwrap();
    decided.approve(&open[4]).unwrap();
    let answers = Answers::from([("Which?".to_owned(), vec!["old".to_owned()])]);
    decided.decide(&open[5], Decision::Answer { answers }, None).unwrap();
    all.push(("decided-not-started", decided.to_json()));

    let runner = scripted(vec![Reply::call("wire", json!({"amount": 1_000})), gone()]);
    let outcome = runner.run(agent, "go").await.unwrap();
    runner.approve(&outcome.pauses()[0]).by("ana").request("r1").await.unwrap();
    all.push(("voted", runner.state(agent, outcome.run_id()).await.unwrap().to_json()));

    let runner = scripted(vec![delete("a"), gone()]);
    let outcome = runner.run(agent, "go").await.unwrap();
    let mut denied = runner.state(agent, outcome.run_id()).await.unwrap();
    denied.deny_with(&outcome.pauses()[0], "keep it until Friday").unwrap();
    all.push(("denied", denied.to_json()));

    let outcome = runner.run(agent, "go").await.unwrap();
    let mut staged = runner.state(agent, outcome.run_id()).await.unwrap();
    staged.add_input("and hurry").unwrap();
    staged.set_current_agent(&desk.clerk).unwrap();
    let other = Context::new(&json!({"tenant": "other"})).unwrap();
    let staged = staged.with_context(other, ContextStrategy::Replace).unwrap();
    all.push(("staged-and-set", staged.to_json()));

    let runner = scripted(vec![Reply::call("ask_inner", json!({"input": "help"})), gone()]);
    let outcome = runner.run(agent, "go").await.unwrap();
    all.push(("nested", runner.state(agent, outcome.run_id()).await.unwrap().to_json()));

    let runner = scripted(vec![Reply::call("transfer_to_clerk", json!({}))]);
    let outcome = runner.run(agent, "go").await.unwrap();
    all.push(("handed-off", runner.state(agent, outcome.run_id()).await.unwrap().to_json()));

    let runner = scripted(vec![Reply::text("Shall I delete it?"), gone()]);
    let outcome = runner.run(agent, "go").await.unwrap();
    all.push(("confirming", runner.state(agent, outcome.run_id()).await.unwrap().to_json()));

    let pay = |amount: u32| Reply::call("pay", json!({"amount": amount}));
    let runner = scripted(vec![pay(11), pay(50), pay(1_000_000), gone()]);
    let outcome = runner.run(agent, "go").session("desk").await.unwrap();
    let small = Always::in_session().only(Constraint::at_most("/amount", 100)).uses_max(3);
    runner.approve(&outcome.pauses()[0]).by("ana").via("console").always(small).await.unwrap();
    let outcome = runner.resume(agent, outcome.run_id()).await.unwrap();
    let never = Always::in_run().any_agent().only(Constraint::starts_with("/to", "bo"));
    runner.deny(&outcome.pauses()[0]).by("ben").message("too much").always(never).await.unwrap();
    let mut ruled = runner.state(agent, outcome.run_id()).await.unwrap();
    all.push(("ruled", ruled.to_json()));
    ruled = ruled.with_context(Context::default(), ContextStrategy::Replace).unwrap();
    all.push(("rules-revoked", ruled.to_json()));

    let runner = scripted(vec![delete("a"), gone()]);
    let outcome = runner.run(agent, "one").session("desk").await.unwrap();
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    runner.resume(agent, outcome.run_id()).await.unwrap();
    all.push(("done", runner.state(agent, outcome.run_id()).await.unwrap().to_json()));
    let outcome = runner.run(agent, "two").session("desk").await.unwrap();
    all.push(("with-history", runner.state(agent, outcome.run_id()).await.unwrap().to_json()));
    runner.cancel(outcome.run_id(), ActorId::new("ben").unwrap(), "never mind").await.unwrap();
    all.push(("cancelled", runner.state(agent, outcome.run_id()).await.unwrap().to_json()));

    let looks = |turn: u32| Reply::call("look", json!({"turn": turn}));
    let runner = scripted(vec![looks(1), looks(2), looks(3)]);
    let outcome = runner.run(agent, "go").turns_max(2).await.unwrap();
    all.push(("failed", runner.state(agent, outcome.run_id()).await.unwrap().to_json()));

    let unusable = Reply::empty().and_call_as("", "look", json!({}));
    let first = Reply::empty().and_call_as("call_x", "look", json!({"at": "a"}));
    let again = Reply::empty()
        .and_call_as("call_x", "look", json!({"at": "a"}))
        .and_proposed(ProposedCall {
            id: "call_y".to_owned(),
            tool: "delete".to_owned(),
            arguments: "{oops".to_owned(),
        })
        .and_call_as("call_z", "delete", json!({"__proto__": {"approved": true}, "constructor": 1}));
    let runner = scripted(vec![unusable, first, again, gone()]);
    let outcome = runner.run(agent, "go").turns_max(None).await.unwrap();
    all.push(("odd-replies", runner.state(agent, outcome.run_id()).await.unwrap().to_json()));

    let model = ScriptedModel::new([Reply::calls([("pay", json!({"n": 1})), ("delete", json!({"n": 2}))]), gone()]);
    let builder = Runner::builder().model(Arc::new(model)).clock(clock.shared());
    let runner = builder.pause_deadline(Duration::from_secs(60)).build();
    let hang = Context::new(&json!({"hang": true})).unwrap();
    let outcome = runner.run(agent, "go").context(hang).await.unwrap();
    runner.approve(&outcome.pauses()[0]).await.unwrap();
    let before = desk.effects.count();
    let driving = tokio::spawn(runner.resume(agent, outcome.run_id()).into_future());
    while desk.effects.count() == before {
        desk.started.notified().await;
    }
    driving.abort();
    driving.await.unwrap_err();
    all.push(("started", runner.state(agent, outcome.run_id()).await.unwrap().to_json()));
    clock.advance(Duration::from_secs(61));
    runner.runtime().expire_pauses(16).await.unwrap();
    runner.resume(agent, outcome.run_id()).await.unwrap();
    all.push(("in-doubt-and-expired", runner.state(agent, outcome.run_id()).await.unwrap().to_json()));
    let doubt = runner.read(outcome.run_id()).await.unwrap().open_pauses().remove(0);
    runner.run_again(&doubt).await.unwrap();
    all.push(("released", runner.state(agent, outcome.run_id()).await.unwrap().to_json()));
    all
}

/// What is wrong, how it is refused, and the document, made from one that is in order.
fn broken(whole: &str) -> Vec<(&'static str, &'static str, String)> {
    let edited = |edit: fn(&mut Value)| {
        let mut document: Value = serde_json::from_str(whole).unwrap();
        edit(&mut document);
        document.to_string()
    };
    let with = |event: Value| {
        let mut document: Value = serde_json::from_str(whole).unwrap();
        let entries = document["entries"].as_array_mut().unwrap();
        entries.push(json!({"at": 1_794_735_000_000_u64, "events": [event]}));
        document.to_string()
    };
    fn events(document: &mut Value) -> impl DoubleEndedIterator<Item = &mut Value> {
        let entries = document["entries"].as_array_mut().unwrap();
        entries.iter_mut().flat_map(|entry| entry["events"].as_array_mut().unwrap())
    }
    let twice = |field: &str| whole.replacen('{', &format!("{{{field},"), 1);
    vec![
        ("format-newer", "format_newer", edited(|document| document["format"] = json!(FORMAT + 1))),
        ("format-far-newer", "format_newer", edited(|document| document["format"] = json!(u64::MAX))),
        ("format-zero", "not_a_state", edited(|document| document["format"] = json!(0))),
        ("format-as-text", "not_a_state", edited(|document| document["format"] = json!("1"))),
        ("format-as-version", "not_a_state", edited(|document| document["format"] = json!("1.0"))),
        ("format-negative", "not_a_state", edited(|document| document["format"] = json!(-1))),
        ("format-missing", "not_a_state", edited(|document| drop(document.as_object_mut().unwrap().remove("format")))),
        ("format-twice", "not_a_state", twice(r#""format":1"#)),
        ("kind-missing", "not_a_state", edited(|document| drop(document.as_object_mut().unwrap().remove("kind")))),
        ("kind-of-another", "not_a_state", edited(|document| document["kind"] = json!("RunState"))),
        ("cut-off", "not_a_state", whole[..whole.len() / 2].to_owned()),
        ("empty-object", "not_a_state", "{}".to_owned()),
        ("a-list", "not_a_state", "[]".to_owned()),
        ("no-entries", "state_corrupt", edited(|document| document["entries"] = json!([]))),
        ("run-twice", "state_corrupt", twice(r#""run":"run_0198c0ffee007000800000000000beef""#)),
        ("field-unknown", "state_corrupt", edited(|document| document["added_later"] = json!(1))),
        ("field-proto", "state_corrupt", edited(|document| document["__proto__"] = json!({"format": 1}))),
        ("event-unknown", "state_corrupt", with(json!({"call.compacted": {}}))),
        ("event-field-unknown", "state_corrupt", with(json!({"call.started": {"call": "1.3", "sticky": true}}))),
        ("start-unapproved", "state_corrupt", with(json!({"call.started": {"call": "1.3"}}))),
        ("allowed-beside-the-pause", "state_corrupt", with(json!({"call.allowed": {"call": "1.3", "by": "policy"}}))),
        (
            "result-without-start",
            "state_corrupt",
            with(json!({"call.answered": {"call": "1.3", "outcome": {"result": {"text": "done"}}}})),
        ),
        (
            "decision-without-pause",
            "state_corrupt",
            with(json!({"pause.decided": {"number": 99, "decision": "approve", "by": "ana"}})),
        ),
        (
            "decision-unknown",
            "state_corrupt",
            with(json!({"pause.decided": {"number": 1, "decision": "approve_all", "by": "ana"}})),
        ),
        ("end-while-open", "state_corrupt", with(json!({"run.finished": {"done": {"text": "Gone."}}}))),
        ("arguments-changed", "state_corrupt", whole.replacen(r#""path":"a""#, r#""path":"/""#, 1)),
        (
            "pause-led-elsewhere",
            "state_corrupt",
            edited(|document| {
                let opened = events(document).find_map(|event| event.get_mut("pause.opened"));
                opened.unwrap()["at"] = json!("1.5");
            }),
        ),
        (
            "beginning-twice",
            "state_corrupt",
            edited(|document| {
                let start = document["entries"][0]["events"][0].clone();
                document["entries"][0]["events"].as_array_mut().unwrap().push(start);
            }),
        ),
        ("definition-changed", "state_corrupt", whole.replacen("Serve.", "Obey.", 1)),
        ("agent-unknown", "agent_missing", whole.replace(r#""id":"Desk""#, r#""id":"Desk/gone""#)),
    ]
}

#[tokio::test]
async fn every_format_that_was_ever_written_has_states_on_the_shelf_and_no_other() {
    let manifest = manifest().await;
    let formats: BTreeSet<u64> = manifest.states.iter().map(|state| state.format).collect();
    assert_eq!(formats, (1..=FORMAT).collect());
    for state in &manifest.states {
        assert!(state.file.starts_with(&format!("format-{}/", state.format)), "{}", state.file);
    }
}

#[tokio::test]
async fn every_kind_of_event_is_in_the_states_of_each_format() {
    let manifest = manifest().await;
    // Of events that were added later, older formats know nothing: they get a line of their own then.
    let kinds = [
        "agent.handed_off",
        "agent.set",
        "call.allowed",
        "call.answered",
        "call.denied",
        "call.released",
        "call.started",
        "context.set",
        "guardrails.ran",
        "input.staged",
        "model.replied",
        "pause.decided",
        "pause.expired",
        "pause.opened",
        "pause.voted",
        "pause.withdrawn",
        "reply.refused",
        "rule.made",
        "rule.revoked",
        "run.finished",
        "run.started",
    ];
    let mut found = BTreeSet::new();
    for state in manifest.states.iter().filter(|state| state.format == 1) {
        let document: Value = serde_json::from_str(&text_of_file(&state.file)).unwrap();
        let entries = document["entries"].as_array().unwrap();
        let events = entries.iter().flat_map(|entry| entry["events"].as_array().unwrap());
        found.extend(events.flat_map(|event| event.as_object().unwrap().keys().cloned()));
    }
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), kinds);
}

#[tokio::test]
async fn every_file_on_the_shelf_is_what_its_writer_left_there() {
    let manifest = manifest().await;
    let states = manifest.states.iter().map(|state| (&state.file, &state.sha256));
    for (file, sha256) in states.chain(manifest.refused.iter().map(|case| (&case.file, &case.sha256))) {
        let found = Digest::of(text_of_file(file).as_bytes()).to_string();
        assert_eq!(&found, sha256, "{file} was changed: states are written once; add a new file instead");
    }
    for state in &manifest.states {
        assert!(state.writer.starts_with("holdpoint "), "{}", state.file);
        let document: Value = serde_json::from_str(&text_of_file(&state.file)).unwrap();
        assert_eq!(document["format"], json!(state.format), "{}", state.file);
    }
}

#[tokio::test]
async fn every_state_reads_as_it_did_and_is_written_again_without_a_change() {
    let desk = Desk::new();
    for written in &manifest().await.states {
        let text = text_of_file(&written.file);
        let state = RunState::from_json(&desk.agent, &text).unwrap_or_else(|error| panic!("{}: {error}", written.file));
        assert_eq!(reads(&state), written.reads, "{}", written.file);
        let again = state.to_json();
        let twice = RunState::from_json(&desk.agent, &again).unwrap();
        assert_eq!((twice.to_json(), twice.run()), (again.clone(), state.run()), "{}", written.file);
        if written.format == FORMAT && !written.file.ends_with("/signed.json") {
            assert_eq!(again, text.trim_end(), "{}", written.file);
        }
    }
    assert_eq!(desk.effects.count(), 0, "reading runs nothing");
}

#[tokio::test]
async fn a_signature_that_was_written_once_is_still_the_right_one() {
    let desk = Desk::new();
    let text = shelved("signed").await;
    let key = StateKey::new(KEY).unwrap();
    let state = RunState::from_json_signed(&desk.agent, &text, &key).unwrap();
    assert_eq!(state.to_json(), text.trim_end());
    let other = StateKey::new([8; 32]).unwrap();
    assert_eq!(RunState::from_json_signed(&desk.agent, &text, &other).unwrap_err().code(), "state_tampered");
}

/// Decides what is open in a state of the shelf, goes on to the end, and says how the run ended.
async fn settle(desk: &Desk, mut state: RunState) -> (RunOutcome, ScriptedModel) {
    let model = ScriptedModel::by(|_| Reply::text("Gone."));
    let runner = Runner::in_memory(model.clone());
    for pause in state.pauses() {
        let decision = match pause.pause.kind {
            PauseKind::Approval | PauseKind::Confirmation => Decision::Approve,
            PauseKind::Question => {
                Decision::Answer { answers: Answers::from([("Which?".to_owned(), vec!["all".to_owned()])]) }
            }
            PauseKind::InDoubt => Decision::Abandon,
        };
        state.decide(&pause, decision, None).unwrap();
    }
    (runner.resume_state(&desk.agent, state).await.unwrap(), model)
}

#[tokio::test]
async fn every_state_on_the_shelf_goes_on_to_its_end() {
    // How many calls take effect, and how it ends.
    let expected = [
        ("paused", 5, "Gone."),
        ("signed", 5, "Gone."),
        ("decided-not-started", 2, "Gone."),
        ("denied", 0, "Gone."),
        ("staged-and-set", 1, "Gone."),
        ("nested", 1, "Gone."),
        ("handed-off", 1, "Gone."),
        ("confirming", 0, "Gone."),
        ("ruled", 0, "Gone."),
        ("rules-revoked", 0, "Gone."),
        ("done", 0, "Gone."),
        ("with-history", 1, "Gone."),
        ("cancelled", 0, ""),
        ("failed", 0, ""),
        ("odd-replies", 1, "Gone."),
        ("in-doubt-and-expired", 0, "Gone."),
        ("voted", 1, "Gone."),
    ];
    for (name, effects, output) in expected {
        let desk = Desk::new();
        let state = RunState::from_json(&desk.agent, &shelved(name).await).unwrap();
        let was_over = state.end().is_some();
        let (outcome, model) = settle(&desk, state).await;
        assert_eq!(outcome.text().unwrap_or_default(), output, "{name}: {outcome:?}");
        assert_eq!((desk.effects.count(), model.calls() == 0), (effects, was_over), "{name}");
    }
}

#[tokio::test]
async fn a_start_of_an_old_release_whose_end_nobody_wrote_down_is_in_doubt() {
    let desk = Desk::new();
    let state = RunState::from_json(&desk.agent, &shelved("started").await).unwrap();
    let runner = Runner::in_memory(ScriptedModel::by(|_| Reply::text("Gone.")));
    let asked = runner.resume_state(&desk.agent, state).await.unwrap();
    let doubts = asked.pauses().iter().filter(|pause| pause.pause.kind == PauseKind::InDoubt);
    assert_eq!((doubts.count(), desk.effects.count()), (1, 0));
}

#[tokio::test]
async fn the_ids_of_a_turn_are_kept_so_that_a_tool_sees_the_call_that_the_old_release_held() {
    let desk = Desk::new();
    let text = shelved("nested").await;
    let state = RunState::from_json(&desk.agent, &text).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["run"], json!(state.run_id().to_string()));
    let held = state.pauses()[0].call.clone().unwrap();
    assert!(text.contains(&format!(r#""call_id":"{}""#, held.call_id)));
    let run = state.run_id();
    let (outcome, model) = settle(&desk, state).await;
    assert_eq!(outcome.run_id(), run);
    assert_eq!(*desk.calls.lock().unwrap(), [(held.call_id.clone(), format!("{run}:{}", held.path))]);
    let shown = model.requests();
    assert!(shown.iter().all(|request| request.run == run));
    assert_eq!(told(&shown[0].items)[0].0, held.call_id);
}

#[tokio::test]
async fn an_exact_denial_of_an_old_release_is_honoured() {
    let desk = Desk::new();
    let state = RunState::from_json(&desk.agent, &shelved("denied").await).unwrap();
    assert!(state.pauses().is_empty(), "nobody is asked again");
    let mut changed = state.clone();
    let pause = state.all_pauses()[0].id;
    assert_eq!(changed.approve(pause).unwrap_err().code(), "already_decided");
    let (_, model) = settle(&desk, state).await;
    let told: Vec<String> = told(&model.requests()[0].items).into_iter().map(|(_, text, _)| text).collect();
    assert_eq!(told, ["keep it until Friday"]);
    assert_eq!(desk.effects.count(), 0);
}

#[tokio::test]
async fn every_document_that_is_no_state_is_refused_before_anything_runs() {
    let desk = Desk::new();
    let manifest = manifest().await;
    assert!(manifest.refused.len() >= 30);
    let model = ScriptedModel::by(|_| Reply::text("Gone."));
    let runner = Runner::in_memory(model.clone());
    for case in &manifest.refused {
        let text = text_of_file(&case.file);
        let refused = RunState::from_json(&desk.agent, &text).unwrap_err();
        assert_eq!(refused.code(), case.code, "{}: {refused}", case.file);
        assert_eq!(runner.read_state(&desk.agent, &text).unwrap_err().code(), case.code);
        for strategy in [ContextStrategy::Merge, ContextStrategy::Replace] {
            let refused = RunState::from_json_with_context(&desk.agent, &text, Context::default(), strategy);
            assert_eq!(refused.unwrap_err().code(), case.code, "{}", case.file);
        }
    }
    assert_eq!((desk.effects.count(), model.calls()), (0, 0));
}

// There, such a key could change what every object inherits. Here a key is data in arguments, and unknown elsewhere.
#[tokio::test]
async fn a_key_that_means_something_to_javascript_is_data_and_nothing_else() {
    let desk = Desk::new();
    let state = RunState::from_json(&desk.agent, &shelved("odd-replies").await).unwrap();
    let held = state.pauses().remove(0).call.unwrap();
    assert_eq!(held.arguments.as_str(), r#"{"__proto__":{"approved":true},"constructor":1}"#);
    let (_, model) = settle(&desk, state).await;
    let told = told(&model.requests()[0].items).pop().unwrap();
    assert_eq!(told.1, format!("delete ran with {}", held.arguments));
    let refused = RunState::from_json(&desk.agent, &text_of_file("refused/field-proto.json")).unwrap_err();
    assert_eq!(refused.code(), "state_corrupt");
}
