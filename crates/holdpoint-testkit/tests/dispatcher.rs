//! The dispatcher: who is told of what, when it is tried again, and that nobody who is told badly holds up anybody else.
#![allow(clippy::unwrap_used)] // All of it is a test.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::ids::{AgentId, PauseId};
use holdpoint_core::pause::{PauseKind, PauseState};
use holdpoint_core::record::Entry;
use holdpoint_runtime::memory::MemoryStore;
use holdpoint_runtime::notices::{ATTEMPTS_MAX, Dispatched, Dispatcher};
use holdpoint_runtime::ports::notifier::{Delivery, Notice, NoticeKey, NoticeKind, Notifier, NotifyRule};
use holdpoint_runtime::ports::observer::{NoticeAttempted, Observer};
use holdpoint_runtime::ports::store::{NoticeFilter, NoticeRow, NoticeState, Store};
use holdpoint_runtime::settings::Settings;
use holdpoint_runtime::{Runtime, RuntimeBuilder};
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::crash::{World, scenarios};
use holdpoint_testkit::outbox::{Recorder, deny, destination, open_pause, telling};

const MINUTE: Duration = Duration::from_secs(60);

/// A memory store that goes by a test clock, and a runtime over it.
struct Desk {
    clock: TestClock,
    store: Arc<dyn Store>,
    runtime: Runtime,
}

impl Desk {
    fn telling(destinations: &[&str]) -> Self {
        Self::with(|store| telling(store, destinations))
    }

    fn with(build: impl FnOnce(Arc<dyn Store>) -> RuntimeBuilder) -> Self {
        let clock = TestClock::default();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.shared()));
        let runtime = build(store.clone()).build();
        Self { clock, store, runtime }
    }

    fn dispatcher<const N: usize>(&self, notifiers: [(&str, Arc<dyn Notifier>); N]) -> Dispatcher {
        let notifiers = notifiers.map(|(name, notifier)| (destination(name), notifier));
        Dispatcher::new(self.runtime.clone(), notifiers)
    }

    async fn notices(&self) -> Vec<NoticeRow> {
        self.store.list_notices(&NoticeFilter::default()).await.unwrap()
    }

    async fn notice(&self, key: &NoticeKey) -> NoticeRow {
        self.store.notice(key).await.unwrap().unwrap()
    }
}

fn opened(pause: PauseId, name: &str) -> NoticeKey {
    NoticeKey { pause, kind: NoticeKind::Opened, destination: destination(name) }
}

fn settled(pause: PauseId, name: &str) -> NoticeKey {
    NoticeKey { kind: NoticeKind::Settled, ..opened(pause, name) }
}

fn retrying() -> Arc<Recorder> {
    Recorder::answering(|_| Delivery::Retry { after: None, why: "busy".to_owned() })
}

#[tokio::test]
async fn whoever_a_rule_names_is_told_that_a_pause_opened_and_that_it_ended() {
    let rule = |name: &str, agents: &[&str], kinds: &[PauseKind]| NotifyRule {
        destination: destination(name),
        agents: agents.iter().map(|agent| AgentId::root(agent).unwrap()).collect(),
        kinds: kinds.to_vec(),
    };
    let notify = vec![
        rule("all", &[], &[]),
        rule("payer", &["Other", "Payer"], &[PauseKind::Approval]),
        rule("others", &["Other"], &[]),
        rule("questions", &[], &[PauseKind::Question, PauseKind::InDoubt]),
        rule("all", &["Payer"], &[]),
    ];
    let desk = Desk::with(|store| telling(store, &[]).settings(Settings { notify, ..Settings::default() }));
    let pause = open_pause(&desk.runtime, "s").await;
    let recorder = Recorder::hearing();
    let names = ["all", "payer", "others", "questions"];
    let dispatcher = desk.dispatcher(names.map(|name| (name, recorder.clone() as Arc<dyn Notifier>)));
    let mut told = dispatcher.sweep().await.unwrap().delivered;
    told.sort_unstable();
    assert_eq!(told, [opened(pause, "all"), opened(pause, "payer")]);
    assert!(recorder.heard().iter().all(|notice| notice.pause.pause.is_open() && notice.run.id() == pause.run));
    deny(&desk.runtime, pause).await;
    let mut told = dispatcher.sweep().await.unwrap().delivered;
    told.sort_unstable();
    assert_eq!(told, [settled(pause, "all"), settled(pause, "payer")]);
    let is_decided = |notice: &Notice| matches!(notice.pause.pause.state, PauseState::Decided(_));
    assert!(recorder.heard()[2..].iter().all(is_decided));
}

