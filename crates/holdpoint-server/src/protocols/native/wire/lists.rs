//! Messages about sessions, what was said in them, standing rules and the record of decisions.

use serde::Serialize;
use utoipa::ToSchema;

use super::{Call, Constraint, RuleScope, RunSummary};

/// A page of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionList {
    /// The one that began last comes first.
    pub(crate) sessions: Vec<Session>,
    /// Where the next page begins; null after the last one.
    pub(crate) next_cursor: Option<String>,
}

/// A conversation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Session {
    /// Its name.
    pub(crate) session_id: String,
    /// Who began its first run.
    pub(crate) owner: String,
    /// When that was.
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    /// When something last happened in it.
    #[schema(format = DateTime)]
    pub(crate) last_at: String,
    /// How many runs it has.
    pub(crate) runs: u64,
    /// How many events; the last one has this number.
    pub(crate) events: u64,
}

/// A conversation with its latest runs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionDetail {
    /// What every list says of it.
    #[serde(flatten)]
    pub(crate) session: Session,
    /// The latest runs, newest first.
    pub(crate) latest_runs: Vec<RunSummary>,
}

/// What was said in a session.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct History {
    /// The conversation.
    pub(crate) session_id: String,
    /// Oldest first.
    pub(crate) messages: Vec<Message>,
    /// Where the page of what was said before begins; null when this is the beginning.
    pub(crate) next_cursor: Option<String>,
}

/// One message of a conversation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Message {
    /// Who speaks.
    pub(crate) role: MessageRole,
    /// In which run.
    pub(crate) run_id: String,
    /// The agent that the run began with.
    pub(crate) agent: String,
    /// The words.
    pub(crate) text: Option<String>,
    /// The calls that the model asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tool_calls: Vec<Call>,
    /// With `tool`: of which call this is the outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<String>,
    /// With `tool`: of which tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    /// With `tool`: whether the call did not run, or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_error: Option<bool>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MessageRole {
    /// A person.
    User,
    /// The agent.
    Assistant,
    /// A tool.
    Tool,
}

/// A page of standing rules.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RuleList {
    /// The rules that stand beyond the runs in which they were made.
    pub(crate) rules: Vec<Rule>,
    /// Where the next page begins; null after the last one.
    pub(crate) next_cursor: Option<String>,
}

/// A standing rule.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Rule {
    /// Its name.
    pub(crate) id: String,
    /// What it does with the calls that it speaks of.
    pub(crate) effect: RuleEffect,
    /// What the model is told, where it denies.
    pub(crate) message: Option<String>,
    /// The session in which it stands.
    pub(crate) session_id: String,
    /// Whose calls it speaks of; null for those of every agent.
    pub(crate) agent: Option<String>,
    /// Of which tool.
    pub(crate) tool: String,
    /// With which arguments; all must hold.
    #[serde(rename = "where")]
    pub(crate) constraints: Vec<Constraint>,
    /// How far it reaches.
    pub(crate) scope: RuleScope,
    /// Until when it stands; null to the end of the session.
    #[schema(format = DateTime)]
    pub(crate) until: Option<String>,
    /// How many calls it has settled.
    pub(crate) uses: u32,
    /// How many calls it may settle; null for no limit.
    pub(crate) uses_max: Option<u32>,
    /// Who made it.
    pub(crate) by: String,
    /// When.
    #[schema(format = DateTime)]
    pub(crate) made_at: String,
}

/// What a rule does.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RuleEffect {
    /// The calls run without asking.
    Approve,
    /// The calls do not run.
    Deny,
}

/// A page of the record of decisions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditList {
    /// Oldest first.
    pub(crate) records: Vec<AuditRecord>,
    /// The number to go on after; null at the end.
    pub(crate) next_since: Option<u64>,
}

/// One link of the chain.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditRecord {
    /// Counts from one.
    pub(crate) n: u64,
    /// When.
    #[schema(format = DateTime)]
    pub(crate) at: String,
    /// What happened.
    #[serde(rename = "type")]
    #[schema(example = "pause.decided")]
    pub(crate) kind: String,
    /// The conversation.
    pub(crate) session_id: String,
    /// The run.
    pub(crate) run_id: String,
    /// The pause, where it was one.
    pub(crate) pause_id: Option<String>,
    /// The agent that asked.
    pub(crate) agent: Option<String>,
    /// The tool that was to run.
    pub(crate) tool: Option<String>,
    /// The decision, or what a rule does.
    pub(crate) outcome: Option<String>,
    /// Who did it.
    pub(crate) by: Option<String>,
    /// Through which door.
    pub(crate) via: Option<String>,
    /// The digest of the arguments that were held.
    pub(crate) args_sha256: Option<String>,
    /// The digest of the arguments that a person put in their place.
    pub(crate) edited_sha256: Option<String>,
    /// The standing rule.
    pub(crate) rule_id: Option<String>,
    /// The policy's rule that held the call.
    pub(crate) held_by: Option<String>,
    /// The record exactly as it was hashed: canonical JSON.
    pub(crate) body: String,
    /// SHA-256 of the hash before, as bytes, and of the body. Before the first stand 32 zero bytes.
    #[schema(min_length = 64, max_length = 64)]
    pub(crate) hash: String,
}

/// What a check of the chain found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditCheck {
    /// Whether every record follows the one before it, up to the last that was written.
    pub(crate) is_whole: bool,
    /// How many records are whole, counted from the first.
    pub(crate) records: u64,
    /// The hash of the last of them. Kept elsewhere, it shows later whether the whole store was put back or rewritten.
    pub(crate) head: Option<String>,
    /// The first record that does not follow or is gone, if there is one.
    pub(crate) broken_at: Option<u64>,
    /// How many records the store has written.
    pub(crate) written: u64,
}
