//! The pauses that are live, and everything that was ever asked about any of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdpoint::Timestamp;
use holdpoint_testkit::linear::{End, Operation, PauseAnswer, PauseCall, PauseStands};

use super::agents::Agent;
use super::api::{Reply, Waiting};
use crate::chance::Chance;

/// How often a pause that is still open is looked at before somebody must decide it: histories stay short.
const VISITS_MAX: u32 = 40;

/// How long a pause stays after its time is up, in microseconds: long enough to be asked about.
const EXPIRED_AGO: u64 = 2_000_000;

/// A pause of the trial.
pub(super) struct Live {
    pub(super) agent: Agent,
    pub(super) run: String,
    pub(super) pause: String,
    /// When its time is up, by the trial's own clock.
    pub(super) deadline: Option<u64>,
    history: Mutex<Vec<Operation<PauseCall, PauseAnswer>>>,
    deciders: AtomicU64,
    visits: AtomicU32,
    is_settled: AtomicBool,
    /// How often it is asked about after it is known to be settled.
    afterwards: AtomicU32,
}

/// What is counted while the trial runs.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Operations whose answer is known.
    pub(super) known: AtomicU64,
    /// Operations of which nobody knows whether they happened.
    pub(super) unknown: AtomicU64,
    /// Operations that nobody took.
    pub(super) refused: AtomicU64,
}

/// All pauses of the trial.
pub(super) struct Table {
    began: Instant,
    slots: Vec<Mutex<Option<Arc<Live>>>>,
    /// Slots that wait for a new pause.
    empty: Mutex<VecDeque<usize>>,
    all: Mutex<Vec<Arc<Live>>>,
    /// How many pauses are not known to be settled.
    open: AtomicUsize,
    pub(super) counts: Counts,
    /// Answers that must not be given.
    wrong: Mutex<Vec<String>>,
}

