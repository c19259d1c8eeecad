//! What an append makes of the rules that outlive their run: a pure function of those that a database has.

use std::collections::BTreeMap;

use holdpoint_core::ids::RuleId;
use holdpoint_core::policy::StandingRule;
use holdpoint_runtime::ports::store::{Append, AppendError, RuleChange};

/// A rule as it is kept, but for its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleRecord {
    pub(crate) rule: StandingRule,
    pub(crate) uses: u32,
    pub(crate) is_revoked: bool,
}

/// The rule that a change is about.
pub(crate) fn id_of(change: &RuleChange) -> RuleId {
    match change {
        RuleChange::Made(rule) => rule.id,
        RuleChange::Used(id) | RuleChange::Revoked(id) => *id,
    }
}

/// The rules as an append leaves them, those that it does not touch left out. Those that are known are of its session.
///
/// # Errors
/// A rule that it uses is spent, was taken back or is not there.
pub(crate) fn changed(
    append: &Append,
    known: &BTreeMap<RuleId, RuleRecord>,
) -> Result<BTreeMap<RuleId, RuleRecord>, AppendError> {
    let mut changed: BTreeMap<RuleId, RuleRecord> = BTreeMap::new();
    for change in &append.rules {
        let id = id_of(change);
        let before = changed.get(&id).or_else(|| known.get(&id)).cloned();
        let rule = match (change, before) {
            // A rule is made once; the run's revision sees to that.
            (RuleChange::Made(_), Some(rule)) => rule,
            (RuleChange::Made(rule), None) => RuleRecord { rule: rule.clone(), uses: 0, is_revoked: false },
            (RuleChange::Used(_), Some(rule)) if !rule.is_revoked && rule.rule.is_alive(append.at, rule.uses) => {
                RuleRecord { uses: rule.uses.saturating_add(1), ..rule }
            }
            (RuleChange::Used(_), _) => return Err(AppendError::RuleSpent(id)),
            (RuleChange::Revoked(_), Some(rule)) => RuleRecord { is_revoked: true, ..rule },
            (RuleChange::Revoked(_), None) => continue,
        };
        changed.insert(id, rule);
    }
    Ok(changed)
}
