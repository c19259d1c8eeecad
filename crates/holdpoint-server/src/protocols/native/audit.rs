//! The record of decisions, and whether it is whole.

use axum::Json;
use axum::extract::State;
use holdpoint_core::audit::AuditRecord;
use holdpoint_runtime::fault::RunError;
use holdpoint_runtime::ports::store::{StoreFault, StoreFaultKind};

use super::wire;
use crate::access::{Action, Caller};
use crate::app::App;
use crate::limits::Query;
use crate::problem::Problem;

/// Every decision, expiry, withdrawal and rule, hash-chained, oldest first.
#[utoipa::path(
    get,
    path = "/api/v1/audit",
    tag = "audit",
    operation_id = "list_audit",
    params(
        ("since" = Option<u64>, Query, description = "Only records after this number."),
        ("limit" = Option<u64>, Query, description = "At most so many.", minimum = 1, maximum = 200),
    ),
    responses((status = 200, description = "A page of records.", body = wire::AuditList))
)]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    query: Query,
) -> Result<Json<wire::AuditList>, Problem> {
    caller.check(Action::ReadAudit)?;
    let params = query.only(&["since", "limit"])?;
    let since = params.number("since", 0..=i64::MAX as u64)?.unwrap_or(0);
    let page = app.runtime().audit(since, params.limit()?).await?;
    let records = page.records.iter().map(record).collect::<Result<_, _>>()?;
    Ok(Json(wire::AuditList { records, next_since: page.next }))
}

/// Follows the whole chain, and says whether anything was changed, left out, put in between or cut off at the end.
#[utoipa::path(
    get,
    path = "/api/v1/audit/verify",
    tag = "audit",
    operation_id = "verify_audit",
    responses((status = 200, description = "What the check found.", body = wire::AuditCheck))
)]
pub(super) async fn verify(
    State(app): State<App>,
    caller: Caller,
    query: Query,
) -> Result<Json<wire::AuditCheck>, Problem> {
    caller.check(Action::ReadAudit)?;
    query.only(&[])?;
    let check = app.runtime().verify_audit().await?;
    Ok(Json(wire::AuditCheck {
        is_whole: check.is_whole(),
        records: check.records,
        head: check.head.map(|head| head.to_string()),
        broken_at: check.broken_at,
        written: check.written,
    }))
}

fn record(record: &AuditRecord) -> Result<wire::AuditRecord, Problem> {
    let note =
        record.note().map_err(|_| RunError::from(StoreFault::new("read an audit record", StoreFaultKind::Corrupt)))?;
    Ok(wire::AuditRecord {
        n: record.n,
        at: note.at.to_string(),
        kind: note.kind.name().to_owned(),
        session_id: note.session.to_string(),
        run_id: note.run.to_string(),
        pause_id: note.pause.map(|pause| pause.to_string()),
        agent: note.agent.map(|agent| agent.to_string()),
        tool: note.tool.map(|tool| tool.to_string()),
        outcome: note.outcome,
        by: note.by.map(|actor| actor.to_string()),
        via: note.via,
        args_sha256: note.sha256.map(|digest| digest.to_string()),
        edited_sha256: note.edited_sha256.map(|digest| digest.to_string()),
        rule_id: note.rule.map(|rule| rule.to_string()),
        held_by: note.held_by,
        body: record.body.as_str().to_owned(),
        hash: record.hash.to_string(),
    })
}
