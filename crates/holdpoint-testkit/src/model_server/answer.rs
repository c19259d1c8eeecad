//! What the model server says: words, thoughts, calls, in what rhythm, and how it goes wrong.

use std::time::Duration;

use axum::http::HeaderName;
use serde_json::Value;
use tokio::sync::watch;

/// One answer of a [`ModelServer`](super::ModelServer), whichever protocol it is asked in.
///
/// ```
/// use holdpoint_testkit::model_server::{Answer, Gate};
///
/// // The second word leaves the server when the test opens the gate.
/// let gate = Gate::closed();
/// let slow = Answer::tokens(["It"]).and_gate(&gate).and_tokens([" rains."]);
/// let busy = Answer::error(429, "slow down").with_header("retry-after", "2");
/// ```
#[derive(Debug, Clone)]
pub struct Answer {
    pub(super) kind: Kind,
    pub(super) headers: Vec<(HeaderName, String)>,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Said(Said),
    /// A whole answer: its body as it is, or a message to be put in the protocol's own form.
    Status {
        status: u16,
        body: Result<String, String>,
    },
    Raw {
        content_type: String,
        chunks: Vec<String>,
        end: Option<Step>,
    },
}

/// What the model says, step by step.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    pub(super) steps: Vec<Step>,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) is_plain: bool,
    /// The reason to end that is told in place of the usual one.
    pub(super) finish: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    Text(String),
    Thinking(String),
    Call { id: Option<String>, tool: String, arguments: String },
    Gate(Gate),
    Wait(Duration),
    Cut,
    Hang,
    Raw(String),
}

impl Answer {
    /// Words, streamed word by word.
    pub fn text(text: impl AsRef<str>) -> Self {
        Self::said(Vec::new()).and_text(text)
    }

    /// Words, streamed in exactly these pieces.
    pub fn tokens<T: Into<String>>(tokens: impl IntoIterator<Item = T>) -> Self {
        Self::said(Vec::new()).and_tokens(tokens)
    }

    /// One tool call.
    pub fn call(tool: impl Into<String>, arguments: Value) -> Self {
        Self::said(Vec::new()).and_call(tool, arguments)
    }

    /// Neither words nor calls.
    pub fn empty() -> Self {
        Self::said(Vec::new())
    }

    /// An HTTP status with an error in the form of the protocol that is asked in.
    pub fn error(status: u16, message: impl Into<String>) -> Self {
        Self { kind: Kind::Status { status, body: Err(message.into()) }, headers: Vec::new() }
    }

    /// An HTTP status with a body as it is given here.
    pub fn status(status: u16, body: impl Into<String>) -> Self {
        Self { kind: Kind::Status { status, body: Ok(body.into()) }, headers: Vec::new() }
    }

    /// A body as it is given here, sent in these chunks.
    pub fn raw<T: Into<String>>(content_type: impl Into<String>, chunks: impl IntoIterator<Item = T>) -> Self {
        let (content_type, chunks) = (content_type.into(), chunks.into_iter().map(Into::into).collect());
        Self { kind: Kind::Raw { content_type, chunks, end: None }, headers: Vec::new() }
    }

    fn said(steps: Vec<Step>) -> Self {
        let said = Said { steps, input_tokens: 10, output_tokens: 5, ..Said::default() };
        Self { kind: Kind::Said(said), headers: Vec::new() }
    }

    /// More words, streamed word by word.
    #[must_use]
    pub fn and_text(self, text: impl AsRef<str>) -> Self {
        self.and_tokens(words(text.as_ref()))
    }

    /// More words, in exactly these pieces.
    #[must_use]
    pub fn and_tokens<T: Into<String>>(self, tokens: impl IntoIterator<Item = T>) -> Self {
        tokens.into_iter().fold(self, |answer, token| answer.step(Step::Text(token.into())))
    }

    /// Thoughts, streamed word by word.
    #[must_use]
    pub fn and_thinking(self, text: impl AsRef<str>) -> Self {
        words(text.as_ref()).into_iter().fold(self, |answer, word| answer.step(Step::Thinking(word)))
    }

    /// One more tool call, under an id that no other call of this server has.
    #[must_use]
    pub fn and_call(self, tool: impl Into<String>, arguments: Value) -> Self {
        self.step(Step::Call { id: None, tool: tool.into(), arguments: arguments.to_string() })
    }