#[tokio::test]
async fn without_a_rule_nothing_is_written() {
    let desk = Desk::telling(&[]);
    let pause = open_pause(&desk.runtime, "s").await;
    deny(&desk.runtime, pause).await;
    assert_eq!(desk.notices().await, []);
}

#[tokio::test]
async fn a_pause_that_expires_or_is_withdrawn_ended_too() {
    let desk = Desk::with(|store| {
        let notify = vec![NotifyRule::all(destination("ops"))];
        telling(store, &[]).settings(Settings { notify, pause_deadline: Some(MINUTE), ..Settings::default() })
    });
    let recorder = Recorder::hearing();
    let dispatcher = desk.dispatcher([("ops", recorder.clone())]);
    let (one, other) = (open_pause(&desk.runtime, "one").await, open_pause(&desk.runtime, "other").await);
    desk.runtime.cancel_run(other.run, holdpoint_core::ids::ActorId::local(), "enough").await.unwrap();
    desk.clock.advance(MINUTE);
    desk.runtime.expire_pauses(8).await.unwrap();
    dispatcher.sweep().await.unwrap();
    let state = |pause| {
        let heard = recorder.heard().into_iter().find(|notice| notice.key == settled(pause, "ops"));
        heard.expect("it was told").pause.pause.state
    };
    assert!(matches!(state(one), PauseState::Expired { .. }));
    assert!(matches!(state(other), PauseState::Withdrawn { .. }));
}

#[tokio::test]
async fn of_a_run_that_is_taken_in_only_what_is_open_is_told() {
    // A run elsewhere, as it stood at its pause and after its end.
    let elsewhere = Desk::telling(&[]);
    let pause = open_pause(&elsewhere.runtime, "s").await;
    let paused = elsewhere.runtime.read_journal(pause.run).await.unwrap();
    deny(&elsewhere.runtime, pause).await;
    let ended = elsewhere.runtime.read_journal(pause.run).await.unwrap();
    let graph = scenarios()[0].agent(&World::in_memory()).graph().unwrap();
    let keys = async |desk: &Desk| desk.notices().await.into_iter().map(|row| row.key).collect::<Vec<_>>();

    let desk = Desk::telling(&["ops"]);
    desk.runtime.import_run(pause.run, &paused, &[], &graph).await.unwrap();
    assert_eq!(keys(&desk).await, [opened(pause, "ops")]);
    desk.runtime.import_run(pause.run, &ended, &[], &graph).await.unwrap();
    assert_eq!(keys(&desk).await, [opened(pause, "ops"), settled(pause, "ops")]);

    let desk = Desk::telling(&["ops"]);
    desk.runtime.import_run(pause.run, &ended, &[], &graph).await.unwrap();
    assert_eq!(keys(&desk).await, []);

    // One append in which the pause opens and ends: there was never anything to be told.
    let events: Arc<[_]> = ended.iter().flat_map(|entry| entry.events.iter().cloned()).collect();
    let at_once = Entry { events, ..ended[0].clone() };
    let desk = Desk::telling(&["ops"]);
    desk.runtime.import_run(pause.run, &[at_once], &[], &graph).await.unwrap();
    assert_eq!(keys(&desk).await, []);
}

