//! The rules about calls. Policy gives verdicts; only people (and rules that people made) decide.

mod constraint;
mod rule;
mod terms;
mod verdict;

pub use constraint::{Constraint, Test};
pub use rule::{AgentScope, Lifetime, NewRule, RuleEffect, Scope, StandingRule};
pub use terms::{OnTimeout, PauseTerms};
pub use verdict::{GuardrailPhase, GuardrailResult, Screening, Verdict};
