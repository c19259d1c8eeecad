//! What the library's tests share: small agents, counted tools, a test clock where time matters.
#![allow(dead_code, unused_imports, clippy::unwrap_used)] // Each test file uses its own part.

pub mod journal;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use holdpoint::{
    Agent, Content, Context, Effect, Reply, RunOutcome, Runner, ScriptedModel, Tool, ToolBuilder, ToolContext,
};
use serde_json::{Value, json};

/// Counts what a tool did to the world, from outside the runtime.
#[derive(Clone, Default)]
pub struct Effects(Arc<AtomicU32>);

impl Effects {
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    pub fn happen(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// A tool that takes any object, counts, and says what it was given.
pub fn counted(name: &str, effects: &Effects) -> ToolBuilder {
    let effects = effects.clone();
    Tool::builder(name).description("Counts.").schema(json!({"type": "object"})).runner(Echo { effects })
}

pub struct Echo {
    pub effects: Effects,
}

#[async_trait::async_trait]
impl holdpoint::RunTool for Echo {
    async fn run(
        &self,
        context: ToolContext,
        arguments: holdpoint::CanonicalJson,
    ) -> Result<Content, holdpoint::ToolFailure> {
        self.effects.happen();
        Ok(Content::Text(format!("{} ran with {arguments}", context.tool)))
    }
}

/// A gated tool named `delete`, counted.
pub fn gated(effects: &Effects) -> Tool {
    counted("delete", effects).needs_approval(true).build().unwrap()
}

pub fn agent(name: &str, tools: impl IntoIterator<Item = Tool>) -> Agent {
    tools.into_iter().fold(Agent::builder(name).instructions("Do."), |agent, tool| agent.tool(tool)).build().unwrap()
}

pub fn text_of(outcome: &RunOutcome) -> String {
    outcome.text().unwrap_or_else(|| panic!("not done: {outcome:?}"))
}

pub fn arguments(outcome: &RunOutcome, index: usize) -> Value {
    outcome.pauses()[index].call.as_ref().unwrap().arguments.to_value()
}

/// What became of each call as a model is told it: the provider's id, the text, whether it is an error.
pub fn told(items: &[Arc<holdpoint::Item>]) -> Vec<(String, String, bool)> {
    let results = items.iter().filter_map(|item| match &**item {
        holdpoint::Item::ToolResult { call_id, output, is_error, .. } => {
            Some((call_id.clone(), output.to_text(), *is_error))
        }
        _ => None,
    });
    results.collect()
}
