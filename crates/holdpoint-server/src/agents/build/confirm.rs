//! Confirmations: which of a model's words ask a person, and how long that person may take.

use std::time::Duration;

use holdpoint_config::InterruptSpec;
use holdpoint_runtime::agent::{AgentBuilder, ConfirmTerms};
use holdpoint_runtime::ports::tool::Deadline;

/// Pauses the agent when its model's words ask for a confirmation. The reason is the reply itself.
pub(super) fn when(builder: AgentBuilder, interrupt: &InterruptSpec) -> AgentBuilder {
    let phrases = interrupt.phrases.clone();
    let deadline = match interrupt.timeout {
        Duration::ZERO => Deadline::Never,
        timeout => Deadline::After(timeout),
    };
    builder.confirm_when(move |words: &str| phrases.matches(words).map(|_| ConfirmTerms::new(words, deadline)))
}
