use holdpoint_core::message::{Content, Item, Part, Source};
use holdpoint_runtime::ports::model::ModelRequest;
use serde_json::{Value, json};

use super::request::body;
use crate::openai::Dialect;
use crate::settings::BadSetting;
use crate::testing::{assistant, call, request, result, user};

const OPENAI: Dialect = Dialect { is_openai: true, asks_usage: true };
const OTHER: Dialect = Dialect { is_openai: false, asks_usage: true };

fn of(request: &ModelRequest) -> Value {
    body("gpt-4o", request, OPENAI).unwrap()
}

fn messages(items: Vec<Item>) -> Value {
    of(&request(items, Value::Null))["messages"].clone()
}

#[test]
fn the_whole_request() {
    let items = vec![
        user("What is the weather in Oakland, and what do my notes say?"),
        assistant(
            Some("I look at both."),
            vec![
                call("call_1", "get_weather", r#"{"location":"Oakland"}"#),
                call("call_2", "files.read", r#"{"path":"notes"}"#),
            ],
        ),
        result("call_1", "get_weather", "sunny", false),
        result("call_2", "files.read", "Tool execution was not approved.", true),
        user("And now?"),
    ];
    let expected = json!({
        "model": "gpt-4o",
        "stream": true,
        "stream_options": {"include_usage": true},
        "temperature": 0.2,
        "max_completion_tokens": 500,
        "messages": [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": "What is the weather in Oakland, and what do my notes say?"},
            {"role": "assistant", "content": "I look at both.", "tool_calls": [
                {"id": "call_1", "type": "function",
                    "function": {"name": "get_weather", "arguments": r#"{"location":"Oakland"}"#}},
                {"id": "call_2", "type": "function",
                    "function": {"name": "files_read", "arguments": r#"{"path":"notes"}"#}},
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
            {"role": "tool", "tool_call_id": "call_2", "content": "Tool execution was not approved."},
            {"role": "user", "content": "And now?"},
        ],
        "tools": [
            {"type": "function", "function": {
                "name": "get_weather",
                "description": "What get_weather does.",
                "parameters": {
                    "type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"],
                },
            }},
            {"type": "function", "function": {
                "name": "files_read",
                "description": "What files.read does.",
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
            }},
        ],
    });
    assert_eq!(of(&request(items, json!({"temperature": 0.2, "max_tokens": 500}))), expected);
}

#[test]
fn a_hand_off_reads_as_a_call_that_was_answered() {
    let items = vec![
        user("My bill is wrong."),
        assistant(None, vec![call("c", "transfer_to_billing", "{}")]),
        result("c", "transfer_to_billing", "The conversation was handed over to Desk/transfer_to_billing.", false),
    ];
    let mut request = request(items, Value::Null);
    request.tools = std::sync::Arc::new([]);
    let body = of(&request);
    assert_eq!(body.get("tools"), None);
    assert_eq!(body["messages"][2]["content"], Value::Null);
    assert_eq!(body["messages"][2]["tool_calls"][0]["function"]["name"], "transfer_to_billing");
    assert_eq!(body["messages"][3]["role"], "tool");
}

#[test]
fn an_agent_without_instructions_has_no_system_message() {
    let mut request = request(vec![user("hello")], Value::Null);
    request.instructions = "".into();
    assert_eq!(of(&request)["messages"], json!([{"role": "user", "content": "hello"}]));
}

#[test]
fn pictures_and_files_are_shown_and_what_a_tool_shows_comes_after_its_words() {
    let image = |source| Part::Image { media_type: "image/png".to_owned(), source };
    let file = |source| Part::File { media_type: "application/pdf".to_owned(), name: "bill.pdf".to_owned(), source };
    let parts = vec![
        Part::Text("See:".to_owned()),
        image(Source::Url("https://example.com/a.png".to_owned())),
        image(Source::Base64("aGk=".to_owned())),
        file(Source::Base64("aGk=".to_owned())),
        file(Source::Url("https://example.com/bill.pdf".to_owned())),
    ];
    let shot = Content::Parts(vec![image(Source::Base64("eA==".to_owned())), Part::Text("clicked".to_owned())]);
    let items = vec![
        Item::User(Content::Parts(parts)),
        assistant(None, vec![call("a", "get_weather", "{}"), call("b", "get_weather", "{}")]),
        result("a", "get_weather", shot, false),
        result("b", "get_weather", "words", false),
    ];
    let messages = messages(items);
    assert_eq!(
        messages[1]["content"],
        json!([
            {"type": "text", "text": "See:"},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            {"type": "file", "file": {"filename": "bill.pdf", "file_data": "data:application/pdf;base64,aGk="}},
            {"type": "text", "text": "[file bill.pdf application/pdf: https://example.com/bill.pdf]"},
        ])
    );
    assert_eq!(messages[3], json!({"role": "tool", "tool_call_id": "a", "content": "[image image/png]\nclicked"}));
    assert_eq!(messages[4], json!({"role": "tool", "tool_call_id": "b", "content": "words"}));
    assert_eq!(
        messages[5],
        json!({"role": "user", "content": [
            {"type": "text", "text": "What get_weather shows:"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}},
        ]})
    );
}

#[test]
fn texts_in_parts_are_one_text_for_servers_that_know_no_parts() {
    let parts = Content::Parts(vec![Part::Text("a".to_owned()), Part::Text("b".to_owned())]);
    assert_eq!(messages(vec![Item::User(parts)])[1], json!({"role": "user", "content": "a\nb"}));
}

#[test]
fn settings_go_by_the_names_that_the_server_knows() {
    let settings = json!({
        "temperature": 0, "top_p": 0.9, "max_tokens": 7, "stop": ["x"], "seed": 1, "reasoning_effort": "low", "top_k": 3,
        "thinking": {"type": "enabled"}, "reasoning_summary": "auto", "user": "u", "response_format": {"type": "json_object"},
        "parallel_tool_calls": false,
    });
    let openai = of(&request(vec![user("a")], settings.clone()));
    let other = body("llama", &request(vec![user("a")], settings), OTHER).unwrap();
    for (name, value) in [
        ("temperature", json!(0)),
        ("top_p", json!(0.9)),
        ("stop", json!(["x"])),
        ("seed", json!(1)),
        ("reasoning_effort", json!("low")),
        ("top_k", json!(3)),
        ("user", json!("u")),
        ("response_format", json!({"type": "json_object"})),
        ("parallel_tool_calls", json!(false)),
    ] {
        assert_eq!((&openai[name], &other[name]), (&value, &value), "{name}");
    }
    assert_eq!((openai.get("max_tokens"), &openai["max_completion_tokens"]), (None, &json!(7)));
    assert_eq!((&other["max_tokens"], other.get("max_completion_tokens")), (&json!(7), None));
    assert_eq!((openai.get("thinking"), openai.get("reasoning_summary")), (None, None));
    let unknown = body("m", &request(vec![], json!({"tempreature": 1})), OPENAI).unwrap_err();
    assert_eq!(unknown, BadSetting::Unknown { name: "tempreature".to_owned() });
}

#[test]
fn a_choice_of_tools_is_forced_once() {
    for (choice, first, later) in [
        ("auto", json!(null), json!(null)),
        ("none", json!("none"), json!("none")),
        ("required", json!("required"), json!(null)),
        ("files.read", json!({"type": "function", "function": {"name": "files_read"}}), json!(null)),
        ("no_such_tool", json!(null), json!(null)),
    ] {
        let mut request = request(vec![user("a")], json!({"tool_choice": choice}));
        assert_eq!(of(&request)["tool_choice"], first, "{choice}");
        request.turn = 2;
        assert_eq!(of(&request)["tool_choice"], later, "{choice}");
    }
}

#[test]
fn old_servers_are_not_asked_to_count_tokens() {
    let dialect = Dialect { is_openai: false, asks_usage: false };
    assert_eq!(body("m", &request(vec![], Value::Null), dialect).unwrap().get("stream_options"), None);
}

#[test]
fn a_long_description_is_cut_for_openai_alone() {
    let mut request = request(vec![user("a")], Value::Null);
    let mut tools = request.tools.to_vec();
    tools[0].description = "é".repeat(1_000);
    request.tools = tools.into();
    let length = |dialect| {
        let body = body("m", &request, dialect).unwrap();
        body["tools"][0]["function"]["description"].as_str().unwrap().len()
    };
    assert_eq!((length(OPENAI), length(OTHER)), (1_024, 2_000));
}
