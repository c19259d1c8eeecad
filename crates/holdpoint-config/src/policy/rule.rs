//! One rule of a policy file.

use holdpoint_core::policy::OnTimeout;
use serde::{Deserialize, Serialize};

use super::{Glob, Hold, PolicyOutcome, applies, unclear};
use crate::agent::Deadline;
use crate::expression::{Expression, Facts, Known};

/// A rule: which calls it is about, and what it says of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// Its name, which no other rule has.
    pub name: String,
    /// The agents it is about; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Glob>,
    /// The tools it is about, by the names that models call them; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Glob>,
    /// Which of their calls; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Expression>,
    /// What it says.
    pub verdict: RuleVerdict,
    /// Why: who decides reads it when a call is held, the model when it is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Until when somebody must have decided.
    #[serde(default)]
    pub deadline: Deadline,
    /// Who may decide: names of actors, roles or groups; empty for everybody who may decide at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// How many different people must approve; `None` for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<u32>,
}

/// What a rule says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleVerdict {
    /// It runs.
    Allow,
    /// A person looks first.
    Hold,
    /// It does not run.
    Deny,
}

impl RuleVerdict {
    pub(crate) const NAMES: [(&str, Self); 3] = [("allow", Self::Allow), ("hold", Self::Hold), ("deny", Self::Deny)];
}

impl PolicyRule {
    /// Whether the rule is about calls of this agent and tool at all.
    pub(super) fn matches(&self, facts: &Facts<'_>) -> bool {
        let is_among = |globs: &[Glob], name| globs.is_empty() || globs.iter().any(|glob| glob.matches(name));
        is_among(&self.agents, facts.agent) && is_among(&self.tools, facts.tool)
    }

    /// What it says about a call that it is about.
    pub(super) fn verdict(&self, known: &Known<'_>) -> PolicyOutcome {
        match applies(self.when.as_ref(), known) {
            Ok(false) => PolicyOutcome::Silent,
            Ok(true) => match self.verdict {
                RuleVerdict::Allow => PolicyOutcome::Allow { rules: vec![self.name.clone()] },
                RuleVerdict::Hold => PolicyOutcome::Hold(self.terms(self.message.clone())),
                RuleVerdict::Deny => {
                    PolicyOutcome::Deny { rules: vec![self.name.clone()], message: self.message.clone() }
                }
            },
            Err(fault) => PolicyOutcome::Hold(self.terms(Some(unclear(&self.name, &fault)))),
        }
    }

    fn terms(&self, reason: Option<String>) -> Hold {
        Hold {
            deadline: self.deadline,
            on_timeout: OnTimeout::Deny,
            approvers: self.approvers.clone(),
            quorum: self.quorum.unwrap_or(1).max(1),
            ..Hold::by(&self.name, reason)
        }
    }
}
