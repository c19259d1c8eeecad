//! The work that every measurement does: one gated call with about 200 bytes of arguments, approved, then done.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use holdpoint::{
    Agent, DeltaSink, Model, ModelFault, ModelReply, ModelRequest, ProposedCall, RunId, Runner, SqliteStore, Store,
    SystemClock, Tool, Usage,
};
use serde_json::json;

/// What is asked.
pub(crate) const INPUT: &str = "Please pay invoice INV-2026-004417 from Northwind Traders and tell me when it is done.";

pub(crate) fn arguments() -> serde_json::Value {
    json!({
        "supplier": "Northwind Traders Limited",
        "iban": "GB33BUKB20201555555555",
        "amount": "12840.55",
        "currency": "GBP",
        "invoice": "INV-2026-004417",
        "memo": "Approved purchase order 99812, net 30 days, office lease",
    })
}

pub(crate) fn agent() -> Result<Agent> {
    named("payer", "send_payment")
}

/// Another agent with a tool of its own, which does the same.
pub(crate) fn other_agent() -> Result<Agent> {
    named("auditor", "close_books")
}

fn named(agent: &str, tool: &str) -> Result<Agent> {
    let tool = Tool::builder(tool)
        .description("Send a payment to a supplier's bank account.")
        .needs_approval(true)
        .schema(json!({"type": "object"}))
        .runner(Pay)
        .build()?;
    let instructions = "You are a payments assistant. Ask for approval before you move money.";
    Ok(Agent::builder(agent).instructions(instructions).tool(tool).build()?)
}

struct Pay;

#[async_trait::async_trait]
impl holdpoint::RunTool for Pay {
    async fn run(
        &self,
        _: holdpoint::ToolContext,
        _: holdpoint::CanonicalJson,
    ) -> Result<holdpoint::Content, holdpoint::ToolFailure> {
        Ok(holdpoint::Content::Text(r#"{"status":"sent","reference":"PMT-0000123456"}"#.to_owned()))
    }
}

/// A model in the process that answers at once: what is measured is the runtime, not a model.
struct Instant {
    arguments: String,
}

#[async_trait::async_trait]
impl Model for Instant {
    async fn reply(&self, request: ModelRequest, _: DeltaSink) -> Result<ModelReply, ModelFault> {
        let (text, calls) = match request.turn {
            1 => {
                let call = ProposedCall {
                    id: "call_1".to_owned(),
                    tool: request.tools.first().map(|tool| tool.name.to_string()).unwrap_or_default(),
                    arguments: self.arguments.clone(),
                };
                (None, vec![call])
            }
            _ => (Some("Payment sent. The reference is PMT-0000123456.".to_owned()), Vec::new()),
        };
        Ok(ModelReply { text, calls, usage: Usage::request(100, 20) })
    }

    fn name(&self) -> &str {
        "instant"
    }
}

pub(crate) fn sqlite(path: &Path) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(SqliteStore::open(path, SystemClock::shared())?))
}

pub(crate) fn runner(store: Arc<dyn Store>) -> Runner {
    Runner::builder().store(store).model(Arc::new(Instant { arguments: arguments().to_string() })).build()
}

/// Starts a run and leaves it paused.
pub(crate) async fn pause(runner: &Runner, agent: &Agent) -> Result<holdpoint::RunOutcome> {
    let outcome = runner.run(agent, INPUT).await?;
    anyhow::ensure!(outcome.is_paused(), "the run did not pause: {outcome:?}");
    Ok(outcome)
}

/// Approves and finishes a paused run.
pub(crate) async fn finish(runner: &Runner, agent: &Agent, paused: &holdpoint::RunOutcome) -> Result<RunId> {
    runner.approve(&paused.pauses()[0]).by("ana").await?;
    let done = runner.resume(agent, paused.run_id()).await?;
    anyhow::ensure!(done.output().is_some(), "the run did not end: {done:?}");
    Ok(done.run_id())
}
