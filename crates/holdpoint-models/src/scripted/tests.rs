use std::sync::{Arc, Mutex};

use holdpoint_core::agent::{AgentBrief, FinishRule};
use holdpoint_core::ids::{ActorId, AgentId, FramePath, RunId, SessionId, ToolName};
use holdpoint_core::input::{Input, ReplyInput, StartInput};
use holdpoint_core::json::{CanonicalJson, Digest};
use holdpoint_core::message::{Content, Item, Usage};
use holdpoint_core::policy::{Screening, Verdict};
use holdpoint_core::run::Run;
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::{CallRecord, Effect, ToolKind};
use holdpoint_runtime::ports::model::{Delta, DeltaSink, Model, ModelReply, ModelRequest, ProposedCall};
use serde_json::json;

use super::{Reply, ScriptedModel, last_results, last_said};

fn request(agent: &str, turn: u32, items: Vec<Item>) -> ModelRequest {
    ModelRequest {
        run: "run_0198c0ffee007000800000000000beef".parse().unwrap(),
        frame: FramePath::root(),
        turn,
        agent: agent.parse().unwrap(),
        instructions: "".into(),
        items: items.into_iter().map(Arc::new).collect(),
        tools: Arc::new([]),
        settings: Arc::default(),
    }
}

fn user(text: &str) -> Item {
    Item::User(text.into())
}

fn said(text: &str) -> Item {
    Item::Assistant { text: Some(text.to_owned()), calls: Vec::new() }
}

fn result(tool: &str, text: &str) -> Item {
    let tool = ToolName::new(tool).unwrap();
    Item::ToolResult { call_id: "c".to_owned(), tool, output: text.into(), is_error: false }
}

fn handed_over(tool: &str, to: &str) -> Item {
    result(tool, &format!("The conversation was handed over to {to}."))
}

async fn reply(model: &ScriptedModel, request: ModelRequest) -> Result<ModelReply, String> {
    model.reply(request, DeltaSink::none()).await.map_err(|fault| fault.to_string())
}

async fn text(model: &ScriptedModel, request: ModelRequest) -> String {
    match reply(model, request).await {
        Ok(reply) => reply.text.unwrap_or_default(),
        Err(fault) => fault,
    }
}

#[tokio::test]
async fn replies_come_in_the_order_of_the_turns() {
    let model = ScriptedModel::new([Reply::call("get_weather", json!({"b": 1, "a": [true]})), Reply::text("Sunny.")]);
    let call = ProposedCall {
        id: "call_1_0".to_owned(),
        tool: "get_weather".to_owned(),
        arguments: r#"{"a":[true],"b":1}"#.to_owned(),
    };
    let first = reply(&model, request("Weather", 1, vec![user("?")])).await.unwrap();
    assert_eq!(first, ModelReply { text: None, calls: vec![call], usage: Usage::request(0, 0) });
    assert_eq!(text(&model, request("Weather", 2, vec![user("?")])).await, "Sunny.");
}

#[tokio::test]
async fn a_fresh_process_gets_the_reply_that_the_old_one_would_have_got() {
    let script = || ScriptedModel::new(["one", "two", "three"].map(Reply::text));
    let items = vec![user("a"), said("one"), user("b"), said("two")];
    assert_eq!(text(&script(), request("A", 3, items)).await, "three");
}

#[tokio::test]
async fn the_same_request_gets_the_same_reply() {
    let model = ScriptedModel::new(["one", "two"].map(Reply::text));
    for _ in 0..2 {
        assert_eq!(text(&model, request("A", 1, vec![user("a")])).await, "one");
    }
}

#[tokio::test]
async fn earlier_runs_of_the_session_do_not_count() {
    let model = ScriptedModel::new(["one", "two"].map(Reply::text));
    let items = vec![user("earlier"), said("x"), said("y"), user("now"), said("one")];
    assert_eq!(text(&model, request("A", 2, items)).await, "two");
}

#[tokio::test]
async fn a_script_that_ran_out_is_a_fault_that_says_so() {
    let model = ScriptedModel::new([Reply::text("one")]).named("demo");
    let fault = model.reply(request("A/b", 2, vec![]), DeltaSink::none()).await.unwrap_err();
    let told = "model demo gave no reply: the script for agent A/b has 1 replies, and number 2 is asked";
    assert_eq!((fault.to_string().as_str(), fault.may_retry), (told, false));
}

