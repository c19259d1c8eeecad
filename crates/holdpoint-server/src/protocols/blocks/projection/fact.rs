//! What the projection says, piece by piece: each piece is durable as a whole and has one number.

use holdpoint_core::time::Timestamp;

use super::super::wire::events::Event;

/// One durable piece of a session.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "most facts are blocks, and none is kept for long")]
pub(in super::super) enum Fact {
    /// Somebody said something to the agent. Clients of the stream know what they said; the history tells it.
    Said {
        /// The run's message that answers.
        message_id: String,
        /// The words.
        text: String,
    },
    /// An event that stands alone.
    One(Event),
    /// A whole block.
    Block {
        /// It begins.
        start: Event,
        /// All of it, where there is more than its start.
        delta: Option<Event>,
        /// It is whole.
        stop: Event,
    },
    /// The end of a message.
    End {
        /// It is about to end.
        delta: Event,
        /// It ends.
        stop: Event,
    },
}

impl Fact {
    /// Its number; `None` where the stream says nothing of it.
    pub(in super::super) fn seq(&self) -> Option<u64> {
        match self {
            Self::Said { .. } => None,
            Self::One(event) => event.seq(),
            Self::Block { start, stop, .. } => start.seq().or(stop.seq()),
            Self::End { stop, .. } => stop.seq(),
        }
    }

    /// The message that it is part of.
    pub(in super::super) fn message_id(&self) -> Option<&str> {
        match self {
            Self::Said { message_id, .. } => Some(message_id),
            Self::One(event) | Self::Block { start: event, .. } | Self::End { stop: event, .. } => {
                event.message_id.as_deref()
            }
        }
    }

    /// Says what time it is for the server, as [`Event::stamp`].
    pub(in super::super) fn stamp(&mut self, now: Timestamp) {
        if let Self::Block { start, .. } = self {
            start.stamp(now);
        }
    }

    /// As the stream says it, from beginning to end.
    pub(in super::super) fn into_events(self) -> Vec<Event> {
        match self {
            Self::Said { .. } => Vec::new(),
            Self::One(event) => vec![event],
            Self::Block { start, delta, stop } => std::iter::once(start).chain(delta).chain([stop]).collect(),
            Self::End { delta, stop } => vec![delta, stop],
        }
    }
}
