use super::*;

#[track_caller]
fn check_stream(body: &str, code: &str, words: &str) {
    let problem = stream(&Bytes::copy_from_slice(body.as_bytes())).unwrap_err();
    assert_eq!((problem.code(), problem.detail()), (code, words), "{body}");
}

fn uri(query: &str) -> Uri {
    format!("/api/v1/chat/interrupt_state?{query}").parse().unwrap()
}

#[test]
fn a_message_is_read_and_the_session_has_a_default() {
    let read = stream(&Bytes::from_static(br#"{"agent_id":"a","session_id":"s-1","message":"hi"}"#)).unwrap();
    let session = SessionId::new("s-1").unwrap();
    assert_eq!(read, StreamRequest { agent: Some("a".to_owned()), session, message: "hi".to_owned() });
    let read = stream(&Bytes::from_static(br#"{"message":"hi","session_id":null}"#)).unwrap();
    assert_eq!((read.agent, read.session.as_str()), (None, "default"));
}

#[test]
fn a_bad_body_is_told_what_is_wrong_and_where() {
    check_stream(" ", "empty_body", "the body is empty; send a JSON object with agent_id, session_id, message");
    check_stream(
        "{\n \"message\": nope}",
        "invalid_json",
        "the body is not valid JSON: expected a value at line 2, column 13",
    );
    check_stream(
        r#"{"message":"a","message":"b"}"#,
        "invalid_json",
        "the body is not valid JSON: a key is given twice, at line 1, column 16",
    );
    check_stream("[]", "invalid_type", "the body must be a JSON object");
    check_stream(r#"{"agent_id":7,"message":"x"}"#, "invalid_type", "agent_id must be a string");
    check_stream(r#"{"agent_id":"a"}"#, "missing_field", "message is required");
    check_stream(r#"{"message":" \n\t"}"#, "empty_message", "message must not be empty");
    check_stream(
        r#"{"message":"x","auto_approve":true}"#,
        "unknown_field",
        "unknown field \"auto_approve\"; fields: agent_id, session_id, message",
    );
}

#[test]
fn a_session_is_named_by_plain_characters() {
    for good in ["s", "deploy-123", "a.b_c:d", &"x".repeat(128)] {
        assert!(session(good).is_ok(), "{good}");
    }
    for bad in ["", "a/b", "a b", "a\r\nb", "a\0b", "..", "a..b", "日本", &"x".repeat(129)] {
        assert_eq!(session(bad).unwrap_err().code(), "invalid_session_id", "{bad:?}");
    }
}

#[test]
fn what_is_missing_is_named_at_once() {
    let problem = resume(&Bytes::from_static(b"{\"input\":{}}")).unwrap_err();
    assert_eq!((problem.code(), problem.detail()), ("missing_field", "agent_id and session_id are required"));
    for body in [r#""yes""#, "true", "[]", "null"] {
        let body = format!(r#"{{"agent_id":"a","session_id":"s","input":{body}}}"#);
        assert_eq!(resume(&Bytes::from(body)).unwrap_err().code(), "invalid_type");
    }
}

#[test]
fn parameters_are_each_known_readable_and_given_once() {
    let read = interrupt_state(&uri("agent_id=approval%2Dagent&session_id=s1")).unwrap();
    assert_eq!((read.agent.as_str(), read.session.as_str()), ("approval-agent", "s1"));
    for (query, code) in [
        ("", "missing_field"),
        ("session_id=s", "missing_field"),
        ("agent_id=a", "missing_field"),
        ("agent_id=&session_id=", "missing_field"),
        ("agent_id=a&session_id=", "invalid_session_id"),
        ("agent_id=a&session_id=s&session_id=t", "duplicate_parameter"),
        ("agent_id=%ZZ&session_id=s", "invalid_encoding"),
        ("agent_id=%C3%28&session_id=s", "invalid_encoding"),
        ("agent_id=a&session_id=%0", "invalid_encoding"),
        ("agent_id=a&session_id=%00", "invalid_session_id"),
        ("agent_id=a&session_id=a%0d%0ab", "invalid_session_id"),
        ("agent_id=a&session_id=s&debug=1", "unknown_parameter"),
    ] {
        assert_eq!(interrupt_state(&uri(query)).unwrap_err().code(), code, "{query}");
    }
}

#[test]
fn the_mode_is_asked_for_by_header_or_address_and_anything_else_is_no() {
    let with = |value: &'static str| HeaderMap::from_iter([("x-a2ui".parse().unwrap(), value.parse().unwrap())]);
    let plain = "/api/v1/chat/stream".parse::<Uri>().unwrap();
    let asking = "/api/v1/chat/stream?a2ui=true".parse::<Uri>().unwrap();
    assert_eq!(mode(&with("true"), &plain).unwrap(), Mode::A2ui);
    assert_eq!(mode(&HeaderMap::new(), &asking).unwrap(), Mode::A2ui);
    assert_eq!(mode(&with("maybe"), &plain).unwrap(), Mode::Legacy);
    assert_eq!(mode(&HeaderMap::new(), &plain).unwrap(), Mode::Legacy);
}

#[test]
fn a_client_that_takes_no_stream_is_told_so() {
    let with = |value: &'static str| HeaderMap::from_iter([(header::ACCEPT, value.parse().unwrap())]);
    for good in ["*/*", "text/event-stream", "application/json, text/plain, */*", "text/*;q=0.5"] {
        assert!(accept(&with(good)).is_ok(), "{good}");
    }
    assert!(accept(&HeaderMap::new()).is_ok());
    assert_eq!(accept(&with("image/png")).unwrap_err().code(), "not_acceptable");
}
