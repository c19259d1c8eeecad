//! Somebody answered a pause. The first answer stands; every later one is told of it.

use std::collections::BTreeSet;

use crate::decision::{Decision, DecisionInput, Manner};
use crate::event::{CallReleased, PauseDecided, RuleRevoked, RunEvent};
use crate::ids::{ActorId, AgentId, CallPath, FramePath, PauseId, RuleId, RunId};
use crate::input::Input;
use crate::json::CanonicalJson;
use crate::message::Content;
use crate::pause::{Pause, PauseKind, PauseState, Subject};
use crate::policy::{AgentScope, Constraint, NewRule, RuleEffect, Scope, StandingRule};
use crate::refusal::Refusal;
use crate::run::screen::answered;
use crate::run::start::{check_size, check_text};
use crate::run::{Begun, Run, State, answer, check_once, limits, start, vote};
use crate::text::clamp;
use crate::time::Timestamp;
use crate::tool::{CallState, Outcome, ToolRef};

pub(super) fn close(begun: &Begun, run: RunId, input: DecisionInput, now: Timestamp) -> Result<Vec<RunEvent>, Refusal> {
    let pause = begun.pause(input.pause)?;
    vote::check_approver(pause, &input)?;
    if is_repeat(begun, pause, &input) {
        return Ok(Vec::new());
    }
    check_open(pause, now)?;
    check_fit(begun, pause, &input)?;
    let rule = input.rule.as_ref().map(|new| make_rule(begun, run, pause, &input, new, now)).transpose()?;
    let note = note(begun, pause, &input)?;
    if let Some(mut vote) = vote::cast(pause, &input) {
        // An approval that somebody gives twice is one, and so are their words.
        let is_new = !vote.is_empty();
        vote.extend(note.filter(|_| is_new));
        return Ok(vote);
    }

    let mut events = settle(begun, pause, Answer::of(&input))?;
    events.extend(note);
    if let Some(rule) = rule {
        let applies = input.rule.as_ref().is_some_and(|new| new.apply_to_open);
        events.push(RunEvent::RuleMade(rule.clone()));
        if applies {
            events.extend(settle_others(begun, &input, &rule, now)?);
        }
    }
    Ok(events)
}

/// The person's own words for the model that asked, staged together with the decision. They never stand in its way: where
/// no model will hear them, they are kept with it all the same.
fn note(begun: &Begun, pause: &Pause, input: &DecisionInput) -> Result<Option<RunEvent>, Refusal> {
    let Some(words) = &input.note else { return Ok(None) };
    let frame = begun.listener(&pause.subject);
    start::staged(begun, frame, Content::Text(words.clone()), input.by.clone(), None).map(Some)
}

/// Several answers at once: each is read on top of the one before it, and one that is refused refuses all of them.
pub(super) fn close_all(
    begun: &Begun,
    run: RunId,
    inputs: Vec<DecisionInput>,
    now: Timestamp,
) -> Result<Vec<RunEvent>, Refusal> {
    let (limit, found) = (limits::DECISIONS_MAX, inputs.len());
    if found > limit {
        return Err(Refusal::OverLimit { what: "decisions at once", limit, found });
    }
    let mut decided = BTreeSet::new();
    let mut ahead = Run { id: run, state: State::Begun(Box::new(begun.clone())) };
    let mut events = Vec::new();
    for input in inputs {
        // The second would be taken for a repetition of the first, or for a latecomer; it is neither.
        if !decided.insert(input.pause) {
            return Err(Refusal::OverLimit { what: "decisions for one pause", limit: 1, found: 2 });
        }
        events.extend(ahead.advance(Input::Decision(input), now)?);
    }
    Ok(events)
}

/// The words for denials that came without any.
pub(super) fn word(begun: &Begun, words: Vec<(CallPath, String)>) -> Result<Vec<RunEvent>, Refusal> {
    check_once(words.iter().map(|(path, _)| path), "the words of a denial")?;
    words
        .into_iter()
        .map(|(path, text)| {
            begun.call_for(&path, "the words of a denial", |state| *state == CallState::Denied)?;
            Ok(answered(path, Outcome::Denied(text)))
        })
        .collect()
}

pub(super) fn revoke(begun: &Begun, rule: RuleId, by: ActorId) -> Result<Vec<RunEvent>, Refusal> {
    let is_known = begun.rules.iter().any(|known| known.id == rule);
    if !is_known {
        return Err(Refusal::RuleNotFound(rule));
    }
    Ok(vec![RunEvent::RuleRevoked(RuleRevoked { rule, by })])
}

