//! Where the words of a model at another instance belong: behind what was written when the model was called and behind the
//! reply before them, and never behind their own. They come by another way than the events, so either may be first.
//!
//! Words are shown from the beginning of a call on, without a gap. Those that are missing may be told once more; if they
//! are not, the reply has them.

use std::collections::HashMap;

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{FramePath, RunId};
use holdpoint_core::record::Entry;

use crate::hub::Said;
use crate::use_cases::WatchItem;

/// How many runs are kept in mind. A session has few that are under way; of more, all are looked up again.
const RUNS_MAX: usize = 256;

/// How many pieces of news wait for what comes before them. Of more the first are lost, and so is the rest of the call.
const WAITING_MAX: usize = 64;

/// Puts words in their place.
#[derive(Default)]
pub(super) struct Words {
    runs: HashMap<RunId, Told>,
    waiting: Vec<Said>,
}

/// How far a run was told.
#[derive(Default)]
struct Told {
    /// The last entry that was told whole.
    revision: u64,
    /// How many model calls of each frame have ended.
    turns: HashMap<FramePath, u32>,
    /// What was shown of the call that each frame makes.
    calls: HashMap<FramePath, Call>,
}

#[derive(Clone, Copy)]
struct Call {
    turn: u32,
    attempt: u64,
    /// Which part comes next.
    next: u32,
}

impl Words {
    /// Takes in words from elsewhere; says whether something before them was not told yet, for the first time.
    pub(super) fn hear(&mut self, said: Said) -> bool {
        let is_later = match self.runs.get(&said.run) {
            Some(told) => said.turn > told.turns(&said.frame) + 1 || said.after > told.revision,
            None => false,
        };
        let is_waited_for = |other: &Said| (other.run, &other.frame, other.turn) == (said.run, &said.frame, said.turn);
        let is_first = !self.waiting.iter().any(is_waited_for);
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.remove(0);
        }
        self.waiting.push(said);
        is_later && is_first
    }

    /// A run whose words wait, and of which it is not known how far it is.
    pub(super) fn unknown(&self) -> Option<RunId> {
        self.waiting.iter().map(|said| said.run).find(|run| !self.runs.contains_key(run))
    }

    /// Takes in how far a run is: what stands in its entries before this number of the session.
    pub(super) fn learn(&mut self, run: RunId, entries: &[Entry], before: u64) {
        self.make_room();
        let told = self.runs.entry(run).or_default();
        *told = Told::default();
        for entry in entries {
            let events = (entry.seq..).zip(entry.events.iter());
            events.take_while(|(seq, _)| *seq < before).for_each(|(_, event)| told.see(event));
            if entry.seq + (entry.events.len() as u64) <= before {
                told.revision = entry.revision;
            }
        }
    }

    /// Takes in an event.
    pub(super) fn see(&mut self, run: RunId, event: &RunEvent) {
        if matches!(event, RunEvent::RunStarted(_)) {
            self.make_room();
            self.runs.entry(run).or_default();
        }
        if let Some(told) = self.runs.get_mut(&run) {
            told.see(event);
        }
    }

    /// Takes in that all events of an entry were told.
    pub(super) fn see_whole(&mut self, run: RunId, revision: u64) {
        if let Some(told) = self.runs.get_mut(&run) {
            told.revision = told.revision.max(revision);
        }
    }

    /// The words that are shown now; those whose time is over are gone.
    pub(super) fn due(&mut self) -> Vec<WatchItem> {
        let mut due = Vec::new();
        if self.waiting.is_empty() {
            return due;
        }
        for said in std::mem::take(&mut self.waiting) {
            match self.runs.get_mut(&said.run) {
                Some(told) if said.turn <= told.turns(&said.frame) => {}
                Some(told) if said.turn == told.turns(&said.frame) + 1 && said.after <= told.revision => {
                    told.show(said, &mut due);
                }
                _ => self.waiting.push(said),
            }
        }
        due
    }

    fn make_room(&mut self) {
        if self.runs.len() >= RUNS_MAX {
            self.runs.clear();
        }
    }
}

impl Told {
    fn turns(&self, frame: &FramePath) -> u32 {
        self.turns.get(frame).copied().unwrap_or_default()
    }

    fn see(&mut self, event: &RunEvent) {
        let frame = match event {
            RunEvent::ModelReplied(replied) => &replied.frame,
            RunEvent::ReplyRefused(refused) => &refused.frame,
            _ => return,
        };
        *self.turns.entry(frame.clone()).or_default() += 1;
        self.calls.remove(frame);
    }

