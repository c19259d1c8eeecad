//! What stores index of an append: the pauses that opened or changed, the rules that outlive the run, and who is to be
//! told.

use holdpoint_core::audit::AuditNote;
use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{PauseId, RuleId};
use holdpoint_core::pause::PauseState;
use holdpoint_core::policy::Lifetime;
use holdpoint_core::run::Run;
use holdpoint_core::step::Step;
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::Allowance;

use crate::ports::notifier::{NoticeKey, NoticeKind, NotifyRule};
use crate::ports::store::{PauseRow, PauseStatus, RuleChange, RunStatus};

/// The rows that go with events; `run` is the run right after them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Projection {
    pub(crate) pauses: Vec<PauseRow>,
    pub(crate) rules: Vec<RuleChange>,
    pub(crate) audit: Vec<AuditNote>,
    pub(crate) notices: Vec<NoticeKey>,
}

impl Projection {
    /// Adds the rows for events that were just taken as fact. By `notify` people are told of pauses.
    pub(crate) fn add(&mut self, run: &Run, events: &[RunEvent], at: Timestamp, notify: &[NotifyRule]) {
        for event in events {
            self.audit.extend(AuditNote::of(run, event, at));
            match event {
                RunEvent::PauseOpened(opened) => {
                    if let Some(row) = opened_row(run, opened.number) {
                        self.tell(&row, NoticeKind::Opened, notify);
                        self.pauses.push(row);
                    }
                }
                RunEvent::PauseDecided(decided) => {
                    self.set(run, decided.number, PauseStatus::Decided, notify);
                    self.used(run, decided.rule);
                }
                RunEvent::PauseExpired(expired) => self.set(run, expired.number, PauseStatus::Expired, notify),
                RunEvent::PauseWithdrawn(withdrawn) => self.set(run, withdrawn.number, PauseStatus::Withdrawn, notify),
                RunEvent::CallAllowed(allowed) => {
                    if let Allowance::Rule(rule) = allowed.by {
                        self.used(run, Some(rule));
                    }
                }
                RunEvent::CallDenied(denied) => self.used(run, denied.rule),
                RunEvent::RuleMade(rule) if rule.lifetime != Lifetime::Run => {
                    self.rules.push(RuleChange::Made(rule.clone()));
                }
                RunEvent::RuleRevoked(revoked) => self.rules.push(RuleChange::Revoked(revoked.rule)),
                _ => {}
            }
        }
    }

    /// Settles a row: one of this very append, of which nobody hears then, or one that is already stored.
    fn set(&mut self, run: &Run, number: u32, status: PauseStatus, notify: &[NotifyRule]) {
        let id = PauseId { run: run.id(), number };
        match self.pauses.iter_mut().find(|row| row.id == id) {
            Some(row) => {
                row.status = status;
                self.notices.retain(|notice| notice.pause != id || notice.kind != NoticeKind::Opened);
            }
            None => {
                let Some(row) = opened_row(run, number) else { return };
                self.tell(&row, NoticeKind::Settled, notify);
                self.pauses.push(PauseRow { status, ..row });
            }
        }
    }

    /// Notes who is to be told of a pause.
    fn tell(&mut self, row: &PauseRow, kind: NoticeKind, notify: &[NotifyRule]) {
        for rule in notify.iter().filter(|rule| rule.admits(&row.agent, row.kind)) {
            let key = NoticeKey { pause: row.id, kind, destination: rule.destination.clone() };
            // Several rules may name one destination.
            if !self.notices.contains(&key) {
                self.notices.push(key);
            }
        }
    }

    /// A rule of this run that ends with it is counted in the journal; the others are counted in the store.
    fn used(&mut self, run: &Run, rule: Option<RuleId>) {
        let Some(rule) = rule else { return };
        let of_this_run = run.rules().iter().any(|known| known.id == rule && known.lifetime == Lifetime::Run);
        if !of_this_run {
            self.rules.push(RuleChange::Used(rule));
        }
    }
}

/// What the run needs next, as far as the store must know.
pub(crate) fn status(run: &Run) -> RunStatus {
    match run.next_step() {
        Step::Finished(_) => RunStatus::Finished,
        Step::AwaitDecisions { .. } => RunStatus::Waiting,
        Step::Work(_) | Step::AwaitCalls => RunStatus::Working,
    }
}

fn opened_row(run: &Run, number: u32) -> Option<PauseRow> {
    let id = PauseId { run: run.id(), number };
    let pause = run.pause(id).ok()?;
    let (agent, tool) = run.asker(id)?;
    let expires_at = match &pause.state {
        PauseState::Open { expires_at } => *expires_at,
        _ => None,
    };
    Some(PauseRow {
        id,
        kind: pause.kind,
        status: PauseStatus::Open,
        session: run.session()?.clone(),
        agent: agent.clone(),
        tool: tool.cloned(),
        opened_at: pause.opened_at,
        expires_at,
        group: 0,
    })
}
