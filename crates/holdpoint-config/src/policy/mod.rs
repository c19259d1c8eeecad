//! Policy files: rules over the calls of all agents.
//!
//! Every rule that matches a call has a say, and the most restrictive verdict wins: deny before hold before allow. A
//! tool's own `approval` is one more rule ([`ToolSpec::verdict`]).

mod glob;
mod outcome;
pub(crate) mod read;
mod rule;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::agent::{ApprovalSpec, HeldApproval, ToolSpec};
use crate::expression::{Expression, ExpressionFault, Facts, Known};

pub use glob::{BadGlob, Glob};
pub use outcome::{Hold, PolicyOutcome};
pub use rule::{PolicyRule, RuleVerdict};

/// The rules of all policy files, in the order of files and lines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PolicySet {
    rules: Vec<PolicyRule>,
}

impl PolicySet {
    /// A set of these rules.
    pub fn new(rules: Vec<PolicyRule>) -> Self {
        Self { rules }
    }

    /// Its rules.
    pub fn rules(&self) -> &[PolicyRule] {
        &self.rules
    }

    /// What the rules say about a call: the most restrictive of those that match, or nothing.
    ///
    /// A rule whose expression cannot be worked out holds the call, whatever its own verdict is.
    pub fn verdict(&self, facts: &Facts<'_>) -> PolicyOutcome {
        self.verdict_within(&Known::new(facts))
    }

    fn verdict_within(&self, known: &Known<'_>) -> PolicyOutcome {
        let matching = self.rules.iter().filter(|rule| rule.matches(known.facts()));
        matching.map(|rule| rule.verdict(known)).fold(PolicyOutcome::Silent, PolicyOutcome::and)
    }
}

impl ToolSpec {
    /// What happens to a call of this tool: the most restrictive of what its own rule and the policy files say. A tool
    /// without a rule of its own goes by its default ([`ToolSpec::own_rule`]) where the policy files are silent too.
    ///
    /// Never [`PolicyOutcome::Silent`].
    pub fn verdict(&self, policies: &PolicySet, facts: &Facts<'_>) -> PolicyOutcome {
        let known = Known::new(facts);
        let said = policies.verdict_within(&known);
        match (&self.approval, said) {
            (Some(approval), said) => approval.verdict_within(&known).and(said),
            (None, PolicyOutcome::Silent) => match self.own_rule() {
                ApprovalSpec::Never => PolicyOutcome::Allow { rules: vec![DEFAULT_RULE.to_owned()] },
                ApprovalSpec::Held(_) => PolicyOutcome::Hold(Hold::by(DEFAULT_RULE, None)),
            },
            (None, said) => said,
        }
    }
}

/// The name of the rule that holds tools of which nothing else speaks.
pub const DEFAULT_RULE: &str = "default";

impl ApprovalSpec {
    /// What the tool's own rule says about a call.
    pub fn verdict(&self, facts: &Facts<'_>) -> PolicyOutcome {
        self.verdict_within(&Known::new(facts))
    }

    fn verdict_within(&self, known: &Known<'_>) -> PolicyOutcome {
        let rule = format!("tool:{}", known.facts().tool);
        match self {
            Self::Never => PolicyOutcome::Allow { rules: vec![rule] },
            Self::Held(held) => match applies(held.when.as_ref(), known) {
                Ok(true) => PolicyOutcome::Hold(held.terms(&rule, held.message.clone())),
                Ok(false) => PolicyOutcome::Allow { rules: vec![rule] },
                Err(fault) => PolicyOutcome::Hold(held.terms(&rule, Some(unclear(&rule, &fault)))),
            },
        }
    }
}

impl HeldApproval {
    fn terms(&self, rule: &str, reason: Option<String>) -> Hold {
        Hold {
            deadline: self.deadline,
            on_timeout: self.on_timeout,
            approvers: self.approvers.clone(),
            quorum: self.quorum.unwrap_or(1).max(1),
            ..Hold::by(rule, reason)
        }
    }
}

/// Whether a rule with this condition applies; one without a condition always does.
fn applies(when: Option<&Expression>, known: &Known<'_>) -> Result<bool, ExpressionFault> {
    when.map_or(Ok(true), |when| when.holds_within(known))
}

fn unclear(rule: &str, fault: &ExpressionFault) -> String {
    format!("rule {rule} cannot be worked out: {fault}")
}
