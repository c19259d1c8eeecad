//! The inbox: what waits for a person, oldest first, in pages.

use holdpoint_core::ids::PauseId;
use holdpoint_core::pause::PauseView;
use holdpoint_core::refusal::Refusal;

use crate::fault::RunError;
use crate::ports::store::{PauseCursor, PauseFilter, PauseRow};
use crate::runtime::Runtime;
use crate::use_cases::lists::check_page;

/// A page of pauses.
#[derive(Debug, Clone)]
pub struct PausePage {
    /// The pauses.
    pub pauses: Vec<PauseSummary>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<PauseCursor>,
}

/// One line of the inbox.
#[derive(Debug, Clone)]
pub struct PauseSummary {
    /// What the store knows of it.
    pub row: PauseRow,
    /// The name that pauses opened together share on the wires that want one.
    pub key: String,
}

impl Runtime {
    /// A page of pauses.
    ///
    /// # Errors
    /// The page is larger than one may be, or the store is out of order.
    pub async fn list_pauses(&self, filter: &PauseFilter) -> Result<PausePage, RunError> {
        check_page("pauses on a page", filter.limit)?;
        let rows = self.store().list_pauses(filter).await?;
        let next = rows.last().filter(|_| rows.len() == filter.limit).map(PauseRow::cursor);
        let summary = |row: PauseRow| PauseSummary { key: format!("{}_{}", row.session, row.group), row };
        Ok(PausePage { pauses: rows.into_iter().map(summary).collect(), next })
    }

    /// One pause with everything that a person needs to decide it.
    ///
    /// # Errors
    /// There is no such pause.
    pub async fn read_pause(&self, id: PauseId) -> Result<PauseView, RunError> {
        let run = match self.read_run(id.run).await {
            Err(RunError::Refused(Refusal::RunNotFound(_))) => return Err(Refusal::PauseNotFound(id).into()),
            run => run?,
        };
        Ok(run.pause_view(id).ok_or(Refusal::PauseNotFound(id))?)
    }
}
