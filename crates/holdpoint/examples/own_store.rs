//! Bring a store of your own.
//!
//! ```text
//! cargo run -p holdpoint --example own_store
//! ```
//!
//! A store is one trait. This one keeps nothing itself: it hands everything to another store and writes a line to an
//! audit file for each append. That is enough to see the one door through which runs are written, and it is useful as
//! it stands. What it does not promise: the line is written after the append, so a crash in between loses a line and
//! never a decision. The journal is the truth; the file is for people.
//!
//! A store that keeps runs itself runs the conformance suite of `holdpoint-testkit`: see `docs/guides/writing-a-store.md`.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use holdpoint::notifier::{Destination, NoticeKey};
use holdpoint::store::{
    Append, Appended, Lease, LoadedRun, NoticeFilter, NoticeOutcome, NoticeRow, RuleFilter, RuleRow, RunFilter, RunRow,
    RunSummary, SessionFilter, SessionRow,
};
use holdpoint::{
    Agent, AppendError, AuditRecord, Digest, Durability, Entry, MemoryStore, PauseFilter, PauseId, PauseRow, Reply,
    RunId, Runner, ScriptedModel, SessionId, Store, StoreFault, StoredRule, SystemClock, Timestamp,
};
use serde_json::json;

struct AuditedStore {
    inner: Arc<dyn Store>,
    lines: Mutex<File>,
}

impl AuditedStore {
    fn new(inner: Arc<dyn Store>, path: &Path) -> Result<Self> {
        Ok(Self { inner, lines: Mutex::new(File::options().create(true).append(true).open(path)?) })
    }

    /// Ids and names of events, never arguments: an audit file is read by people who may not see them.
    fn write_line(&self, append: &Append, appended: Appended) -> std::io::Result<()> {
        let names: Vec<&str> = append.events.iter().map(|event| event.name()).collect();
        let line = format!("{} {} r{}: {}\n", append.at, append.run, appended.revision, names.join(", "));
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())
    }
}

#[async_trait]
impl Store for AuditedStore {
    /// The only way to write a run: all of it or nothing, on top of the revision that the writer saw.
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let kept = append.clone();
        let appended = self.inner.append(append).await?;
        // It is written, so the caller must hear so: a line that could not be written is told, and stops nobody.
        if let Err(error) = self.write_line(&kept, appended) {
            eprintln!("the audit line of {} could not be written: {error}", kept.run);
        }
        Ok(appended)
    }

    // Everything else is handed on as it is.
    fn now(&self) -> Timestamp {
        self.inner.now()
    }
    async fn load(&self, run: RunId, after: u64) -> Result<Option<LoadedRun>, StoreFault> {
        self.inner.load(run, after).await
    }
    async fn claim(&self, run: RunId, owner: &str, lease: Duration) -> Result<Lease, AppendError> {
        self.inner.claim(run, owner, lease).await
    }
    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Lease, AppendError> {
        self.inner.renew(lease, duration).await
    }
    async fn release(&self, lease: &Lease) -> Result<(), StoreFault> {
        self.inner.release(lease).await
    }
    async fn claimable(&self, limit: usize) -> Result<Vec<RunId>, StoreFault> {
        self.inner.claimable(limit).await
    }
    async fn due_pauses(&self, limit: usize) -> Result<Vec<PauseId>, StoreFault> {
        self.inner.due_pauses(limit).await
    }
    async fn next_deadline(&self) -> Result<Option<Timestamp>, StoreFault> {
        self.inner.next_deadline().await
    }
    async fn list_pauses(&self, filter: &PauseFilter) -> Result<Vec<PauseRow>, StoreFault> {
        self.inner.list_pauses(filter).await
    }
    async fn session_runs(&self, session: &SessionId, limit: usize) -> Result<Vec<RunRow>, StoreFault> {
        self.inner.session_runs(session, limit).await
    }
    async fn session_entries(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(RunId, Entry)>, StoreFault> {
        self.inner.session_entries(session, from, limit).await
    }
    async fn session_rules(&self, session: &SessionId) -> Result<Vec<StoredRule>, StoreFault> {
        self.inner.session_rules(session).await
    }
    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, StoreFault> {
        self.inner.session(session).await
    }
    async fn list_sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreFault> {
        self.inner.list_sessions(filter).await
    }
    async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreFault> {
        self.inner.list_runs(filter).await
    }
    async fn list_rules(&self, filter: &RuleFilter) -> Result<Vec<RuleRow>, StoreFault> {
        self.inner.list_rules(filter).await
    }
    async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRecord>, StoreFault> {
        self.inner.audit(after, limit).await
    }
    async fn audit_head(&self) -> Result<Option<(u64, Digest)>, StoreFault> {
        self.inner.audit_head().await
    }
    async fn definition(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, StoreFault> {
        self.inner.definition(digest).await
    }
    async fn claim_notices(
        &self,
        destinations: &[Destination],
        limit: usize,
        hold: Duration,
    ) -> Result<Vec<NoticeRow>, StoreFault> {
        self.inner.claim_notices(destinations, limit, hold).await
    }
    async fn settle_notice(&self, key: &NoticeKey, attempt: u32, outcome: NoticeOutcome) -> Result<bool, StoreFault> {
        self.inner.settle_notice(key, attempt, outcome).await
    }
    async fn notice(&self, key: &NoticeKey) -> Result<Option<NoticeRow>, StoreFault> {
        self.inner.notice(key).await
    }
    async fn list_notices(&self, filter: &NoticeFilter) -> Result<Vec<NoticeRow>, StoreFault> {
        self.inner.list_notices(filter).await
    }
    async fn remove_old(&self, before: Timestamp, limit: usize) -> Result<u64, StoreFault> {
        self.inner.remove_old(before, limit).await
    }
    fn durability(&self) -> Durability {
        // What the store underneath promises is what this one promises.
        Durability { store: "audited", ..self.inner.durability() }
    }
}

/// Restarts a machine.
#[holdpoint::tool(needs_approval)]
async fn restart(host: String) -> String {
    format!("{host} is restarting")
}

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let audit = folder.path().join("audit.log");
    let store = AuditedStore::new(Arc::new(MemoryStore::new(SystemClock::shared())), &audit)?;

    let agent = Agent::builder("Operator").instructions("Keep it running.").tool(restart()).build()?;
    let model = ScriptedModel::new([Reply::call("restart", json!({"host": "db-1"})), Reply::text("Restarted.")]);
    let runner = Runner::builder().store(Arc::new(store)).model(Arc::new(model)).build();

    let outcome = runner.run(&agent, "db-1 hangs.").await?;
    runner.approve(&outcome.pauses()[0]).by("ana").await?;
    runner.resume(&agent, outcome.run_id()).await?;
    print!("{}", std::fs::read_to_string(&audit)?);
    Ok(())
}
