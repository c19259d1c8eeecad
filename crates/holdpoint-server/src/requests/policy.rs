//! Who must look at a request. Policies speak of requests as of every call; where none speaks, a person must look.
//!
//! What whoever asks may say about it only ever narrows: fewer who may decide, and less time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::json::CanonicalJson;
use holdpoint_runtime::ports::tool::{Deadline, HoldTerms, OnTimeout, Policy, PolicyVerdict, ToolContext};

use super::{Carried, Terms};

/// The policy of a request.
pub(super) struct RequestPolicy {
    /// The operator's, which holds what it does not speak of.
    pub(super) operator: Arc<dyn Policy>,
    /// How long pauses wait where nothing else is said.
    pub(super) default_deadline: Option<Duration>,
}

#[async_trait]
impl Policy for RequestPolicy {
    async fn verdict(&self, context: &ToolContext, arguments: &CanonicalJson) -> Result<PolicyVerdict, String> {
        let asked = context.context.decode::<Carried>().map(|carried| carried.holdpoint_request);
        let asked = asked.map_err(|_| "the request's own terms cannot be read".to_owned())?;
        let verdict = self.operator.verdict(context, arguments).await;
        // A policy that fails holds, and what was asked for still narrows who may decide.
        Ok(match verdict.unwrap_or_else(|problem| PolicyVerdict::Hold(HoldTerms::because(problem))) {
            PolicyVerdict::Hold(terms) => PolicyVerdict::Hold(narrow(terms, asked, self.default_deadline)),
            settled => settled,
        })
    }
}

fn narrow(mut terms: HoldTerms, asked: Terms, default_deadline: Option<Duration>) -> HoldTerms {
    if terms.approvers.is_empty() {
        terms.approvers = asked.approvers;
    }
    terms.reason = terms.reason.or(asked.context);
    if terms.deadline == Deadline::Default {
        terms.deadline = default_deadline.map_or(Deadline::Never, Deadline::After);
    }
    // Where silence approves, whoever asks must not be able to shorten it.
    if let (Some(seconds), OnTimeout::Deny) = (asked.timeout_seconds, terms.on_timeout) {
        let wanted = Duration::from_secs(seconds);
        let longest = match terms.deadline {
            Deadline::Default | Deadline::Never => None,
            Deadline::After(longest) => Some(longest),
        };
        terms.deadline = Deadline::After(longest.map_or(wanted, |longest| wanted.min(longest)));
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrowed(terms: HoldTerms, seconds: u64) -> HoldTerms {
        let asked = Terms {
            context: Some("please".to_owned()),
            timeout_seconds: Some(seconds),
            approvers: vec!["ana".to_owned()],
            callback_url: None,
        };
        narrow(terms, asked, Some(Duration::from_secs(100)))
    }

    fn after(seconds: u64) -> Deadline {
        Deadline::After(Duration::from_secs(seconds))
    }

    #[test]
    fn whoever_asks_may_only_narrowed() {
        let usual = narrowed(HoldTerms::default(), 50);
        assert_eq!((usual.deadline, usual.approvers.as_slice()), (after(50), &["ana".to_owned()][..]));
        assert_eq!(usual.reason.as_deref(), Some("please"));
        assert_eq!(narrowed(HoldTerms::default(), 500).deadline, after(100));
        assert_eq!(narrowed(HoldTerms { deadline: after(10), ..HoldTerms::default() }, 50).deadline, after(10));
        assert_eq!(narrowed(HoldTerms { deadline: Deadline::Never, ..HoldTerms::default() }, 50).deadline, after(50));
        let held = HoldTerms { approvers: vec!["ben".to_owned()], ..HoldTerms::because("large") };
        let held = narrowed(held, 50);
        assert_eq!((held.approvers.as_slice(), held.reason.as_deref()), (&["ben".to_owned()][..], Some("large")));
    }

    #[test]
    fn a_timeout_that_approves_cannot_be_shortened() {
        let terms = HoldTerms { on_timeout: OnTimeout::Approve, deadline: after(60), ..HoldTerms::default() };
        assert_eq!(narrowed(terms, 1).deadline, after(60));
    }
}
