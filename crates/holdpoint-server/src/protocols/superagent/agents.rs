//! `GET /agents`: which agents there are. Under `/api/v1` the native API answers, with these members and more.

use axum::Json;
use axum::extract::{Request, State};

use super::from_wire;
use super::wire::{AgentLine, AgentList};
use crate::access::{Action, Caller};
use crate::app::App;
use crate::problem::Problem;

pub(super) async fn agents(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Json<AgentList>, Problem> {
    from_wire::no_parameters(request.uri())?;
    caller.check(Action::ReadAgents)?;
    let agents = app.agents().list();
    let line = |agent: &std::sync::Arc<crate::agents::ServedAgent>| AgentLine {
        name: agent.name.clone(),
        description: agent.description.clone(),
        kind: agent.kind.clone(),
    };
    Ok(Json(AgentList { agents: agents.iter().map(line).collect() }))
}
