use holdpoint_core::message::{Content, Item, Part, Source};
use holdpoint_runtime::ports::model::ModelRequest;
use serde_json::{Value, json};

use super::request::body;
use crate::openai::Dialect;
use crate::testing::{assistant, call, request, result, user};

fn of(request: &ModelRequest) -> Value {
    body("gpt-5", request, Dialect { is_openai: true, asks_usage: true }).unwrap()
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
        "model": "gpt-5",
        "stream": true,
        "store": false,
        "instructions": "You help.",
        "max_output_tokens": 500,
        "reasoning": {"effort": "low", "summary": "auto"},
        "input": [
            {"role": "user", "content": "What is the weather in Oakland, and what do my notes say?"},
            {"role": "assistant", "content": "I look at both."},
            {"type": "function_call", "call_id": "call_1", "name": "get_weather",
                "arguments": r#"{"location":"Oakland"}"#},
            {"type": "function_call", "call_id": "call_2", "name": "files_read", "arguments": r#"{"path":"notes"}"#},
            {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
            {"type": "function_call_output", "call_id": "call_2", "output": "Tool execution was not approved."},
            {"role": "user", "content": "And now?"},
        ],
        "tools": [
            {
                "type": "function", "name": "get_weather", "description": "What get_weather does.", "strict": false,
                "parameters": {
                    "type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"],
                },
            },
            {
                "type": "function", "name": "files_read", "description": "What files.read does.", "strict": false,
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
            },
        ],
    });
    let settings = json!({"max_tokens": 500, "reasoning_effort": "low", "reasoning_summary": "auto"});
    assert_eq!(of(&request(items, settings)), expected);
}

#[test]
fn pictures_and_files_are_shown_by_people_and_by_tools() {
    let image = |source| Part::Image { media_type: "image/png".to_owned(), source };
    let file = |source| Part::File { media_type: "application/pdf".to_owned(), name: "bill.pdf".to_owned(), source };
    let parts = Content::Parts(vec![
        Part::Text("See:".to_owned()),
        image(Source::Url("https://example.com/a.png".to_owned())),
        image(Source::Base64("aGk=".to_owned())),
        file(Source::Base64("aGk=".to_owned())),
        file(Source::Url("https://example.com/bill.pdf".to_owned())),
    ]);
    let shown = json!([
        {"type": "input_text", "text": "See:"},
        {"type": "input_image", "image_url": "https://example.com/a.png"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
        {"type": "input_file", "filename": "bill.pdf", "file_data": "data:application/pdf;base64,aGk="},
        {"type": "input_file", "file_url": "https://example.com/bill.pdf"},
    ]);
    let items = vec![
        Item::User(parts.clone()),
        assistant(None, vec![call("a", "get_weather", "{}")]),
        result("a", "get_weather", parts, false),
    ];
    let body = of(&request(items, Value::Null));
    assert_eq!((&body["input"][0]["content"], &body["input"][2]["output"]), (&shown, &shown));
}

#[test]
fn settings_go_by_the_names_of_this_protocol() {
    let settings = json!({
        "temperature": 1, "seed": 3, "stop": "x", "verbosity": "low", "metadata": {"a": "b"},
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    });
    let body = of(&request(vec![user("a")], settings));
    assert_eq!(body["temperature"], 1);
    assert_eq!(body["metadata"], json!({"a": "b"}));
    let format = json!({"type": "json_schema", "name": "n", "schema": {"type": "object"}});
    assert_eq!(body["text"], json!({"verbosity": "low", "format": format}));
    assert_eq!((body.get("seed"), body.get("stop")), (None, None));
    let plain = of(&request(vec![user("a")], json!({"response_format": {"type": "json_object"}})));
    assert_eq!(plain["text"], json!({"format": {"type": "json_object"}}));
}

#[test]
fn a_choice_of_tools_is_forced_once() {
    for (choice, first, later) in [
        ("auto", json!(null), json!(null)),
        ("none", json!("none"), json!("none")),
        ("required", json!("required"), json!(null)),
        ("files.read", json!({"type": "function", "name": "files_read"}), json!(null)),
    ] {
        let mut request = request(vec![user("a")], json!({"tool_choice": choice}));
        assert_eq!(of(&request)["tool_choice"], first, "{choice}");
        request.turn = 2;
        assert_eq!(of(&request)["tool_choice"], later, "{choice}");
    }
}
