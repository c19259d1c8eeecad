//! Alive, ready, counted; and what happens when the store is out of order.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;

use crate::world::{Setup, World, first_pause};

#[tokio::test]
async fn the_server_says_that_it_is_alive_and_what_its_store_promises() {
    let world = World::with_keys().await;
    assert_eq!(world.get("/healthz").await.expect(200), json!({"status": "ok"}));
    let ready = world.get("/readyz").await.expect(200);
    assert_eq!((&ready["status"], &ready["store"]["name"]), (&json!("ready"), &json!("sqlite")));
    assert_eq!(ready["store"]["survives_crash"], true);
}

#[tokio::test]
async fn what_happens_is_counted_without_a_word_from_outside() {
    let world = World::solo().await;
    let pause = first_pause(&world.start("mailer", "canary-input").await);
    world.clock.advance(Duration::from_secs(90));
    world.get("/api/v1/canary-path").await.refuses(404, "route_not_found");
    world.decide(&pause, json!({"decision": "deny", "message": "canary-message"})).await.expect(200);
    first_pause(&world.start("asker", "x").await);
    world.clock.advance(Duration::from_secs(30));
    let metrics = world.get("/metrics").await;
    assert_eq!(metrics.status, 200);
    for line in [
        r#"holdpoint_open_pauses{kind="question"} 1"#,
        r#"holdpoint_open_pauses{kind="approval"} 0"#,
        "holdpoint_oldest_open_pause_seconds 30",
        r#"holdpoint_pauses_opened_total{kind="approval"} 1"#,
        r#"holdpoint_pauses_ended_total{kind="approval",outcome="deny"} 1"#,
        r#"holdpoint_pause_seconds_sum{kind="approval"} 90.0"#,
        r#"holdpoint_runs_ended_total{outcome="done"} 1"#,
        r#"holdpoint_model_call_seconds_count{success="true"} 3"#,
        r#"holdpoint_http_requests_total{method="POST",path="/api/v1/runs",status="201"} 2"#,
        r#"holdpoint_http_requests_total{method="GET",path="unmatched",status="404"} 1"#,
    ] {
        assert!(metrics.body.lines().any(|found| found == line), "{line} in\n{}", metrics.body);
    }
    assert!(!metrics.body.contains("canary"), "{}", metrics.body);
}

pub mod broken {
    //! A store that can be put out of order.

    use std::sync::atomic::{AtomicBool, Ordering};

    use holdpoint_core::audit::AuditRecord;
    use holdpoint_core::ids::{PauseId, RunId, SessionId};
    use holdpoint_core::json::Digest;
    use holdpoint_core::record::Entry;
    use holdpoint_core::time::Timestamp;
    use holdpoint_runtime::memory::MemoryStore;
    use holdpoint_runtime::ports::notifier::{Destination, NoticeKey};
    use holdpoint_runtime::ports::store::*;

    use super::*;

    pub struct Breakable {
        pub inner: MemoryStore,
        pub is_broken: AtomicBool,
        pub hangs: AtomicBool,
    }

    /// A store that is in order so far.
    pub fn store() -> Arc<Breakable> {
        let inner = MemoryStore::new(holdpoint_runtime::ports::clock::SystemClock::shared());
        Arc::new(Breakable { inner, is_broken: false.into(), hangs: false.into() })
    }

    impl Breakable {
        fn check(&self) -> Result<(), StoreFault> {
            match self.is_broken.load(Ordering::SeqCst) {
                true => Err(StoreFault::because("answer", StoreFaultKind::Unavailable, "/secret/path of the disk")),
                false => Ok(()),
            }
        }
    }

