//! Runs that begin under a client's own name: the run's id follows from caller and name, so that the same request once more
//! finds what it began, from any process.

use holdpoint_core::event::{RunEvent, RunStarted};
use holdpoint_core::ids::{ActorId, RunId};
use holdpoint_core::refusal::Refusal;
use holdpoint_runtime::{RunError, Runtime};
use sha2::{Digest as _, Sha256};
use uuid::Builder;

/// The id of the run that this caller begins under this name; each door has names of its own.
pub(super) fn run_id(door: &str, caller: &ActorId, name: &str) -> RunId {
    let mut hash = Sha256::new();
    for part in [door, caller.as_str(), name] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    RunId::new(Builder::from_custom_bytes(bytes).into_uuid())
}

/// How the run of this id started, if it is there.
pub(super) async fn started(runtime: &Runtime, run: RunId) -> Result<Option<RunStarted>, RunError> {
    match runtime.read_journal(run).await {
        Ok(entries) => Ok(entries.iter().flat_map(|entry| entry.events.iter()).find_map(|event| match event {
            RunEvent::RunStarted(started) => Some(started.clone()),
            _ => None,
        })),
        Err(RunError::Refused(Refusal::RunNotFound(_))) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_follows_from_door_caller_and_name_and_from_nothing_else() {
        let actor = |name: &str| ActorId::new(name).unwrap();
        let run = |door: &str, caller: &str, name: &str| run_id(door, &actor(caller), name);
        assert_eq!(run("d", "ana", "k"), run("d", "ana", "k"));
        let all = [
            run("d", "ana", "k"),
            run("e", "ana", "k"),
            run("d", "ben", "k"),
            run("d", "ana", "kk"),
            run("d", "anak", ""),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other != one));
        }
        assert_eq!(run("d", "ana", "k").to_string().parse(), Ok(run("d", "ana", "k")));
    }
}
