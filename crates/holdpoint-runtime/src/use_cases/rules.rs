//! Standing rules are taken back.

use holdpoint_core::ids::{ActorId, RuleId};
use holdpoint_core::input::Input;
use holdpoint_core::refusal::Refusal;

use crate::fault::RunError;
use crate::runtime::Runtime;

impl Runtime {
    /// Takes a rule back, also after its run is over. Decisions that it gave stand.
    ///
    /// # Errors
    /// There is no such rule, or it was taken back before.
    pub async fn revoke_rule(&self, rule: RuleId, by: ActorId) -> Result<(), RunError> {
        match self.change(rule.run, Input::RevokeRule { rule, by }).await {
            Ok(_) => Ok(()),
            Err(RunError::Refused(Refusal::RunNotFound(_))) => Err(Refusal::RuleNotFound(rule).into()),
            Err(error) => Err(error),
        }
    }
}
