//! One run as its message tells it. The files are the stations of a run, in order: it begins, the model replies, people are
//! asked, they settle it, calls come to their ends, the run is over.

mod answered;
mod asked;
mod finished;
mod replied;
mod settled;
mod size;

use std::collections::BTreeMap;
use std::sync::Arc;

use holdpoint_core::event::{RunEnd, RunEvent, RunStarted};
use holdpoint_core::ids::{CallPath, FramePath, PauseId, RunId};
use holdpoint_core::run::{Phase, Run};
use holdpoint_core::step::Step;
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::Outcome;

pub(super) use replied::{THOUGHT, thought, thoughts, word, words};

use super::super::commands::VIA;
use super::super::seconds;
use super::super::wire::events::{Body, GroupStatus, MessageHead, Subagent};
use super::Projection;
use super::call::Call;
use super::pen::{Outline, Pen};
use super::request::{Requests, Use};
use crate::agents::ServedAgent;

/// A run that is being told.
#[derive(Clone)]
pub(super) struct Story {
    run: Run,
    card: Option<Arc<ServedAgent>>,
    /// How far its message is written.
    pub(super) outline: Outline,
    /// The calls that are not settled.
    calls: BTreeMap<CallPath, Asked>,
    /// Pauses that opened while other calls of their turn were still looked at: one request covers all that wait.
    gathering: Vec<u32>,
    /// Outcomes that follow from decisions of a request that is not settled as a whole, by the request's place.
    held_back: Vec<(usize, Asked, Outcome)>,
    /// The words of the root agent's last reply.
    last_words: Option<String>,
    started_at: Timestamp,
    /// Roughly how many bytes were told.
    bytes: usize,
}

/// A call, and where people see it.
#[derive(Clone)]
struct Asked {
    call: Call,
    /// The group in which it was shown, by its number in the message.
    group: Option<u32>,
    /// The request that asked about it last, by its place.
    request: Option<usize>,
}

/// What the stations write with.
pub(super) struct Scene<'a> {
    pub(super) pen: Pen<'a>,
    pub(super) requests: &'a mut Requests,
    pub(super) at: Timestamp,
}

impl Story {
    /// The run begins.
    pub(super) fn begin(id: RunId, card: Option<Arc<ServedAgent>>, at: Timestamp) -> Self {
        Self {
            run: Run::new(id),
            card,
            outline: Outline::new(Projection::message_id(id)),
            calls: BTreeMap::new(),
            gathering: Vec::new(),
            held_back: Vec::new(),
            last_words: None,
            started_at: at,
            bytes: 0,
        }
    }

    /// What one event adds.
    pub(super) fn take(&mut self, scene: &mut Scene<'_>, event: &RunEvent) {
        self.gather_before(scene, event);
        self.run.apply(event, scene.at);
        self.bytes += size::of(event);
        match event {
            RunEvent::RunStarted(started) => self.started(scene, started),
            RunEvent::ModelReplied(replied) => self.replied(scene, replied),
            RunEvent::PauseOpened(opened) => self.asked(scene, opened),
            RunEvent::PauseDecided(_) | RunEvent::PauseExpired(_) | RunEvent::PauseWithdrawn(_) => {
                self.settled(scene, event);
            }
            RunEvent::CallAnswered(answered) => self.answered(scene, &answered.call, &answered.outcome),
            RunEvent::HandedOff(handed) => self.handed_off(scene, &handed.call),
            RunEvent::InputStaged(staged) => scene.pen.hear(staged.content.to_text()),
            RunEvent::RunFinished(end) => self.finished(scene, end),
            // What rules, guardrails and votes add is seen in what follows from it.
            _ => {}
        }
        self.gather_after(scene);
        self.name(scene, event);
    }

    fn started(&mut self, scene: &mut Scene<'_>, started: &RunStarted) {
        scene.pen.hear(started.input.to_text());
        let id = scene.pen.outline.message_id.clone();
        scene.pen.say(Body::MessageStart {
            timestamp: seconds(self.started_at),
            display_mode: "agent",
            message: MessageHead { id, kind: "message", role: "assistant", content: [] },
        });
    }

    /// Notes under which name something was done, so that the name stands for nothing else.
    fn name(&self, scene: &mut Scene<'_>, event: &RunEvent) {
        let (number, by, via, request) = match event {
            RunEvent::PauseDecided(decided) => (decided.number, &decided.by, &decided.via, &decided.request),
            RunEvent::PauseVoted(voted) => (voted.number, &voted.by, &voted.via, &voted.request),
            RunEvent::InputStaged(staged) => {
                if let Some(name) = &staged.request {
                    scene.requests.name(staged.by.clone(), name.clone(), Use::Message(self.run.id()));
                }
                return;
            }
            RunEvent::RunFinished(RunEnd::Cancelled { by, request: Some(name), .. }) => {
                scene.requests.name(by.clone(), name.clone(), Use::Cancel(self.run.id()));
                return;
            }
            _ => return,
        };
        let key = scene.requests.about(PauseId { run: self.run.id(), number }).map(|request| request.key.clone());
        if let (Some(key), Some(name), Some(VIA)) = (key, request, via.as_deref()) {
            scene.requests.name(by.clone(), name.clone(), Use::Approval(key));
        }
    }

    /// Roughly how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the run is over.
    pub(super) fn is_over(&self) -> bool {
        self.run.end().is_some()
    }

    /// Whether nothing goes on before somebody decides.
    pub(super) fn waits(&self) -> bool {
        matches!(self.run.next_step(), Step::AwaitDecisions { pauses } if !pauses.is_empty())
    }

    /// Whether the model of a frame is to speak next, as far as is known. It may be asked a moment before that is written.
    pub(super) fn listens(&self, frame: &FramePath) -> bool {
        self.run.frame(frame).is_some_and(|frame| frame.phase == Phase::AwaitingModel)
    }

    /// The nested agent at work in a frame; `None` for the root's.
    pub(super) fn subagent(&self, frame: &FramePath) -> Option<Subagent> {
        self.calls.get(frame)?.call.nested(self.card.as_deref())
    }

    /// How the open group rests, if it is closed now.
    pub(super) fn group_status(&self, outline: &Outline) -> GroupStatus {
        let is_unsettled = self.calls.values().any(|asked| asked.group == Some(outline.groups()));
        if is_unsettled { GroupStatus::Waiting } else { GroupStatus::Done }
    }

    fn locale(&self) -> Option<&str> {
        self.card.as_ref().and_then(|card| card.locale.as_deref())
    }
}