/// The same answer again is no error: what was recorded stands. A rule that was not made then is no repeat.
fn is_repeat(begun: &Begun, pause: &Pause, input: &DecisionInput) -> bool {
    let is_same = matches!(&pause.state, PauseState::Decided(decided) if decided.decision == input.decision);
    is_same && input.rule.as_ref().is_none_or(|new| was_made(begun, pause, input, new))
}

/// Whether the rule stands that this decision would make. Once the call's turn is over that cannot be told any more,
/// and the caller is told who decided rather than that a rule was made.
fn was_made(begun: &Begun, pause: &Pause, input: &DecisionInput, new: &NewRule) -> bool {
    let Subject::Call { path, .. } = &pause.subject else { return false };
    let (Some(call), Some(agent)) = (begun.call(path), begun.agent_at(path)) else { return false };
    let tool = call.record.tool_ref();
    begun.rules.iter().any(|rule| {
        let is_of_agent = match &rule.scope.agent {
            AgentScope::Only(only) => only == agent,
            AgentScope::Any => true,
        };
        is_of_agent
            && rule.scope.tool == tool
            && rule.author == input.by
            && Some(&rule.effect) == standing_effect(&input.decision).as_ref()
            && rule.scope.constraints == new.constraints
            && (rule.scope.agent == AgentScope::Any) == new.any_agent
            && (rule.lifetime, rule.uses_max) == (new.lifetime, new.uses_max)
    })
}

fn check_open(pause: &Pause, now: Timestamp) -> Result<(), Refusal> {
    match &pause.state {
        PauseState::Open { expires_at: Some(end) } if *end <= now => {
            Err(Refusal::Expired { pause: pause.id, at: *end })
        }
        PauseState::Open { .. } => Ok(()),
        _ => Err(pause.settled()),
    }
}

/// Whether the decision answers this pause, saw what is held, and keeps within bounds.
fn check_fit(begun: &Begun, pause: &Pause, input: &DecisionInput) -> Result<(), Refusal> {
    let (kind, decision) = (pause.kind, input.decision.name());
    if !kind.allowed_decisions().contains(&decision) {
        return Err(Refusal::DecisionNotAllowed {
            pause: pause.id,
            kind: kind.name(),
            decision,
            allowed: kind.allowed_decisions(),
        });
    }
    if let (Subject::Call { digest, .. }, Some(seen)) = (&pause.subject, input.seen)
        && *digest != seen
    {
        return Err(Refusal::StaleView { pause: pause.id, held: *digest, seen });
    }
    check_name("bytes in the name of a request", input.request.as_deref())?;
    check_name("bytes in the name of a door", input.via.as_deref())?;
    match &input.decision {
        // Those who approved before approved what is held, and nothing else.
        Decision::ApproveEdited { .. } if !pause.terms.takes_one() => {
            Err(Refusal::EditOfSeveral { pause: pause.id, quorum: pause.terms.quorum })
        }
        Decision::ApproveEdited { arguments } if !arguments.is_object() => {
            Err(Refusal::InvalidArguments { pause: pause.id, problem: "a JSON object expected".to_owned() })
        }
        Decision::ApproveEdited { arguments } => {
            check_text("bytes in a decision's arguments", arguments.as_str())?;
            check_numbers(pause.id, arguments)
        }
        Decision::Deny { message: Some(text) } | Decision::Respond { content: text } => {
            check_text("bytes in a decision's text", text)
        }
        Decision::Happened { result } => check_size("bytes in a result", result),
        Decision::Answer { answers } => answer::outcome(begun, pause, answers, input.in_own_words).map(|_| ()),
        _ => Ok(()),
    }
}

/// Refuses edited arguments with a number that a tool would silently go on with as another one: what a person approved
/// would not be what runs.
///
/// # Errors
/// [`Refusal::NumberOutOfRange`], with the first such number.
pub fn check_numbers(pause: PauseId, arguments: &CanonicalJson) -> Result<(), Refusal> {
    match arguments.inexact_number() {
        Some(number) => Err(Refusal::NumberOutOfRange { pause, number: clamp(number, NUMBER_BYTES_SHOWN).to_owned() }),
        None => Ok(()),
    }
}

/// Bytes of a number that a refusal shows.
const NUMBER_BYTES_SHOWN: usize = 64;

