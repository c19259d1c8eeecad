//! Reads a reply from the bytes of an answer: a stream of events, or one JSON document from servers that do not stream
//! although they are asked to. Pure: bytes go in, deltas and at the end a reply come out.

use holdpoint_core::text::clamp;
use holdpoint_runtime::ports::model::{Delta, ModelReply};
use serde_json::Value;

use crate::problem::{self, Problem, WORDS_KEPT_BYTES_MAX};
use crate::sse::{BYTE_ORDER_MARK, SseDecoder, SseEvent};

/// What makes a reply of a protocol's frames.
pub(crate) trait Assemble: Send {
    /// Takes one frame.
    fn frame(&mut self, kind: &str, data: Value) -> Result<(), Problem>;

    /// Takes the whole answer as one document.
    fn document(&mut self, body: Value) -> Result<(), Problem>;

    /// The server says that the stream is over, in the way that OpenAI began.
    fn end(&mut self);

    /// Whether nothing more is to come.
    fn is_done(&self) -> bool;

    /// What is new since this was asked last.
    fn take_told(&mut self) -> Vec<Delta>;

    /// The whole reply.
    fn finish(self) -> Result<ModelReply, Problem>;
}

/// A reader of one answer.
#[derive(Debug, Clone)]
pub(crate) struct Reader<A> {
    assembler: A,
    state: State,
    /// Whether anything was read that only a model says.
    is_understood: bool,
}

#[derive(Debug, Clone)]
enum State {
    /// Nothing but white space so far.
    Start(Vec<u8>),
    Events(SseDecoder, Beginning),
    Document(Vec<u8>),
}

/// How an answer begins, to show where it is not understood.
#[derive(Debug, Clone, Default)]
struct Beginning(Vec<u8>);

/// The largest event of a stream. The last event of a responses stream repeats the whole reply.
pub(crate) const EVENT_BYTES_MAX: usize = 16 << 20;

impl<A: Assemble> Reader<A> {
    pub(crate) fn new(assembler: A) -> Self {
        Self { assembler, state: State::Start(Vec::new()), is_understood: false }
    }

    /// Takes more bytes; adds what they tell, also what they tell before a problem.
    pub(crate) fn push(&mut self, bytes: &[u8], told: &mut Vec<Delta>) -> Result<(), Problem> {
        let read = match &mut self.state {
            State::Start(seen) => {
                seen.extend_from_slice(bytes);
                let seen = std::mem::take(seen);
                self.state = State::of(&seen);
                match &mut self.state {
                    State::Start(kept) => {
                        *kept = seen;
                        Ok(())
                    }
                    State::Events(..) | State::Document(_) => self.take(&seen),
                }
            }
            State::Events(..) | State::Document(_) => self.take(bytes),
        };
        told.extend(self.assembler.take_told());
        read
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        match &mut self.state {
            State::Start(_) => Ok(()),
            State::Document(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
            State::Events(decoder, beginning) => {
                beginning.add(bytes);
                let mut events = Vec::new();
                let decoded = decoder.push(bytes, &mut events);
                events.iter().try_for_each(|event| self.event(event))?;
                decoded.map_err(|large| Problem::EventTooLarge { bytes_max: large.bytes_max })
            }
        }
    }

    fn event(&mut self, event: &SseEvent) -> Result<(), Problem> {
        let data = event.data.trim();
        if data.is_empty() || self.assembler.is_done() {
            return Ok(());
        }
        if data == "[DONE]" {
            self.is_understood = true;
            self.assembler.end();
            return Ok(());
        }
        let data: Value = serde_json::from_str(data).map_err(|_| Problem::Unreadable {
            what: format!("a frame is not JSON: {}", clamp(data, WORDS_KEPT_BYTES_MAX)),
        })?;
        self.is_understood |= data.is_object();
        let kind = data["type"].as_str().map(str::to_owned);
        let kind = kind.or_else(|| event.event.clone()).unwrap_or_default();
        self.assembler.frame(&kind, data)
    }

    /// Whether nothing more is to come.
    pub(crate) fn is_done(&self) -> bool {
        self.assembler.is_done()
    }

    /// The answer is over: gives what was still to tell, and the whole reply.
    pub(crate) fn finish(mut self) -> (Vec<Delta>, Result<ModelReply, Problem>) {
        let read = self.read_rest();
        let told = self.assembler.take_told();
        (told, read.and_then(|()| self.assembler.finish()))
    }

    fn read_rest(&mut self) -> Result<(), Problem> {
        match &mut self.state {
            State::Start(_) => Ok(()),
            State::Document(body) => {
                let body = std::mem::take(body);
                let body: Value = serde_json::from_slice(without_mark(&body))
                    .map_err(|problem| Problem::Unreadable { what: format!("the answer is not JSON: {problem}") })?;
                if body.get("error").is_some_and(|error| !error.is_null()) || body["object"] == "error" {
                    return Err(problem::told(&body));
                }
                self.assembler.document(body)
            }
            State::Events(decoder, _) => {
                // What no empty line ended may be whole or cut; only what is whole counts.
                if let Some(last) = decoder.finish()
                    && (last.data.trim() == "[DONE]" || serde_json::from_str::<Value>(&last.data).is_ok())
                {
                    self.event(&last)?;
                }
                match &self.state {
                    State::Events(_, beginning) if !self.is_understood => Err(beginning.unreadable()),
                    _ => Ok(()),
                }
            }
        }
    }
}

impl State {
    /// What an answer that begins like this is. No line of an event stream begins with a brace.
    fn of(seen: &[u8]) -> Self {
        let text = without_mark(seen);
        let is_cut_mark = BYTE_ORDER_MARK.starts_with(text);
        match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{' | b'[') => Self::Document(Vec::new()),
            Some(_) if is_cut_mark => Self::Start(Vec::new()),
            Some(_) => Self::Events(SseDecoder::new(EVENT_BYTES_MAX), Beginning::default()),
            None if seen.len() > WORDS_KEPT_BYTES_MAX => {
                Self::Events(SseDecoder::new(EVENT_BYTES_MAX), Beginning::default())
            }
            None => Self::Start(Vec::new()),
        }
    }
}

/// The bytes without the mark that some servers put before everything.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

impl Beginning {
    fn add(&mut self, bytes: &[u8]) {
        let room = WORDS_KEPT_BYTES_MAX.saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn unreadable(&self) -> Problem {
        let text = String::from_utf8_lossy(&self.0);
        // A server that only sent signs of life before it went.
        let is_idle = text.split(['\r', '\n']).all(|line| line.trim().is_empty() || line.starts_with(':'));
        if is_idle { Problem::CutShort } else { Problem::Unreadable { what: format!("it says {}", text.trim()) } }
    }
}

#[cfg(test)]
#[cfg(all(feature = "openai", feature = "anthropic"))]
mod tests {
    use holdpoint_core::run::limits;
    use serde_json::json;

