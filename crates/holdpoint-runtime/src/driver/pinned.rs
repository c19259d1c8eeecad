//! Definitions that changed while a run was paused: the run goes on with the old one, stops, or asks again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdpoint_core::agent::AgentBrief;
use holdpoint_core::ids::{CallPath, FramePath, ToolName};
use holdpoint_core::input::Input;
use holdpoint_core::json::Digest;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::tool::{Allowance, CallState};
use serde_json::Value;

use crate::agent::{Node, StoredApproval, StoredDefinition};
use crate::driver::Drive;
use crate::fault::RunError;
use crate::ports::model::OfferedTool;
use crate::ports::store::{Store, StoreFault, StoreFaultKind};
use crate::ports::tool::compile_schema;
use crate::settings::DriftPolicy;

/// What a run goes on with although the agent has changed. Code is found again by the tools' names.
pub(super) struct Pinned {
    pub(super) instructions: Arc<str>,
    pub(super) settings: Arc<Value>,
    pub(super) offered: Arc<[OfferedTool]>,
    pub(super) validators: BTreeMap<ToolName, jsonschema::Validator>,
    pub(super) always_held: BTreeSet<ToolName>,
}

impl Pinned {
    fn of(stored: StoredDefinition, node: &Node) -> Self {
        let is_there = |name: &ToolName| node.tools.contains_key(name);
        let tools: Vec<_> = stored.tools.into_iter().filter(|tool| is_there(&tool.name)).collect();
        let handoffs = stored.handoffs.into_iter().filter(|handoff| is_there(&handoff.tool));
        let validators = tools.iter().filter_map(|tool| Some((tool.name.clone(), compile_schema(&tool.schema).ok()?)));
        let always = tools.iter().filter(|tool| tool.approval == StoredApproval::Always);
        Self {
            instructions: stored.instructions.into(),
            settings: Arc::new(stored.settings),
            validators: validators.collect(),
            always_held: always.map(|tool| tool.name.clone()).collect(),
            offered: tools
                .into_iter()
                .map(|tool| OfferedTool { name: tool.name, description: tool.description, schema: tool.schema })
                .chain(handoffs.map(|handoff| OfferedTool {
                    name: handoff.tool,
                    description: handoff.description,
                    schema: serde_json::json!({"type": "object", "properties": {}}),
                }))
                .collect(),
        }
    }
}

impl Drive {
    /// Before a stored run goes on: every agent and tool that it needs must be there, and be what it was.
    pub(crate) async fn reconcile(&mut self) -> Result<(), RunError> {
        let frames: Vec<(FramePath, AgentBrief)> =
            self.run.frames().map(|(path, frame)| (path.clone(), frame.agent.clone())).collect();
        for (path, agent) in frames {
            let node = self.graph.node(&agent.id)?;
            self.check_tools(&path)?;
            let now = node.brief.clone();
            if now.digest == agent.digest {
                continue;
            }
            match self.options.drift.unwrap_or(self.runtime.settings().drift) {
                DriftPolicy::Pinned => self.pin(&agent, &now).await?,
                DriftPolicy::Refuse => return Err(changed(&agent, &now).into()),
                DriftPolicy::Accept => self.accept(path, &agent, now).await?,
            }
        }
        self.reconcile_ahead().await
    }

    /// Agents that are not at work yet may have changed too: a hand-off or an inner agent waits for a decision.
    async fn reconcile_ahead(&mut self) -> Result<(), RunError> {
        let ahead: Vec<AgentBrief> = self.run.agents_ahead().cloned().collect();
        for agent in ahead {
            let now = self.graph.node(&agent.id)?.brief.clone();
            let is_settled = now.digest == agent.digest || self.pinned.contains_key(&agent.id);
            match self.options.drift.unwrap_or(self.runtime.settings().drift) {
                _ if is_settled => {}
                DriftPolicy::Pinned => self.pin(&agent, &now).await?,
                DriftPolicy::Refuse => return Err(changed(&agent, &now).into()),
                // It begins as it is now; what it was when it was asked for no longer matters.
                DriftPolicy::Accept => {}
            }
        }
        Ok(())
    }