    /// One more tool call under this id, with arguments that need not be JSON.
    #[must_use]
    pub fn and_call_as(self, id: impl Into<String>, tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.step(Step::Call { id: Some(id.into()), tool: tool.into(), arguments: arguments.into() })
    }

    /// What follows is sent when the gate was opened.
    #[must_use]
    pub fn and_gate(self, gate: &Gate) -> Self {
        self.step(Step::Gate(gate.clone()))
    }

    /// What follows is sent after this time. For people who watch; a test waits at a [`Gate`].
    #[must_use]
    pub fn and_wait(self, duration: Duration) -> Self {
        self.step(Step::Wait(duration))
    }

    /// The connection breaks here.
    #[must_use]
    pub fn then_cut(self) -> Self {
        self.step(Step::Cut)
    }

    /// Nothing follows, and the connection stays open.
    #[must_use]
    pub fn then_hang(self) -> Self {
        self.step(Step::Hang)
    }

    /// Waits this long before each piece of words.
    #[must_use]
    pub fn pace(mut self, pace: Duration) -> Self {
        if let Kind::Said(said) = &mut self.kind {
            let steps = std::mem::take(&mut said.steps);
            let paced = steps.into_iter().flat_map(|step| {
                let wait = matches!(step, Step::Text(_) | Step::Thinking(_)).then_some(Step::Wait(pace));
                wait.into_iter().chain([step])
            });
            said.steps = paced.collect();
        }
        self
    }

    /// What the answer costs; 10 tokens read and 5 written unless said otherwise.
    #[must_use]
    pub fn costing(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        if let Kind::Said(said) = &mut self.kind {
            (said.input_tokens, said.output_tokens) = (input_tokens, output_tokens);
        }
        self
    }

    /// Ends with this reason (`length`, `max_tokens`, …) in place of the usual one.
    #[must_use]
    pub fn finishing(mut self, reason: impl Into<String>) -> Self {
        if let Kind::Said(said) = &mut self.kind {
            said.finish = Some(reason.into());
        }
        self
    }

    /// One JSON document, although a stream was asked for.
    #[must_use]
    pub fn plain(mut self) -> Self {
        if let Kind::Said(said) = &mut self.kind {
            said.is_plain = true;
        }
        self
    }

    /// With this header.
    ///
    /// # Panics
    /// It is no name of a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        let name = name.parse().expect("a header has a name");
        self.headers.push((name, value.into()));
        self
    }

    fn step(mut self, step: Step) -> Self {
        match (&mut self.kind, step) {
            (Kind::Said(said), step) => said.steps.push(step),
            (Kind::Raw { end, .. }, step @ (Step::Cut | Step::Hang)) => *end = Some(step),
            (Kind::Raw { .. } | Kind::Status { .. }, step) => panic!("{step:?} needs an answer that speaks"),
        }
        self
    }
}

/// Words with the space before them, as models stream them.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for piece in text.split_inclusive(' ') {
        let (word, space) = piece.strip_suffix(' ').map_or((piece, ""), |word| (word, " "));
        match words.last_mut() {
            Some(last) => last.push_str(word),
            None => words.push(word.to_owned()),
        }
        if !space.is_empty() {
            words.push(" ".to_owned());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Where an answer waits until a test lets it go on. Clones are the same gate; once open it stays open.
#[derive(Debug, Clone)]
pub struct Gate {
    is_open: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
}

impl Gate {
    /// A gate that is closed.
    pub fn closed() -> Self {
        Self { is_open: watch::Sender::new(false), waiting: watch::Sender::new(0) }
    }

    /// Lets everybody through, now and later.
    pub fn open(&self) {
        self.is_open.send_replace(true);
    }

    /// Ends when an answer has come to the gate: everything before it was handed to the connection.
    pub async fn reached(&self) {
        // The sender is this gate's own.
        self.waiting.subscribe().wait_for(|waiting| *waiting > 0).await.ok();
    }

    pub(super) async fn pass(&self) {
        self.waiting.send_modify(|waiting| *waiting += 1);
        self.is_open.subscribe().wait_for(|is_open| *is_open).await.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_keep_every_space() {
        for text in ["It is sunny.", "", " a", "a ", "two\nlines  here", "日本 語"] {
            assert_eq!(words(text).concat(), text);
        }
        assert_eq!(words("It is sunny."), ["It", " is", " sunny."]);
    }
}
