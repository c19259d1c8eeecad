use std::sync::{Arc, Mutex};

use holdpoint_core::ids::{FramePath, ToolName};
use holdpoint_core::message::{Item, Usage};
use holdpoint_runtime::ports::model::{Delta, DeltaSink, Model, ModelReply, ModelRequest};

use super::{BadScript, ScriptedModel};

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

fn result(text: &str, is_error: bool) -> Item {
    Item::ToolResult { call_id: "c".to_owned(), tool: ToolName::new("t").unwrap(), output: text.into(), is_error }
}

async fn reply(script: &str, request: ModelRequest) -> Result<ModelReply, String> {
    let model = ScriptedModel::from_json(script).unwrap();
    model.reply(request, DeltaSink::none()).await.map_err(|fault| fault.message)
}

async fn text(script: &str, turn: u32, items: Vec<Item>) -> String {
    match reply(script, request("A", turn, items)).await {
        Ok(reply) => reply.text.unwrap_or_default(),
        Err(message) => message,
    }
}

#[tokio::test]
async fn the_reply_is_chosen_from_the_conversation_by_a_fresh_process_too() {
    let script = r#"{"replies": ["one", {"text": "two"}, {"text": "three"}]}"#;
    assert_eq!(text(script, 1, vec![user("a")]).await, "one");
    assert_eq!(text(script, 2, vec![user("a"), said("one")]).await, "two");
    assert_eq!(text(script, 2, vec![user("a"), said("one")]).await, "two");
    let told = "the script for agent A has 3 replies, and number 4 is asked";
    assert_eq!(text(script, 4, vec![user("a"), said("one"), said("two"), said("three")]).await, told);
}

#[tokio::test]
async fn a_list_can_go_on_after_its_end() {
    let items = || vec![user("a"), said("one"), said("two")];
    let again = r#"{"replies": ["one", "two"], "at_end": "start_over"}"#;
    assert_eq!(text(again, 3, items()).await, "one");
    let last = r#"{"replies": ["one", "two"], "at_end": "repeat_last"}"#;
    assert_eq!(text(last, 3, items()).await, "two");
    let empty = r#"{"scripts": [{"when_asked": "x", "replies": ["y"]}], "at_end": "start_over"}"#;
    assert_eq!(text(empty, 1, vec![]).await, "the script for agent A has 0 replies, and number 1 is asked");
}

#[tokio::test]
async fn what_is_asked_and_who_is_asked_choose_the_list() {
    let script = r#"{
        "replies": ["other"],
        "scripts": [
            {"when_asked": ["Refund", "money back"], "replies": ["refund"]},
            {"when_asked": "weather", "replies": ["sun"]},
            {"agent": "Billing", "replies": ["bill"]}
        ]
    }"#;
    assert_eq!(text(script, 1, vec![user("I want my MONEY BACK")]).await, "refund");
    assert_eq!(text(script, 1, vec![user("a refund, please")]).await, "refund");
    assert_eq!(text(script, 1, vec![user("weather?")]).await, "sun");
    assert_eq!(text(script, 1, vec![user("hello")]).await, "other");
    let billing = reply(script, request("Desk/transfer_to_billing", 1, vec![user("weather?")])).await.unwrap();
    assert_eq!(billing.text.as_deref(), Some("bill"));
}

#[tokio::test]
async fn a_reply_can_depend_on_what_came_of_the_calls() {
    let script = r#"{"replies": ["look", {"either": [
        {"if_error": true, "if_result": "NOT APPROVED", "text": "You said no."},
        {"if_error": true, "text": "It failed: {result}"},
        {"if_said": "quiet", "text": "Done."},
        {"text": "Done: {result}"}
    ]}]}"#;
    let items = |asked: &str, output: &str, is_error| vec![user(asked), said("look"), result(output, is_error)];
    let denied = items("go", "Tool execution was not approved.", true);
    assert_eq!(text(script, 2, denied).await, "You said no.");
    assert_eq!(text(script, 2, items("go", "disk full", true)).await, "It failed: disk full");
    assert_eq!(text(script, 2, items("be Quiet", "42", false)).await, "Done.");
    assert_eq!(text(script, 2, items("go", "42", false)).await, "Done: 42");
    let only = r#"{"replies": [{"either": [{"if_said": "x", "text": "y"}]}]}"#;
    assert_eq!(text(only, 1, vec![user("z")]).await, "no reply of \"either\" fits the conversation");
}

