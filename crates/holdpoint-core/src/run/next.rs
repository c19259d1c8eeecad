//! What must be done next, read from the state alone.

use crate::ids::FramePath;
use crate::run::{Begun, Frame, Phase, Run, State};
use crate::step::{Step, Work};
use crate::tool::{CallState, ToolKind};

impl Run {
    /// Read from the state alone: a restarted process asks again and gets the same answer.
    pub fn next_step(&self) -> Step {
        match &self.state {
            State::Idle => Step::AwaitDecisions { pauses: Vec::new() },
            State::Begun(begun) => begun.next_step(),
        }
    }
}

impl Begun {
    fn next_step(&self) -> Step {
        if let Some(end) = &self.end {
            return Step::Finished(end.clone());
        }
        let mut work = Work::default();
        let mut is_running = false;
        for (path, frame) in &self.frames {
            is_running |= frame.add_work(path, &mut work);
        }
        if !work.is_empty() {
            Step::Work(work)
        } else if is_running {
            Step::AwaitCalls
        } else {
            Step::AwaitDecisions { pauses: self.open_pauses().map(|pause| pause.id).collect() }
        }
    }
}

impl Frame {
    /// Adds what this frame needs, and says whether a call of it is under way.
    fn add_work(&self, path: &FramePath, work: &mut Work) -> bool {
        match &self.phase {
            Phase::CheckingInput => work.check_input.push(path.clone()),
            Phase::AwaitingModel => work.call_model.push(path.clone()),
            Phase::CheckingOutput(_) => work.check_output.push(path.clone()),
            Phase::Confirming { .. } | Phase::Finished(_) => {}
            Phase::Tools(_) => return self.add_calls(path, work),
        }
        false
    }

    fn add_calls(&self, path: &FramePath, work: &mut Work) -> bool {
        let mut is_running = false;
        for (call_path, call) in self.calls(path) {
            match (&call.state, &call.record.kind) {
                (CallState::Requested, _) => work.screen.push(call_path),
                (CallState::Denied, _) => work.word.push(call_path),
                // Hand-offs and inner agents follow by themselves.
                (CallState::Allowed { .. }, ToolKind::Handoff { .. } | ToolKind::Agent { .. }) => {}
                (CallState::Allowed { .. }, _) => work.run_tools.push(call_path),
                (CallState::Started, ToolKind::Agent { .. }) => {}
                (CallState::Started, _) => is_running = true,
                (CallState::Held { .. } | CallState::InDoubt { .. } | CallState::Answered(_), _) => {}
            }
        }
        is_running
    }
}
