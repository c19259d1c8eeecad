//! What can be read of a run: by drivers, by people who decide, by those who show it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::agent::AgentBrief;
use crate::decision::Decision;
use crate::event::RunEnd;
use crate::ids::{ActorId, AgentId, CallPath, FramePath, PauseId, RuleId, RunId, SessionId, ToolName};
use crate::json::CanonicalJson;
use crate::message::{Content, Item, Usage};
use crate::pause::{Pause, PauseView};
use crate::policy::{GuardrailResult, Lifetime, RuleEffect, StandingRule};
use crate::refusal::Refusal;
use crate::run::{Asked, Begun, Frame, Run};
use crate::time::Timestamp;
use crate::tool::{Call, CallState, Outcome, ToolKind};

impl Run {
    /// Its name.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// The conversation it belongs to; `None` before it began.
    pub fn session(&self) -> Option<&SessionId> {
        self.begun().map(|begun| &begun.session)
    }

    /// The agent it began with; `None` before it began.
    pub fn agent(&self) -> Option<&AgentBrief> {
        self.begun().map(|begun| &begun.agent)
    }

    /// Who started it.
    pub fn started_by(&self) -> Option<&ActorId> {
        self.begun().map(|begun| &begun.by)
    }

    /// When it began.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.begun().map(|begun| begun.started_at)
    }

    /// Whether whoever started it wants a person to look at every call.
    pub fn holds_every_call(&self) -> bool {
        self.begun().is_some_and(|begun| begun.holds_every_call)
    }

    /// The application's context.
    pub fn context(&self) -> Option<&CanonicalJson> {
        self.begun().and_then(|begun| begun.context.as_ref())
    }

    /// How it ended, once it has.
    pub fn end(&self) -> Option<&RunEnd> {
        self.begun().and_then(|begun| begun.end.as_ref())
    }

    /// What its model calls cost so far.
    pub fn usage(&self) -> Usage {
        self.begun().map(|begun| begun.usage).unwrap_or_default()
    }

    /// Every pause it ever opened.
    pub fn pauses(&self) -> &[Pause] {
        self.begun().map_or(&[], |begun| &begun.pauses)
    }

    /// The open pauses, each with what a person needs to decide it. Copies: changing them changes nothing here.
    pub fn open_pauses(&self) -> Vec<PauseView> {
        let Some(begun) = self.begun() else { return Vec::new() };
        begun.open_pauses().filter_map(|pause| begun.view(pause)).collect()
    }

    /// One pause, whatever its state.
    ///
    /// # Errors
    /// The run has no such pause.
    pub fn pause(&self, id: PauseId) -> Result<&Pause, Refusal> {
        self.begun().ok_or(Refusal::PauseNotFound(id))?.pause(id)
    }

    /// One pause with what it asked about, whatever its state: with the arguments that a person put in the place of those
    /// held, where somebody did.
    pub fn pause_view(&self, id: PauseId) -> Option<PauseView> {
        let begun = self.begun()?;
        begun.view(begun.pause(id).ok()?)
    }

    /// The agent that asked a pause, and the tool that it asked about: what lists show of it.
    pub fn asker(&self, id: PauseId) -> Option<(&AgentId, Option<&ToolName>)> {
        let begun = self.begun()?;
        let Asked { agent, call } = begun.asked(begun.pause(id).ok()?.id)?;
        Some((agent, call.as_ref().map(|call| &call.tool)))
    }

    /// About how many bytes its conversations have.
    pub fn conversation_bytes(&self) -> usize {
        let of_frame = |frame: &Frame| {
            let items = frame.items.iter().map(|item| item.size());
            let staged = frame.staged.iter().map(Content::size);
            items.chain(staged).sum::<usize>()
        };
        self.frames().map(|(_, frame)| of_frame(frame)).sum()
    }

    /// The rules made in this run that stand.
    pub fn rules(&self) -> &[StandingRule] {
        self.begun().map_or(&[], |begun| &begun.rules)
    }

    /// How many rules were ever made in this run.
    pub(crate) fn rules_made(&self) -> u32 {
        self.begun().map_or(0, |begun| begun.rules_made)
    }

    /// How often this run used a rule.
    pub fn rule_uses(&self, rule: RuleId) -> u32 {
        self.begun().and_then(|begun| begun.rule_uses.get(&rule).copied()).unwrap_or(0)
    }

    /// The rule that settles a call without asking anybody: a denial before an approval.
    ///
    /// `stored` are rules of other runs that stand in this session.
    pub fn ruling(&self, path: &CallPath, stored: &[StandingRule], now: Timestamp) -> Option<StandingRule> {
        self.ruling_except(path, stored, now, &BTreeSet::new())
    }

    /// Like [`Run::ruling`], leaving out rules that are known to be spent: a rule's uses in other runs are not known here.
    pub fn ruling_except(
        &self,
        path: &CallPath,
        stored: &[StandingRule],
        now: Timestamp,
        spent: &BTreeSet<RuleId>,
    ) -> Option<StandingRule> {
        let begun = self.begun()?;
        let (agent, call) = (begun.agent_at(path)?, begun.call(path)?);
        let tool = call.record.tool_ref();
        let elsewhere = |rule: &&StandingRule| rule.id.run != self.id && rule.lifetime != Lifetime::Run;
        // A question has no other way of being answered than by a person.
        let may_settle = |rule: &&StandingRule| rule.is_denial() || call.record.kind != ToolKind::Question;
        let candidates = begun.rules.iter().chain(stored.iter().filter(elsewhere)).filter(may_settle);
        let alive = candidates.filter(|rule| !spent.contains(&rule.id) && rule.is_alive(now, self.rule_uses(rule.id)));
        let covering: Vec<&StandingRule> = alive.filter(|rule| rule.covers(agent, &tool, &call.arguments)).collect();
        let denial = covering.iter().find(|rule| rule.is_denial());
        denial.or(covering.first()).map(|rule| (*rule).clone())
    }

    /// The words of the standing rule that speaks against a call, for a denial that came without any.
    ///
    /// `stored` are rules of other runs that stand in this session.
    pub fn rule_words(&self, path: &CallPath, stored: &[StandingRule], now: Timestamp) -> Option<String> {
        match self.ruling(path, stored, now)?.effect {
            RuleEffect::Deny { message } => message,
            RuleEffect::Approve => None,
        }
    }

    /// What guardrails said, and where.
    pub fn guardrail_results(&self) -> &[(CallPath, GuardrailResult)] {
        self.begun().map_or(&[], |begun| &begun.guardrails)
    }

    /// Inputs that wait for the next model call of the root agent.
    pub fn staged(&self) -> &[Content] {
        self.staged_in(&FramePath::root())
    }

    /// Inputs that wait for the next model call in a frame.
    pub fn staged_in(&self, path: &FramePath) -> &[Content] {
        self.frame(path).map_or(&[], |frame| &frame.staged)
    }

    /// The frames at work, from the root inwards.
    pub fn frames(&self) -> impl Iterator<Item = (&FramePath, &Frame)> {
        self.begun().into_iter().flat_map(|begun| &begun.frames)
    }

    /// The agents that its open calls lead to: a decision or a hand-off may put them to work.
    pub fn agents_ahead(&self) -> impl Iterator<Item = &AgentBrief> {
        let calls = self.frames().filter_map(|(_, frame)| frame.turn()).flat_map(|turn| &turn.calls);
        calls.filter(|call| call.outcome().is_none()).filter_map(|call| call.record.kind.agent())
    }

    /// One agent's frame.
    pub fn frame(&self, path: &FramePath) -> Option<&Frame> {
        self.begun()?.frame(path)
    }

    /// One call of a turn that is being settled.
    pub fn call(&self, path: &CallPath) -> Option<&Call> {
        self.begun()?.call(path)
    }

    /// Calls that were started and are not known to have ended, inner agents left out.
    pub fn started_calls(&self) -> Vec<CallPath> {
        self.calls_where(|call| call.state == CallState::Started && !matches!(call.record.kind, ToolKind::Agent { .. }))
    }

    /// Calls that may run and have not started.
    pub fn allowed_calls(&self) -> Vec<CallPath> {
        self.calls_where(|call| matches!(call.state, CallState::Allowed { .. }))
    }

    fn calls_where(&self, wanted: impl Fn(&Call) -> bool) -> Vec<CallPath> {
        let calls = self.frames().flat_map(|(path, frame)| frame.calls(path));
        calls.filter(|(_, call)| wanted(call)).map(|(path, _)| path).collect()
    }

    /// What a frame's model is shown: its conversation, then the staged inputs.
    pub fn model_items(&self, path: &FramePath) -> Vec<Arc<Item>> {
        let Some(frame) = self.frame(path) else { return Vec::new() };
        let staged = frame.staged.iter().map(|content| Arc::new(Item::User(content.clone())));
        frame.items.iter().cloned().chain(staged).collect()
    }

    /// The root conversation as far as it has come: with calls that wait, without outcomes that are not there yet.
    pub fn items(&self) -> Vec<Arc<Item>> {
        let Some(frame) = self.frame(&FramePath::root()) else { return Vec::new() };
        // What was under way when the run ended may have taken effect: a later run must not take it for undone.
        let under_way = self.end().map(|_| &Outcome::Abandoned);
        let results = frame.turn().into_iter().flat_map(|turn| turn.results_or(under_way));
        frame.items.iter().cloned().chain(results.map(Arc::new)).collect()
    }
}

