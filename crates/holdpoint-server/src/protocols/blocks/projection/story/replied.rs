//! The model replied. People see its thoughts, then its words, then its calls.

use holdpoint_core::event::ModelReplied;
use holdpoint_core::ids::{AgentId, CallPath};
use holdpoint_core::tool::{CallRecord, Outcome};

use super::super::super::wire::events::{Block, BlockDelta, Subagent, Token};
use super::super::call::Call;
use super::super::pen::Place;
use super::{Asked, Scene, Story};

impl Story {
    pub(super) fn replied(&mut self, scene: &mut Scene<'_>, replied: &ModelReplied) {
        let subagent = self.subagent(&replied.frame);
        if let Some(thinking) = replied.thinking.as_ref().filter(|thinking| !thinking.is_empty()) {
            let (block, delta) = (thoughts(subagent.clone()), thought(thinking.clone()));
            scene.pen.block(THOUGHT, block, Some(delta));
        }
        if let Some(text) = replied.text.as_ref().filter(|text| !text.is_empty()) {
            self.say(scene, text, subagent.clone());
        }
        if replied.frame.is_root() {
            self.last_words = replied.text.clone();
        }
        let Some((turn, agent)) = self.run.frame(&replied.frame).map(|frame| (frame.turns, frame.agent.id.clone()))
        else {
            return;
        };
        for (index, record) in (0..).zip(&replied.calls) {
            self.called(scene, replied.frame.call(turn, index), record, &agent, subagent.clone());
        }
    }

    /// Words for the person, outside of the groups.
    pub(super) fn say(&self, scene: &mut Scene<'_>, text: &str, subagent: Option<Subagent>) {
        let place = Place::Content(self.group_status(scene.pen.outline));
        scene.pen.block(place, words(subagent), Some(word(text.to_owned())));
    }

    fn called(
        &mut self,
        scene: &mut Scene<'_>,
        path: CallPath,
        record: &CallRecord,
        by: &AgentId,
        subagent: Option<Subagent>,
    ) {
        // One that repeats another to the letter was told before, and takes its outcome.
        let is_settled = self.run.call(&path).is_none_or(|call| call.outcome().is_some());
        if record.repeats.is_some() && is_settled {
            return;
        }
        let call = Call::new(record, by, self.card.as_deref(), subagent);
        let mut asked = Asked { call, group: None, request: None };
        if asked.call.shows_use() {
            let (block, delta) = asked.call.asked(&record.arguments);
            scene.pen.block(self.place_of(scene, &asked.call, true), block, Some(delta));
            asked.group = (!asked.call.is_content()).then(|| scene.pen.outline.groups());
        }
        self.calls.insert(path.clone(), asked);
        // One that cannot run is answered with the reply itself.
        if let Some(problem) = &record.problem {
            self.answered(scene, &path, &Outcome::Invalid(problem.clone()));
        }
    }

    /// Where what is shown of a call stands.
    pub(super) fn place_of<'a>(&self, scene: &Scene<'_>, call: &'a Call, is_item: bool) -> Place<'a> {
        match call.is_content() {
            true => Place::Content(self.group_status(scene.pen.outline)),
            false => Place::Work { summary: call.sentence.as_deref(), is_item },
        }
    }
}

/// Where thoughts stand.
pub(in super::super) const THOUGHT: Place<'static> = Place::Work { summary: None, is_item: true };

/// A block of words.
pub(in super::super) fn words(subagent: Option<Subagent>) -> Block {
    Block::Text { text: "", subagent }
}

/// A block of thoughts.
pub(in super::super) fn thoughts(subagent: Option<Subagent>) -> Block {
    Block::Thinking { thinking: "", subagent }
}

/// More words.
pub(in super::super) fn word(text: String) -> BlockDelta {
    BlockDelta::Token(Token::Text { text })
}

/// More thoughts.
pub(in super::super) fn thought(thinking: String) -> BlockDelta {
    BlockDelta::Token(Token::Thinking { thinking })
}