#[tokio::test]
async fn it_is_tried_again_after_longer_and_longer_waits_and_then_given_up() {
    let (desk, recorder) = (Desk::telling(&["ops"]), retrying());
    let key = opened(open_pause(&desk.runtime, "s").await, "ops");
    let dispatcher = desk.dispatcher([("ops", recorder.clone())]);
    for attempt in 1..ATTEMPTS_MAX {
        let expected = Dispatched { retried: vec![key.clone()], ..Dispatched::default() };
        assert_eq!(dispatcher.sweep().await.unwrap(), expected, "{attempt}");
        let wait = desk.notice(&key).await.at.since(desk.clock.now());
        let base = Duration::from_secs((1 << (attempt - 1)).min(3_600));
        assert!(base <= wait && wait <= base * 5 / 4, "{attempt}: {wait:?}");
        desk.clock.advance(wait - Duration::from_millis(1));
        assert_eq!(dispatcher.sweep().await.unwrap(), Dispatched::default(), "{attempt}");
        desk.clock.advance(Duration::from_millis(1));
    }
    assert_eq!(dispatcher.sweep().await.unwrap().failed, std::slice::from_ref(&key));
    let attempts: Vec<u32> = recorder.keys().into_iter().map(|(_, attempt)| attempt).collect();
    assert_eq!(attempts, (1..=ATTEMPTS_MAX).collect::<Vec<_>>());
    assert_eq!(desk.notice(&key).await.state, NoticeState::Failed { why: "busy".to_owned() });
    desk.clock.advance(MINUTE * 10_000);
    assert_eq!(dispatcher.sweep().await.unwrap(), Dispatched::default());
}

#[tokio::test]
async fn a_notice_that_kills_whoever_sends_it_is_given_up_in_the_end() {
    let (desk, recorder) = (Desk::telling(&["ops"]), Recorder::hearing());
    let key = opened(open_pause(&desk.runtime, "s").await, "ops");
    for _ in 0..ATTEMPTS_MAX {
        assert_eq!(desk.store.claim_notices(&[destination("ops")], 1, MINUTE).await.unwrap().len(), 1);
        desk.clock.advance(MINUTE);
    }
    assert_eq!(desk.dispatcher([("ops", recorder.clone())]).sweep().await.unwrap().failed, [key]);
    assert_eq!(recorder.keys(), []);
}

#[tokio::test]
async fn the_other_side_may_ask_for_time() {
    let desk = Desk::telling(&["ops"]);
    let recorder = Recorder::answering(|_| Delivery::Retry { after: Some(MINUTE * 3), why: "slow down".to_owned() });
    let key = opened(open_pause(&desk.runtime, "s").await, "ops");
    desk.dispatcher([("ops", recorder)]).sweep().await.unwrap();
    assert_eq!(desk.notice(&key).await.at, desk.clock.now().after(MINUTE * 3));
}

#[tokio::test]
async fn who_says_that_it_is_of_no_use_is_not_asked_again_and_the_end_is_still_told() {
    let desk = Desk::telling(&["ops"]);
    let recorder = Recorder::answering(|notice| match notice.key.kind {
        NoticeKind::Opened => Delivery::GaveUp { why: "no such channel\u{1b}[2J\n\"x\"".to_owned() },
        NoticeKind::Settled => Delivery::Delivered { receipt: None },
    });
    let pause = open_pause(&desk.runtime, "s").await;
    deny(&desk.runtime, pause).await;
    let swept = desk.dispatcher([("ops", recorder.clone())]).sweep().await.unwrap();
    assert_eq!((swept.failed, swept.delivered), (vec![opened(pause, "ops")], vec![settled(pause, "ops")]));
    let why = "no such channel⟦U+001B⟧[2J \"x\"".to_owned();
    assert_eq!(desk.notice(&opened(pause, "ops")).await.state, NoticeState::Failed { why });
    assert_eq!(recorder.heard()[1].receipt, None);
}

