//! What must be done next. Read from the state alone: a restarted process asks again and gets the same answer.

use crate::event::RunEnd;
use crate::ids::{CallPath, FramePath, PauseId};

/// What a run needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// There is something to do; all of it may be done at the same time.
    Work(Work),
    /// Calls are under way and nothing else can be done until one ends.
    AwaitCalls,
    /// Nothing can be done before somebody answers.
    AwaitDecisions {
        /// What is open.
        pauses: Vec<PauseId>,
    },
    /// Nothing is left to do.
    Finished(RunEnd),
}

/// Things to do now, each independent of the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Work {
    /// Frames whose input guardrails must look.
    pub check_input: Vec<FramePath>,
    /// Frames whose model must be called.
    pub call_model: Vec<FramePath>,
    /// Calls that policy must look at.
    pub screen: Vec<CallPath>,
    /// Denials that need words.
    pub word: Vec<CallPath>,
    /// Calls that may run.
    pub run_tools: Vec<CallPath>,
    /// Frames whose output guardrails must look.
    pub check_output: Vec<FramePath>,
}

impl Work {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.check_input.is_empty()
            && self.call_model.is_empty()
            && self.screen.is_empty()
            && self.word.is_empty()
            && self.run_tools.is_empty()
            && self.check_output.is_empty()
    }
}
