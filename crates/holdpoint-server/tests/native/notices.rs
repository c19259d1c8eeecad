//! People are told of pauses by the server itself, whatever becomes of it meanwhile.

use std::sync::Arc;

use async_trait::async_trait;
use holdpoint_runtime::ports::notifier::{Delivery, Notice, NoticeKind, Notifier, NotifyRule};
use holdpoint_testkit::outbox::{Recorder, destination};
use serde_json::json;

use crate::world::{Setup, World, first_pause};

async fn telling(notifier: Arc<dyn Notifier>) -> World {
    let notifiers = vec![(NotifyRule::all(destination("ops")), notifier)];
    World::with(Setup { notifiers, ..Setup::default() }).await
}

#[tokio::test]
async fn people_are_told_that_a_pause_opened_and_that_it_was_decided_elsewhere() {
    let recorder = Recorder::hearing();
    let mut world = telling(recorder.clone()).await;
    let pause = first_pause(&world.start("mailer", "ana").await);
    recorder.wait_for(1).await;
    world.decide(&pause, json!({"decision": "approve"})).await.expect(200);
    recorder.wait_for(2).await;
    let heard = recorder.heard();
    let kinds: Vec<NoticeKind> = heard.iter().map(|notice| notice.key.kind).collect();
    assert_eq!(kinds, [NoticeKind::Opened, NoticeKind::Settled]);
    assert!(heard.iter().all(|notice| notice.key.pause.to_string() == pause && notice.attempt == 1), "{heard:?}");
    assert_eq!(heard[1].receipt.as_deref(), Some(heard[0].key.to_string().as_str()));
    // What came of the second may still be on its way to the file when it was heard.
    let line = r#"holdpoint_notices_total{destination="ops",outcome="delivered"} 2"#;
    while !world.get("/metrics").await.body.lines().any(|found| found == line) {
        tokio::task::yield_now().await;
    }
    world.stop().await;
}

/// Hears, and answers only from the second time on.
struct DiesFirst(Arc<Recorder>);

#[async_trait]
impl Notifier for DiesFirst {
    async fn deliver(&self, notice: &Notice) -> Delivery {
        let delivery = self.0.deliver(notice).await;
        if notice.attempt == 1 {
            return std::future::pending().await;
        }
        delivery
    }
}

#[tokio::test]
async fn what_was_told_when_the_server_was_killed_is_told_again_under_the_same_key() {
    let recorder = Recorder::hearing();
    let mut world = telling(Arc::new(DiesFirst(recorder.clone()))).await;
    world.start("mailer", "ana").await;
    recorder.wait_for(1).await;
    world.kill_and_start().await;
    recorder.wait_for(2).await;
    let heard = recorder.keys();
    assert_eq!((heard[0].1, heard[1].1), (1, 2));
    assert_eq!(heard[0].0, heard[1].0);
}
