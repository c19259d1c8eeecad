//! Instances over one store tell each other what happened, and look at the store in case that nobody told.
//!
//! Only the words of a model that still speaks are carried by the bus itself. Of everything else it says that there is
//! more, and what it is comes from the store. So a bus that is cut, slow or lied to makes things late, and nothing wrong.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_core::record::Entry;
use holdpoint_core::run::Run;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::hub::news::{Commit, FRAME_BYTES_MAX, Letter, News};
use crate::hub::speech::{Place, Speech};
use crate::hub::{Hub, Live};
use crate::ports::bus::{Bus, Heard};
use crate::ports::observer::PauseChange;
use crate::ports::store::Store;

/// How often an instance says that it is there, and what is watched at it.
const HERE_EVERY: Duration = Duration::from_secs(5);

/// How long that lasts: two of three may be lost.
const HERE_LASTS: Duration = Duration::from_secs(15);

/// How many other instances are known at most.
const PEERS_MAX: usize = 1_024;

/// How many sessions that are watched elsewhere are known at most.
const WATCHED_MAX: usize = 1 << 16;

/// How many sessions are looked at in one question to the store.
const LOOK_MAX: usize = 500;

/// The store is not looked at more often than this.
const POLL_MIN: Duration = Duration::from_millis(10);

/// How many commits with pauses wait to be read at most. Of more, listeners are told that they missed some.
const PAUSES_MAX: usize = 1_024;

/// The connection of this process with other instances, as long as it lives.
pub(crate) struct Link {
    line: Arc<Line>,
    tasks: [AbortHandle; 2],
}

/// What is shared between those who tell and those who hear.
pub(crate) struct Line {
    hub: Arc<Hub>,
    bus: Arc<dyn Bus>,
    store: Arc<dyn Store>,
    /// Names this instance on the bus.
    me: String,
    /// What its own texts begin with: they are heard here as well, and need not be read.
    own_head: String,
    told: AtomicU64,
    others: Mutex<Others>,
    speeches: Mutex<HashMap<SessionId, Vec<Weak<Speech>>>>,
    /// The last event's number of each session that is looked at, as far as is known here.
    heads: Mutex<HashMap<SessionId, u64>>,
    look: Notify,
    pauses: mpsc::Sender<(RunId, u64)>,
}

/// What is known of other instances.
#[derive(Default)]
struct Others {
    peers: HashMap<String, Peer>,
    watched: HashMap<SessionId, Instant>,
}

struct Peer {
    heard_at: Instant,
    n: u64,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Link {
    /// Connects a hub with those of other instances, where the store has a bus. Looks at the store every `poll`.
    pub(crate) fn start(hub: &Arc<Hub>, store: &Arc<dyn Store>, poll: Duration) -> Option<Self> {
        let bus = store.bus()?;
        let (pauses, changed) = mpsc::channel(PAUSES_MAX);
        let me = format!("{:016x}", random());
        let line = Arc::new(Line {
            hub: hub.clone(),
            bus,
            store: store.clone(),
            own_head: Letter::head(&me),
            me,
            told: AtomicU64::new(0),
            others: Mutex::default(),
            speeches: Mutex::default(),
            heads: Mutex::default(),
            look: Notify::new(),
            pauses,
        });
        let hearing = tokio::spawn(hear(line.clone())).abort_handle();
        let looking = tokio::spawn(look(line.clone(), changed, poll.max(POLL_MIN))).abort_handle();
        Some(Self { line, tasks: [hearing, looking] })
    }

    /// How many other instances are there, as far as is known.
    pub(crate) fn peers(&self) -> usize {
        self.line.others().peers.len()
    }

    /// How many pieces of news were dropped here.
    pub(crate) fn dropped(&self) -> u64 {
        self.line.bus.dropped()
    }

    /// How many sessions other instances watch, as far as is known.
    pub(crate) fn watched_elsewhere(&self) -> usize {
        self.line.others().watched.len()
    }

    /// Somebody here begins to watch a session.
    pub(crate) fn watch(&self, session: &SessionId) {
        if self.line.has_peers() {
            self.line.publish(News::Watching { sessions: vec![session.clone()], anew: true });
        }
    }

    /// Something was committed here.
    pub(crate) fn committed(
        &self,
        session: &SessionId,
        run: RunId,
        entry: &Entry,
        needs_somebody: impl FnOnce() -> bool,
    ) {
        let seq = last_seq(entry);
        self.line.note_head(session, seq);
        if self.line.has_peers() {
            let (session, revision) = (session.clone(), entry.revision);
            let (pauses, needs_somebody) = (entry.events.iter().any(is_of_pause), needs_somebody());
            self.line.publish(News::Committed(Commit { session, run, revision, seq, pauses, needs_somebody }));
        }
    }

    /// A model is about to speak.
    pub(crate) fn speech(&self, place: Place) -> Arc<Speech> {
        let session = place.session.clone();
        let speech = Arc::new(Speech::new(self.line.clone(), place));
        let mut speeches = lock(&self.line.speeches);
        let of_session = speeches.entry(session).or_default();
        of_session.retain(|speech| speech.strong_count() > 0);
        of_session.push(Arc::downgrade(&speech));
        speech
    }
}

fn last_seq(entry: &Entry) -> u64 {
    entry.seq + (entry.events.len() as u64).saturating_sub(1)
}

fn is_of_pause(event: &RunEvent) -> bool {
    matches!(
        event,
        RunEvent::PauseOpened(_)
            | RunEvent::PauseVoted(_)
            | RunEvent::PauseDecided(_)
            | RunEvent::PauseExpired(_)
            | RunEvent::PauseWithdrawn(_)
    )
}

/// A number that no other instance has.
pub(super) fn random() -> u64 {
    u64::try_from(uuid::Uuid::now_v7().as_u128() & u128::from(u64::MAX)).unwrap_or_default()
}

/// Three quarters to five quarters of a time: instances that began together do not stay together.
fn about(time: Duration) -> Duration {
    let share = u32::try_from(random() % 512).unwrap_or_default();
    time * 3 / 4 + time * share / 1_024
}

impl Line {
    /// Tells other instances.
    pub(super) fn publish(&self, news: News) {
        // Counted also where it is dropped: then the others see that a number is left out.
        let n = self.told.fetch_add(1, Ordering::Relaxed);
        if let Some(text) = Letter::write(&self.me, n, news) {
            self.bus.publish(text);
        }
    }

