//! What is shown of a reply before it is stored: as the truth will be, if the reply is stored as it is spoken.

use holdpoint_core::ids::{FramePath, SessionId};

use super::super::wire::events::{BlockDelta, Body, Event, Subagent, Token};
use super::Fact;
use super::draft::Draft;
use super::pen::{Pen, Place};
use super::story::{Story, THOUGHT, thought, thoughts, word, words};

/// A part of a reply, as it is shown.
#[derive(Debug, Clone)]
pub(super) struct Preview {
    /// Whole pieces.
    closed: Vec<Fact>,
    /// The block that grows.
    open: Option<OpenBlock>,
}

#[derive(Debug, Clone)]
struct OpenBlock {
    start: Event,
    index: u32,
    kind: Kind,
    /// What was shown of it.
    shown: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Thoughts,
    Words,
}

impl Preview {
    /// What a draft is shown as, at the end of what is known.
    pub(super) fn of(session: &SessionId, seq: u64, story: &Story, frame: &FramePath, draft: &Draft) -> Self {
        let (mut seq, mut outline) = (seq, story.outline.clone());
        let status = story.group_status(&outline);
        let mut pen = Pen { session, seq: &mut seq, outline: &mut outline, facts: Vec::new() };
        let subagent = story.subagent(frame);
        let (thinking, text) = (draft.thinking(), draft.text());
        let open = match (thinking.is_empty(), text.is_empty()) {
            (true, true) => None,
            (false, true) => Some(OpenBlock::begin(&mut pen, THOUGHT, Kind::Thoughts, subagent, thinking)),
            (no_thinking, false) => {
                if !no_thinking {
                    pen.block(THOUGHT, thoughts(subagent.clone()), Some(thought(thinking.to_owned())));
                }
                Some(OpenBlock::begin(&mut pen, Place::Content(status), Kind::Words, subagent, text))
            }
        };
        Self { closed: pen.facts, open }
    }

    /// More was said: the delta for it, where the block that grows only grows; `None` where more than that changes.
    pub(super) fn go_on(&mut self, draft: &Draft) -> Option<Option<Event>> {
        let open = self.open.as_mut()?;
        let said = match open.kind {
            Kind::Thoughts if !draft.text().is_empty() => return None,
            Kind::Thoughts => draft.thinking(),
            Kind::Words => draft.text(),
        };
        // What was said is only added to, as long as this is shown.
        let more = said.get(open.shown.len()..)?;
        if more.is_empty() {
            return Some(None);
        }
        let event = open.delta(more);
        open.shown.push_str(more);
        Some(Some(event))
    }

    /// All of it.
    pub(super) fn events(&self) -> Vec<Event> {
        let closed = self.closed.iter().cloned().flat_map(Fact::into_events);
        closed.chain(self.open.iter().flat_map(OpenBlock::events)).collect()
    }

    /// What goes beyond what was shown of the same reply. A block that grew and is whole now is only ended.
    pub(super) fn beyond(&self, shown: &Preview) -> Vec<Event> {
        let mut events = Vec::new();
        for fact in self.closed.iter().skip(shown.closed.len()) {
            match &shown.open {
                Some(open) if events.is_empty() => events.extend(open.ended_as(fact)),
                _ => events.extend(fact.clone().into_events()),
            }
        }
        events.extend(self.open.iter().flat_map(OpenBlock::events));
        events
    }

    /// Whether what happened elsewhere leaves this as it is: nothing here has a number yet, and it is another message.
    pub(super) fn is_untouched_by(&self, facts: &[Fact]) -> bool {
        let own = self.open.as_ref().and_then(|open| open.start.message_id.as_deref());
        self.closed.is_empty() && facts.iter().all(|fact| fact.message_id() != own)
    }

    /// What the stored reply adds to what was shown; `None` where something else was shown.
    pub(super) fn confirmed_by(&self, facts: &[Fact]) -> Option<Vec<Event>> {
        let rest = facts.strip_prefix(self.closed.as_slice())?;
        let (end, rest) = match (&self.open, rest) {
            (Some(open), [block, rest @ ..]) if open.is_start_of(block) => (open.ended_as(block), rest),
            (Some(_), _) => return None,
            (None, rest) => (Vec::new(), rest),
        };
        Some(end.into_iter().chain(rest.iter().cloned().flat_map(Fact::into_events)).collect())
    }
}

impl OpenBlock {
    fn begin(pen: &mut Pen<'_>, place: Place<'_>, kind: Kind, subagent: Option<Subagent>, said: &str) -> Self {
        let block = match kind {
            Kind::Thoughts => thoughts(subagent),
            Kind::Words => words(subagent),
        };
        let (index, start) = pen.begin(place, block);
        Self { start, index, kind, shown: said.to_owned() }
    }

    fn events(&self) -> Vec<Event> {
        vec![self.start.clone(), self.delta(&self.shown)]
    }

    fn delta(&self, text: &str) -> Event {
        let delta = match self.kind {
            Kind::Thoughts => thought(text.to_owned()),
            Kind::Words => word(text.to_owned()),
        };
        Event { body: Body::ContentBlockDelta { index: self.index, delta }, ..self.start.clone() }
    }

    fn is_start_of(&self, fact: &Fact) -> bool {
        matches!(fact, Fact::Block { start, .. } if *start == self.start)
    }

    /// What makes it whole. Where it turned out otherwise it begins again, which replaces it.
    fn ended_as(&self, fact: &Fact) -> Vec<Event> {
        let rest = said_in(fact).and_then(|said| said.strip_prefix(self.shown.as_str()));
        match (rest, fact) {
            (Some(rest), Fact::Block { stop, .. }) => {
                let more = (!rest.is_empty()).then(|| self.delta(rest));
                more.into_iter().chain([stop.clone()]).collect()
            }
            _ => fact.clone().into_events(),
        }
    }
}

/// The words or thoughts of a block.
fn said_in(fact: &Fact) -> Option<&str> {
    let Fact::Block { delta: Some(Event { body: Body::ContentBlockDelta { delta, .. }, .. }), .. } = fact else {
        return None;
    };
    match delta {
        BlockDelta::Token(Token::Text { text } | Token::Thinking { thinking: text }) => Some(text),
        _ => None,
    }
}
