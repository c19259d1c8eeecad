//! What clients of this protocol see of a session, read from its journal and nothing else.
//!
//! A [`Projection`] is fed the session's events in their order and says the truth: durable facts, numbered from 1 without
//! a gap. The same journal always gives the same numbers. [`Live`] wraps one for a single subscriber and adds what models
//! say while they still speak. The history is folded from the same facts, so that the three cannot disagree.
//!
//! Nothing here waits, reads a clock or touches a store.

mod call;
mod draft;
mod fact;
mod live;
mod pen;
mod preview;
pub(super) mod question;
mod request;
mod story;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{ActorId, RunId, SessionId};
use holdpoint_runtime::use_cases::WatchItem;

pub(super) use fact::Fact;
pub(super) use live::Live;
pub(super) use request::{Ask, AskState, Request, Use};

use pen::Pen;
use request::Requests;
use story::{Scene, Story};

use crate::agents::ServedAgent;

/// A session as this protocol tells it.
#[derive(Clone)]
pub(super) struct Projection {
    session: SessionId,
    seq: u64,
    agents: BTreeMap<RunId, Arc<ServedAgent>>,
    /// The runs that are under way.
    stories: BTreeMap<RunId, Story>,
    requests: Requests,
}

/// How a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// Something is under way.
    Running,
    /// Nothing goes on before somebody decides.
    Waiting,
    /// No run is under way.
    Completed,
}

impl Status {
    /// The status, as the wire spells it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
        }
    }
}

impl Projection {
    /// A session of which nothing is known yet.
    pub(super) fn new(session: SessionId) -> Self {
        Self { session, seq: 0, agents: BTreeMap::new(), stories: BTreeMap::new(), requests: Requests::default() }
    }

    /// Says which agent a run is of, in the version it began with: how its calls are shown, in which language the server's
    /// own labels are. To be said before the run's first event is taken; a run of which nothing is said is shown in the
    /// usual way.
    pub(super) fn learn(&mut self, run: RunId, agent: Arc<ServedAgent>) {
        self.agents.insert(run, agent);
    }

    /// What one thing that happened adds. Deltas add nothing.
    pub(super) fn take(&mut self, item: &WatchItem) -> Vec<Fact> {
        let WatchItem::Event { run, at, event, .. } = item else { return Vec::new() };
        if matches!(event, RunEvent::RunStarted(_)) {
            let story = Story::begin(*run, self.agents.remove(run), *at);
            self.stories.insert(*run, story);
        }
        // What comes after a run's end, such as the outcome of a tool that was still under way, has no message any more.
        let Some(story) = self.stories.get_mut(run) else { return Vec::new() };
        let mut outline = story.outline.clone();
        let pen = Pen { session: &self.session, seq: &mut self.seq, outline: &mut outline, facts: Vec::new() };
        let mut scene = Scene { pen, requests: &mut self.requests, at: *at };
        story.take(&mut scene, event);
        let facts = scene.pen.facts;
        story.outline = outline;
        if story.is_over() {
            self.stories.remove(run);
        }
        facts
    }

    /// The number of the last durable event.
    pub(super) fn head_seq(&self) -> u64 {
        self.seq
    }

    /// How the session stands.
    pub(super) fn status(&self) -> Status {
        match self.stories.values().map(Story::waits).reduce(|all, waits| all && waits) {
            None => Status::Completed,
            Some(true) => Status::Waiting,
            Some(false) => Status::Running,
        }
    }

    /// The requests that wait for somebody, oldest first.
    pub(super) fn open(&self) -> impl Iterator<Item = &Request> {
        self.requests.all().iter().map(|request| &**request).filter(|request| request.is_open())
    }

    /// A request by its key, open or settled.
    pub(super) fn request(&self, key: &str) -> Option<&Arc<Request>> {
        self.requests.all().iter().find(|request| request.key == key)
    }

    /// All requests, open or settled, oldest first.
    #[cfg(test)]
    pub(super) fn requests(&self) -> &[Arc<Request>] {
        self.requests.all()
    }

    /// What somebody used a name for in this session; the start of a run is not noted, since its name says it.
    pub(super) fn named(&self, by: &ActorId, name: &str) -> Option<&Use> {
        self.requests.named(by, name)
    }

    /// Roughly how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.requests.bytes() + self.stories.values().map(Story::bytes).sum::<usize>()
    }

    fn story(&self, run: RunId) -> Option<&Story> {
        self.stories.get(&run)
    }

    /// The name of a run's message.
    pub(super) fn message_id(run: RunId) -> String {
        format!("msg_{}", run.uuid().simple())
    }
}
