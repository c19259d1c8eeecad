//! What tests read of a run's journal, and what they change in a state document behind our back.

use holdpoint::{Agent, Item, RunEvent, RunId, RunOutcome, Runner, ScriptedModel, Tool, ToolShape};
use serde_json::Value;

use super::{Effects, agent, counted};

/// What tools gave back, as the model was shown it last, oldest first.
pub fn results(model: &ScriptedModel) -> Vec<String> {
    let shown = model.requests().pop().expect("the model was asked").items;
    let text = |item: &Item| match item {
        Item::ToolResult { output, .. } => Some(output.to_text()),
        _ => None,
    };
    shown.iter().filter_map(|item| text(item)).collect()
}

/// The conversation as the model was shown it last: who spoke, and what.
pub fn conversation(model: &ScriptedModel) -> Vec<String> {
    let shown = model.requests().pop().expect("the model was asked").items;
    let line = |item: &Item| match item {
        Item::User(content) => format!("user: {}", content.to_text()),
        Item::Assistant { text, calls } => {
            let tools: Vec<_> = calls.iter().map(|call| call.tool.to_string()).collect();
            format!("model: {}{}", text.as_deref().unwrap_or_default(), tools.join(", "))
        }
        Item::ToolResult { output, .. } => format!("result: {}", output.to_text()),
    };
    shown.iter().map(|item| line(item)).collect()
}

/// A tool of another family than functions, gated and counted.
pub fn gated_as(shape: ToolShape, name: &str, effects: &Effects) -> Tool {
    counted(name, effects).shape(shape).needs_approval(true).build().unwrap()
}

/// An agent with one gated tool that hands over to another one with one gated tool.
pub fn relay(first: Tool, second: Tool) -> Agent {
    let to = agent("Second", [second]);
    Agent::builder("First").instructions("Do.").tool(first).handoff(&to).build().unwrap()
}

/// Everything that happened, in order.
pub async fn events(runner: &Runner, run: RunId) -> Vec<RunEvent> {
    let entries = runner.runtime().read_journal(run).await.unwrap();
    entries.iter().flat_map(|entry| entry.events.to_vec()).collect()
}

/// The codes of replies that could not be used.
pub async fn refused_replies(runner: &Runner, run: RunId) -> Vec<String> {
    let code = |event: RunEvent| match event {
        RunEvent::ReplyRefused(refused) => Some(refused.code),
        _ => None,
    };
    events(runner, run).await.into_iter().filter_map(code).collect()
}

/// The run's state as its keeper would store it.
pub async fn saved(runner: &Runner, agent: &Agent, outcome: &RunOutcome) -> String {
    runner.state(agent, outcome.run_id()).await.unwrap().to_json()
}

/// A document with its list of events changed by hand. All of them stand in one entry afterwards.
pub fn tampered(json: &str, change: impl FnOnce(&mut Vec<Value>)) -> String {
    let mut document: Value = serde_json::from_str(json).unwrap();
    let entries = document["entries"].as_array_mut().unwrap();
    let mut events = Vec::new();
    for entry in entries.iter_mut() {
        events.append(entry["events"].as_array_mut().unwrap());
    }
    entries.truncate(1);
    change(&mut events);
    entries[0]["events"] = Value::Array(events);
    document.to_string()
}

/// Where the event of this name stands, counted from the first.
pub fn place(events: &[Value], name: &str) -> usize {
    events.iter().position(|event| event.get(name).is_some()).unwrap_or_else(|| panic!("no {name} in {events:?}"))
}
