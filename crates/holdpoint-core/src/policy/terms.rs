//! On what terms a person is asked: who may answer, how many must approve, and what happens when nobody does.

use serde::{Deserialize, Serialize};

use crate::ids::ActorId;
use crate::refusal::Refusal;
use crate::run::limits;

/// On what terms a call is held. Without any: everybody may decide, one approval is enough, and silence denies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseTerms {
    /// The policy's rule that holds the call, by name; shown, never trusted.
    pub rule: Option<String>,
    /// Who may decide: names of actors, roles and groups. Empty for everybody.
    pub approvers: Vec<String>,
    /// How many different actors must approve: one at least.
    pub quorum: u32,
    /// What happens when nobody decides in time.
    pub on_timeout: OnTimeout,
}

impl Default for PauseTerms {
    fn default() -> Self {
        Self { rule: None, approvers: Vec::new(), quorum: 1, on_timeout: OnTimeout::Deny }
    }
}

impl PauseTerms {
    /// Whether an actor, who also acts under the names of these groups, may decide.
    pub fn admit(&self, actor: &ActorId, groups: &[String]) -> bool {
        let is_named = |name: &str| self.approvers.iter().any(|approver| approver == name);
        self.approvers.is_empty() || is_named(actor.as_str()) || groups.iter().any(|group| is_named(group))
    }

    /// Whether one person's approval is enough.
    pub fn takes_one(&self) -> bool {
        self.quorum <= 1
    }

    /// Checks that the terms keep within bounds.
    ///
    /// # Errors
    /// More approvers, longer names or a larger quorum than a pause may have; a quorum of nobody.
    pub fn check(&self) -> Result<(), Refusal> {
        let within = |what, limit, found| match found > limit {
            true => Err(Refusal::OverLimit { what, limit, found }),
            false => Ok(()),
        };
        within("approvers of a pause", limits::APPROVERS_MAX, self.approvers.len())?;
        let names = self.approvers.iter().chain(&self.rule).map(String::len);
        within("bytes in the name of an approver or a rule", limits::NAME_BYTES_MAX, names.max().unwrap_or(0))?;
        within("approvals of a pause", limits::QUORUM_MAX, self.quorum as usize)?;
        match self.quorum {
            0 => Err(Refusal::InvalidDefinition("a quorum of 0 would approve by itself: 1 at least".to_owned())),
            _ => Ok(()),
        }
    }

    /// The same terms for a question, which one person answers and silence never does.
    #[must_use]
    pub(crate) fn of_question(self) -> Self {
        Self { quorum: 1, on_timeout: OnTimeout::Deny, ..self }
    }

    /// The same terms for a call that is asked about once more: what was to happen by itself no longer does.
    #[must_use]
    pub(crate) fn asked_again(&self) -> Self {
        Self { on_timeout: OnTimeout::Deny, ..self.clone() }
    }
}

/// What happens to a held call when nobody decides in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// It does not run.
    #[default]
    Deny,
    /// It runs as shown, and [`ActorId::timeout`] is recorded as who decided.
    Approve,
}

impl OnTimeout {
    pub(crate) fn is_deny(&self) -> bool {
        *self == Self::Deny
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(approvers: &[&str]) -> PauseTerms {
        PauseTerms { approvers: approvers.iter().map(|name| (*name).to_owned()).collect(), ..PauseTerms::default() }
    }

    #[test]
    fn approvers_are_found_by_their_own_name_and_by_those_of_their_groups() {
        let (ana, finance) = (ActorId::new("ana").unwrap(), ["finance".to_owned()]);
        assert!(terms(&[]).admit(&ana, &[]));
        assert!(terms(&["bo", "ana"]).admit(&ana, &[]));
        assert!(terms(&["finance"]).admit(&ana, &finance));
        assert!(!terms(&["finance"]).admit(&ana, &[]));
        assert!(!terms(&["Finance"]).admit(&ana, &finance));
    }

    #[test]
    fn terms_beyond_their_bounds_are_refused() {
        let names = vec!["x".to_owned(); limits::APPROVERS_MAX + 1];
        for bad in [
            PauseTerms { approvers: names, ..PauseTerms::default() },
            terms(&[&"x".repeat(limits::NAME_BYTES_MAX + 1)]),
            PauseTerms { rule: Some("x".repeat(limits::NAME_BYTES_MAX + 1)), ..PauseTerms::default() },
            PauseTerms { quorum: 65, ..PauseTerms::default() },
            PauseTerms { quorum: 0, ..PauseTerms::default() },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        assert_eq!(PauseTerms { quorum: 64, ..terms(&["ana"]) }.check(), Ok(()));
    }
}
