//! Calls models and reads their replies: every call is resolved against the agent's definition, nothing is believed.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use holdpoint_core::ids::{FramePath, ToolName};
use holdpoint_core::input::{Confirmation, Input, ReplyInput};
use holdpoint_core::json::{CanonicalJson, JsonProblem};
use holdpoint_core::message::Item;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::text::{clamp, visible};
use holdpoint_core::tool::{CallRecord, Effect, ToolKind};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::agent::ConfirmTerms;
use crate::driver::screen::REASON_BYTES_MAX;
use crate::driver::thoughts::Thoughts;
use crate::driver::{Done, Drive};
use crate::fault::RunError;
use crate::hub::{Live, Place, Speech};
use crate::ports::model::{DeltaSink, Model, ModelFault, ModelReply, ModelRequest, OfferedTool, ProposedCall};
use crate::ports::observer::ModelCalled;

impl Drive {
    /// Calls the models of these frames; says whether one replied at once.
    pub(super) async fn call_models(&mut self, frames: &[FramePath]) -> Result<bool, RunError> {
        let mut moved = false;
        for frame in frames {
            if self.models.contains(frame) {
                continue;
            }
            let (model, request) = self.request(frame)?;
            let thoughts = Thoughts::default();
            let speech = self.speech(frame, request.turn);
            let deltas = self.deltas(frame, thoughts.clone(), speech.clone());
            let admitted = u32::try_from(self.run.staged_in(frame).len()).unwrap_or(u32::MAX);
            self.models.insert(frame.clone());
            let (frame, runtime) = (frame.clone(), self.runtime.clone());
            let span = tracing::info_span!(
                "model_call",
                run.id = %request.run,
                agent.id = %request.agent,
                frame = %frame,
                turn = request.turn,
                model = model.name(),
            );
            let call = async move {
                let (run, agent, turn) = (request.run, request.agent.clone(), request.turn);
                let began = Instant::now();
                let asked = AssertUnwindSafe(async { model.reply(request, deltas).await }).catch_unwind().await;
                let reply = asked.unwrap_or_else(|_| Err(panicked(model.name().to_owned())));
                if let Some(speech) = speech {
                    speech.end();
                }
                runtime.observe(|observer| {
                    let (duration, usage) = (began.elapsed(), reply.as_ref().ok().map(|reply| reply.usage));
                    let (frame, agent, model) = (&frame, &agent, model.name());
                    observer.model_called(&ModelCalled { run, frame, agent, model, duration, usage });
                });
                Done::Model { frame, turn, admitted, thinking: thoughts.take(), reply }
            };
            moved |= self.begin_task(call.instrument(span)).await?;
        }
        Ok(moved)
    }

    fn request(&self, path: &FramePath) -> Result<(Arc<dyn Model>, ModelRequest), RunError> {
        let frame = self.run.frame(path).ok_or(Refusal::RunNotFound(self.run_id()))?;
        let node = self.graph.node(&frame.agent.id)?;
        let parts = node.agent.parts();
        let model = parts.model.clone().or_else(|| self.runtime.model()).ok_or_else(|| {
            Refusal::InvalidDefinition(format!("agent {:?} has no model, and the runner has none", node.agent.name()))
        })?;
        let pinned = self.pinned.get(&frame.agent.id);
        let items = self.run.model_items(path);
        let history = if path.is_root() { &self.history[..] } else { &[] };
        let items: Arc<[Arc<Item>]> = history.iter().cloned().chain(items).collect();
        Ok((
            model,
            ModelRequest {
                run: self.run_id(),
                frame: path.clone(),
                turn: frame.turns + 1,
                agent: frame.agent.id.clone(),
                instructions: pinned.map_or_else(|| parts.instructions.clone(), |pinned| pinned.instructions.clone()),
                items,
                tools: self.offered(node, pinned.map(|pinned| &pinned.offered)),
                settings: pinned.map_or_else(|| parts.settings.clone(), |pinned| pinned.settings.clone()),
            },
        ))
    }

    /// The tools that the model is shown: those that the context does not switch off.
    fn offered(&self, node: &crate::agent::Node, pinned: Option<&Arc<[OfferedTool]>>) -> Arc<[OfferedTool]> {
        let all = pinned.unwrap_or(&node.offered);
        let is_enabled = |name: &ToolName| {
            let tool = node.tools.get(name).and_then(|bound| bound.tool.as_ref());
            tool.and_then(|tool| tool.0.is_enabled.as_ref()).is_none_or(|is_enabled| is_enabled(&self.context))
        };
        if all.iter().all(|tool| is_enabled(&tool.name)) {
            return all.clone();
        }
        all.iter().filter(|tool| is_enabled(&tool.name)).cloned().collect()
    }

    /// What other instances hear of a model call, where there may be some.
    fn speech(&self, frame: &FramePath, turn: u32) -> Option<Arc<Speech>> {
        let (session, run, after) = (self.run.session()?.clone(), self.run_id(), self.revision);
        Some(self.runtime.link()?.speech(Place { session, run, frame: frame.clone(), turn, after }))
    }