    /// Shows what follows on what was shown. An attempt that begins anew is shown from its beginning.
    fn show(&mut self, said: Said, due: &mut Vec<WatchItem>) {
        let Said { run, frame, turn, attempt, first, parts, .. } = said;
        let new = Call { turn, attempt, next: 0 };
        let call = self.calls.entry(frame.clone()).or_insert(new);
        if (call.turn, call.attempt) != (turn, attempt) {
            *call = new;
        }
        for (number, part) in (first..).zip(parts) {
            if number == call.next {
                call.next += 1;
                due.push(WatchItem::Delta { run, frame: frame.clone(), delta: part.into() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_core::event::{ModelReplied, ReplyRefused};
    use holdpoint_core::ids::SessionId;
    use holdpoint_core::message::Usage;
    use holdpoint_core::time::Timestamp;

    use super::*;
    use crate::hub::Part;
    use crate::ports::model::Delta;

    fn run() -> RunId {
        "run_0198c0ffee007000800000000000beef".parse().unwrap()
    }

    fn said(turn: u32, attempt: u64, first: u32, words: &[&str]) -> Said {
        said_after(0, turn, attempt, first, words)
    }

    fn said_after(after: u64, turn: u32, attempt: u64, first: u32, words: &[&str]) -> Said {
        let parts = words.iter().map(|word| Part::Text((*word).to_owned())).collect();
        let (session, frame) = (SessionId::new("s").unwrap(), FramePath::root());
        Said { session, run: run(), frame, turn, after, attempt, first, parts }
    }

    fn replied() -> RunEvent {
        RunEvent::ModelReplied(ModelReplied {
            frame: FramePath::root(),
            admitted: 0,
            thinking: None,
            text: None,
            calls: Vec::new(),
            usage: Usage::default(),
        })
    }

    fn shown(words: &mut Words) -> String {
        let text = |item| match item {
            WatchItem::Delta { delta: Delta::Text(text), .. } => text,
            other => panic!("words expected: {other:?}"),
        };
        words.due().into_iter().map(text).collect()
    }

    /// Words of a run that was seen from its beginning.
    fn begun() -> Words {
        let mut words = Words::default();
        words.learn(run(), &[], 1);
        words
    }

    #[test]
    fn words_are_shown_once_and_in_order_however_often_they_are_told() {
        let mut words = begun();
        for (said, expected) in [
            (said(1, 7, 0, &["a", "b"]), "ab"),
            (said(1, 7, 1, &["b", "c"]), "c"),
            (said(1, 7, 0, &["a", "b", "c"]), ""),
            // One is missing: nothing is shown until it is told again.
            (said(1, 7, 4, &["e"]), ""),
            (said(1, 7, 0, &["a", "b", "c", "d", "e"]), "de"),
        ] {
            words.hear(said);
            assert_eq!(shown(&mut words), expected);
        }
    }

    #[test]
    fn words_that_come_after_their_reply_are_not_shown() {
        let mut words = begun();
        words.see(run(), &replied());
        words.hear(said(1, 7, 0, &["late"]));
        assert_eq!(shown(&mut words), "");
        assert!(words.waiting.is_empty());
        words.hear(said(2, 8, 0, &["next"]));
        assert_eq!(shown(&mut words), "next");
    }

    #[test]
    fn words_that_come_before_the_reply_before_them_wait_for_it() {
        let mut words = begun();
        assert!(words.hear(said(2, 8, 0, &["a"])), "the store is asked");
        assert!(!words.hear(said(2, 8, 1, &["b"])), "and not for each word");
        assert_eq!(shown(&mut words), "");
        words.see(run(), &refused());
        assert_eq!(shown(&mut words), "ab");
    }

    #[test]
    fn words_wait_for_everything_that_was_written_when_the_model_was_called() {
        let mut words = begun();
        words.see(run(), &replied());
        assert!(words.hear(said_after(3, 2, 8, 0, &["a"])), "the store is asked");
        words.see_whole(run(), 2);
        assert_eq!(shown(&mut words), "");
        words.see_whole(run(), 3);
        assert_eq!(shown(&mut words), "a");
    }

    fn refused() -> RunEvent {
        let (code, message) = ("c".to_owned(), "m".to_owned());
        RunEvent::ReplyRefused(ReplyRefused { frame: FramePath::root(), code, message, usage: Usage::default() })
    }

    #[test]
    fn how_far_a_run_is_that_was_not_seen_from_its_beginning_is_looked_up() {
        let mut words = Words::default();
        words.hear(said(2, 8, 0, &["a"]));
        assert_eq!(words.unknown(), Some(run()));
        assert_eq!(shown(&mut words), "");
        let at = Timestamp::from_millis(0);
        let entry =
            |seq, events: Vec<RunEvent>| Entry { revision: seq, seq, pause_group: None, at, events: events.into() };
        // The second reply is in the store, and was not shown yet.
        words.learn(run(), &[entry(1, vec![replied()]), entry(2, vec![replied()])], 2);
        assert_eq!(words.unknown(), None);
        assert_eq!(shown(&mut words), "a");
    }

    #[test]
    fn another_attempt_at_the_same_call_is_shown_from_its_beginning() {
        let mut words = begun();
        words.hear(said(1, 7, 0, &["wro"]));
        words.hear(said(1, 9, 0, &["right"]));
        words.hear(said(1, 9, 1, &["!"]));
        assert_eq!(shown(&mut words), "wroright!");
    }

    #[test]
    fn those_who_tell_without_end_are_not_kept_without_end() {
        let mut words = begun();
        for attempt in 0..1_000 {
            words.hear(said(u32::MAX, attempt, 0, &["a"]));
        }
        assert_eq!(words.waiting.len(), WAITING_MAX);
        for number in 0..1_000_u128 {
            let started = RunId::new(uuid::Uuid::from_u128(number));
            words.learn(started, &[], 1);
        }
        assert!(words.runs.len() <= RUNS_MAX);
    }
}
