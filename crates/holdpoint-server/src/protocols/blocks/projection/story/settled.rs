//! Pauses end, each by itself; a request is settled with the last of its pauses, by whatever door.

use std::collections::BTreeMap;

use holdpoint_core::decision::{Answers, Decision, Manner};
use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::PauseId;
use holdpoint_core::pause::PauseKind;

use super::super::super::wire::events::{Block, BlockDelta, Body, DecisionShown, EditedAction, RequestOutcome};
use super::super::pen::Place;
use super::super::request::{Ask, AskState, Request};
use super::{Scene, Story};

impl Story {
    pub(super) fn settled(&mut self, scene: &mut Scene<'_>, event: &RunEvent) {
        let at = scene.at;
        let (number, state) = match event {
            RunEvent::PauseDecided(decided) => {
                let (decision, by) = (decided.decision.clone(), decided.by.clone());
                (decided.number, AskState::Decided { decision, by, at, manner: decided.manner })
            }
            RunEvent::PauseExpired(expired) => (expired.number, AskState::Expired { at }),
            RunEvent::PauseWithdrawn(withdrawn) => (withdrawn.number, AskState::Withdrawn { at }),
            _ => return,
        };
        let pause = PauseId { run: self.run.id(), number };
        let Some(index) = scene.requests.settle(pause, state, at) else { return };
        let request = scene.requests.at(index).clone();
        self.resolve(scene, &request);
        self.release(scene, index);
    }

    /// Tells that a request is settled, and how.
    fn resolve(&self, scene: &mut Scene<'_>, request: &Request) {
        let Some(end) = &request.end else { return };
        scene.pen.say(Body::ApprovalResolved {
            approval_key: request.key.clone(),
            outcome: end.outcome,
            decided_by: end.by.as_ref().map(ToString::to_string),
            answers: request.answers(),
        });
        let (approval_key, subagent) = (request.key.clone(), request.subagent.clone());
        let place = match request.is_content {
            true => Place::Content(self.group_status(scene.pen.outline)),
            false => Place::Work { summary: None, is_item: false },
        };
        let is_expired = |ask: &Ask| matches!(ask.state, AskState::Expired { .. });
        // What somebody decided is told with the rest, however that ended.
        let is_decided =
            |ask: &Ask| matches!(&ask.state, AskState::Decided { manner, .. } if *manner != Manner::Superseded);
        if request.asks.iter().all(is_expired) {
            scene.pen.block(place, Block::ApprovalTimeout { approval_key, subagent }, None);
        } else if request.kind != PauseKind::Question && request.asks.iter().any(is_decided) {
            let decisions = request.asks.iter().map(shown).collect();
            let block = Block::ApprovalResult { approval_key, subagent };
            scene.pen.block(place, block, Some(BlockDelta::Decisions { decisions }));
        }
        // The answers to a question stand in its resolution; of the rest the calls' outcomes tell.
    }
}

impl Request {
    /// The answers to a question by its text, several choices joined.
    pub(in super::super::super) fn answers(&self) -> Option<BTreeMap<String, String>> {
        self.asks.iter().find_map(|ask| match &ask.state {
            AskState::Decided { decision: Decision::Answer { answers }, .. } => Some(joined(answers)),
            _ => None,
        })
    }
}

fn joined(answers: &Answers) -> BTreeMap<String, String> {
    answers.iter().map(|(question, chosen)| (question.clone(), chosen.join(", "))).collect()
}

fn shown(ask: &Ask) -> DecisionShown {
    let plain = |kind| DecisionShown { kind, edited_action: None, message: None, implied: false, outcome: None };
    let undecided = |outcome| DecisionShown { outcome: Some(outcome), ..plain("reject") };
    let (decision, manner) = match &ask.state {
        AskState::Open | AskState::Withdrawn { .. } => return undecided(RequestOutcome::Withdrawn),
        AskState::Expired { .. } => return undecided(RequestOutcome::Expired),
        AskState::Decided { manner: Manner::Superseded, .. } => return undecided(RequestOutcome::Superseded),
        AskState::Decided { decision, manner, .. } => (decision, *manner),
    };
    let shown = match decision {
        Decision::ApproveEdited { arguments } => {
            let edited_action = Some(EditedAction { name: ask.name.clone(), args: arguments.clone() });
            DecisionShown { edited_action, ..plain("edit") }
        }
        Decision::Deny { message } => DecisionShown { message: message.clone(), ..plain("reject") },
        Decision::Respond { content } => DecisionShown { message: Some(content.clone()), ..plain("respond") },
        Decision::Approve
        | Decision::Answer { .. }
        | Decision::Happened { .. }
        | Decision::RunAgain
        | Decision::Abandon => plain(decision.name()),
    };
    DecisionShown { implied: manner == Manner::Implied, ..shown }
}