#[tokio::test]
async fn a_notice_of_a_run_that_is_not_there_holds_up_no_other() {
    let (desk, recorder) = (Desk::telling(&["ops"]), Recorder::hearing());
    let pause = open_pause(&desk.runtime, "s").await;
    // Something that no run of ours has is in the outbox before it.
    let (other, graph) = (Desk::telling(&[]), scenarios()[0].agent(&World::in_memory()).graph().unwrap());
    let stranger = open_pause(&other.runtime, "t").await;
    let journal = other.runtime.read_journal(stranger.run).await.unwrap();
    desk.runtime.import_run(stranger.run, &journal, &[], &graph).await.unwrap();
    let missing = PauseId { run: stranger.run, number: 99 };
    let loaded = desk.store.load(stranger.run, 0).await.unwrap().unwrap();
    let append = holdpoint_runtime::ports::store::Append {
        run: stranger.run,
        expected: loaded.revision,
        session: loaded.session,
        agent: loaded.agent,
        at: holdpoint_core::time::Timestamp::from_millis(1),
        events: [holdpoint_testkit::conformance::sample::said("x")].into(),
        status: holdpoint_runtime::ports::store::RunStatus::Waiting,
        lease: holdpoint_runtime::ports::store::LeaseChange::Keep,
        pauses: Vec::new(),
        rules: Vec::new(),
        definitions: Vec::new(),
        audit: Vec::new(),
        notices: vec![opened(missing, "ops")],
        only_owner: false,
    };
    desk.store.append(append).await.unwrap();
    let swept = desk.dispatcher([("ops", recorder)]).parallel_max(1).sweep().await.unwrap();
    assert_eq!(swept.failed, [opened(missing, "ops")]);
    assert_eq!(swept.delivered.len(), 2);
    assert!(swept.delivered.contains(&opened(pause, "ops")));
}

/// One that panics.
struct Panics;

#[async_trait]
impl Notifier for Panics {
    async fn deliver(&self, _: &Notice) -> Delivery {
        panic!("as planned")
    }
}

/// One that never answers.
struct Hangs(Arc<Recorder>);

