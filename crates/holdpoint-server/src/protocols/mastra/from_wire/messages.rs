//! `messages`: a text, or a list of messages in one of the shapes that clients have for them.

use holdpoint_core::message::Content;
use serde_json::{Map, Value};

use super::super::refuse;
use super::text;
use crate::problem::Problem;

/// Messages of one request.
const MESSAGES_MAX: usize = 1_000;

/// What the agent is asked.
///
/// The last messages of the user are what is asked. What stands before them is a conversation that the client kept, and
/// is told to the agent as such; in a thread it is passed over, since the thread is remembered here.
pub(super) fn read(messages: Option<&Value>, has_thread: bool) -> Result<Content, Problem> {
    let list = match messages {
        None | Some(Value::Null) => return Err(refuse::missing("messages")),
        Some(Value::Array(list)) if list.len() <= MESSAGES_MAX => &list[..],
        Some(Value::Array(_)) => {
            return Err(refuse::invalid_type("messages", &format!("at most {MESSAGES_MAX} messages")));
        }
        Some(one @ (Value::String(_) | Value::Object(_))) => std::slice::from_ref(one),
        Some(_) => return Err(refuse::invalid_type("messages", "a text, or a list of messages")),
    };
    let said: Vec<Said> =
        list.iter().enumerate().map(|(index, value)| Said::read(index, value)).collect::<Result<_, _>>()?;
    let asked_from = said.iter().rposition(|said| said.role != Role::User).map_or(0, |last| last + 1);
    let asked: Vec<&str> = said[asked_from..].iter().map(|said| said.text.as_str()).collect();
    let asked = asked.join("\n\n");
    if asked.trim().is_empty() {
        return Err(refuse::issue(
            refuse::MISSING_FIELD,
            "messages",
            "the last message must be the user's, and not empty",
        ));
    }
    let before: Vec<String> = said[..asked_from].iter().filter(|said| !said.text.is_empty()).map(Said::line).collect();
    Ok(Content::Text(match before.is_empty() || has_thread {
        true => asked,
        false => format!("Earlier in this conversation:\n{}\n\nNow:\n{asked}", before.join("\n")),
    }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
    System,
    Tool,
}

/// One message.
struct Said {
    role: Role,
    text: String,
}

impl Said {
    fn read(index: usize, value: &Value) -> Result<Self, Problem> {
        let field = format!("messages.{index}");
        match value {
            Value::String(text) => Ok(Self { role: Role::User, text: text.clone() }),
            Value::Object(message) => {
                let role = match message.get("role").map(|role| text(&format!("{field}.role"), role)).transpose()? {
                    Some("user") | None => Role::User,
                    Some("assistant") => Role::Assistant,
                    Some("system") => Role::System,
                    Some("tool") => Role::Tool,
                    Some(_) => {
                        return Err(refuse::invalid_type(&format!("{field}.role"), "user, assistant, system or tool"));
                    }
                };
                Ok(Self { role, text: content(&field, message, role)? })
            }
            _ => Err(refuse::invalid_type(&field, "a text, or an object with role and content")),
        }
    }

    fn line(&self) -> String {
        let who = match self.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
            Role::Tool => "tool",
        };
        format!("{who}: {}", self.text)
    }
}

/// The words of a message: `content` as text, as a list of parts, or as an object with parts; or `parts` beside it.
fn content(field: &str, message: &Map<String, Value>, role: Role) -> Result<String, Problem> {
    match (message.get("content"), message.get("parts")) {
        (Some(Value::Object(inner)), _) => match inner.get("parts") {
            Some(list) => parts(&format!("{field}.content.parts"), list, role),
            None => Err(refuse::missing(&format!("{field}.content.parts"))),
        },
        (_, Some(list)) => parts(&format!("{field}.parts"), list, role),
        (Some(Value::String(text)), None) => Ok(text.clone()),
        (Some(list @ Value::Array(_)), None) => parts(&format!("{field}.content"), list, role),
        _ => Err(refuse::missing(&format!("{field}.content"))),
    }
}

/// The text of parts. A user's part that is none is refused rather than lost; in other messages it is passed over.
fn parts(field: &str, list: &Value, role: Role) -> Result<String, Problem> {
    let list = list.as_array().ok_or_else(|| refuse::invalid_type(field, "a list of parts"))?;
    let mut texts = Vec::new();
    for (index, part) in list.iter().enumerate() {
        match (part.get("type").and_then(Value::as_str), part.get("text").and_then(Value::as_str)) {
            (Some("text"), Some(text)) => texts.push(text),
            _ if role == Role::User => {
                return Err(refuse::invalid_type(
                    &format!("{field}.{index}"),
                    "a part of type text: others are not taken",
                ));
            }
            _ => {}
        }
    }
    Ok(texts.join("\n"))
}
