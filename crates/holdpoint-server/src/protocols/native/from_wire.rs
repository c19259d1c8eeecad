//! From requests to inputs. A loose shape becomes one strict value here, and nowhere else.

use holdpoint_core::decision::{Answers, Decision};
use holdpoint_core::ids::ActorId;
use holdpoint_core::json::Digest;
use holdpoint_core::message::Content;
use holdpoint_core::policy::{Constraint, Lifetime, NewRule, Test};
use holdpoint_core::text::{clamp, visible};
use holdpoint_core::time::Timestamp;
use http::{HeaderMap, header};

use super::wire;
use crate::problem::{Code, Problem};

/// What a decision's body says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decided {
    pub(super) decision: Decision,
    pub(super) seen: Option<Digest>,
    pub(super) rule: Option<NewRule>,
}

fn unfit(field: &'static str, detail: impl Into<String>) -> Problem {
    Problem::new(Code::INVALID_REQUEST, format!("{field}: {}", detail.into())).at(field)
}

/// Reads a decision. What does not belong to it is refused: a misplaced field may be what the person meant.
pub(super) fn decision(body: wire::DecideBody) -> Result<Decided, Problem> {
    use wire::DecisionType as Type;
    let wire::DecideBody { decision, args, message, answers, content, args_sha256, always } = body;
    let named = name(decision);
    for (field, is_given, belongs) in [
        ("args", args.is_some(), decision == Type::ApproveEdited),
        ("message", message.is_some(), decision == Type::Deny),
        ("answers", answers.is_some(), decision == Type::Answer),
        ("content", content.is_some(), matches!(decision, Type::Respond | Type::Happened)),
        ("always", always.is_some(), matches!(decision, Type::Approve | Type::Deny)),
    ] {
        if is_given && !belongs {
            return Err(unfit(field, format!("does not go with {named}")));
        }
    }
    let needs = |field| move || unfit(field, format!("{named} needs it"));
    let decision = match decision {
        Type::Approve => Decision::Approve,
        Type::ApproveEdited => Decision::ApproveEdited { arguments: args.ok_or_else(needs("args"))? },
        Type::Deny => Decision::Deny { message },
        Type::Respond => Decision::Respond { content: content.ok_or_else(needs("content"))? },
        Type::Answer => Decision::Answer { answers: read_answers(answers.ok_or_else(needs("answers"))?) },
        Type::Happened => Decision::Happened { result: Content::Text(content.ok_or_else(needs("content"))?) },
        Type::RunAgain => Decision::RunAgain,
        Type::Abandon => Decision::Abandon,
    };
    let seen = args_sha256
        .map(|text| {
            text.parse().map_err(|_| unfit("args_sha256", "64 hexadecimal digits expected, as the pause shows them"))
        })
        .transpose()?;
    Ok(Decided { decision, seen, rule: always.map(rule).transpose()? })
}

fn name(decision: wire::DecisionType) -> &'static str {
    use wire::DecisionType as Type;
    match decision {
        Type::Approve => "approve",
        Type::ApproveEdited => "approve_edited",
        Type::Deny => "deny",
        Type::Respond => "respond",
        Type::Answer => "answer",
        Type::Happened => "happened",
        Type::RunAgain => "run_again",
        Type::Abandon => "abandon",
    }
}

fn read_answers(answers: std::collections::BTreeMap<String, wire::Answer>) -> Answers {
    let several = |answer| match answer {
        wire::Answer::One(text) => vec![text],
        wire::Answer::Several(texts) => texts,
    };
    answers.into_iter().map(|(question, answer)| (question, several(answer))).collect()
}

fn rule(always: wire::Always) -> Result<NewRule, Problem> {
    let lifetime = match (always.scope, always.until) {
        (wire::RuleScope::Run, None) => Lifetime::Run,
        (wire::RuleScope::Session, None) => Lifetime::Session,
        (wire::RuleScope::Session, Some(until)) => {
            let until: Timestamp = until
                .parse()
                .map_err(|_| unfit("always.until", "an RFC 3339 time expected, such as 2026-11-15T09:30:00Z"))?;
            Lifetime::Until(until)
        }
        (wire::RuleScope::Run, Some(_)) => {
            return Err(unfit("always.until", "goes with the scope session; a rule of a run ends with the run"));
        }
    };
    if always.uses_max == Some(0) {
        return Err(unfit("always.uses_max", "1 at least: a rule without uses would say nothing"));
    }
    let constraints = always.constraints.into_iter().map(constraint).collect::<Result<_, _>>()?;
    Ok(NewRule { lifetime, constraints, uses_max: always.uses_max, ..NewRule::default() })
}

