//! One connection from its opening to its end: commands come in, events go out, and nobody is asked twice who they are.

use std::collections::HashMap;
use std::pin::Pin;

use axum::extract::ws::{Message, WebSocket};
use futures_util::stream::{AbortHandle, SelectAll, Stream, StreamExt as _, abortable, unfold};
use holdpoint_core::ids::SessionId;
use holdpoint_runtime::RunError;
use secrecy::SecretString;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::close::Closing;
use super::outbox::Outbox;
use crate::access::{Action, Caller, Identity};
use crate::app::App;
use crate::limits::{Pace, StreamPermit};
use crate::protocols::blocks::commands::{self, Answer, Done, Order};
use crate::protocols::blocks::from_wire::{self, Asked, Command};
use crate::protocols::blocks::projection::Projection;
use crate::protocols::blocks::refuse::{Code, Refused};
use crate::protocols::blocks::standing::{Standing, visible};
use crate::protocols::blocks::subscription::{Subscription, subscribed};
use crate::protocols::blocks::wire::control::Control;
use crate::protocols::blocks::wire::events::{Body, Event};
use crate::protocols::blocks::{PROTOCOL, seconds};

/// One connection.
pub(super) struct Connection {
    app: App,
    out: Outbox,
    subscribed: HashMap<SessionId, AbortHandle>,
    shown: SelectAll<Shown>,
    /// The names of commands whose answers are events that are yet to come.
    awaited: HashMap<Awaited, String>,
    /// How fast the client's own pings may come, each of which is answered.
    pings: Pace,
}

/// What happens in one session.
type Shown = Pin<Box<dyn Stream<Item = (SessionId, Result<Vec<Event>, RunError>)> + Send>>;

/// An event that answers a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Awaited {
    /// The start of this message.
    Start(String),
    /// The end of this message.
    Stop(String),
    /// The end of this request.
    Resolved(String),
}

/// The right to be connected: of somebody, or of nobody yet.
enum Seat {
    Known { identity: Identity, _permit: StreamPermit },
    Unknown { until: Instant, messages: u32, _permit: OwnedSemaphorePermit },
}

/// Messages that are read from somebody who has not said who they are.
const MESSAGES_UNKNOWN_MAX: u32 = 16;

/// Bytes of a message whose name is still read when too many came.
const NAMED_BYTES_MAX: usize = 16 << 10;

impl Connection {
    pub(super) fn new(app: App, socket: WebSocket) -> Self {
        let limits = app.limits();
        let out = Outbox::new(socket, limits.slow_reader);
        let pings = Pace::new(limits.requests_per_second, limits.requests_burst);
        Self { app, out, subscribed: HashMap::new(), shown: SelectAll::new(), awaited: HashMap::new(), pings }
    }

    /// Serves the connection to its end.
    pub(super) async fn serve(mut self, identity: Option<Identity>) {
        let closing = match self.seat(identity) {
            Some(seat) => self.converse(seat).await,
            None => Closing::Overloaded,
        };
        self.out.close(closing).await;
    }

    /// A seat, if there is one left.
    fn seat(&self, identity: Option<Identity>) -> Option<Seat> {
        match identity {
            Some(identity) => {
                let permit = self.app.blocks().take_socket(&identity.caller.actor).ok()?;
                Some(Seat::Known { identity, _permit: permit })
            }
            None => {
                let until = Instant::now() + self.app.limits().socket_auth_timeout;
                Some(Seat::Unknown { until, messages: 0, _permit: self.app.blocks().take_unknown()? })
            }
        }
    }

