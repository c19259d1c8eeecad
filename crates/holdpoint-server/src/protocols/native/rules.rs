//! Standing rules: listed, and taken back.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use holdpoint_core::ids::{RuleId, SessionId};
use holdpoint_core::policy::{AgentScope, Constraint, Lifetime, RuleEffect, Test};
use holdpoint_core::refusal::Refusal;
use holdpoint_runtime::ports::store::{RuleFilter, RuleRow};
use http::StatusCode;

use super::path::{Named, unknown};
use super::{cursor, sessions, wire};
use crate::access::{Action, Caller, Reach};
use crate::app::App;
use crate::limits::Query;
use crate::problem::Problem;

/// A page of standing rules: those that may still be used, beyond the runs in which they were made.
#[utoipa::path(
    get,
    path = "/api/v1/rules",
    tag = "rules",
    operation_id = "list_rules",
    params(
        ("session" = Option<String>, Query, description = "Only of this session."),
        ("limit" = Option<u64>, Query, description = "At most so many.", minimum = 1, maximum = 200),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before."),
    ),
    responses((status = 200, description = "A page of rules.", body = wire::RuleList))
)]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    query: Query,
) -> Result<Json<wire::RuleList>, Problem> {
    let reach = caller.check(Action::ReadRules)?;
    let params = query.only(&["session", "limit", "cursor"])?;
    let session: Option<SessionId> = params.parsed("session")?;
    let filters = format!("{session:?}");
    let after = params.text("cursor").map(|text| cursor::read("rules", &filters, text)).transpose()?;
    let after =
        after.map(|place| place.parse::<RuleId>()).transpose().map_err(|_| Problem::internal("a cursor of ours"))?;
    let page = app.runtime().list_rules(&RuleFilter { session, after, limit: params.limit()? }).await?;
    let mut seen: BTreeMap<SessionId, bool> = BTreeMap::new();
    let mut rules = Vec::new();
    for row in &page.rules {
        let is_seen = match (reach, seen.get(&row.session)) {
            (Reach::All, _) => true,
            (_, Some(is_seen)) => *is_seen,
            (_, None) => {
                let is_seen = sessions::visible(&app, &caller, &row.session).await.is_ok();
                seen.insert(row.session.clone(), is_seen);
                is_seen
            }
        };
        rules.extend(is_seen.then(|| rule(row)));
    }
    let next_cursor = page.next.map(|rule| cursor::write("rules", &filters, &rule.to_string()));
    Ok(Json(wire::RuleList { rules, next_cursor }))
}

/// Takes a rule back. Decisions that it gave stand.
#[utoipa::path(
    delete,
    path = "/api/v1/rules/{id}",
    tag = "rules",
    operation_id = "revoke_rule",
    params(("id" = String, Path, description = "The rule.")),
    responses((status = 204, description = "The rule no longer stands."))
)]
pub(super) async fn revoke(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    Named(id): Named<RuleId>,
) -> Result<StatusCode, Problem> {
    caller.check(Action::RevokeRule)?;
    query.only(&[])?;
    app.runtime().revoke_rule(id, caller.actor).await.map_err(|error| match error.refusal() {
        Some(Refusal::RuleNotFound(_)) => unknown::<RuleId>(),
        _ => error.into(),
    })?;
    Ok(StatusCode::NO_CONTENT)
}

fn rule(row: &RuleRow) -> wire::Rule {
    let rule = &row.rule;
    let (effect, message) = match &rule.effect {
        RuleEffect::Approve => (wire::RuleEffect::Approve, None),
        RuleEffect::Deny { message } => (wire::RuleEffect::Deny, message.clone()),
    };
    let (scope, until) = match rule.lifetime {
        Lifetime::Run => (wire::RuleScope::Run, None),
        Lifetime::Session => (wire::RuleScope::Session, None),
        Lifetime::Until(until) => (wire::RuleScope::Session, Some(until.to_string())),
    };
    wire::Rule {
        id: rule.id.to_string(),
        effect,
        message,
        session_id: row.session.to_string(),
        agent: match &rule.scope.agent {
            AgentScope::Only(agent) => Some(agent.to_string()),
            AgentScope::Any => None,
        },
        tool: rule.scope.tool.name.to_string(),
        constraints: rule.scope.constraints.iter().map(constraint).collect(),
        scope,
        until,
        uses: row.uses,
        uses_max: rule.uses_max,
        by: rule.author.to_string(),
        made_at: rule.made_at.to_string(),
    }
}

fn constraint(constraint: &Constraint) -> wire::Constraint {
    let mut told =
        wire::Constraint { at: constraint.at.clone(), equals: None, one_of: None, at_most: None, starts_with: None };
    match &constraint.test {
        Test::Equals(value) => told.equals = Some(value.clone()),
        Test::OneOf(values) => told.one_of = Some(values.clone()),
        Test::AtMost(limit) => told.at_most = Some(*limit),
        Test::StartsWith(prefix) => told.starts_with = Some(prefix.clone()),
    }
    told
}
