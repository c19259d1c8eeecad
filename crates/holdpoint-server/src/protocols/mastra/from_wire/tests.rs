use serde_json::{Value, json};

use super::*;
use crate::protocols::mastra::follow::AtPause;

fn body(value: Value) -> Body {
    match value {
        Value::Object(members) => Body(members),
        _ => panic!("an object"),
    }
}

fn asked(messages: Value) -> String {
    body(json!({ "messages": messages })).start().unwrap().content.to_text()
}

#[track_caller]
fn refused(problem: Problem, code: &str, field: &str) {
    assert_eq!(problem.code(), code, "{problem:?}");
    assert_eq!(problem.member("issues").unwrap()[0]["field"], json!(field), "{problem:?}");
}

#[test]
fn messages_are_taken_in_every_shape_that_clients_have() {
    assert_eq!(asked(json!("delete a.txt")), "delete a.txt");
    assert_eq!(asked(json!(["one", "two"])), "one\n\ntwo");
    assert_eq!(asked(json!({"role": "user", "content": "hi"})), "hi");
    assert_eq!(
        asked(json!([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])),
        "a\nb"
    );
    assert_eq!(asked(json!([{"role": "user", "parts": [{"type": "text", "text": "a"}]}])), "a");
    assert_eq!(
        asked(json!([{"role": "user", "content": {"format": 2, "parts": [{"type": "text", "text": "a"}]}}])),
        "a"
    );
    let kept = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "text", "text": "hello"}, {"type": "tool-call", "toolName": "x"}]},
        {"role": "user", "content": "and now?"},
    ]);
    assert_eq!(asked(kept.clone()), "Earlier in this conversation:\nuser: hi\nassistant: hello\n\nNow:\nand now?");
    let in_thread = body(json!({"messages": kept, "memory": {"thread": "t"}})).start().unwrap();
    assert_eq!(in_thread.content.to_text(), "and now?");
}

#[test]
fn messages_that_ask_nothing_are_refused_by_their_place() {
    let start = |messages: Value| body(json!({ "messages": messages })).start().unwrap_err();
    refused(body(json!({})).start().unwrap_err(), "missing_field", "messages");
    refused(start(json!(null)), "missing_field", "messages");
    refused(start(json!("  ")), "missing_field", "messages");
    refused(start(json!([])), "missing_field", "messages");
    refused(start(json!([{"role": "assistant", "content": "x"}])), "missing_field", "messages");
    refused(start(json!(7)), "invalid_type", "messages");
    refused(start(json!(["x", 7])), "invalid_type", "messages.1");
    refused(start(json!([{"role": "root", "content": "x"}])), "invalid_type", "messages.0.role");
    refused(start(json!([{"role": "user"}])), "missing_field", "messages.0.content");
    let image = json!([{"role": "user", "content": [{"type": "image", "image": "x"}]}]);
    refused(start(image), "invalid_type", "messages.0.content.0");
    refused(start(json!(vec!["x"; 1_001])), "invalid_type", "messages");
}

#[test]
fn options_that_we_have_are_read_and_all_others_are_passed_over() {
    let start = body(json!({
        "messages": "hi", "runId": "fixed-run-1", "memory": {"thread": {"id": "t"}, "resource": "user-1"},
        "maxSteps": 3, "requireToolApproval": true, "holdOpen": true,
        "clientTools": {}, "modelSettings": {"temperature": 0.5}, "requestContext": {"a": 1}, "structuredOutput": null,
    }))
    .start()
    .unwrap();
    assert_eq!(start.run.as_deref(), Some("fixed-run-1"));
    assert_eq!(start.thread.as_ref().map(SessionId::as_str), Some("t"));
    assert_eq!(start.resource.as_deref(), Some("user-1"));
    assert_eq!((start.steps_max, start.holds_every_call, start.at_pause), (Some(3), true, AtPause::Stay));
    let plain = body(json!({"messages": "hi", "threadId": "t", "resourceId": "u"})).start().unwrap();
    assert_eq!((plain.thread.unwrap().as_str(), plain.resource.as_deref()), ("t", Some("u")));
    assert_eq!((plain.holds_every_call, plain.at_pause), (false, AtPause::End));
    for (name, bad, field) in [
        ("requireToolApproval", json!("yes"), "requireToolApproval"),
        ("holdOpen", json!(1), "holdOpen"),
        ("maxSteps", json!(0), "maxSteps"),
        ("memory", json!("t"), "memory"),
        ("memory", json!({"thread": {}}), "memory.thread.id"),
        ("memory", json!({"thread": "a\u{202e}b"}), "memory.thread"),
        ("memory", json!({"resource": 7}), "memory.resource"),
    ] {
        let problem = body(json!({"messages": "hi", name: bad})).start().unwrap_err();
        assert_eq!(problem.member("issues").unwrap()[0]["field"], json!(field));
    }
}

