//! A stream follows a run to its next stop. The run moves in a task of its own: who stops reading changes nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::response::Response;
use holdpoint_core::ids::SessionId;
use holdpoint_runtime::RunError;
use holdpoint_runtime::use_cases::{WatchItem, WatchSession};
use http::HeaderValue;

use super::frames::{Encoder, Frame, Mode, Narrator, Stop};
use super::standing::{Conversation, Standing};
use super::to_wire;
use super::wire::StreamError;
use crate::access::Caller;
use crate::agents::ServedAgent;
use crate::app::App;
use crate::limits::StreamPermit;
use crate::problem::{Code, Problem};
use crate::protocols::driving::{DriveEnd, Driving, Failure};
use crate::sse::{self, Gone, Writer};

/// What a stream needs to follow a run.
pub(super) struct Follow {
    pub(super) app: App,
    pub(super) caller: Caller,
    pub(super) agent: Arc<ServedAgent>,
    pub(super) session: SessionId,
    /// Knows the run as it stood before the first item.
    pub(super) narrator: Narrator,
    pub(super) watch: WatchSession,
    /// What the watch saw before the stream began.
    pub(super) seen: VecDeque<WatchItem>,
    pub(super) drive: Driving,
}

impl Follow {
    /// The stream, in the mode that the client asked for.
    pub(super) fn respond(self, mode: Mode, permit: StreamPermit) -> Response {
        let app = self.app.clone();
        let out = |writer| Out { writer, encoder: Encoder::new(mode), app: app.clone() };
        let mut response = sse::stream(&app, permit, farewell(&app, mode), |writer| self.write(out(writer)));
        let echo = if mode == Mode::A2ui { "true" } else { "false" };
        response.headers_mut().insert("x-a2ui", HeaderValue::from_static(echo));
        response
    }

    async fn write(mut self, mut out: Out) -> Result<(), Gone> {
        match self.tell_all(&mut out).await {
            Ok(stop) => self.end(stop, &mut out).await,
            Err(Trouble::Gone) => Err(Gone),
            Err(Trouble::Failed(failure)) => self.fail(failure, &mut out).await,
        }
    }

    /// Tells what happens until nothing more can.
    async fn tell_all(&mut self, out: &mut Out) -> Result<Stop, Trouble> {
        loop {
            match self.next().await? {
                Next::Happened(item) => out.send_all(self.narrator.tell(item)).await?,
                Next::DriveEnded(ended) => {
                    self.catch_up(out).await?;
                    if let DriveEnd::Failed(failure) = ended {
                        return Err(Trouble::Failed(failure));
                    }
                }
            }
            // A decision about one of several pauses looks like a stop for a moment, and so do events of one write.
            if self.narrator.stop().is_some() {
                self.catch_up(out).await?;
            }
            if let Some(stop) = self.narrator.stop() {
                return Ok(stop);
            }
        }
    }

    async fn next(&mut self) -> Result<Next, RunError> {
        if let Some(item) = self.seen.pop_front() {
            return Ok(Next::Happened(item));
        }
        match std::mem::replace(&mut self.drive, Driving::Over) {
            Driving::Over => Ok(Next::Happened(self.watch.next().await?)),
            Driving::Ended(ended) => Ok(Next::DriveEnded(ended)),
            Driving::UnderWay(mut drive) => {
                let item = tokio::select! {
                    biased;
                    item = self.watch.next() => item,
                    ended = &mut drive => return Ok(Next::DriveEnded(DriveEnd::read(ended))),
                };
                self.drive = Driving::UnderWay(drive);
                Ok(Next::Happened(item?))
            }
        }
    }

    /// Tells what has already happened.
    async fn catch_up(&mut self, out: &mut Out) -> Result<(), Trouble> {
        let items = self.watch.caught_up().await?;
        for item in self.seen.drain(..).chain(items) {
            out.send_all(self.narrator.tell(item)).await?;
        }
        Ok(())
    }

    /// The last frames of a stream that came to a stop.
    async fn end(self, stop: Stop, out: &mut Out) -> Result<(), Gone> {
        if stop == Stop::Held {
            let now = Conversation::of(&self.app, &self.session, self.agent.graph.root()).await;
            match now.map(|conversation| conversation.standing) {
                Ok(Standing::Held(held)) => {
                    let state = to_wire::state(&held, &self.agent, &self.session);
                    out.send(Frame::Interrupt(state, to_wire::interrupt(&held, &self.agent))).await?;
                }
                // Somebody was faster: there is nothing left to ask.
                Ok(Standing::Moving(_) | Standing::Idle { .. }) => {}
                Err(problem) => out.send(error_frame(&problem, true)).await?,
            }
        }
        out.send(Frame::Done).await
    }

    /// The last frames of a stream whose run cannot go on. What may pass is tried again by the server's worker; a run
    /// whose model will not reply is ended, or the session would wait for it for ever.
    async fn fail(self, failure: Failure, out: &mut Out) -> Result<(), Gone> {
        if failure.is_hopeless {
            let run = self.narrator.run().id();
            let ended = self.app.runtime().cancel_run(run, self.caller.actor, "its model gave no reply").await;
            if let Err(error) = ended {
                tracing::warn!(run.id = %run, %error, "a run whose model gave no reply could not be ended");
            }
        }
        out.send(error_frame(&failure.problem, failure.may_pass)).await?;
        out.send(Frame::Done).await
    }
}

/// What happens next.
enum Next {
    Happened(WatchItem),
    DriveEnded(DriveEnd),
}

/// Why a stream breaks off.
enum Trouble {
    /// Nobody reads it any more.
    Gone,
    /// There is nothing more to tell for now.
    Failed(Failure),
}

impl From<Gone> for Trouble {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<RunError> for Trouble {
    fn from(error: RunError) -> Self {
        Self::Failed(error.into())
    }
}

/// Where frames go.
struct Out {
    writer: Writer,
    encoder: Encoder,
    app: App,
}

impl Out {
    async fn send(&mut self, frame: Frame) -> Result<(), Gone> {
        let now = self.app.runtime().store().now();
        for frame in self.encoder.write(&frame, now) {
            self.writer.send(frame).await?;
        }
        Ok(())
    }

    async fn send_all(&mut self, frames: Vec<Frame>) -> Result<(), Gone> {
        for frame in frames {
            self.send(frame).await?;
        }
        Ok(())
    }
}

/// What a client reads last when the server stops.
fn farewell(app: &App, mode: Mode) -> Vec<sse::Frame> {
    let stopping = Problem::new(Code::STOPPING, "the server is stopping; the run goes on with its next start");
    let mut encoder = Encoder::new(mode);
    let now = app.runtime().store().now();
    [error_frame(&stopping, true), Frame::Done].iter().flat_map(|frame| encoder.write(frame, now)).collect()
}

fn error_frame(problem: &Problem, retryable: bool) -> Frame {
    Frame::Error(StreamError { code: problem.code().to_owned(), message: problem.detail().to_owned(), retryable })
}
