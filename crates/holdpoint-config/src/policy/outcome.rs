//! What rules say of a call, and how what several say becomes one.

use holdpoint_core::policy::OnTimeout;
use holdpoint_core::text::clamp;

use crate::agent::Deadline;

/// The longest reason that is shown, in bytes.
const REASON_BYTES_MAX: usize = 2_000;
/// The longest name of a rule that a pause may have, in bytes.
const RULE_BYTES_MAX: usize = holdpoint_core::run::limits::NAME_BYTES_MAX;

/// What rules say of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyOutcome {
    /// No rule speaks of it.
    Silent,
    /// It runs.
    Allow {
        /// The rules that say so.
        rules: Vec<String>,
    },
    /// A person looks first.
    Hold(Hold),
    /// It does not run.
    Deny {
        /// The rules that say so.
        rules: Vec<String>,
        /// What the model is told, if a rule has words for it.
        message: Option<String>,
    },
}

/// On what terms a call is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The rules that hold it.
    pub rules: Vec<String>,
    /// Why, one text for each rule that has words for it.
    pub reasons: Vec<String>,
    /// Until when somebody must have decided.
    pub deadline: Deadline,
    /// What happens when nobody did.
    pub on_timeout: OnTimeout,
    /// Who may decide; empty for everybody who may decide at all.
    pub approvers: Vec<String>,
    /// How many different people must approve; one at least.
    pub quorum: u32,
}

impl Hold {
    /// A hold by one rule, without further terms.
    pub(super) fn by(rule: &str, reason: Option<String>) -> Self {
        Self {
            rules: vec![rule.to_owned()],
            reasons: reason.into_iter().collect(),
            deadline: Deadline::Default,
            on_timeout: OnTimeout::Deny,
            approvers: Vec::new(),
            quorum: 1,
        }
    }

    /// Why the call is held, in one text.
    pub fn reason(&self) -> Option<String> {
        let joined = self.reasons.join("; ");
        (!joined.is_empty()).then(|| clamp(&joined, REASON_BYTES_MAX).to_owned())
    }

    /// The names of the rules, in one text.
    pub fn rule(&self) -> String {
        clamp(&self.rules.join(", "), RULE_BYTES_MAX).to_owned()
    }
}

impl PolicyOutcome {
    /// The more restrictive of two: deny, then hold, then allow.
    ///
    /// Two holds become one that satisfies both: the tighter deadline, the larger quorum, only approvers that both
    /// name, and silence approves only where both say so. Where no approver is named by both, nobody could approve, and
    /// the call is denied in words that say why.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Silent, other) => other,
            (outcome, Self::Silent) => outcome,
            (Self::Deny { mut rules, message }, Self::Deny { rules: more, message: other }) => {
                rules.extend(more);
                Self::Deny { rules, message: joined(message, other) }
            }
            (deny @ Self::Deny { .. }, _) | (_, deny @ Self::Deny { .. }) => deny,
            (Self::Hold(hold), Self::Hold(other)) => both(hold, other),
            (hold @ Self::Hold(_), _) | (_, hold @ Self::Hold(_)) => hold,
            (Self::Allow { mut rules }, Self::Allow { rules: more }) => {
                rules.extend(more);
                Self::Allow { rules }
            }
        }
    }
}

fn both(mut hold: Hold, other: Hold) -> PolicyOutcome {
    let approvers = match (hold.approvers.is_empty(), other.approvers.is_empty()) {
        (true, _) => other.approvers,
        (_, true) => hold.approvers,
        (false, false) => {
            let common: Vec<String> =
                hold.approvers.iter().filter(|name| other.approvers.contains(name)).cloned().collect();
            if common.is_empty() {
                hold.rules.extend(other.rules);
                let message = format!("no approver may decide for all of the rules {}", hold.rules.join(", "));
                return PolicyOutcome::Deny { rules: hold.rules, message: Some(message) };
            }
            common
        }
    };
    hold.rules.extend(other.rules);
    hold.reasons.extend(other.reasons);
    PolicyOutcome::Hold(Hold {
        deadline: hold.deadline.tighter(other.deadline),
        on_timeout: if hold.on_timeout == other.on_timeout { hold.on_timeout } else { OnTimeout::Deny },
        quorum: hold.quorum.max(other.quorum),
        approvers,
        ..hold
    })
}

fn joined(one: Option<String>, other: Option<String>) -> Option<String> {
    match (one, other) {
        (Some(one), Some(other)) => Some(clamp(&format!("{one}; {other}"), REASON_BYTES_MAX).to_owned()),
        (one, other) => one.or(other),
    }
}