#[tokio::test]
async fn a_function_sees_the_conversation() {
    let model = ScriptedModel::by(|request| match last_results(request).as_slice() {
        [] => Reply::call("look", json!({"for": last_said(request)})),
        results => Reply::text(format!("{results:?}")),
    });
    let asked = reply(&model, request("A", 1, vec![user("socks")])).await.unwrap();
    assert_eq!(asked.calls[0].arguments, r#"{"for":"socks"}"#);
    let items = vec![user("socks"), said(""), result("old", "1"), said(""), result("look", "2"), result("look", "3")];
    assert_eq!(text(&model, request("A", 3, items)).await, r#"[("look", "2"), ("look", "3")]"#);
}

#[tokio::test]
async fn an_agent_has_a_script_of_its_own_by_id_tool_or_name() {
    let model = ScriptedModel::new([Reply::text("all")])
        .for_agent("Desk", [Reply::text("root")])
        .for_agent("Desk/ask/ask", [Reply::text("by id")])
        .for_agent("ask", [Reply::text("by tool")])
        .for_agent("The Billing-Agent", [Reply::text("by name")])
        .for_agent_by("shop", |request| Reply::text(request.agent.to_string()));
    for (agent, expected) in [
        ("Desk", "root"),
        ("Desk/ask/ask", "by id"),
        ("Other/ask", "by tool"),
        ("Desk/transfer_to_the_billing_agent", "by name"),
        ("Desk/shop", "Desk/shop"),
        ("Desk/other", "all"),
        ("ask", "by tool"),
        ("Elsewhere", "all"),
    ] {
        assert_eq!(text(&model, request(agent, 1, vec![user("?")])).await, expected, "{agent}");
    }
}

#[tokio::test]
async fn an_agent_reached_by_a_hand_off_begins_at_the_top_of_its_list() {
    let model = ScriptedModel::new([]).for_agent("B", ["b one", "b two"].map(Reply::text));
    let items = vec![user("?"), said("a one"), said("a two"), handed_over("transfer_to_b", "A/transfer_to_b")];
    assert_eq!(text(&model, request("A/transfer_to_b", 3, items.clone())).await, "b one");
    let items = [items, vec![said("b one"), result("t", "ok")]].concat();
    assert_eq!(text(&model, request("A/transfer_to_b", 4, items)).await, "b two");
}

#[tokio::test]
async fn an_agent_that_a_hand_off_returns_to_goes_on_in_its_list() {
    let model = ScriptedModel::new([]).for_agent("A", ["a one", "a two"].map(Reply::text));
    let there = handed_over("transfer_to_b", "A/transfer_to_b");
    let back = handed_over("transfer_to_a", "A");
    let items = vec![user("?"), said("a one"), there, said("b one"), said("b two"), back];
    assert_eq!(text(&model, request("A", 4, items)).await, "a two");
}

#[tokio::test]
async fn the_words_of_a_run_choose_its_script() {
    let model = ScriptedModel::new([Reply::text("what?"), Reply::text("still what?")])
        .when_asked("Weather", [Reply::text("sun"), Reply::text("rain")])
        .for_agent("Mute", [Reply::text("…")]);
    assert_eq!(text(&model, request("A", 1, vec![user("the WEATHER, please")])).await, "sun");
    let items = vec![user("weather"), said("x"), user("weather?"), said("sun"), user("said while it ran")];
    assert_eq!(text(&model, request("A", 2, items)).await, "rain");
    let items = vec![user("weather"), said("x"), user("other"), said("what?")];
    assert_eq!(text(&model, request("A", 2, items)).await, "still what?");
    assert_eq!(text(&model, request("Mute", 1, vec![user("weather")])).await, "…");
}

#[tokio::test]
async fn several_calls_have_ids_by_place_or_as_given() {
    let model = ScriptedModel::by(|_| {
        Reply::calls([("a", json!({})), ("b", json!({}))])
            .and_text("both")
            .and_call_as("", "c", json!({}))
            .and_call_as("call_2_0", "d", json!({}))
            .and_proposed(ProposedCall { id: "e".to_owned(), tool: "e".to_owned(), arguments: "{not json".to_owned() })
    });
    let told = reply(&model, request("A", 2, vec![])).await.unwrap();
    let ids: Vec<&str> = told.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call_2_0", "call_2_1", "", "call_2_0", "e"]);
    assert_eq!(told.calls[4].arguments, "{not json");
    let inner = ModelRequest { frame: FramePath::root().call(2, 0), ..request("A/ask", 1, vec![]) };
    assert_eq!(reply(&model, inner).await.unwrap().calls[1].id, "call_2_0_1_1");
}

#[tokio::test]
async fn words_and_arguments_are_told_in_small_parts_and_given_whole() {
    let model = ScriptedModel::new([Reply::text("Schöne Grüße").and_thinking("hm, so").and_call("t", json!({"a": 1}))])
        .chunk_chars_max(5);
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = DeltaSink::new({
        let told = told.clone();
        move |delta| told.lock().unwrap().push(delta)
    });
    let whole = model.reply(request("A", 1, vec![]), sink).await.unwrap();
    let part = |text: &str| Delta::Arguments { id: "call_1_0".to_owned(), tool: "t".to_owned(), text: text.to_owned() };
    let text = |text: &str| Delta::Text(text.to_owned());
    let expected = vec![
        Delta::Thinking("hm, s".to_owned()),
        Delta::Thinking("o".to_owned()),
        text("Schön"),
        text("e Grü"),
        text("ße"),
        part(r#"{"a":"#),
        part("1}"),
    ];
    assert_eq!(*told.lock().unwrap(), expected);
    assert_eq!((whole.text.as_deref(), whole.calls[0].arguments.as_str()), (Some("Schöne Grüße"), r#"{"a":1}"#));
}

#[tokio::test]
async fn a_fault_in_the_script_is_told_each_time() {
    let model = ScriptedModel::new([Reply::fault("overloaded"), Reply::lasting_fault("no such model")]);
    for (turn, message, may_retry) in [(1, "overloaded", true), (1, "overloaded", true), (2, "no such model", false)] {
        let fault = model.reply(request("A", turn, vec![]), DeltaSink::none()).await.unwrap_err();
        assert_eq!((fault.message.as_str(), fault.may_retry, fault.model.as_str()), (message, may_retry, "scripted"));
    }
}

#[tokio::test]
async fn a_reply_after_faults_comes_when_they_are_used_up() {
    let model = ScriptedModel::by(|_| Reply::text("at last").after_faults(2, "busy"));
    let mut told = Vec::new();
    for turn in [1, 1, 2, 1, 1] {
        told.push(reply(&model, request("A", turn, vec![])).await.is_ok());
    }
    assert_eq!(told, [false, false, false, true, true]);
}

#[tokio::test]
async fn what_it_was_asked_and_what_it_cost_can_be_read() {
    let model = ScriptedModel::by(|_| Reply::text("x").costing(Usage::request(7, 3)));
    let shared = model.clone();
    for turn in 1..=3 {
        assert_eq!(reply(&model, request("A", turn, vec![])).await.unwrap().usage, Usage::request(7, 3));
    }
    let turns: Vec<u32> = shared.requests().iter().map(|request| request.turn).collect();
    assert_eq!((shared.calls(), turns), (3, vec![1, 2, 3]));
}

#[tokio::test]
async fn only_so_many_requests_are_kept() {
    let model = ScriptedModel::by(|_| Reply::empty());
    let asked = ScriptedModel::REQUESTS_MAX as u32 + 5;
    for turn in 1..=asked {
        reply(&model, request("A", turn, vec![])).await.unwrap();
    }
    let kept = model.requests();
    assert_eq!((model.calls(), kept.len(), kept[0].turn), (u64::from(asked), ScriptedModel::REQUESTS_MAX, 6));
}

#[tokio::test]
async fn a_model_reply_can_be_scripted_as_it_is() {
    let call = ProposedCall { id: "x".to_owned(), tool: "t".to_owned(), arguments: "{}".to_owned() };
    let whole = ModelReply { text: Some("t".to_owned()), calls: vec![call], usage: Usage::request(1, 2) };
    let model = ScriptedModel::new([Reply::from(whole.clone()), "hello".into()]);
    assert_eq!(reply(&model, request("A", 1, vec![])).await, Ok(whole));
    assert_eq!(text(&model, request("A", 2, vec![])).await, "hello");
}

/// What an agent is told of a hand-off is read here; this holds it to the machine's own words.
#[tokio::test]
async fn the_machines_own_hand_off_is_understood() {
    let brief = |id: &str| AgentBrief {
        id: id.parse::<AgentId>().unwrap(),
        digest: Digest::of(b""),
        finish: FinishRule::ModelText,
        checks_input: false,
        checks_output: false,
    };
    let (now, root) = (Timestamp::from_millis(0), FramePath::root());
    let mut run = Run::new("run_0198c0ffee007000800000000000beef".parse::<RunId>().unwrap());
    let start = StartInput {
        session: SessionId::new("s").unwrap(),
        agent: brief("A"),
        content: Content::from("?"),
        context: None,
        turns_max: None,
        by: ActorId::local(),
        holds_every_call: false,
    };
    let call = CallRecord {
        call_id: "c".to_owned(),
        tool: ToolName::new("transfer_to_b").unwrap(),
        kind: ToolKind::Handoff { to: brief("A/transfer_to_b") },
        effect: Effect::ReadOnly,
        arguments: CanonicalJson::parse("{}").unwrap(),
        problem: None,
        repeats: None,
    };
    let reply = ReplyInput {
        frame: root.clone(),
        turn: 1,
        admitted: 0,
        thinking: None,
        text: None,
        calls: vec![call],
        asks_confirmation: None,
        usage: Usage::default(),
    };
    run.advance(Input::Start(start), now).unwrap();
    run.advance(Input::ModelReply(reply), now).unwrap();
    let allowed = Screening { call: root.call(1, 0), verdict: Verdict::Allow, guardrails: Vec::new() };
    run.advance(Input::Screened(vec![allowed]), now).unwrap();
    let (_, frame) = run.frames().next().unwrap();
    assert_eq!(frame.agent.id.as_str(), "A/transfer_to_b");

    let model = ScriptedModel::new([]).for_agent("B", [Reply::text("b one")]);
    let items = run.model_items(&root).into_iter().map(|item| (*item).clone()).collect();
    assert_eq!(text(&model, request("A/transfer_to_b", 2, items)).await, "b one");
}
