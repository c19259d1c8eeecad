//! Somebody answers a pause, from any process. The first answer stands; every later one is told of it.

use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::ids::PauseId;
use holdpoint_core::input::Input;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::pause::{Pause, Subject};
use holdpoint_core::policy::StandingRule;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;

use crate::driver::stored_definition;
use crate::fault::RunError;
use crate::ports::tool::{check_schema, compile_schema};
use crate::runtime::Runtime;
use crate::use_cases::change::{Changed, Stored};

/// What was recorded.
#[derive(Debug, Clone)]
pub struct Decided {
    /// The pause as it stands now.
    pub pause: Pause,
    /// The run as it stands now; it goes on when somebody drives it.
    pub run: Run,
    /// Whether the same answer was recorded before, so that nothing was written now.
    pub is_repeat: bool,
}

impl Runtime {
    /// Records an answer to a pause. It is durable when this returns; nothing runs yet.
    ///
    /// # Errors
    /// The pause is not known, was settled before, does not take this answer, or holds other arguments than were seen.
    pub async fn decide_pause(&self, mut input: DecisionInput) -> Result<Decided, RunError> {
        let id = input.pause;
        if let Decision::ApproveEdited { arguments } = &input.decision {
            self.check_edit(id, arguments).await?;
        }
        if input.rule.as_ref().is_some_and(|rule| rule.apply_to_open) {
            input.session_rules = self.rules_elsewhere(id).await?;
        }
        match self.record_decision(id, input.clone()).await {
            Err(RunError::Refused(refusal @ Refusal::Expired { .. })) => {
                // Nobody has written the deadline down yet, perhaps: the answer must not be the only trace of it. What it
                // led to, an expiry or an approval, is what the caller is told.
                self.expire_pause(id).await?;
                match self.record_decision(id, input).await {
                    Err(RunError::Refused(Refusal::Expired { .. })) => Err(refusal.into()),
                    decided => decided,
                }
            }
            decided => decided,
        }
    }

    async fn record_decision(&self, id: PauseId, input: DecisionInput) -> Result<Decided, RunError> {
        match self.change(id.run, Input::Decision(input)).await {
            Ok(Changed { run, is_new }) => Ok(Decided { pause: run.pause(id)?.clone(), run, is_repeat: !is_new }),
            Err(RunError::Refused(Refusal::RunNotFound(_))) => Err(Refusal::PauseNotFound(id).into()),
            Err(error) => Err(error),
        }
    }

    /// The rules of other runs that stand in the pause's session.
    async fn rules_elsewhere(&self, id: PauseId) -> Result<Vec<StandingRule>, RunError> {
        let stored = self.stored_run_of(id).await?;
        let rules = self.rules_beside(&stored.run, self.store().now()).await?;
        Ok(rules.into_iter().filter(|rule| rule.id.run != id.run).collect())
    }

    async fn stored_run_of(&self, id: PauseId) -> Result<Stored, RunError> {
        match self.stored_run(id.run).await {
            Err(RunError::Refused(Refusal::RunNotFound(_))) => Err(Refusal::PauseNotFound(id).into()),
            stored => stored,
        }
    }

    /// Edited arguments must fit the schema of the tool as the run knows it.
    async fn check_edit(&self, id: PauseId, arguments: &CanonicalJson) -> Result<(), RunError> {
        let stored = self.stored_run_of(id).await?;
        let pause = stored.run.pause(id)?;
        let Subject::Call { path, .. } = &pause.subject else { return Ok(()) };
        let (Some(call), Some(frame)) = (stored.run.call(path), stored.run.frame(&path.frame())) else {
            return Ok(());
        };
        let refuse = |problem| Refusal::InvalidArguments { pause: id, problem };
        // Where another agent was set to go on, the definition of the one that asked is not at hand here.
        let is_asker = frame.turn().is_some_and(|turn| turn.agent == frame.agent.id);
        let definition = match is_asker {
            true => stored_definition(self.store().as_ref(), &frame.agent.digest).await?,
            false => None,
        };
        let Some(tool) = definition.as_ref().and_then(|definition| definition.tool(&call.record.tool)) else {
            return Err(refuse("the tool's schema is not known, so the arguments cannot be checked".to_owned()).into());
        };
        let validator = compile_schema(&tool.schema).map_err(refuse)?;
        check_schema(&validator, arguments).map_err(refuse)?;
        Ok(())
    }
}
