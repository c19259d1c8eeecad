//! The inbox: what waits for a person, and what once did.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use axum::Json;
use axum::extract::State;
use holdpoint_core::ids::{AgentId, PauseId, RunId, SessionId, ToolName};
use holdpoint_core::refusal::Refusal;
use holdpoint_runtime::ports::store::{PauseCursor, PauseFilter, PauseStatus};

use super::dossier::Dossier;
use super::path::{Named, unknown};
use super::{cursor, to_wire, wire};
use crate::access::{Action, Caller};
use crate::app::App;
use crate::limits::{Params, Query};
use crate::problem::{Code, Problem};

/// How often the store is asked for a page of a caller who may see only some of what it holds.
const LOOKS_MAX: usize = 8;

/// A page of pauses, oldest first.
///
/// For a caller who sees only their own, a page may be short and still have a next one.
#[utoipa::path(
    get,
    path = "/api/v1/pauses",
    tag = "pauses",
    operation_id = "list_pauses",
    params(
        ("status" = Option<wire::PauseFilterStatus>, Query, description = "Only those that stand so; `open` when nothing is said."),
        ("agent" = Option<String>, Query, description = "Only of this agent, by its place."),
        ("tool" = Option<String>, Query, description = "Only of this tool."),
        ("session" = Option<String>, Query, description = "Only of this session."),
        ("limit" = Option<u64>, Query, description = "At most so many.", minimum = 1, maximum = 200),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before."),
    ),
    responses((status = 200, description = "A page of pauses.", body = wire::PauseList))
)]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    query: Query,
) -> Result<Json<wire::PauseList>, Problem> {
    caller.check(Action::ReadPause)?;
    let params = query.only(&["status", "agent", "tool", "session", "limit", "cursor"])?;
    let (filter, filters) = filter(&params)?;
    let page = page(&app, &caller, filter).await?;
    let next_cursor = page.next.map(|place| cursor::write("pauses", &filters, &write_place(place)));
    Ok(Json(wire::PauseList { pauses: page.pauses, next_cursor }))
}

/// A page of what the caller may see.
pub(super) struct Page {
    pub(super) pauses: Vec<wire::Pause>,
    pub(super) next: Option<PauseCursor>,
}

/// Reads a page. Rows are looked up until the page is full, the list is at its end, or enough was looked at.
pub(super) async fn page(app: &App, caller: &Caller, mut filter: PauseFilter) -> Result<Page, Problem> {
    let wanted = filter.limit;
    let mut known: BTreeMap<RunId, Dossier> = BTreeMap::new();
    let mut pauses = Vec::new();
    for _ in 0..LOOKS_MAX {
        filter.limit = wanted - pauses.len();
        let found = app.runtime().list_pauses(&filter).await?;
        for summary in &found.pauses {
            let id = summary.row.id;
            let dossier = match known.entry(id.run) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place.insert(Dossier::read(app.runtime(), id.run).await?),
            };
            let is_seen = caller.sees(Action::ReadPause, dossier.run.started_by());
            let file = dossier.pause(id).filter(|_| is_seen);
            pauses.extend(file.map(|file| to_wire::pause(dossier, file)));
        }
        filter.after = found.next;
        if pauses.len() >= wanted || filter.after.is_none() {
            break;
        }
    }
    Ok(Page { pauses, next: filter.after })
}

fn filter(params: &Params) -> Result<(PauseFilter, String), Problem> {
    let status = match params.text("status") {
        None | Some("open") => Some(PauseStatus::Open),
        Some("decided") => Some(PauseStatus::Decided),
        Some("expired") => Some(PauseStatus::Expired),
        Some("withdrawn") => Some(PauseStatus::Withdrawn),
        Some("all") => None,
        Some(_) => {
            let detail = "status: open, decided, expired, withdrawn or all expected";
            return Err(Problem::new(Code::INVALID_PARAMETER, detail).at("status"));
        }
    };
    let (session, agent, tool): (Option<SessionId>, Option<AgentId>, Option<ToolName>) =
        (params.parsed("session")?, params.parsed("agent")?, params.parsed("tool")?);
    let filters = format!("{status:?} {session:?} {agent:?} {tool:?}");
    let after = match params.text("cursor") {
        None => None,
        Some(text) => Some(read_place(&cursor::read("pauses", &filters, text)?)?),
    };
    Ok((PauseFilter { status, session, agent, tool, after, limit: params.limit()? }, filters))
}

fn write_place(place: PauseCursor) -> String {
    format!("{} {}", place.opened_at, place.id)
}

fn read_place(text: &str) -> Result<PauseCursor, Problem> {
    let place = text
        .split_once(' ')
        .and_then(|(opened_at, id)| Some(PauseCursor { opened_at: opened_at.parse().ok()?, id: id.parse().ok()? }));
    place.ok_or_else(|| Problem::internal("a cursor of ours"))
}

/// One pause, also after it was settled.
#[utoipa::path(
    get,
    path = "/api/v1/pauses/{id}",
    tag = "pauses",
    operation_id = "read_pause",
    params(("id" = String, Path, description = "The pause.")),
    responses((status = 200, description = "The pause.", body = wire::Pause))
)]
pub(super) async fn read(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    Named(id): Named<PauseId>,
) -> Result<Json<wire::Pause>, Problem> {
    caller.check(Action::ReadPause)?;
    query.only(&[])?;
    let dossier = visible(&app, &caller, id).await?;
    shown(&dossier, id).map(Json)
}

/// The run of a pause, where the caller may know of it.
pub(super) async fn visible(app: &App, caller: &Caller, id: PauseId) -> Result<Dossier, Problem> {
    let dossier = Dossier::of_pause(app.runtime(), id).await.map_err(|error| match error.refusal() {
        Some(Refusal::PauseNotFound(_)) => unknown::<PauseId>(),
        _ => error.into(),
    })?;
    match caller.sees(Action::ReadPause, dossier.run.started_by()) {
        true => Ok(dossier),
        false => Err(unknown::<PauseId>()),
    }
}

/// A pause as it is sent.
pub(super) fn shown(dossier: &Dossier, id: PauseId) -> Result<wire::Pause, Problem> {
    let file = dossier.pause(id).ok_or_else(unknown::<PauseId>)?;
    Ok(to_wire::pause(dossier, file))
}