    use super::*;
    use crate::draft::Draft;
    use crate::openai::chat::ChatStream;
    use crate::testing::request;

    fn reader() -> Reader<ChatStream> {
        Reader::new(ChatStream::new(Draft::new(&request(Vec::new(), Value::Null))))
    }

    fn push_all(piece: &[u8], times: usize) -> Result<(), Problem> {
        let (mut reader, mut told) = (reader(), Vec::new());
        (0..times).try_for_each(|_| {
            told.clear();
            reader.push(piece, &mut told)
        })
    }

    #[test]
    fn an_event_has_a_largest_size() {
        let piece = vec![b'x'; 1 << 20];
        assert!(push_all(&piece, 16).is_ok());
        assert!(matches!(push_all(&piece, 17), Err(Problem::EventTooLarge { bytes_max: EVENT_BYTES_MAX })));
    }

    #[test]
    fn a_reply_has_a_largest_size() {
        let words = json!({"choices": [{"delta": {"content": "x".repeat(64 << 10)}}]});
        let arguments = json!({"choices": [{"delta": {"tool_calls": [
            {"index": 0, "id": "a", "function": {"name": "t", "arguments": "x".repeat(64 << 10)}}
        ]}}]});
        for frame in [words, arguments] {
            let frame = format!("data: {frame}\n\n");
            assert!(push_all(frame.as_bytes(), 63).is_ok());
            let told = push_all(frame.as_bytes(), 65);
            assert!(matches!(told, Err(Problem::ReplyTooLarge { bytes_max: limits::REPLY_BYTES_MAX })), "{told:?}");
        }
    }

    #[test]
    fn a_reply_has_so_many_calls_and_no_more() {
        let frame = |index: usize| {
            let call = json!({"index": index, "id": format!("c{index}"), "function": {"name": "t", "arguments": "{}"}});
            format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": [call]}}]}))
        };
        let (mut reader, mut told) = (reader(), Vec::new());
        let read = (0..).try_for_each(|index| reader.push(frame(index).as_bytes(), &mut told));
        assert!(matches!(read, Err(Problem::TooManyCalls { calls_max: limits::CALLS_PER_REPLY_MAX })), "{read:?}");
        assert_eq!(told.len(), limits::CALLS_PER_REPLY_MAX);
    }

    #[test]
    fn an_answer_of_nothing_but_white_space_is_none() {
        let (mut reader, mut told) = (reader(), Vec::new());
        for _ in 0..100_000 {
            reader.push(b" \n", &mut told).unwrap();
        }
        assert!(matches!(reader.finish().1, Err(Problem::CutShort)));
    }
}
