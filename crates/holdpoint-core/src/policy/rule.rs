//! Standing rules: "always approve", "always deny". A rule is a record of its own; it never changes a decision made.

use serde::{Deserialize, Serialize};

use crate::ids::{ActorId, AgentId, RuleId};
use crate::json::CanonicalJson;
use crate::policy::{Constraint, PauseTerms};
use crate::time::Timestamp;
use crate::tool::ToolRef;

/// A rule that somebody made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandingRule {
    /// Its name.
    pub id: RuleId,
    /// What it does.
    pub effect: RuleEffect,
    /// The calls that it speaks of.
    pub scope: Scope,
    /// How long it stands.
    pub lifetime: Lifetime,
    /// How many calls it may settle; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses_max: Option<u32>,
    /// Who could decide the pause at which it was made; empty for everybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// Who made it.
    pub author: ActorId,
    /// When.
    pub made_at: Timestamp,
}

/// What a rule does with the calls that it speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RuleEffect {
    /// They run without asking.
    Approve,
    /// They do not run.
    Deny {
        /// What the model is told; an empty text counts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}

/// The calls that a rule speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// Whose calls.
    pub agent: AgentScope,
    /// Of which tool.
    pub tool: ToolRef,
    /// With which arguments; all must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
}

/// Whose calls a rule speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentScope {
    /// One agent's, by its place in the graph.
    Only(AgentId),
    /// Those of every agent.
    Any,
}

/// How long a rule stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// To the end of the run.
    Run,
    /// To the end of the session.
    Session,
    /// In the session, until then.
    Until(Timestamp),
}

impl StandingRule {
    /// Whether the rule still stands at `now` after `uses` uses.
    pub fn is_alive(&self, now: Timestamp, uses: u32) -> bool {
        let in_time = match self.lifetime {
            Lifetime::Run | Lifetime::Session => true,
            Lifetime::Until(end) => now < end,
        };
        in_time && self.uses_max.is_none_or(|uses_max| uses < uses_max)
    }

    /// Whether the rule speaks of this call.
    pub fn covers(&self, agent: &AgentId, tool: &ToolRef, arguments: &CanonicalJson) -> bool {
        let of_agent = match &self.scope.agent {
            AgentScope::Only(only) => only == agent,
            AgentScope::Any => true,
        };
        of_agent
            && self.scope.tool.is_same(tool)
            && self.scope.constraints.iter().all(|constraint| constraint.holds_for(arguments))
    }

    /// Whether the rule may stand for an approval on these terms: one is enough, and whoever could make the rule is among
    /// those who may decide.
    pub fn may_approve(&self, terms: &PauseTerms) -> bool {
        let are_all_admitted = self.approvers.iter().all(|name| terms.approvers.contains(name));
        let may_decide = terms.approvers.is_empty() || (!self.approvers.is_empty() && are_all_admitted);
        !self.is_denial() && terms.takes_one() && may_decide
    }

    /// Whether the rule denies.
    pub fn is_denial(&self) -> bool {
        matches!(self.effect, RuleEffect::Deny { .. })
    }
}

/// A rule to make together with a decision. Unless said otherwise: this agent, this tool, this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRule {
    /// Whose calls: only the deciding pause's agent, or those of every agent.
    pub any_agent: bool,
    /// With which arguments.
    pub constraints: Vec<Constraint>,
    /// How long it stands.
    pub lifetime: Lifetime,
    /// How many calls it may settle.
    pub uses_max: Option<u32>,
    /// Whether it also settles other open pauses that it covers.
    pub apply_to_open: bool,
}

impl Default for NewRule {
    fn default() -> Self {
        Self {
            any_agent: false,
            constraints: Vec::new(),
            lifetime: Lifetime::Run,
            uses_max: None,
            apply_to_open: false,
        }
    }
}

impl NewRule {
    /// How many constraints a rule may carry.
    pub const CONSTRAINTS_MAX: usize = 32;
}