fn constraint(given: wire::Constraint) -> Result<Constraint, Problem> {
    let wire::Constraint { at, equals, one_of, at_most, starts_with } = given;
    let mut tests = [
        equals.map(Test::Equals),
        one_of.map(Test::OneOf),
        at_most.map(Test::AtMost),
        starts_with.map(Test::StartsWith),
    ]
    .into_iter()
    .flatten();
    match (tests.next(), tests.next()) {
        (Some(test), None) => Ok(Constraint { at, test }),
        _ => Err(unfit("always.where", "each condition has one test: equals, one_of, at_most or starts_with")),
    }
}

/// What a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    Json,
    Stream,
}

/// Reads the `Accept` header: a stream where one is asked for, JSON where it is taken.
pub(super) fn wants(headers: &HeaderMap) -> Result<Wants, Problem> {
    let accepts: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let types: Vec<String> = accepts
        .iter()
        .flat_map(|value| value.split(','))
        .map(|part| part.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
        .filter(|part| !part.is_empty())
        .collect();
    if types.iter().any(|part| part == "text/event-stream") {
        return Ok(Wants::Stream);
    }
    let takes_json = |part: &String| matches!(part.as_str(), "*/*" | "application/*" | "application/json");
    match types.is_empty() || types.iter().any(takes_json) {
        true => Ok(Wants::Json),
        false => Err(Problem::new(
            Code::NOT_ACCEPTABLE,
            "application/json or text/event-stream can be given here: accept one of them",
        )),
    }
}

/// Refuses a client that does not take streams where nothing else can be given.
pub(super) fn wants_stream(headers: &HeaderMap) -> Result<(), Problem> {
    let takes_all = headers.get(header::ACCEPT).is_none_or(|value| value.as_bytes() == b"*/*");
    match takes_all || matches!(wants(headers), Ok(Wants::Stream)) {
        true => Ok(()),
        false => Err(Problem::new(Code::NOT_ACCEPTABLE, "only text/event-stream can be given here: accept it")),
    }
}

/// The longest key of a request.
const KEY_BYTES_MAX: usize = 255;

/// The caller's own name of a request, by which it is known again.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let bad = || {
        Problem::new(
            Code::INVALID_HEADER,
            format!("Idempotency-Key: 1 to {KEY_BYTES_MAX} printable ASCII characters expected, once"),
        )
        .at("Idempotency-Key")
    };
    let mut given = headers.get_all("idempotency-key").iter();
    let Some(value) = given.next() else { return Ok(None) };
    let text = value.to_str().map_err(|_| bad())?.trim();
    let is_key = (1..=KEY_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if is_key && given.next().is_none() { Ok(Some(text.to_owned())) } else { Err(bad()) }
}

/// The number after which a stream goes on, as a client that lost it says.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    number.and_then(|text| text.parse().ok()).map(Some).ok_or_else(|| {
        Problem::new(Code::INVALID_HEADER, "Last-Event-ID: the number of an event expected, as the stream gave it")
            .at("Last-Event-ID")
    })
}

