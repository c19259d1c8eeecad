//! What came of a trial of linearizability: every pause's history against the model, the journals and the counter.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use futures_util::stream::{self, StreamExt as _};
use holdpoint_testkit::linear::{
    End, Operation, PauseAnswer, PauseCall, PauseModel, PauseStands, Verdict, check, disagreement,
};

use super::cluster::Cluster;
use super::journal::Journal;
use super::table::{Live, Table};

/// How long the search for an order may go on, for one pause.
const STEPS_MAX: usize = 5_000_000;

/// How much this machine's clock may differ from what the database's said of it, in microseconds: the two are read one
/// after the other.
const SLACK: u64 = 50_000;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What must not be, in words.
    pub(super) violations: Vec<String>,
    pub(super) pauses: usize,
    pub(super) operations: usize,
    /// How often pauses ended in each way.
    pub(super) ends: BTreeMap<&'static str, usize>,
    /// Pauses that at least two wanted to settle at the same time.
    pub(super) contended: usize,
    /// Deciders who were told that they lost.
    pub(super) losers: usize,
    /// Effects that were counted.
    pub(super) effects: u64,
}

/// Checks what clients were told.
pub(super) fn of_clients(table: &Table) -> Found {
    let mut found = Found { violations: table.wrong(), ..Found::default() };
    for live in table.all() {
        let mut history = live.history();
        found.pauses += 1;
        found.operations += history.len();
        found.contended += usize::from(is_contended(&history));
        found.losers += history.iter().filter(|told| matches!(told.answer(), Some(PauseAnswer::Lost(_)))).count();
        // From its deadline on it may expire, and nobody answers for that.
        if let Some(deadline) = live.deadline {
            let (began, end) = (deadline.saturating_sub(SLACK), End::Unknown);
            history.push(Operation { client: u32::MAX, call: PauseCall::Expire, began, end });
        }
        if let Some(end) = history.iter().find_map(told_end) {
            *found.ends.entry(end).or_default() += 1;
        }
        let mut violate =
            |what: String| found.violations.push(format!("{} of {}: {what}", live.pause, live.agent.name));
        if let Some(what) = disagreement(&history) {
            violate(what);
        }
        match check::<PauseModel>(&history, STEPS_MAX) {
            Verdict::Linearizable => {}
            Verdict::Violated(what) => violate(what),
            Verdict::Undecided(steps) => violate(format!("no order was found or ruled out in {steps} steps")),
        }
    }
    found
}

/// How the pause ended, where somebody was told.
fn told_end(operation: &Operation<PauseCall, PauseAnswer>) -> Option<&'static str> {
    match operation.answer()? {
        PauseAnswer::Won => Some("decided"),
        PauseAnswer::Over | PauseAnswer::Saw(PauseStands::Open) => None,
        PauseAnswer::Lost(stands) | PauseAnswer::Saw(stands) => match stands {
            PauseStands::Open => None,
            PauseStands::Decided(_) => Some("decided"),
            PauseStands::Expired => Some("expired"),
            PauseStands::Withdrawn => Some("withdrawn"),
        },
    }
}

fn is_contended(history: &[Operation<PauseCall, PauseAnswer>]) -> bool {
    let settling: Vec<_> = history.iter().filter(|operation| operation.call != PauseCall::Read).collect();
    let overlap = |one: &Operation<PauseCall, PauseAnswer>, other: &Operation<PauseCall, PauseAnswer>| {
        one.began < other.ended() && other.began < one.ended()
    };
    settling.iter().enumerate().any(|(index, one)| settling[index + 1..].iter().any(|other| overlap(one, other)))
}

/// Checks what is stored, and what was counted outside, against what clients were told last.
pub(super) async fn of_store(cluster: &Cluster, table: &Table, found: &mut Found) -> Result<()> {
    let store = cluster.store().await?;
    let effects = cluster.effects.by_run();
    found.effects = effects.values().flatten().map(|times| u64::from(*times)).sum();
    let load = |live: Arc<Live>| {
        let store = store.clone();
        async move {
            let run = live.run.parse().map_err(|_| anyhow::anyhow!("{} is no run", live.run))?;
            let loaded = store.load(run, 0).await?.with_context(|| format!("run {} is gone", live.run))?;
            anyhow::Ok((live, Journal::read(&loaded)))
        }
    };
    let mut journals = stream::iter(table.all().into_iter().map(load)).buffer_unordered(8);
    while let Some(read) = journals.next().await {
        let (live, journal) = read?;
        let mut flaws = journal.flaws();
        flaws.extend(journal.effect_flaws(live.agent, effects.get(&live.run).map_or(&[], Vec::as_slice)));
        flaws.extend(differs(&live, &journal));
        found.violations.extend(flaws.into_iter().map(|flaw| format!("{} of {}: {flaw}", live.pause, live.agent.name)));
    }
    Ok(())
}

/// What a client was told that is not what is stored.
fn differs(live: &Live, journal: &Journal) -> Option<String> {
    let history = live.history();
    let last = history.iter().filter(|told| matches!(told.answer(), Some(PauseAnswer::Saw(_))));
    let last = last.max_by_key(|told| told.ended())?;
    (last.answer() != Some(&PauseAnswer::Saw(journal.stands())))
        .then(|| format!("the last look saw {:?}, and stored is {:?}", last.answer(), journal.ends))
}
