//! What instances tell each other, and how it is written: one line of JSON with a version. What is not understood, from
//! a newer instance or from whoever else can write to the store, is passed over.

use holdpoint_core::ids::{FramePath, RunId, SessionId};
use serde::{Deserialize, Serialize};

use crate::ports::model::Delta;

/// The version of the form that is written and read here.
const VERSION: u32 = 1;

/// The longest text that is read at all.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// What everything but the list in a piece of news takes up at most: names are bounded, and written with escapes.
pub(super) const FRAME_BYTES_MAX: usize = 1_536;

/// The longest piece of a delta. A control character takes six bytes when it is written.
const PIECE_BYTES_MAX: usize = 512;

/// The longest name of a call or tool in a delta. Longer ones are not told: the whole reply has them.
const NAME_BYTES_MAX: usize = 128;

/// News with its sender.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Letter {
    v: u32,
    /// Which instance tells it.
    pub(super) from: String,
    /// Counts what an instance tells: whoever sees a number left out has missed something.
    pub(super) n: u64,
    pub(super) news: News,
}

/// What is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum News {
    /// The instance is there, told now and then.
    Here {
        /// Whether it wants to know who else is.
        asks: bool,
    },
    /// Somebody at the instance watches these sessions.
    Watching {
        sessions: Vec<SessionId>,
        /// Whether somebody has just begun to, and missed what models have said so far.
        anew: bool,
    },
    /// Something was committed.
    Committed(Commit),
    /// A model says more.
    Said(Said),
}

/// That something was committed. What, is in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Commit {
    pub(super) session: SessionId,
    pub(super) run: RunId,
    pub(super) revision: u64,
    /// The session's number of the last event.
    pub(super) seq: u64,
    /// Whether pauses opened, were voted on or ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) pauses: bool,
    /// Whether the run has something to do and is moved by nobody.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) needs_somebody: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Parts of what a model says in one call, in order and without a gap from `first` on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) session: SessionId,
    pub(crate) run: RunId,
    pub(crate) frame: FramePath,
    /// Which of the frame's model calls it is, from one on.
    pub(crate) turn: u32,
    /// The run's revision when the model was called: what was written up to there comes before.
    pub(crate) after: u64,
    /// Tells attempts at the same call apart.
    pub(crate) attempt: u64,
    /// Which part of the call the first one here is, from zero on.
    pub(crate) first: u32,
    pub(crate) parts: Vec<Part>,
}

/// A part of what a model says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    #[serde(rename = "t")]
    Text(String),
    #[serde(rename = "k")]
    Thinking(String),
    #[serde(rename = "a")]
    Arguments(String, String, String),
}

impl Part {
    /// The parts that a delta is told in; `None` where it cannot be.
    pub(super) fn of(delta: &Delta) -> Option<Vec<Self>> {
        Some(match delta {
            Delta::Text(text) => pieces(text).map(|piece| Self::Text(piece.to_owned())).collect(),
            Delta::Thinking(text) => pieces(text).map(|piece| Self::Thinking(piece.to_owned())).collect(),
            Delta::Arguments { id, tool, .. } if id.len().max(tool.len()) > NAME_BYTES_MAX => return None,
            Delta::Arguments { id, tool, text } => {
                pieces(text).map(|piece| Self::Arguments(id.clone(), tool.clone(), piece.to_owned())).collect()
            }
        })
    }

    /// What it takes up when it is written, with what separates it from the next.
    pub(super) fn size(&self) -> usize {
        serde_json::to_string(self).map_or(usize::MAX, |text| text.len() + 1)
    }
}

impl From<Part> for Delta {
    fn from(part: Part) -> Self {
        match part {
            Part::Text(text) => Self::Text(text),
            Part::Thinking(text) => Self::Thinking(text),
            Part::Arguments(id, tool, text) => Self::Arguments { id, tool, text },
        }
    }
}

/// The text in pieces, cut between characters. An empty text is one piece: it may say that something begins.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let (mut rest, mut is_first) = (text, true);
    std::iter::from_fn(move || {
        if rest.is_empty() && !std::mem::take(&mut is_first) {
            return None;
        }
        is_first = false;
        let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES_MAX));
        rest = more;
        Some(piece)
    })
}

