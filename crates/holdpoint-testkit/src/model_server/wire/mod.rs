//! The protocols that the model server speaks: the same answer as frames of a stream, as one document, as an error.

mod chat;
mod messages;
mod responses;

use serde_json::{Value, json};

use super::Asked;
use super::answer::{Said, Step};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Chat,
    Responses,
    Messages,
}

/// One call with the id that it goes by.
struct Call {
    id: String,
    tool: String,
    arguments: String,
}

/// What a protocol's stream is made of.
trait Speak {
    fn open(&mut self) -> Vec<String>;
    fn text(&mut self, text: &str) -> Vec<String>;
    fn thinking(&mut self, text: &str) -> Vec<String>;
    fn call(&mut self, call: &Call) -> Vec<String>;
    fn close(&mut self) -> Vec<String>;
}

impl Wire {
    pub(super) fn of(method: &str, path: &str) -> Option<Self> {
        match (method, path.rsplit_once("/v1/").map_or("", |(_, path)| path)) {
            ("POST", "chat/completions") => Some(Self::Chat),
            ("POST", "responses") => Some(Self::Responses),
            ("POST", "messages") => Some(Self::Messages),
            _ => None,
        }
    }

    /// An error as the protocol spells it.
    pub(super) fn error(self, status: u16, message: &str) -> Value {
        let kind = match (self, status) {
            (_, 401 | 403) => "authentication_error",
            (_, 404) => "not_found_error",
            (_, 429) => "rate_limit_error",
            (_, 400..=499) => "invalid_request_error",
            (Self::Messages, 529) => "overloaded_error",
            (Self::Messages, _) => "api_error",
            (Self::Chat | Self::Responses, _) => "server_error",
        };
        match self {
            Self::Chat | Self::Responses => {
                json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
            }
            Self::Messages => json!({"type": "error", "error": {"type": kind, "message": message}}),
        }
    }

    /// The answer as one document.
    pub(super) fn whole(self, asked: &Asked, number: u64, said: &Said) -> Value {
        match self {
            Self::Chat => chat::whole(asked, number, said),
            Self::Responses => responses::whole(asked, number, said),
            Self::Messages => messages::whole(asked, number, said),
        }
    }

    /// The answer as a stream: frames, and the waits between them.
    pub(super) fn frames(self, asked: &Asked, number: u64, said: Said) -> Vec<Step> {
        let mut speaker: Box<dyn Speak> = match self {
            Self::Chat => Box::new(chat::Speaker::new(asked, number, &said)),
            Self::Responses => Box::new(responses::Speaker::new(asked, number, &said)),
            Self::Messages => Box::new(messages::Speaker::new(asked, number, &said)),
        };
        let mut steps: Vec<Step> = speaker.open().into_iter().map(Step::Raw).collect();
        let mut index = 0;
        for step in said.steps {
            let frames = match step {
                Step::Text(text) => speaker.text(&text),
                Step::Thinking(text) => speaker.thinking(&text),
                Step::Call { id, tool, arguments } => {
                    let id = id.unwrap_or_else(|| call_id(number, index));
                    index += 1;
                    speaker.call(&Call { id, tool, arguments })
                }
                other => {
                    steps.push(other);
                    continue;
                }
            };
            steps.extend(frames.into_iter().map(Step::Raw));
        }
        steps.extend(speaker.close().into_iter().map(Step::Raw));
        steps
    }
}

fn call_id(number: u64, index: usize) -> String {
    format!("call_{number}_{index}")
}

/// All words of one kind.
fn joined(said: &Said, of: fn(&Step) -> Option<&str>) -> String {
    said.steps.iter().filter_map(of).collect()
}

fn text_of(step: &Step) -> Option<&str> {
    match step {
        Step::Text(text) => Some(text),
        _ => None,
    }
}

fn thinking_of(step: &Step) -> Option<&str> {
    match step {
        Step::Thinking(text) => Some(text),
        _ => None,
    }
}

fn calls_of(said: &Said, number: u64) -> Vec<Call> {
    let calls = said.steps.iter().filter_map(|step| match step {
        Step::Call { id, tool, arguments } => Some((id, tool, arguments)),
        _ => None,
    });
    let call = |(index, (id, tool, arguments)): (usize, (&Option<String>, &String, &String))| Call {
        id: id.clone().unwrap_or_else(|| call_id(number, index)),
        tool: tool.clone(),
        arguments: arguments.clone(),
    };
    calls.enumerate().map(call).collect()
}

/// Arguments in the small pieces that models write them in.
fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(8).map(|piece| piece.iter().collect()).collect()
}

fn frame(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn named(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}
