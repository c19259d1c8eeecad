//! The inbox: what waits for a person, and what once did.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use axum::Json;
use axum::extract::State;
use holdpoint_core::ids::{AgentId, PauseId, RunId, SessionId, ToolName};
use holdpoint_core::refusal::Refusal;
use holdpoint_runtime::ports::store::{PauseCursor, PauseFilter, PauseRow, PauseStatus, StoreFaultKind};
use holdpoint_runtime::{Fault, RunError};

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
/// For a caller who sees only their own, a page may be short and still have a next one. A pause of a run that cannot be
/// read any more is listed with what is known of it, and marked `unreadable`.
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
    let (filter, status, filters) = filter(&params)?;
    let page = page(&app, &caller, filter, status).await?;
    let next_cursor = page.next.map(|place| cursor::write("pauses", &filters, &write_place(place)));
    Ok(Json(wire::PauseList { pauses: page.pauses, next_cursor }))
}

/// A page of what the caller may see.
pub(super) struct Page {
    pub(super) pauses: Vec<wire::Pause>,
    pub(super) next: Option<PauseCursor>,
}

/// Reads a page. Rows are looked up until the page is full, the list is at its end, or enough was looked at.
pub(super) async fn page(
    app: &App,
    caller: &Caller,
    mut filter: PauseFilter,
    status: Option<wire::PauseStatus>,
) -> Result<Page, Problem> {
    let wanted = filter.limit;
    let mut known: BTreeMap<RunId, Option<Dossier>> = BTreeMap::new();
    let mut pauses = Vec::new();
    for _ in 0..LOOKS_MAX {
        filter.limit = wanted - pauses.len();
        let found = app.runtime().list_pauses(&filter).await?;
        for summary in &found.pauses {
            let id = summary.row.id;
            let dossier = match known.entry(id.run) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    place.insert(readable(app, Dossier::read(app.runtime(), id.run).await, id.run)?)
                }
            };
            let Some(dossier) = dossier else {
                pauses.extend(unreadable(caller, &summary.row));
                continue;
            };
            let is_seen = caller.sees(Action::ReadPause, dossier.run.started_by());
            let pause = dossier.pause(id).filter(|_| is_seen).map(|file| to_wire::pause(dossier, file));
            pauses.extend(pause.filter(|pause| status.is_none_or(|status| settled_alike(status, pause.status))));
        }
        filter.after = found.next;
        if pauses.len() >= wanted || filter.after.is_none() {
            break;
        }
    }
    Ok(Page { pauses, next: filter.after })
}

/// Whether a pause stands as was asked for. Rows are older than what is read after them: a pause that was listed as open
/// may have been decided since, and is told as it now is.
fn settled_alike(asked: wire::PauseStatus, found: wire::PauseStatus) -> bool {
    use wire::PauseStatus::{Decided, Superseded};
    !matches!((asked, found), (Decided, Superseded) | (Superseded, Decided))
}

/// A run's dossier, or `None` where what is stored of the run cannot be read. One such run must not hide all others.
fn readable(app: &App, read: Result<Dossier, RunError>, run: RunId) -> Result<Option<Dossier>, RunError> {
    match read {
        Ok(dossier) => Ok(Some(dossier)),
        Err(error) if is_unreadable(&error) => {
            if app.unreadable().is_new(run) {
                tracing::error!(run.id = %run, code = error.code(), %error, "a run cannot be read");
            }
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Whether it is what is stored that is at fault, so that trying again does not help.
fn is_unreadable(error: &RunError) -> bool {
    matches!(error, RunError::Fault(Fault::Store(fault))
        if matches!(fault.kind, StoreFaultKind::Corrupt | StoreFaultKind::Newer))
}

/// Whether a problem is that a run cannot be read.
pub(super) fn says_unreadable(problem: &Problem) -> bool {
    [StoreFaultKind::Corrupt, StoreFaultKind::Newer].iter().any(|kind| kind.code() == problem.code())
}

/// A pause of a run that cannot be read, for callers who see everything: who began the run is not known.
pub(super) fn unreadable(caller: &Caller, row: &PauseRow) -> Option<wire::Pause> {
    caller.sees(Action::ReadPause, None).then(|| to_wire::unreadable_pause(row))
}

/// Reads what is asked for: which rows, which of their pauses by how they stand, and all of it as a cursor is bound to.
fn filter(params: &Params) -> Result<(PauseFilter, Option<wire::PauseStatus>, String), Problem> {
    let wanted = match params.text("status") {
        None | Some("open") => Some(wire::PauseStatus::Open),
        Some("decided") => Some(wire::PauseStatus::Decided),
        Some("expired") => Some(wire::PauseStatus::Expired),
        Some("withdrawn") => Some(wire::PauseStatus::Withdrawn),
        Some("superseded") => Some(wire::PauseStatus::Superseded),
        Some("all") => None,
        Some(_) => {
            let detail = "status: open, decided, expired, withdrawn, superseded or all expected";
            return Err(Problem::new(Code::INVALID_PARAMETER, detail).at("status"));
        }
    };
    let status = wanted.map(|wanted| match wanted {
        wire::PauseStatus::Open => PauseStatus::Open,
        // Rows do not tell the two apart.
        wire::PauseStatus::Decided | wire::PauseStatus::Superseded => PauseStatus::Decided,
        wire::PauseStatus::Expired => PauseStatus::Expired,
        wire::PauseStatus::Withdrawn => PauseStatus::Withdrawn,
    });
    let (session, agent, tool): (Option<SessionId>, Option<AgentId>, Option<ToolName>) =
        (params.parsed("session")?, params.parsed("agent")?, params.parsed("tool")?);
    let filters = format!("{wanted:?} {session:?} {agent:?} {tool:?}");
    let after = match params.text("cursor") {
        None => None,
        Some(text) => Some(read_place(&cursor::read("pauses", &filters, text)?)?),
    };
    Ok((PauseFilter { status, session, agent, tool, after, limit: params.limit()? }, wanted, filters))
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
