//! Commands, read strictly: what is missing, misspelt, given twice or of another type is refused by name. What a command
//! means for a request that waits is for [`super::commands`].

use holdpoint_core::ids::SessionId;
use holdpoint_core::json::{CanonicalJson, Digest, JsonProblem, Limits as JsonLimits};
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::refuse::{Code, Refused, bad_answers, bad_command, bad_decisions, echo};
use super::wire::commands as wire;
use crate::limits::from_json;

/// Bytes of a command's own name.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// Bytes of a person's words beside a decision.
const NOTE_BYTES_MAX: usize = 16 << 10;

/// Characters of one answer in a person's own words.
const ANSWER_CHARS_MAX: usize = 8_192;

/// Decisions and answers of one command; a request never asks for more.
const GIVEN_MAX: usize = 256;

/// A command, with the client's own name of it.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) request_id: Option<String>,
    pub(super) command: Result<Command, Refused>,
}

/// What a client wants.
#[derive(Debug)]
pub(super) enum Command {
    Message(Message),
    Approval(Approval),
    Subscribe { session: SessionId, after: Option<u64> },
    Cancel { session: SessionId },
    Auth { token: SecretString },
    Ping,
}

/// Somebody says something to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) agent: String,
    pub(super) session: Option<SessionId>,
    pub(super) content: String,
}

/// Somebody answers what a request asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Approval {
    pub(super) session: SessionId,
    pub(super) key: String,
    pub(super) given: Given,
    /// The person's own words for the model.
    pub(super) note: Option<String>,
}

/// What was given: decisions about actions, or answers to questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Given {
    Decisions(Vec<GivenDecision>),
    Answers(Vec<(String, GivenAnswer)>),
}

/// One decision, and what its maker saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GivenDecision {
    pub(super) choice: Choice,
    pub(super) tool_use_id: Option<String>,
    pub(super) seen: Option<Digest>,
}

/// What is decided about one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    Approve,
    Reject { message: Option<String> },
    Edit { name: String, args: CanonicalJson },
    Respond { message: String },
    Happened { message: String },
    RunAgain,
    Abandon,
}

impl Choice {
    /// Its name, as the wire spells it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject { .. } => "reject",
            Self::Edit { .. } => "edit",
            Self::Respond { .. } => "respond",
            Self::Happened { .. } => "happened",
            Self::RunAgain => "run_again",
            Self::Abandon => "abandon",
        }
    }
}

/// The answer to one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GivenAnswer {
    /// One text; several choices are joined by a comma and a space.
    Joined(String),
    /// The choices, one by one.
    Chosen(Vec<String>),
}

/// Reads one command. Where the address names a session, the command cannot name another one.
pub(super) fn command(text: &str, place: Option<&SessionId>) -> Asked {
    let head: wire::Head = match check_json(text).and_then(|()| whole(text)) {
        Ok(head) => head,
        Err(refused) => return Asked { request_id: None, command: Err(refused) },
    };
    match request_id(head.request_id.as_deref()) {
        Ok(request_id) => Asked { request_id, command: of_kind(head.kind.as_deref(), text, place) },
        Err(refused) => Asked { request_id: None, command: Err(refused) },
    }
}

/// Whether a text is JSON that can be read in one way only. What is wrong is told by line and column.
fn check_json(text: &str) -> Result<(), Refused> {
    let Err(problem) = CanonicalJson::parse_within(text, &JsonLimits::default()) else { return Ok(()) };
    let at = |offset: usize| {
        let before = text.get(..offset).unwrap_or(text);
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("line {}, column {column}", before.matches('\n').count() + 1)
    };
    let message = match &problem {
        JsonProblem::Syntax { expected, offset } => format!("expected {expected} at {}", at(*offset)),
        JsonProblem::DuplicateKey { offset } => format!("a key is given twice, at {}", at(*offset)),
        JsonProblem::Number { offset } => format!("a number is too large or too long, at {}", at(*offset)),
        JsonProblem::TooLarge { .. } => return Err(Refused::new(Code::TooLarge, problem.to_string())),
        _ => problem.to_string(),
    };
    Err(Refused::new(Code::BadJson, format!("the command is not accepted as JSON: {message}")))
}

const KINDS: &str = "message, approval, subscribe, cancel, auth, ping";

fn of_kind(kind: Option<&RawValue>, text: &str, place: Option<&SessionId>) -> Result<Command, Refused> {
    let kind: String = match kind.map(|raw| serde_json::from_str(raw.get())) {
        Some(Ok(kind)) => kind,
        _ => return Err(bad_command(format!("type: one of {KINDS} expected"))),
    };
    match kind.as_str() {
        "message" => message(whole(text)?, place).map(Command::Message),
        "approval" => approval(whole(text)?, place).map(Command::Approval),
        "subscribe" => subscribe(&whole(text)?, place),
        "cancel" => {
            let cancel: wire::Cancel = whole(text)?;
            Ok(Command::Cancel { session: session(cancel.session_id.as_deref(), place)? })
        }
        "auth" => {
            let auth: wire::Auth = whole(text)?;
            Ok(Command::Auth { token: SecretString::from(auth.token) })
        }
        "ping" => whole::<wire::Ping>(text).map(|_| Command::Ping),
        other => Err(bad_command(format!("type: \"{}\" is not known; one of {KINDS} expected", echo(other)))),
    }
}

