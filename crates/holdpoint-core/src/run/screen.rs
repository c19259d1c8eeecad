//! Policy looked at the calls: each may run, is held, is denied, or cannot run at all.

use std::collections::BTreeMap;

use crate::event::{CallAllowed, CallAnswered, CallDenied, GuardrailsRan, RunEvent};
use crate::ids::{ActorId, AgentId, CallPath, FramePath, RuleId, RunId};
use crate::pause::{PauseKind, askable};
use crate::policy::{GuardrailResult, Lifetime, RuleEffect, Screening, StandingRule, Verdict};
use crate::refusal::{Refusal, failure};
use crate::run::hold::Ask;
use crate::run::tool_outcome::bounded;
use crate::run::{Begun, check_once, finish, hold};
use crate::time::Timestamp;
use crate::tool::{Allowance, Call, CallState, Outcome, ToolKind};

pub(super) fn settle(
    begun: &Begun,
    run: RunId,
    screenings: Vec<Screening>,
    now: Timestamp,
) -> Result<Vec<RunEvent>, Refusal> {
    check_once(screenings.iter().map(|screening| &screening.call), "a screening")?;
    let halts = halts(&screenings);
    let mut desk = Desk::new(begun, run, now);
    let mut events = Vec::new();
    for screening in screenings {
        let fits = |state: &CallState| *state == CallState::Requested;
        let call = begun.call_for(&screening.call, "a screening", fits)?;
        if !screening.guardrails.is_empty() {
            let ran = GuardrailsRan { at: screening.call.clone(), results: screening.guardrails };
            events.push(RunEvent::GuardrailsRan(ran));
        }
        // Where a frame cannot go on, what its other calls would have got no longer matters.
        if !halts.keys().any(|halted| screening.call.is_within(halted)) {
            events.extend(desk.stamp(screening.call, call, screening.verdict)?);
        }
    }
    for (frame, message) in &halts {
        events.extend(finish::fail_frame(begun, frame, failure::GUARDRAIL_TRIPPED, message.clone()));
    }
    Ok(events)
}

/// The frames that a guardrail stops, each with its words; of frames inside each other only the outermost.
fn halts(screenings: &[Screening]) -> BTreeMap<FramePath, String> {
    let mut halts = BTreeMap::new();
    for screening in screenings {
        if let Verdict::Halt { guardrail, message } = &screening.verdict {
            halts.entry(screening.call.frame()).or_insert_with(|| format!("{guardrail}: {message}"));
        }
    }
    let frames: Vec<FramePath> = halts.keys().cloned().collect();
    halts.retain(|frame, _| !frames.iter().any(|outer| outer != frame && frame.is_within(outer)));
    halts
}

/// Where calls are stamped one after the other; it counts the pauses it opens and the rules it uses.
struct Desk<'a> {
    begun: &'a Begun,
    run: RunId,
    now: Timestamp,
    uses: BTreeMap<RuleId, u32>,
    pauses: hold::Opener,
}

impl<'a> Desk<'a> {
    fn new(begun: &'a Begun, run: RunId, now: Timestamp) -> Self {
        Self { begun, run, now, uses: begun.rule_uses.clone(), pauses: hold::Opener::new(begun) }
    }

    fn stamp(&mut self, path: CallPath, call: &Call, verdict: Verdict) -> Result<Vec<RunEvent>, Refusal> {
        // A question has no other way of being answered than by a person.
        let is_question = call.record.kind == ToolKind::Question;
        Ok(match verdict {
            Verdict::Invalid(problem) => vec![answered(path, Outcome::Invalid(problem))],
            Verdict::Deny { by, message } => denied(path, by, None, message),
            Verdict::Ruled(rule) => self.rule(path, call, rule)?,
            Verdict::Hold { reason, expires_at, terms } => {
                terms.check()?;
                vec![self.hold(path, call, Ask { reason, expires_at, terms })]
            }
            Verdict::Allow | Verdict::Approved { .. } if is_question => vec![self.hold(path, call, Ask::default())],
            Verdict::Allow => vec![allowed(path, Allowance::Policy)],
            Verdict::Approved { by } => vec![allowed(path, Allowance::Decider(by))],
            Verdict::Halt { .. } => Vec::new(),
        })
    }

