//! Committed events as facts: one arm for each. What does not fit the state changes nothing.

use crate::decision::Decision;
use crate::event::{
    CallAnswered, CallStarted, HandedOff, ModelReplied, PauseDecided, PauseOpened, PauseVoted, ReplyRefused, RunEvent,
};
use crate::ids::{CallPath, FramePath, PauseId, RuleId, RunId};
use crate::json::CanonicalJson;
use crate::message::{Content, Item};
use crate::pause::{DecidedPause, HeldCall, Pause, PauseKind, PauseState, Subject, Vote};
use crate::run::frame::UsedId;
use crate::run::{Asked, Begun, Frame, Phase};
use crate::time::Timestamp;
use crate::tool::{Allowance, Call, CallState, Outcome, ToolKind};

impl Begun {
    pub(super) fn apply(&mut self, run: RunId, event: &RunEvent, at: Timestamp) {
        match event {
            RunEvent::RunStarted(_) => {}
            RunEvent::GuardrailsRan(ran) => {
                self.guardrails.extend(ran.results.iter().map(|result| (ran.at.clone(), result.clone())));
                self.pass_check(&ran.at);
            }
            RunEvent::ModelReplied(replied) => self.take_reply(replied),
            RunEvent::ReplyRefused(refused) => self.count_refused(refused),
            RunEvent::CallAllowed(allowed) => {
                if let Allowance::Rule(rule) = &allowed.by {
                    self.count_use(*rule);
                }
                self.set_call(&allowed.call, CallState::Allowed { by: allowed.by.clone() });
            }
            RunEvent::CallDenied(denied) => {
                denied.rule.into_iter().for_each(|rule| self.count_use(rule));
                self.set_call(&denied.call, CallState::Denied);
            }
            RunEvent::PauseOpened(opened) => self.open(run, opened, at),
            RunEvent::PauseVoted(voted) => self.take_vote(voted, at),
            RunEvent::PauseDecided(decided) => self.take_decision(decided, at),
            RunEvent::PauseExpired(expired) => self.expire(expired.number, at),
            RunEvent::PauseWithdrawn(withdrawn) => {
                let reason = withdrawn.reason.clone();
                self.set_pause(withdrawn.number, PauseState::Withdrawn { at, reason });
            }
            RunEvent::CallStarted(started) => self.begin_call(started),
            RunEvent::CallReleased(released) => self.release(&released.call),
            RunEvent::CallAnswered(answered) => self.answer(answered),
            RunEvent::HandedOff(handed) => self.hand_off(handed),
            RunEvent::InputStaged(staged) => {
                if let Some(frame) = self.frames.get_mut(&staged.frame) {
                    frame.staged.push(staged.content.clone());
                }
            }
            RunEvent::RuleMade(rule) => {
                self.rules_made = self.rules_made.max(rule.id.number);
                self.rules.push(rule.clone());
            }
            RunEvent::RuleRevoked(revoked) => self.rules.retain(|rule| rule.id != revoked.rule),
            RunEvent::ContextSet(set) => self.context.clone_from(&set.context),
            RunEvent::AgentSet(set) => {
                if let Some(frame) = self.frames.get_mut(&set.frame) {
                    frame.agent = set.agent.clone();
                }
            }
            RunEvent::RunFinished(end) => self.end = Some(end.clone()),
        }
        if self.end.is_none() {
            self.frames.values_mut().for_each(Frame::listen_again);
        }
    }

    /// Guardrails that spoke of a whole frame let it go on; an objection is followed by the frame's end.
    fn pass_check(&mut self, at: &CallPath) {
        let Some(frame) = self.frames.get_mut(at) else { return };
        match std::mem::replace(&mut frame.phase, Phase::AwaitingModel) {
            Phase::CheckingInput => {}
            Phase::CheckingOutput(output) => frame.phase = Phase::Finished(output),
            other => frame.phase = other,
        }
    }

    fn take_reply(&mut self, replied: &ModelReplied) {
        self.usage.add(replied.usage);
        let Some(frame) = self.frames.get_mut(&replied.frame) else { return };
        let count = (replied.admitted as usize).min(frame.staged.len());
        let admitted: Vec<Content> = frame.staged.drain(..count).collect();
        admitted.into_iter().for_each(|content| frame.push(Item::User(content)));
        frame.turns += 1;
        frame.replies_refused = 0;
        let turn = frame.turns;
        let calls = (0u32..).zip(&replied.calls).map(|(index, record)| {
            let mut call = Call::new(record.clone());
            call.state = frame.first_state(&call);
            frame.remember(&call, replied.frame.call(turn, index));
            call
        });
        let calls = calls.collect();
        frame.take_reply(replied.text.clone(), calls);
    }

