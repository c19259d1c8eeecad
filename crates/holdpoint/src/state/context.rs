//! A state that goes on with another context.

use holdpoint_core::ids::ActorId;
use holdpoint_core::input::Input;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::tool::{Allowance, CallState};
use holdpoint_runtime::agent::Agent;
use holdpoint_runtime::context::Context;

use crate::state::RunState;

/// What becomes of the stored context and of decisions that have not taken effect yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ContextStrategy {
    /// The given fields win, the stored ones fill the gaps, decisions stand.
    #[default]
    Merge,
    /// The given context is all there is: approvals that have not taken effect are asked for again, and standing rules
    /// end. What was denied stays denied.
    Replace,
}

impl RunState {
    /// Reads a state that was kept, to go on with this context.
    ///
    /// # Errors
    /// As [`RunState::from_json`], and a context that cannot be stored.
    pub fn from_json_with_context(
        agent: &Agent,
        json: &str,
        context: Context,
        strategy: ContextStrategy,
    ) -> Result<Self, Refusal> {
        Self::from_json(agent, json)?.with_context(context, strategy)
    }

    /// The same state with this context.
    ///
    /// # Errors
    /// A context that cannot be stored, or a run that is over.
    pub fn with_context(mut self, context: Context, strategy: ContextStrategy) -> Result<Self, Refusal> {
        let stored = Context::stored(self.run.context());
        let context = match strategy {
            ContextStrategy::Merge => context.merged_over(&stored),
            ContextStrategy::Replace => context,
        };
        let data = context
            .to_stored()
            .map_err(|problem| Refusal::InvalidDefinition(format!("the context cannot be stored: {problem}")))?;
        if data.as_ref() != self.run.context() {
            self.advance(Input::SetContext(data))?;
        }
        if strategy == ContextStrategy::Replace {
            self.forget_decisions()?;
        }
        self.given = Some(context);
        Ok(self)
    }

    fn forget_decisions(&mut self) -> Result<(), Refusal> {
        let is_decided =
            |state: &CallState| matches!(state, CallState::Allowed { by: Allowance::Pause(_) | Allowance::Rule(_) });
        let calls: Vec<_> = self.run.allowed_calls();
        let calls: Vec<_> =
            calls.into_iter().filter(|path| self.run.call(path).is_some_and(|call| is_decided(&call.state))).collect();
        if !calls.is_empty() {
            let reason = "the context was replaced after the call was approved".to_owned();
            self.advance(Input::HoldAgain { calls, reason, expires_at: None })?;
        }
        let rules: Vec<_> = self.run.rules().iter().map(|rule| rule.id).collect();
        for rule in rules {
            self.advance(Input::RevokeRule { rule, by: ActorId::local() })?;
        }
        Ok(())
    }
}
