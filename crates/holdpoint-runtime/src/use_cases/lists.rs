//! Sessions, runs and standing rules, in pages.

use holdpoint_core::ids::{RuleId, RunId, SessionId};
use holdpoint_core::refusal::Refusal;

use crate::fault::RunError;
use crate::ports::store::{
    PAGE_MAX, RuleFilter, RuleRow, RunFilter, RunSummary, SessionFilter, SessionRow, StoredRule,
};
use crate::runtime::Runtime;

/// A page of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPage {
    /// The sessions, the one that began last first.
    pub sessions: Vec<SessionRow>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<SessionId>,
}

/// A page of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPage {
    /// The runs, the one that began last first.
    pub runs: Vec<RunSummary>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<RunId>,
}

/// A page of standing rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulePage {
    /// The rules.
    pub rules: Vec<RuleRow>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<RuleId>,
}

impl Runtime {
    /// A session: who owns it, since when it is there, and how much happened in it.
    ///
    /// # Errors
    /// There is no such session.
    pub async fn session(&self, session: &SessionId) -> Result<SessionRow, RunError> {
        Ok(self.store().session(session).await?.ok_or_else(|| Refusal::SessionNotFound(session.clone()))?)
    }

    /// A page of sessions.
    ///
    /// # Errors
    /// The page is larger than one may be, or the store is out of order.
    pub async fn list_sessions(&self, filter: &SessionFilter) -> Result<SessionPage, RunError> {
        check_page("sessions on a page", filter.limit)?;
        let sessions = self.store().list_sessions(filter).await?;
        let next = last(&sessions, filter.limit).map(|row| row.session.clone());
        Ok(SessionPage { sessions, next })
    }

    /// A page of runs: of one session, or of all of them.
    ///
    /// # Errors
    /// The page is larger than one may be, or the store is out of order.
    pub async fn list_runs(&self, filter: &RunFilter) -> Result<RunPage, RunError> {
        check_page("runs on a page", filter.limit)?;
        let runs = self.store().list_runs(filter).await?;
        let next = last(&runs, filter.limit).map(|row| row.run);
        Ok(RunPage { runs, next })
    }

    /// A page of the rules that stand beyond the runs in which they were made.
    ///
    /// # Errors
    /// The page is larger than one may be, or the store is out of order.
    pub async fn list_rules(&self, filter: &RuleFilter) -> Result<RulePage, RunError> {
        check_page("rules on a page", filter.limit)?;
        let rules = self.store().list_rules(filter).await?;
        let next = last(&rules, filter.limit).map(|row| row.rule.id);
        Ok(RulePage { rules, next })
    }

    /// All rules that stand in a session beyond the runs in which they were made.
    ///
    /// # Errors
    /// The store is out of order.
    pub async fn session_rules(&self, session: &SessionId) -> Result<Vec<StoredRule>, RunError> {
        Ok(self.store().session_rules(session).await?)
    }
}

/// The row behind which the next page begins: only a page that is full has a next one.
fn last<T>(rows: &[T], limit: usize) -> Option<&T> {
    rows.last().filter(|_| rows.len() == limit)
}

/// Refuses a page that is larger than one may be.
pub(super) fn check_page(what: &'static str, found: usize) -> Result<(), Refusal> {
    if found > PAGE_MAX { Err(Refusal::OverLimit { what, limit: PAGE_MAX, found }) } else { Ok(()) }
}
