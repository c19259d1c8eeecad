//! Policy looked at the calls: each may run, is held, is denied, or cannot run at all.

use crate::event::{CallAllowed, CallAnswered, CallDenied, GuardrailsRan, RunEvent};
use crate::ids::{ActorId, AgentId, CallPath};
use crate::pause::{PauseKind, questions};
use crate::policy::{GuardrailResult, RuleEffect, Screening, StandingRule, Verdict};
use crate::refusal::{Refusal, failure};
use crate::run::{Begun, finish, hold, limits};
use crate::time::Timestamp;
use crate::tool::{Allowance, Call, CallState, Outcome, ToolKind};

pub(super) fn settle(begun: &Begun, screenings: Vec<Screening>, now: Timestamp) -> Result<Vec<RunEvent>, Refusal> {
    let mut desk = Desk { begun, now, pauses_open: begun.open_pauses().count(), next: begun.next_pause_number() };
    let mut events = Vec::new();
    for screening in screenings {
        let fits = |state: &CallState| *state == CallState::Requested;
        let call = begun.call_for(&screening.call, "a screening", fits)?;
        if !screening.guardrails.is_empty() {
            let ran = GuardrailsRan { at: screening.call.clone(), results: screening.guardrails };
            events.push(RunEvent::GuardrailsRan(ran));
        }
        if let Verdict::Halt { guardrail, message } = screening.verdict {
            // The frame cannot go on; what its siblings would have got no longer matters.
            let message = format!("{guardrail}: {message}");
            let frame = screening.call.frame();
            return Ok(finish::fail_frame(begun, &frame, failure::GUARDRAIL_TRIPPED, message));
        }
        events.extend(desk.stamp(screening.call, call, screening.verdict)?);
    }
    Ok(events)
}

/// Where calls are stamped one after the other; it counts the pauses it opens.
struct Desk<'a> {
    begun: &'a Begun,
    now: Timestamp,
    pauses_open: usize,
    next: u32,
}

impl Desk<'_> {
    fn stamp(&mut self, path: CallPath, call: &Call, verdict: Verdict) -> Result<Vec<RunEvent>, Refusal> {
        Ok(match verdict {
            Verdict::Invalid(problem) => vec![answered(path, Outcome::Invalid(problem))],
            Verdict::Deny { by, message } => denied(path, by, None, message),
            Verdict::Approved { by } => vec![allowed(path, Allowance::Decider(by))],
            Verdict::Ruled(rule) => self.rule(path, call, rule)?,
            Verdict::Hold { reason, expires_at } => self.hold(path, call, reason, expires_at),
            // A question has no other way of being answered than by a person.
            Verdict::Allow if call.record.kind == ToolKind::Question => self.hold(path, call, None, None),
            Verdict::Allow => vec![allowed(path, Allowance::Policy)],
            Verdict::Halt { .. } => Vec::new(),
        })
    }

    fn rule(&mut self, path: CallPath, call: &Call, rule: StandingRule) -> Result<Vec<RunEvent>, Refusal> {
        let agent = self.begun.agent_at(&path);
        let covers = agent.is_some_and(|agent| rule.covers(agent, &call.record.tool_ref(), &call.arguments));
        let uses = self.begun.rule_uses.get(&rule.id).copied().unwrap_or(0);
        if !covers || !rule.is_alive(self.now, uses) {
            return Err(Refusal::InvalidRule(format!("rule {} does not speak of call {path}", rule.id)));
        }
        Ok(match rule.effect {
            RuleEffect::Approve => vec![allowed(path, Allowance::Rule(rule.id))],
            RuleEffect::Deny { message } => denied(path, rule.author, Some(rule.id), message),
        })
    }

    fn hold(
        &mut self,
        path: CallPath,
        call: &Call,
        reason: Option<String>,
        expires_at: Option<Timestamp>,
    ) -> Vec<RunEvent> {
        let kind = match &call.record.kind {
            ToolKind::Question => match questions(&call.arguments) {
                Ok(_) => PauseKind::Question,
                Err(problem) => return vec![answered(path, Outcome::Invalid(problem))],
            },
            _ => PauseKind::Approval,
        };
        if self.pauses_open >= limits::PAUSES_OPEN_MAX {
            let text = format!("{} calls already wait for a person; ask again later", limits::PAUSES_OPEN_MAX);
            return vec![answered(path, Outcome::Invalid(text))];
        }
        let number = self.next;
        self.next += 1;
        self.pauses_open += 1;
        vec![hold::open(number, kind, path, call, reason, expires_at)]
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
    RunEvent::CallAnswered(CallAnswered { call, outcome })
}

fn denied(call: CallPath, by: ActorId, rule: Option<crate::ids::RuleId>, message: Option<String>) -> Vec<RunEvent> {
    let mut events = vec![RunEvent::CallDenied(CallDenied { call: call.clone(), by, rule })];
    events.extend(message.map(|message| answered(call, Outcome::Denied(message))));
    events
}

impl Begun {
    pub(super) fn agent_at(&self, call: &CallPath) -> Option<&AgentId> {
        self.frame(&call.frame()).map(|frame| &frame.agent.id)
    }
}
