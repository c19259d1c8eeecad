//! Which agents there are.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use holdpoint_config::Diagnostic;

use super::path::Named;
use super::{to_wire, wire};
use crate::access::{Action, Caller, Role};
use crate::app::App;
use crate::limits::Query;
use crate::problem::{Code, Problem};

/// The agents that are served.
#[utoipa::path(
    get,
    path = "/api/v1/agents",
    tag = "agents",
    operation_id = "list_agents",
    responses((status = 200, description = "The agents, by name.", body = wire::AgentList))
)]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    query: Query,
) -> Result<Json<wire::AgentList>, Problem> {
    caller.check(Action::ReadAgents)?;
    query.only(&[])?;
    let agents = app.agents().list();
    // Problems show parts of files: they are for those who may change them.
    let problems = if caller.roles.contains(&Role::Admin) { app.agents().diagnostics() } else { Arc::default() };
    Ok(Json(wire::AgentList {
        agents: agents.iter().map(|agent| to_wire::agent_summary(agent)).collect(),
        diagnostics: problems.iter().map(problem).collect(),
    }))
}

fn problem(problem: &Diagnostic) -> wire::FileProblem {
    wire::FileProblem {
        file: problem.file.clone(),
        line: problem.line,
        column: problem.column,
        severity: problem.severity.name().to_owned(),
        code: problem.code.name().to_owned(),
        message: problem.message.clone(),
        hint: problem.hint.clone(),
    }
}

/// One agent, its tools and what is held.
#[utoipa::path(
    get,
    path = "/api/v1/agents/{name}",
    tag = "agents",
    operation_id = "read_agent",
    params(("name" = String, Path, description = "The agent's name.")),
    responses((status = 200, description = "The agent.", body = wire::Agent))
)]
pub(super) async fn read(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    Named(name): Named<String>,
) -> Result<Json<wire::Agent>, Problem> {
    caller.check(Action::ReadAgents)?;
    query.only(&[])?;
    let agent = app.agents().find(&name).ok_or_else(no_such_agent)?;
    Ok(Json(to_wire::agent(&agent)))
}

pub(super) fn no_such_agent() -> Problem {
    Problem::new(Code::AGENT_NOT_FOUND, "there is no agent of that name: GET /api/v1/agents lists those there are")
}