    /// A pending call whose tool is gone or switched off must not be dropped silently.
    fn check_tools(&self, path: &FramePath) -> Result<(), Refusal> {
        let Some(turn) = self.run.frame(path).and_then(|frame| frame.turn()) else { return Ok(()) };
        let node = self.graph.node(&turn.agent)?;
        node.check_turn(turn)?;
        for call in turn.calls.iter().filter(|call| call.outcome().is_none()) {
            let tool = node.tools.get(&call.record.tool).and_then(|bound| bound.tool.as_ref());
            let is_enabled = tool.and_then(|tool| tool.0.is_enabled.as_ref());
            if !is_enabled.is_none_or(|is_enabled| is_enabled(&self.context)) {
                return Err(Refusal::ToolMissing { agent: turn.agent.clone(), tool: call.record.tool.to_string() });
            }
        }
        Ok(())
    }

    async fn pin(&mut self, agent: &AgentBrief, now: &AgentBrief) -> Result<(), RunError> {
        let stored = stored_definition(self.runtime.store().as_ref(), &agent.digest).await?;
        let stored = stored.ok_or_else(|| changed(agent, now))?;
        let node = self.graph.node(&agent.id)?;
        let pinned = Pinned::of(stored, node);
        self.pinned.insert(agent.id.clone(), Arc::new(pinned));
        Ok(())
    }

    /// The agent as it is now goes on; what was approved for a tool that changed is asked again.
    async fn accept(&mut self, path: FramePath, then: &AgentBrief, now: AgentBrief) -> Result<(), RunError> {
        let stored = stored_definition(self.runtime.store().as_ref(), &then.digest).await?;
        let node = self.graph.node(&now.id)?;
        let is_same =
            |tool: &ToolName| match (stored.as_ref().and_then(|old| old.tool(tool)), node.definition.tool(tool)) {
                (Some(old), Some(new)) => old.is_same_tool(new),
                (None, None) => true,
                _ => false,
            };
        let is_approved = |call: &CallPath| {
            let call = self.run.call(call);
            let by_person = |state: &CallState| {
                matches!(
                    state,
                    CallState::Allowed { by: Allowance::Pause(_) | Allowance::Rule(_) | Allowance::Decider(_) }
                )
            };
            call.is_some_and(|call| by_person(&call.state) && !is_same(&call.record.tool))
        };
        let calls: Vec<CallPath> =
            self.run.allowed_calls().into_iter().filter(|call| call.frame() == path && is_approved(call)).collect();
        self.advance(Input::SetAgent { frame: path, agent: now })?;
        if !calls.is_empty() {
            let expires_at = self.deadline(self.runtime.store().now());
            let reason = "the tool changed after the call was approved".to_owned();
            self.advance(Input::HoldAgain { calls, reason, expires_at })?;
        }
        Ok(())
    }

    /// Calls that a process started which is gone.
    ///
    /// Written at once and under a lease of our own: where that process is alive after all, and was only slow, one of us
    /// is told so before anybody is asked.
    pub(crate) async fn adopt_orphans(&mut self) -> Result<(), RunError> {
        let orphans = self.run.started_calls();
        if orphans.is_empty() || self.run.end().is_some() {
            return Ok(());
        }
        self.advance(Input::Orphaned(orphans))?;
        self.commit().await
    }
}

fn changed(then: &AgentBrief, now: &AgentBrief) -> Refusal {
    Refusal::AgentChanged { agent: then.id.clone(), was: then.digest, now: now.digest }
}

/// A stored definition by its digest.
pub(crate) async fn stored_definition(
    store: &dyn Store,
    digest: &Digest,
) -> Result<Option<StoredDefinition>, StoreFault> {
    let Some(bytes) = store.definition(digest).await? else { return Ok(None) };
    let definition = serde_json::from_slice(&bytes)
        .map_err(|error| StoreFault::because("read an agent's definition", StoreFaultKind::Corrupt, error))?;
    Ok(Some(definition))
}
