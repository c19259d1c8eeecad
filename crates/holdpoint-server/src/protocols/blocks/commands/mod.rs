//! What commands do, whichever way they came: over a socket or as a plain request. Each calls one use case.

mod answers;
mod approval;
mod cancel;
mod decisions;
mod drive;
mod message;

use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_runtime::Runtime;

use super::from_wire::{Approval, Command, Message};
use super::idempotency::{self, Target};
use super::projection::Projection;
use super::refuse::{Code, Refused, request_id_reused};
use super::standing::find_answer;
use super::wire::control::Control;
use super::wire::events::{Body, Event};
use crate::access::Caller;
use crate::app::App;

/// Through which door decisions came, as they record it.
pub(super) const VIA: &str = "blocks";

/// What a command came to. Subscribers see what follows; who sent the command is answered with this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Done {
    /// A message began a run.
    Started { session: SessionId, run: RunId, is_repeat: bool },
    /// A message was taken into the run that is under way.
    Queued { session: SessionId, run: RunId },
    /// A request is settled.
    Decided { session: SessionId, key: String, is_repeat: bool },
    /// An approval counts, and others must approve too.
    Voted { session: SessionId, run: RunId, key: String, approvals_missing: u32 },
    /// Runs are over.
    Cancelled { session: SessionId, run: RunId, is_repeat: bool },
}

/// What who sent a command is answered with.
pub(super) enum Answer {
    /// An event of the session.
    Event(Box<Event>),
    /// Something that no event tells.
    Control(Control),
}

/// A command that changes something in a session.
#[derive(Debug)]
pub(super) enum Order {
    /// A message, and the name of the run that it begins where none is under way.
    Message { message: Message, session: SessionId, run: RunId },
    /// Decisions or answers.
    Approval(Approval),
    /// The end of what is under way.
    Cancel { session: SessionId },
}

impl Order {
    /// What a command orders; `None` where it is about the connection alone.
    pub(super) fn of(app: &App, caller: &Caller, request_id: Option<&str>, command: Command) -> Option<Self> {
        match command {
            Command::Message(message) => {
                let run = request_id.map(|name| idempotency::run_id(&caller.actor, name));
                let run = run.unwrap_or_else(|| app.runtime().name_run());
                let session = message.session.clone().unwrap_or_else(|| Runtime::own_session(run));
                Some(Self::Message { message, session, run })
            }
            Command::Approval(approval) => Some(Self::Approval(approval)),
            Command::Cancel { session } => Some(Self::Cancel { session }),
            Command::Subscribe { .. } | Command::Auth { .. } | Command::Ping => None,
        }
    }

    /// The session that it is about.
    pub(super) fn session(&self) -> &SessionId {
        match self {
            Self::Message { session, .. } | Self::Cancel { session } => session,
            Self::Approval(approval) => &approval.session,
        }
    }
}

impl Order {
    async fn carry_out(
        self,
        app: &App,
        caller: &Caller,
        name: Option<&str>,
        ended: Option<RunId>,
    ) -> Result<Done, Refused> {
        match self {
            Self::Message { message, session, run } => {
                message::message(app, caller, name, message, (session, run)).await
            }
            Self::Approval(approval) => approval::approval(app, caller, name, approval).await,
            Self::Cancel { session } => cancel::cancel(app, caller, name, session, ended).await,
        }
    }

    /// What its name stands for.
    fn target(&self) -> Target {
        match self {
            Self::Message { session, .. } => Target::Message(session.clone()),
            Self::Approval(approval) => Target::Approval(approval.session.clone(), approval.key.clone()),
            Self::Cancel { session } => Target::Cancel(session.clone()),
        }
    }

    /// Whether a message began a run under this name, and this is no message.
    async fn is_named_as_a_start(&self, app: &App, caller: &Caller, name: &str) -> Result<bool, Refused> {
        match self {
            Self::Message { .. } => Ok(false),
            Self::Approval(_) | Self::Cancel { .. } => {
                let run = idempotency::run_id(&caller.actor, name);
                Ok(idempotency::started(app.runtime(), run).await?.is_some())
            }
        }
    }
}

