//! A run with every pause it ever opened as it was shown to people, read from its journal.
//!
//! A call's arguments are part of the run's state only as long as its turn lasts. What was asked, and with which
//! arguments, must be told for ever: so it is read from the journal, where the question arose.

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{PauseId, RunId};
use holdpoint_core::pause::{PauseState, PauseView};
use holdpoint_core::record::Entry;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::{RunError, Runtime};

/// A run with its pauses.
pub(crate) struct Dossier {
    /// The run as it stands.
    pub(crate) run: Run,
    /// Its pauses, in the order of opening.
    pub(crate) pauses: Vec<PauseFile>,
}

/// A pause as it was shown, standing as it does now.
pub(crate) struct PauseFile {
    /// The question as it was asked; its state is of now.
    pub(crate) view: PauseView,
    /// The session's number that pauses opened together share.
    pub(crate) group: u64,
    /// Until when it waits, or waited.
    pub(crate) expires_at: Option<Timestamp>,
}

impl Dossier {
    /// Reads a run.
    ///
    /// # Errors
    /// There is no such run.
    pub(crate) async fn read(runtime: &Runtime, run: RunId) -> Result<Self, RunError> {
        Ok(Self::of(run, &runtime.read_journal(run).await?))
    }

    /// Reads the run of a pause.
    ///
    /// # Errors
    /// There is no such pause.
    pub(crate) async fn of_pause(runtime: &Runtime, pause: PauseId) -> Result<Self, RunError> {
        match Self::read(runtime, pause.run).await {
            Ok(dossier) if dossier.pause(pause).is_some() => Ok(dossier),
            Ok(_) | Err(RunError::Refused(Refusal::RunNotFound(_))) => Err(Refusal::PauseNotFound(pause).into()),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn of(id: RunId, entries: &[Entry]) -> Self {
        let mut run = Run::new(id);
        let mut pauses: Vec<PauseFile> = Vec::new();
        for entry in entries {
            for (event, at) in entry.timed() {
                run.apply(event, at);
                if let RunEvent::PauseOpened(opened) = event {
                    let view = run.pause_view(PauseId { run: id, number: opened.number });
                    let group = entry.pause_group.unwrap_or_default();
                    pauses.extend(view.map(|view| PauseFile { view, group, expires_at: opened.expires_at }));
                }
            }
        }
        for file in &mut pauses {
            if let Ok(now) = run.pause(file.view.id()) {
                file.view.pause = now.clone();
            }
        }
        Self { run, pauses }
    }

    /// One pause.
    pub(crate) fn pause(&self, id: PauseId) -> Option<&PauseFile> {
        self.pauses.iter().find(|file| file.view.id() == id)
    }

    /// The pauses that wait.
    pub(crate) fn open(&self) -> impl Iterator<Item = &PauseFile> {
        self.pauses.iter().filter(|file| matches!(file.view.pause.state, PauseState::Open { .. }))
    }
}
