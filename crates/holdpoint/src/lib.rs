//! Agents that stop where a person must look.
//!
//! A tool call that needs approval, a question, a confirmation: the run pauses, the pause is durable data, a person
//! answers from any process, and what was approved is exactly what runs, at most once.
//!
//! ```
//! use holdpoint::{Agent, Reply, RunOutcome, Runner, ScriptedModel};
//!
//! /// Sends an e-mail.
//! #[holdpoint::tool(needs_approval)]
//! async fn send_email(to: String, subject: String) -> Result<String, String> {
//!     Ok(format!("sent {subject:?} to {to}"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = ScriptedModel::new([
//!     Reply::call("send_email", serde_json::json!({"to": "ana@example.com", "subject": "Hello"})),
//!     Reply::text("Done."),
//! ]);
//! let agent = Agent::builder("Mailer").instructions("Send what is asked for.").tool(send_email()).build()?;
//! let runner = Runner::in_memory(model);
//!
//! let RunOutcome::Paused { run_id, pauses } = runner.run(&agent, "Say hello to Ana").await? else {
//!     unreachable!("the tool needs approval")
//! };
//! runner.approve(&pauses[0]).by("ben").await?;
//! let outcome = runner.resume(&agent, run_id).await?;
//! assert_eq!(outcome.text().as_deref(), Some("Done."));
//! # Ok(())
//! # }
//! ```

mod decide;
mod outcome;
mod request;
mod runner;
mod state;
mod stream;

pub use decide::{Always, DecideRequest, PauseRef};
pub use outcome::{Done, RunOutcome};
pub use request::{ResumeRequest, RunRequest};
pub use runner::{Runner, RunnerBuilder};
pub use state::{ContextStrategy, Include, RunState, StateKey};
pub use stream::{RunStream, StreamEvent};

pub use holdpoint_macros::tool;

pub use holdpoint_core::agent::FinishRule;
pub use holdpoint_core::audit::{AuditKind, AuditNote, AuditRecord};
pub use holdpoint_core::decision::{Answers, Decision, DecisionInput, Manner};
pub use holdpoint_core::event::RunEvent;
pub use holdpoint_core::ids::{ActorId, AgentId, CallPath, FramePath, PauseId, RuleId, RunId, SessionId, ToolName};
pub use holdpoint_core::input::SupersedeInput;
pub use holdpoint_core::json::{CanonicalJson, Digest, JsonProblem};
pub use holdpoint_core::message::{Content, Item, Part, Source, Usage};
pub use holdpoint_core::pause::{
    DecidedPause, HeldCall, Pause, PauseKind, PauseState, PauseView, Question, QuestionOption, Subject, Vote,
};
pub use holdpoint_core::policy::{
    AgentScope, Constraint, GuardrailResult, Lifetime, NewRule, OnTimeout, PauseTerms, RuleEffect, Scope, StandingRule,
};
pub use holdpoint_core::record::Entry;
pub use holdpoint_core::refusal::Refusal;
pub use holdpoint_core::run::Run;
pub use holdpoint_core::text;
pub use holdpoint_core::time::Timestamp;
pub use holdpoint_core::tool::{DENIED_TEXT, Effect, Outcome, ToolClass, ToolKind, ToolRef};
pub use holdpoint_models::scripted::{Reply, ScriptedModel, last_results, last_said};
pub use holdpoint_runtime::agent::{Agent, AgentBuilder, AgentGraph, ConfirmTerms};
pub use holdpoint_runtime::context::Context;
pub use holdpoint_runtime::guardrail::{
    CallVerdict, GuardrailPhase, InputGuardrail, OutputGuardrail, TextVerdict, ToolGuardrail,
};
pub use holdpoint_runtime::memory::MemoryStore;
pub use holdpoint_runtime::notices::{Dispatcher, DispatcherHandle};
pub use holdpoint_runtime::ports::clock::{Clock, SystemClock};
pub use holdpoint_runtime::ports::model::{
    Delta, DeltaSink, Model, ModelFault, ModelReply, ModelRequest, OfferedTool, ProposedCall,
};
pub use holdpoint_runtime::ports::notifier::{self, Notifier, NotifyRule};
pub use holdpoint_runtime::ports::observer::{Change, Committed, ModelCalled, Observer, PauseChange, ToolRan};
pub use holdpoint_runtime::ports::store::{
    self, AppendError, Durability, PauseFilter, PauseRow, PauseStatus, Store, StoreFault, StoreFaultKind, StoredRule,
};
pub use holdpoint_runtime::ports::tool::{
    Approval, AutoDecider, AutoDecision, Deadline, HoldTerms, IntoContent, IntoHold, IntoResult, Json, Policy,
    PolicyVerdict, Predicate, RunTool, Tool, ToolBuilder, ToolContext, ToolFailure, ToolProblems, ToolShape,
};
pub use holdpoint_runtime::settings::{Denial, DenialFormatter, DriftPolicy, Settings};
pub use holdpoint_runtime::use_cases::{
    AuditCheck, AuditPage, Decided, PauseNews, PausePage, PauseSummary, RulePage, RunPage, SessionPage, StartRun,
    WatchItem, WatchPauses, WatchSession,
};
pub use holdpoint_runtime::worker::{AgentSource, AgentWanted, Sweep, Worker, WorkerHandle};
pub use holdpoint_runtime::{DriveOptions, Fault, RunError, Runtime};
#[cfg(feature = "postgres")]
pub use holdpoint_stores::postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "redis")]
pub use holdpoint_stores::redis::{RedisOptions, RedisStore};
#[cfg(feature = "sqlite")]
pub use holdpoint_stores::sqlite::{SqliteOptions, SqliteStore};

/// Tools that come with holdpoint: shell, apply_patch, computer, questions, MCP.
pub mod tools {
    pub use holdpoint_tools::*;
}

/// What the macro's code refers to. Not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use holdpoint_core::tool::Effect;
    pub use holdpoint_runtime::ports::tool::{IntoResult, Tool, ToolContext};
    pub use schemars;
    pub use serde;
}

// The programs on these pages are compiled and run like the examples in the code.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/concepts/decisions-and-rules.md")]
    mod decisions_and_rules {}
    #[doc = include_str!("../../../docs/concepts/guardrails.md")]
    mod guardrails {}
    #[doc = include_str!("../../../docs/concepts/state-documents.md")]
    mod state_documents {}
    #[cfg(feature = "sqlite")]
    #[doc = include_str!("../../../docs/guides/first-approval.md")]
    mod first_approval {}
    #[doc = include_str!("../../../docs/guides/long-waits.md")]
    mod long_waits {}
    #[doc = include_str!("../../../docs/guides/testing-your-agent.md")]
    mod testing_your_agent {}
}
