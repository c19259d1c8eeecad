//! Runs tools: guardrails once more, then the start is made durable, then it runs with exactly the bytes approved.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use holdpoint_core::ids::{CallPath, FramePath};
use holdpoint_core::input::Input;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::policy::GuardrailPhase;
use holdpoint_core::refusal::failure;
use holdpoint_core::tool::{CallState, Outcome, ToolKind};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::driver::guard::Objection;
use crate::driver::{Done, Drive};
use crate::fault::RunError;
use crate::ports::observer::ToolRan;
use crate::ports::tool::{Tool, ToolContext};

impl Drive {
    /// Starts what may run; says whether the run moved on.
    pub(super) async fn start_tools(&mut self, calls: &[CallPath]) -> Result<bool, RunError> {
        // With no room at all the run could never go on.
        let room = self.runtime.settings().tools_parallel_max.max(1).saturating_sub(self.tools.len());
        let ready: Vec<CallPath> = self.in_turn(calls).into_iter().take(room).collect();
        if ready.is_empty() {
            return Ok(false);
        }
        let mut cleared = Vec::with_capacity(ready.len());
        for path in ready {
            if self.clear(&path).await {
                cleared.push(path);
            }
        }
        // Guardrails take their time: meanwhile this process may have been told to stop.
        if cleared.is_empty() || self.runtime.is_leaving() {
            return Ok(true);
        }
        self.advance_if_welcome(Input::StartCalls(cleared.clone()));
        // Durable before anything runs: after a crash it must be known that it may have run.
        self.commit().await?;
        let is_alone = cleared.len() == 1;
        for path in cleared {
            if let Some(task) = self.task(path) {
                match is_alone {
                    true => drop(self.begin_task(task).await?),
                    // Several run beside each other from the start, also those that never wait.
                    false => drop(self.under_way.spawn(task)),
                }
            }
        }
        Ok(true)
    }

    /// The calls whose turn it is: shells, patches and screens go one after the other, in the model's order.
    fn in_turn(&self, calls: &[CallPath]) -> Vec<CallPath> {
        let is_ordered = |path: &CallPath| {
            let kind = self.run.call(path).map(|call| &call.record.kind);
            matches!(kind, Some(ToolKind::Shell | ToolKind::ApplyPatch | ToolKind::Computer))
        };
        let busy: BTreeSet<FramePath> =
            self.tools.iter().filter(|path| is_ordered(path)).map(CallPath::frame).collect();
        let mut taken = busy;
        calls.iter().filter(|path| !is_ordered(path) || taken.insert(path.frame())).cloned().collect()
    }

    /// Guardrails right before the run. Arguments that a person changed pass all of them,
    /// and the policy.
    async fn clear(&mut self, path: &CallPath) -> bool {
        let Some(call) = self.run.call(path) else { return false };
        let Some((tool, context)) = self.tool_for(path, call) else {
            let message = format!("there is no tool named {} any more", call.record.tool);
            self.advance_if_welcome(Input::Blocked { call: path.clone(), results: Vec::new(), message });
            return false;
        };
        let (arguments, is_edited) = (call.arguments.clone(), call.is_edited);
        let (mut results, mut objection) = (Vec::new(), None);
        if is_edited {
            (results, objection) = self.guard_call(&tool, &context, &arguments, GuardrailPhase::BeforePause).await;
        }
        if is_edited
            && objection.is_none()
            && let Some(message) = self.objection_to_edit(path, (&tool, &context), &arguments).await
        {
            self.advance_if_welcome(Input::Blocked { call: path.clone(), results, message });
            return false;
        }
        if objection.is_none() {
            let (more, found) = self.guard_call(&tool, &context, &arguments, GuardrailPhase::BeforeRun).await;
            results.extend(more);
            objection = found;
        }
        match objection {
            None => true,
            Some(Objection::Reject { message, .. }) => {
                self.advance_if_welcome(Input::Blocked { call: path.clone(), results, message });
                false
            }
            Some(Objection::Halt { guardrail, message }) => {
                let code = failure::GUARDRAIL_TRIPPED.to_owned();
                self.advance_if_welcome(Input::Fail { code, message: format!("{guardrail}: {message}") });
                false
            }
        }
    }

    /// The run of a call whose start is durable, and was made durable here: another process may have been faster.
    fn task(&mut self, path: CallPath) -> Option<impl Future<Output = Done> + Send + use<>> {
        if !self.started_here.remove(&path) {
            return None;
        }
        let call = self.run.call(&path).filter(|call| call.state == CallState::Started)?;
        let arguments = call.arguments.clone();
        let (tool, context) = self.tool_for(&path, call)?;
        self.tools.insert(path.clone());
        let runtime = self.runtime.clone();
        let span = tracing::info_span!(
            "tool_call",
            run.id = %context.run,
            agent.id = %context.agent,
            call = %path,
            tool = %context.tool,
            attempt = context.attempt,
        );
        let task = async move {
            let (clock, seen, began) = (runtime.clock().clone(), context.clone(), Instant::now());
            let limit = tool.0.timeout.map(|timeout| (timeout, clock.sleep(timeout)));
            let running = run(tool, context, arguments);
            let outcome = match limit {
                None => running.await,
                Some((timeout, over)) => tokio::select! {
                    biased;
                    outcome = running => outcome,
                    () = over => Outcome::Failure(format!("the tool did not end within {timeout:?}")),
                },
            };
            runtime.observe(|observer| {
                let (duration, is_ok) = (began.elapsed(), matches!(outcome, Outcome::Result(_)));
                let (run, agent, tool) = (seen.run, &seen.agent, &seen.tool);
                observer.tool_ran(&ToolRan { run, call: &path, agent, tool, duration, is_ok });
            });
            Done::Tool { call: path, outcome }
        };
        Some(task.instrument(span))
    }
}

async fn run(tool: Tool, context: ToolContext, arguments: CanonicalJson) -> Outcome {
    let ended = AssertUnwindSafe(async { tool.0.runner.run(context, arguments).await }).catch_unwind().await;
    match ended {
        Ok(Ok(content)) => Outcome::Result(content),
        Ok(Err(failure)) => Outcome::Failure(failure.0),
        Err(_) => Outcome::Failure("the tool panicked".to_owned()),
    }
}
