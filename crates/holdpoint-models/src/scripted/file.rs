//! Scripts in JSON: for operators' tests and demo agents, without a line of Rust.

use std::time::Duration;

use holdpoint_core::message::Usage;
use holdpoint_core::text::clamp;
use holdpoint_runtime::ports::model::ModelRequest;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Match, Reply, Script, ScriptedModel, look};

/// A script that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadScript {
    /// It is not JSON, or not in the form of a script.
    #[error("the script cannot be read: {reason}")]
    Unreadable {
        /// What is wrong, with line and column.
        reason: String,
    },
    /// It is too large.
    #[error("the script is larger than {bytes_max} bytes")]
    TooLarge {
        /// The bound.
        bytes_max: usize,
    },
    /// Nobody would ever be answered.
    #[error("the script has no replies: give it \"replies\", \"scripts\", or both")]
    Empty,
    /// It is not plain whom a part of it is for.
    #[error("number {number} of \"scripts\" must have either \"agent\" or \"when_asked\", and not both")]
    Ambiguous {
        /// Counts from one.
        number: usize,
    },
}

impl ScriptedModel {
    /// The largest script that [`ScriptedModel::from_json`] reads.
    pub const SCRIPT_BYTES_MAX: usize = 4 << 20;

    /// A model that replies from a script in JSON. It tells its words one by one.
    ///
    /// ```
    /// use holdpoint_models::scripted::ScriptedModel;
    ///
    /// let model = ScriptedModel::from_json(r#"{
    ///     "pace_ms": 30,
    ///     "scripts": [{
    ///         "when_asked": ["refund", "money back"],
    ///         "replies": [
    ///             {"text": "I look into it.", "calls": [{"tool": "refund", "arguments": {"order": "{said}"}}]},
    ///             {"either": [
    ///                 {"if_error": true, "text": "Then the money stays where it is."},
    ///                 {"text": "Done: {result}"}
    ///             ]}
    ///         ]
    ///     }],
    ///     "replies": ["Hello. I can refund orders."]
    /// }"#)?;
    /// # Ok::<(), holdpoint_models::scripted::BadScript>(())
    /// ```
    ///
    /// **The script.** `replies` is the list for every conversation that no other list is for. `scripts` has further
    /// lists, each with `replies` and either `when_asked` (one or several texts: it is for runs whose input has one of
    /// them in it, in upper or lower case) or `agent` (an agent's id, name or tool, as [`ScriptedModel::for_agent`] takes
    /// it). `name` is what the model is called. `pace_ms` is the wait after each word, in milliseconds.
    ///
    /// **Which reply.** Each model call of a run takes the next reply of its list; each run begins at the top. Which one
    /// is next is read from the conversation: a server that was killed and started again goes on with the right one.
    /// `at_end` says what follows the last reply of a list: `fault` (the default), `repeat_last` or `start_over`. It
    /// stands beside `replies`.
    ///
    /// **A reply** is a text, or an object with any of `text`, `thinking`, `calls` (each with `tool` and `arguments`, and
    /// an `id` if it matters), `usage` (`input_tokens`, `output_tokens`), or `fault` (no reply, but this message; with
    /// `may_retry`, true or false). `{said}` stands for what a person said last and `{result}` for what the last tools
    /// gave back, in texts and in the texts of arguments.
    ///
    /// **One of several.** `{"either": […]}` is the first of its replies whose conditions hold: `if_said` and `if_result`
    /// (the person's last words, or the last results, have this text in them, in upper or lower case) and `if_error`
    /// (true: a call of the last turn was turned down or failed). A reply without conditions always fits.
    ///
    /// # Errors
    /// It is not such a script: says what is wrong, and where.
    pub fn from_json(text: &str) -> Result<Self, BadScript> {
        if text.len() > Self::SCRIPT_BYTES_MAX {
            return Err(BadScript::TooLarge { bytes_max: Self::SCRIPT_BYTES_MAX });
        }
        let file: File =
            serde_json::from_str(text).map_err(|problem| BadScript::Unreadable { reason: problem.to_string() })?;
        if file.replies.is_empty() && file.scripts.is_empty() {
            return Err(BadScript::Empty);
        }
        let mut model = Self::with(Steps::script(file.replies, file.at_end)).by_words();
        for (index, part) in file.scripts.into_iter().enumerate() {
            let script = Steps::script(part.replies, part.at_end);
            match (part.agent, part.when_asked) {
                (Some(agent), None) => model.scripts.push((Match::Agent(agent), script)),
                (None, Some(words)) => {
                    let words = words.into_vec().into_iter().map(|words| Match::Words(words.to_lowercase()));
                    model.scripts.extend(words.map(|words| (words, script.clone())));
                }
                _ => return Err(BadScript::Ambiguous { number: index + 1 }),
            }
        }
        if let Some(name) = file.name {
            model = model.named(name);
        }
        if file.pace_ms > 0 {
            model = model.pace(Duration::from_millis(file.pace_ms));
        }
        Ok(model)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    #[serde(default)]
    pace_ms: u64,
    #[serde(default)]
    replies: Vec<Step>,
    #[serde(default)]
    at_end: AtEnd,
    #[serde(default)]
    scripts: Vec<PartOfFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartOfFile {
    agent: Option<String>,
    when_asked: Option<OneOrMany>,
    replies: Vec<Step>,
    #[serde(default)]
    at_end: AtEnd,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AtEnd {
    #[default]
    Fault,
    RepeatLast,
    StartOver,
}

/// A list of replies, and what follows it.
#[derive(Debug)]
pub(super) struct Steps {
    steps: Vec<Step>,
    at_end: AtEnd,
}

impl Steps {
    fn script(steps: Vec<Step>, at_end: AtEnd) -> Script {
        Script::Steps(Self { steps, at_end }.into())
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// The reply to the model call of this number, which counts from zero.
    pub(super) fn at(&self, index: usize) -> Option<&Step> {
        match self.at_end {
            AtEnd::Fault => self.steps.get(index),
            AtEnd::RepeatLast => self.steps.get(index).or(self.steps.last()),
            AtEnd::StartOver => self.steps.get(index % self.steps.len().max(1)),
        }
    }
}

/// One reply, or one of several.
#[derive(Debug)]
pub(super) struct Step(Vec<Line>);

/// Reads the three forms by hand: serde would only say that none of them fits.
impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        let line = |value: Value| serde_json::from_value::<Line>(value).map_err(D::Error::custom);
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(vec![Line { text: Some(text), ..Line::default() }])),
            Value::Object(mut object) if object.contains_key("either") => match object.remove("either") {
                Some(Value::Array(lines)) if object.is_empty() => {
                    lines.into_iter().map(line).collect::<Result<_, _>>().map(Self)
                }
                _ => Err(D::Error::custom("\"either\" stands alone and is a list of replies")),
            },
            object @ Value::Object(_) => line(object).map(|line| Self(vec![line])),
            _ => Err(D::Error::custom("a reply is a text, an object with text or calls, or {\"either\": [replies]}")),
        }
    }
}

