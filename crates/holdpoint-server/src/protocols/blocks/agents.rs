//! Which agent a run of the journal is of: how its calls are shown, and the language of what the server adds.

use std::sync::Arc;

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::RunId;
use holdpoint_runtime::use_cases::WatchItem;

use crate::agents::ServedAgent;
use crate::app::App;

/// The agent of the run that begins with this item, in the version that it began with, whatever is served now: what was
/// numbered once is numbered the same for ever. To be told to the projection before the item is taken.
pub(super) async fn of_new_run(app: &App, item: &WatchItem) -> Option<(RunId, Arc<ServedAgent>)> {
    let WatchItem::Event { run, event: RunEvent::RunStarted(started), .. } = item else { return None };
    let agents = app.agents();
    let live = agents.find(started.agent.id.root_name());
    let is_wanted = |agent: &Arc<ServedAgent>| agent.graph.digest(&started.agent.id) == Some(started.agent.digest);
    if let Some(agent) = live.as_ref().filter(|agent| is_wanted(agent)) {
        return Some((*run, agent.clone()));
    }
    let version = match app.runtime().agent_begun_with(&started.agent).await {
        Ok(wanted) => agents.as_shown(&wanted).await,
        Err(_) => None,
    };
    Some((*run, version.or(live)?))
}
