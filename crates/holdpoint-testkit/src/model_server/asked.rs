//! What the model server was asked, and how to read it whichever protocol it came in.

use axum::http::request::Parts;
use serde_json::Value;

/// One request to a [`ModelServer`](super::ModelServer).
#[derive(Debug, Clone)]
pub struct Asked {
    /// Such as `/v1/chat/completions`.
    pub path: String,
    /// What follows the question mark.
    pub query: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
}

impl Asked {
    pub(super) fn new(parts: &Parts, body: Value) -> Self {
        let headers = parts.headers.iter();
        let headers = headers.map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into()));
        Self {
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            headers: headers.collect(),
            body,
        }
    }

    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Whether it asks for a stream.
    pub fn wants_stream(&self) -> bool {
        self.body["stream"] == Value::Bool(true)
    }

    /// The model that is asked for.
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// The conversation: `messages` or, in the responses protocol, `input`.
    pub fn messages(&self) -> &[Value] {
        let messages = self.body.get("messages").or_else(|| self.body.get("input"));
        messages.and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// What the system was told: the instructions of the agent.
    pub fn instructions(&self) -> String {
        let first =
            self.messages().iter().find(|message| message["role"] == "system").map(|message| &message["content"]);
        let own = self.body.get("instructions").or_else(|| self.body.get("system"));
        own.or(first).map(text_of).unwrap_or_default()
    }

    /// What a person said last.
    pub fn last_user(&self) -> String {
        let mut said = self.messages().iter().rev().filter(|message| is_said(message));
        said.next().map(|message| text_of(&message["content"])).unwrap_or_default()
    }

    /// How many replies the model gave since a person said something.
    pub fn replies_since_user(&self) -> usize {
        let messages = self.messages();
        let after = messages.iter().rposition(is_said).map_or(0, |index| index + 1);
        let mut replies = 0;
        let mut was_reply = false;
        for message in &messages[after..] {
            let is_reply = message["role"] == "assistant" || message["type"] == "function_call";
            replies += usize::from(is_reply && !was_reply);
            was_reply = is_reply;
        }
        replies
    }

    /// What the tools of the last turn gave back: id of the call and text, in order.
    pub fn tool_results(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for message in self.messages().iter().rev() {
            let results = results_of(message);
            let is_result = !results.is_empty();
            if !is_result && (message["role"] == "assistant" || message["type"] == "function_call") {
                break;
            }
            found.extend(results.into_iter().rev());
        }
        found.reverse();
        found
    }

    /// The names of the tools that are offered.
    pub fn tools(&self) -> Vec<String> {
        let tools = self.body["tools"].as_array().map_or(&[][..], Vec::as_slice);
        let name = |tool: &Value| tool.get("name").unwrap_or(&tool["function"]["name"]).as_str().map(str::to_owned);
        tools.iter().filter_map(name).collect()
    }
}

/// Whether these are a person's own words, and not a tool's result in the person's place.
fn is_said(message: &Value) -> bool {
    message["role"] == "user" && results_of(message).is_empty()
}

fn results_of(message: &Value) -> Vec<(String, String)> {
    let result = |id: &Value, content: &Value| (id.as_str().unwrap_or_default().to_owned(), text_of(content));
    if message["role"] == "tool" {
        return vec![result(&message["tool_call_id"], &message["content"])];
    }
    if message["type"] == "function_call_output" {
        return vec![result(&message["call_id"], &message["output"])];
    }
    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    let results = blocks.iter().filter(|block| block["type"] == "tool_result");
    results.map(|block| result(&block["tool_use_id"], &block["content"])).collect()
}

/// The words of a content, which is a text or a list of blocks.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}
