//! Calls come to their ends.

use holdpoint_core::ids::{AgentId, CallPath};
use holdpoint_core::message::Content;
use holdpoint_core::tool::Outcome;

use super::{Asked, Scene, Story};

impl Story {
    pub(super) fn answered(&mut self, scene: &mut Scene<'_>, path: &CallPath, outcome: &Outcome) {
        let Some(asked) = self.calls.remove(path) else { return };
        let waits_for =
            asked.request.filter(|index| follows_from_decision(outcome) && scene.requests.at(*index).is_open());
        match waits_for {
            Some(index) => self.held_back.push((index, asked, outcome.clone())),
            None => self.show_outcome(scene, &asked, outcome),
        }
    }

    /// Another agent has the conversation, which is what came of the call.
    pub(super) fn handed_off(&mut self, scene: &mut Scene<'_>, path: &CallPath) {
        let agent = self.run.frame(&path.frame()).map(|frame| frame.agent.id.clone());
        let name = agent.as_ref().map(|agent| self.name_of(agent)).unwrap_or_default();
        let told = Content::Text(format!("The conversation was handed over to {name}."));
        self.answered(scene, path, &Outcome::Result(told));
    }

    /// Shows the outcomes that waited for a request.
    pub(super) fn release(&mut self, scene: &mut Scene<'_>, request: usize) {
        let all = std::mem::take(&mut self.held_back);
        let (now, later): (Vec<_>, Vec<_>) = all.into_iter().partition(|(index, ..)| *index == request);
        self.held_back = later;
        for (_, asked, outcome) in now {
            self.show_outcome(scene, &asked, &outcome);
        }
    }

    pub(super) fn show_outcome(&self, scene: &mut Scene<'_>, asked: &Asked, outcome: &Outcome) {
        if !asked.call.shows_result() {
            return;
        }
        let (block, delta) = asked.call.answered(outcome);
        // A call counts once, whatever is shown of it.
        let place = self.place_of(scene, &asked.call, !asked.call.shows_use());
        scene.pen.block(place, block, Some(delta));
    }

    fn name_of(&self, agent: &AgentId) -> String {
        let name = self.card.as_ref().and_then(|card| card.graph.name_of(agent));
        name.unwrap_or(agent.as_str()).to_owned()
    }
}

/// Whether the outcome is the decision's own, and not what the tool gave.
fn follows_from_decision(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Denied(_) | Outcome::Responded(_) | Outcome::Expired | Outcome::Withdrawn | Outcome::Abandoned => true,
        Outcome::Result(_) | Outcome::Failure(_) | Outcome::Invalid(_) => false,
    }
}
