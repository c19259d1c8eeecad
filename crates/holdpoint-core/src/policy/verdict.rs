//! What the runtime found when it looked at a call: the policy's answer, with its reasons.

use serde::{Deserialize, Serialize};

use crate::ids::{ActorId, CallPath};
use crate::policy::{PauseTerms, StandingRule};
use crate::time::Timestamp;

/// What was found about one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screening {
    /// The call.
    pub call: CallPath,
    /// The answer.
    pub verdict: Verdict,
    /// What guardrails said before the pause.
    pub guardrails: Vec<GuardrailResult>,
}

/// The answer about one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may run.
    Allow,
    /// A person must look.
    Hold {
        /// Why, in the operator's words.
        reason: Option<String>,
        /// Until when; `None` for ever.
        expires_at: Option<Timestamp>,
        /// On what terms.
        terms: PauseTerms,
    },
    /// It does not run; these words go to the model, or the formatter's where there are none.
    Deny {
        /// What denied it.
        by: ActorId,
        /// The words.
        message: Option<String>,
    },
    /// A decider in code approved it.
    Approved {
        /// The decider.
        by: ActorId,
    },
    /// A standing rule speaks of it. Where the rule has ended meanwhile, the call is to be looked at again.
    Ruled(StandingRule),
    /// It cannot run: the model is told why, nobody is asked.
    Invalid(String),
    /// A guardrail stops the whole run.
    Halt {
        /// The guardrail.
        guardrail: String,
        /// Why.
        message: String,
    },
}

/// When a guardrail looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardrailPhase {
    /// At the run's input.
    Input,
    /// At a call, before a person is asked.
    BeforePause,
    /// At a call, right before it runs.
    BeforeRun,
    /// At the output.
    Output,
}

/// What a guardrail said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardrailResult {
    /// The guardrail's name.
    pub name: String,
    /// When it looked.
    pub phase: GuardrailPhase,
    /// What it objects to; `None` when it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objection: Option<String>,
}
