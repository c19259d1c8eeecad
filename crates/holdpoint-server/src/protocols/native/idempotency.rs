//! A request that is sent again under the same key is the same request: the run's name follows from caller and key.

use holdpoint_core::event::{RunEvent, RunStarted};
use holdpoint_core::ids::{ActorId, RunId};
use holdpoint_core::refusal::Refusal;
use holdpoint_runtime::{RunError, Runtime};
use sha2::{Digest as _, Sha256};
use uuid::Builder;

use crate::problem::{Code, Problem};

/// The name of the run that this caller starts under this key.
pub(super) fn run_id(caller: &ActorId, key: &str) -> RunId {
    let mut hash = Sha256::new();
    for part in ["holdpoint idempotent start", caller.as_str(), key] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    RunId::new(Builder::from_custom_bytes(bytes).into_uuid())
}

/// How the run of this name started, if it is there.
pub(super) async fn started(runtime: &Runtime, run: RunId) -> Result<Option<RunStarted>, Problem> {
    match runtime.read_journal(run).await {
        Ok(entries) => Ok(entries.iter().flat_map(|entry| entry.events.iter()).find_map(|event| match event {
            RunEvent::RunStarted(started) => Some(started.clone()),
            _ => None,
        })),
        Err(RunError::Refused(Refusal::RunNotFound(_))) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The key stands for another request.
pub(super) fn reused() -> Problem {
    Problem::new(
        Code::IDEMPOTENCY_KEY_REUSED,
        "this Idempotency-Key was sent with another request before: use a new key for a new request",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_follows_from_caller_and_key_and_from_nothing_else() {
        let (ana, ben) = (ActorId::new("ana").unwrap(), ActorId::new("ben").unwrap());
        assert_eq!(run_id(&ana, "k"), run_id(&ana, "k"));
        let all =
            [run_id(&ana, "k"), run_id(&ben, "k"), run_id(&ana, "kk"), run_id(&ActorId::new("anak").unwrap(), "")];
        for (index, one) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other != one));
        }
        assert_eq!(run_id(&ana, "k").to_string().parse(), Ok(run_id(&ana, "k")));
    }
}
