use secrecy::ExposeSecret as _;
use serde_json::json;

use super::*;

fn read(value: &Value) -> Asked {
    command(&value.to_string(), None)
}

#[track_caller]
fn refuses(text: &str, code: &str, part: &str) {
    let refused = command(text, None).command.unwrap_err();
    assert_eq!(refused.code.name(), code, "{text}: {}", refused.message);
    assert!(refused.message.contains(part), "{text}: {}", refused.message);
}

fn approval_with(name: &str, value: Value) -> String {
    let mut command = json!({"type": "approval", "session_id": "abc-123", "approval_key": "abc-123_1"});
    command[name] = value;
    command.to_string()
}

fn decisions_of(text: &str) -> Vec<GivenDecision> {
    match command(text, None).command.unwrap() {
        Command::Approval(Approval { given: Given::Decisions(decisions), .. }) => decisions,
        other => panic!("decisions expected: {other:?}"),
    }
}

#[test]
fn every_command_of_the_specification_is_read() {
    let asked = read(&json!({"type": "message", "request_id": "c1", "agent_id": "trader", "session_id": "abc-123",
        "content": "Mua 100 VNM"}));
    assert_eq!(asked.request_id.as_deref(), Some("c1"));
    let Ok(Command::Message(message)) = asked.command else { panic!("a message expected: {asked:?}") };
    assert_eq!((message.agent.as_str(), message.content.as_str()), ("trader", "Mua 100 VNM"));

    let blocks = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    let asked = read(&json!({"type": "message", "agent_id": "trader", "content": blocks}));
    let Ok(Command::Message(message)) = asked.command else { panic!("a message expected: {asked:?}") };
    assert_eq!((message.session, message.content.as_str()), (None, "a\n\nb"));

    for (cursor, expected) in
        [(json!({}), None), (json!({"after": 7}), Some(7)), (json!({"last_event_id": "0000000007"}), Some(7))]
    {
        let mut command = json!({"type": "subscribe", "session_id": "abc-123"});
        command.as_object_mut().unwrap().extend(cursor.as_object().unwrap().clone());
        let Ok(Command::Subscribe { after, .. }) = read(&command).command else { panic!("{command}") };
        assert_eq!(after, expected);
    }

    assert!(matches!(read(&json!({"type": "cancel", "session_id": "s"})).command, Ok(Command::Cancel { .. })));
    assert!(matches!(read(&json!({"type": "ping"})).command, Ok(Command::Ping)));
    let Ok(Command::Auth { token }) = read(&json!({"type": "auth", "token": "hpk_x"})).command else { panic!("auth") };
    assert_eq!(token.expose_secret(), "hpk_x");
}

