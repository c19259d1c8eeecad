//! One reply of a script: words, calls, what it cost, or no reply at all.

use holdpoint_core::message::Usage;
use holdpoint_runtime::ports::model::{ModelReply, ModelRequest, ProposedCall};
use serde_json::Value;

/// What a scripted model replies.
///
/// ```
/// use holdpoint_models::scripted::Reply;
/// use serde_json::json;
///
/// let both = Reply::text("I look at both cities.")
///     .and_call("get_weather", json!({"location": "Oakland"}))
///     .and_call("get_weather", json!({"location": "San Francisco"}));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    text: Option<String>,
    pub(super) thinking: Option<String>,
    calls: Vec<ScriptedCall>,
    usage: Usage,
    /// How often it is no reply but a fault (`None` for ever), and which.
    pub(super) faults: Option<(Option<u32>, ScriptedFault)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScriptedFault {
    pub(super) message: String,
    pub(super) may_retry: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ScriptedCall {
    /// `None` for an id made from the call's place.
    id: Option<String>,
    tool: String,
    arguments: String,
}

impl Reply {
    /// Neither words nor calls.
    pub fn empty() -> Self {
        Self { text: None, thinking: None, calls: Vec::new(), usage: Usage::request(0, 0), faults: None }
    }

    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::empty().and_text(text)
    }

    /// One call. Its id is made from its place: `call_2_0` is the first call of the second turn.
    pub fn call(tool: impl Into<String>, arguments: Value) -> Self {
        Self::empty().and_call(tool, arguments)
    }

    /// Several calls, in this order.
    pub fn calls<T: Into<String>>(calls: impl IntoIterator<Item = (T, Value)>) -> Self {
        calls.into_iter().fold(Self::empty(), |reply, (tool, arguments)| reply.and_call(tool, arguments))
    }

    /// No reply, whenever it is asked for; asking again is said to help.
    pub fn fault(message: impl Into<String>) -> Self {
        Self::empty().faulty(None, message, true)
    }

    /// No reply, whenever it is asked for; asking again is said not to help.
    pub fn lasting_fault(message: impl Into<String>) -> Self {
        Self::empty().faulty(None, message, false)
    }

    /// The same reply with words.
    #[must_use]
    pub fn and_text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// The same reply with thoughts, which are told as deltas and are not part of the reply.
    #[must_use]
    pub fn and_thinking(mut self, text: impl Into<String>) -> Self {
        self.thinking = Some(text.into());
        self
    }

    /// The same reply with one more call.
    #[must_use]
    pub fn and_call(mut self, tool: impl Into<String>, arguments: Value) -> Self {
        self.calls.push(ScriptedCall { id: None, tool: tool.into(), arguments: arguments.to_string() });
        self
    }

    /// The same reply with one more call under an id of one's own, which may be empty or used before.
    #[must_use]
    pub fn and_call_as(self, id: impl Into<String>, tool: impl Into<String>, arguments: Value) -> Self {
        let (id, tool, arguments) = (id.into(), tool.into(), arguments.to_string());
        self.and_proposed(ProposedCall { id, tool, arguments })
    }

    /// The same reply with one more call exactly as given; its arguments need not be JSON.
    #[must_use]
    pub fn and_proposed(mut self, call: ProposedCall) -> Self {
        let ProposedCall { id, tool, arguments } = call;
        self.calls.push(ScriptedCall { id: Some(id), tool, arguments });
        self
    }

    /// The same reply at this price; one request and no tokens unless said otherwise.
    #[must_use]
    pub fn costing(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// The same reply, after so many faults. Counted within a process: a fresh one begins again.
    #[must_use]
    pub fn after_faults(self, times: u32, message: impl Into<String>) -> Self {
        self.faulty(Some(times), message, true)
    }

    fn faulty(mut self, times: Option<u32>, message: impl Into<String>, may_retry: bool) -> Self {
        self.faults = Some((times, ScriptedFault { message: message.into(), may_retry }));
        self
    }

    /// The same reply with each of these placeholders filled in, also within the texts of arguments.
    pub(super) fn filled(mut self, placeholders: &[(&str, String)]) -> Self {
        let quoted = |value: &str| {
            // Within JSON a placeholder stands in a string: what fills it must not end that string.
            let quoted = Value::from(value).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        };
        let in_json: Vec<(&str, String)> = placeholders.iter().map(|(name, value)| (*name, quoted(value))).collect();
        for text in self.text.iter_mut().chain(self.thinking.iter_mut()) {
            *text = filled(text, placeholders);
        }
        for call in &mut self.calls {
            call.arguments = filled(&call.arguments, &in_json);
        }
        self
    }

    pub(super) fn into_model_reply(self, request: &ModelRequest) -> ModelReply {
        let calls = (0u32..).zip(self.calls).map(|(index, call)| ProposedCall {
            id: call.id.unwrap_or_else(|| place_id(request, index)),
            tool: call.tool,
            arguments: call.arguments,
        });
        ModelReply { text: self.text, calls: calls.collect(), usage: self.usage }
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<ModelReply> for Reply {
    fn from(reply: ModelReply) -> Self {
        let whole = Self { text: reply.text, usage: reply.usage, ..Self::empty() };
        reply.calls.into_iter().fold(whole, Self::and_proposed)
    }
}

/// `call_1_0` in the outermost frame; an inner agent's call carries the whole way to it, so that no two are alike.
fn place_id(request: &ModelRequest, index: u32) -> String {
    let path = request.frame.call(request.turn, index);
    format!("call_{}", path.to_string().replace(['.', '/'], "_"))
}

/// The text with its placeholders filled in, once: a placeholder that somebody typed stays what it is.
fn filled(text: &str, placeholders: &[(&str, String)]) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let found = placeholders.iter().filter_map(|(name, value)| rest.find(name).map(|at| (at, *name, value)));
        let Some((at, name, value)) = found.min_by_key(|(at, ..)| *at) else { break };
        done.push_str(&rest[..at]);
        done.push_str(value);
        rest = &rest[at + name.len()..];
    }
    done.push_str(rest);
    done
}
