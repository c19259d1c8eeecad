//! A model that replies from a script: deterministic, offline, for tests, examples and demo agents.
//!
//! Scripts are written in Rust, or in JSON for operators: [`ScriptedModel::from_json`] says how.
//!
//! It remembers nothing that a reply depends on. Which reply is next is read from the request, so a fresh process that
//! goes on with a run gets the reply that the old one would have got. The one exception is
//! [`Reply::after_faults`], which counts within a process.

mod file;
mod look;
mod reply;

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_runtime::ports::model::{Delta, DeltaSink, Model, ModelFault, ModelReply, ModelRequest};

pub use file::BadScript;
pub use look::{last_results, last_said};
pub use reply::Reply;

/// A model that replies from a script. Clones share their script and what they recorded.
///
/// A list of replies is used in order, one for each model call of a run: the first run and the tenth both begin at its
/// top. An agent with a list of its own ([`ScriptedModel::for_agent`]) counts only its own replies. Asking for more
/// replies than there are is a [`ModelFault`] that says so.
///
/// ```
/// use holdpoint_models::scripted::{Reply, ScriptedModel};
/// use serde_json::json;
///
/// let model = ScriptedModel::new([
///     Reply::call("get_weather", json!({"location": "Oakland"})),
///     Reply::text("It is sunny in Oakland."),
/// ])
/// .for_agent("Billing", [Reply::text("Your invoice is paid.")]);
/// ```
#[derive(Clone)]
pub struct ScriptedModel {
    name: String,
    scripts: Vec<(Match, Script)>,
    fallback: Script,
    pieces: Pieces,
    pace: Option<Duration>,
    seen: Arc<Mutex<Seen>>,
}

/// Which requests a script is for.
#[derive(Clone)]
enum Match {
    Agent(String),
    Words(String),
}

#[derive(Clone)]
enum Script {
    List(Arc<[Reply]>),
    Steps(Arc<file::Steps>),
    By(Arc<dyn Fn(&ModelRequest) -> Reply + Send + Sync>),
}

/// In which pieces words are told.
#[derive(Debug, Clone, Copy)]
enum Pieces {
    Chars(usize),
    Words,
}

/// What was asked so far, for tests.
#[derive(Default)]
struct Seen {
    calls: u64,
    requests: VecDeque<ModelRequest>,
    faults: BTreeMap<String, u32>,
}

impl ScriptedModel {
    /// How many requests are kept for [`ScriptedModel::requests`]; older ones are forgotten.
    pub const REQUESTS_MAX: usize = 1_000;