    async fn converse(&mut self, mut seat: Seat) -> Closing {
        let heartbeat = self.app.limits().socket_heartbeat;
        let connected = Control::Connected {
            protocol: PROTOCOL,
            server_time: seconds(self.app.runtime().store().now()),
            heartbeat_seconds: heartbeat.as_secs(),
        };
        if let Err(closing) = self.out.send(&connected).await {
            return closing;
        }
        let stop = self.app.stopping();
        let mut ticks = interval_at(Instant::now() + heartbeat, heartbeat);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut was_heard = true;
        loop {
            let until = match &seat {
                Seat::Known { .. } => None,
                Seat::Unknown { until, .. } => Some(*until),
            };
            let went_on = tokio::select! {
                message = self.out.receive() => {
                    was_heard = true;
                    match message {
                        // Boxed, so that a connection that does nothing does not hold the room for it.
                        Ok(message) => Box::pin(self.take(&mut seat, message)).await,
                        Err(closing) => Err(closing),
                    }
                }
                Some((session, happened)) = self.shown.next(), if !self.shown.is_empty() => {
                    Box::pin(self.show(&seat, &session, happened)).await
                }
                _ = ticks.tick() => Box::pin(self.beat(&seat, std::mem::take(&mut was_heard))).await,
                () = sleep_until(until) => Err(Closing::NotAuthenticated),
                () = stop.cancelled() => Err(Closing::Stopping),
            };
            if let Err(closing) = went_on {
                return closing;
            }
        }
    }

    /// Asks whether the client is there, and whether it still is who it was.
    async fn beat(&mut self, seat: &Seat, was_heard: bool) -> Result<(), Closing> {
        if !was_heard {
            return Err(Closing::Silent);
        }
        if let Seat::Known { identity, .. } = seat {
            check_still(&self.app, identity).await?;
        }
        self.out.ping().await
    }

    async fn take(&mut self, seat: &mut Seat, message: Message) -> Result<(), Closing> {
        let text = match message {
            Message::Text(text) => text,
            Message::Binary(_) => {
                let refused = match self.count(seat)? {
                    Ok(()) => Refused::new(Code::BadJson, "commands are text frames of JSON, not binary ones"),
                    Err(refused) => refused,
                };
                return self.out.send(&refused.told(None)).await;
            }
            Message::Ping(_) => return if self.pings.take() { Ok(()) } else { Err(Closing::Flooded) },
            Message::Pong(_) => return Ok(()),
            Message::Close(_) => return Err(Closing::Gone),
        };
        if let Err(refused) = self.count(seat)? {
            let name = (text.len() <= NAMED_BYTES_MAX).then(|| from_wire::command(text.as_str(), None).request_id);
            return self.out.send(&refused.told(name.flatten())).await;
        }
        let Asked { request_id, command } = from_wire::command(text.as_str(), None);
        match (command, &*seat) {
            (Err(refused), _) => self.out.send(&refused.told(request_id)).await,
            (Ok(Command::Ping), _) => self.out.send(&Control::Pong { request_id }).await,
            (Ok(Command::Auth { token }), _) => self.authenticate(seat, token, request_id).await,
            (Ok(_), Seat::Unknown { .. }) => {
                let refused =
                    Refused::new(Code::NotAllowed, "say who you are first: {\"type\": \"auth\", \"token\": …}");
                self.out.send(&refused.told(request_id)).await
            }
            (Ok(command), Seat::Known { identity, .. }) => {
                check_still(&self.app, identity).await?;
                let caller = identity.caller.clone();
                match self.carry_out(&caller, request_id.clone(), command).await? {
                    Ok(()) => Ok(()),
                    Err(refused) => self.out.send(&refused.told(request_id)).await,
                }
            }
        }
    }

    /// Whatever a client sends counts before it is read, also what cannot be read and what asks nothing.
    fn count(&self, seat: &mut Seat) -> Result<Result<(), Refused>, Closing> {
        match seat {
            Seat::Known { identity, .. } => Ok(self.app.rate().take(&identity.caller.actor).map_err(Refused::from)),
            Seat::Unknown { messages, .. } => {
                *messages += 1;
                if *messages > MESSAGES_UNKNOWN_MAX { Err(Closing::NotAuthenticated) } else { Ok(Ok(())) }
            }
        }
    }

