//! Several pauses at once: all answers of a request count or none, and a message in their place lets nothing run.

use std::collections::BTreeSet;

use holdpoint_core::Run;
use holdpoint_core::decision::{Decision, DecisionInput, Manner};
use holdpoint_core::event::{PauseDecided, RunEvent};
use holdpoint_core::ids::{ActorId, PauseId};
use holdpoint_core::message::Content;
use holdpoint_core::pause::Pause;

use super::{Problem, Watch};

impl Watch {
    /// What is recorded of a batch is what was said of each pause, and nothing else changes.
    pub(super) fn check_decisions(
        &self,
        before: &Run,
        given: &[DecisionInput],
        events: &[RunEvent],
        after: &Run,
    ) -> Result<(), Problem> {
        for one in given {
            let number = one.pause.number;
            let pause = after.pause(one.pause).map_err(|refusal| format!("a batch was taken, and {refusal}"))?;
            let has_voted = pause.is_open() && one.decision == Decision::Approve && pause.is_approved_by(&one.by);
            let is_recorded = pause.decision() == Some(&one.decision) || has_voted;
            never!(!is_recorded, "#{number}: of a batch that was taken one answer is not recorded");
            let own = events.iter().filter_map(decided).find(|decided| decided.number == number);
            never!(own.is_some_and(|own| own.rule.is_none() && own.by != one.by), "#{number}: another name");
            never!(own.is_some_and(|own| own.rule.is_none() && own.manner != one.manner), "#{number}: another manner");
            let may = self.pauses[number as usize - 1].terms.admit(&one.by, &one.groups);
            never!(!may, "{} decided #{number} and may not", one.by);
        }
        if given.iter().any(|one| one.rule.as_ref().is_some_and(|rule| rule.apply_to_open)) {
            return Ok(());
        }
        let named: BTreeSet<PauseId> = given.iter().map(|one| one.pause).collect();
        never!(named.len() < given.len(), "a pause was decided twice at once");
        for (was, is) in before.pauses().iter().zip(after.pauses()) {
            never!(!named.contains(&was.id) && was != is, "deciding others changed {}", was.id);
        }
        Ok(())
    }

    /// The words that came with decisions are staged once for each that was new, and never without it.
    pub(super) fn check_notes(&self, given: &[&DecisionInput], events: &[RunEvent]) -> Result<(), Problem> {
        let is_new = |one: &DecisionInput| {
            events.iter().any(|event| match event {
                RunEvent::PauseVoted(voted) => voted.number == one.pause.number,
                RunEvent::PauseDecided(decided) => decided.number == one.pause.number && decided.rule.is_none(),
                _ => false,
            })
        };
        let said = given.iter().filter(|one| one.note.is_some() && is_new(one)).count();
        let staged = events.iter().filter(|event| matches!(event, RunEvent::InputStaged(_))).count();
        never!(said != staged, "{said} notes came with decisions, and {staged} were staged");
        Ok(())
    }

    /// Everything that waited is closed, the model is told, and nothing is let run that a deadline does not.
    pub(super) fn check_superseded(
        &self,
        before: &Run,
        content: &Content,
        events: &[RunEvent],
        after: &Run,
    ) -> Result<(), Problem> {
        let still_open = before.pauses().iter().filter(|pause| pause.is_open()).find(|pause| is_open(after, pause.id));
        never!(still_open.is_some(), "{still_open:?} is open after a message in the place of its decision");
        for decided in events.iter().filter_map(decided).filter(|decided| decided.by != ActorId::timeout()) {
            let lets_run = matches!(
                decided.decision,
                Decision::Approve | Decision::ApproveEdited { .. } | Decision::RunAgain | Decision::Happened { .. }
            );
            never!(lets_run, "#{} was decided to run by a message in its place", decided.number);
            never!(decided.manner != Manner::Superseded, "#{} is not said to be superseded", decided.number);
        }
        let is_said = |event: &RunEvent| matches!(event, RunEvent::InputStaged(staged) if staged.content == *content);
        never!(events.iter().filter(|event| is_said(event)).count() != 1, "the message itself was not staged once");
        Ok(())
    }
}

fn is_open(run: &Run, pause: PauseId) -> bool {
    run.pause(pause).is_ok_and(Pause::is_open)
}

fn decided(event: &RunEvent) -> Option<&PauseDecided> {
    match event {
        RunEvent::PauseDecided(decided) => Some(decided),
        _ => None,
    }
}