impl Letter {
    /// The news as it is sent.
    pub(super) fn write(from: &str, n: u64, news: News) -> Option<String> {
        serde_json::to_string(&Self { v: VERSION, from: from.to_owned(), n, news }).ok()
    }

    /// What a text says, if it is news in a form that is known here.
    pub(super) fn read(text: &str) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let letter: Self = serde_json::from_str(text).ok()?;
        (letter.v == VERSION).then_some(letter)
    }

    /// What every text of an instance begins with.
    pub(super) fn head(from: &str) -> String {
        format!("{{\"v\":{VERSION},\"from\":\"{from}\",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunId {
        "run_0198c0ffee007000800000000000beef".parse().unwrap()
    }

    fn commit() -> News {
        let session = SessionId::new("s \"1\"").unwrap();
        News::Committed(Commit { session, run: run(), revision: 3, seq: 9, pauses: true, needs_somebody: false })
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = Letter::write("me", 7, commit()).unwrap();
        assert_eq!(
            text,
            r#"{"v":1,"from":"me","n":7,"news":{"committed":{"session":"s \"1\"","run":"run_0198c0ffee007000800000000000beef","revision":3,"seq":9,"pauses":true}}}"#
        );
        assert!(text.starts_with(&Letter::head("me")));
        let letter = Letter::read(&text).unwrap();
        assert_eq!((letter.from.as_str(), letter.n, letter.news), ("me", 7, commit()));
    }

    #[test]
    fn another_version_another_kind_and_text_without_end_are_passed_over() {
        let text = Letter::write("me", 7, commit()).unwrap();
        assert!(Letter::read(&text.replace("\"v\":1", "\"v\":2")).is_none());
        assert!(Letter::read(&text.replace("committed", "undone")).is_none());
        assert!(Letter::read(&text.replace("s \\\"1\\\"", "")).is_none(), "an empty session id");
        assert!(Letter::read(&text[..text.len() - 1]).is_none());
        assert!(Letter::read(&format!("{text}{}", " ".repeat(TEXT_BYTES_MAX))).is_none());
        assert!(Letter::read(&"[".repeat(10_000)).is_none());
        assert!(Letter::read("").is_none());
    }

    #[test]
    fn a_long_delta_is_told_in_pieces_that_fit_and_say_the_same() {
        let text = "日\u{1}\"".repeat(1_000);
        let parts = Part::of(&Delta::Text(text.clone())).unwrap();
        assert!(parts.iter().all(|part| part.size() <= 6 * PIECE_BYTES_MAX + 16), "{parts:?}");
        let said: String = parts
            .into_iter()
            .map(|part| match part {
                Part::Text(text) => text,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(said, text);
    }

    #[test]
    fn an_empty_delta_is_told_and_a_name_without_end_is_not() {
        assert_eq!(Part::of(&Delta::Text(String::new())), Some(vec![Part::Text(String::new())]));
        let arguments = |id: &str| Delta::Arguments { id: id.to_owned(), tool: "t".to_owned(), text: "{}".to_owned() };
        assert_eq!(Part::of(&arguments("1")).map(|parts| parts.len()), Some(1));
        assert_eq!(Part::of(&arguments(&"x".repeat(NAME_BYTES_MAX + 1))), None);
    }

    #[test]
    fn the_longest_names_leave_room_for_what_is_told() {
        let frame: FramePath = ["4294967295.4294967295"; 16].join("/").parse().unwrap_or_else(|_| FramePath::root());
        let session = SessionId::new("\"".repeat(SessionId::LENGTH_MAX)).unwrap();
        let said = Said {
            session,
            run: run(),
            frame,
            turn: u32::MAX,
            after: u64::MAX,
            attempt: u64::MAX,
            first: u32::MAX,
            parts: Vec::new(),
        };
        let text = Letter::write(&"f".repeat(16), u64::MAX, News::Said(said)).unwrap();
        assert!(text.len() <= FRAME_BYTES_MAX, "{}", text.len());
    }
}