    /// Who says who they are in a message. It is said once; where nobody is asked, everybody is the same.
    async fn authenticate(
        &mut self,
        seat: &mut Seat,
        token: SecretString,
        request_id: Option<String>,
    ) -> Result<(), Closing> {
        if let Seat::Known { identity, .. } = seat {
            let is_same = match Identity::with(self.app.access(), token).await {
                Ok(again) => again.caller.actor == identity.caller.actor,
                Err(_) => false,
            };
            let actor = identity.caller.actor.to_string();
            return match is_same {
                true => self.out.send(&Control::AuthOk { actor, request_id }).await,
                false => {
                    let refused = Refused::new(Code::NotAllowed, "this connection is somebody's: open another one");
                    self.out.send(&refused.told(request_id)).await
                }
            };
        }
        let identity = match Identity::with(self.app.access(), token).await {
            Ok(identity) => identity,
            Err(problem) => {
                self.out.send(&Refused::from(problem).told(request_id)).await?;
                return Err(Closing::NotAuthenticated);
            }
        };
        let actor = identity.caller.actor.to_string();
        *seat = self.seat(Some(identity)).ok_or(Closing::Overloaded)?;
        self.out.send(&Control::AuthOk { actor, request_id }).await
    }

    /// Carries out a command of somebody known. What it leads to is shown with the session's other events.
    async fn carry_out(
        &mut self,
        caller: &Caller,
        request_id: Option<String>,
        command: Command,
    ) -> Result<Result<(), Refused>, Closing> {
        if let Command::Subscribe { session, after } = &command {
            return self.subscribe(caller, session, *after, request_id).await;
        }
        let Some(order) = Order::of(&self.app, caller, request_id.as_deref(), command) else { return Ok(Ok(())) };
        let session = order.session().clone();
        // Who sends a command into a session is shown what comes of it.
        let is_new = match self.join(caller, &session).await {
            Ok(is_new) => is_new,
            Err(refused) => return Ok(Err(refused)),
        };
        match commands::carry_out(&self.app, caller, request_id.as_deref(), order).await {
            Ok(done) if is_new && done.is_repeat() => self.answer_again(caller, &session, done, request_id).await,
            Ok(done) => self.answer(done, request_id).await,
            Err(refused) => {
                if is_new {
                    self.leave(&session);
                }
                Ok(Err(refused))
            }
        }
    }

    async fn answer(&mut self, done: Done, request_id: Option<String>) -> Result<Result<(), Refused>, Closing> {
        if let Some(control) = done.control(request_id.clone()) {
            return self.out.send(&control).await.map(Ok);
        }
        if done.is_repeat() {
            return match done.answer(&self.app, request_id).await {
                Ok(Answer::Event(event)) => self.out.send(&*event).await.map(Ok),
                Ok(Answer::Control(control)) => self.out.send(&control).await.map(Ok),
                Err(refused) => Ok(Err(refused)),
            };
        }
        if let Some(name) = request_id {
            let event = match &done {
                Done::Started { run, .. } => Awaited::Start(Projection::message_id(*run)),
                Done::Cancelled { run, .. } => Awaited::Stop(Projection::message_id(*run)),
                Done::Decided { key, .. } => Awaited::Resolved(key.clone()),
                Done::Queued { .. } | Done::Voted { .. } => return Ok(Ok(())),
            };
            self.awaited.insert(event, name);
        }
        Ok(Ok(()))
    }

    /// Answers a command that was carried out before with what it led to then, and shows what has happened since: whoever
    /// sends it again on a new connection has seen nothing of it.
    async fn answer_again(
        &mut self,
        caller: &Caller,
        session: &SessionId,
        done: Done,
        request_id: Option<String>,
    ) -> Result<Result<(), Refused>, Closing> {
        let answered = match done.answer(&self.app, request_id).await {
            Ok(Answer::Event(event)) => event,
            Ok(Answer::Control(control)) => return self.out.send(&control).await.map(Ok),
            Err(refused) => return Ok(Err(refused)),
        };
        let after = answered.number.as_ref().map(|number| number.seq);
        self.out.send(&*answered).await?;
        match Standing::read(&self.app, caller, Action::ReadRun, session).await {
            Ok(standing) => self.follow(session, standing, after),
            Err(refused) => return Ok(Err(refused)),
        }
        Ok(Ok(()))
    }