    /// What a standing rule means for a call. One that no longer stands leaves the call to be looked at again.
    fn rule(&mut self, path: CallPath, call: &Call, rule: StandingRule) -> Result<Vec<RunEvent>, Refusal> {
        let agent = self.begun.agent_at(&path);
        let covers = agent.is_some_and(|agent| rule.covers(agent, &call.record.tool_ref(), &call.arguments));
        if !covers || !self.is_known(&rule) {
            return Err(Refusal::InvalidRule(format!("rule {} does not speak of call {path}", rule.id)));
        }
        let uses = self.uses.entry(rule.id).or_insert(0);
        if self.begun.is_revoked(self.run, &rule) || !rule.is_alive(self.now, *uses) {
            return Ok(Vec::new());
        }
        if !rule.is_denial() && call.record.kind == ToolKind::Question {
            return Ok(vec![self.hold(path, call, Ask::default())]);
        }
        *uses += 1;
        Ok(match rule.effect {
            RuleEffect::Approve => vec![allowed(path, Allowance::Rule(rule.id))],
            RuleEffect::Deny { message } => denied(path, rule.author, Some(rule.id), message),
        })
    }

    /// Whether the rule is, or was, one of this run, or can come from another one.
    fn is_known(&self, rule: &StandingRule) -> bool {
        if rule.id.run != self.run {
            return rule.lifetime != Lifetime::Run;
        }
        match self.begun.rules.iter().find(|known| known.id == rule.id) {
            Some(known) => known == rule,
            None => self.begun.is_revoked(self.run, rule),
        }
    }

    fn hold(&mut self, path: CallPath, call: &Call, ask: Ask) -> RunEvent {
        let (kind, ask) = match &call.record.kind {
            ToolKind::Question => match askable(&call.arguments) {
                Ok(_) => (PauseKind::Question, Ask { terms: ask.terms.of_question(), ..ask }),
                Err(problem) => return answered(path, Outcome::Invalid(problem)),
            },
            _ => (PauseKind::Approval, ask),
        };
        self.pauses.open(kind, path, call, ask)
    }
}

/// A guardrail objected right before the call ran.
pub(super) fn block(
    begun: &Begun,
    path: CallPath,
    results: Vec<GuardrailResult>,
    message: String,
) -> Result<Vec<RunEvent>, Refusal> {
    begun.call_for(&path, "a guardrail's objection", |state| matches!(state, CallState::Allowed { .. }))?;
    Ok(vec![
        RunEvent::GuardrailsRan(GuardrailsRan { at: path.clone(), results }),
        answered(path, Outcome::Denied(message)),
    ])
}

fn allowed(call: CallPath, by: Allowance) -> RunEvent {
    RunEvent::CallAllowed(CallAllowed { call, by })
}

pub(super) fn answered(call: CallPath, outcome: Outcome) -> RunEvent {
    RunEvent::CallAnswered(CallAnswered { call, outcome: bounded(outcome) })
}

fn denied(call: CallPath, by: ActorId, rule: Option<RuleId>, message: Option<String>) -> Vec<RunEvent> {
    let mut events = vec![RunEvent::CallDenied(CallDenied { call: call.clone(), by, rule })];
    events.extend(message.map(|message| answered(call, Outcome::Denied(message))));
    events
}

impl Begun {
    /// The agent that asked for a call; who is at work in its frame may have changed since.
    pub(super) fn agent_at(&self, call: &CallPath) -> Option<&AgentId> {
        self.frame(&call.frame())?.turn().map(|turn| &turn.agent)
    }

    /// Whether the rule was made in this run and taken back.
    pub(super) fn is_revoked(&self, run: RunId, rule: &StandingRule) -> bool {
        let was_made = rule.id.run == run && (1..=self.rules_made).contains(&rule.id.number);
        was_made && !self.rules.iter().any(|known| known.id == rule.id)
    }
}
