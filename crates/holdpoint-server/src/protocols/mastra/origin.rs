//! What a run keeps of how its client named it: the run's own name, the thread, and for whom the thread is.

use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_core::run::Run;
use holdpoint_runtime::Runtime;
use holdpoint_runtime::context::Context;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Builder;

use crate::problem::Problem;

/// Names that a client gave. They are stored with the run, as its context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origin {
    /// What the client calls the run, where that is not our own name of it.
    #[serde(rename = "runId", default, skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<String>,
    /// For whom the thread is kept.
    #[serde(rename = "resourceId", default, skip_serializing_if = "Option::is_none")]
    pub(super) resource: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    mastra: Origin,
}

impl Origin {
    /// What a run keeps; nothing where it was started in another way.
    pub(super) fn of(run: &Run) -> Self {
        let kept = run.context().and_then(|context| context.decode::<Kept>().ok());
        kept.map(|kept| kept.mastra).unwrap_or_default()
    }

    /// How it is kept; `None` where there is nothing to keep.
    pub(super) fn to_context(&self) -> Result<Option<Context>, Problem> {
        if *self == Self::default() {
            return Ok(None);
        }
        let kept = Kept { mastra: self.clone() };
        Context::new(&kept).map(Some).map_err(|_| Problem::internal("names that have no JSON form"))
    }
}

/// The run that a client means by this name: our own names stand for themselves, and any other leads to one run.
pub(super) fn run_id(name: &str) -> RunId {
    name.parse().unwrap_or_else(|_| {
        let mut hash = Sha256::new();
        hash.update(b"holdpoint mastra run\0");
        hash.update(name.as_bytes());
        let digest: [u8; 32] = hash.finalize().into();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        RunId::new(Builder::from_custom_bytes(bytes).into_uuid())
    })
}

/// What clients are told a run is called.
pub(super) fn run_name(run: &Run) -> String {
    Origin::of(run).run.unwrap_or_else(|| run.id().to_string())
}

/// The thread of a run: its session, where somebody named one.
pub(super) fn thread(run: &Run) -> Option<&SessionId> {
    run.session().filter(|session| **session != Runtime::own_session(run.id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_one_run_and_our_own_names_stand_for_themselves() {
        let own = "run_0198c0ffee007000800000000000beef";
        assert_eq!(run_id(own).to_string(), own);
        assert_eq!(run_id("fixed-run-1"), run_id("fixed-run-1"));
        assert_ne!(run_id("fixed-run-1"), run_id("fixed-run-2"));
        let long = run_id("bbfe6948-f257-4009-a9ae-b4185b9e96a0");
        assert_eq!(run_id(&long.to_string()), long);
    }

    #[test]
    fn what_is_kept_is_found_again() {
        let origin = Origin { run: Some("r".to_owned()), resource: Some("user-1".to_owned()) };
        let context = origin.to_context().unwrap().unwrap();
        let kept: Kept = context.decode().unwrap();
        assert_eq!(kept.mastra, origin);
        assert!(Origin::default().to_context().unwrap().is_none());
    }
}