    async fn subscribe(
        &mut self,
        caller: &Caller,
        session: &SessionId,
        after: Option<u64>,
        request_id: Option<String>,
    ) -> Result<Result<(), Refused>, Closing> {
        if let Err(refused) = self.check_room(session) {
            return Ok(Err(refused));
        }
        if let Err(problem) = caller.check(Action::ReadRun) {
            return Ok(Err(problem.into()));
        }
        let standing = match Standing::read(&self.app, caller, Action::ReadRun, session).await {
            Ok(standing) => standing,
            Err(refused) => return Ok(Err(refused)),
        };
        self.out.send(&subscribed(session, &standing, request_id)).await?;
        self.follow(session, standing, Some(after.unwrap_or(0)));
        Ok(Ok(()))
    }

    /// Shows what happens in a session from now on; says whether it was not shown before.
    async fn join(&mut self, caller: &Caller, session: &SessionId) -> Result<bool, Refused> {
        if self.subscribed.contains_key(session) {
            return Ok(false);
        }
        self.check_room(session)?;
        let events = visible(&self.app, caller, Action::ReadRun, session).await?;
        let standing = match events {
            None => Standing::empty(session),
            Some(events) => self.app.blocks().kept().look(&self.app, session, events, Standing::of).await?,
        };
        self.follow(session, standing, None);
        Ok(true)
    }

    fn follow(&mut self, session: &SessionId, standing: Standing, after: Option<u64>) {
        self.leave(session);
        let subscription = Subscription::new(&self.app, session, standing, after);
        let named = session.clone();
        let shown = unfold(Some(subscription), move |subscription| {
            let session = named.clone();
            async move {
                let mut subscription = subscription?;
                match subscription.next().await {
                    Ok(events) => Some(((session, Ok(events)), Some(subscription))),
                    Err(error) => Some(((session, Err(error)), None)),
                }
            }
        });
        let (shown, handle) = abortable(shown);
        self.subscribed.insert(session.clone(), handle);
        self.shown.push(Box::pin(shown));
    }

    fn leave(&mut self, session: &SessionId) {
        if let Some(handle) = self.subscribed.remove(session) {
            handle.abort();
        }
    }

    fn check_room(&self, session: &SessionId) -> Result<(), Refused> {
        let max = self.app.limits().socket_sessions_max;
        match self.subscribed.contains_key(session) || self.subscribed.len() < max {
            true => Ok(()),
            false => {
                let message = format!("a connection is shown {max} sessions at most: open another one");
                Err(Refused::new(Code::Overloaded, message))
            }
        }
    }

    async fn show(
        &mut self,
        seat: &Seat,
        session: &SessionId,
        happened: Result<Vec<Event>, RunError>,
    ) -> Result<(), Closing> {
        match happened {
            Ok(mut events) => {
                events.iter_mut().for_each(|event| self.name(seat, event));
                self.out.send_all(events.iter()).await
            }
            Err(error) => {
                self.leave(session);
                let refused = Refused::from(error).with(serde_json::json!({"session_id": session}));
                self.out.send(&refused.told(None)).await
            }
        }
    }

    /// An event that answers a command of this connection carries the command's name.
    fn name(&mut self, seat: &Seat, event: &mut Event) {
        if self.awaited.is_empty() {
            return;
        }
        let Seat::Known { identity, .. } = seat else { return };
        let message = || event.message_id.clone().unwrap_or_default();
        let answered = match &event.body {
            Body::MessageStart { .. } => Awaited::Start(message()),
            Body::MessageStop { .. } => Awaited::Stop(message()),
            Body::ApprovalResolved { approval_key, decided_by, .. }
                if decided_by.as_deref() == Some(identity.caller.actor.as_str()) =>
            {
                Awaited::Resolved(approval_key.clone())
            }
            _ => return,
        };
        event.request_id = self.awaited.remove(&answered);
    }
}

/// Sleeps until then; for ever where there is no such time.
async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// A credential may have run out since it was shown.
async fn check_still(app: &App, identity: &Identity) -> Result<(), Closing> {
    if identity.holds(app.access()).await { Ok(()) } else { Err(Closing::NotAuthenticated) }
}
