//! What goes wrong while clients work: instances die, stand still, are cut off or started anew, and the database dies.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use tokio_util::sync::CancellationToken;

use super::cluster::{Cluster, INSTANCES};
use crate::chance::Chance;

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// An instance is killed, and started again after a while.
    Kill,
    /// An instance stands still for longer than a lease, and goes on as if nothing had been.
    Freeze,
    /// An instance cannot reach the database for a while.
    Cut,
    /// An instance is stopped in good order and started again.
    Replace,
    /// The database dies and is started again.
    Database,
}

impl Fault {
    /// Every fault.
    pub(super) const ALL: [Self; 5] = [Self::Kill, Self::Freeze, Self::Cut, Self::Replace, Self::Database];

    /// Those that end an instance.
    pub(super) const RESTARTS: [Self; 2] = [Self::Kill, Self::Replace];
}

/// Makes things go wrong, and counts how often.
pub(super) struct Nemesis {
    cluster: Arc<Cluster>,
    faults: Vec<Fault>,
    happened: Mutex<BTreeMap<Fault, u64>>,
}

impl Nemesis {
    /// One that does these things.
    pub(super) fn new(cluster: Arc<Cluster>, faults: &[Fault]) -> Arc<Self> {
        Arc::new(Self { cluster, faults: faults.to_vec(), happened: Mutex::default() })
    }

    /// How often each thing went wrong.
    pub(super) fn happened(&self) -> BTreeMap<Fault, u64> {
        self.happened.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether each of them happened so often.
    pub(super) fn has_done(&self, times: u64) -> bool {
        let happened = self.happened();
        self.faults.iter().all(|fault| happened.get(fault).copied().unwrap_or(0) >= times)
    }

    /// One fault after the other, in an order of the seed, until it is stopped; then everything works again.
    pub(super) async fn play(self: Arc<Self>, seed: u64, stop: CancellationToken) -> Result<()> {
        let mut chance = Chance::new(seed, usize::MAX);
        let mut deck = Vec::new();
        while !stop.is_cancelled() {
            if deck.is_empty() {
                deck.clone_from(&self.faults);
            }
            let fault = deck.swap_remove(chance.below(deck.len() as u64) as usize);
            self.inflict(fault, &mut chance).await?;
            *self.happened.lock().unwrap_or_else(PoisonError::into_inner).entry(fault).or_default() += 1;
            let rest = Duration::from_millis(300 + chance.below(1_500));
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(rest) => {}
            }
        }
        Ok(())
    }

    /// Lets something go wrong, and makes it right again.
    async fn inflict(&self, fault: Fault, chance: &mut Chance) -> Result<()> {
        let number = chance.below(INSTANCES as u64) as usize;
        let mut millis = |least: u64, more: u64| Duration::from_millis(least + chance.below(more));
        let cluster = &self.cluster;
        match fault {
            Fault::Kill => {
                cluster.kill(number).await?;
                tokio::time::sleep(millis(0, 1_500)).await;
                cluster.clone().begin(number).await?;
            }
            Fault::Freeze => {
                let lease = u64::try_from(cluster.setup.lease.as_millis())?;
                cluster.freeze(number)?;
                tokio::time::sleep(millis(lease * 5 / 4, lease * 2)).await;
                cluster.thaw(number)?;
            }
            Fault::Cut => {
                cluster.cut(number);
                tokio::time::sleep(millis(20, 2_500)).await;
                cluster.mend(number);
            }
            Fault::Replace => {
                cluster.stop(number).await?;
                cluster.clone().begin(number).await?;
            }
            Fault::Database => cluster.restart_database(millis(0, 1_000)).await?,
        }
        Ok(())
    }
}