pub(super) fn check_name(what: &'static str, name: Option<&str>) -> Result<(), Refusal> {
    let (limit, found) = (limits::NAME_BYTES_MAX, name.map_or(0, str::len));
    if found > limit { Err(Refusal::OverLimit { what, limit, found }) } else { Ok(()) }
}

/// An answer to one pause, and where it comes from.
pub(super) struct Answer<'a> {
    pub(super) decision: &'a Decision,
    pub(super) by: &'a ActorId,
    pub(super) via: Option<&'a str>,
    pub(super) rule: Option<RuleId>,
    pub(super) request: Option<&'a str>,
    pub(super) manner: Manner,
}

impl<'a> Answer<'a> {
    /// This actor's decision, and nothing more.
    pub(super) fn by(by: &'a ActorId, decision: &'a Decision) -> Self {
        Self { decision, by, via: None, rule: None, request: None, manner: Manner::Given }
    }

    fn of(input: &'a DecisionInput) -> Self {
        let (via, request) = (input.via.as_deref(), input.request.as_deref());
        Self { decision: &input.decision, by: &input.by, via, rule: None, request, manner: input.manner }
    }
}

/// The decision's event, and what follows for the call at once.
pub(super) fn settle(begun: &Begun, pause: &Pause, answer: Answer<'_>) -> Result<Vec<RunEvent>, Refusal> {
    let mut events = vec![RunEvent::PauseDecided(PauseDecided {
        number: pause.id.number,
        decision: answer.decision.clone(),
        by: answer.by.clone(),
        via: answer.via.map(str::to_owned),
        rule: answer.rule,
        request: answer.request.map(str::to_owned),
        manner: answer.manner,
    })];
    let Subject::Call { path, .. } = &pause.subject else { return Ok(events) };
    let outcome = match answer.decision {
        // Taken as fact with the decision itself: the call is allowed, or denied and still without words.
        Decision::Approve | Decision::ApproveEdited { .. } | Decision::Deny { message: None } => None,
        Decision::Deny { message: Some(message) } => Some(Outcome::Denied(message.clone())),
        Decision::Respond { content } => Some(Outcome::Responded(content.clone())),
        // Whether the words fit was seen before: here they are taken as they are.
        Decision::Answer { answers } => Some(answer::outcome(begun, pause, answers, true)?),
        Decision::Happened { result } => Some(Outcome::Result(result.clone())),
        Decision::Abandon => Some(Outcome::Abandoned),
        Decision::RunAgain => {
            events.push(RunEvent::CallReleased(CallReleased { call: path.clone() }));
            None
        }
    };
    events.extend(outcome.map(|outcome| answered(path.clone(), outcome)));
    Ok(events)
}

/// The rule that a decision makes: this agent, this tool, unless said otherwise.
fn make_rule(
    begun: &Begun,
    run: RunId,
    pause: &Pause,
    input: &DecisionInput,
    new: &NewRule,
    now: Timestamp,
) -> Result<StandingRule, Refusal> {
    let invalid = |text: &str| Refusal::InvalidRule(text.to_owned());
    let effect =
        standing_effect(&input.decision).ok_or_else(|| invalid("only an approval or a denial can be made to stand"))?;
    let Subject::Call { path, .. } = &pause.subject else {
        return Err(invalid("a rule speaks of tool calls, and this pause is about the model's words"));
    };
    if pause.kind != PauseKind::Approval {
        return Err(invalid("a rule speaks of calls that are held for approval"));
    }
    if effect == RuleEffect::Approve && !pause.terms.takes_one() {
        return Err(invalid("several must approve this call, so that nobody alone can approve later ones"));
    }
    check_constraints(&new.constraints)?;
    if begun.rules_made as usize >= limits::RULES_MAX {
        return Err(Refusal::OverLimit {
            what: "rules in a run",
            limit: limits::RULES_MAX,
            found: limits::RULES_MAX + 1,
        });
    }
    let call = begun.call(path).ok_or(Refusal::PauseNotFound(pause.id))?;
    let agent = begun.agent_at(path).ok_or(Refusal::PauseNotFound(pause.id))?;
    let rule = StandingRule {
        id: RuleId { run, number: begun.rules_made + 1 },
        effect,
        scope: Scope {
            agent: if new.any_agent { AgentScope::Any } else { AgentScope::Only(agent.clone()) },
            tool: call.record.tool_ref(),
            constraints: new.constraints.clone(),
        },
        lifetime: new.lifetime,
        uses_max: new.uses_max,
        approvers: pause.terms.approvers.clone(),
        author: input.by.clone(),
        made_at: now,
    };
    if rule.is_alive(now, 0) { Ok(rule) } else { Err(invalid("it would end before it speaks of any call")) }
}

