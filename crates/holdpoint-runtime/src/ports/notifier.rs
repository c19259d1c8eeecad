//! How people are told of pauses where they are: in a chat, in their mail, in a system of their own.
//!
//! What is to be told is written with the pause itself, in one append, and stays in the store until it was told: at least
//! once, then, and after a crash perhaps twice. Every notice has a key that is the same at each attempt.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::ids::{AgentId, PauseId};
use holdpoint_core::pause::{PauseKind, PauseView};
use holdpoint_core::run::Run;
use holdpoint_core::time::Timestamp;

/// Tells people of one destination.
#[async_trait]
pub trait Notifier: Send + Sync + 'static {
    /// Makes one attempt. It is bounded in time by the notifier itself, and may be made again by another process.
    async fn deliver(&self, notice: &Notice) -> Delivery;
}

/// What is told, with everything that a person needs to see.
#[derive(Debug, Clone)]
pub struct Notice {
    /// Names the notice: the same at every attempt.
    pub key: NoticeKey,
    /// Which attempt this is; 1 for the first.
    pub attempt: u32,
    /// When, by the store's clock.
    pub at: Timestamp,
    /// The run as it stands now.
    pub run: Arc<Run>,
    /// The pause as it stands now, which may be further on than what is told.
    pub pause: PauseView,
    /// The name that pauses opened together share.
    pub pause_key: String,
    /// What the notifier kept of the notice that the pause opened; only a notice that it ended has it.
    pub receipt: Option<String>,
}

/// What came of an attempt. `why` is for operators; it shows no secret and nothing that a model wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// They know.
    Delivered {
        /// What the notifier wants to see again when the pause ends, such as the place of a message. At most
        /// [`RECEIPT_BYTES_MAX`].
        receipt: Option<String>,
    },
    /// It did not work this time.
    Retry {
        /// Not before so long, where the other side says.
        after: Option<Duration>,
        /// What went wrong.
        why: String,
    },
    /// It is of no use to try again.
    GaveUp {
        /// What went wrong.
        why: String,
    },
}

/// The longest receipt.
pub const RECEIPT_BYTES_MAX: usize = 1_024;

/// Names a notice: what is told about which pause to whom. There is one of each.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NoticeKey {
    /// The pause.
    pub pause: PauseId,
    /// What is told.
    pub kind: NoticeKind,
    /// To whom.
    pub destination: Destination,
}

impl NoticeKey {
    /// Where this tells that a pause ended: the notice that it opened, which is told first.
    pub fn opened(&self) -> Option<Self> {
        match self.kind {
            NoticeKind::Opened => None,
            NoticeKind::Settled => Some(Self { kind: NoticeKind::Opened, ..self.clone() }),
        }
    }
}

/// `pause/opened/destination`, which is the same at every attempt: what a receiver tells repetitions by.
impl fmt::Display for NoticeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.pause, self.kind.name(), self.destination)
    }
}

/// What is told about a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoticeKind {
    /// It opened.
    Opened,
    /// It ended: decided anywhere, expired, or no longer asked.
    Settled,
}

impl NoticeKind {
    /// The name, as stores and wires spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Settled => "settled",
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Opened, Self::Settled].into_iter().find(|kind| kind.name() == name)
    }
}

/// The name that an operator gave to a place where people are told: lower-case letters, digits, `-` and `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination(Arc<str>);

impl Destination {
    /// The longest name.
    pub const BYTES_MAX: usize = 64;

    /// A destination of this name; `None` where it cannot be one.
    pub fn new(name: &str) -> Option<Self> {
        let is_name = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'_';
        let fits = !name.is_empty() && name.len() <= Self::BYTES_MAX && name.bytes().all(is_name);
        fits.then(|| Self(name.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which pauses a destination is told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyRule {
    /// Who is told.
    pub destination: Destination,
    /// Only of pauses of these agents, and of those inside them where a root is named; of all where none is.
    pub agents: Vec<AgentId>,
    /// Only of pauses of these kinds; of all where none is named.
    pub kinds: Vec<PauseKind>,
}

impl NotifyRule {
    /// Tells a destination of every pause.
    pub fn all(destination: Destination) -> Self {
        Self { destination, agents: Vec::new(), kinds: Vec::new() }
    }

    /// Whether the destination is told of a pause.
    pub fn admits(&self, agent: &AgentId, kind: PauseKind) -> bool {
        // An agent stands for those that are reached through it too.
        let is_named = |named: &AgentId| named == agent || named.as_str() == agent.root_name();
        let is_of_agent = self.agents.is_empty() || self.agents.iter().any(is_named);
        is_of_agent && (self.kinds.is_empty() || self.kinds.contains(&kind))
    }
}
