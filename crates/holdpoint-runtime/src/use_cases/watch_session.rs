//! Watching a session: every event once and in order, and what a model says while it is still speaking.
//!
//! Events come from the store, by their number. The hub only says that there is more, so a watcher that is slow, or
//! that began on another instance, misses nothing and sees nothing twice. Deltas are passed on as they come; those of
//! another instance travel apart from the events, and are put in their place between them (`words`).

mod words;

use std::collections::VecDeque;

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{FramePath, RunId, SessionId};
use holdpoint_core::record::Entry;
use holdpoint_core::time::Timestamp;

use crate::fault::RunError;
use crate::hub::{Lagged, Listener, Live};
use crate::ports::model::Delta;
use crate::runtime::Runtime;

use words::Words;

/// What a watcher sees.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchItem {
    /// Something happened. Numbers are dense within the session.
    Event {
        /// The session's number of it.
        seq: u64,
        /// The run.
        run: RunId,
        /// When.
        at: Timestamp,
        /// What.
        event: RunEvent,
    },
    /// A model says more. Not stored, not numbered.
    Delta {
        /// The run.
        run: RunId,
        /// The frame within the run.
        frame: FramePath,
        /// What it says.
        delta: Delta,
    },
}

/// A watch on a session.
pub struct WatchSession {
    runtime: Runtime,
    session: SessionId,
    next: u64,
    /// The run whose first event the watch begins with, until it is known where that is.
    begins_with: Option<RunId>,
    ready: VecDeque<WatchItem>,
    live: Listener,
    is_behind: bool,
    /// What models say at other instances.
    words: Words,
}

/// How many entries are read from the store at once.
const PAGE: usize = 128;

impl Runtime {
    /// Watches a session from the event of this number on (1 is the first).
    pub fn watch_session(&self, session: &SessionId, from: u64) -> WatchSession {
        // Listening begins before the first read, so that nothing falls in between.
        let live = self.hub().listen(session);
        if let Some(link) = self.link() {
            link.watch(session);
        }
        WatchSession {
            runtime: self.clone(),
            session: session.clone(),
            next: from.max(1),
            begins_with: None,
            ready: VecDeque::new(),
            live,
            is_behind: true,
            words: Words::default(),
        }
    }

    /// Watches a session from the first event of this run on, which may be about to start.
    pub fn watch_run(&self, session: &SessionId, run: RunId) -> WatchSession {
        WatchSession { begins_with: Some(run), ..self.watch_session(session, 1) }
    }
}

impl WatchSession {
    /// The next thing that happens; waits for it.
    ///
    /// # Errors
    /// The store is out of order; the watch can go on afterwards.
    pub async fn next(&mut self) -> Result<WatchItem, RunError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(item);
            }
            if self.is_behind {
                self.read_store().await?;
                continue;
            }
            if let Some(run) = self.words.unknown() {
                self.read_turns(run).await?;
                continue;
            }
            match self.live.recv().await {
                Ok(live) => self.take(live),
                Err(Lagged) => self.is_behind = true,
            }
        }
    }

    /// What has already happened and was not seen yet; never waits for more.
    ///
    /// # Errors
    /// The store is out of order.
    pub async fn caught_up(&mut self) -> Result<Vec<WatchItem>, RunError> {
        while let Some(live) = self.live.try_recv() {
            self.take(live);
        }
        self.is_behind = true;
        while self.is_behind {
            self.read_store().await?;
        }
        Ok(self.ready.drain(..).collect())
    }

    fn take(&mut self, live: Live) {
        if let (Some(wanted), Live::Committed { run, entry }) = (self.begins_with, &live) {
            match (*run == wanted, entry.revision) {
                (true, 1) => self.begin_at(entry),
                (true, _) => self.is_behind = true,
                (false, _) => {}
            }
            if self.begins_with.is_some() {
                return;
            }
        }
        match live {
            Live::Delta { run, frame, delta } => self.ready.push_back(WatchItem::Delta { run, frame, delta }),
            Live::Committed { run, entry } if entry.seq <= self.next => self.queue(run, &entry),
            Live::Committed { .. } => self.is_behind = true,
            // Where the watch is to begin, the store is asked.
            Live::More { seq } => self.is_behind |= seq >= self.next || self.begins_with.is_some(),
            Live::Said(said) => {
                // Words of a later call than is known of: what came before them is in the store, perhaps.
                self.is_behind |= self.words.hear(said);
                self.ready.extend(self.words.due());
            }
        }
    }

    /// Reads how far a run is whose beginning was not seen.
    async fn read_turns(&mut self, run: RunId) -> Result<(), RunError> {
        let loaded = self.runtime.store().load(run, 0).await?;
        let entries = loaded.map_or(Vec::new(), |loaded| loaded.entries);
        self.words.learn(run, &entries, self.next);
        self.ready.extend(self.words.due());
        Ok(())
    }

    fn begin_at(&mut self, first: &Entry) {
        self.next = first.seq;
        self.begins_with = None;
    }

    async fn read_store(&mut self) -> Result<(), RunError> {
        if let Some(run) = self.begins_with {
            let loaded = self.runtime.store().load(run, 0).await?;
            match loaded.as_ref().and_then(|loaded| loaded.entries.first()) {
                Some(first) => self.begin_at(first),
                None => {
                    self.is_behind = false;
                    return Ok(());
                }
            }
        }
        let entries = self.runtime.store().session_entries(&self.session, self.next, PAGE).await?;
        self.is_behind = entries.len() == PAGE;
        // A reply's words were all spoken before it was written: those that wait here come before what was just read.
        while let Some(live) = self.live.try_recv() {
            self.take(live);
        }
        for (run, entry) in entries {
            self.queue(run, &entry);
        }
        Ok(())
    }

    /// Queues the events of an entry that were not seen yet.
    fn queue(&mut self, run: RunId, entry: &Entry) {
        for (seq, event) in (entry.seq..).zip(entry.events.iter()) {
            if seq == self.next {
                self.next += 1;
                self.ready.push_back(WatchItem::Event { seq, run, at: entry.at, event: event.clone() });
                self.words.see(run, event);
                self.ready.extend(self.words.due());
            }
        }
        self.words.see_whole(run, entry.revision);
        self.ready.extend(self.words.due());
    }
}
