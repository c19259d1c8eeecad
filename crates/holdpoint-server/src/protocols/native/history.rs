//! What was said in a session, run by run and page by page. A page for people is made of the history of the blocks
//! protocol instead, which shows groups and requests as well.

use axum::Json;
use axum::extract::State;
use holdpoint_core::ids::{AgentId, RunId, SessionId};
use holdpoint_core::message::Item;
use holdpoint_runtime::ports::store::{RunFilter, RunSummary};

use super::path::Named;
use super::wire::Call;
use super::wire::{History, Message, MessageRole};
use super::{cursor, sessions};
use crate::access::{Action, Caller};
use crate::app::App;
use crate::limits::Query;
use crate::problem::Problem;

/// What was said in a session, oldest first; the first page is the latest.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/messages",
    tag = "sessions",
    operation_id = "read_messages",
    params(
        ("id" = String, Path, description = "The session."),
        ("agent" = Option<String>, Query, description = "Only with this agent."),
        ("limit" = Option<u64>, Query, description = "At most the messages of so many runs.", minimum = 1, maximum = 200),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before."),
    ),
    responses((status = 200, description = "What was said.", body = History))
)]
pub(super) async fn read(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    Named(id): Named<SessionId>,
) -> Result<Json<History>, Problem> {
    caller.check(Action::ReadRun)?;
    let params = query.only(&["agent", "limit", "cursor"])?;
    sessions::check_visible(&app, &caller, &id).await?;
    let agent: Option<AgentId> = params.parsed("agent")?;
    let filters = format!("{id} {agent:?}");
    let after = params.text("cursor").map(|text| cursor::read("history", &filters, text)).transpose()?;
    let after =
        after.map(|place| place.parse::<RunId>()).transpose().map_err(|_| Problem::internal("a cursor of ours"))?;
    let filter = RunFilter { session: Some(id.clone()), agent, after, limit: params.limit()?, ..RunFilter::default() };
    let page = app.runtime().list_runs(&filter).await?;
    let mut messages = Vec::new();
    for row in page.runs.iter().rev() {
        let run = app.runtime().read_run(row.run).await?;
        messages.extend(run.items().iter().map(|item| message(row, item)));
    }
    let next_cursor = page.next.map(|run| cursor::write("history", &filters, &run.to_string()));
    Ok(Json(History { session_id: id.to_string(), messages, next_cursor }))
}

fn message(row: &RunSummary, item: &Item) -> Message {
    let said = |role, text| Message {
        role,
        run_id: row.run.to_string(),
        agent: row.agent.to_string(),
        text,
        tool_calls: Vec::new(),
        tool_call_id: None,
        tool: None,
        is_error: None,
    };
    match item {
        Item::User(content) => said(MessageRole::User, Some(content.to_text())),
        Item::Assistant { text, calls } => {
            let call = |call: &holdpoint_core::message::AskedCall| Call {
                tool_call_id: call.call_id.clone(),
                tool: call.tool.to_string(),
                args: call.arguments.clone(),
                problem: None,
            };
            Message { tool_calls: calls.iter().map(call).collect(), ..said(MessageRole::Assistant, text.clone()) }
        }
        Item::ToolResult { call_id, tool, output, is_error } => Message {
            tool_call_id: Some(call_id.clone()),
            tool: Some(tool.to_string()),
            is_error: Some(*is_error),
            ..said(MessageRole::Tool, Some(output.to_text()))
        },
    }
}
