//! Group G: approval of calls to tools of MCP servers. A decision belongs to one server, one tool and one call.

use std::sync::{Arc, Mutex};

use crate::common::journal::*;
use crate::common::*;
use holdpoint::tools::mcp::{McpCaller, McpToolSpec, RequireApproval, mcp_tool};
use holdpoint::*;
use serde_json::{Value, json};

/// What servers were asked to do, from outside the runtime.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn count(&self) -> usize {
        self.lines().len()
    }
}

struct Server {
    label: String,
    log: Log,
}

#[async_trait::async_trait]
impl McpCaller for Server {
    async fn call(&self, context: ToolContext, tool: &str, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        self.log.0.lock().unwrap().push(format!("{}/{tool} {} {arguments}", self.label, context.call_id));
        Ok(Content::Text(format!("{} did {tool}", self.label)))
    }
}

fn served_as(server: &str, tool: &str, policy: &Value, log: &Log) -> Tool {
    let spec = McpToolSpec {
        server_label: server.to_owned(),
        tool_name: tool.to_owned(),
        schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        read_only_hint: Some(false),
        ..McpToolSpec::default()
    };
    let policy = RequireApproval::parse(policy).unwrap();
    mcp_tool(spec, &policy, Server { label: server.to_owned(), log: log.clone() }).unwrap()
}

/// A tool of a server, always held.
fn served(server: &str, tool: &str, log: &Log) -> Tool {
    served_as(server, tool, &json!("always"), log)
}

/// A reply with one call of `delete`.
fn delete(id: &str, path: &str) -> Reply {
    Reply::empty().and_call_as(id, "delete", json!({"path": path}))
}

