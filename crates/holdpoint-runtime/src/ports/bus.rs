//! How instances over one store tell each other that something happened, without waiting for the next look at the store.
//!
//! What is told is a hint. The store stays the truth: whoever hears nothing finds out by looking, only later. So nobody
//! waits for the bus, nothing fails because of it, and what does not fit is dropped.

use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Carries short texts between all instances over one store.
pub trait Bus: Send + Sync + 'static {
    /// Tells all instances, the teller among them. Never waits; a text that is too long, has more than one line, or comes when
    /// too many wait, is dropped and counted.
    fn publish(&self, text: String);

    /// Hears what is told from now on, and first of all [`Heard::Missed`] as soon as the bus is connected. Texts of one
    /// teller come in the order in which it told them.
    fn subscribe(&self) -> Subscription;

    /// The longest text that is carried, in bytes.
    fn text_bytes_max(&self) -> usize;

    /// How many texts were dropped so far.
    fn dropped(&self) -> u64;
}

/// What is heard on a bus. Whoever may write to the store may tell anything: a text is data that nobody has checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Somebody told this.
    Text(Arc<str>),
    /// From here on everything is heard, and what was told before may have been missed: the bus is connected, once more or
    /// for the first time, or the listener was too slow.
    Missed,
}

/// Hears what is told on a bus.
pub struct Subscription {
    channel: broadcast::Receiver<Heard>,
    /// Whether the bus was connected before, so that it does not say so any more.
    was_connected: bool,
}

impl Subscription {
    /// Hears what is sent to this channel, of a bus that is connected or is yet to be.
    pub fn new(channel: broadcast::Receiver<Heard>, is_connected: bool) -> Self {
        Self { channel, was_connected: is_connected }
    }

    /// The next thing that is told; waits for it. `None` when the bus is gone.
    pub async fn next(&mut self) -> Option<Heard> {
        if std::mem::take(&mut self.was_connected) {
            return Some(Heard::Missed);
        }
        match self.channel.recv().await {
            Ok(heard) => Some(heard),
            Err(RecvError::Lagged(_)) => Some(Heard::Missed),
            Err(RecvError::Closed) => None,
        }
    }
}