/// A conversation without the calls that were never answered: what a later run may be shown.
pub fn answered_items(items: &[Arc<Item>]) -> Vec<Arc<Item>> {
    // Results stand right behind their calls. Ids are no help: another agent may use the same ones.
    let is_answered = |index: usize, id: &str| {
        let results = items[index + 1..].iter().map_while(|item| match &**item {
            Item::ToolResult { call_id, .. } => Some(call_id.as_str()),
            _ => None,
        });
        results.into_iter().any(|call_id| call_id == id)
    };
    let keep = |(index, item): (usize, &Arc<Item>)| match &**item {
        Item::Assistant { text, calls } if calls.iter().any(|call| !is_answered(index, &call.call_id)) => {
            let calls: Vec<_> = calls.iter().filter(|call| is_answered(index, &call.call_id)).cloned().collect();
            let is_empty = calls.is_empty() && text.is_none();
            (!is_empty).then(|| Arc::new(Item::Assistant { text: text.clone(), calls }))
        }
        _ => Some(item.clone()),
    };
    items.iter().enumerate().filter_map(keep).collect()
}

impl Begun {
    /// What a pause asked about.
    fn asked(&self, id: PauseId) -> Option<&Asked> {
        self.asked.get((id.number as usize).checked_sub(1)?)
    }

    fn view(&self, pause: &Pause) -> Option<PauseView> {
        let Asked { agent, mut call } = self.asked(pause.id)?.clone();
        if let (Some(call), Some(Decision::ApproveEdited { arguments })) = (&mut call, pause.decision()) {
            call.arguments = arguments.clone();
        }
        Some(PauseView { pause: pause.clone(), agent, call })
    }
}