fn ran(server: &str, id: &str, path: &str) -> String {
    format!(r#"{server}/delete {id} {{"path":"{path}"}}"#)
}

const DENIED: &str = r#"{"approve":false}"#;

fn denied(reason: &str) -> String {
    format!(r#"{{"approve":false,"reason":"{reason}"}}"#)
}

struct Desk {
    runner: Runner,
    model: ScriptedModel,
    agent: Agent,
    log: Log,
}

/// An agent with the tool `delete` of the server `files`, which is set up further.
fn desk_with(set_up: impl FnOnce(ToolBuilder) -> ToolBuilder, replies: impl IntoIterator<Item = Reply>) -> Desk {
    let log = Log::default();
    let tool = set_up(served("files", "delete", &log).rebuild()).build().unwrap();
    let model = ScriptedModel::new(replies);
    Desk { runner: Runner::in_memory(model.clone()), model, agent: agent("Ops", [tool]), log }
}

fn desk(replies: impl IntoIterator<Item = Reply>) -> Desk {
    desk_with(|tool| tool, replies)
}

impl Desk {
    async fn start(&self) -> RunOutcome {
        self.runner.run(&self.agent, "go").await.unwrap()
    }

    async fn go_on(&self, paused: &RunOutcome) -> RunOutcome {
        self.runner.resume(&self.agent, paused.run_id()).await.unwrap()
    }
}

/// A decider that counts how often it is asked.
fn decider(
    asked: &Effects,
    decision: AutoDecision,
) -> impl Fn(ToolContext, CanonicalJson) -> std::future::Ready<AutoDecision> + Send + Sync + 'static {
    let asked = asked.clone();
    move |_, _| {
        asked.happen();
        std::future::ready(decision.clone())
    }
}

/// An agent with a tool of the server `files`, which hands over to one with the tool of that name of another server,
/// and a model that has both called.
fn relay_to(second: Tool, log: &Log) -> (Agent, ScriptedModel) {
    let relay = relay(served("files", second.name().as_str(), log), second.clone());
    let call = |id: &str, path: &str| Reply::empty().and_call_as(id, second.name().as_str(), json!({"path": path}));
    let handover = Reply::call("transfer_to_second", json!({}));
    (relay, ScriptedModel::new([call("r1", "a"), handover, call("r2", "b"), Reply::text("Done.")]))
}

// The gate.

#[tokio::test]
async fn a_call_to_a_server_waits_for_a_person_and_then_is_made_once() {
    let desk = desk([delete("r1", "a"), Reply::text("Done.")]);
    let paused = desk.start().await;
    let [pause] = paused.pauses() else { panic!("one pause expected: {paused:?}") };
    let call = pause.call.as_ref().unwrap();
    assert_eq!((pause.pause.kind, call.tool.as_str()), (PauseKind::Approval, "delete"));
    assert_eq!((call.call_id.as_str(), arguments(&paused, 0)), ("r1", json!({"path": "a"})));
    let run = desk.runner.read(paused.run_id()).await.unwrap();
    let kind = run.call(&call.path).unwrap().record.kind.clone();
    assert_eq!(kind, ToolKind::Mcp { server: ToolName::new("files").unwrap() });
    assert_eq!((desk.log.count(), desk.model.calls()), (0, 1));
    desk.runner.approve(pause).await.unwrap();
    assert_eq!(text_of(&desk.go_on(&paused).await), "Done.");
    assert_eq!(desk.log.lines(), [ran("files", "r1", "a")]);
    assert_eq!(results(&desk.model), ["files did delete"]);
}

#[tokio::test]
async fn without_a_decision_a_call_to_a_server_stays_pending() {
    let asked = Effects::default();
    let replies = || [delete("r1", "a"), Reply::text("Done.")];
    let abstaining = desk_with(|tool| tool.on_approval("watch", decider(&asked, AutoDecision::Abstain)), replies());
    for desk in [desk(replies()), abstaining] {
        let paused = desk.start().await;
        let again = desk.go_on(&paused).await;
        assert_eq!((again.pauses(), desk.log.count(), desk.model.calls()), (paused.pauses(), 0, 1));
    }
    assert_eq!(asked.count(), 1, "going on without a decision asks nobody anew");
}

#[tokio::test]
async fn the_operators_policy_says_which_tools_of_a_server_are_held() {
    for (policy, is_held) in [
        (json!("always"), true),
        (json!("never"), false),
        (RequireApproval::default().to_value(), false),
        (json!({"always": {"tool_names": ["delete"]}}), true),
        (json!({"never": {"toolNames": ["delete"]}}), false),
        (json!({"never": {"tool_names": ["search"]}}), true),
        (json!({"never": {"read_only": true}}), true),
        (json!({"always": {"readOnly": true}, "never": {"read_only": false}}), false),
    ] {
        let log = Log::default();
        let agent = agent("Ops", [served_as("files", "delete", &policy, &log)]);
        let runner = Runner::in_memory(ScriptedModel::new([delete("r1", "a"), Reply::text("Done.")]));
        let outcome = runner.run(&agent, "go").await.unwrap();
        assert_eq!((outcome.is_paused(), log.count()), (is_held, usize::from(!is_held)), "{policy}");
    }
}

#[tokio::test]
async fn the_providers_id_of_a_call_is_its_one_id_from_pause_to_outcome() {
    let desk = desk([delete("mcpr_7", "a"), Reply::text("Done.")]);
    let paused = desk.start().await;
    assert_eq!(paused.pauses()[0].call.as_ref().unwrap().call_id, "mcpr_7");
    desk.runner.approve(&paused.pauses()[0]).await.unwrap();
    desk.go_on(&paused).await;
    assert_eq!(desk.log.lines(), [ran("files", "mcpr_7", "a")]);
    let told = told(&desk.model.requests()[1].items);
    assert_eq!(told, [("mcpr_7".to_owned(), "files did delete".to_owned(), false)]);
}

#[tokio::test]
async fn a_call_to_a_server_whose_arguments_cannot_be_read_is_told_and_nobody_is_asked() {
    for arguments in ["", "{", "null", "[]", r#"{"path": 7}"#] {
        let asked = Effects::default();
        let call = ProposedCall { id: "r1".to_owned(), tool: "delete".to_owned(), arguments: arguments.to_owned() };
        let desk = desk_with(
            |tool| {
                let strict =
                    json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
                tool.schema(strict).on_approval("watch", decider(&asked, AutoDecision::Approve))
            },
            [Reply::empty().and_proposed(call), Reply::text("Done.")],
        );
        assert_eq!(text_of(&desk.start().await), "Done.");
        let told = told(&desk.model.requests()[1].items);
        assert!(told.len() == 1 && told[0].2 && told[0].1.starts_with("the arguments "), "{told:?}");
        assert_eq!((asked.count(), desk.log.count()), (0, 0), "{arguments}");
    }
}

#[tokio::test]
async fn a_call_to_a_server_without_an_id_refuses_the_reply_and_is_not_pending() {
    // There it is pending and cannot be tracked; here nothing opens that could not be decided exactly.
    let asked = Effects::default();
    let desk = desk_with(
        |tool| tool.on_approval("watch", decider(&asked, AutoDecision::Approve)),
        [delete("", "a"), Reply::text("Done.")],
    );
    let done = desk.start().await;
    assert_eq!((text_of(&done).as_str(), desk.log.count(), asked.count()), ("Done.", 0, 0));
    assert_eq!(refused_replies(&desk.runner, done.run_id()).await, ["call_id_empty"]);
    assert_eq!(desk.runner.read(done.run_id()).await.unwrap().pauses(), []);
}

#[tokio::test]
async fn a_call_to_a_server_that_the_agent_does_not_have_is_told_and_nobody_is_asked() {
    // There the run fails; here the model is told and may do better.
    let desk = desk([Reply::empty().and_call_as("r1", "mail.delete", json!({"path": "a"})), Reply::text("Done.")]);
    assert_eq!(text_of(&desk.start().await), "Done.");
    let expected = ("r1".to_owned(), r#"there is no tool named "mail.delete""#.to_owned(), true);
    assert_eq!((told(&desk.model.requests()[1].items), desk.log.count()), (vec![expected], 0));
}

#[tokio::test]
async fn a_servers_tool_is_there_only_where_the_context_has_it() {
    // We load no servers at run time; the nearest is a tool that the context switches on or off.
    for is_on in [true, false] {
        let desk = desk_with(
            |tool| tool.enabled_when(|context| context.get("files") == Some(&json!(true))),
            [delete("r1", "a"), Reply::text("Done.")],
        );
        let context = Context::new(&json!({"files": is_on})).unwrap();
        let outcome = desk.runner.run(&desk.agent, "go").context(context).await.unwrap();
        assert_eq!((outcome.is_paused(), desk.log.count()), (is_on, 0));
        if !is_on {
            assert_eq!(results(&desk.model), [r#"there is no tool named "delete""#]);
        }
        assert_eq!(desk.model.requests()[0].tools.len(), usize::from(is_on));
    }
}

#[tokio::test]
async fn a_pause_of_an_inner_agents_server_names_the_inner_agent() {
    let log = Log::default();
    let inner = agent("Inner", [served("files", "delete", &log)]);
    let outer = agent("Outer", [inner.as_tool("ask_inner", "Asks.").build().unwrap()]);
    let model = ScriptedModel::new([Reply::call("ask_inner", json!({"input": "go"}))])
        .for_agent("ask_inner", [delete("r1", "a")]);
    let runner = Runner::in_memory(model);
    let paused = runner.run(&outer, "go").await.unwrap();
    let restored = RunState::from_json(&outer, &saved(&runner, &outer, &paused).await).unwrap().pauses();
    for pause in [&paused.pauses()[0], &restored[0]] {
        assert_eq!(pause.agent.as_str(), "Outer/ask_inner");
    }
}

#[tokio::test]
async fn two_tools_of_one_name_in_one_agent_are_refused_so_that_a_name_means_one_server() {
    let log = Log::default();
    let both = [served("files", "delete", &log), served("mail", "delete", &log)];
    let refused = both.into_iter().fold(Agent::builder("Ops"), AgentBuilder::tool).build();
    assert_eq!(refused.unwrap_err().code(), "invalid_definition");
}

// What the model is told of a denial.

#[tokio::test]
async fn the_words_of_a_denial_are_the_reason_and_without_words_there_is_none() {
    for (words, expected) in
        [(Some("keep it"), denied("keep it")), (None, DENIED.to_owned()), (Some(""), DENIED.to_owned())]
    {
        let desk = desk([delete("r1", "a"), Reply::text("Done.")]);
        let paused = desk.start().await;
        let denial = desk.runner.deny(&paused.pauses()[0]);
        words.into_iter().fold(denial, DecideRequest::message).await.unwrap();
        assert_eq!(text_of(&desk.go_on(&paused).await), "Done.");
        assert_eq!(told(&desk.model.requests()[1].items), [("r1".to_owned(), expected, true)]);
        assert_eq!(desk.log.count(), 0);
    }
}

#[tokio::test]
async fn the_formatter_is_not_asked_about_denials_of_a_servers_tool() {
    let (formatted, effects, log) = (Effects::default(), Effects::default(), Log::default());
    let asked = formatted.clone();
    let formatter = DenialFormatter::new(move |_| {
        asked.happen();
        async { Ok(Some("the formatter's words".to_owned())) }
    });
    let by_code = served("mail", "send", &log).rebuild();
    let by_code = by_code.on_approval("watch", |_, _| async { AutoDecision::Deny(String::new()) }).build().unwrap();
    let agent = agent(
        "Ops",
        [served("files", "delete", &log), by_code, counted("wipe", &effects).needs_approval(true).build().unwrap()],
    );
    let model = ScriptedModel::new([
        Reply::calls([("delete", json!({"path": "a"})), ("send", json!({})), ("wipe", json!({}))]),
        Reply::text("Done."),
    ]);
    let runner = Runner::builder().model(Arc::new(model.clone())).denial_formatter(formatter.clone()).build();
    let paused = runner.run(&agent, "go").denial_formatter(formatter.clone()).await.unwrap();
    for pause in paused.pauses() {
        runner.deny(pause).await.unwrap();
    }
    runner.resume(&agent, paused.run_id()).denial_formatter(formatter).await.unwrap();
    assert_eq!(results(&model), [DENIED, DENIED, "the formatter's words"]);
    assert_eq!((formatted.count(), log.count(), effects.count()), (1, 0, 0), "asked about the function only");
}

// Deciders in code.

#[tokio::test]
async fn a_decider_answers_a_call_to_a_server_at_once_and_by_name() {
    let cases = [
        (AutoDecision::Approve, "files did delete".to_owned(), 1, "call.allowed"),
        (AutoDecision::Deny("not today".to_owned()), denied("not today"), 0, "call.denied"),
        (AutoDecision::Deny(String::new()), DENIED.to_owned(), 0, "call.denied"),
    ];
    for (decision, expected, calls, event) in cases {
        let asked = Effects::default();
        let desk = desk_with(
            |tool| tool.on_approval("night watch", decider(&asked, decision)),
            [delete("r1", "a"), Reply::text("Done.")],
        );
        let done = desk.start().await;
        assert_eq!((text_of(&done).as_str(), desk.log.count(), asked.count()), ("Done.", calls, 1));
        assert_eq!(results(&desk.model), [expected]);
        let events = events(&desk.runner, done.run_id()).await;
        assert!(!events.iter().any(|event| event.name() == "pause.opened"));
        let recorded = events.iter().find(|found| found.name() == event).unwrap();
        let by = serde_json::to_value(recorded).unwrap()[event]["by"].clone();
        assert_eq!(by.get("decider").cloned().unwrap_or(by), json!("night watch"));
    }
}

#[tokio::test]
async fn a_deciders_word_counts_for_the_one_call_it_was_asked_about() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let watch = move |context: ToolContext, arguments: CanonicalJson| {
        seen.lock().unwrap().push((context.call_id, arguments.as_str().to_owned()));
        let is_known = arguments.to_value()["path"] == "a";
        async move { if is_known { AutoDecision::Approve } else { AutoDecision::Abstain } }
    };
    let both = || Reply::calls([("delete", json!({"path": "a"})), ("delete", json!({"path": "b"}))]);
    // Then other arguments under the id that was approved.
    let replies = [both(), delete("call_1_0", "/"), Reply::text("Done.")];
    let desk = desk_with(|tool| tool.on_approval("watch", watch), replies);
    let paused = desk.start().await;
    assert_eq!((paused.pauses().len(), arguments(&paused, 0)), (1, json!({"path": "b"})));
    desk.runner.deny(&paused.pauses()[0]).await.unwrap();
    let done = desk.go_on(&paused).await;
    assert_eq!(refused_replies(&desk.runner, done.run_id()).await, ["call_id_reused"]);
    assert_eq!(desk.log.lines(), [ran("files", "call_1_0", "a")]);
    let expected = [("call_1_0", r#"{"path":"a"}"#), ("call_1_1", r#"{"path":"b"}"#)];
    assert_eq!(*asked.lock().unwrap(), expected.map(|(id, text)| (id.to_owned(), text.to_owned())));
}

#[tokio::test]
async fn what_a_decider_said_is_known_after_a_restart_and_it_is_not_asked_again() {
    for (decision, expected, calls) in [
        (AutoDecision::Approve, "files did delete".to_owned(), 1),
        (AutoDecision::Deny("no".to_owned()), denied("no"), 0),
    ] {
        let (asked, log, deleted) = (Effects::default(), Log::default(), Effects::default());
        let decided = served("files", "delete", &log).rebuild().on_approval("watch", decider(&asked, decision));
        let waits = counted("wipe", &deleted).needs_approval(true).build().unwrap();
        let agent = agent("Ops", [decided.build().unwrap(), waits]);
        let first = delete("r1", "a").and_call_as("w1", "wipe", json!({}));
        // The same call again, to the letter.
        let model = ScriptedModel::new([first, delete("r1", "a"), Reply::text("Done.")]);
        let runner = Runner::in_memory(model.clone());
        let paused = runner.run(&agent, "go").await.unwrap();
        let mut state = RunState::from_json(&agent, &saved(&runner, &agent, &paused).await).unwrap();
        state.approve(&paused.pauses()[0]).unwrap();
        let done = Runner::in_memory(model.clone()).resume_state(&agent, state).await.unwrap();
        assert_eq!(text_of(&done), "Done.");
        assert_eq!(results(&model), [expected.as_str(), "wipe ran with {}", &expected]);
        assert_eq!((asked.count(), log.count(), deleted.count()), (1, calls, 1));
    }
}

#[tokio::test]
async fn where_a_decision_stands_no_decider_is_asked() {
    for approves in [true, false] {
        let asked = Effects::default();
        let desk = desk_with(
            |tool| tool.on_approval("watch", decider(&asked, AutoDecision::Abstain)),
            [delete("r1", "a"), delete("r2", "b"), Reply::text("Done.")],
        );
        let paused = desk.start().await;
        let decision = if approves { Decision::Approve } else { Decision::deny("no") };
        desk.runner.decide(&paused.pauses()[0], decision).always(Always::in_run()).await.unwrap();
        assert_eq!(text_of(&desk.go_on(&paused).await), "Done.");
        assert_eq!(asked.count(), 1, "about the first call, before anybody had decided");
        let expected = if approves { vec![ran("files", "r1", "a"), ran("files", "r2", "b")] } else { vec![] };
        assert_eq!(desk.log.lines(), expected);
    }
}

// Decisions that stand: one server's are not another's.

#[tokio::test]
async fn a_standing_approval_answers_later_calls_to_that_server_at_once() {
    let desk = desk([delete("r1", "a"), delete("r2", "b"), Reply::text("Done.")]);
    let paused = desk.start().await;
    desk.runner.approve(&paused.pauses()[0]).always(Always::in_run()).await.unwrap();
    let done = desk.go_on(&paused).await;
    assert_eq!(text_of(&done), "Done.");
    assert_eq!(desk.log.lines(), [ran("files", "r1", "a"), ran("files", "r2", "b")]);
    assert_eq!(desk.runner.read(done.run_id()).await.unwrap().pauses().len(), 1);
}

/// Makes a decision of the first server's call stand for every agent, goes on, live or from a document, and says
/// whether the second one asks.
async fn second_asks(second: Tool, log: &Log, decision: Decision, is_kept: bool) -> bool {
    let (relay, model) = relay_to(second, log);
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&relay, "go").await.unwrap();
    let always = Always::in_run().any_agent();
    let outcome = if is_kept {
        let mut state = runner.state(&relay, paused.run_id()).await.unwrap();
        state.decide(&paused.pauses()[0], decision, Some(always)).unwrap();
        let state = RunState::from_json(&relay, &state.to_json()).unwrap();
        Runner::in_memory(model).resume_state(&relay, state).await.unwrap()
    } else {
        runner.decide(&paused.pauses()[0], decision).always(always).await.unwrap();
        runner.resume(&relay, paused.run_id()).await.unwrap()
    };
    outcome.is_paused()
}

#[tokio::test]
async fn a_standing_decision_for_one_server_says_nothing_of_another_live_or_restored() {
    for (is_kept, decision) in
        [false, true].into_iter().flat_map(|kept| [(kept, Decision::Approve), (kept, Decision::deny("no"))])
    {
        let approved = usize::from(decision == Decision::Approve);
        let log = Log::default();
        assert!(second_asks(served("mail", "delete", &log), &log, decision.clone(), is_kept).await);
        assert_eq!(log.count(), approved);
        // The same server's tool of the same name is meant, in every agent.
        let log = Log::default();
        assert!(!second_asks(served("files", "delete", &log), &log, decision.clone(), is_kept).await);
        assert_eq!(log.count(), 2 * approved);
        let log = Log::default();
        let (relay, model) = relay_to(served("files", "delete", &log), &log);
        let runner = Runner::in_memory(model);
        let paused = runner.run(&relay, "go").await.unwrap();
        runner.decide(&paused.pauses()[0], decision).always(Always::in_run()).await.unwrap();
        let paused = runner.resume(&relay, paused.run_id()).await.unwrap();
        assert!(paused.is_paused(), "unless said otherwise a rule is of one agent");
    }
}

#[tokio::test]
async fn a_standing_decision_for_a_server_says_nothing_of_a_local_tool_of_that_name() {
    for decision in [Decision::Approve, Decision::deny("no")] {
        let (log, effects) = (Log::default(), Effects::default());
        assert!(second_asks(gated(&effects), &log, decision, false).await);
        assert_eq!(effects.count(), 0);
    }
}

#[tokio::test]
async fn server_and_tool_are_told_apart_however_their_names_are_put_together() {
    // `a` and `b:c` are not `a:b` and `c`, nor the function `files:delete` the tool `delete` of `files`.
    let log = Log::default();
    let function = Effects::default();
    let pairs = [
        (served("a", "b:c", &log), served("a:b", "c", &log)),
        (counted("files:delete", &function).needs_approval(true).build().unwrap(), served("files", "delete", &log)),
    ];
    for (first, second) in pairs {
        let before = log.count();
        let model = ScriptedModel::new([
            Reply::call(first.name().as_str(), json!({})),
            Reply::call("transfer_to_second", json!({})),
            Reply::call(second.name().as_str(), json!({})),
        ]);
        let relay = relay(first, second);
        let runner = Runner::in_memory(model);
        let paused = runner.run(&relay, "go").await.unwrap();
        runner.approve(&paused.pauses()[0]).always(Always::in_run().any_agent()).await.unwrap();
        let paused = runner.resume(&relay, paused.run_id()).await.unwrap();
        assert!(paused.is_paused());
        assert_eq!(log.count() - before + function.count() as usize, 1);
    }
}

#[tokio::test]
async fn a_rule_that_names_no_server_is_not_one_for_a_server() {
    let desk = desk([delete("r1", "a"), delete("r2", "b"), Reply::text("Done.")]);
    let paused = desk.start().await;
    let mut state = desk.runner.state(&desk.agent, paused.run_id()).await.unwrap();
    state.approve_always(&paused.pauses()[0], Always::in_run().any_agent()).unwrap();
    let json = tampered(&state.to_json(), |events| {
        let at = place(events, "rule.made");
        let tool = events[at]["rule.made"]["scope"]["tool"].as_object_mut().unwrap();
        assert_eq!(tool.remove("class"), Some(json!({"mcp": {"server": "files"}})));
    });
    let state = RunState::from_json(&desk.agent, &json).unwrap();
    let again = Runner::in_memory(desk.model.clone()).resume_state(&desk.agent, state).await.unwrap();
    assert_eq!((again.pauses().len(), desk.log.lines()), (1, vec![ran("files", "r1", "a")]));
}

#[tokio::test]
async fn the_words_of_a_servers_standing_denial_are_told_of_no_other_tool() {
    let (log, effects) = (Log::default(), Effects::default());
    let seconds = [
        (gated(&effects), DENIED_TEXT.to_owned()),
        (served("mail", "delete", &log), DENIED.to_owned()),
        (served("files", "delete", &log), denied("files are locked")),
    ];
    for (second, expected) in seconds {
        let (relay, model) = relay_to(second, &log);
        let runner = Runner::in_memory(model.clone());
        let paused = runner.run(&relay, "go").await.unwrap();
        let always = Always::in_run().any_agent();
        runner.deny(&paused.pauses()[0]).message("files are locked").always(always).await.unwrap();
        let mut outcome = runner.resume(&relay, paused.run_id()).await.unwrap();
        if let [pause] = outcome.pauses() {
            runner.deny(pause).await.unwrap();
            outcome = runner.resume(&relay, outcome.run_id()).await.unwrap();
        }
        assert_eq!(text_of(&outcome), "Done.");
        let told = results(&model);
        assert_eq!((told.first(), told.last()), (Some(&denied("files are locked")), Some(&expected)));
    }
    assert_eq!((log.count(), effects.count()), (0, 0));
}

#[tokio::test]
async fn each_servers_standing_denial_has_its_own_words() {
    let log = Log::default();
    let mail = served("mail", "delete", &log).rebuild().name("mail_delete").build().unwrap();
    let agent = agent("Ops", [served("files", "delete", &log), mail]);
    let both = |path: &str| Reply::calls([("delete", json!({"path": path})), ("mail_delete", json!({"path": path}))]);
    let model = ScriptedModel::new([both("a"), both("b"), Reply::text("Done.")]);
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&agent, "go").await.unwrap();
    for (pause, words) in paused.pauses().iter().zip(["of files", "of mail"]) {
        runner.deny(pause).message(words).always(Always::in_run()).await.unwrap();
    }
    assert_eq!(text_of(&runner.resume(&agent, paused.run_id()).await.unwrap()), "Done.");
    let expected = [denied("of files"), denied("of mail"), denied("of files"), denied("of mail")];
    assert_eq!((results(&model), log.count()), (expected.to_vec(), 0));
}

#[tokio::test]
async fn a_servers_standing_decision_survives_a_restart_for_that_server_only() {
    let log = Log::default();
    let mail = served("mail", "delete", &log).rebuild().name("mail_delete").build().unwrap();
    let agent = agent("Ops", [served("files", "delete", &log), mail]);
    let model = ScriptedModel::new([
        delete("r1", "a"),
        delete("r2", "b").and_call_as("m1", "mail_delete", json!({"path": "c"})),
        Reply::text("Done."),
    ]);
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&agent, "go").await.unwrap();
    runner.approve(&paused.pauses()[0]).always(Always::in_run().any_agent()).await.unwrap();
    let state = RunState::from_json(&agent, &saved(&runner, &agent, &paused).await).unwrap();
    let scope = &state.run().rules()[0].scope;
    let server = ToolName::new("files").unwrap();
    let tool = ToolRef { class: ToolClass::Mcp { server }, name: ToolName::new("delete").unwrap() };
    assert_eq!((&scope.tool, &scope.agent), (&tool, &AgentScope::Any));
    let again = Runner::in_memory(model).resume_state(&agent, state).await.unwrap();
    assert_eq!(log.lines(), [ran("files", "r1", "a"), ran("files", "r2", "b")]);
    let waits: Vec<&str> = again.pauses().iter().map(|pause| pause.call.as_ref().unwrap().tool.as_str()).collect();
    assert_eq!(waits, ["mail_delete"]);
}

#[tokio::test]
async fn a_servers_standing_decision_stays_its_own_in_inner_agents_too() {
    for server in ["files", "mail"] {
        let log = Log::default();
        let inner = agent("Inner", [served(server, "delete", &log)]);
        let outer =
            agent("Outer", [served("files", "delete", &log), inner.as_tool("ask_inner", "Asks.").build().unwrap()]);
        let ask = Reply::call("ask_inner", json!({"input": "go"}));
        let model = ScriptedModel::new([delete("r1", "a"), ask, Reply::text("Done.")])
            .for_agent("ask_inner", [delete("r2", "b"), Reply::text("inner done")]);
        let runner = Runner::in_memory(model.clone());
        let paused = runner.run(&outer, "go").await.unwrap();
        let mut state = runner.state(&outer, paused.run_id()).await.unwrap();
        state.approve_always(&paused.pauses()[0], Always::in_run().any_agent()).unwrap();
        let state = RunState::from_json(&outer, &state.to_json()).unwrap();
        let elsewhere = Runner::in_memory(model.clone());
        let outcome = elsewhere.resume_state(&outer, state).await.unwrap();
        if server == "files" {
            assert_eq!((text_of(&outcome).as_str(), log.count()), ("Done.", 2));
            continue;
        }
        assert_eq!((outcome.pauses().len(), log.count()), (1, 1));
        assert_eq!(outcome.pauses()[0].agent.as_str(), "Outer/ask_inner");
        // And the inner pause is decided on its own, from a document once more.
        let mut state = RunState::from_json(&outer, &saved(&elsewhere, &outer, &outcome).await).unwrap();
        state.deny(&outcome.pauses()[0]).unwrap();
        let done = Runner::in_memory(model).resume_state(&outer, state).await.unwrap();
        assert_eq!((text_of(&done).as_str(), log.count()), ("Done.", 1));
    }
}

// Exact decisions.

#[tokio::test]
async fn an_exact_decision_counts_for_its_server_tool_and_call_and_for_no_other() {
    let log = Log::default();
    let mail = served("mail", "delete", &log).rebuild().name("mail_delete").build().unwrap();
    let agent = agent("Ops", [served("files", "delete", &log), served("files", "move", &log), mail]);
    let all = || {
        let path = || json!({"path": "a"});
        delete("r1", "a").and_call_as("r2", "delete", path()).and_call_as("r3", "move", path()).and_call_as(
            "r4",
            "mail_delete",
            path(),
        )
    };
    for decided in 0..4 {
        log.0.lock().unwrap().clear();
        let runner = Runner::in_memory(ScriptedModel::new([all(), Reply::text("Done.")]));
        let paused = runner.run(&agent, "go").await.unwrap();
        runner.approve(&paused.pauses()[decided]).await.unwrap();
        let again = runner.resume(&agent, paused.run_id()).await.unwrap();
        let left = paused.pauses().iter().enumerate().filter(|(index, _)| *index != decided);
        assert_eq!(again.pauses(), left.map(|(_, pause)| pause.clone()).collect::<Vec<_>>());
        let id = format!("r{}", decided + 1);
        assert!(log.count() == 1 && log.lines()[0].contains(&id), "{:?}", log.lines());
    }
}

#[tokio::test]
async fn exact_decisions_are_honoured_when_a_kept_state_goes_on() {
    // Approved or denied, before or after the state was written down.
    for (approves, is_before) in [(true, true), (true, false), (false, true), (false, false)] {
        let desk = desk([delete("r1", "a"), Reply::text("Done.")]);
        let paused = desk.start().await;
        let mut state = desk.runner.state(&desk.agent, paused.run_id()).await.unwrap();
        if !is_before {
            state = RunState::from_json(&desk.agent, &state.to_json()).unwrap();
        }
        let decision = if approves { Decision::Approve } else { Decision::deny("no") };
        state.decide(&paused.pauses()[0], decision, None).unwrap();
        if is_before {
            state = RunState::from_json(&desk.agent, &state.to_json()).unwrap();
        }
        let done = Runner::in_memory(desk.model.clone()).resume_state(&desk.agent, state).await.unwrap();
        assert_eq!(text_of(&done), "Done.");
        assert_eq!(desk.log.lines(), if approves { vec![ran("files", "r1", "a")] } else { vec![] });
        assert_eq!(results(&desk.model), [if approves { "files did delete".to_owned() } else { denied("no") }]);
    }
}

#[tokio::test]
async fn an_approved_call_reaches_its_server_with_every_byte_that_was_shown() {
    let desk = desk_with(
        |tool| tool.schema(json!({"type": "object"})),
        [
            Reply::empty().and_proposed(ProposedCall {
                id: "r1".to_owned(),
                tool: "delete".to_owned(),
                arguments:
                    r#"{"opaque": {"b": [1, null, {"x": "\u00e4"}], "a": 12345678901234567890.5}, "id": "approval"}"#
                        .to_owned(),
            }),
            Reply::text("Done."),
        ],
    );
    let paused = desk.start().await;
    let shown = paused.pauses()[0].call.as_ref().unwrap().arguments.as_str().to_owned();
    let mut state = RunState::from_json(&desk.agent, &saved(&desk.runner, &desk.agent, &paused).await).unwrap();
    state.approve(&paused.pauses()[0]).unwrap();
    Runner::in_memory(desk.model.clone()).resume_state(&desk.agent, state).await.unwrap();
    assert_eq!(desk.log.lines(), [format!("files/delete r1 {shown}")]);
    assert!(shown.contains("12345678901234567890.5") && shown.contains('ä'), "{shown}");
}

#[tokio::test]
async fn a_call_that_names_no_server_cannot_be_decided_as_one_of_a_server() {
    let desk = desk([delete("r1", "a"), Reply::text("Done.")]);
    let paused = desk.start().await;
    desk.runner.approve(&paused.pauses()[0]).await.unwrap();
    let json = saved(&desk.runner, &desk.agent, &paused).await;
    let with_kind = |kind: Option<Value>| {
        tampered(&json, |events| {
            let at = place(events, "model.replied");
            let call = events[at]["model.replied"]["calls"][0].as_object_mut().unwrap();
            assert_eq!(call.remove("kind"), Some(json!({"mcp": {"server": "files"}})));
            call.extend(kind.map(|kind| ("kind".to_owned(), kind)));
        })
    };
    for (kind, code) in [
        // As a function it is another tool than the agent's.
        (None, "tool_missing"),
        (Some(json!({"mcp": {"server": "mail"}})), "tool_missing"),
        (Some(json!("mcp")), "state_corrupt"),
        (Some(json!({"mcp": {}})), "state_corrupt"),
        (Some(json!({"mcp": {"server": ""}})), "state_corrupt"),
        (Some(json!({"mcp": {"server": "files", "approved": true}})), "state_corrupt"),
    ] {
        let refused = RunState::from_json(&desk.agent, &with_kind(kind.clone())).unwrap_err();
        assert_eq!(refused.code(), code, "{kind:?}");
    }
    assert!(RunState::from_json(&desk.agent, &with_kind(Some(json!({"mcp": {"server": "files"}})))).is_ok());
    assert_eq!(desk.log.count(), 0);
}

#[tokio::test]
async fn a_decision_about_other_arguments_than_a_servers_call_holds_is_refused() {
    let desk = desk([delete("r1", "a"), Reply::text("Done.")]);
    let paused = desk.start().await;
    let pause = &paused.pauses()[0];
    for other in [json!({"path": "b"}), json!({"server_label": "mail", "path": "a"})] {
        let mut copy = pause.clone();
        copy.call.as_mut().unwrap().arguments = CanonicalJson::from_serialize(&other).unwrap();
        for decision in [Decision::Approve, Decision::deny("no")] {
            assert_eq!(desk.runner.decide(&copy, decision).await.unwrap_err().code(), "stale_view", "{other}");
        }
    }
    for edited in [json!({"path": 7}), json!("a")] {
        assert_eq!(desk.runner.approve(pause).edited(&edited).await.unwrap_err().code(), "invalid_arguments");
    }
    let again = desk.go_on(&paused).await;
    assert_eq!((again.pauses(), desk.log.count()), (paused.pauses(), 0), "nothing was decided");
}

#[tokio::test]
async fn a_decision_that_names_only_a_request_is_refused_and_leaves_no_trace_in_the_state() {
    // There is no decision by a provider's id: it takes the pause, and one that does not exist decides nothing.
    let desk = desk([delete("r1", "a"), Reply::text("Done.")]);
    let paused = desk.start().await;
    let mut state = desk.runner.state(&desk.agent, paused.run_id()).await.unwrap();
    let before = state.to_json();
    let unknown = PauseId { number: 2, ..paused.pauses()[0].id() };
    for decision in [Decision::Approve, Decision::deny("no")] {
        let refused = state.decide(unknown, decision.clone(), Some(Always::in_run())).unwrap_err();
        assert_eq!(refused, Refusal::PauseNotFound(unknown));
        assert_eq!(desk.runner.decide(unknown, decision).await.unwrap_err().code(), "not_found");
    }
    assert!("r1".parse::<PauseId>().is_err());
    assert_eq!(state.to_json(), before);
}

#[tokio::test]
async fn a_pause_whose_call_is_not_in_the_document_is_refused() {
    let desk = desk([delete("r1", "a"), Reply::text("Done.")]);
    let paused = desk.start().await;
    let json = saved(&desk.runner, &desk.agent, &paused).await;
    let without_call = tampered(&json, |events| {
        let at = place(events, "model.replied");
        events[at]["model.replied"]["calls"] = json!([]);
    });
    let without_reply = tampered(&json, |events| drop(events.remove(place(events, "model.replied"))));
    for json in [without_call, without_reply] {
        assert_eq!(RunState::from_json(&desk.agent, &json).unwrap_err().code(), "state_corrupt");
    }
}

// What was settled is not asked, done or told again.

#[tokio::test]
async fn an_exact_repeat_of_a_settled_call_is_neither_asked_about_nor_made_again() {
    let approved = (Decision::Approve, "files did delete".to_owned(), 1);
    for (decision, expected, calls) in [approved, (Decision::deny("no"), denied("no"), 0)] {
        for is_kept in [false, true] {
            let desk = desk([delete("r1", "a"), delete("r1", "a"), Reply::text("Done.")]);
            let paused = desk.start().await;
            let done = if is_kept {
                let mut state = desk.runner.state(&desk.agent, paused.run_id()).await.unwrap();
                state.decide(&paused.pauses()[0], decision.clone(), None).unwrap();
                let state = RunState::from_json(&desk.agent, &state.to_json()).unwrap();
                Runner::in_memory(desk.model.clone()).resume_state(&desk.agent, state).await.unwrap()
            } else {
                desk.runner.decide(&paused.pauses()[0], decision.clone()).await.unwrap();
                desk.go_on(&paused).await
            };
            assert_eq!((text_of(&done).as_str(), desk.log.count()), ("Done.", calls));
            assert_eq!(results(&desk.model), [expected.clone(), expected.clone()], "the same outcome stands");
        }
    }
}

#[tokio::test]
async fn an_exact_repeat_of_a_call_that_nobody_had_to_approve_is_not_made_again() {
    let log = Log::default();
    let agent = agent("Ops", [served_as("files", "delete", &json!("never"), &log)]);
    let model = ScriptedModel::new([delete("r1", "a"), delete("r1", "a"), Reply::text("Done.")]);
    let done = Runner::in_memory(model.clone()).run(&agent, "go").await.unwrap();
    assert_eq!((text_of(&done).as_str(), log.lines()), ("Done.", vec![ran("files", "r1", "a")]));
    assert_eq!(results(&model), ["files did delete", "files did delete"]);
}

#[tokio::test]
async fn of_calls_to_functions_and_servers_only_the_decided_ones_are_answered() {
    let (log, deleted) = (Log::default(), Effects::default());
    let of_server = || served("files", "move", &log);
    let agent = agent("Ops", [gated(&deleted), of_server()]);
    let model = ScriptedModel::new([
        Reply::calls([
            ("delete", json!({"path": "a"})),
            ("move", json!({"path": "b"})),
            ("move", json!({"path": "c"})),
        ]),
        Reply::text("Done."),
    ]);
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&agent, "go").await.unwrap();
    let [function, first, second] = paused.pauses() else { panic!("{paused:?}") };
    runner.approve(function).await.unwrap();
    runner.deny(second).message("no").await.unwrap();
    let again = runner.resume(&agent, paused.run_id()).await.unwrap();
    assert_eq!((again.pauses(), model.calls()), (std::slice::from_ref(first), 1), "the model waits for the third");
    let items = runner.read(paused.run_id()).await.unwrap().items();
    let ids: Vec<String> = told(&items).into_iter().map(|(id, ..)| id).collect();
    assert_eq!((ids, log.count(), deleted.count()), (vec!["call_1_0".to_owned(), "call_1_2".to_owned()], 0, 1));
    runner.approve(first).await.unwrap();
    assert_eq!(text_of(&runner.resume(&agent, paused.run_id()).await.unwrap()), "Done.");
    let expected = [r#"delete ran with {"path":"a"}"#.to_owned(), "files did move".to_owned(), denied("no")];
    assert_eq!((results(&model), log.count(), deleted.count()), (expected.to_vec(), 1, 1));
}

#[tokio::test]
async fn each_call_to_a_server_stands_once_in_the_conversation_right_before_its_one_outcome() {
    let desk = desk([delete("r1", "a"), delete("r2", "b"), Reply::text("Done."), Reply::text("Again.")]);
    let mut outcome = desk.runner.run(&desk.agent, "go").session("desk").await.unwrap();
    for approves in [true, false] {
        let pause = &outcome.pauses()[0];
        let decision = if approves { Decision::Approve } else { Decision::deny("no") };
        desk.runner.decide(pause, decision).await.unwrap();
        // Going on twice tells nothing twice.
        outcome = desk.go_on(&outcome).await;
        let _ = desk.go_on(&outcome).await;
    }
    assert_eq!(text_of(&outcome), "Done.");
    let said = [
        "user: go".to_owned(),
        "model: delete".to_owned(),
        "result: files did delete".to_owned(),
        "model: delete".to_owned(),
        format!("result: {}", denied("no")),
    ];
    assert_eq!(conversation(&desk.model), said);
    // A later run of the session is shown the same, each once, with what came after.
    desk.runner.run(&desk.agent, "more").session("desk").await.unwrap();
    let later = [&said[..], &["model: Done.".to_owned(), "user: more".to_owned()]].concat();
    assert_eq!(conversation(&desk.model), later);
    let kept = desk.runner.session_items(&SessionId::new("desk").unwrap(), &desk.agent).await.unwrap();
    let ids: Vec<String> = told(&kept).into_iter().map(|(id, ..)| id).collect();
    assert_eq!(ids, ["r1", "r2"]);
}