/// Carries out an order, in a task of its own: a client that goes away in the middle of it changes nothing.
pub(super) async fn carry_out(
    app: &App,
    caller: &Caller,
    request_id: Option<&str>,
    order: Order,
) -> Result<Done, Refused> {
    let (worker, caller, request_id) = (app.clone(), caller.clone(), request_id.map(str::to_owned));
    let carrying = app.tasks().spawn(async move {
        let name = request_id.as_deref();
        let Some(name) = name else { return order.carry_out(&worker, &caller, None, None).await };
        // The same command, sent twice at once, is carried out once and answered twice.
        let turn = worker.blocks().names().turn(&caller.actor, name).await;
        let target = order.target();
        if turn.is_taken(&target) || order.is_named_as_a_start(&worker, &caller, name).await? {
            return Err(request_id_reused());
        }
        let done = order.carry_out(&worker, &caller, Some(name), turn.ended()).await?;
        let ended = match &done {
            Done::Cancelled { run, .. } => Some(*run),
            _ => None,
        };
        turn.note(target, ended);
        Ok(done)
    });
    match tokio::time::timeout(app.limits().answer_timeout, carrying).await {
        Ok(Ok(done)) => done,
        Ok(Err(_)) => Err(Refused::new(Code::Internal, "the server made a mistake; its log says which")),
        Err(_) => {
            let message = "the answer took too long, and whether it was done is not known: subscribe and look";
            Err(Refused::new(Code::Overloaded, message))
        }
    }
}

impl Done {
    /// Whether nothing was done, since the same command was carried out before: subscribers see nothing of it.
    pub(super) fn is_repeat(&self) -> bool {
        match self {
            Self::Started { is_repeat, .. } | Self::Decided { is_repeat, .. } | Self::Cancelled { is_repeat, .. } => {
                *is_repeat
            }
            Self::Queued { .. } | Self::Voted { .. } => false,
        }
    }

    /// The answer where no event of the session is one.
    pub(super) fn control(&self, request_id: Option<String>) -> Option<Control> {
        match self {
            Self::Queued { session, run } => Some(Control::MessageQueued {
                session_id: session.to_string(),
                message_id: Projection::message_id(*run),
                request_id,
            }),
            Self::Voted { session, run, key, approvals_missing } => Some(Control::ApprovalVoted {
                session_id: session.to_string(),
                message_id: Projection::message_id(*run),
                approval_key: key.clone(),
                approvals_missing: *approvals_missing,
                request_id,
            }),
            Self::Started { .. } | Self::Decided { .. } | Self::Cancelled { .. } => None,
        }
    }

    /// The answer, found among what is stored: the same one however often it is asked for.
    pub(super) async fn answer(&self, app: &App, request_id: Option<String>) -> Result<Answer, Refused> {
        if let Some(control) = self.control(request_id.clone()) {
            return Ok(Answer::Control(control));
        }
        let found = match self {
            Self::Started { session, run, .. } => {
                let message = Projection::message_id(*run);
                let starts = |event: &Event| matches!(event.body, Body::MessageStart { .. });
                find_answer(app, session, |event| starts(event) && event.message_id.as_ref() == Some(&message)).await?
            }
            Self::Cancelled { session, run, .. } => {
                let message = Projection::message_id(*run);
                let stops = |event: &Event| matches!(event.body, Body::MessageStop { .. });
                find_answer(app, session, |event| stops(event) && event.message_id.as_ref() == Some(&message)).await?
            }
            Self::Decided { session, key, .. } => find_answer(app, session, |event| resolves(event, key)).await?,
            Self::Queued { .. } | Self::Voted { .. } => None,
        };
        let mut event = found.ok_or_else(|| Refused::new(Code::Internal, "what was stored tells nothing of it"))?;
        event.request_id = request_id;
        Ok(Answer::Event(Box::new(event)))
    }
}

/// Whether an event says that this request is settled.
fn resolves(event: &Event, key: &str) -> bool {
    matches!(&event.body, Body::ApprovalResolved { approval_key, .. } if approval_key == key)
}