#[async_trait]
impl Notifier for Hangs {
    async fn deliver(&self, notice: &Notice) -> Delivery {
        self.0.deliver(notice).await;
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_notifier_that_panics_hurts_only_itself() {
    let (desk, recorder) = (Desk::telling(&["bad", "good"]), Recorder::hearing());
    let pause = open_pause(&desk.runtime, "s").await;
    let swept = desk.dispatcher([("bad", Arc::new(Panics)), ("good", recorder)]).sweep().await.unwrap();
    assert_eq!((swept.retried, swept.delivered), (vec![opened(pause, "bad")], vec![opened(pause, "good")]));
}

#[tokio::test]
async fn an_attempt_that_hangs_is_broken_off_before_anybody_else_may_take_it() {
    let waits = TestClock::default();
    let desk = Desk::with(|store| telling(store, &["ops"]).clock(waits.shared()));
    let key = opened(open_pause(&desk.runtime, "s").await, "ops");
    let recorder = Recorder::hearing();
    let dispatcher = desk.dispatcher([("ops", Arc::new(Hangs(recorder.clone())))]).hold(MINUTE);
    let sweep = tokio::spawn(async move { dispatcher.sweep().await });
    recorder.wait_for(1).await;
    waits.wait_for_sleepers(1).await;
    assert_eq!(waits.next_wake(), Some(waits.now().after(MINUTE * 3 / 4)));
    waits.advance(MINUTE * 3 / 4);
    assert_eq!(sweep.await.unwrap().unwrap().retried, std::slice::from_ref(&key));
    assert_eq!(desk.notice(&key).await.attempts, 1);
}

#[tokio::test]
async fn an_answer_that_comes_after_somebody_else_has_begun_counts_for_nothing() {
    let desk = Desk::telling(&["ops"]);
    let key = opened(open_pause(&desk.runtime, "s").await, "ops");
    // While the first is under way, its hold passes and a second is begun.
    let (store, clock) = (desk.store.clone(), desk.clock.clone());
    let overtaken = Recorder::answering(move |_| {
        clock.advance(MINUTE);
        let claim = futures_util::FutureExt::now_or_never(store.claim_notices(&[destination("ops")], 1, MINUTE));
        assert_eq!(claim.unwrap().unwrap()[0].attempts, 2);
        Delivery::Delivered { receipt: Some("late".to_owned()) }
    });
    assert_eq!(desk.dispatcher([("ops", overtaken)]).sweep().await.unwrap().late, std::slice::from_ref(&key));
    assert_eq!(desk.notice(&key).await.state, NoticeState::Waiting);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_committed_here_is_told_at_once_while_others_hang() {
    // No time passes for the dispatcher: only what it hears of wakes it.
    let waits = TestClock::default();
    let desk = Desk::with(|store| telling(store, &["good", "hangs"]).clock(waits.shared()));
    let (recorder, stuck) = (Recorder::hearing(), Recorder::hearing());
    let dispatcher = desk.dispatcher([("hangs", Arc::new(Hangs(stuck.clone()))), ("good", recorder.clone())]);
    let handle = dispatcher.parallel_max(1).spawn();
    for number in 0..20 {
        let pause = open_pause(&desk.runtime, &format!("s{number}")).await;
        recorder.wait_for(2 * number + 1).await;
        deny(&desk.runtime, pause).await;
        recorder.wait_for(2 * number + 2).await;
    }
    stuck.wait_for(1).await;
    let stop = tokio::spawn(handle.stop());
    // What hangs is waited for a little, and then broken off.
    while !stop.is_finished() {
        waits.advance(Duration::from_secs(1));
        tokio::task::yield_now().await;
    }
    stop.await.unwrap();
    assert_eq!((recorder.keys().len(), stuck.keys().len()), (40, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_process_committed_is_found_by_looking() {
    let desk = Desk::telling(&["ops"]);
    let elsewhere = telling(desk.store.clone(), &["ops"]).build();
    let recorder = Recorder::hearing();
    let handle = desk.dispatcher([("ops", recorder.clone())]).poll(Duration::from_millis(5)).spawn();
    let pause = open_pause(&elsewhere, "s").await;
    recorder.wait_for(1).await;
    assert_eq!(recorder.keys(), [(opened(pause, "ops"), 1)]);
    handle.stop().await;
}

#[tokio::test]
async fn observers_see_what_came_of_each_attempt() {
    struct Counts(Mutex<Vec<(NoticeKey, u32, &'static str)>>);
    impl Observer for Counts {
        fn notice_attempted(&self, attempted: &NoticeAttempted<'_>) {
            self.0.lock().unwrap().push((attempted.key.clone(), attempted.attempt, attempted.end.name()));
        }
    }
    let counts = Arc::new(Counts(Mutex::default()));
    let desk = Desk::with(|store| telling(store, &["ops"]).observer(counts.clone()));
    let key = opened(open_pause(&desk.runtime, "s").await, "ops");
    let is_up = Arc::new(AtomicBool::new(false));
    let up = is_up.clone();
    let recorder = Recorder::answering(move |_| match up.load(Ordering::SeqCst) {
        true => Delivery::Delivered { receipt: None },
        false => Delivery::Retry { after: None, why: "down".to_owned() },
    });
    let dispatcher = desk.dispatcher([("ops", recorder)]);
    dispatcher.sweep().await.unwrap();
    is_up.store(true, Ordering::SeqCst);
    desk.clock.advance(MINUTE);
    dispatcher.sweep().await.unwrap();
    assert_eq!(*counts.0.lock().unwrap(), [(key.clone(), 1, "retried"), (key, 2, "delivered")]);
}
