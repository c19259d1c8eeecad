//! What is stored of a run once everything is over, held against what people and the world outside saw.

use holdpoint::store::LoadedRun;
use holdpoint::{Decision, Entry, Outcome, RunEvent, Timestamp};
use holdpoint_testkit::linear::{Choice, PauseStands, Winner};

use super::agents::Agent;
use super::api::client_number;

/// What the journal of a run says of its first pause and its call.
#[derive(Debug)]
pub(super) struct Journal {
    /// How the pause ended, and when; more than one end is a fault.
    pub(super) ends: Vec<(PauseStands, Timestamp)>,
    pub(super) expires_at: Option<Timestamp>,
    /// How often the call was started.
    pub(super) starts: usize,
    /// What came of the call; more than one outcome is a fault.
    pub(super) outcomes: Vec<Outcome>,
    /// Whether a person was asked what became of the call.
    pub(super) was_in_doubt: bool,
    /// How often the run ended.
    pub(super) finishes: usize,
    /// Whether the entries are numbered without a gap.
    pub(super) is_dense: bool,
}

impl Journal {
    pub(super) fn read(run: &LoadedRun) -> Self {
        let mut journal = Self {
            ends: Vec::new(),
            expires_at: None,
            starts: 0,
            outcomes: Vec::new(),
            was_in_doubt: false,
            finishes: 0,
            is_dense: run.entries.iter().zip(1..).all(|(entry, revision)| entry.revision == revision),
        };
        for (event, at) in run.entries.iter().flat_map(Entry::timed) {
            journal.take(event, at);
        }
        journal
    }

    fn take(&mut self, event: &RunEvent, at: Timestamp) {
        match event {
            RunEvent::PauseOpened(opened) if opened.number == 1 => self.expires_at = opened.expires_at,
            RunEvent::PauseOpened(_) => self.was_in_doubt = true,
            RunEvent::PauseDecided(decided) if decided.number == 1 => {
                let choice = if decided.decision == Decision::Approve { Choice::Approve } else { Choice::Deny };
                let client = client_number(decided.by.as_str()).unwrap_or(u32::MAX);
                self.ends.push((PauseStands::Decided(Winner { client, choice }), at));
            }
            RunEvent::PauseExpired(expired) if expired.number == 1 => self.ends.push((PauseStands::Expired, at)),
            RunEvent::PauseWithdrawn(gone) if gone.number == 1 => self.ends.push((PauseStands::Withdrawn, at)),
            RunEvent::CallStarted(_) => self.starts += 1,
            RunEvent::CallAnswered(answered) => self.outcomes.push(answered.outcome.clone()),
            RunEvent::RunFinished(_) => self.finishes += 1,
            _ => {}
        }
    }

    /// How the pause stands.
    pub(super) fn stands(&self) -> PauseStands {
        self.ends.first().map_or(PauseStands::Open, |(stands, _)| *stands)
    }

    /// What is wrong with it by itself.
    pub(super) fn flaws(&self) -> Vec<String> {
        let mut flaws = Vec::new();
        let mut flaw = |is_flaw: bool, what: &str| {
            if is_flaw {
                flaws.push(format!("{what}: {self:?}"));
            }
        };
        flaw(!self.is_dense, "entries are missing");
        flaw(self.ends.len() > 1, "the pause ended more than once");
        flaw(self.outcomes.len() > 1, "the call has more than one outcome");
        flaw(self.finishes > 1, "the run ended more than once");
        for (stands, at) in &self.ends {
            let Some(expires_at) = self.expires_at else { continue };
            match stands {
                PauseStands::Expired => flaw(*at < expires_at, "it expired before its time"),
                PauseStands::Decided(_) => flaw(*at >= expires_at, "it was decided after its time"),
                PauseStands::Open | PauseStands::Withdrawn => {}
            }
        }
        flaws
    }

    /// What is wrong with the effects that were counted outside, by key.
    pub(super) fn effect_flaws(&self, agent: Agent, counted: &[u32]) -> Vec<String> {
        let mut flaws = Vec::new();
        let mut flaw = |is_flaw: bool, what: &str| {
            if is_flaw {
                flaws.push(format!("{what}: {counted:?} {self:?}"));
            }
        };
        let is_approved = matches!(self.stands(), PauseStands::Decided(Winner { choice: Choice::Approve, .. }));
        flaw(counted.len() > 1, "one call took effect under several keys");
        flaw(!is_approved && !counted.is_empty(), "what nobody approved took effect");
        flaw(!agent.may_repeat() && counted.iter().sum::<u32>() > 1, "an effect happened twice");
        flaw(!agent.may_repeat() && self.starts > 1, "a call was started twice");
        // Where a person said what happened, they had looked at the same counter.
        let has_result = matches!(self.outcomes.first(), Some(Outcome::Result(_)));
        flaw(has_result && counted.len() != 1, "a call that ended well did not take effect");
        flaws
    }
}
