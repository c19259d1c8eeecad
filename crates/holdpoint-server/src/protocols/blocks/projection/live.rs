//! What one subscriber is shown: the durable facts after its cursor, and a model's words while it still speaks.
//!
//! Words change what is durable before they are stored: the first one closes the open group, and that has a number. Such
//! events are shown with the numbers that they will have. Once the reply is stored as it was shown, only its missing end
//! follows. Where it turned out otherwise, a rewind makes void what was shown too early, and the truth follows.
//!
//! Of several models that speak at once one is shown, and the others once it has ended or when they are stored: two could
//! not both be right about the numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{FramePath, RunId};
use holdpoint_core::pause::PauseKind;
use holdpoint_runtime::ports::model::Delta;
use holdpoint_runtime::use_cases::WatchItem;

use super::super::wire::events::{Body, Event};
use super::draft::Draft;
use super::preview::Preview;
use super::{Fact, Projection};
use crate::agents::ServedAgent;

/// Models that are listened to at once; what others say is seen when it is stored.
const DRAFTS_MAX: usize = 64;

/// A projection for one subscriber.
pub(in super::super) struct Live {
    truth: Projection,
    /// What the subscriber had seen when it came.
    after: u64,
    /// Whether everything that was stored when it came has been taken. Before, nobody is shown speaking: what is known is
    /// of the past.
    is_caught_up: bool,
    drafts: BTreeMap<Speaker, Draft>,
    /// Who is shown while speaking, and what was shown of it.
    preview: Option<(Speaker, Preview)>,
}

/// A model at work: the run, and the frame within it.
type Speaker = (RunId, FramePath);

impl Live {
    /// A subscriber that has seen everything up to a number; 0 for nothing. It is fed the session's journal from its first
    /// event, and shown what comes after that number.
    pub(in super::super) fn new(truth: Projection, after: u64) -> Self {
        Self { truth, after, is_caught_up: false, drafts: BTreeMap::new(), preview: None }
    }

    /// As [`Projection::learn`].
    pub(in super::super) fn learn(&mut self, run: RunId, agent: Arc<ServedAgent>) {
        self.truth.learn(run, agent);
    }

    /// To be called once everything stored was taken: the rewind for a subscriber whose cursor is beyond the head, and what
    /// is being said.
    pub(in super::super) fn caught_up(&mut self) -> Vec<Event> {
        let head = self.truth.head_seq();
        let rewind = (self.after > head).then(|| self.rewind(head, None));
        self.after = self.after.min(head);
        self.is_caught_up = true;
        rewind.into_iter().chain(self.begin_preview()).collect()
    }

    /// What one thing that happened adds for this subscriber.
    pub(in super::super) fn take(&mut self, item: &WatchItem) -> Vec<Event> {
        match item {
            WatchItem::Delta { run, frame, delta } => self.hear((*run, frame.clone()), delta),
            WatchItem::Event { run, event, .. } => {
                let before = self.truth.head_seq();
                let facts = self.truth.take(item);
                let facts = facts.into_iter().filter(|fact| fact.seq() > Some(self.after)).collect();
                let mut events = self.reconcile(before, facts, *run, event);
                self.forget(*run, event);
                events.extend(self.begin_preview());
                events
            }
        }
    }

    fn hear(&mut self, speaker: Speaker, delta: &Delta) -> Vec<Event> {
        if self.drafts.len() >= DRAFTS_MAX && !self.drafts.contains_key(&speaker) {
            return Vec::new();
        }
        let draft = self.drafts.entry(speaker.clone()).or_default();
        draft.hear(delta);
        match &mut self.preview {
            Some((shown, preview)) if *shown == speaker => match preview.go_on(draft) {
                Some(event) => event.into_iter().collect(),
                None => self.show(speaker, true),
            },
            Some(_) => Vec::new(),
            None => self.begin_preview(),
        }
    }

    /// Shows a model that speaks, where none is shown yet and one may be.
    fn begin_preview(&mut self) -> Vec<Event> {
        if self.preview.is_some() || !self.is_caught_up {
            return Vec::new();
        }
        let may_speak = |(run, frame): &Speaker| self.truth.story(*run).is_some_and(|story| story.listens(frame));
        let ready = self.drafts.iter().find(|(speaker, draft)| !draft.is_empty() && may_speak(speaker));
        match ready.map(|(speaker, _)| speaker.clone()) {
            Some(speaker) => self.show(speaker, false),
            None => Vec::new(),
        }
    }

