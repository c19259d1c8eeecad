//! One agent at work within a run: its conversation, its turn, and how far the turn is.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::agent::{AgentBrief, FinishRule};
use crate::ids::{AgentId, CallPath};
use crate::json::Digest;
use crate::message::{AskedCall, Content, Item};
use crate::run::SharedItem;
use crate::tool::{Call, CallRecord, CallState, Outcome, ToolKind};

/// One agent's conversation within a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Who is at work now; a hand-off changes it.
    pub agent: AgentBrief,
    /// How many model calls it may make; `None` for no limit.
    pub turns_max: Option<u32>,
    /// How many it has made.
    pub turns: u32,
    /// Replies in a row that could not be used.
    pub replies_refused: u32,
    /// What the model is shown.
    pub(super) items: Vec<SharedItem>,
    /// What people said meanwhile: the model is shown it with its next call.
    pub(crate) staged: Vec<Content>,
    /// How far it is.
    pub phase: Phase,
    /// What each of the provider's call ids was used for, and what came of it.
    pub(super) used: BTreeMap<(AgentId, String), UsedId>,
}

/// How far a frame is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Guardrails must look at the input first.
    CheckingInput,
    /// The model is to be called.
    AwaitingModel,
    /// The model's calls are being settled.
    Tools(Turn),
    /// A person is asked to confirm the model's words.
    Confirming {
        /// The pause.
        pause: u32,
        /// The model's words.
        text: String,
    },
    /// Guardrails must look at the output.
    CheckingOutput(Content),
    /// It has its output.
    Finished(Content),
}

/// The calls of one model reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Counts the frame's model calls from one.
    pub number: u32,
    /// The agent that asked for the calls: they stay its own, whoever goes on in the frame.
    pub agent: AgentId,
    /// The calls, in the model's order.
    pub calls: Vec<Call>,
}

/// What a provider's call id stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UsedId {
    pub(super) path: CallPath,
    pub(super) tool: String,
    pub(super) digest: Digest,
    pub(super) outcome: Option<Outcome>,
}

impl Frame {
    pub(super) fn new(agent: AgentBrief, turns_max: Option<u32>, input: Content) -> Self {
        let phase = if agent.checks_input { Phase::CheckingInput } else { Phase::AwaitingModel };
        Self {
            agent,
            turns_max,
            turns: 0,
            replies_refused: 0,
            items: vec![Arc::new(Item::User(input))],
            staged: Vec::new(),
            phase,
            used: BTreeMap::new(),
        }
    }

    /// The turn whose calls are being settled.
    pub fn turn(&self) -> Option<&Turn> {
        match &self.phase {
            Phase::Tools(turn) => Some(turn),
            _ => None,
        }
    }

    pub(super) fn turn_mut(&mut self) -> Option<&mut Turn> {
        match &mut self.phase {
            Phase::Tools(turn) => Some(turn),
            _ => None,
        }
    }

    /// Whether a call of the turn was started and is not known to have ended.
    pub(super) fn is_running(&self) -> bool {
        self.turn().is_some_and(|turn| turn.calls.iter().any(|call| call.state == CallState::Started))
    }

    /// The words with which the model ended its last turn, as long as nothing followed them.
    pub(crate) fn last_words(&self) -> Option<&str> {
        match (&self.phase, self.items.last().map(|item| &**item)) {
            (Phase::Tools(_) | Phase::CheckingInput | Phase::Confirming { .. }, _) => None,
            (_, Some(Item::Assistant { text, calls })) if calls.is_empty() => Some(text.as_deref().unwrap_or_default()),
            _ => None,
        }
    }

    /// Whether the agent may make no more model calls.
    pub fn is_exhausted(&self) -> bool {
        self.turns_max.is_some_and(|turns_max| self.turns >= turns_max)
    }

    pub(super) fn push(&mut self, item: Item) {
        self.items.push(Arc::new(item));
    }

