//! Writes whose answer was lost on the way. The store is asked what became of them before anybody is told anything; only
//! where it cannot be asked is the answer that nobody knows.

use std::time::Duration;

use holdpoint_core::ids::RunId;
use holdpoint_core::record::Entry;
use tokio::time::Instant;

use crate::ports::store::{
    Append, AppendError, Appended, Lease, LeaseChange, LoadedRun, RunStatus, StoreFault, StoreFaultKind,
};
use crate::runtime::Runtime;

/// How long is waited before the store is asked again: at first, and at most.
const WAIT_MIN: Duration = Duration::from_millis(20);
const WAIT_MAX: Duration = Duration::from_millis(500);

impl Runtime {
    /// Appends. Where the answer is lost, the caller still gets the truth if it can be had: the entry is looked for, and
    /// where it is not there it is written again, on the same revision, so that it is never there twice.
    ///
    /// # Errors
    /// As [`Store::append`](crate::ports::store::Store::append).
    pub(crate) async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let again = append.clone();
        match self.store().append(append).await {
            Err(AppendError::Fault(doubt)) if is_doubt(&doubt) => self.settle_append(again, doubt).await,
            answer => answer,
        }
    }

    async fn settle_append(&self, append: Append, doubt: StoreFault) -> Result<Appended, AppendError> {
        tracing::warn!(run.id = %append.run, %doubt, "an append is in doubt: the store is asked what became of it");
        let mut patience = Patience::of(self.settings().doubt_patience);
        loop {
            match self.standing(&append).await {
                Ok(Standing::Ours(appended)) => return Ok(appended),
                Ok(Standing::Others(refusal)) => return Err(refusal),
                // It may still be on its way. Of two appends on one revision the store takes one, whichever comes first.
                Ok(Standing::Nobodys) => match self.store().append(append.clone()).await {
                    Ok(appended) => return Ok(appended),
                    Err(AppendError::Fault(_)) => {}
                    // Perhaps because it is there by now.
                    Err(refusal) => match self.standing(&append).await {
                        Ok(Standing::Ours(appended)) => return Ok(appended),
                        Ok(_) => return Err(refusal),
                        Err(_) => {}
                    },
                },
                Err(_) => {}
            }
            if !patience.wait().await {
                return Err(doubt.into());
            }
        }
    }

    /// What stands where an append was to be written.
    async fn standing(&self, append: &Append) -> Result<Standing, StoreFault> {
        let Some(loaded) = self.store().load(append.run, append.expected).await? else { return Ok(Standing::Nobodys) };
        let Some(entry) = loaded.entries.first() else { return Ok(Standing::Nobodys) };
        let (run, revision) = (append.run, loaded.revision);
        if entry.events != append.events || entry.at != append.at {
            return Ok(Standing::Others(AppendError::Conflict { run, revision }));
        }
        // Whoever moves a run must know that the lease is theirs still: another mover may have written the same.
        let epoch = match (append.status, held_by(append, &loaded)) {
            (RunStatus::Finished, _) | (_, Held::NotAsked) => None,
            (_, Held::Us(epoch)) => Some(epoch),
            (_, Held::NotUs) => return Ok(Standing::Others(AppendError::Fenced { run })),
        };
        Ok(Standing::Ours(appended(entry, epoch)))
    }

    /// Takes the lease of a run that nobody moves. The owner must be the caller's alone, so that a lease whose answer was
    /// lost is known to be its own.
    ///
    /// # Errors
    /// As [`Store::claim`](crate::ports::store::Store::claim).
    pub(crate) async fn claim(&self, run: RunId, owner: &str, lease: Duration) -> Result<Lease, AppendError> {
        let doubt = match self.store().claim(run, owner, lease).await {
            Err(AppendError::Fault(doubt)) if is_doubt(&doubt) => doubt,
            answer => return answer,
        };
        let mut patience = Patience::of(self.settings().doubt_patience);
        loop {
            match self.store().load(run, u64::MAX).await {
                Ok(Some(LoadedRun { lease: Some(lease), .. })) if lease.owner == owner => return Ok(lease),
                Ok(_) => match self.store().claim(run, owner, lease).await {
                    Err(AppendError::Fault(_)) => {}
                    // The first claim may have come in between.
                    Err(AppendError::Leased { owner: holder, .. }) if holder == owner => {}
                    answer => return answer,
                },
                Err(_) => {}
            }
            if !patience.wait().await {
                return Err(doubt.into());
            }
        }
    }

    /// Gives a lease back. Doing so twice is no different from doing so once.
    ///
    /// # Errors
    /// The store is out of order. The lease then ends by itself.
    pub(crate) async fn release(&self, lease: &Lease) -> Result<(), StoreFault> {
        let mut patience = Patience::of(self.settings().doubt_patience);
        loop {
            match self.store().release(lease).await {
                Err(doubt) if is_doubt(&doubt) => {
                    if !patience.wait().await {
                        return Err(doubt);
                    }
                }
                answer => return answer,
            }
        }
    }
}

fn is_doubt(fault: &StoreFault) -> bool {
    fault.kind == StoreFaultKind::Unknown
}

fn appended(entry: &Entry, epoch: Option<u64>) -> Appended {
    Appended { revision: entry.revision, seq: entry.seq, pause_group: entry.pause_group, epoch }
}

/// What stands where an append was to be written.
enum Standing {
    /// Nothing yet.
    Nobodys,
    /// The append itself.
    Ours(Appended),
    /// Something else, or the run is somebody else's by now.
    Others(AppendError),
}

/// Who holds the lease under which an append was written.
enum Held {
    Us(u64),
    NotUs,
    /// It was written without one, or gave it back.
    NotAsked,
}

fn held_by(append: &Append, loaded: &LoadedRun) -> Held {
    let is_ours = |lease: &&Lease| match &append.lease {
        LeaseChange::Take { owner, .. } => lease.owner == *owner,
        LeaseChange::Hold { epoch } => lease.epoch == *epoch,
        LeaseChange::Keep | LeaseChange::Release { .. } => false,
    };
    match append.lease {
        LeaseChange::Keep | LeaseChange::Release { .. } => Held::NotAsked,
        LeaseChange::Take { .. } | LeaseChange::Hold { .. } => {
            loaded.lease.as_ref().filter(is_ours).map_or(Held::NotUs, |lease| Held::Us(lease.epoch))
        }
    }
}

/// Waits longer and longer, and not for ever.
struct Patience {
    until: Instant,
    wait: Duration,
}

impl Patience {
    fn of(length: Duration) -> Self {
        Self { until: Instant::now() + length, wait: WAIT_MIN }
    }

    /// Waits; says whether there is any point in asking again.
    async fn wait(&mut self) -> bool {
        if Instant::now() + self.wait > self.until {
            return false;
        }
        tokio::time::sleep(self.wait).await;
        self.wait = (self.wait * 2).min(WAIT_MAX);
        true
    }
}
