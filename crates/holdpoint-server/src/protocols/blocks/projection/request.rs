//! Requests to people, as this protocol counts them: one for the held calls of a turn, one for each question.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdpoint_core::decision::{Decision, Manner};
use holdpoint_core::ids::{ActorId, AgentId, PauseId, RunId, SessionId};
use holdpoint_core::json::{CanonicalJson, Digest};
use holdpoint_core::pause::{PauseKind, Question};
use holdpoint_core::time::Timestamp;

use super::super::wire::events::{RequestOutcome, Subagent};

/// A request to a person: open, or settled.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Request {
    /// `{session_id}_{n}`.
    pub(in super::super) key: String,
    /// The run that waits.
    pub(in super::super) run: RunId,
    /// The run's message.
    pub(in super::super) message_id: String,
    /// What is asked, of all its pauses.
    pub(in super::super) kind: PauseKind,
    /// What is asked about, in order.
    pub(in super::super) asks: Vec<Ask>,
    /// How it ended, once it has.
    pub(in super::super) end: Option<RequestEnd>,
    /// Whether it stands outside of the groups.
    pub(super) is_content: bool,
    /// The nested agent that asks.
    pub(super) subagent: Option<Subagent>,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct RequestEnd {
    /// How.
    pub(in super::super) outcome: RequestOutcome,
    /// Who decided last; nobody where it expired or was withdrawn.
    pub(in super::super) by: Option<ActorId>,
    /// When.
    pub(in super::super) at: Timestamp,
}

/// One pause of a request.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Ask {
    /// The pause.
    pub(in super::super) pause: PauseId,
    /// The agent that asks.
    pub(in super::super) agent: AgentId,
    /// The provider's id of the call; `None` where the model's own words ask.
    pub(in super::super) tool_use_id: Option<String>,
    /// The tool; `confirmation` where the model's own words ask.
    pub(in super::super) name: String,
    /// Exactly what would run.
    pub(in super::super) args: CanonicalJson,
    /// The digest that a decision binds to; `None` where the model's own words ask.
    pub(in super::super) args_sha256: Option<Digest>,
    /// The questions as they are shown, where it is a question.
    pub(in super::super) questions: Vec<Question>,
    /// The decisions that answer it, as this protocol spells them.
    pub(in super::super) allowed: &'static [&'static str],
    /// How many different people must approve.
    pub(in super::super) approvals_needed: u32,
    /// When it was asked.
    pub(in super::super) opened_at: Timestamp,
    /// Until when it can be decided.
    pub(in super::super) expires_at: Option<Timestamp>,
    /// The policy's rule that holds it.
    pub(in super::super) rule: Option<String>,
    /// Why, in the operator's words.
    pub(in super::super) reason: Option<String>,
    /// How it stands.
    pub(in super::super) state: AskState,
}

/// How one pause of a request stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum AskState {
    /// Nobody has decided.
    Open,
    /// Somebody has.
    Decided {
        /// What.
        decision: Decision,
        /// Who.
        by: ActorId,
        /// When.
        at: Timestamp,
        /// Whether it was given for this very pause.
        manner: Manner,
    },
    /// Nobody did in time.
    Expired {
        /// Since when.
        at: Timestamp,
    },
    /// It no longer matters.
    Withdrawn {
        /// Since when.
        at: Timestamp,
    },
}

impl Request {
    /// Whether somebody can still decide something of it.
    pub(in super::super) fn is_open(&self) -> bool {
        self.end.is_none()
    }

    /// The pauses that are still open, in order.
    pub(in super::super) fn open_asks(&self) -> impl Iterator<Item = &Ask> {
        self.asks.iter().filter(|ask| ask.is_open())
    }
}

impl Ask {
    /// Whether nobody has decided it yet.
    pub(in super::super) fn is_open(&self) -> bool {
        self.state == AskState::Open
    }
}

