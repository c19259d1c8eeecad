//! Asks guardrails. One that panics objects: what cannot be checked does not pass.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use holdpoint_core::ids::{ActorId, CallPath, FramePath};
use holdpoint_core::input::Input;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::policy::{GuardrailPhase, GuardrailResult};
use holdpoint_core::run::{Phase, Run};
use holdpoint_core::tool::{Call, CallState};
use tokio_util::sync::CancellationToken;

use crate::agent::AgentGraph;
use crate::context::Context;
use crate::driver::Drive;
use crate::driver::screen::{guardrail_actor, passed};
use crate::fault::RunError;
use crate::guardrail::{CallVerdict, TextVerdict};
use crate::ports::tool::{Tool, ToolContext};

/// Why a call does not go on.
pub(super) enum Objection {
    Reject { by: ActorId, message: String },
    Halt { guardrail: String, message: String },
}

impl Drive {
    /// The tool behind a call and what it is told; `None` for hand-offs and tools that are gone.
    pub(super) fn tool_for(&self, path: &CallPath, call: &Call) -> Option<(Tool, ToolContext)> {
        tool_for(&self.run, &self.graph, path, call, (&self.context, &self.cancelled))
    }

    /// What a tool's guardrails say in a phase. The first objection counts; the others are not asked.
    pub(super) async fn guard_call(
        &self,
        tool: &Tool,
        context: &ToolContext,
        arguments: &CanonicalJson,
        phase: GuardrailPhase,
    ) -> (Vec<GuardrailResult>, Option<Objection>) {
        let settings = self.runtime.settings();
        let also_before_pause = self.options.guardrails_before_pause.unwrap_or(settings.guardrails_before_pause);
        let mut results = Vec::new();
        for guardrail in &tool.0.guardrails {
            let is_due = match phase {
                GuardrailPhase::BeforePause => guardrail.before_pause || also_before_pause,
                _ => guardrail.before_run,
            };
            if !is_due {
                continue;
            }
            let checking =
                std::panic::catch_unwind(AssertUnwindSafe(|| (guardrail.check)(context.clone(), arguments.clone())));
            let verdict = match checking {
                Ok(checking) => AssertUnwindSafe(checking).catch_unwind().await.ok(),
                Err(_) => None,
            };
            let verdict = verdict.unwrap_or_else(|| CallVerdict::Reject("a guardrail failed".to_owned()));
            let name = &guardrail.name;
            match verdict {
                CallVerdict::Pass => results.push(passed(name, phase, None)),
                CallVerdict::Reject(message) => {
                    results.push(passed(name, phase, Some(message.clone())));
                    return (results, Some(Objection::Reject { by: guardrail_actor(name), message }));
                }
                CallVerdict::Halt(message) => {
                    results.push(passed(name, phase, Some(message.clone())));
                    return (results, Some(Objection::Halt { guardrail: name.clone(), message }));
                }
            }
        }
        (results, None)
    }

    pub(super) async fn check_inputs(&mut self, frames: &[FramePath]) -> Result<bool, RunError> {
        for path in frames {
            let Some(frame) = self.run.frame(path) else { continue };
            let node = self.graph.node(&frame.agent.id)?;
            let items = self.run.model_items(path);
            let mut results = Vec::new();
            for guardrail in &node.agent.parts().input_guardrails {
                let check = AssertUnwindSafe(async { (guardrail.check)(self.context.clone(), items.clone()).await });
                results.push(text_result(&guardrail.name, GuardrailPhase::Input, check.catch_unwind().await.ok()));
            }
            self.advance(Input::InputChecked { frame: path.clone(), results })?;
        }
        Ok(!frames.is_empty())
    }

    pub(super) async fn check_outputs(&mut self, frames: &[FramePath]) -> Result<bool, RunError> {
        for path in frames {
            let Some(frame) = self.run.frame(path) else { continue };
            let Phase::CheckingOutput(output) = &frame.phase else { continue };
            let node = self.graph.node(&frame.agent.id)?;
            let mut results = Vec::new();
            for guardrail in &node.agent.parts().output_guardrails {
                let check = AssertUnwindSafe(async { (guardrail.check)(self.context.clone(), output.clone()).await });
                results.push(text_result(&guardrail.name, GuardrailPhase::Output, check.catch_unwind().await.ok()));
            }
            self.advance(Input::OutputChecked { frame: path.clone(), results })?;
        }
        Ok(!frames.is_empty())
    }
}

/// The tool behind a call of a run and what it is told; `None` for hand-offs and tools that are gone.
pub(super) fn tool_for(
    run: &Run,
    graph: &AgentGraph,
    path: &CallPath,
    call: &Call,
    (context, cancelled): (&Context, &CancellationToken),
) -> Option<(Tool, ToolContext)> {
    // A call stays with the agent that asked for it, whoever goes on in the frame.
    let agent = &run.frame(&path.frame())?.turn()?.agent;
    let tool = graph.node(agent).ok()?.tools.get(&call.record.tool)?.tool.clone()?;
    let attempt = match call.state {
        CallState::Started => call.attempts,
        _ => call.attempts + 1,
    };
    let context = ToolContext {
        session: run.session()?.clone(),
        run: run.id(),
        actor: run.started_by()?.clone(),
        call: path.clone(),
        call_id: call.record.call_id.clone(),
        agent: agent.clone(),
        tool: call.record.tool.clone(),
        context: context.clone(),
        attempt,
        cancelled: cancelled.clone(),
    };
    Some((tool, context))
}

fn text_result(name: &str, phase: GuardrailPhase, verdict: Option<TextVerdict>) -> GuardrailResult {
    let objection = match verdict {
        Some(TextVerdict::Pass) => None,
        Some(TextVerdict::Trip(reason)) => Some(reason),
        None => Some("the guardrail failed".to_owned()),
    };
    passed(name, phase, objection)
}