fn whole<T: DeserializeOwned>(text: &str) -> Result<T, Refused> {
    Ok(from_json(text.as_bytes())?)
}

/// The client's own name of the command: short, and of characters that show.
fn request_id(raw: Option<&RawValue>) -> Result<Option<String>, Refused> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Ok(None) };
    let bad = || bad_command(format!("request_id: a text of 1 to {REQUEST_ID_BYTES_MAX} printable bytes expected"));
    let name: String = serde_json::from_str(raw.get()).map_err(|_| bad())?;
    let fits = (1..=REQUEST_ID_BYTES_MAX).contains(&name.len()) && name.chars().all(holdpoint_core::text::is_plain);
    if fits { Ok(Some(name)) } else { Err(bad()) }
}

fn session(name: Option<&str>, place: Option<&SessionId>) -> Result<SessionId, Refused> {
    match (name, place) {
        (Some(name), Some(place)) if name != place.as_str() => {
            Err(bad_command("session_id: another session than the one in the address"))
        }
        (Some(name), _) => SessionId::new(name).map_err(|bad| bad_command(format!("session_id: {bad}"))),
        (None, Some(place)) => Ok(place.clone()),
        (None, None) => Err(bad_command("session_id is required")),
    }
}

fn message(given: wire::Message, place: Option<&SessionId>) -> Result<Message, Refused> {
    let session = match (given.session_id.as_deref(), place) {
        (None, place) => place.cloned(),
        (named, place) => Some(session(named, place)?),
    };
    let content = content(&given.content)?;
    if content.trim().is_empty() {
        return Err(bad_command("content: say what is asked of the agent"));
    }
    if content.contains('\0') {
        return Err(bad_command("content: the character U+0000 is not taken"));
    }
    Ok(Message { agent: given.agent_id, session, content })
}

/// A text, or blocks of type text, each of which is a paragraph.
fn content(raw: &RawValue) -> Result<String, Refused> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Block {
        #[serde(rename = "type")]
        kind: String,
        text: String,
    }
    let bad = || bad_command("content: a text expected, or a list of {\"type\": \"text\", \"text\": …}");
    if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
        return Ok(text);
    }
    let blocks: Vec<Box<RawValue>> = serde_json::from_str(raw.get()).map_err(|_| bad())?;
    let texts = blocks.iter().map(|block| match from_json::<Block>(block.get().as_bytes()) {
        Ok(block) if block.kind == "text" => Ok(block.text),
        _ => Err(bad()),
    });
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n\n"))
}

fn approval(given: wire::Approval, place: Option<&SessionId>) -> Result<Approval, Refused> {
    let session = session(given.session_id.as_deref(), place)?;
    let note = given.user_edit_content.map(note).transpose()?.flatten();
    let is_given = |raw: &Option<Box<RawValue>>| raw.as_deref().is_some_and(|raw| raw.get() != "null");
    let given_what = match (is_given(&given.decisions), is_given(&given.answers)) {
        (true, false) => Given::Decisions(decisions(given.decisions.as_deref())?),
        (false, true) => Given::Answers(answers(given.answers.as_deref())?),
        (true, true) => return Err(bad_command("send either decisions (about actions) or answers (to questions)")),
        (false, false) => return Err(bad_decisions("send decisions (about actions) or answers (to questions)")),
    };
    Ok(Approval { session, key: given.approval_key, given: given_what, note })
}

/// A person's words beside the decision. Nothing said is nothing.
fn note(words: String) -> Result<Option<String>, Refused> {
    if words.len() > NOTE_BYTES_MAX {
        let message = format!("user_edit_content: at most {NOTE_BYTES_MAX} bytes are taken");
        return Err(Refused::new(Code::TooLarge, message));
    }
    check_characters("user_edit_content", &words, bad_command)?;
    Ok(Some(words).filter(|words| !words.trim().is_empty()))
}

fn decisions(raw: Option<&RawValue>) -> Result<Vec<GivenDecision>, Refused> {
    let text = raw.map_or("null", RawValue::get);
    let list: Vec<Box<RawValue>> =
        serde_json::from_str(text).map_err(|_| bad_decisions("decisions: a list expected, one for each action"))?;
    match list.len() {
        0 => Err(bad_decisions("decisions: at least one expected")),
        found if found > GIVEN_MAX => Err(bad_decisions(format!("decisions: at most {GIVEN_MAX} expected"))),
        _ => list.iter().enumerate().map(|(index, raw)| decision(index, raw)).collect(),
    }
}