    /// Shows what a model has said so far: all of it, or what goes beyond what was shown before.
    fn show(&mut self, speaker: Speaker, is_going_on: bool) -> Vec<Event> {
        let Some((story, draft)) = self.truth.story(speaker.0).zip(self.drafts.get(&speaker)) else {
            return Vec::new();
        };
        let preview = Preview::of(&self.truth.session, self.truth.seq, story, &speaker.1, draft);
        let mut events = match &self.preview {
            Some((_, shown)) if is_going_on => preview.beyond(shown),
            _ => preview.events(),
        };
        self.preview = Some((speaker, preview));
        // Its numbers are those it will have; until then nobody should come back to them.
        events.iter_mut().filter_map(|event| event.number.as_mut()).for_each(|number| number.provisional = true);
        events
    }

    /// The truth after what was shown: where the two agree, only what is missing.
    fn reconcile(&mut self, before: u64, facts: Vec<Fact>, run: RunId, event: &RunEvent) -> Vec<Event> {
        let facts: Vec<Fact> = facts.into_iter().filter(|fact| fact.seq().is_some()).collect();
        let Some((speaker, preview)) = self.preview.take() else { return all(facts) };
        let is_reply = match event {
            RunEvent::ModelReplied(replied) => (run, &replied.frame) == (speaker.0, &speaker.1),
            RunEvent::ReplyRefused(refused) => (run, &refused.frame) == (speaker.0, &speaker.1),
            _ => false,
        };
        let still_speaks = !is_reply && self.truth.story(speaker.0).is_some_and(|story| story.listens(&speaker.1));
        if still_speaks && (facts.is_empty() || preview.is_untouched_by(&facts)) {
            self.preview = Some((speaker, preview));
            return all(facts);
        }
        if let Some(events) = preview.confirmed_by(&facts).filter(|_| !still_speaks) {
            return events;
        }
        let mut events = vec![self.rewind(before, Some(Projection::message_id(speaker.0)))];
        events.extend(all(facts));
        if still_speaks {
            events.extend(self.show(speaker, false));
        }
        events
    }

    /// Drops what was said of replies that are stored, refused, or will never be.
    fn forget(&mut self, run: RunId, event: &RunEvent) {
        match event {
            RunEvent::ModelReplied(replied) => {
                let (thinking, text) = (replied.thinking.as_deref(), replied.text.as_deref());
                let draft = self.drafts.get_mut(&(run, replied.frame.clone()));
                let is_as_said =
                    draft.is_none_or(|draft| draft.account(thinking.unwrap_or_default(), text.unwrap_or_default()));
                self.forget_unless(is_as_said, run, &replied.frame);
            }
            RunEvent::ReplyRefused(refused) => self.forget_unless(false, run, &refused.frame),
            // Who waits for a person says nothing.
            RunEvent::PauseOpened(opened) => {
                let frame = match opened.kind {
                    PauseKind::Confirmation => opened.at.clone(),
                    PauseKind::Approval | PauseKind::Question | PauseKind::InDoubt => opened.at.frame(),
                };
                self.forget_unless(false, run, &frame);
            }
            RunEvent::RunFinished(_) => self.drafts.retain(|(of, _), _| *of != run),
            _ => {}
        }
        self.drafts.retain(|_, draft| !draft.is_empty());
    }

    /// Drops what was said in a frame. While the past is told, what is heard is of later replies than what is read.
    fn forget_unless(&mut self, is_kept: bool, run: RunId, frame: &FramePath) {
        if !is_kept && self.is_caught_up {
            self.drafts.remove(&(run, frame.clone()));
        }
    }

    fn rewind(&self, after: u64, message_id: Option<String>) -> Event {
        let (body, session_id) = (Body::Rewind { after }, self.truth.session.to_string());
        Event { body, session_id, message_id, request_id: None, number: None }
    }
}

fn all(facts: Vec<Fact>) -> Vec<Event> {
    facts.into_iter().flat_map(Fact::into_events).collect()
}
