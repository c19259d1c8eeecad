//! Runs: how one is started, and how it stands.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Pause;

/// What starts a run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartRun {
    /// The agent.
    #[schema(min_length = 1, max_length = 128)]
    pub(crate) agent_id: String,
    /// The conversation; a new one when none is named.
    #[schema(min_length = 1, max_length = 256)]
    pub(crate) session_id: Option<String>,
    /// What is asked of the agent.
    #[schema(min_length = 1, max_length = 1_000_000)]
    pub(crate) input: String,
}

/// What ends a run.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelRun {
    /// Why; recorded with the end.
    #[serde(default)]
    #[schema(max_length = 4096)]
    pub(crate) reason: Option<String>,
}

/// A run as it stands.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Run {
    /// The run.
    #[schema(example = "run_0198c0ffee007000800000000000beef")]
    pub(crate) run_id: String,
    /// Its conversation.
    pub(crate) session_id: String,
    /// The agent that it began with.
    pub(crate) agent: String,
    /// How it stands.
    pub(crate) status: RunStatus,
    /// Who started it.
    pub(crate) started_by: Option<String>,
    /// When it began.
    #[schema(format = DateTime)]
    pub(crate) started_at: Option<String>,
    /// What it came to, once it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
    /// Why it ended otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<RunEnd>,
    /// What waits for a person.
    pub(crate) pauses: Vec<Pause>,
    /// What its model calls cost.
    pub(crate) usage: Usage,
}

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunStatus {
    /// It moves, or will by itself.
    Running,
    /// A person must answer.
    Paused,
    /// It came to an output.
    Done,
    /// It could not go on.
    Failed,
    /// Somebody ended it.
    Cancelled,
}

/// Why a run ended without an output.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct RunEnd {
    /// A stable code; `cancelled` where somebody ended it.
    pub(crate) code: String,
    /// Why.
    pub(crate) message: String,
    /// Who ended it, where somebody did.
    pub(crate) by: Option<String>,
}

/// What model calls cost.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct Usage {
    /// Model calls.
    pub(crate) requests: u64,
    /// Tokens read.
    pub(crate) input_tokens: u64,
    /// Tokens written.
    pub(crate) output_tokens: u64,
}

/// A page of runs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunList {
    /// Newest first.
    pub(crate) runs: Vec<RunSummary>,
    /// Where the next page begins; null after the last one.
    pub(crate) next_cursor: Option<String>,
}

/// A run in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunSummary {
    /// The run.
    pub(crate) run_id: String,
    /// Its conversation.
    pub(crate) session_id: String,
    /// The agent that it began with.
    pub(crate) agent: String,
    /// How it stands.
    pub(crate) status: RunListStatus,
    /// When it began.
    #[schema(format = DateTime)]
    pub(crate) started_at: String,
    /// When something last happened in it.
    #[schema(format = DateTime)]
    pub(crate) last_at: String,
}

/// How a run in a list stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunListStatus {
    /// It moves, or will by itself.
    Running,
    /// A person must answer.
    Paused,
    /// It is over; the run itself says how.
    Finished,
}