    #[async_trait]
    impl Store for Breakable {
        fn now(&self) -> Timestamp {
            self.inner.now()
        }
        async fn append(&self, append: Append) -> Result<Appended, AppendError> {
            self.check()?;
            self.inner.append(append).await
        }
        async fn load(&self, run: RunId, after: u64) -> Result<Option<LoadedRun>, StoreFault> {
            self.check()?;
            if self.hangs.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            self.inner.load(run, after).await
        }
        async fn claim(&self, run: RunId, owner: &str, lease: Duration) -> Result<Lease, AppendError> {
            self.check()?;
            self.inner.claim(run, owner, lease).await
        }
        async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Lease, AppendError> {
            self.check()?;
            self.inner.renew(lease, duration).await
        }
        async fn release(&self, lease: &Lease) -> Result<(), StoreFault> {
            self.check()?;
            self.inner.release(lease).await
        }
        async fn claimable(&self, limit: usize) -> Result<Vec<RunId>, StoreFault> {
            self.check()?;
            self.inner.claimable(limit).await
        }
        async fn due_pauses(&self, limit: usize) -> Result<Vec<PauseId>, StoreFault> {
            self.check()?;
            self.inner.due_pauses(limit).await
        }
        async fn next_deadline(&self) -> Result<Option<Timestamp>, StoreFault> {
            self.check()?;
            self.inner.next_deadline().await
        }
        async fn list_pauses(&self, filter: &PauseFilter) -> Result<Vec<PauseRow>, StoreFault> {
            self.check()?;
            self.inner.list_pauses(filter).await
        }
        async fn session_runs(&self, session: &SessionId, limit: usize) -> Result<Vec<RunRow>, StoreFault> {
            self.check()?;
            self.inner.session_runs(session, limit).await
        }
        async fn session_entries(
            &self,
            session: &SessionId,
            from: u64,
            limit: usize,
        ) -> Result<Vec<(RunId, Entry)>, StoreFault> {
            self.check()?;
            self.inner.session_entries(session, from, limit).await
        }
        async fn session_rules(&self, session: &SessionId) -> Result<Vec<StoredRule>, StoreFault> {
            self.check()?;
            self.inner.session_rules(session).await
        }
        async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, StoreFault> {
            self.check()?;
            self.inner.session(session).await
        }
        async fn list_sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreFault> {
            self.check()?;
            self.inner.list_sessions(filter).await
        }
        async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreFault> {
            self.check()?;
            self.inner.list_runs(filter).await
        }
        async fn list_rules(&self, filter: &RuleFilter) -> Result<Vec<RuleRow>, StoreFault> {
            self.check()?;
            self.inner.list_rules(filter).await
        }
        async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRecord>, StoreFault> {
            self.check()?;
            self.inner.audit(after, limit).await
        }
        async fn audit_head(&self) -> Result<Option<(u64, Digest)>, StoreFault> {
            self.check()?;
            self.inner.audit_head().await
        }
        async fn definition(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, StoreFault> {
            self.check()?;
            self.inner.definition(digest).await
        }
        async fn claim_notices(
            &self,
            destinations: &[Destination],
            limit: usize,
            hold: Duration,
        ) -> Result<Vec<NoticeRow>, StoreFault> {
            self.check()?;
            self.inner.claim_notices(destinations, limit, hold).await
        }
        async fn settle_notice(
            &self,
            key: &NoticeKey,
            attempt: u32,
            outcome: NoticeOutcome,
        ) -> Result<bool, StoreFault> {
            self.check()?;
            self.inner.settle_notice(key, attempt, outcome).await
        }
        async fn notice(&self, key: &NoticeKey) -> Result<Option<NoticeRow>, StoreFault> {
            self.check()?;
            self.inner.notice(key).await
        }
        async fn list_notices(&self, filter: &NoticeFilter) -> Result<Vec<NoticeRow>, StoreFault> {
            self.check()?;
            self.inner.list_notices(filter).await
        }
        fn durability(&self) -> Durability {
            self.inner.durability()
        }
    }
}

#[tokio::test]
async fn a_store_out_of_order_is_told_as_such_and_everything_goes_on_afterwards() {
    use std::sync::atomic::Ordering;
    let store = broken::store();
    let world = World::with(Setup { store: Some(store.clone()), ..Setup::default() }).await;
    let pause = first_pause(&world.start("mailer", "ana").await);
    store.is_broken.store(true, Ordering::SeqCst);
    let approve = json!({"decision": "approve"});
    for answer in [
        world.decide(&pause, approve.clone()).await,
        world.get("/api/v1/pauses").await,
        world.get(&format!("/api/v1/pauses/{pause}")).await,
        world.post("/api/v1/runs", json!({"agent_id": "talker", "input": "x"})).await,
    ] {
        answer.refuses(503, "store_unavailable");
        assert!(answer.header("retry-after").is_some());
        assert!(!answer.body.contains("secret"), "{}", answer.body);
    }
    world.get("/healthz").await.expect(200);
    world.get("/readyz").await.refuses(503, "store_unavailable");
    store.is_broken.store(false, Ordering::SeqCst);
    world.get("/readyz").await.expect(200);
    let metrics = world.get("/metrics").await.body;
    assert!(metrics.contains(r#"holdpoint_store_faults_total{code="store_unavailable"}"#), "{metrics}");
    let decided = world.decide(&pause, approve).await.expect(200);
    assert_eq!(decided["run"]["output"], "outcome: sent");
    assert_eq!(world.effects.sent().len(), 1);
}
