//! What those who look at a call, and what runs it, are told.

use holdpoint_core::ids::{ActorId, AgentId, CallPath, RunId, SessionId, ToolName};
use tokio_util::sync::CancellationToken;

use crate::context::Context;

/// What a tool, predicate, decider or guardrail is told about a call.
#[derive(Clone, Debug)]
pub struct ToolContext {
    /// The conversation.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// Who started the run.
    pub actor: ActorId,
    /// The call's place in the run.
    pub call: CallPath,
    /// The provider's id of the call.
    pub call_id: String,
    /// The agent that asks.
    pub agent: AgentId,
    /// The tool.
    pub tool: ToolName,
    /// The application's context.
    pub context: Context,
    /// Which start of this call it is, from one.
    pub attempt: u32,
    /// Ends when somebody cancels the run: finish soon.
    pub cancelled: CancellationToken,
}

impl ToolContext {
    /// The same for every attempt at this call, and for no other call.
    pub fn idempotency_key(&self) -> String {
        format!("{}:{}", self.run, self.call)
    }
}
