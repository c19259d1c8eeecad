//! Rules that outlive the run in which they were made, and how often they were used.

use std::collections::BTreeMap;

use holdpoint_core::ids::{RuleId, SessionId};
use holdpoint_core::time::Timestamp;

use crate::memory::tables::{Rule, Tables};
use crate::ports::store::{Append, AppendError, RuleChange, StoredRule};

/// The rules as an append leaves them, those that it does not touch left out.
pub(super) fn change(tables: &Tables, append: &Append) -> Result<BTreeMap<RuleId, Rule>, AppendError> {
    let mut changed: BTreeMap<RuleId, Rule> = BTreeMap::new();
    for change in &append.rules {
        let id = id_of(change);
        let known = changed.get(&id).or_else(|| tables.rules.get(&id));
        let ours = known.filter(|rule| rule.session == append.session).cloned();
        let rule = match (change, ours) {
            // A rule is made once; the run's revision sees to that.
            (RuleChange::Made(_), Some(rule)) => rule,
            (RuleChange::Made(rule), None) => {
                Rule { session: append.session.clone(), rule: rule.clone(), uses: 0, is_revoked: false }
            }
            (RuleChange::Used(_), Some(rule)) if !rule.is_revoked && rule.rule.is_alive(append.at, rule.uses) => {
                Rule { uses: rule.uses.saturating_add(1), ..rule }
            }
            (RuleChange::Used(_), _) => return Err(AppendError::RuleSpent(id)),
            (RuleChange::Revoked(_), Some(rule)) => Rule { is_revoked: true, ..rule },
            (RuleChange::Revoked(_), None) => continue,
        };
        changed.insert(id, rule);
    }
    Ok(changed)
}

/// The rules of a session that may still be used, in the order of their ids.
pub(super) fn standing(tables: &Tables, session: &SessionId, now: Timestamp) -> Vec<StoredRule> {
    let stands = |rule: &&Rule| rule.session == *session && !rule.is_revoked && rule.rule.is_alive(now, rule.uses);
    let stored = |rule: &Rule| StoredRule { rule: rule.rule.clone(), uses: rule.uses };
    tables.rules.values().filter(stands).map(stored).collect()
}

fn id_of(change: &RuleChange) -> RuleId {
    match change {
        RuleChange::Made(rule) => rule.id,
        RuleChange::Used(id) | RuleChange::Revoked(id) => *id,
    }
}