#[tokio::test]
async fn calls_thoughts_cost_and_placeholders_are_as_written() {
    let script = r#"{"replies": [{
        "thinking": "hm", "text": "I look for {said}.", "usage": {"input_tokens": 7, "output_tokens": 3},
        "calls": [{"tool": "find", "arguments": {"what": "{said}", "deep": {"n": 1}}}, {"id": "x", "tool": "stop"}]
    }]}"#;
    let asked = "the \"{result}\" \\ socks";
    let told = reply(script, request("A", 1, vec![user(asked)])).await.unwrap();
    assert_eq!(told.text.unwrap(), format!("I look for {asked}."));
    assert_eq!(told.usage, Usage::request(7, 3));
    let calls: Vec<(&str, &str)> = told.calls.iter().map(|call| (call.id.as_str(), call.tool.as_str())).collect();
    assert_eq!(calls, [("call_1_0", "find"), ("x", "stop")]);
    let arguments: serde_json::Value = serde_json::from_str(&told.calls[0].arguments).unwrap();
    assert_eq!(arguments, serde_json::json!({"what": asked, "deep": {"n": 1}}));
    assert_eq!(told.calls[1].arguments, "{}");
}

#[tokio::test(start_paused = true)]
async fn words_come_one_by_one_at_their_pace() {
    let model = ScriptedModel::from_json(r#"{"name": "demo", "pace_ms": 100, "replies": ["It is\n sunny."]}"#).unwrap();
    let (began, told) = (tokio::time::Instant::now(), Arc::new(Mutex::new(Vec::new())));
    let sink = DeltaSink::new({
        let told = told.clone();
        move |delta| told.lock().unwrap().push((began.elapsed().as_millis(), delta))
    });
    model.reply(request("A", 1, vec![]), sink).await.unwrap();
    let word = |at, text: &str| (at, Delta::Text(text.to_owned()));
    assert_eq!(*told.lock().unwrap(), [word(0, "It"), word(100, " is"), word(200, "\n sunny.")]);
    assert_eq!(model.name(), "demo");
}

#[tokio::test]
async fn a_fault_can_be_scripted() {
    let script = r#"{"replies": [{"fault": "overloaded", "may_retry": true}, {"fault": "gone"}]}"#;
    let model = ScriptedModel::from_json(script).unwrap();
    for (turn, message, may_retry) in [(1, "overloaded", true), (2, "gone", false)] {
        let fault = model.reply(request("A", turn, vec![]), DeltaSink::none()).await.unwrap_err();
        assert_eq!((fault.message.as_str(), fault.may_retry), (message, may_retry));
    }
}

#[test]
fn a_script_that_cannot_be_read_says_what_is_wrong() {
    for (script, expected) in [
        ("{", "the script cannot be read: EOF while parsing an object at line 1 column 1"),
        ("{}", "the script has no replies: give it \"replies\", \"scripts\", or both"),
        (r#"{"reply": []}"#, "the script cannot be read: unknown field `reply`, expected one of `name`, `pace_ms`"),
        (r#"{"replies": [{"txet": "a"}]}"#, "the script cannot be read: unknown field `txet`"),
        (r#"{"replies": [7]}"#, "the script cannot be read: a reply is a text, an object with text or calls"),
        (r#"{"replies": [{"either": [], "text": "x"}]}"#, "the script cannot be read: \"either\" stands alone"),
        (r#"{"replies": [{"calls": [{"tool": "t", "arguments": []}]}]}"#, "the script cannot be read: invalid type"),
        (
            r#"{"scripts": [{"replies": ["a"]}]}"#,
            "number 1 of \"scripts\" must have either \"agent\" or \"when_asked\", and not both",
        ),
        (
            r#"{"scripts": [{"agent": "a", "when_asked": "b", "replies": ["a"]}]}"#,
            "number 1 of \"scripts\" must have either \"agent\" or \"when_asked\", and not both",
        ),
    ] {
        let told = ScriptedModel::from_json(script).unwrap_err().to_string();
        assert!(told.starts_with(expected), "{script}: {told}");
    }
    let large = " ".repeat(ScriptedModel::SCRIPT_BYTES_MAX + 1);
    assert_eq!(ScriptedModel::from_json(&large).unwrap_err(), BadScript::TooLarge { bytes_max: 4 << 20 });
}