#[test]
fn every_decision_of_the_seed_is_read() {
    let approve = decisions_of(&approval_with("decisions", json!([{"type": "approve"}])));
    assert_eq!(approve[0].choice, Choice::Approve);
    let reject =
        decisions_of(&approval_with("decisions", json!([{"type": "reject"}, {"type": "reject", "message": ""}])));
    assert_eq!(reject[0].choice, Choice::Reject { message: None });
    let action = json!({"name": "execute_trade", "args": {"symbol": "VNM", "quantity": 50}});
    let edit = decisions_of(&approval_with("decisions", json!([{"type": "edit", "edited_action": action}])));
    let Choice::Edit { name, args } = &edit[0].choice else { panic!("{edit:?}") };
    assert_eq!((name.as_str(), args.as_str()), ("execute_trade", r#"{"quantity":50,"symbol":"VNM"}"#));
}

#[test]
fn a_note_is_taken_within_bounds() {
    let mut command = json!({"type": "approval", "session_id": "s", "approval_key": "s_1",
        "decisions": [{"type": "approve"}], "user_edit_content": "OK nhưng chỉ mua 50 cổ thôi"});
    let Ok(Command::Approval(approval)) = read(&command).command else { panic!("{command}") };
    assert_eq!(approval.note.as_deref(), Some("OK nhưng chỉ mua 50 cổ thôi"));
    command["user_edit_content"] = json!("x".repeat(NOTE_BYTES_MAX + 1));
    refuses(&command.to_string(), "too_large", "user_edit_content");
    command["user_edit_content"] = json!("a\u{0}b");
    refuses(&command.to_string(), "bad_command", "U+0000");
    command["user_edit_content"] = json!(7);
    refuses(&command.to_string(), "bad_command", "user_edit_content");
    command["user_edit_content"] = json!("   ");
    let Ok(Command::Approval(approval)) = read(&command).command else { panic!("{command}") };
    assert_eq!(approval.note, None);
}

#[test]
fn what_is_no_command_is_told_what_is_wrong() {
    refuses("approve please", "bad_json", "line 1, column 1");
    refuses("", "bad_json", "");
    refuses("[1]", "bad_command", "object");
    refuses(r#""approve""#, "bad_command", "object");
    refuses(r#"{"type":"aproval"}"#, "bad_command", "\"aproval\" is not known");
    refuses("{}", "bad_command", "type: one of");
    refuses(r#"{"type":7}"#, "bad_command", "type: one of");
    refuses(r#"{"type":"ping","type":"cancel"}"#, "bad_json", "twice");
    refuses(r#"{"type":"ping","request_id":7}"#, "bad_command", "request_id");
    refuses(r#"{"type":"ping","more":1}"#, "bad_command", "more");
    refuses(r#"{"type":"cancel"}"#, "bad_command", "session_id is required");
    refuses(r#"{"type":"approval","session_id":"s"}"#, "bad_command", "approval_key");
    refuses(r#"{"type":"message","agent_id":"a","content":""}"#, "bad_command", "content");
    refuses(r#"{"type":"message","agent_id":"a","content":[{"type":"image","text":"x"}]}"#, "bad_command", "content");
    refuses(r#"{"type":"message","agent_id":"a","content":[["text","x"]]}"#, "bad_command", "content");
    refuses(r#"{"type":"subscribe","session_id":"s","after":-1}"#, "bad_command", "after");
    refuses(r#"{"type":"subscribe","session_id":"s","after":1,"last_event_id":"1"}"#, "bad_command", "either");
    refuses(r#"{"type":"subscribe","session_id":"s","last_event_id":"x"}"#, "bad_command", "last_event_id");
    let deep = format!(r#"{{"type":"ping","more":{}1{}}}"#, "[".repeat(200), "]".repeat(200));
    refuses(&deep, "bad_json", "deep");
}

#[test]
fn what_is_wrong_with_decisions_is_told_by_its_place() {
    let refuses = |value: Value, part: &str| refuses(&approval_with("decisions", value), "bad_decisions", part);
    refuses(json!([]), "at least one");
    refuses(json!({"type": "approve"}), "a list expected");
    refuses(json!(["approve"]), "decisions[0]");
    refuses(json!([["approve"]]), "decisions[0]");
    for kind in [json!("APPROVE"), json!("yes"), json!(true), json!(null)] {
        refuses(json!([{ "type": kind }]), "decisions[0].type");
    }
    refuses(json!([{"type": "edit"}]), "decisions[0].edited_action is required");
    refuses(json!([{"type": "approve", "edited_action": {"name": "a", "args": {}}}]), "does not go with approve");
    refuses(json!([{"type": "approve", "message": "ok"}]), "does not go with approve");
    refuses(json!([{"type": "approve"}, {"type": "approve", "editedAction": {}}]), "decisions[1]");
    refuses(json!([{"type": "approve", "args_sha256": "abc"}]), "args_sha256");
    refuses(json!([{"type": "edit", "edited_action": {"name": "a"}}]), "decisions[0].edited_action");
    let neither = json!({"type": "approval", "session_id": "s", "approval_key": "s_1"}).to_string();
    assert_eq!(command(&neither, None).command.unwrap_err().code, Code::BadDecisions);
}

#[test]
fn what_is_wrong_with_answers_is_told_by_the_question() {
    let refuses = |value: Value, part: &str| refuses(&approval_with("answers", value), "bad_answers", part);
    refuses(json!([]), "an object expected");
    refuses(json!("x"), "an object expected");
    refuses(json!({}), "at least one");
    for bad in [json!(null), json!(7), json!(true), json!({}), json!([1])] {
        refuses(json!({ "Q?": bad }), "answers[\"Q?\"]: a text or a list of texts expected");
    }
    refuses(json!({"Q?": "a\u{0}"}), "U+0000");
    let mut both =
        json!({"type": "approval", "session_id": "s", "approval_key": "s_1", "decisions": [], "answers": {}});
    let refused = read(&both).command.unwrap_err();
    assert!(refused.message.contains("either"), "{}", refused.message);
    both["decisions"] = json!(null);
    both["answers"] = json!({"Q?": "x".repeat(ANSWER_CHARS_MAX + 1)});
    assert_eq!(read(&both).command.unwrap_err().code, Code::TooLarge);
}

#[test]
fn numbers_in_edited_arguments_stay_what_was_sent() {
    let text = r#"{"type":"approval","session_id":"s","approval_key":"s_1","decisions":[
        {"type":"edit","edited_action":{"name":"a","args":{"n":9007199254740993}}}]}"#;
    let Choice::Edit { args, .. } = &decisions_of(text)[0].choice else { panic!("an edit expected") };
    assert_eq!(args.as_str(), r#"{"n":9007199254740993}"#);
    let huge = text.replace("9007199254740993", "1e999999");
    assert!(command(&huge, None).command.is_err());
}

#[test]
fn a_command_is_about_the_session_of_its_address_and_names_no_other() {
    let place = SessionId::new("here").unwrap();
    let of = |text: &str| command(text, Some(&place)).command;
    let Ok(Command::Message(message)) = of(r#"{"type":"message","agent_id":"a","content":"x"}"#) else { panic!() };
    assert_eq!(message.session, Some(place.clone()));
    assert!(of(r#"{"type":"cancel","session_id":"here"}"#).is_ok());
    assert!(of(r#"{"type":"cancel","session_id":"there"}"#).is_err());
    assert!(matches!(of(r#"{"type":"cancel"}"#), Ok(Command::Cancel { session }) if session == place));
    assert!(command(r#"{"type":"cancel"}"#, None).command.is_err());
}

#[test]
fn the_request_id_of_a_refused_command_is_known() {
    let asked = read(&json!({"type": "approval", "request_id": "c9", "session_id": "s", "approval_key": "s_1"}));
    assert_eq!(asked.request_id.as_deref(), Some("c9"));
    assert!(asked.command.is_err());
}
