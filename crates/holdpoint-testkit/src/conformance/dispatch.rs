//! Dispatchers over the store: each notice is sent, once if nobody dies, and again if somebody does.
#![expect(missing_docs, reason = "each case is named by the sentence that it checks")]
#![expect(clippy::unwrap_used, reason = "a case is a test")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::ids::PauseId;
use holdpoint_runtime::Runtime;
use holdpoint_runtime::notices::Dispatcher;
use holdpoint_runtime::ports::notifier::{NoticeKey, NoticeKind, Notifier};
use holdpoint_runtime::ports::store::{NoticeFilter, NoticeStatus};

use super::Trial;
use crate::outbox::{Recorder, deny, destination, open_pause, telling};

fn runtime(trial: &Trial) -> Runtime {
    telling(Arc::clone(&trial.store), &["ops"]).build()
}

fn dispatcher(runtime: &Runtime, recorder: &Arc<Recorder>) -> Dispatcher {
    let notifier: Arc<dyn Notifier> = recorder.clone();
    Dispatcher::new(runtime.clone(), [(destination("ops"), notifier)]).parallel_max(3)
}

fn key(pause: PauseId, kind: NoticeKind) -> NoticeKey {
    NoticeKey { pause, kind, destination: destination("ops") }
}

pub async fn two_dispatchers_deliver_each_notice_once(trial: &Trial) {
    let recorder = Recorder::hearing();
    let runtimes = [runtime(trial), runtime(trial)];
    let mut expected = BTreeSet::new();
    for (number, runtime) in (0..12).zip(runtimes.iter().cycle()) {
        let pause = open_pause(runtime, &format!("s{number}")).await;
        deny(runtime, pause).await;
        expected.extend([(key(pause, NoticeKind::Opened), 1), (key(pause, NoticeKind::Settled), 1)]);
    }
    let [one, other] = [&runtimes[0], &runtimes[1]].map(|runtime| dispatcher(runtime, &recorder));
    let waiting = NoticeFilter { status: Some(NoticeStatus::Waiting), ..NoticeFilter::default() };
    // One may find nothing while the other still has something under way that lets more come.
    while !trial.store.list_notices(&waiting).await.unwrap().is_empty() {
        let (one, other) = tokio::join!(one.sweep(), other.sweep());
        assert!(one.unwrap().late.is_empty() && other.unwrap().late.is_empty());
    }
    let heard = recorder.keys();
    assert_eq!(heard.len(), expected.len(), "{heard:?}");
    assert_eq!(heard.into_iter().collect::<BTreeSet<_>>(), expected);
}

pub async fn what_was_delivered_and_not_written_down_is_delivered_again_under_the_same_key(trial: &Trial) {
    let (recorder, runtime) = (Recorder::hearing(), runtime(trial));
    let key = key(open_pause(&runtime, "s").await, NoticeKind::Opened);
    let hold = Duration::from_secs(60);
    // Somebody takes it, tells, and dies before writing that down.
    let claimed = trial.store.claim_notices(&[destination("ops")], 8, hold).await.unwrap();
    assert_eq!(claimed.iter().map(|row| &row.key).collect::<Vec<_>>(), [&key]);
    let dispatcher = dispatcher(&runtime, &recorder);
    assert_eq!(dispatcher.sweep().await.unwrap().delivered, []);
    trial.clock.advance(hold);
    assert_eq!(dispatcher.sweep().await.unwrap().delivered, std::slice::from_ref(&key));
    assert_eq!(recorder.keys(), [(key, 2)]);
    trial.clock.advance(hold * 100);
    assert_eq!(dispatcher.sweep().await.unwrap().delivered, []);
}

pub async fn the_end_is_told_with_what_was_kept_of_the_opening(trial: &Trial) {
    let (recorder, runtime) = (Recorder::hearing(), runtime(trial));
    let pause = open_pause(&runtime, "s").await;
    deny(&runtime, pause).await;
    dispatcher(&runtime, &recorder).sweep().await.unwrap();
    let heard = recorder.heard();
    let told: Vec<_> = heard.iter().map(|notice| (notice.key.clone(), notice.receipt.clone())).collect();
    let (opened, settled) = (key(pause, NoticeKind::Opened), key(pause, NoticeKind::Settled));
    assert_eq!(told, [(opened.clone(), None), (settled, Some(opened.to_string()))]);
    assert!(heard.iter().all(|notice| notice.pause_key == "s_1" && notice.pause.id() == pause));
    assert!(heard.iter().all(|notice| notice.at == trial.clock.now()));
}