    /// Takes the reply's words and calls; a reply without calls is the output.
    pub(super) fn take_reply(&mut self, text: Option<String>, calls: Vec<Call>) {
        let asked = calls.iter().map(|call| AskedCall {
            call_id: call.record.call_id.clone(),
            tool: call.record.tool.clone(),
            arguments: call.record.arguments.clone(),
        });
        self.push(Item::Assistant { text: text.clone(), calls: asked.collect() });
        if calls.is_empty() {
            self.give_out(Content::Text(text.unwrap_or_default()));
        } else {
            self.phase = Phase::Tools(Turn { number: self.turns, agent: self.agent.id.clone(), calls });
            self.settle();
        }
    }

    /// Gives out an output, after the guardrails where there are any.
    pub(super) fn give_out(&mut self, output: Content) {
        self.phase = if self.agent.checks_output { Phase::CheckingOutput(output) } else { Phase::Finished(output) };
    }

    /// Once every call of the turn is answered: shows the outcomes to the model, or ends.
    pub(super) fn settle(&mut self) {
        let Phase::Tools(turn) = &self.phase else { return };
        if !turn.calls.iter().all(|call| call.outcome().is_some()) {
            return;
        }
        let turn = turn.clone();
        for result in turn.results() {
            self.push(result);
        }
        for call in &turn.calls {
            let key = (turn.agent.clone(), call.record.call_id.clone());
            if let Some(used) = self.used.get_mut(&key) {
                used.outcome = call.outcome().cloned();
            }
        }
        match turn.output(&self.agent.finish) {
            Some(output) => self.give_out(output),
            None => self.phase = Phase::AwaitingModel,
        }
    }
}

/// An earlier use of a provider's call id.
pub(crate) struct EarlierUse<'a>(&'a UsedId);

impl EarlierUse<'_> {
    /// Whether the call asks for the very same thing.
    pub(crate) fn is_same(&self, call: &CallRecord) -> bool {
        self.0.tool == call.tool.as_str() && self.0.digest == call.arguments.digest()
    }

    /// Where that call stood.
    pub(crate) fn path(&self) -> &CallPath {
        &self.0.path
    }
}

impl Frame {
    /// What the agent at work used a provider's id for.
    pub(crate) fn earlier(&self, call_id: &str) -> Option<EarlierUse<'_>> {
        self.used.get(&(self.agent.id.clone(), call_id.to_owned())).map(EarlierUse)
    }
}

impl Turn {
    /// What the model is told of the calls that are answered, in the model's order.
    pub(super) fn results(&self) -> impl Iterator<Item = Item> {
        self.results_or(None)
    }

    /// Like [`Turn::results`], with an outcome for the calls that have none.
    pub(super) fn results_or(&self, otherwise: Option<&Outcome>) -> impl Iterator<Item = Item> {
        self.calls.iter().filter_map(move |call| {
            let outcome = call.outcome().or(otherwise)?;
            Some(Item::ToolResult {
                call_id: call.record.call_id.clone(),
                tool: call.record.tool.clone(),
                output: outcome.to_output(&call.record.kind),
                is_error: outcome.is_error(),
            })
        })
    }

    /// The first outcome that ends the run under this rule. A call that could not run at all ends nothing.
    fn output(&self, rule: &FinishRule) -> Option<Content> {
        let is_handed_off = |call: &Call| {
            matches!((&call.record.kind, call.outcome()), (ToolKind::Handoff { .. }, Some(Outcome::Result(_))))
        };
        if self.calls.iter().any(is_handed_off) {
            return None;
        }
        let is_wanted = |call: &&Call| match rule {
            FinishRule::ModelText => false,
            FinishRule::FirstToolResult => true,
            FinishRule::AfterTools(tools) => tools.contains(&call.record.tool),
        };
        self.calls.iter().filter(is_wanted).find_map(|call| match call.outcome()? {
            Outcome::Invalid(_) => None,
            Outcome::Denied(text) => Some(Content::Text(text.clone())),
            outcome => Some(outcome.to_output(&call.record.kind)),
        })
    }
}