/// The decisions that answer a pause, as this protocol spells them. Where several must approve, nobody alone may edit.
pub(super) fn allowed(kind: PauseKind, approvals_needed: u32) -> &'static [&'static str] {
    match kind {
        PauseKind::Approval if approvals_needed > 1 => &["approve", "reject"],
        PauseKind::Approval => &["approve", "edit", "reject"],
        PauseKind::Question => &["answer"],
        PauseKind::Confirmation => &["approve", "reject", "respond"],
        PauseKind::InDoubt => &["happened", "run_again", "abandon"],
    }
}

/// The requests of a session, in the order in which they were made. A copy shares them.
#[derive(Debug, Clone, Default)]
pub(super) struct Requests {
    list: Vec<Arc<Request>>,
    /// Where each pause is asked about.
    places: BTreeMap<PauseId, usize>,
    /// What was done in the session under which name, by whom.
    names: BTreeMap<(ActorId, String), Use>,
    bytes: usize,
}

/// What a client's name for a command was used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Use {
    /// A message that was handed to this run.
    Message(RunId),
    /// A decision about the request of this key.
    Approval(String),
    /// The end of this run.
    Cancel(RunId),
}

/// What a request weighs beside what is asked about.
const REQUEST_BYTES: usize = 1 << 10;

impl Requests {
    /// The key of the next request: requests are counted from 1.
    pub(super) fn next_key(&self, session: &SessionId) -> String {
        format!("{session}_{}", self.list.len() + 1)
    }

    /// Adds a request, and says its place.
    pub(super) fn add(&mut self, request: Request) -> usize {
        let place = self.list.len();
        self.places.extend(request.asks.iter().map(|ask| (ask.pause, place)));
        // Questions stand in the arguments, and beside them as they are shown.
        let asked = request.asks.iter().map(|ask| REQUEST_BYTES + 2 * ask.args.as_str().len());
        self.bytes += asked.sum::<usize>();
        self.list.push(Arc::new(request));
        place
    }

    /// The request at a place that [`Requests::add`] gave.
    pub(super) fn at(&self, place: usize) -> &Request {
        &self.list[place]
    }

    /// All of them.
    pub(super) fn all(&self) -> &[Arc<Request>] {
        &self.list
    }

    /// The request that asks about this pause.
    pub(super) fn about(&self, pause: PauseId) -> Option<&Request> {
        self.places.get(&pause).map(|place| self.at(*place))
    }

    /// Notes what somebody used a name for.
    pub(super) fn name(&mut self, by: ActorId, name: String, used: Use) {
        self.bytes += name.len() + by.as_str().len();
        self.names.insert((by, name), used);
    }

    /// What somebody used a name for.
    pub(super) fn named(&self, by: &ActorId, name: &str) -> Option<&Use> {
        self.names.get(&(by.clone(), name.to_owned()))
    }

    /// Roughly how many bytes all of it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Ends one pause; says the place of its request where that is settled now.
    pub(super) fn settle(&mut self, pause: PauseId, state: AskState, at: Timestamp) -> Option<usize> {
        let place = *self.places.get(&pause)?;
        let request = Arc::make_mut(self.list.get_mut(place).filter(|request| request.is_open())?);
        let ask = request.asks.iter_mut().find(|ask| ask.pause == pause && ask.is_open())?;
        ask.state = state.clone();
        if request.open_asks().next().is_some() {
            return None;
        }
        request.end = Some(Request::ended(&state, at));
        Some(place)
    }
}

impl Request {
    /// How it ended with the last of its pauses, which stands so.
    fn ended(last: &AskState, at: Timestamp) -> RequestEnd {
        let (outcome, by) = match last {
            AskState::Decided { manner: Manner::Superseded, by, .. } => (RequestOutcome::Superseded, Some(by.clone())),
            AskState::Decided { by, .. } => (RequestOutcome::Decided, Some(by.clone())),
            AskState::Expired { .. } => (RequestOutcome::Expired, None),
            AskState::Open | AskState::Withdrawn { .. } => (RequestOutcome::Withdrawn, None),
        };
        RequestEnd { outcome, by, at }
    }
}
