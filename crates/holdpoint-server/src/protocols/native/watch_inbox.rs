//! The inbox as it changes. What this process commits is told at once; what others do is found by looking.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use holdpoint_core::ids::PauseId;
use holdpoint_runtime::ports::observer::Change;
use holdpoint_runtime::ports::store::{PauseFilter, PauseRow};
use holdpoint_runtime::use_cases::{PauseNews, WatchPauses};
use http::{HeaderMap, StatusCode};
use serde_json::json;

use super::wire::StreamFrame;
use super::{frames, from_wire, pauses, wire};
use crate::access::{Action, Caller, Identity};
use crate::app::App;
use crate::limits::Query;
use crate::problem::Problem;
use crate::sse::{self, Frame, Gone, Writer};

/// How often it is looked what other processes did.
const GLANCE: Duration = Duration::from_secs(2);

/// How many pauses are listed at once.
const PAGE: usize = 200;

/// How many open pauses are kept in mind for one client. Those beyond are told of when they change here.
const OPEN_MAX: usize = 10_000;

/// The inbox as it changes: a frame for each pause that is open now, a frame `ready`, and then one for each change.
///
/// Frames are named after what happened (`pause.opened`, `pause.voted`, `pause.decided`, `pause.expired`,
/// `pause.withdrawn`, `pause.superseded`) and carry the pause as it now is.
#[utoipa::path(
    get,
    path = "/api/v1/pauses/stream",
    tag = "pauses",
    operation_id = "watch_pauses",
    responses((status = 200, description = "A stream.", content_type = "text/event-stream", body = StreamFrame))
)]
pub(super) async fn watch(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.check(Action::ReadPause)?;
    from_wire::wants_stream(&headers)?;
    query.only(&[])?;
    let permit = app.streams().take(&caller.actor)?;
    let identity = Identity::shown(app.access(), &headers).await?;
    let inbox = Inbox { app: app.clone(), caller, open: BTreeMap::new() };
    Ok(sse::watch(&app, permit, identity, frames::farewell(), move |writer| async move {
        // Watching begins before the first look, so that nothing falls in between.
        let watch = inbox.app.runtime().watch_pauses();
        match inbox.follow(&writer, watch).await {
            Ok(()) => Ok(()),
            Err(Stopped::Gone(gone)) => Err(gone),
            Err(Stopped::Trouble(problem)) => writer.send(frames::trouble(&problem)).await,
        }
    }))
}

/// One client's view of the inbox.
struct Inbox {
    app: App,
    caller: Caller,
    /// What was open when it was last looked, and whether the client may know of it.
    open: BTreeMap<PauseId, bool>,
}

/// Why a stream of the inbox ends.
enum Stopped {
    Gone(Gone),
    Trouble(Problem),
}

impl From<Gone> for Stopped {
    fn from(gone: Gone) -> Self {
        Self::Gone(gone)
    }
}

impl From<Problem> for Stopped {
    fn from(problem: Problem) -> Self {
        Self::Trouble(problem)
    }
}

impl Inbox {
    async fn follow(mut self, writer: &Writer, mut watch: WatchPauses) -> Result<(), Stopped> {
        self.look(writer).await?;
        writer.send(Frame::json(&json!({})).event("ready")).await?;
        let is_shared = self.app.runtime().store().durability().is_shared;
        loop {
            let news = tokio::select! {
                news = watch.next() => news,
                () = tokio::time::sleep(GLANCE), if is_shared => Some(PauseNews::Missed(0)),
            };
            match news {
                Some(PauseNews::Changed(change)) => match change.change {
                    Change::Opened => self.opened(writer, change.pause, None).await?,
                    Change::Voted => self.tell(writer, change.pause, "pause.voted").await.map(|_| ())?,
                    Change::Decided(_) | Change::Expired | Change::Withdrawn => {
                        self.ended(writer, change.pause).await?
                    }
                },
                Some(PauseNews::Missed(_)) => self.look(writer).await?,
                None => return Ok(()),
            }
        }
    }

    /// Tells the difference between what is open and what was.
    async fn look(&mut self, writer: &Writer) -> Result<(), Stopped> {
        let rows = self.rows().await?;
        for row in &rows {
            self.opened(writer, row.id, Some(row)).await?;
        }
        let open: BTreeSet<PauseId> = rows.iter().map(|row| row.id).collect();
        let ended: Vec<PauseId> = self.open.keys().copied().filter(|id| !open.contains(id)).collect();
        for id in ended {
            self.ended(writer, id).await?;
        }
        Ok(())
    }

    async fn rows(&self) -> Result<Vec<PauseRow>, Problem> {
        let mut filter = PauseFilter { limit: PAGE, ..PauseFilter::open() };
        let mut rows = Vec::new();
        loop {
            let page = self.app.runtime().list_pauses(&filter).await?;
            rows.extend(page.pauses.into_iter().map(|summary| summary.row));
            match page.next {
                Some(next) if rows.len() < OPEN_MAX => filter.after = Some(next),
                _ => return Ok(rows),
            }
        }
    }

    /// Tells of a pause that opened, once.
    async fn opened(&mut self, writer: &Writer, id: PauseId, row: Option<&PauseRow>) -> Result<(), Stopped> {
        if self.open.contains_key(&id) {
            return Ok(());
        }
        let is_seen = match (self.tell(writer, id, "pause.opened").await, row) {
            // What is known of a pause whose run cannot be read is told; one such run must not hide all others.
            (Err(Stopped::Trouble(problem)), Some(row)) if pauses::says_unreadable(&problem) => {
                let pause = pauses::unreadable(&self.caller, row);
                if let Some(pause) = &pause {
                    writer.send(Frame::json(pause).event("pause.opened")).await?;
                }
                pause.is_some()
            }
            (told, _) => told?,
        };
        if self.open.len() < OPEN_MAX {
            self.open.insert(id, is_seen);
        }
        Ok(())
    }

    /// Tells of a pause that was settled, once, to a client who knew of it.
    async fn ended(&mut self, writer: &Writer, id: PauseId) -> Result<(), Stopped> {
        let is_known = self.open.remove(&id);
        let may_be_beyond = is_known.is_none() && self.open.len() >= OPEN_MAX;
        if is_known != Some(true) && !may_be_beyond {
            return Ok(());
        }
        let dossier = match pauses::visible(&self.app, &self.caller, id).await {
            Err(problem) if problem.status() == StatusCode::NOT_FOUND => return Ok(()),
            Err(problem) if pauses::says_unreadable(&problem) => return Ok(()),
            dossier => dossier?,
        };
        let pause = pauses::shown(&dossier, id)?;
        let name = match pause.status {
            wire::PauseStatus::Open => return Ok(()),
            wire::PauseStatus::Decided => "pause.decided",
            wire::PauseStatus::Expired => "pause.expired",
            wire::PauseStatus::Withdrawn => "pause.withdrawn",
            wire::PauseStatus::Superseded => "pause.superseded",
        };
        Ok(writer.send(Frame::json(&pause).event(name)).await?)
    }

    /// Tells of a pause to a client who may know of it; says whether it was told.
    async fn tell(&self, writer: &Writer, id: PauseId, event: &'static str) -> Result<bool, Stopped> {
        match pauses::visible(&self.app, &self.caller, id).await {
            Ok(dossier) => {
                writer.send(Frame::json(&pauses::shown(&dossier, id)?).event(event)).await?;
                Ok(true)
            }
            Err(problem) if problem.status() == StatusCode::NOT_FOUND => Ok(false),
            Err(problem) => Err(problem.into()),
        }
    }
}