impl Table {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            began: Instant::now(),
            slots: (0..slots).map(|_| Mutex::default()).collect(),
            empty: Mutex::new((0..slots).collect()),
            all: Mutex::default(),
            open: AtomicUsize::new(0),
            counts: Counts::default(),
            wrong: Mutex::default(),
        }
    }

    /// Microseconds since the trial began.
    pub(super) fn now(&self) -> u64 {
        micros(self.began.elapsed())
    }

    /// A live pause: most often one of the few that everybody wants.
    pub(super) fn pick(&self, chance: &mut Chance) -> Option<(usize, Arc<Live>)> {
        let among = if chance.percent(70) { (self.slots.len() / 16).max(1) } else { self.slots.len() };
        let slot = chance.below(among as u64) as usize;
        let live = lock(&self.slots[slot]).clone()?;
        Some((slot, live))
    }

    /// The next slot without a pause, or with one whose time was up a while ago.
    pub(super) fn next_empty(&self) -> Option<usize> {
        // One lock at a time: whoever empties a slot holds that one when it takes this.
        let empty = lock(&self.empty).pop_front();
        empty.or_else(|| self.take_expired())
    }

    fn take_expired(&self) -> Option<usize> {
        let now = self.now();
        let is_expired = |live: &Arc<Live>| live.deadline.is_some_and(|deadline| deadline + EXPIRED_AGO < now);
        self.slots.iter().position(|slot| {
            let mut place = lock(slot);
            let expired = place.take_if(|live| is_expired(live));
            expired.is_some_and(|live| {
                self.no_longer_open(&live);
                true
            })
        })
    }

    fn no_longer_open(&self, live: &Live) {
        if !live.is_settled.swap(true, Ordering::Relaxed) {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Puts a slot back that got no pause.
    pub(super) fn give_back(&self, slot: usize) {
        lock(&self.empty).push_back(slot);
    }

    /// Puts a pause into its slot.
    pub(super) fn fill(&self, slot: usize, agent: Agent, started: Waiting, chance: &mut Chance) {
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        // The database's clock is this machine's.
        let left = |at: Timestamp| i128::from(at.as_millis()) * 1_000 - wall.as_micros() as i128;
        let deadline = started.expires_at.map(|at| u64::try_from(i128::from(self.now()) + left(at)).unwrap_or(0));
        let live = Arc::new(Live {
            agent,
            run: started.run,
            pause: started.pause,
            deadline,
            history: Mutex::default(),
            deciders: AtomicU64::new(0),
            visits: AtomicU32::new(0),
            is_settled: AtomicBool::new(false),
            afterwards: AtomicU32::new(1 + chance.below(7) as u32),
        });
        self.open.fetch_add(1, Ordering::Relaxed);
        lock(&self.all).push(live.clone());
        *lock(&self.slots[slot]) = Some(live);
    }

    /// Notes what was asked of a pause, and what came of it; says whether the answer is known.
    pub(super) fn note(
        &self,
        client: u32,
        live: &Live,
        call: PauseCall,
        began: u64,
        reply: Reply<PauseAnswer>,
    ) -> bool {
        let end = match reply {
            Reply::Told(answer) => {
                self.counts.known.fetch_add(1, Ordering::Relaxed);
                let is_open = answer == PauseAnswer::Saw(PauseStands::Open);
                if !is_open {
                    self.no_longer_open(live);
                }
                End::Told { at: self.now(), answer }
            }
            Reply::Unknown => {
                self.counts.unknown.fetch_add(1, Ordering::Relaxed);
                End::Unknown
            }
            Reply::NotDone => {
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
                return false;
            }
            Reply::Wrong(why) => {
                self.found_wrong(format!("{} of {}: {why}", live.pause, live.agent.name));
                return false;
            }
        };
        let is_known = end != End::Unknown;
        // A look that saw nothing says nothing.
        if is_known || call != PauseCall::Read {
            lock(&live.history).push(Operation { client, call, began, end });
        }
        is_known
    }

    /// Notes that something was told that must not be.
    pub(super) fn found_wrong(&self, why: String) {
        lock(&self.wrong).push(why);
    }

    /// Everything that was told and must not be.
    pub(super) fn wrong(&self) -> Vec<String> {
        lock(&self.wrong).clone()
    }

    /// Makes room for a new pause where this one was asked about often enough.
    pub(super) fn renew(&self, slot: usize, live: &Arc<Live>) {
        let is_over = live.is_settled.load(Ordering::Relaxed)
            && live.afterwards.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err();
        let mut place = lock(&self.slots[slot]);
        if is_over && place.as_ref().is_some_and(|there| Arc::ptr_eq(there, live)) {
            *place = None;
            lock(&self.empty).push_back(slot);
        }
    }

    /// Every pause of the trial.
    pub(super) fn all(&self) -> Vec<Arc<Live>> {
        lock(&self.all).clone()
    }

    /// Whether too few pauses are open.
    pub(super) fn is_short(&self) -> bool {
        self.open.load(Ordering::Relaxed) < self.slots.len() * 3 / 4
    }

    /// How many live pauses are not known to be settled, and have time left.
    pub(super) fn open(&self) -> usize {
        let now = self.now();
        let is_open = |live: &Arc<Live>| live.seems_open() && live.deadline.is_none_or(|deadline| now < deadline);
        self.slots.iter().filter(|slot| lock(slot).as_ref().is_some_and(is_open)).count()
    }
}

impl Live {
    /// Whether this client decides now, which it may once.
    pub(super) fn may_decide(&self, client: u32) -> bool {
        let bit = 1 << client;
        self.deciders.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    /// Whether nobody knows yet that it is settled.
    pub(super) fn seems_open(&self) -> bool {
        !self.is_settled.load(Ordering::Relaxed)
    }

    /// Counts a visit; says whether somebody must decide now.
    pub(super) fn is_overdue(&self) -> bool {
        self.visits.fetch_add(1, Ordering::Relaxed) >= VISITS_MAX && self.seems_open()
    }

    /// What was asked of it so far.
    pub(super) fn history(&self) -> Vec<Operation<PauseCall, PauseAnswer>> {
        lock(&self.history).clone()
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