    fn count_refused(&mut self, refused: &ReplyRefused) {
        self.usage.add(refused.usage);
        if let Some(frame) = self.frames.get_mut(&refused.frame) {
            frame.turns += 1;
            frame.replies_refused += 1;
        }
    }

    fn open(&mut self, run: RunId, opened: &PauseOpened, at: Timestamp) {
        let number = opened.number;
        let (subject, asked) = match opened.kind {
            PauseKind::Confirmation => {
                let Some(frame) = self.frames.get_mut(&opened.at) else { return };
                // More may have been staged meanwhile, so that the model is to be called again: the words still ask.
                let Some(text) = frame.last_words().map(str::to_owned) else { return };
                frame.phase = Phase::Confirming { pause: number, text: text.clone() };
                let asked = Asked { agent: frame.agent.id.clone(), call: None };
                (Subject::Words { frame: opened.at.clone(), text }, asked)
            }
            PauseKind::Approval | PauseKind::Question | PauseKind::InDoubt => {
                let Some(agent) = self.agent_at(&opened.at).cloned() else { return };
                let Some(call) = self.call_mut(&opened.at) else { return };
                call.state = match opened.kind {
                    PauseKind::InDoubt => CallState::InDoubt { pause: number },
                    _ => CallState::Held { pause: number },
                };
                let held = HeldCall::of(call, opened.at.clone());
                let subject = Subject::Call { path: opened.at.clone(), digest: held.digest };
                (subject, Asked { agent, call: Some(held) })
            }
        };
        self.asked.push(asked);
        self.pauses.push(Pause {
            id: PauseId { run, number },
            kind: opened.kind,
            subject,
            reason: opened.reason.clone(),
            opened_at: at,
            terms: opened.terms(),
            approvals: Vec::new(),
            state: PauseState::Open { expires_at: opened.expires_at },
        });
    }

    fn take_vote(&mut self, voted: &PauseVoted, at: Timestamp) {
        let PauseVoted { number, by, via, request } = voted.clone();
        let index = (number as usize).checked_sub(1);
        if let Some(pause) = index.and_then(|index| self.pauses.get_mut(index)).filter(|pause| pause.is_open()) {
            pause.approvals.push(Vote { by, via, request, at });
        }
    }

    fn take_decision(&mut self, decided: &PauseDecided, at: Timestamp) {
        decided.rule.into_iter().for_each(|rule| self.count_use(rule));
        if decided.completes_votes() {
            let PauseDecided { number, by, via, request, .. } = decided.clone();
            self.take_vote(&PauseVoted { number, by, via, request }, at);
        }
        let state = PauseState::Decided(DecidedPause {
            decision: decided.decision.clone(),
            by: decided.by.clone(),
            via: decided.via.clone(),
            request: decided.request.clone(),
            manner: decided.manner,
            at,
        });
        let Some(subject) = self.set_pause(decided.number, state) else { return };
        match (subject, &decided.decision) {
            (Subject::Words { frame, .. }, decision) => self.confirm(&frame, decision),
            (Subject::Call { path, .. }, Decision::Approve) => self.allow(&path, decided.number, None),
            (Subject::Call { path, .. }, Decision::ApproveEdited { arguments }) => {
                self.allow(&path, decided.number, Some(arguments.clone()));
            }
            (Subject::Call { path, .. }, Decision::Deny { .. }) => self.set_call(&path, CallState::Denied),
            // The outcome, or the release, is an event of its own.
            (Subject::Call { .. }, _) => {}
        }
    }

    fn allow(&mut self, path: &CallPath, pause: u32, edited: Option<CanonicalJson>) {
        let Some(call) = self.call_mut(path) else { return };
        call.state = CallState::Allowed { by: Allowance::Pause(pause) };
        if let Some(arguments) = edited {
            call.arguments = arguments;
            call.is_edited = true;
        }
    }

    /// The person's word joins the conversation, and the model goes on from there.
    fn confirm(&mut self, path: &FramePath, decision: &Decision) {
        let Some(frame) = self.frames.get_mut(path) else { return };
        let words = match decision {
            Decision::Respond { content } => content.clone(),
            Decision::Deny { message: Some(message) } => format!("Not confirmed: {message}"),
            Decision::Deny { message: None } => "Not confirmed. Do not go on with it.".to_owned(),
            _ => "Confirmed. Go on.".to_owned(),
        };
        frame.push(Item::User(Content::Text(words)));
        frame.phase = Phase::AwaitingModel;
    }

    fn expire(&mut self, number: u32, at: Timestamp) {
        let subject = self.set_pause(number, PauseState::Expired { at });
        if let Some(Subject::Words { frame, text }) = subject
            && let Some(frame) = self.frames.get_mut(&frame)
        {
            frame.give_out(Content::Text(text));
        }
    }

