//! Which agents there are, with their tools.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Map, Value, json};

use super::refuse;
use crate::access::{Action, Caller};
use crate::agents::{Held, ServedAgent, ToolCard};
use crate::app::App;
use crate::problem::Problem;

pub(super) async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Value>, Problem> {
    caller.check(Action::ReadAgents)?;
    let named = |agent: &ServedAgent| {
        let mut shown = shown(agent);
        shown["id"] = json!(agent.name);
        (agent.name.clone(), shown)
    };
    let agents: Map<String, Value> = app.agents().list().iter().map(|agent| named(agent)).collect();
    Ok(Json(Value::Object(agents)))
}

pub(super) async fn details(
    State(app): State<App>,
    caller: Caller,
    Path(agent): Path<String>,
) -> Result<Json<Value>, Problem> {
    caller.check(Action::ReadAgents)?;
    let agent = app.agents().find(&agent).ok_or_else(|| refuse::agent_not_found(&agent))?;
    Ok(Json(shown(&agent)))
}

/// An agent. What it is told to be and which model it has is the operator's, and not shown.
fn shown(agent: &ServedAgent) -> Value {
    let own = agent.tools.iter().filter(|card| card.agent == *agent.graph.root());
    let tools: Map<String, Value> = own.map(|card| (card.name.to_string(), tool(card))).collect();
    json!({
        "name": agent.name,
        "description": agent.description,
        "instructions": "",
        "tools": tools,
        "agents": {}, "workflows": {}, "skills": [], "workspaceTools": [],
        "inputProcessors": [], "outputProcessors": [],
        "provider": "holdpoint",
        "modelId": "",
        "modelVersion": "v2",
        "supportsMemory": true,
        "defaultOptions": {}, "defaultGenerateOptionsLegacy": {}, "defaultStreamOptionsLegacy": {},
        "source": "code",
    })
}

fn tool(card: &ToolCard) -> Value {
    json!({
        "id": card.name.as_str(),
        "description": card.description,
        "inputSchema": json!({"json": card.parameters}).to_string(),
        "requireApproval": card.held != Held::Never,
    })
}
