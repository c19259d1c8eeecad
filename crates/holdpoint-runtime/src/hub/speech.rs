//! What a model says in one call, told to other instances while it speaks, as long as somebody there watches.
//!
//! The first words go at once, the next ones together after a moment. They are kept until the call ends, within a bound,
//! so that whoever begins to watch in the middle of it hears it from the beginning.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdpoint_core::ids::{FramePath, RunId, SessionId};
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::hub::link::Line;
use crate::hub::news::{News, Part, Said};
use crate::ports::model::Delta;

/// How long words wait for company.
const COMPANY: Duration = Duration::from_millis(20);

/// How much of a call is kept for those who come later. Who comes after more was said hears nothing before the reply.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// Which model call it is.
pub(crate) struct Place {
    pub(crate) session: SessionId,
    pub(crate) run: RunId,
    pub(crate) frame: FramePath,
    /// Which of the frame's calls.
    pub(crate) turn: u32,
    /// The run's revision in the store when it was made.
    pub(crate) after: u64,
}

/// One model call as other instances hear it.
pub(crate) struct Speech {
    line: Arc<Line>,
    place: Place,
    attempt: u64,
    said: Mutex<Words>,
}

#[derive(Default)]
struct Words {
    kept: Vec<Part>,
    kept_bytes: usize,
    /// Which part of the call the first one that is kept is.
    first: u32,
    /// How many of those that are kept were told.
    told: usize,
    told_at: Option<Instant>,
    /// Whether somebody will tell what is kept in a moment.
    is_awaited: bool,
    /// Whether nothing more is told of this call.
    is_closed: bool,
}

impl Speech {
    pub(super) fn new(line: Arc<Line>, place: Place) -> Self {
        Self { line, place, attempt: super::link::random(), said: Mutex::default() }
    }

    /// Takes in a part of the reply.
    pub(crate) fn hear(self: &Arc<Self>, delta: &Delta) {
        let is_watched = self.line.is_watched(&self.place.session);
        let mut words = self.lock();
        if words.is_closed {
            return;
        }
        match Part::of(delta) {
            Some(parts) => words.keep(parts, is_watched),
            None => words.close(),
        }
        if !is_watched || words.is_awaited {
            return;
        }
        let due = words.told_at.map(|at| at + COMPANY);
        match (due.filter(|due| *due > Instant::now()), Handle::try_current()) {
            (Some(due), Ok(handle)) => {
                words.is_awaited = true;
                let speech = self.clone();
                handle.spawn(async move {
                    tokio::time::sleep_until(due).await;
                    speech.tell();
                });
            }
            _ => self.tell_rest(&mut words),
        }
    }

    /// Tells what was not told yet.
    fn tell(&self) {
        self.tell_rest(&mut self.lock());
    }

    /// Tells everything from the beginning: somebody has just begun to watch.
    pub(super) fn tell_again(&self) {
        let mut words = self.lock();
        if words.first == 0 {
            words.told = 0;
            self.tell_rest(&mut words);
        }
    }

    /// The model has replied: the last words are told before the reply can be.
    pub(crate) fn end(&self) {
        if self.line.is_watched(&self.place.session) {
            self.tell();
        }
    }

    /// Told under the lock, so that parts come in order.
    fn tell_rest(&self, words: &mut Words) {
        words.is_awaited = false;
        let room = self.line.room();
        while let Some((first, parts)) = words.next(room) {
            words.told_at = Some(Instant::now());
            let Place { session, run, frame, turn, after } = &self.place;
            self.line.publish(News::Said(Said {
                session: session.clone(),
                run: *run,
                frame: frame.clone(),
                turn: *turn,
                after: *after,
                attempt: self.attempt,
                first,
                parts,
            }));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Words> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Words {
    fn keep(&mut self, parts: Vec<Part>, is_watched: bool) {
        self.kept_bytes += parts.iter().map(Part::size).sum::<usize>();
        self.kept.extend(parts);
        if self.kept_bytes > KEPT_BYTES_MAX {
            match is_watched {
                true => self.forget_told(),
                false => self.close(),
            }
        }
    }

    fn forget_told(&mut self) {
        self.first = self.first.saturating_add(u32::try_from(self.told).unwrap_or(u32::MAX));
        self.kept.drain(..std::mem::take(&mut self.told));
        self.kept_bytes = self.kept.iter().map(Part::size).sum();
    }

    fn close(&mut self) {
        *self = Self { is_closed: true, first: 1, ..Self::default() };
    }

    /// The next parts that are told together: at least one, and no more than there is room for.
    fn next(&mut self, room: usize) -> Option<(u32, Vec<Part>)> {
        let rest = self.kept.get(self.told..).filter(|rest| !rest.is_empty())?;
        let mut size = 0;
        let fits = |part: &&Part| {
            size += part.size();
            size <= room
        };
        let parts: Vec<Part> = rest.iter().take_while(fits).cloned().collect();
        if parts.is_empty() {
            self.close();
            return None;
        }
        let first = self.first.saturating_add(u32::try_from(self.told).unwrap_or(u32::MAX));
        self.told += parts.len();
        Some((first, parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<Part> {
        Part::of(&Delta::Text(text.to_owned())).unwrap()
    }

    #[test]
    fn what_was_told_is_not_told_again_unless_it_is_asked_for() {
        let mut words = Words::default();
        words.keep(text("a"), true);
        words.keep(text("b"), true);
        assert_eq!(words.next(1_000), Some((0, [text("a"), text("b")].concat())));
        assert_eq!(words.next(1_000), None);
        words.keep(text("c"), true);
        assert_eq!(words.next(1_000), Some((2, text("c"))));
        words.told = 0;
        assert_eq!(words.next(1_000), Some((0, [text("a"), text("b"), text("c")].concat())));
    }

    #[test]
    fn what_does_not_fit_is_told_in_two() {
        let mut words = Words::default();
        words.keep([text("aaa"), text("bbb")].concat(), true);
        let room = text("aaa")[0].size() + 1;
        assert_eq!(words.next(room), Some((0, text("aaa"))));
        assert_eq!(words.next(room), Some((1, text("bbb"))));
        assert_eq!(words.next(room), None);
    }

    #[test]
    fn too_much_for_those_who_come_later_is_kept_for_nobody() {
        let long = "x".repeat(KEPT_BYTES_MAX);
        let mut watched = Words::default();
        watched.keep(text("a"), true);
        assert!(watched.next(1_000).is_some());
        watched.keep(text(&long), true);
        // Who has followed so far goes on; the beginning is gone.
        assert_eq!((watched.first, watched.told, watched.is_closed), (1, 0, false));
        assert_eq!(watched.next(1_000).map(|(first, _)| first), Some(1));
        let mut unwatched = Words::default();
        unwatched.keep(text(&long), false);
        assert!(unwatched.is_closed && unwatched.kept.is_empty());
    }
}