    /// Starts a call; an agent used as a tool gets a frame of its own.
    fn begin_call(&mut self, started: &CallStarted) {
        let Some(call) = self.call_mut(&started.call) else { return };
        call.state = CallState::Started;
        call.attempts += 1;
        if let ToolKind::Agent { agent, turns_max } = &call.record.kind {
            let frame = Frame::new(agent.clone(), *turns_max, agent_input(&call.arguments));
            self.frames.insert(started.call.clone(), frame);
        }
    }

    fn release(&mut self, path: &CallPath) {
        let by = self.approval(path).map_or(Allowance::Policy, Allowance::Pause);
        self.set_call(path, CallState::Allowed { by });
    }

    /// The latest pause at which a person let this call run.
    fn approval(&self, path: &CallPath) -> Option<u32> {
        let is_of_call = |pause: &&Pause| matches!(&pause.subject, Subject::Call { path: about, .. } if about == path);
        let lets_run = |decision: &Decision| {
            matches!(decision, Decision::Approve | Decision::ApproveEdited { .. } | Decision::RunAgain)
        };
        let mut pauses = self.pauses.iter().rev().filter(is_of_call);
        let approval = pauses.find(|pause| matches!(&pause.state, PauseState::Decided(by) if lets_run(&by.decision)));
        approval.map(|pause| pause.id.number)
    }

    fn answer(&mut self, answered: &CallAnswered) {
        let home = answered.call.frame();
        self.set_call(&answered.call, CallState::Answered(answered.outcome.clone()));
        // What an inner agent did is in the journal; its frame stays only for the outcomes that are still to come.
        self.frames.retain(|path, frame| !path.is_within(&answered.call) || frame.is_running());
        if self.is_live(&home) {
            self.frames.get_mut(&home).into_iter().for_each(Frame::settle);
        } else {
            self.frames.retain(|path, frame| *path != home || frame.is_running());
        }
    }

    fn hand_off(&mut self, handed: &HandedOff) {
        let Some(call) = self.call_mut(&handed.call) else { return };
        let ToolKind::Handoff { to } = call.record.kind.clone() else { return };
        let told = Content::Text(format!("The conversation was handed over to {}.", to.id));
        call.state = CallState::Answered(Outcome::Result(told));
        if let Some(frame) = self.frames.get_mut(&handed.call.frame()) {
            frame.settle();
            frame.agent = to;
        }
    }

    fn set_call(&mut self, path: &CallPath, state: CallState) {
        if let Some(call) = self.call_mut(path) {
            call.state = state;
        }
    }

    /// Changes an open pause's state, and says what it was about.
    fn set_pause(&mut self, number: u32, state: PauseState) -> Option<Subject> {
        let pause = self.pauses.get_mut((number as usize).checked_sub(1)?)?;
        if !pause.is_open() {
            return None;
        }
        pause.state = state;
        Some(pause.subject.clone())
    }

    fn count_use(&mut self, rule: RuleId) {
        *self.rule_uses.entry(rule).or_insert(0) += 1;
    }
}

impl Frame {
    /// More was said before the output was given out: the model is called once more.
    fn listen_again(&mut self) {
        let is_over = matches!(self.phase, Phase::CheckingOutput(_) | Phase::Finished(_));
        if is_over && !self.staged.is_empty() && !self.is_exhausted() {
            self.phase = Phase::AwaitingModel;
        }
    }

    /// A call that repeats a settled one takes its outcome; one that cannot run is answered at once.
    fn first_state(&self, call: &Call) -> CallState {
        let key = (self.agent.id.clone(), call.record.call_id.clone());
        let earlier = call.record.repeats.as_ref().and(self.used.get(&key)).and_then(|used| used.outcome.clone());
        match (earlier, &call.record.problem) {
            (Some(outcome), _) => CallState::Answered(outcome),
            (None, Some(problem)) => CallState::Answered(Outcome::Invalid(problem.clone())),
            (None, None) => CallState::Requested,
        }
    }

    fn remember(&mut self, call: &Call, path: CallPath) {
        let key = (self.agent.id.clone(), call.record.call_id.clone());
        self.used.entry(key).or_insert_with(|| UsedId {
            path,
            tool: call.record.tool.to_string(),
            digest: call.record.arguments.digest(),
            outcome: None,
        });
    }
}

/// What an inner agent is asked: the `input` of its arguments, or all of them.
fn agent_input(arguments: &CanonicalJson) -> Content {
    let value = arguments.to_value();
    match value.get("input").and_then(|input| input.as_str()) {
        Some(input) => Content::Text(input.to_owned()),
        None => Content::Json(arguments.clone()),
    }
}