fn decision(index: usize, raw: &RawValue) -> Result<GivenDecision, Refused> {
    let at = format!("decisions[{index}]");
    let given: wire::Decision =
        from_json(raw.get().as_bytes()).map_err(|problem| bad_decisions(said(&at, problem.detail())))?;
    let wire::Decision { kind, message, edited_action, tool_use_id, args_sha256 } = given;
    if let Some(message) = &message {
        check_characters(&format!("{at}.message"), message, bad_decisions)?;
    }
    let unexpected = |field: &str| bad_decisions(format!("{at}.{field} does not go with {}", echo(&kind)));
    let missing = |field: &str| bad_decisions(format!("{at}.{field} is required for {}", echo(&kind)));
    let choice = match (kind.as_str(), message, edited_action) {
        ("approve", None, None) => Choice::Approve,
        ("reject", message, None) => Choice::Reject { message },
        ("edit", None, Some(action)) => Choice::Edit { name: action.name, args: action.args },
        ("respond", Some(message), None) => Choice::Respond { message },
        ("happened", Some(message), None) => Choice::Happened { message },
        ("run_again", None, None) => Choice::RunAgain,
        ("abandon", None, None) => Choice::Abandon,
        ("edit", _, None) => return Err(missing("edited_action")),
        ("respond" | "happened", None, _) => return Err(missing("message")),
        ("approve" | "reject" | "respond" | "happened" | "run_again" | "abandon", _, Some(_)) => {
            return Err(unexpected("edited_action"));
        }
        ("approve" | "edit" | "run_again" | "abandon", Some(_), _) => return Err(unexpected("message")),
        _ => return Err(bad_decisions(format!("{at}.type: one of approve, reject, edit expected"))),
    };
    let seen = args_sha256.map(|text| text.parse::<Digest>()).transpose();
    let seen = seen.map_err(|_| bad_decisions(format!("{at}.args_sha256: 64 hexadecimal digits expected")))?;
    Ok(GivenDecision { choice, tool_use_id, seen })
}

/// What is wrong with a part of a command, with its place before it.
fn said(at: &str, detail: &str) -> String {
    match detail.strip_prefix("the body ") {
        Some(detail) => format!("{at} {detail}"),
        None => format!("{at}.{detail}"),
    }
}

fn answers(raw: Option<&RawValue>) -> Result<Vec<(String, GivenAnswer)>, Refused> {
    let value: Value = serde_json::from_str(raw.map_or("null", RawValue::get)).unwrap_or_default();
    let Value::Object(members) = value else {
        return Err(bad_answers("answers: an object expected, question by question"));
    };
    match members.len() {
        0 => Err(bad_answers("answers: at least one expected; \"[No preference]\" skips a question")),
        found if found > GIVEN_MAX => Err(bad_answers(format!("answers: at most {GIVEN_MAX} expected"))),
        _ => members.into_iter().map(|(question, value)| Ok((question.clone(), answer(&question, value)?))).collect(),
    }
}

fn answer(question: &str, value: Value) -> Result<GivenAnswer, Refused> {
    let at = format!("answers[\"{}\"]", echo(question));
    let expected = || bad_answers(format!("{at}: a text or a list of texts expected"));
    let text = |value: Value| match value {
        Value::String(text) if text.chars().count() > ANSWER_CHARS_MAX => {
            Err(Refused::new(Code::TooLarge, format!("{at}: at most {ANSWER_CHARS_MAX} characters are taken")))
        }
        Value::String(text) => check_characters(&at, &text, bad_answers).map(|()| text),
        _ => Err(expected()),
    };
    match value {
        Value::Array(values) if values.len() > GIVEN_MAX => {
            Err(bad_answers(format!("{at}: at most {GIVEN_MAX} choices expected")))
        }
        Value::Array(values) => values.into_iter().map(text).collect::<Result<_, _>>().map(GivenAnswer::Chosen),
        value => text(value).map(GivenAnswer::Joined),
    }
}

/// Controls could forge what a person or a terminal is shown later; line breaks and tabs are no such trick.
fn check_characters(at: &str, text: &str, refuse: impl Fn(String) -> Refused) -> Result<(), Refused> {
    match text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        Some(c) => Err(refuse(format!("{at}: the character U+{:04X} is not taken", u32::from(c)))),
        None => Ok(()),
    }
}

fn subscribe(given: &wire::Subscribe, place: Option<&SessionId>) -> Result<Command, Refused> {
    let session = session(given.session_id.as_deref(), place)?;
    let after = match (given.after, given.last_event_id.as_deref()) {
        (Some(_), Some(_)) => return Err(bad_command("send either after or last_event_id, which are the same cursor")),
        (Some(after), None) => Some(after),
        (None, Some(text)) => Some(event_id(text)?),
        (None, None) => None,
    };
    Ok(Command::Subscribe { session, after })
}

/// The number of an event, from its form as sortable text.
pub(super) fn event_id(text: &str) -> Result<u64, Refused> {
    let is_number = (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| bad_command("last_event_id: the event_id of an event expected, such as \"0000000007\""))
}

#[cfg(test)]
mod tests;
