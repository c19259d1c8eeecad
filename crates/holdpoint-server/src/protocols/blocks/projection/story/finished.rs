//! The run is over.

use holdpoint_core::event::RunEnd;
use holdpoint_core::refusal::failure;
use holdpoint_core::text::visible;

use super::super::super::wire::events::{Body, GroupStatus, StopDelta, StopError, StopReason};
use super::{Scene, Story};

impl Story {
    pub(super) fn finished(&mut self, scene: &mut Scene<'_>, end: &RunEnd) {
        for (_, asked, outcome) in std::mem::take(&mut self.held_back) {
            self.show_outcome(scene, &asked, &outcome);
        }
        let (stop_reason, error) = match end {
            RunEnd::Done(output) => {
                self.give_out(scene, &output.to_text());
                scene.pen.close_group(self.group_status(scene.pen.outline));
                (StopReason::EndTurn, None)
            }
            RunEnd::Failed { code, message } => {
                let is_over_turns = code == failure::TURNS_EXHAUSTED;
                let error = StopError { code: code.clone(), message: visible(message) };
                (if is_over_turns { StopReason::MaxTurns } else { StopReason::Error }, Some(error))
            }
            RunEnd::Cancelled { .. } => (StopReason::Cancelled, None),
        };
        scene.pen.close_group(GroupStatus::Cancelled);
        let duration_ms = scene.at.since(self.started_at).as_millis().try_into().unwrap_or(u64::MAX);
        scene.pen.end(
            Body::MessageDelta { delta: StopDelta { stop_reason } },
            Body::MessageStop { stop_reason, duration_ms, error },
        );
    }

    /// An output that is not the model's last words is said after them.
    fn give_out(&self, scene: &mut Scene<'_>, output: &str) {
        if !output.is_empty() && self.last_words.as_deref() != Some(output) {
            self.say(scene, output, None);
        }
    }
}
