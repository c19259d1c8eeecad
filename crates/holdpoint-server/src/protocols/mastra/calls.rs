//! Which `toolCallId` stands for which question.
//!
//! A call of the agent that was asked goes by the provider's id of it; one of an agent below goes by its place as well,
//! since ids are distinct only within one conversation. A call that is asked about once more has a new name there: a
//! decision that arrives late must not answer a question that its maker never saw.

use holdpoint_core::ids::{CallPath, PauseId};
use holdpoint_core::pause::{Pause, PauseKind, PauseView, Subject};
use holdpoint_core::run::Run;

/// What a call is called in `tool-call` and `tool-result`.
pub(super) fn call_name(path: &CallPath, call_id: &str) -> String {
    if path.frame().is_root() { call_id.to_owned() } else { format!("{path}:{call_id}") }
}

/// A pause of a run, under the name by which clients answer it.
#[derive(Debug, Clone)]
pub(super) struct Named {
    /// `toolCallId`.
    pub(super) name: String,
    /// What is asked.
    pub(super) view: PauseView,
}

/// One pause with its name.
pub(super) fn named(run: &Run, id: PauseId) -> Option<Named> {
    let view = run.pause_view(id)?;
    Some(Named { name: name(run, &view), view })
}

/// Every pause that the run ever opened, oldest first.
pub(super) fn all(run: &Run) -> Vec<Named> {
    run.pauses().iter().filter_map(|pause| named(run, pause.id)).collect()
}

/// The pauses that wait.
pub(super) fn waiting(run: &Run) -> Vec<Named> {
    run.pauses().iter().filter(|pause| pause.is_open()).filter_map(|pause| named(run, pause.id)).collect()
}

/// The names of what waits.
pub(super) fn waiting_names(run: &Run) -> Vec<String> {
    waiting(run).into_iter().map(|named| named.name).collect()
}

fn name(run: &Run, view: &PauseView) -> String {
    let (Some(call), Subject::Call { path, .. }) = (&view.call, &view.pause.subject) else {
        // The model's own words are the question: there is no call.
        return view.id().to_string();
    };
    let base = call_name(path, &call.call_id);
    let is_doubt = |pause: &Pause| pause.kind == PauseKind::InDoubt;
    let is_alike = |pause: &&Pause| {
        matches!(&pause.subject, Subject::Call { path: of, .. } if of == path)
            && is_doubt(pause) == is_doubt(&view.pause)
            && pause.id.number <= view.id().number
    };
    match (is_doubt(&view.pause), run.pauses().iter().filter(is_alike).count()) {
        (false, 0 | 1) => base,
        (false, times) => format!("{base}#{times}"),
        (true, times) => format!("{base}#doubt{times}"),
    }
}
