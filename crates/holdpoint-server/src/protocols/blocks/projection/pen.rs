//! Writes the facts of one message: numbers, block indexes, and the groups that frame the work.

use holdpoint_core::ids::SessionId;

use super::super::wire::events::{Block, BlockDelta, Body, Event, GroupStatus, Number};
use super::Fact;

/// How far a message is written: small, so that it can be copied to try something out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outline {
    pub(super) message_id: String,
    next_index: u32,
    groups: u32,
    group: Option<Group>,
}

/// A group that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    id: String,
    summary: String,
    items: u32,
}

/// Where a block stands.
pub(super) enum Place<'a> {
    /// Work: within a group, which is opened where there is none.
    Work {
        /// A sentence for the work, where there is one; a group is named after its first.
        summary: Option<&'a str>,
        /// Whether it counts as one of the group's items.
        is_item: bool,
    },
    /// For the person: outside, so that an open group is closed like this.
    Content(GroupStatus),
}

impl Outline {
    pub(super) fn new(message_id: String) -> Self {
        Self { message_id, next_index: 0, groups: 0, group: None }
    }

    /// How many groups were opened so far: the number of the last one.
    pub(super) fn groups(&self) -> u32 {
        self.groups
    }
}

/// Writes at the end of a message.
pub(super) struct Pen<'a> {
    pub(super) session: &'a SessionId,
    pub(super) seq: &'a mut u64,
    pub(super) outline: &'a mut Outline,
    pub(super) facts: Vec<Fact>,
}

impl Pen<'_> {
    /// Somebody said something to the agent.
    pub(super) fn hear(&mut self, text: String) {
        let message_id = self.outline.message_id.clone();
        self.facts.push(Fact::Said { message_id, text });
    }

    /// An event that stands alone.
    pub(super) fn say(&mut self, body: Body) {
        let event = self.durable(body);
        self.facts.push(Fact::One(event));
    }

    /// A whole block. Its number is in its stop.
    pub(super) fn block(&mut self, place: Place<'_>, block: Block, delta: Option<BlockDelta>) {
        let (index, start) = self.begin(place, block);
        let delta = delta.map(|delta| self.passing(Body::ContentBlockDelta { index, delta }));
        let stop = self.durable(Body::ContentBlockStop { index });
        self.facts.push(Fact::Block { start, delta, stop });
    }

    /// A block that says everything in its start, which has its number.
    pub(super) fn block_at_once(&mut self, place: Place<'_>, block: Block) {
        let (index, mut start) = self.begin(place, block);
        start.number = Some(self.count());
        let stop = self.passing(Body::ContentBlockStop { index });
        self.facts.push(Fact::Block { start, delta: None, stop });
    }

    /// Begins a block, and says its index.
    pub(super) fn begin(&mut self, place: Place<'_>, content_block: Block) -> (u32, Event) {
        self.go_to(place);
        let index = self.outline.next_index;
        self.outline.next_index += 1;
        (index, self.passing(Body::ContentBlockStart { index, content_block }))
    }

    /// The message ends.
    pub(super) fn end(&mut self, delta: Body, stop: Body) {
        let delta = self.passing(delta);
        let stop = self.durable(stop);
        self.facts.push(Fact::End { delta, stop });
    }

    /// Closes the group, where one is open.
    pub(super) fn close_group(&mut self, status: GroupStatus) {
        if let Some(Group { id: group_id, summary, items }) = self.outline.group.take() {
            self.say(Body::GroupEnd { group_id, summary, items, status });
        }
    }

    fn go_to(&mut self, place: Place<'_>) {
        let (summary, is_item) = match place {
            Place::Content(status) => return self.close_group(status),
            Place::Work { summary, is_item } => (summary.unwrap_or_default(), is_item),
        };
        let mut group = match self.outline.group.take() {
            Some(group) => group,
            None => self.open_group(summary),
        };
        if group.summary.is_empty() {
            summary.clone_into(&mut group.summary);
        }
        group.items += u32::from(is_item);
        self.outline.group = Some(group);
    }

    fn open_group(&mut self, summary: &str) -> Group {
        self.outline.groups += 1;
        let (id, summary) = (format!("g{}", self.outline.groups), summary.to_owned());
        self.say(Body::GroupStart { group_id: id.clone(), summary: summary.clone() });
        Group { id, summary, items: 0 }
    }

    fn durable(&mut self, body: Body) -> Event {
        let number = Some(self.count());
        Event { number, ..self.passing(body) }
    }

    /// An event that is not counted.
    pub(super) fn passing(&self, body: Body) -> Event {
        let (session_id, message_id) = (self.session.to_string(), Some(self.outline.message_id.clone()));
        Event { body, session_id, message_id, request_id: None, number: None }
    }

    fn count(&mut self) -> Number {
        *self.seq += 1;
        Number::new(*self.seq)
    }
}