impl Step {
    pub(super) fn choose(&self, request: &ModelRequest) -> Result<Reply, String> {
        let line = self.0.iter().find(|line| line.fits(request));
        line.map(|line| line.reply(request)).ok_or_else(|| "no reply of \"either\" fits the conversation".to_owned())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Line {
    if_said: Option<String>,
    if_result: Option<String>,
    if_error: Option<bool>,
    text: Option<String>,
    thinking: Option<String>,
    calls: Vec<CallLine>,
    usage: UsageLine,
    fault: Option<String>,
    may_retry: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallLine {
    id: Option<String>,
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct UsageLine {
    input_tokens: u64,
    output_tokens: u64,
}

/// How much of the conversation a placeholder brings back.
const PLACEHOLDER_BYTES_MAX: usize = 8 << 10;

impl Line {
    fn fits(&self, request: &ModelRequest) -> bool {
        let has = |text: &str, words: &str| text.to_lowercase().contains(&words.to_lowercase());
        let said = |words: &String| has(&look::last_said(request), words);
        let result = |words: &String| look::last_results(request).iter().any(|(_, text)| has(text, words));
        self.if_said.as_ref().is_none_or(said)
            && self.if_result.as_ref().is_none_or(result)
            && self.if_error.is_none_or(|is_error| look::has_error(request) == is_error)
    }

    fn reply(&self, request: &ModelRequest) -> Reply {
        if let Some(message) = &self.fault {
            return if self.may_retry { Reply::fault(message) } else { Reply::lasting_fault(message) };
        }
        let mut reply = Reply::empty().costing(Usage::request(self.usage.input_tokens, self.usage.output_tokens));
        if let Some(text) = &self.text {
            reply = reply.and_text(text);
        }
        if let Some(thinking) = &self.thinking {
            reply = reply.and_thinking(thinking);
        }
        for call in &self.calls {
            let arguments = Value::Object(call.arguments.clone());
            reply = match &call.id {
                Some(id) => reply.and_call_as(id, &call.tool, arguments),
                None => reply.and_call(&call.tool, arguments),
            };
        }
        let results: Vec<String> = look::last_results(request).into_iter().map(|(_, text)| text).collect();
        let short = |text: &str| clamp(text, PLACEHOLDER_BYTES_MAX).to_owned();
        reply.filled(&[("{said}", short(&look::last_said(request))), ("{result}", short(&results.join("\n")))])
    }
}
