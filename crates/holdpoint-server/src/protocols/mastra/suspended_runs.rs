//! `suspended-runs`: which runs of an agent wait, and for what.

use axum::Json;
use axum::extract::{Path, Query, State};
use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_core::pause::PauseKind;
use holdpoint_core::record::Entry;
use holdpoint_core::run::Run;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{PAGE_MAX, RunFilter, RunStatus};
use serde_json::{Value, json};

use super::calls;
use super::chunks::Maker;
use super::origin::{Origin, run_name, thread};
use super::place::{journal, root};
use super::refuse;
use crate::access::{Action, Caller, Reach};
use crate::app::App;
use crate::problem::Problem;

/// Runs on a page, where nobody says, and at most.
const PER_PAGE: usize = 100;

/// How many waiting runs are counted, the newest first. Beyond these a client names a thread.
const COUNTED_MAX: usize = 5_000;

/// How many of them are read to tell whether they are asked for: a run is as long as its conversation.
const READ_MAX: usize = 1_000;

pub(super) type Parameters = Result<Query<Vec<(String, String)>>, axum::extract::rejection::QueryRejection>;

pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(agent): Path<String>,
    query: Parameters,
) -> Result<Json<Value>, Problem> {
    let reach = caller.check(Action::ReadPause)?;
    let asked = Asked::read(&Given::read(query)?)?;
    let root = root(&agent)?;
    app.agents().find(&agent).ok_or_else(|| refuse::agent_not_found(&agent))?;
    let mut filter = RunFilter {
        session: asked.thread.clone(),
        owner: (reach != Reach::All).then(|| caller.actor.clone()),
        agent: Some(root),
        status: Some(RunStatus::Waiting),
        limit: PAGE_MAX,
        ..RunFilter::default()
    };
    let (mut total, mut runs, mut read) = (0, Vec::new(), 0);
    loop {
        let page = app.runtime().list_runs(&filter).await?;
        for row in &page.runs {
            if total >= COUNTED_MAX || read >= READ_MAX {
                return Ok(Json(json!({"runs": runs, "total": total, "truncated": true})));
            }
            let is_on_page = (asked.skip..asked.skip.saturating_add(asked.take)).contains(&total);
            // A run that is only counted need not be read, where the row says enough.
            if !is_on_page && reach == Reach::All && !asked.is_narrow() {
                total += 1;
                continue;
            }
            read += 1;
            let Some(run) = asked.admitted(&app, &caller, row.run).await? else { continue };
            if is_on_page {
                runs.push(shown(&run));
            }
            total += 1;
        }
        filter.after = page.next;
        if filter.after.is_none() {
            return Ok(Json(json!({"runs": runs, "total": total})));
        }
    }
}

/// Which runs are asked for.
struct Asked {
    thread: Option<SessionId>,
    resource: Option<String>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    skip: usize,
    take: usize,
}

impl Asked {
    fn read(given: &Given) -> Result<Self, Problem> {
        let time = |name: &'static str| {
            let text = given.text(name);
            text.map(|text| {
                text.parse::<Timestamp>().map_err(|_| refuse::parameter(name, "a time such as 2026-01-31T12:00:00Z"))
            })
            .transpose()
        };
        let thread = given.text("threadId").map(SessionId::new).transpose();
        let take = given.per_page(PER_PAGE, PER_PAGE)?;
        Ok(Self {
            thread: thread.map_err(|_| refuse::parameter("threadId", "a thread's id"))?,
            resource: given.text("resourceId").map(str::to_owned),
            from: time("fromDate")?,
            to: time("toDate")?,
            skip: given.number("page", 0)?.saturating_mul(take),
            take,
        })
    }

    /// Whether a run must be read to tell whether it is asked for.
    fn is_narrow(&self) -> bool {
        self.resource.is_some() || self.from.is_some() || self.to.is_some()
    }

    /// The run, where it waits and is among those that are asked for.
    async fn admitted(&self, app: &App, caller: &Caller, id: RunId) -> Result<Option<Run>, Problem> {
        let entries = match journal(app, id).await {
            Ok(Some(entries)) => entries,
            Ok(None) => return Ok(None),
            // A run that cannot be read must not hide all others.
            Err(problem) if matches!(problem.code(), "store_corrupt" | "store_newer") => return Ok(None),
            Err(problem) => return Err(problem),
        };
        let run = Run::fold(id, entries.iter().flat_map(Entry::timed));
        let since = suspended_at(&run);
        let is_asked_for = caller.sees(Action::ReadPause, run.started_by())
            && self.resource.as_ref().is_none_or(|resource| Origin::of(&run).resource.as_ref() == Some(resource))
            && self.from.is_none_or(|from| since >= Some(from))
            && self.to.is_none_or(|to| since <= Some(to));
        Ok(Some(run).filter(|_| is_asked_for && since.is_some()))
    }
}

/// Since when the run waits.
fn suspended_at(run: &Run) -> Option<Timestamp> {
    calls::waiting(run).iter().map(|named| named.view.pause.opened_at).max()
}

fn shown(run: &Run) -> Value {
    let make = Maker { run: run_name(run) };
    let waiting = calls::waiting(run);
    let calls = waiting.iter().map(|named| {
        let mut call = json!(make.waiting(named).payload);
        let kind = named.view.kind();
        call["requiresApproval"] = json!(matches!(kind, PauseKind::Approval | PauseKind::Confirmation));
        call
    });
    let mut shown = json!({
        "runId": make.run,
        "status": "suspended",
        "suspendedAt": suspended_at(run).map(|at| at.to_string()),
        "toolCalls": calls.collect::<Vec<_>>(),
    });
    if let Some(thread) = thread(run) {
        shown["threadId"] = json!(thread.as_str());
    }
    if let Some(resource) = Origin::of(run).resource {
        shown["resourceId"] = json!(resource);
    }
    shown
}

/// The parameters of an address. Clients send more than are known here; those are passed over.
pub(super) struct Given(Vec<(String, String)>);

impl Given {
    pub(super) fn read(query: Parameters) -> Result<Self, Problem> {
        query.map(|Query(pairs)| Self(pairs)).map_err(|_| refuse::parameter("query", "percent-encoded UTF-8"))
    }

    /// One parameter; an empty one counts as not given.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    pub(super) fn number(&self, name: &str, default: usize) -> Result<usize, Problem> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().map_err(|_| refuse::parameter(name, "a whole number"))
    }

    /// How many are wanted on a page. More than there may be is refused and not cut: whoever counts pages of their own
    /// size would miss what stands between.
    pub(super) fn per_page(&self, default: usize, max: usize) -> Result<usize, Problem> {
        let wanted = self.number("perPage", default)?;
        match (1..=max).contains(&wanted) {
            true => Ok(wanted),
            false => Err(refuse::parameter("perPage", &format!("a whole number from 1 to {max}"))),
        }
    }
}