    /// How many bytes a list in a piece of news may have.
    pub(super) fn room(&self) -> usize {
        self.bus.text_bytes_max().saturating_sub(FRAME_BYTES_MAX)
    }

    /// Whether somebody watches this session at another instance.
    pub(super) fn is_watched(&self, session: &SessionId) -> bool {
        self.others().watched.get(session).is_some_and(|until| *until > Instant::now())
    }

    fn has_peers(&self) -> bool {
        !self.others().peers.is_empty()
    }

    fn others(&self) -> MutexGuard<'_, Others> {
        lock(&self.others)
    }

    /// Says that this instance is there.
    fn say_here(&self, asks: bool) {
        self.publish(News::Here { asks });
    }

    /// Says which sessions are watched here.
    fn say_watched(&self, anew: bool) {
        let (room, mut size, mut sessions) = (self.room(), 0, Vec::new());
        for session in self.hub.listened_to() {
            // With escapes, quotes and a comma.
            size += session.as_str().len() * 2 + 3;
            if size > room && !sessions.is_empty() {
                self.publish(News::Watching { sessions: std::mem::take(&mut sessions), anew });
                size = session.as_str().len() * 2 + 3;
            }
            sessions.push(session);
        }
        if !sessions.is_empty() {
            self.publish(News::Watching { sessions, anew });
        }
    }

    /// Takes note of a session's last number that was written here, where the session is looked at. What others tell is
    /// not believed so far: it could hide what they did not tell.
    fn note_head(&self, session: &SessionId, seq: u64) {
        if let Some(head) = lock(&self.heads).get_mut(session) {
            *head = seq.max(*head);
        }
    }

    /// Takes in what was told; says whether there is a run that needs somebody.
    fn take(&self, text: &str) -> bool {
        if text.starts_with(&self.own_head) {
            return false;
        }
        let Some(Letter { from, n, news, .. }) = Letter::read(text) else { return false };
        if from == self.me {
            return false;
        }
        if self.has_missed(from, n) {
            self.look.notify_one();
            self.hub.tell_pauses_missed();
        }
        match news {
            News::Here { asks: true } => {
                self.say_here(false);
                self.say_watched(true);
            }
            News::Here { asks: false } => {}
            News::Watching { sessions, anew } => self.watched(sessions, anew),
            News::Committed(commit) => return self.take_commit(commit),
            News::Said(said) => {
                let session = said.session.clone();
                self.hub.tell(&session, || Live::Said(said));
            }
        }
        false
    }

    /// Whether an instance told something that was not heard.
    fn has_missed(&self, from: String, n: u64) -> bool {
        let heard_at = Instant::now();
        let mut others = self.others();
        match others.peers.get_mut(&from) {
            Some(peer) => {
                let has_missed = n > peer.n.saturating_add(1);
                *peer = Peer { heard_at, n };
                has_missed
            }
            None => {
                if others.peers.len() < PEERS_MAX {
                    others.peers.insert(from, Peer { heard_at, n });
                }
                false
            }
        }
    }