/// What a decision becomes when it is made to stand.
fn standing_effect(decision: &Decision) -> Option<RuleEffect> {
    match decision {
        Decision::Approve => Some(RuleEffect::Approve),
        Decision::Deny { message } => Some(RuleEffect::Deny { message: message.clone() }),
        _ => None,
    }
}

fn check_constraints(constraints: &[Constraint]) -> Result<(), Refusal> {
    let found = constraints.len();
    if found > NewRule::CONSTRAINTS_MAX {
        return Err(Refusal::OverLimit { what: "constraints in a rule", limit: NewRule::CONSTRAINTS_MAX, found });
    }
    let found = constraints.iter().map(Constraint::size).sum();
    if found > limits::TEXT_BYTES_MAX {
        return Err(Refusal::OverLimit { what: "bytes in a rule's constraints", limit: limits::TEXT_BYTES_MAX, found });
    }
    // A place that no arguments have would make a rule that silently speaks of nothing.
    match constraints.iter().all(|constraint| constraint.at.is_empty() || constraint.at.starts_with('/')) {
        true => Ok(()),
        false => Err(Refusal::InvalidRule("a constraint's place is a JSON pointer such as /path".to_owned())),
    }
}

/// The other open pauses that a new rule speaks of; only where its maker said so, and only those that its maker may decide
/// alone. An approval passes over a call that a standing denial speaks of: that one stays a person's to decide.
fn settle_others(
    begun: &Begun,
    input: &DecisionInput,
    rule: &StandingRule,
    now: Timestamp,
) -> Result<Vec<RunEvent>, Refusal> {
    let decision = match &rule.effect {
        RuleEffect::Approve => Decision::Approve,
        RuleEffect::Deny { message } => Decision::Deny { message: message.clone() },
    };
    let may_decide =
        |other: &Pause| other.terms.admit(&input.by, &input.groups) && (rule.is_denial() || other.terms.takes_one());
    let others = begun.open_pauses().filter(|other| other.id != input.pause && other.kind == PauseKind::Approval);
    let mut events = Vec::new();
    let mut uses = 0;
    for other in others.filter(|other| may_decide(other)) {
        let Subject::Call { path, .. } = &other.subject else { continue };
        let (Some(agent), Some(call)) = (begun.agent_at(path), begun.call(path)) else { continue };
        let tool = call.record.tool_ref();
        let is_denied = || begun.is_denied_by_rule(&input.session_rules, agent, &tool, &call.arguments, now);
        let covers = rule.covers(agent, &tool, &call.arguments) && (rule.is_denial() || !is_denied());
        if covers && rule.is_alive(now, uses) && check_open(other, now).is_ok() {
            uses += 1;
            let answer = Answer { rule: Some(rule.id), ..Answer::by(&rule.author, &decision) };
            events.extend(settle(begun, other, answer)?);
        }
    }
    Ok(events)
}

impl Begun {
    /// The frame whose model hears what is said beside a decision: the one that asked, or where that may call its model no
    /// more, the next one outside that may. Where none may, the root.
    fn listener(&self, subject: &Subject) -> FramePath {
        let mut path = match subject {
            Subject::Call { path, .. } => path.frame(),
            Subject::Words { frame, .. } => frame.clone(),
        };
        let hears =
            |path: &FramePath| self.is_live(path) && self.frame(path).is_some_and(|frame| !frame.is_exhausted());
        while !path.is_root() && !hears(&path) {
            path = path.frame();
        }
        path
    }

    /// Whether a rule of this run, or one of `stored` from other runs of the session, denies the call.
    fn is_denied_by_rule(
        &self,
        stored: &[StandingRule],
        agent: &AgentId,
        tool: &ToolRef,
        arguments: &CanonicalJson,
        now: Timestamp,
    ) -> bool {
        let uses = |rule: &StandingRule| self.rule_uses.get(&rule.id).copied().unwrap_or(0);
        let denies = |rule: &&StandingRule| rule.is_denial() && rule.is_alive(now, uses(rule));
        self.rules.iter().chain(stored).filter(denies).any(|rule| rule.covers(agent, tool, arguments))
    }
}