#[test]
fn what_decides_is_read_strictly() {
    let of = |verb: Verb, more: Value| {
        let mut members = json!({"runId": "r", "toolCallId": "c"});
        members.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body(members).decide(verb)
    };
    let (approve, decline) = (|more| of(Verb::Approve, more), |more| of(Verb::Decline, more));
    assert_eq!(approve(json!({"model": "x", "requestContext": {}})).unwrap().given, Given::Approve);
    assert_eq!(decline(json!({})).unwrap().given, Given::Decline { reason: None });
    assert_eq!(decline(json!({"info": "no"})).unwrap().given, Given::Decline { reason: Some("no".to_owned()) });
    for bad in [json!(5), json!("../x"), json!("a/b"), json!(""), json!(null), json!("a..b"), json!("x".repeat(10_240))]
    {
        refused(approve(json!({"runId": bad})).unwrap_err(), "invalid_run_id", "runId");
    }
    for bad in [json!(""), json!(null), json!(7), json!("x".repeat(2_000))] {
        refused(approve(json!({"toolCallId": bad})).unwrap_err(), "invalid_type", "toolCallId");
    }
    for name in ["args", "input", "arguments", "editedArguments"] {
        refused(approve(json!({name: {}})).unwrap_err(), "unexpected_field", name);
    }
    for (name, value) in
        [("reason", json!("x")), ("info", json!("x")), ("approved", json!(false)), ("resumeData", json!({}))]
    {
        refused(approve(json!({name: value})).unwrap_err(), "unexpected_field", name);
    }
    refused(decline(json!({"approved": true})).unwrap_err(), "unexpected_field", "approved");
    refused(decline(json!({"reason": "a", "info": "b"})).unwrap_err(), "unexpected_field", "info");
    refused(decline(json!({"info": 7})).unwrap_err(), "invalid_type", "info");
    refused(decline(json!({"info": "a\0b"})).unwrap_err(), "control_character", "info");
    refused(decline(json!({"reason": "x".repeat(8_193)})).unwrap_err(), "too_long", "reason");
    refused(of(Verb::Resume, json!({})).unwrap_err(), "missing_field", "resumeData");
    refused(body(json!({"toolCallId": "c"})).decide(Verb::Approve).unwrap_err(), "missing_field", "runId");
    assert_eq!(body(json!({"runId": "r"})).decide(Verb::Approve).unwrap().call, None);
}

#[test]
fn an_approval_for_a_thread_names_all_that_it_must() {
    let whole = json!({"resourceId": "u", "threadId": "t", "toolCallId": "c", "approved": true});
    assert_eq!(body(whole.clone()).approval().unwrap().given, Given::Approve);
    for name in ["resourceId", "threadId", "toolCallId", "approved"] {
        let mut part = whole.clone();
        part.as_object_mut().unwrap().remove(name);
        refused(body(part).approval().unwrap_err(), "missing_field", name);
    }
    let mut bad = whole;
    bad["approved"] = json!("yes");
    refused(body(bad).approval().unwrap_err(), "invalid_type", "approved");
}
