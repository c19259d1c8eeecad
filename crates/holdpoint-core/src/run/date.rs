//! The store's time is the one that counts: what was taken as fact before it was written down is dated again.

use crate::event::RunEvent;
use crate::ids::ActorId;
use crate::pause::{Pause, PauseState};
use crate::run::{Begun, Run, State};
use crate::time::Timestamp;

impl Run {
    /// Dates an event that was already taken as fact: the run is then as if it had been applied at this time.
    pub fn date(&mut self, event: &RunEvent, at: Timestamp) {
        let State::Begun(begun) = &mut self.state else { return };
        match event {
            RunEvent::RunStarted(_) => begun.started_at = at,
            RunEvent::PauseOpened(opened) => begun.date_pause(opened.number, |pause| pause.opened_at = at),
            RunEvent::PauseVoted(voted) => begun.date_pause(voted.number, |pause| pause.date_vote(&voted.by, at)),
            RunEvent::PauseDecided(decided) => begun.date_pause(decided.number, |pause| {
                pause.date_end(at);
                if decided.completes_votes() {
                    pause.date_vote(&decided.by, at);
                }
            }),
            RunEvent::PauseExpired(expired) => begun.date_pause(expired.number, |pause| pause.date_end(at)),
            RunEvent::PauseWithdrawn(withdrawn) => begun.date_pause(withdrawn.number, |pause| pause.date_end(at)),
            _ => {}
        }
    }
}

impl Begun {
    fn date_pause(&mut self, number: u32, date: impl FnOnce(&mut Pause)) {
        let index = (number as usize).checked_sub(1);
        if let Some(pause) = index.and_then(|index| self.pauses.get_mut(index)) {
            date(pause);
        }
    }
}

impl Pause {
    fn date_vote(&mut self, by: &ActorId, at: Timestamp) {
        self.approvals.iter_mut().filter(|vote| vote.by == *by).for_each(|vote| vote.at = at);
    }

    fn date_end(&mut self, end: Timestamp) {
        match &mut self.state {
            PauseState::Open { .. } => {}
            PauseState::Decided(decided) => decided.at = end,
            PauseState::Expired { at } | PauseState::Withdrawn { at, .. } => *at = end,
        }
    }
}