/// Why a run is ended.
pub(super) fn reason(body: Option<wire::CancelRun>, by: &ActorId) -> String {
    let given = body.and_then(|body| body.reason).filter(|reason| !reason.trim().is_empty());
    given.map_or_else(|| format!("cancelled by {by}"), |reason| visible(clamp(&reason, 4096)))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;
    use crate::limits::from_json;

    fn read(body: serde_json::Value) -> Result<Decided, Problem> {
        decision(from_json(body.to_string().as_bytes())?)
    }

    #[track_caller]
    fn check(body: serde_json::Value, decided: Decision) {
        assert_eq!(read(body.clone()).unwrap().decision, decided, "{body}");
    }

    #[test]
    fn each_decision_is_read_with_what_belongs_to_it() {
        check(json!({"decision": "approve"}), Decision::Approve);
        let arguments = holdpoint_core::json::CanonicalJson::parse(r#"{"n":1}"#).unwrap();
        check(json!({"decision": "approve_edited", "args": {"n": 1}}), Decision::ApproveEdited { arguments });
        check(json!({"decision": "deny"}), Decision::Deny { message: None });
        check(json!({"decision": "deny", "message": "no"}), Decision::deny("no"));
        check(json!({"decision": "respond", "content": "42"}), Decision::Respond { content: "42".to_owned() });
        let answers = Answers::from([("a?".to_owned(), vec!["x".to_owned()]), ("b?".to_owned(), vec!["y".to_owned()])]);
        check(json!({"decision": "answer", "answers": {"a?": "x", "b?": ["y"]}}), Decision::Answer { answers });
        check(json!({"decision": "happened", "content": "ok"}), Decision::Happened { result: "ok".into() });
        check(json!({"decision": "run_again"}), Decision::RunAgain);
        check(json!({"decision": "abandon"}), Decision::Abandon);
    }

    #[test]
    fn what_does_not_belong_to_a_decision_is_refused() {
        for bad in [
            json!({}),
            json!({"decision": "maybe"}),
            json!({"decision": "approve", "args": {}}),
            json!({"decision": "approve", "message": "ok"}),
            json!({"decision": "approve", "arguments": {}}),
            json!({"decision": "approve_edited"}),
            json!({"decision": "deny", "content": "no"}),
            json!({"decision": "respond"}),
            json!({"decision": "answer"}),
            json!({"decision": "happened"}),
            json!({"decision": "respond", "content": "x", "always": {"scope": "run"}}),
            json!({"decision": "approve", "args_sha256": "abc"}),
            json!(["approve"]),
            json!({"decision": "approve", "always": ["run"]}),
            json!({"decision": "approve", "always": {"scope": "run", "where": [["/a", 1]]}}),
            json!({"decision": "approve", "always": {"scope": "for ever"}}),
            json!({"decision": "approve", "always": {}}),
            json!({"decision": "approve", "always": {"scope": "run", "until": "2030-01-01T00:00:00Z"}}),
            json!({"decision": "approve", "always": {"scope": "session", "until": "tomorrow"}}),
            json!({"decision": "approve", "always": {"scope": "run", "uses_max": 0}}),
            json!({"decision": "approve", "always": {"scope": "run", "where": [{"at": "/a"}]}}),
            json!({"decision": "approve", "always": {"scope": "run", "where": [{"at": "/a", "equals": 1, "at_most": 2}]}}),
        ] {
            let problem = read(bad.clone()).unwrap_err();
            assert_eq!(problem.code(), "invalid_request", "{bad}: {}", problem.detail());
        }
    }

    #[test]
    fn a_rule_is_read_with_its_lifetime_and_conditions() {
        let body = json!({"decision": "approve", "always": {
            "scope": "session", "until": "2030-01-01T00:00:00Z", "uses_max": 3,
            "where": [{"at": "/amount", "at_most": 100}, {"at": "/path", "starts_with": "docs/"}],
        }});
        let rule = read(body).unwrap().rule.unwrap();
        let constraints = vec![Constraint::at_most("/amount", 100), Constraint::starts_with("/path", "docs/")];
        let lifetime = Lifetime::Until("2030-01-01T00:00:00Z".parse().unwrap());
        assert_eq!(rule, NewRule { lifetime, constraints, uses_max: Some(3), ..NewRule::default() });
    }

    #[test]
    fn the_accept_header_is_read_as_it_is_meant() {
        let of = |value: &'static str| HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(value))]);
        assert_eq!(wants(&HeaderMap::new()).unwrap(), Wants::Json);
        assert_eq!(wants(&of("*/*")).unwrap(), Wants::Json);
        assert_eq!(wants(&of("application/json")).unwrap(), Wants::Json);
        assert_eq!(wants(&of("text/html, application/*;q=0.8")).unwrap(), Wants::Json);
        assert_eq!(wants(&of("Text/Event-Stream")).unwrap(), Wants::Stream);
        assert_eq!(wants(&of("image/png")).unwrap_err().code(), "not_acceptable");
        assert!(wants_stream(&HeaderMap::new()).is_ok());
        assert!(wants_stream(&of("text/event-stream")).is_ok());
        assert_eq!(wants_stream(&of("application/json")).unwrap_err().code(), "not_acceptable");
    }

    #[test]
    fn keys_and_numbers_in_headers_are_read_strictly() {
        let of = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.append(name, HeaderValue::from_static(value));
            headers
        };
        assert_eq!(idempotency_key(&of("idempotency-key", "abc-1")).unwrap().as_deref(), Some("abc-1"));
        let mut twice = of("idempotency-key", "a");
        twice.append("idempotency-key", HeaderValue::from_static("b"));
        for bad in [of("idempotency-key", ""), of("idempotency-key", "  "), twice] {
            assert_eq!(idempotency_key(&bad).unwrap_err().code(), "invalid_header");
        }
        assert_eq!(last_event_id(&of("last-event-id", "17")).unwrap(), Some(17));
        for bad in ["x", "-1", "1.5", "99999999999999999999999"] {
            assert_eq!(last_event_id(&of("last-event-id", bad)).unwrap_err().code(), "invalid_header", "{bad}");
        }
    }
}
