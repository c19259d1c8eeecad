//! What becomes of a call: the tool's own rule and the policy files, of which the most restrictive verdict wins.
//!
//! Policies are those that stand when the call is made, also in a run that began before they were written: they are the
//! operator's word about all agents, and no part of one agent's definition.

use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use holdpoint_config::{AgentFile, Deadline as DeadlineSpec, Facts, Hold, PolicyOutcome, PolicySet, ToolSpec};
use holdpoint_core::ids::ActorId;
use holdpoint_core::json::CanonicalJson;
use holdpoint_runtime::ports::tool::{Deadline, HoldTerms, Policy, PolicyVerdict, ToolContext};

use super::Workshop;

/// The policy of a tool that a file describes.
pub(super) fn of_tool(workshop: &Workshop, file: &AgentFile, spec: &ToolSpec) -> Arc<dyn Policy> {
    make(workshop, file, Some(spec.clone()))
}

/// The policy of an agent below another one: it asks for nobody by itself, and its tools have rules of their own.
pub(super) fn of_agent(workshop: &Workshop, file: &AgentFile) -> Arc<dyn Policy> {
    make(workshop, file, None)
}

fn make(workshop: &Workshop, file: &AgentFile, spec: Option<ToolSpec>) -> Arc<dyn Policy> {
    let agent = file.metadata.name.to_string();
    Arc::new(ToolPolicy(Arc::new(Rules { policies: workshop.policies.clone(), agent, spec })))
}

/// The policies for calls of agents that run elsewhere: where no rule speaks of a call, a person looks.
pub(crate) fn of_requests(policies: &Arc<ArcSwap<PolicySet>>) -> Arc<dyn Policy> {
    Arc::new(RequestRules(policies.clone()))
}

struct RequestRules(Arc<ArcSwap<PolicySet>>);

#[async_trait]
impl Policy for RequestRules {
    async fn verdict(&self, context: &ToolContext, arguments: &CanonicalJson) -> Result<PolicyVerdict, String> {
        let (policies, context, arguments) = (self.0.load_full(), context.clone(), arguments.clone());
        let say = move || policies.verdict(&facts(context.agent.root_name(), &context, &arguments));
        match tokio::task::spawn_blocking(say).await.map_err(|_| STOPPED.to_owned())? {
            PolicyOutcome::Silent => Ok(PolicyVerdict::Hold(HoldTerms::default())),
            said => to_verdict(said),
        }
    }
}

const STOPPED: &str = "it was stopped before it could be worked out";

fn facts<'a>(agent: &'a str, context: &'a ToolContext, arguments: &'a CanonicalJson) -> Facts<'a> {
    Facts {
        agent,
        tool: context.tool.as_str(),
        args: arguments,
        session: context.session.as_str(),
        actor: context.actor.as_str(),
    }
}

struct ToolPolicy(Arc<Rules>);

struct Rules {
    policies: Arc<ArcSwap<PolicySet>>,
    /// The name of the agent that has the tool.
    agent: String,
    spec: Option<ToolSpec>,
}

#[async_trait]
impl Policy for ToolPolicy {
    async fn verdict(&self, context: &ToolContext, arguments: &CanonicalJson) -> Result<PolicyVerdict, String> {
        let (rules, context, arguments) = (self.0.clone(), context.clone(), arguments.clone());
        // An expression may take milliseconds: others are not kept waiting for it.
        let said = tokio::task::spawn_blocking(move || rules.say(&context, &arguments)).await;
        to_verdict(said.map_err(|_| STOPPED.to_owned())?)
    }
}

impl Rules {
    fn say(&self, context: &ToolContext, arguments: &CanonicalJson) -> PolicyOutcome {
        let facts = facts(&self.agent, context, arguments);
        let policies = self.policies.load();
        match &self.spec {
            Some(spec) => spec.verdict(&policies, &facts),
            None => policies.verdict(&facts),
        }
    }
}

fn to_verdict(said: PolicyOutcome) -> Result<PolicyVerdict, String> {
    Ok(match said {
        PolicyOutcome::Silent | PolicyOutcome::Allow { .. } => PolicyVerdict::Allow,
        PolicyOutcome::Hold(hold) => PolicyVerdict::Hold(terms(&hold)),
        PolicyOutcome::Deny { message, .. } => {
            let by = ActorId::new("policy").map_err(|bad| bad.to_string())?;
            PolicyVerdict::Deny { by, message }
        }
    })
}

fn terms(hold: &Hold) -> HoldTerms {
    HoldTerms {
        reason: hold.reason(),
        rule: Some(hold.rule()),
        deadline: match hold.deadline {
            DeadlineSpec::Default => Deadline::Default,
            DeadlineSpec::Never => Deadline::Never,
            DeadlineSpec::After(wait) => Deadline::After(wait),
        },
        on_timeout: hold.on_timeout,
        approvers: hold.approvers.clone(),
        quorum: hold.quorum,
    }
}
