//! Somebody answers a pause, from any process. The first answer stands; every later one is told of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::PauseId;
use holdpoint_core::input::Input;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::pause::{Pause, Subject};
use holdpoint_core::policy::StandingRule;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::limits::DECISIONS_MAX;
use holdpoint_core::run::{Run, check_numbers};

use crate::agent::AgentGraph;
use crate::driver::{objection_to_edit, stored_definition};
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
    pub run: Arc<Run>,
    /// Whether the same answer was recorded before, so that nothing was written now.
    pub is_repeat: bool,
}

impl Decided {
    /// How a pause stands after these events, which one request led to.
    fn of(id: PauseId, run: Arc<Run>, events: &[RunEvent]) -> Result<Self, Refusal> {
        let is_recorded = events.iter().any(|event| match event {
            RunEvent::PauseVoted(voted) => voted.number == id.number,
            // What a rule decides on the way is nobody's answer to this pause.
            RunEvent::PauseDecided(decided) => decided.number == id.number && decided.rule.is_none(),
            _ => false,
        });
        Ok(Self { pause: run.pause(id)?.clone(), run, is_repeat: !is_recorded })
    }
}

impl Runtime {
    /// Records an answer to a pause. It is durable when this returns; nothing runs yet.
    ///
    /// # Errors
    /// The pause is not known, was settled before, does not take this answer, or holds other arguments than were seen.
    pub async fn decide_pause(&self, mut input: DecisionInput) -> Result<Decided, RunError> {
        let id = input.pause;
        self.prepare(&mut input).await?;
        let Changed { run, events } = self.record(id, Input::Decision(input)).await?;
        Ok(Decided::of(id, run, &events)?)
    }

    /// Records answers to several pauses of one run in one append: all of them are durable when this returns, or none is
    /// recorded. An answer that was recorded before is no error, and says so.
    ///
    /// # Errors
    /// As for [`Runtime::decide_pause`], for any of them; the refusal names its pause ([`Refusal::pause`]). A pause of
    /// another run than the first is not known here, and none may be named twice.
    pub async fn decide_pauses(&self, mut inputs: Vec<DecisionInput>) -> Result<Vec<Decided>, RunError> {
        let (limit, found) = (DECISIONS_MAX, inputs.len());
        if found > limit {
            return Err(Refusal::OverLimit { what: "decisions at once", limit, found }.into());
        }
        let ids: Vec<PauseId> = inputs.iter().map(|input| input.pause).collect();
        let Some(first) = ids.first().copied() else { return Ok(Vec::new()) };
        if let Some(stranger) = ids.iter().find(|id| id.run != first.run) {
            return Err(Refusal::PauseNotFound(*stranger).into());
        }
        for input in &mut inputs {
            self.prepare(input).await?;
        }
        let Changed { run, events } = self.record(first, Input::Decisions(inputs)).await?;
        Ok(ids.into_iter().map(|id| Decided::of(id, run.clone(), &events)).collect::<Result<_, _>>()?)
    }

    /// Whether the policy of a tool would let its call run with these arguments, before somebody decides so: who edits can
    /// still mend them. It is asked once more right before the call runs. What does not fit the tool is not shown to it.
    ///
    /// # Errors
    /// [`Refusal::InvalidArguments`] where it would not; also where there is no such pause.
    pub async fn check_edit_by_policy(
        &self,
        id: PauseId,
        arguments: &CanonicalJson,
        graph: &AgentGraph,
    ) -> Result<(), RunError> {
        self.check_edit(id, arguments).await?;
        let stored = self.stored_run_of(id).await?;
        let Subject::Call { path, .. } = &stored.run.pause(id)?.subject else { return Ok(()) };
        match objection_to_edit(&stored.run, graph, path, arguments).await {
            Some(problem) => Err(Refusal::InvalidArguments { pause: id, problem }.into()),
            None => Ok(()),
        }
    }

    /// What must be known or checked outside of the core.
    async fn prepare(&self, input: &mut DecisionInput) -> Result<(), RunError> {
        if let Decision::ApproveEdited { arguments } = &input.decision {
            self.check_edit(input.pause, arguments).await?;
        }
        if input.rule.as_ref().is_some_and(|rule| rule.apply_to_open) {
            input.session_rules = self.rules_elsewhere(input.pause).await?;
        }
        Ok(())
    }

    /// Feeds answers to the run of this pause.
    async fn record(&self, id: PauseId, input: Input) -> Result<Changed, RunError> {
        let mut too_late: BTreeMap<PauseId, Refusal> = BTreeMap::new();
        loop {
            match self.change(id.run, input.clone()).await {
                Err(RunError::Refused(refusal @ Refusal::Expired { pause, .. })) => {
                    if let Some(first) = too_late.remove(&pause) {
                        return Err(first.into());
                    }
                    // Nobody has written the deadline down yet, perhaps: the answer must not be the only trace of it.
                    // What it led to, an expiry or an approval, is what the caller is told.
                    self.expire_pause(pause).await?;
                    too_late.insert(pause, refusal);
                }
                Err(RunError::Refused(Refusal::RunNotFound(_))) => return Err(Refusal::PauseNotFound(id).into()),
                changed => return changed,
            }
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
        // Before the schema, which would be shown another number.
        check_numbers(id, arguments)?;
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
