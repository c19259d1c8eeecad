//! Crash at every commit with people to be told: a pause that was stored is told at least once and in order, and one that
//! was not is never told.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use holdpoint_core::Refusal;
use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{PauseId, RunId};
use holdpoint_core::record::Entry;
use holdpoint_core::run::Run;
use holdpoint_runtime::notices::Dispatcher;
use holdpoint_runtime::ports::notifier::{Delivery, Destination, Notice, NoticeKey, NoticeKind, Notifier, NotifyRule};
use holdpoint_runtime::ports::store::{NoticeFilter, NoticeStatus, Store, StoreFault};
use holdpoint_runtime::settings::Settings;
use holdpoint_runtime::{RunError, Runtime};

use super::{Acknowledged, Attempt, LEASE, ROUNDS_MAX, Scenario, Untimed, World, person, step};
use crate::clock::TestClock;
use crate::outbox::destination;
use crate::power_loss::PowerLoss;

/// What people were told, outside of every process.
#[derive(Clone, Default)]
pub struct Outside(Arc<Mutex<Vec<Heard>>>);

/// One thing that people were told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// What.
    pub key: NoticeKey,
    /// Whether a restart would have found it in the store at that moment.
    pub is_stored: bool,
}

impl Outside {
    /// People are told, while the store is as it is.
    pub fn tell(&self, key: NoticeKey, power: &PowerLoss) {
        let is_stored = is_stored(&key, power);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Heard { key, is_stored });
    }

    /// What they were told, in order.
    pub fn heard(&self) -> Vec<Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether a restart would find what is told.
fn is_stored(key: &NoticeKey, power: &PowerLoss) -> bool {
    let found = power.found_after_restart();
    let loaded = found.load(key.pause.run, 0).now_or_never().and_then(Result::ok).flatten();
    loaded.is_some_and(|loaded| {
        let run = Run::fold(key.pause.run, loaded.entries.iter().flat_map(Entry::timed));
        let is_so = |pause: &holdpoint_core::pause::Pause| key.kind == NoticeKind::Opened || !pause.is_open();
        run.pause(key.pause).is_ok_and(is_so)
    })
}

/// Tells the outside.
struct Teller {
    outside: Outside,
    power: Arc<PowerLoss>,
}

#[async_trait]
impl Notifier for Teller {
    async fn deliver(&self, notice: &Notice) -> Delivery {
        self.outside.tell(notice.key.clone(), &self.power);
        Delivery::Delivered { receipt: None }
    }
}

/// Who is told in these scenarios.
pub fn ops() -> Destination {
    destination("ops")
}

/// As [`super::play`], with somebody who is told; ends when there is nothing left to tell.
///
/// # Panics
/// The scenario is stuck, or something is never told.
pub async fn play(
    scenario: &Scenario,
    run: RunId,
    power: &Arc<PowerLoss>,
    clock: &TestClock,
    world: &World,
    acknowledged: &mut Acknowledged,
    outside: &Outside,
) -> Attempt {
    let settings = Settings {
        lease: LEASE,
        pause_deadline: scenario.pause_deadline,
        owner: format!("process-{}", world.next_process()),
        notify: vec![NotifyRule::all(ops())],
        // The store never comes back to this process.
        doubt_patience: Duration::ZERO,
        ..Settings::default()
    };
    let store: Arc<dyn Store> = power.clone();
    let runtime =
        Runtime::builder(store).model(scenario.model()).clock(Arc::new(Untimed(clock.clone()))).settings(settings);
    let runtime = runtime.build();
    let teller: Arc<dyn Notifier> = Arc::new(Teller { outside: outside.clone(), power: power.clone() });
    let dispatcher = Dispatcher::new(runtime.clone(), [(ops(), teller)]);
    for _ in 0..ROUNDS_MAX {
        match step(&runtime, scenario, run, world).await {
            Ok(run) if run.end().is_some() => {
                return match tell_the_rest(&runtime, &dispatcher, clock).await {
                    Ok(()) => Attempt::Finished(Box::new(run)),
                    Err(_) => Attempt::CutOff,
                };
            }
            Ok(paused) => {
                if dispatcher.sweep().await.is_err()
                    || person::answer(&runtime, scenario, &paused, clock, world, acknowledged).await.is_err()
                {
                    return Attempt::CutOff;
                }
            }
            // Whoever moved it is dead; its lease runs out.
            Err(RunError::Refused(Refusal::RunBusy { .. })) => clock.advance(LEASE * 2),
            Err(RunError::Refused(refusal)) => panic!("{}: refused: {refusal}", scenario.name),
            Err(RunError::Fault(_)) => return Attempt::CutOff,
        }
    }
    panic!("{}: stuck", scenario.name)
}

/// Sends until nothing waits; what a dead process had begun is due again after a while.
async fn tell_the_rest(runtime: &Runtime, dispatcher: &Dispatcher, clock: &TestClock) -> Result<(), StoreFault> {
    let waiting = NoticeFilter { status: Some(NoticeStatus::Waiting), ..NoticeFilter::default() };
    for _ in 0..ROUNDS_MAX {
        dispatcher.sweep().await?;
        if runtime.store().list_notices(&waiting).await?.is_empty() {
            return Ok(());
        }
        clock.advance(Duration::from_secs(90));
    }
    panic!("something is never told")
}

/// Checks what people were told of a finished scenario; `place` says where it was cut, `deaths` how often.
///
/// # Panics
/// Something that must hold does not.
pub async fn check(place: &str, run: &Run, store: &dyn Store, outside: &Outside, deaths: usize) {
    let loaded = store.load(run.id(), 0).await.expect("the store answers").expect("the run is there");
    let expected = to_tell(run.id(), &loaded.entries);
    let heard = outside.heard();
    for told in &heard {
        assert!(told.is_stored, "{place}: {} was told before it was stored", told.key);
        assert!(expected.contains(&told.key), "{place}: {} was told and is not so", told.key);
    }
    for key in &expected {
        let times = heard.iter().filter(|told| told.key == *key).count();
        assert!(times >= 1, "{place}: {key} was never told");
        assert!(times <= 1 + deaths, "{place}: {key} was told {times} times, with {deaths} deaths");
        if let Some(opened) = key.opened().filter(|opened| expected.contains(opened)) {
            let first = |key: &NoticeKey| heard.iter().position(|told| told.key == *key);
            assert!(first(&opened) < first(key), "{place}: {key} was told before {opened}");
        }
    }
}

/// What is to be told of a journal: every pause that opened and did not end in the same entry, and its end.
fn to_tell(run: RunId, entries: &[Entry]) -> BTreeSet<NoticeKey> {
    let mut told = BTreeSet::new();
    let key = |number, kind| NoticeKey { pause: PauseId { run, number }, kind, destination: ops() };
    for entry in entries {
        let mut opened = BTreeSet::new();
        for event in entry.events.iter() {
            let ended = match event {
                RunEvent::PauseOpened(pause) => {
                    opened.insert(pause.number);
                    continue;
                }
                RunEvent::PauseDecided(pause) => pause.number,
                RunEvent::PauseExpired(pause) => pause.number,
                RunEvent::PauseWithdrawn(pause) => pause.number,
                _ => continue,
            };
            if !opened.remove(&ended) {
                told.insert(key(ended, NoticeKind::Settled));
            }
        }
        told.extend(opened.into_iter().map(|number| key(number, NoticeKind::Opened)));
    }
    told
}
