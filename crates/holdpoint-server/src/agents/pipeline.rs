//! Agents of type `sequential` and `parallel`: what a model would decide is fixed, so a small one decides it here.
//!
//! Each sub-agent is a tool. In a sequence the first is handed the question and each further one what the one before it
//! said; side by side, all are handed the question at once. What comes next is read from the conversation alone, so a
//! run that waited at a person goes on in any process, and the pauses of sub-agents are the run's own.

use std::sync::Arc;

use async_trait::async_trait;
use holdpoint_core::ids::ToolName;
use holdpoint_core::message::{AskedCall, Item, Usage};
use holdpoint_runtime::ports::model::{Delta, DeltaSink, Model, ModelFault, ModelReply, ModelRequest, ProposedCall};
use serde_json::json;

/// In which order sub-agents work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// One after the other, each on what the one before it said.
    Sequential,
    /// All at once, on the same question.
    Parallel,
}

/// Decides which sub-agent is next.
pub(super) struct Pipeline {
    order: Order,
    steps: Vec<ToolName>,
}

impl Pipeline {
    /// A pipeline of these sub-agents, by the tools that lead to them.
    pub(super) fn new(order: Order, steps: Vec<ToolName>) -> Self {
        Self { order, steps }
    }

    fn next(&self, request: &ModelRequest) -> ModelReply {
        let asked = self.asked(request);
        let question = question(request, asked.first().map_or(request.items.len(), |reply| *reply));
        let said = asked.last().map(|reply| results(request, *reply));
        match (self.order, said) {
            (Order::Parallel, None) => self.call_all(request, &question),
            (Order::Parallel, Some(said)) => told(self.joined(&said)),
            (Order::Sequential, None) => self.call(request, 0, &question),
            (Order::Sequential, Some(said)) => self.go_on(request, asked.len(), said),
        }
    }

    /// A sequence stops at a sub-agent that was denied or failed: what follows was meant for what it would have said.
    fn go_on(&self, request: &ModelRequest, done: usize, said: Vec<Said>) -> ModelReply {
        let Some(last) = said.into_iter().next_back() else { return told(String::new()) };
        match last.is_error {
            true => told(format!("{} gave no result: {}", last.tool, last.text)),
            false if done < self.steps.len() => self.call(request, done, &last.text),
            false => told(last.text),
        }
    }

    fn call(&self, request: &ModelRequest, step: usize, input: &str) -> ModelReply {
        let calls = self.steps.get(step).map(|tool| proposed(request, step, tool, input));
        ModelReply { text: None, calls: calls.into_iter().collect(), usage: Usage::default() }
    }

    fn call_all(&self, request: &ModelRequest, input: &str) -> ModelReply {
        let calls = self.steps.iter().enumerate().map(|(step, tool)| proposed(request, step, tool, input));
        ModelReply { text: None, calls: calls.collect(), usage: Usage::default() }
    }

    fn joined(&self, said: &[Said]) -> String {
        let part = |said: &Said| match said.is_error {
            true => format!("## {}\n\n(no result: {})", said.tool, said.text),
            false => format!("## {}\n\n{}", said.tool, said.text),
        };
        said.iter().map(part).collect::<Vec<_>>().join("\n\n")
    }

    /// Where the pipeline's own replies of this run stand, oldest first. Those of an agent that handed over to it, and
    /// of earlier runs, are not its own.
    fn asked(&self, request: &ModelRequest) -> Vec<usize> {
        let is_step = |call: &AskedCall| self.steps.contains(&call.tool);
        let replies = request.items.iter().enumerate().rev().filter_map(|(index, item)| match &**item {
            Item::Assistant { calls, .. } => Some((index, calls)),
            _ => None,
        });
        let of_frame = replies.take((request.turn as usize).saturating_sub(1));
        let own = of_frame.take_while(|(_, calls)| !calls.is_empty() && calls.iter().all(is_step));
        let mut own: Vec<usize> = own.map(|(index, _)| index).collect();
        own.reverse();
        own
    }
}

/// What a sub-agent gave back.
struct Said {
    tool: ToolName,
    text: String,
    is_error: bool,
}

/// What was asked before the item of this index.
fn question(request: &ModelRequest, before: usize) -> String {
    let said = request.items[..before].iter().rev().find_map(|item| match &**item {
        Item::User(content) => Some(content.to_text()),
        _ => None,
    });
    said.unwrap_or_default()
}

/// What came back for the reply at this index.
fn results(request: &ModelRequest, reply: usize) -> Vec<Said> {
    let results = request.items[reply + 1..].iter().filter_map(|item| match &**item {
        Item::ToolResult { tool, output, is_error, .. } => {
            Some(Said { tool: tool.clone(), text: output.to_text(), is_error: *is_error })
        }
        _ => None,
    });
    results.collect()
}

fn proposed(request: &ModelRequest, step: usize, tool: &ToolName, input: &str) -> ProposedCall {
    let id = format!("step_{}_{step}", request.turn);
    ProposedCall { id, tool: tool.to_string(), arguments: json!({ "input": input }).to_string() }
}

fn told(text: String) -> ModelReply {
    ModelReply { text: Some(text), calls: Vec::new(), usage: Usage::default() }
}

#[async_trait]
impl Model for Pipeline {
    async fn reply(&self, request: ModelRequest, deltas: DeltaSink) -> Result<ModelReply, ModelFault> {
        let reply = self.next(&request);
        if let Some(text) = &reply.text {
            deltas.tell(Delta::Text(text.clone()));
        }
        Ok(reply)
    }

    fn name(&self) -> &str {
        match self.order {
            Order::Sequential => "pipeline/sequential",
            Order::Parallel => "pipeline/parallel",
        }
    }
}

/// A pipeline as a model that agents share.
pub(super) fn model(order: Order, steps: Vec<ToolName>) -> Arc<dyn Model> {
    Arc::new(Pipeline::new(order, steps))
}