    fn watched(&self, sessions: Vec<SessionId>, anew: bool) {
        let until = Instant::now() + HERE_LASTS;
        let mut others = self.others();
        for session in &sessions {
            if others.watched.len() < WATCHED_MAX || others.watched.contains_key(session) {
                others.watched.insert(session.clone(), until);
            }
        }
        drop(others);
        if anew {
            let speeches = lock(&self.speeches);
            let under_way = sessions.iter().filter_map(|session| speeches.get(session)).flatten();
            let under_way: Vec<Arc<Speech>> = under_way.filter_map(Weak::upgrade).collect();
            drop(speeches);
            under_way.iter().for_each(|speech| speech.tell_again());
        }
    }

    fn take_commit(&self, commit: Commit) -> bool {
        let Commit { session, run, revision, seq, pauses, needs_somebody } = commit;
        self.hub.tell(&session, || Live::More { seq });
        self.hub.nudge(run);
        if pauses && self.hub.has_pause_listeners() && self.pauses.try_send((run, revision)).is_err() {
            self.hub.tell_pauses_missed();
        }
        needs_somebody
    }

    /// Forgets who has not been heard for long, and what has ended.
    fn forget(&self) {
        let now = Instant::now();
        let mut others = self.others();
        others.peers.retain(|_, peer| now.duration_since(peer.heard_at) < HERE_LASTS);
        others.watched.retain(|_, until| *until > now);
        drop(others);
        lock(&self.speeches).retain(|_, speeches| {
            speeches.retain(|speech| speech.strong_count() > 0);
            !speeches.is_empty()
        });
    }

    /// Looks which sessions have more than was told, and tells it.
    async fn look(&self) {
        let sessions: Vec<SessionId> = self.hub.sessions().into_iter().collect();
        self.forget_heads(&sessions);
        for some in sessions.chunks(LOOK_MAX) {
            match self.store.session_heads(some).await {
                Ok(heads) => heads.into_iter().for_each(|(session, head)| self.found(session, head)),
                Err(fault) => return tracing::debug!(%fault, "the sessions that are watched could not be looked at"),
            }
        }
    }

    fn forget_heads(&self, looked_at: &[SessionId]) {
        let looked_at: HashSet<&SessionId> = looked_at.iter().collect();
        lock(&self.heads).retain(|session, _| looked_at.contains(session));
    }

    fn found(&self, session: SessionId, head: u64) {
        let known = lock(&self.heads).insert(session.clone(), head);
        // At the first look it is not known what was told before.
        if known.is_none_or(|known| known < head) {
            self.hub.tell(&session, || Live::More { seq: head });
            self.hub.nudge_in(&session);
        }
    }

    /// Tells the changes of pauses that another instance committed with this entry.
    async fn tell_pauses(&self, run: RunId, revision: u64) {
        let loaded = match self.store.load(run, 0).await {
            Ok(Some(loaded)) => loaded,
            Ok(None) => return,
            Err(fault) => {
                tracing::debug!(run.id = %run, %fault, "a run with changed pauses could not be read");
                return self.hub.tell_pauses_missed();
            }
        };
        let mut folded = Run::new(run);
        for entry in loaded.entries.iter().take_while(|entry| entry.revision <= revision) {
            for (event, at) in entry.timed() {
                folded.apply(event, at);
            }
            if entry.revision == revision {
                let changes = entry.events.iter().filter_map(|event| PauseChange::of(&folded, event, entry.at));
                changes.for_each(|change| self.hub.tell_pause(change));
            }
        }
    }
}

/// Hears what other instances tell, and says now and then that this one is there. Never waits for the store.
async fn hear(line: Arc<Line>) {
    let mut heard = line.bus.subscribe();
    let mut here = tokio::time::interval_at(Instant::now() + HERE_EVERY, HERE_EVERY);
    let mut wake_at: Option<Instant> = None;
    loop {
        let wake = async {
            match wake_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            text = heard.next() => match text {
                // Whoever made the run need somebody goes on with it at once, as a rule; others wait for a moment, and
                // not all for the same.
                Some(Heard::Text(text)) => if line.take(&text) && wake_at.is_none() {
                    wake_at = Some(Instant::now() + about(Duration::from_millis(40)));
                },
                Some(Heard::Missed) => {
                    line.say_here(true);
                    line.say_watched(true);
                    line.look.notify_one();
                    line.hub.tell_pauses_missed();
                    line.hub.tell_work();
                }
                None => return,
            },
            _ = here.tick() => {
                line.forget();
                line.say_here(false);
                line.say_watched(false);
            }
            () = wake => {
                wake_at = None;
                line.hub.tell_work();
            }
        }
    }
}

/// Looks at the store: now and then, and when something may have been missed.
async fn look(line: Arc<Line>, mut changed: mpsc::Receiver<(RunId, u64)>, poll: Duration) {
    let mut next = Instant::now() + about(poll);
    loop {
        tokio::select! {
            Some((run, revision)) = changed.recv() => line.tell_pauses(run, revision).await,
            () = line.look.notified() => line.look().await,
            () = tokio::time::sleep_until(next) => {
                line.look().await;
                next = Instant::now() + about(poll);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