    /// A model that gives these replies, one for each model call of a run.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::with(Script::list(replies))
    }

    /// A model whose replies follow from the request. The function must depend on nothing else, or a run that goes on
    /// in another process gets other replies.
    pub fn by(script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self::with(Script::By(Arc::new(script)))
    }

    fn with(fallback: Script) -> Self {
        Self {
            name: "scripted".to_owned(),
            scripts: Vec::new(),
            fallback,
            pieces: Pieces::Chars(12),
            pace: None,
            seen: Arc::default(),
        }
    }

    /// Gives one agent a list of its own.
    ///
    /// `agent` is an agent's id (`Support/transfer_to_billing`), the last tool of it (`transfer_to_billing`), or the
    /// name of an agent that a hand-off reaches (`Billing`). An agent that a hand-off returns to goes on in its list.
    #[must_use]
    pub fn for_agent(mut self, agent: impl Into<String>, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.scripts.push((Match::Agent(agent.into()), Script::list(replies)));
        self
    }

    /// Gives one agent replies that follow from the request.
    #[must_use]
    pub fn for_agent_by(
        mut self,
        agent: impl Into<String>,
        script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        self.scripts.push((Match::Agent(agent.into()), Script::By(Arc::new(script))));
        self
    }

    /// Gives these replies in runs (and inner agents) whose input has these words in it, in upper or lower case.
    #[must_use]
    pub fn when_asked(mut self, words: impl AsRef<str>, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.scripts.push((Match::Words(words.as_ref().to_lowercase()), Script::list(replies)));
        self
    }

    /// What the model is called; `scripted` unless said otherwise.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How many characters a delta carries at most; 12 unless said otherwise.
    #[must_use]
    pub fn chunk_chars_max(mut self, chars: usize) -> Self {
        self.pieces = Pieces::Chars(chars.max(1));
        self
    }

    /// Tells words one by one, each with the space before it, as real models do.
    #[must_use]
    pub fn by_words(mut self) -> Self {
        self.pieces = Pieces::Words;
        self
    }

    /// Waits this long after each delta, so that a person can watch; not at all unless said otherwise.
    #[must_use]
    pub fn pace(mut self, pace: Duration) -> Self {
        self.pace = Some(pace);
        self
    }

    /// How often the model was asked, by this process.
    pub fn calls(&self) -> u64 {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).calls
    }

    /// What the model was asked, oldest first; at most the last [`ScriptedModel::REQUESTS_MAX`].
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).requests.iter().cloned().collect()
    }

    /// The script that a request is for: the agent's own, then one for its words, then the one for all.
    fn script(&self, request: &ModelRequest) -> (&Script, bool) {
        let of_agent = |best: fn(&str, &str) -> bool| {
            let mut own = self.scripts.iter();
            own.find(|(of, _)| matches!(of, Match::Agent(name) if best(name, request.agent.as_str())))
        };
        let is_id = |name: &str, id: &str| name == id;
        if let Some((_, script)) = of_agent(is_id).or_else(|| of_agent(is_reached_as)) {
            return (script, true);
        }
        let opening = look::opening(request).to_lowercase();
        let asked = self.scripts.iter().find(|(of, _)| matches!(of, Match::Words(words) if opening.contains(words)));
        (asked.map_or(&self.fallback, |(_, script)| script), false)
    }

    fn choose(&self, request: &ModelRequest) -> Result<Reply, ModelFault> {
        let (script, is_own) = self.script(request);
        let index = if is_own { look::replies_of_agent(request) } else { look::replies_of_frame(request) };
        let (reply, count) = match script {
            Script::By(script) => return Ok(script(request)),
            Script::List(list) => (list.get(index).cloned(), list.len()),
            Script::Steps(steps) => match steps.at(index) {
                Some(step) => return step.choose(request).map_err(|problem| self.fault(problem)),
                None => (None, steps.len()),
            },
        };
        reply.ok_or_else(|| {
            let agent = &request.agent;
            self.fault(format!("the script for agent {agent} has {count} replies, and number {} is asked", index + 1))
        })
    }

    fn fault(&self, message: String) -> ModelFault {
        ModelFault { model: self.name.clone(), message, may_retry: false, source: None }
    }

    fn record(&self, request: &ModelRequest) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.calls += 1;
        if seen.requests.len() == Self::REQUESTS_MAX {
            seen.requests.pop_front();
        }
        seen.requests.push_back(request.clone());
    }

    /// Counts how often this very request was turned away, up to `times`.
    fn is_still_faulty(&self, request: &ModelRequest, times: u32) -> bool {
        let place = format!("{}:{}:{}", request.run, request.frame, request.turn);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.faults.len() >= Self::REQUESTS_MAX && !seen.faults.contains_key(&place) {
            seen.faults.clear();
        }
        let told = seen.faults.entry(place).or_insert(0);
        let is_faulty = *told < times;
        *told += u32::from(is_faulty);
        is_faulty
    }

    async fn tell(&self, reply: &ModelReply, thinking: Option<&str>, deltas: &DeltaSink) {
        for text in thinking.into_iter().flat_map(|text| self.pieces.of(text)) {
            self.tell_one(Delta::Thinking(text), deltas).await;
        }
        for text in reply.text.iter().flat_map(|text| self.pieces.of(text)) {
            self.tell_one(Delta::Text(text), deltas).await;
        }
        for call in &reply.calls {
            for text in self.pieces.of(&call.arguments) {
                let (id, tool) = (call.id.clone(), call.tool.clone());
                self.tell_one(Delta::Arguments { id, tool, text }, deltas).await;
            }
        }
    }

    async fn tell_one(&self, delta: Delta, deltas: &DeltaSink) {
        deltas.tell(delta);
        match self.pace {
            Some(pace) => tokio::time::sleep(pace).await,
            None => tokio::task::yield_now().await,
        }
    }
}

#[async_trait]
impl Model for ScriptedModel {
    async fn reply(&self, request: ModelRequest, deltas: DeltaSink) -> Result<ModelReply, ModelFault> {
        self.record(&request);
        let reply = self.choose(&request)?;
        if let Some((times, fault)) = &reply.faults
            && times.is_none_or(|times| self.is_still_faulty(&request, times))
        {
            return Err(ModelFault { may_retry: fault.may_retry, ..self.fault(fault.message.clone()) });
        }
        let thinking = reply.thinking.clone();
        let reply = reply.into_model_reply(&request);
        self.tell(&reply, thinking.as_deref(), &deltas).await;
        Ok(reply)
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedModel").field("name", &self.name).field("calls", &self.calls()).finish_non_exhaustive()
    }
}

impl Script {
    fn list(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::List(replies.into_iter().collect())
    }
}

/// Whether an agent of this id is reached by a tool of this name, or by a hand-off to an agent of this name.
fn is_reached_as(name: &str, id: &str) -> bool {
    let Some((_, tool)) = id.rsplit_once('/') else { return false };
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    tool == name || tool.strip_prefix("transfer_to_").is_some_and(|to| to.chars().eq(name.chars().map(plain)))
}

impl Pieces {
    fn of(self, text: &str) -> Vec<String> {
        match self {
            Self::Chars(chars_max) => {
                let chars: Vec<char> = text.chars().collect();
                chars.chunks(chars_max).map(|chunk| chunk.iter().collect()).collect()
            }
            Self::Words => words(text),
        }
    }
}

/// Words with the white space before them.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_space = true;
    for c in text.chars() {
        if c.is_whitespace() && !was_space {
            words.push(String::new());
        }
        was_space = c.is_whitespace();
        if let Some(last) = words.last_mut() {
            last.push(c);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
