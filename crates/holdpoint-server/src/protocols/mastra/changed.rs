//! Tools that changed while a call of them waited. What was shown is what runs, or nothing does.

use holdpoint_core::decision::Decision;
use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::CallPath;
use holdpoint_core::pause::Subject;
use holdpoint_core::run::Run;
use holdpoint_runtime::agent::AgentGraph;
use holdpoint_runtime::settings::DriftPolicy;
use holdpoint_runtime::worker::AgentSource as _;

use super::calls::{self, Named};
use super::follow::Follow;
use super::refuse;
use crate::app::App;
use crate::problem::Problem;

/// Refuses to let a call run that could not run as it was shown. Nothing is decided then, and it waits on.
pub(super) async fn check(app: &App, run: &Run, named: &Named, decision: &Decision) -> Result<(), Problem> {
    let runs_call = matches!(decision, Decision::Approve | Decision::RunAgain) && call_of(named).is_some();
    if !runs_call || !named.view.pause.is_open() {
        return Ok(());
    }
    let wanted = app.runtime().agent_wanted(run.id()).await?;
    let fits = match app.sources().graph(&wanted).await {
        None => false,
        Some(graph) if graph.check_run(run).is_err() => false,
        Some(graph) => app.runtime().settings().drift != DriftPolicy::Refuse || is_as_it_was(run, &graph),
    };
    if fits { Ok(()) } else { Err(refuse::tool_changed(&named.name)) }
}

/// Whether every agent of the run is what the run knows it as.
fn is_as_it_was(run: &Run, graph: &AgentGraph) -> bool {
    run.frames().all(|(_, frame)| graph.digest(&frame.agent.id) == Some(frame.agent.digest))
}

/// Where changes of agents reach runs that wait: refuses what was approved for a tool that changed, once it is asked
/// about again, and names the new question.
pub(super) async fn check_asked_again(app: &App, named: &Named, follow: &mut Follow) -> Result<(), Problem> {
    let Some(call) = call_of(named).filter(|_| app.runtime().settings().drift == DriftPolicy::Accept) else {
        return Ok(());
    };
    let is_decisive = |event: &RunEvent| !matches!(event, RunEvent::PauseDecided(_) | RunEvent::AgentSet(_));
    let is_asked_again = match follow.read_ahead(is_decisive).await? {
        Some(RunEvent::PauseOpened(opened)) => opened.at == *call,
        _ => false,
    };
    if !is_asked_again {
        return Ok(());
    }
    let now = app.runtime().read_run(named.view.id().run).await?;
    Err(refuse::asked_again(&named.name, &calls::waiting_names(&now)))
}

fn call_of(named: &Named) -> Option<&CallPath> {
    match &named.view.pause.subject {
        Subject::Call { path, .. } => Some(path),
        Subject::Words { .. } => None,
    }
}
