//! A command that is sent again under the same name is the same command: what was stored under the name is its answer,
//! also after a restart. A run's name follows from caller and name; decisions record theirs.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{ActorId, RunId, SessionId};
use holdpoint_core::message::Content;
use holdpoint_runtime::{RunError, Runtime};
use tokio::sync::OwnedMutexGuard;

use crate::protocols::named;

pub(super) use crate::protocols::named::started;

/// The name of the run that this caller begins under this name.
pub(super) fn run_id(caller: &ActorId, request_id: &str) -> RunId {
    named::run_id("holdpoint blocks message", caller, request_id)
}

/// The message that was handed to this run under this name.
pub(super) async fn handed_over(
    runtime: &Runtime,
    run: RunId,
    caller: &ActorId,
    request_id: &str,
) -> Result<Option<Content>, RunError> {
    let entries = runtime.read_journal(run).await?;
    Ok(entries.iter().find_map(|entry| staged_under(&entry.events, caller, request_id)))
}

/// The message that was staged under this name.
fn staged_under(events: &[RunEvent], caller: &ActorId, request_id: &str) -> Option<Content> {
    events.iter().find_map(|event| match event {
        RunEvent::InputStaged(staged) if staged.by == *caller && staged.request.as_deref() == Some(request_id) => {
            Some(staged.content.clone())
        }
        _ => None,
    })
}

/// The commands that are being carried out under a name, and what the latest names were used for. The same command waits
/// for the one before it, and then finds what that one stored.
#[derive(Default, Clone)]
pub(crate) struct Names(Arc<Mutex<Noted>>);

#[derive(Default)]
struct Noted {
    under_way: HashMap<Name, Weak<tokio::sync::Mutex<()>>>,
    used: HashMap<Name, Use>,
    /// In the order in which they were used.
    latest: VecDeque<Name>,
}

/// Who sent a command, and what they called it.
type Name = (ActorId, String);

/// What a command is about: a name stands for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// A message into a session.
    Message(SessionId),
    /// The request of this key.
    Approval(SessionId, String),
    /// The end of what is under way in a session.
    Cancel(SessionId),
}

/// What a name was used for, and the run that a cancel ended.
struct Use {
    target: Target,
    ended: Option<RunId>,
}

/// How many names are noted. In its own session a name is found again for ever, since it is stored with what it did.
const NAMES_MAX: usize = 16_384;

/// The right to carry out a command under a name, as long as it lives.
pub(crate) struct Turn {
    names: Names,
    name: Name,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Names {
    /// Waits until nobody carries out a command of this caller under this name.
    pub(crate) async fn turn(&self, caller: &ActorId, request_id: &str) -> Turn {
        let name = (caller.clone(), request_id.to_owned());
        let gate = {
            let names = &mut self.lock().under_way;
            match names.get(&name).and_then(Weak::upgrade) {
                Some(gate) => gate,
                None => {
                    let gate = Arc::new(tokio::sync::Mutex::new(()));
                    names.insert(name.clone(), Arc::downgrade(&gate));
                    gate
                }
            }
        };
        Turn { names: self.clone(), name, guard: Some(gate.lock_owned().await) }
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Whether the name was used for something else, as far as that is remembered.
    pub(super) fn is_taken(&self, target: &Target) -> bool {
        self.names.lock().used.get(&self.name).is_some_and(|used| used.target != *target)
    }

    /// The run that a cancel of this name ended, or found over: another one since then is not meant.
    pub(super) fn ended(&self) -> Option<RunId> {
        self.names.lock().used.get(&self.name)?.ended
    }

    /// Notes what the name was used for, and the run that a cancel ended.
    pub(super) fn note(&self, target: Target, ended: Option<RunId>) {
        let mut noted = self.names.lock();
        if noted.used.insert(self.name.clone(), Use { target, ended }).is_none() {
            noted.latest.push_back(self.name.clone());
        }
        while noted.latest.len() > NAMES_MAX {
            if let Some(oldest) = noted.latest.pop_front() {
                noted.used.remove(&oldest);
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut noted = self.names.lock();
        self.guard = None;
        if noted.under_way.get(&self.name).is_some_and(|gate| gate.strong_count() == 0) {
            noted.under_way.remove(&self.name);
        }
    }
}
