//! What is wrong with what is stored, or with what is to be: the same for every store.

use holdpoint_core::ids::RunId;
use holdpoint_core::json::JsonProblem;
use holdpoint_core::refusal::Refusal;
use holdpoint_runtime::ports::store::{StoreFault, StoreFaultKind};

/// The fault of an entry that cannot be read.
pub(crate) fn unreadable(run: RunId, revision: u64, refusal: &Refusal) -> StoreFault {
    let kind = match refusal {
        Refusal::FormatNewer { .. } => StoreFaultKind::Newer,
        _ => StoreFaultKind::Corrupt,
    };
    StoreFault::because("read an entry", kind, format!("entry {revision} of {run}: {refusal}"))
}

/// The fault of an append that says nothing: there is no place for it among the session's events.
pub(crate) fn no_events(run: RunId) -> StoreFault {
    StoreFault::because("append", StoreFaultKind::Corrupt, format!("an append to {run} has no events"))
}

/// The fault of a note for the audit that has no JSON form.
pub(crate) fn unwritable(run: RunId, problem: JsonProblem) -> StoreFault {
    StoreFault::because("append", StoreFaultKind::Corrupt, format!("a note about {run}: {problem}"))
}

/// The fault of a run whose entries do not follow one another.
pub(crate) fn incomplete(run: RunId) -> StoreFault {
    StoreFault::because("load a run", StoreFaultKind::Corrupt, format!("entries of {run} are missing"))
}
