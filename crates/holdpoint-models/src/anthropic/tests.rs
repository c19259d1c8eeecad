use holdpoint_core::message::{Content, Item, Part, Source};
use holdpoint_runtime::ports::model::ModelRequest;
use serde_json::{Value, json};

use super::request::body;
use super::thoughts::Thoughts;
use crate::testing::{assistant, call, request, result, user};

fn of(request: &ModelRequest) -> Value {
    body("claude-sonnet-4-5", request, &Thoughts::default()).unwrap()
}

fn messages(items: Vec<Item>) -> Value {
    of(&request(items, Value::Null))["messages"].clone()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn the_whole_request() {
    let items = vec![
        user("What is the weather in Oakland,"),
        user("and what do my notes say?"),
        assistant(
            Some("I look at both."),
            vec![
                call("toolu_1", "get_weather", r#"{"location":"Oakland"}"#),
                call("toolu_2", "files.read", r#"{"path":"notes"}"#),
            ],
        ),
        result("toolu_2", "files.read", "Tool execution was not approved.", true),
        result("toolu_1", "get_weather", "sunny", false),
        user("And now?"),
    ];
    let expected = json!({
        "model": "claude-sonnet-4-5",
        "max_tokens": 500,
        "stream": true,
        "system": "You help.",
        "temperature": 0.2,
        "stop_sequences": ["END"],
        "metadata": {"user_id": "u1"},
        "messages": [
            {"role": "user", "content": [text("What is the weather in Oakland,"), text("and what do my notes say?")]},
            {"role": "assistant", "content": [
                text("I look at both."),
                {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"location": "Oakland"}},
                {"type": "tool_use", "id": "toolu_2", "name": "files_read", "input": {"path": "notes"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "Tool execution was not approved.",
                    "is_error": true},
                text("And now?"),
            ]},
        ],
        "tools": [
            {"name": "get_weather", "description": "What get_weather does.", "input_schema": {
                "type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"],
            }},
            {"name": "files_read", "description": "What files.read does.", "input_schema": {
                "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
            }},
        ],
    });
    let settings = json!({"max_tokens": 500, "temperature": 0.2, "stop": "END", "user": "u1", "seed": 7});
    assert_eq!(of(&request(items, settings)), expected);
}

#[test]
fn roles_take_turns_and_the_first_and_last_word_are_the_users() {
    let said = |text: &str| assistant(Some(text), vec![]);
    let nobody = text("(no words)");
    for (items, expected) in [
        (vec![], json!([{"role": "user", "content": [nobody]}])),
        (vec![user("")], json!([{"role": "user", "content": [nobody]}])),
        (vec![user(" \n")], json!([{"role": "user", "content": [nobody]}])),
        (
            vec![said("a"), said("b"), user("c")],
            json!([
                {"role": "user", "content": [nobody]},
                {"role": "assistant", "content": [text("a"), text("b")]},
                {"role": "user", "content": [text("c")]},
            ]),
        ),
        (
            vec![user("a"), said("b")],
            json!([
                {"role": "user", "content": [text("a")]},
                {"role": "assistant", "content": [text("b")]},
                {"role": "user", "content": [nobody]},
            ]),
        ),
        (vec![user("a"), said(" "), user("b")], json!([{"role": "user", "content": [text("a"), text("b")]}])),
    ] {
        assert_eq!(messages(items), expected);
    }
}

#[test]
fn every_call_is_answered_in_the_message_after_it() {
    let items = vec![
        user("a"),
        assistant(None, vec![call("x:1", "get_weather", "{}"), call("y", "get_weather", "{}")]),
        result("x:1", "get_weather", "", false),
        user("b"),
        result("z", "files.read", "late", false),
    ];
    let messages = messages(items);
    let id = messages[1]["content"][0]["id"].as_str().unwrap();
    assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'), "{id}");
    assert_eq!(
        messages[2]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": id},
            {"type": "tool_result", "tool_use_id": "y", "content": "The result of this call is not known.",
                "is_error": true},
            text("b"),
            text("[an earlier result of files.read]\nlate"),
        ])
    );
}

#[test]
fn tools_of_an_agent_that_handed_over_are_spoken_of_and_not_to_be_called() {
    let items = vec![
        user("a"),
        assistant(None, vec![call("c", "transfer.to_billing", "{}")]),
        result("c", "transfer.to_billing", "The conversation was handed over to Desk/transfer.to_billing.", false),
    ];
    let mut request = request(items, json!({"tool_choice": "required"}));
    request.tools = std::sync::Arc::new([]);
    let body = of(&request);
    let schema = json!({"type": "object", "properties": {}});
    assert_eq!(body["tools"], json!([{"name": "transfer_to_billing", "input_schema": schema}]));
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
    request.items = std::sync::Arc::new([]);
    assert_eq!((of(&request).get("tools"), of(&request).get("tool_choice")), (None, None));
}

