//! A stream follows a run to its next stop. The run moves in a task of its own: who stops reading changes nothing.

use std::collections::VecDeque;
use std::time::Duration;

use axum::response::Response;
use holdpoint_core::event::RunEvent;
use holdpoint_runtime::RunError;
use holdpoint_runtime::use_cases::{WatchItem, WatchSession};

use super::chunks::{Narrator, Stop, done, frame};
use super::wire::Chunk;
use crate::access::Caller;
use crate::app::App;
use crate::limits::StreamPermit;
use crate::problem::{Code, Problem};
use crate::protocols::driving::{DriveEnd, Driving, Failure};
use crate::sse::{self, Gone, Writer};

/// How often the store is asked for what other processes wrote.
const GLANCE: Duration = Duration::from_secs(2);

/// What a stream needs to follow a run.
pub(super) struct Follow {
    pub(super) app: App,
    pub(super) caller: Caller,
    /// Knows the run as it stood before the first item.
    pub(super) narrator: Narrator,
    pub(super) watch: WatchSession,
    /// What the watch saw before the stream began.
    pub(super) seen: VecDeque<WatchItem>,
    pub(super) drive: Driving,
    /// What happens where a person must look.
    pub(super) at_pause: AtPause,
}

/// What a stream does where a person must look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtPause {
    /// It ends.
    End,
    /// It stays open, and goes on after the decision.
    Stay,
}

impl Follow {
    /// The stream.
    pub(super) fn respond(self, permit: StreamPermit) -> Response {
        let app = self.app.clone();
        let stopping = Problem::new(Code::STOPPING, "the server is stopping; the run goes on with its next start");
        let last = self.narrator.maker().error(stopping.code(), stopping.detail());
        let farewell = vec![frame(&last), done()];
        sse::stream(&app, permit, farewell, |writer| async move {
            self.follow(&mut Out::Stream(&writer)).await?;
            writer.send(done()).await
        })
    }

    /// Waits for the next stop without telling anybody. What went wrong, if something did.
    pub(super) async fn wait(self) -> Option<Problem> {
        self.follow(&mut Out::Nobody).await.unwrap_or_default()
    }

    /// Reads ahead to the first event of the run that is meant; `None` where the run comes to a stop before. What was read
    /// is told all the same.
    pub(super) async fn read_ahead(
        &mut self,
        is_meant: impl Fn(&RunEvent) -> bool,
    ) -> Result<Option<RunEvent>, RunError> {
        let run = self.narrator.run().id();
        let meant = |item: &WatchItem| match item {
            WatchItem::Event { run: of, event, .. } if *of == run && is_meant(event) => Some(RunEvent::clone(event)),
            _ => None,
        };
        let mut read = VecDeque::new();
        let found = loop {
            let mut has_stopped = false;
            let items = match self.next().await? {
                Next::Happened(item) => vec![item],
                Next::Glance => self.watch.caught_up().await?,
                Next::DriveEnded(ended) => {
                    self.drive = Driving::Ended(ended);
                    has_stopped = true;
                    self.watch.caught_up().await?
                }
            };
            let found = items.iter().find_map(meant);
            read.extend(items);
            if found.is_some() || has_stopped {
                break found;
            }
        };
        self.seen = read;
        Ok(found)
    }

    /// Tells everything up to the stop; says what went wrong, if something did.
    async fn follow(mut self, out: &mut Out<'_>) -> Result<Option<Problem>, Gone> {
        match self.tell_all(out).await {
            Ok(()) => Ok(None),
            Err(Trouble::Gone) => Err(Gone),
            Err(Trouble::Failed(failure)) => {
                let problem = failure.problem.clone();
                self.fail(failure, out).await?;
                Ok(Some(problem))
            }
        }
    }

    /// Tells what happens until nothing more can.
    async fn tell_all(&mut self, out: &mut Out<'_>) -> Result<(), Trouble> {
        loop {
            match self.next().await? {
                Next::Happened(item) => out.send_all(self.narrator.tell(item)).await?,
                Next::Glance => self.catch_up(out).await?,
                Next::DriveEnded(ended) => {
                    self.catch_up(out).await?;
                    if let DriveEnd::Failed(failure) = ended {
                        return Err(Trouble::Failed(failure));
                    }
                }
            }
            // Between two events of one write a run may look as if it stood still.
            if self.narrator.stop().is_some() {
                self.catch_up(out).await?;
            }
            match self.narrator.stop() {
                Some(Stop::Over) => return Ok(()),
                Some(Stop::Held) => {
                    out.send_all(self.narrator.announce()).await?;
                    if self.at_pause == AtPause::End {
                        return Ok(());
                    }
                }
                None => {}
            }
        }
    }

    async fn next(&mut self) -> Result<Next, RunError> {
        if let Some(item) = self.seen.pop_front() {
            return Ok(Next::Happened(item));
        }
        match std::mem::replace(&mut self.drive, Driving::Over) {
            Driving::Over => tokio::select! {
                item = self.watch.next() => Ok(Next::Happened(item?)),
                () = tokio::time::sleep(GLANCE) => Ok(Next::Glance),
            },
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
    async fn catch_up(&mut self, out: &mut Out<'_>) -> Result<(), Trouble> {
        let items = self.watch.caught_up().await?;
        for item in self.seen.drain(..).chain(items) {
            out.send_all(self.narrator.tell(item)).await?;
        }
        Ok(())
    }

    /// The last chunks of a stream whose run cannot go on. What may pass is tried again by the server's worker; a run
    /// whose model will not reply is ended, or the thread would wait for it for ever.
    async fn fail(mut self, failure: Failure, out: &mut Out<'_>) -> Result<(), Gone> {
        if failure.is_hopeless {
            let run = self.narrator.run().id();
            let ended = self.app.runtime().cancel_run(run, self.caller.actor, "its model gave no reply").await;
            if let Err(error) = ended {
                tracing::warn!(run.id = %run, %error, "a run whose model gave no reply could not be ended");
            }
        }
        let (code, message) = (failure.problem.code(), failure.problem.detail());
        out.send_all(self.narrator.fail(code, message)).await
    }
}

/// What happens next.
enum Next {
    Happened(WatchItem),
    /// Nothing did for a while: another process may have written.
    Glance,
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

/// Where chunks go.
enum Out<'a> {
    Stream(&'a Writer),
    /// Only the stop counts.
    Nobody,
}

impl Out<'_> {
    async fn send_all(&mut self, chunks: Vec<Chunk>) -> Result<(), Gone> {
        let Self::Stream(writer) = self else { return Ok(()) };
        for chunk in chunks {
            writer.send(frame(&chunk)).await?;
        }
        Ok(())
    }
}
