//! The first station: a message begins a run. Also what else a person may give a run on its way.

use std::collections::BTreeMap;

use crate::agent::AgentBrief;
use crate::event::{AgentSet, ContextSet, GuardrailsRan, InputStaged, RunEnd, RunEvent, RunStarted};
use crate::ids::{ActorId, AgentId, FramePath};
use crate::input::StartInput;
use crate::json::CanonicalJson;
use crate::message::{Content, Usage};
use crate::policy::GuardrailResult;
use crate::refusal::{Refusal, failure};
use crate::run::decide::check_name;
use crate::run::{Begun, Frame, Phase, finish, limits};
use crate::time::Timestamp;

pub(super) fn begin(start: StartInput) -> Result<Vec<RunEvent>, Refusal> {
    check_size("bytes in a message", &start.content)?;
    check_agent(&start.agent)?;
    let StartInput { session, agent, content, context, turns_max, by, holds_every_call } = start;
    let input = content;
    Ok(vec![RunEvent::RunStarted(RunStarted { session, agent, input, context, turns_max, by, holds_every_call })])
}

/// What guardrails said of a frame's input.
pub(super) fn checked(
    begun: &Begun,
    frame: FramePath,
    results: Vec<GuardrailResult>,
) -> Result<Vec<RunEvent>, Refusal> {
    let is_due = begun.frame(&frame).is_some_and(|frame| frame.phase == Phase::CheckingInput);
    if !is_due {
        return Err(Refusal::OutOfTurn { state: begun.state_name(), input: "an input check" });
    }
    Ok(heard(begun, frame, results))
}

/// The event of guardrails that spoke about a whole frame, and the end that an objection means.
pub(super) fn heard(begun: &Begun, frame: FramePath, results: Vec<GuardrailResult>) -> Vec<RunEvent> {
    let objection = results.iter().find_map(|result| {
        let objection = result.objection.as_ref()?;
        Some(format!("{}: {objection}", result.name))
    });
    let mut events = vec![RunEvent::GuardrailsRan(GuardrailsRan { at: frame.clone(), results })];
    if let Some(message) = objection {
        events.extend(finish::fail_frame(begun, &frame, failure::GUARDRAIL_TRIPPED, message));
    }
    events
}

/// Input given on the way: the model sees it with its next call, after the pending results.
pub(super) fn stage(
    begun: &Begun,
    content: Content,
    by: ActorId,
    request: Option<String>,
) -> Result<Vec<RunEvent>, Refusal> {
    let event = staged(begun, FramePath::root(), content, by, request)?;
    let root = begun.frame(&FramePath::root());
    if root.is_none_or(|frame| frame.is_exhausted()) {
        return Err(Refusal::OutOfTurn { state: "out of model calls", input: "staged input" });
    }
    Ok(vec![event])
}

/// Input for the model of a frame, whether or not it will be called again.
pub(super) fn staged(
    begun: &Begun,
    frame: FramePath,
    content: Content,
    by: ActorId,
    request: Option<String>,
) -> Result<RunEvent, Refusal> {
    check_size("bytes in a staged input", &content)?;
    check_name("bytes in the name of a request", request.as_deref())?;
    let (limit, waiting) = (limits::STAGED_MAX, begun.frame(&frame).map_or(0, |frame| frame.staged.len()));
    if waiting >= limit {
        return Err(Refusal::OverLimit { what: "staged inputs in a run", limit, found: waiting + 1 });
    }
    Ok(RunEvent::InputStaged(InputStaged { content, by, request, frame }))
}

pub(super) fn set_context(context: Option<CanonicalJson>) -> Vec<RunEvent> {
    vec![RunEvent::ContextSet(ContextSet { context })]
}

pub(super) fn set_agent(begun: &Begun, frame: FramePath, agent: AgentBrief) -> Result<Vec<RunEvent>, Refusal> {
    let known = begun.frame(&frame).ok_or(Refusal::OutOfTurn { state: begun.state_name(), input: "an agent" })?;
    check_agent(&agent)?;
    // An agent that was given up does not go on, whatever its definition is now.
    let is_same = known.agent == agent || !begun.is_live(&frame);
    Ok(if is_same { Vec::new() } else { vec![RunEvent::AgentSet(AgentSet { frame, agent })] })
}

pub(super) fn check_size(what: &'static str, content: &Content) -> Result<(), Refusal> {
    let (limit, found) = (limits::TEXT_BYTES_MAX, content.size());
    if found > limit { Err(Refusal::OverLimit { what, limit, found }) } else { Ok(()) }
}

pub(super) fn check_text(what: &'static str, text: &str) -> Result<(), Refusal> {
    let (limit, found) = (limits::TEXT_BYTES_MAX, text.len());
    if found > limit { Err(Refusal::OverLimit { what, limit, found }) } else { Ok(()) }
}

/// An id that is longer than what is read back would make the journal unreadable.
pub(super) fn check_agent(agent: &AgentBrief) -> Result<(), Refusal> {
    let (limit, found) = (AgentId::LENGTH_MAX, agent.id.as_str().len());
    if found > limit { Err(Refusal::OverLimit { what: "bytes in an agent's path", limit, found }) } else { Ok(()) }
}

impl Begun {
    pub(super) fn new(started: &RunStarted, at: Timestamp) -> Box<Self> {
        let root = Frame::new(started.agent.clone(), started.turns_max, started.input.clone());
        Box::new(Self {
            session: started.session.clone(),
            agent: started.agent.clone(),
            by: started.by.clone(),
            holds_every_call: started.holds_every_call,
            context: started.context.clone(),
            started_at: at,
            frames: BTreeMap::from([(FramePath::root(), root)]),
            pauses: Vec::new(),
            asked: Vec::new(),
            rules: Vec::new(),
            rules_made: 0,
            rule_uses: BTreeMap::new(),
            guardrails: Vec::new(),
            usage: Usage::default(),
            end: None::<RunEnd>,
        })
    }
}