#[test]
fn a_choice_of_tools_is_forced_once() {
    let alone = |kind: &str| json!({"type": kind, "disable_parallel_tool_use": true});
    for (choice, parallel, first, later) in [
        ("auto", json!(null), json!(null), json!(null)),
        ("none", json!(null), json!({"type": "none"}), json!({"type": "none"})),
        ("required", json!(null), json!({"type": "any"}), json!(null)),
        ("files.read", json!(null), json!({"type": "tool", "name": "files_read"}), json!(null)),
        ("auto", json!(false), alone("auto"), alone("auto")),
        ("required", json!(false), alone("any"), alone("auto")),
        ("none", json!(false), json!({"type": "none"}), json!({"type": "none"})),
        ("auto", json!(true), json!(null), json!(null)),
    ] {
        let mut request = request(vec![user("a")], json!({"tool_choice": choice, "parallel_tool_calls": parallel}));
        assert_eq!(of(&request)["tool_choice"], first, "{choice}");
        request.turn = 2;
        assert_eq!(of(&request)["tool_choice"], later, "{choice}");
    }
}

#[test]
fn pictures_and_files_are_shown_by_people_and_by_tools() {
    let image = |media_type: &str, source| Part::Image { media_type: media_type.to_owned(), source };
    let file =
        |media_type: &str, source| Part::File { media_type: media_type.to_owned(), name: "f".to_owned(), source };
    let data = || Source::Base64("aGk=".to_owned());
    let url = || Source::Url("https://example.com/a".to_owned());
    let parts = Content::Parts(vec![
        Part::Text("See:".to_owned()),
        Part::Text(String::new()),
        image("image/png", data()),
        image("image/png", url()),
        image("image/tiff", data()),
        file("application/pdf", data()),
        file("application/pdf", url()),
        file("text/csv", data()),
        file("text/csv", url()),
    ]);
    let shown = json!([
        text("See:"),
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a"}},
        text("[image image/tiff, which cannot be shown]"),
        {"type": "document", "title": "f",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}},
        {"type": "document", "title": "f", "source": {"type": "url", "url": "https://example.com/a"}},
        text("[file f text/csv, which cannot be shown]"),
        text("[file f text/csv: https://example.com/a]"),
    ]);
    let items = vec![
        Item::User(parts.clone()),
        assistant(None, vec![call("a", "get_weather", "{}")]),
        result("a", "get_weather", parts, false),
    ];
    let messages = messages(items);
    assert_eq!((&messages[0]["content"], &messages[2]["content"][0]["content"]), (&shown, &shown));
}

#[test]
fn a_reply_has_a_limit_of_tokens_that_leaves_room_after_thoughts() {
    let of = |settings: Value| of(&request(vec![user("a")], settings))["max_tokens"].clone();
    assert_eq!(of(json!({})), 8_192);
    assert_eq!(of(json!({"thinking": {"type": "enabled", "budget_tokens": 10_000}})), 18_192);
    assert_eq!(of(json!({"max_tokens": 20_000, "thinking": {"type": "enabled", "budget_tokens": 10_000}})), 20_000);
}

#[test]
fn thoughts_come_back_beside_the_calls_that_they_led_to_or_thinking_is_off() {
    let thinking = json!({"type": "enabled", "budget_tokens": 2_000});
    let thoughts = Thoughts::default();
    let block = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    thoughts.keep("a", vec![block.clone()]);
    let turn =
        |id: &str| vec![assistant(None, vec![call(id, "get_weather", "{}")]), result(id, "get_weather", "1", false)];
    let ask = |items: Vec<Item>| {
        let request = request(items, json!({"thinking": thinking.clone()}));
        body("claude", &request, &thoughts).unwrap()
    };
    let known = ask([vec![user("?")], turn("a")].concat());
    assert_eq!(known["thinking"], thinking);
    assert_eq!(known["messages"][1]["content"][0], block);
    assert_eq!(known["messages"][1]["content"][1]["type"], "tool_use");

    // Another process had the thoughts of the second call.
    let unknown = ask([vec![user("?")], turn("a"), turn("b")].concat());
    assert_eq!(unknown.get("thinking"), None);
    assert_eq!(unknown["messages"][1]["content"][0]["type"], "tool_use");

    // What lies before the model's last plain words needs no thoughts.
    let over = ask([vec![user("?")], turn("b"), vec![assistant(Some("done"), vec![]), user("next")]].concat());
    assert_eq!(over["thinking"], thinking);
}
