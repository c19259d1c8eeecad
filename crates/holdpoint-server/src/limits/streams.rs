//! How many streams and long polls one caller may hold open, and all callers together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use holdpoint_core::ids::ActorId;

use crate::problem::{Code, Problem};

/// The streams that are open, by caller. Cheap to clone; clones count together.
#[derive(Clone)]
pub struct StreamSlots(Arc<Slots>);

struct Slots {
    per_caller: usize,
    in_all: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    by_caller: HashMap<ActorId, usize>,
    in_all: usize,
}

/// The right to hold one stream open, as long as it lives.
pub struct StreamPermit {
    slots: StreamSlots,
    actor: ActorId,
}

impl StreamSlots {
    /// So many for each caller, and so many in all.
    pub fn new(per_caller: usize, in_all: usize) -> Self {
        Self(Arc::new(Slots { per_caller, in_all, open: Mutex::default() }))
    }

    /// Takes one for a caller.
    ///
    /// # Errors
    /// 429 `too_many_streams`.
    pub fn take(&self, actor: &ActorId) -> Result<StreamPermit, Problem> {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.by_caller.get(actor).copied().unwrap_or(0);
        let refuse = |who: &str, limit: usize| {
            let detail = format!("{who} holds {limit} streams and long polls open already: close one, or try again");
            Problem::new(Code::TOO_MANY_STREAMS, detail).with("limit", limit).retry_after(5)
        };
        if own >= self.0.per_caller {
            return Err(refuse("the caller", self.0.per_caller));
        }
        if open.in_all >= self.0.in_all {
            return Err(refuse("the server", self.0.in_all));
        }
        open.in_all += 1;
        open.by_caller.insert(actor.clone(), own + 1);
        Ok(StreamPermit { slots: self.clone(), actor: actor.clone() })
    }

    /// How many are open.
    pub fn open(&self) -> usize {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner).in_all
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.slots.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.in_all = open.in_all.saturating_sub(1);
        match open.by_caller.get_mut(&self.actor) {
            Some(own) if *own > 1 => *own -= 1,
            _ => {
                open.by_caller.remove(&self.actor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_holds_so_many_streams_and_no_more_and_a_closed_one_counts_no_longer() {
        let slots = StreamSlots::new(2, 3);
        let (ana, ben) = (ActorId::new("ana").unwrap(), ActorId::new("ben").unwrap());
        let first = slots.take(&ana).unwrap();
        let _second = slots.take(&ana).unwrap();
        assert_eq!(slots.take(&ana).err().map(|problem| problem.code()), Some("too_many_streams"));
        let _third = slots.take(&ben).unwrap();
        assert_eq!(slots.take(&ben).err().map(|problem| problem.code()), Some("too_many_streams"));
        drop(first);
        assert!(slots.take(&ana).is_ok());
        assert_eq!(slots.open(), 2);
    }
}