    fn deltas(&self, frame: &FramePath, thoughts: Thoughts, speech: Option<Arc<Speech>>) -> DeltaSink {
        let Some(session) = self.run.session().cloned() else { return DeltaSink::none() };
        let (hub, run, frame) = (self.runtime.hub().clone(), self.run_id(), frame.clone());
        DeltaSink::new(move |delta| {
            thoughts.hear(&delta);
            if let Some(speech) = &speech {
                speech.hear(&delta);
            }
            hub.tell(&session, || Live::Delta { run, frame: frame.clone(), delta });
        })
    }

    pub(super) fn read_reply(
        &mut self,
        (frame, turn): (FramePath, u32),
        admitted: u32,
        thinking: Option<String>,
        reply: ModelReply,
    ) -> Result<(), RunError> {
        let ModelReply { text, calls, usage } = reply;
        let calls = calls.into_iter().map(|call| self.resolve(&frame, call)).collect::<Result<_, _>>()?;
        let asks_confirmation = self.confirmation(&frame, text.as_deref());
        let input = ReplyInput { frame, turn, admitted, thinking, text, calls, asks_confirmation, usage };
        self.advance_if_welcome(Input::ModelReply(input));
        Ok(())
    }

    /// Whether the model's own words ask a person to confirm. A reader that panics asks, to be on the safe side.
    fn confirmation(&self, frame: &FramePath, text: Option<&str>) -> Option<Confirmation> {
        let agent = &self.run.frame(frame)?.agent.id;
        let ask = self.graph.node(agent).ok()?.agent.parts().confirm_when.clone()?;
        let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ask(text?)));
        let failed = || ConfirmTerms::from("the reader of confirmations failed".to_owned());
        let ConfirmTerms { reason, deadline } = asked.unwrap_or_else(|_| Some(failed()))?;
        let expires_at = deadline.from(self.runtime.store().now(), self.runtime.settings().pause_deadline);
        Some(Confirmation { reason: Some(clamp(&reason, REASON_BYTES_MAX).to_owned()), expires_at })
    }

    /// What the model's call means here; a call that cannot run says why.
    fn resolve(&self, frame: &FramePath, call: ProposedCall) -> Result<CallRecord, RunError> {
        let agent = &self.run.frame(frame).ok_or(Refusal::RunNotFound(self.run_id()))?.agent.id;
        let node = self.graph.node(agent)?;
        let (arguments, mut problem) = read_arguments(&call.arguments);
        let name = ToolName::new(&call.tool);
        let bound = name.as_ref().ok().and_then(|name| node.tools.get(name));
        let is_enabled = |tool: &crate::ports::tool::Tool| {
            tool.0.is_enabled.as_ref().is_none_or(|is_enabled| is_enabled(&self.context))
        };
        let bound = bound.filter(|bound| bound.tool.as_ref().is_none_or(is_enabled));
        let (kind, effect) = match bound {
            Some(bound) => (bound.kind.clone(), bound.tool.as_ref().map_or(Effect::ReadOnly, |tool| tool.effect())),
            None => (ToolKind::Function, Effect::default()),
        };
        let name = match name {
            Ok(name) => name,
            Err(_) => ToolName::new("unknown_tool").map_err(|bad| Refusal::InvalidDefinition(bad.to_string()))?,
        };
        if bound.is_none() {
            problem = Some(format!("there is no tool named {:?}", visible(clamp(&call.tool, 128))));
        } else if problem.is_none() {
            problem = self.schema_problem(node, &name, &arguments);
        }
        Ok(CallRecord { call_id: call.id, tool: name, kind, effect, arguments, problem, repeats: None })
    }

    fn schema_problem(&self, node: &crate::agent::Node, name: &ToolName, arguments: &CanonicalJson) -> Option<String> {
        let tool = node.tools.get(name)?.tool.as_ref()?;
        let pinned = self.pinned.get(&node.brief.id).and_then(|pinned| pinned.validators.get(name));
        let checked = match pinned {
            Some(validator) => crate::ports::tool::check_schema(validator, arguments),
            None => tool.validate(arguments),
        };
        checked.err().map(|problem| format!("the arguments do not fit the schema: {problem}"))
    }
}

fn panicked(model: String) -> ModelFault {
    ModelFault { model, message: "it panicked".to_owned(), may_retry: false, source: None }
}

/// Arguments as canonical JSON. Text that is none is kept as a JSON string, with what is wrong with it.
fn read_arguments(text: &str) -> (CanonicalJson, Option<String>) {
    // Providers write no arguments as an empty text.
    let text = if text.trim().is_empty() { "{}" } else { text };
    match CanonicalJson::parse(text) {
        Ok(json) if json.is_object() => (json, None),
        Ok(json) => (json, Some("the arguments are not a JSON object".to_owned())),
        Err(problem) => {
            let limit = match problem {
                JsonProblem::TooLarge { .. } => 1 << 10,
                _ => 64 << 10,
            };
            let kept = CanonicalJson::from_serialize(&clamp(text, limit));
            let fallback = || CanonicalJson::parse("\"\"").unwrap_or_else(|_| unreachable!("an empty string is JSON"));
            (kept.unwrap_or_else(|_| fallback()), Some(format!("the arguments are not JSON: {problem}")))
        }
    }
}
