//! What is new in a run, as frames. The narrator folds the same events as the run itself, so it knows what a call was
//! asked to do, who asked, and when there is nothing more to say.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdpoint_core::event::{CallAnswered, HandedOff, ModelReplied, RunEnd, RunEvent};
use holdpoint_core::ids::{AgentId, CallPath, FramePath};
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Item;
use holdpoint_core::run::Run;
use holdpoint_core::step::Step;
use holdpoint_core::text::{clamp, visible};
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::{CallRecord, CallState, Outcome, ToolKind};
use holdpoint_runtime::ports::model::Delta;
use holdpoint_runtime::use_cases::WatchItem;
use serde_json::json;

use super::super::wire::{AgentSwitch, CallStatus, Progress, StreamError, ToolCall, ToolResult};
use super::Frame;
use crate::agents::{DisplayCard, ServedAgent};

/// Bytes of a tool's result that a client is sent; the model gets all of it.
const RESULT_BYTES_MAX: usize = 16 << 10;

/// Tells a run as frames.
pub(in super::super) struct Narrator {
    run: Run,
    agent: Arc<ServedAgent>,
    /// What the model said and no complete reply has accounted for yet.
    spoken: String,
    /// What it said while calls seemed to run: their outcomes are about to be told, and come first.
    held_back: Vec<Frame>,
    /// The words of the last complete reply.
    last_words: Option<String>,
    /// The calls of turns that are being settled: a call leaves the run's state together with its turn.
    calls: BTreeMap<CallPath, Told>,
}

/// A call that was asked for, and whether the client knows of it.
struct Told {
    agent: AgentId,
    record: CallRecord,
    /// Which of the agents that its turn called it is, and how many there are.
    of_agents: (usize, usize),
    is_shown: bool,
}

/// Why a stream has nothing more to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Stop {
    /// Nothing can be done before somebody answers.
    Held,
    /// The run is over.
    Over,
}

impl Narrator {
    /// A narrator of a run as it stands; what happened before is not told.
    pub(in super::super) fn new(run: Run, agent: Arc<ServedAgent>) -> Self {
        let last_words = run.items().iter().rev().find_map(|item| match &**item {
            Item::Assistant { text, .. } => text.clone(),
            Item::User(_) | Item::ToolResult { .. } => None,
        });
        let mut calls = BTreeMap::new();
        for (path, turn) in run.frames().filter_map(|(path, frame)| frame.turn().map(|turn| (path, turn))) {
            let is_settled = |path: &CallPath| run.call(path).is_none_or(|call| call.outcome().is_some());
            let asked = told(path, turn.number, &turn.agent, turn.calls.iter().map(|call| &call.record));
            calls.extend(asked.into_iter().filter(|(path, _)| !is_settled(path)));
        }
        Self { run, agent, spoken: String::new(), held_back: Vec::new(), last_words, calls }
    }

    /// The run as far as it was told.
    pub(in super::super) fn run(&self) -> &Run {
        &self.run
    }

    /// What one thing that happened adds to the stream. Other runs of the session are passed over.
    pub(in super::super) fn tell(&mut self, item: WatchItem) -> Vec<Frame> {
        match item {
            WatchItem::Event { run, at, event, .. } if run == self.run.id() => self.take(&event, at),
            WatchItem::Delta { run, frame, delta } if run == self.run.id() && frame.is_root() => self.speak(delta),
            _ => Vec::new(),
        }
    }

    /// Whether there is nothing more to say, as far as was told.
    pub(in super::super) fn stop(&self) -> Option<Stop> {
        match self.run.next_step() {
            Step::Finished(_) => Some(Stop::Over),
            Step::AwaitDecisions { pauses } if !pauses.is_empty() => Some(Stop::Held),
            Step::AwaitDecisions { .. } | Step::Work(_) | Step::AwaitCalls => None,
        }
    }

    fn speak(&mut self, delta: Delta) -> Vec<Frame> {
        let frame = match delta {
            Delta::Text(text) => {
                self.spoken.push_str(&text);
                Frame::Text(text)
            }
            Delta::Thinking(text) => Frame::Thinking(text),
            _ => return Vec::new(),
        };
        match self.is_running_calls() {
            true => {
                self.held_back.push(frame);
                Vec::new()
            }
            false => vec![frame],
        }
    }

    /// Whether the model still waits for calls, as far as was told. It is asked again a moment before their outcomes are
    /// written down, so its words may come first.
    fn is_running_calls(&self) -> bool {
        let turn = self.run.frame(&FramePath::root()).and_then(|frame| frame.turn());
        turn.is_some_and(|turn| turn.calls.iter().any(|call| call.state == CallState::Started))
    }

    fn take(&mut self, event: &RunEvent, at: Timestamp) -> Vec<Frame> {
        let before = match event {
            RunEvent::HandedOff(handed) => self.switch(handed),
            _ => None,
        };
        self.run.apply(event, at);
        let mut frames = match event {
            RunEvent::ModelReplied(replied) => self.replied(replied),
            RunEvent::ReplyRefused(refused) if refused.frame.is_root() => {
                self.spoken.clear();
                Vec::new()
            }
            RunEvent::CallStarted(started) => self.started(&started.call),
            RunEvent::CallAnswered(answered) => self.answered(answered),
            RunEvent::HandedOff(_) => before.into_iter().collect(),
            RunEvent::RunFinished(end) => self.finished(end),
            _ => Vec::new(),
        };
        if !self.held_back.is_empty() && !self.is_running_calls() {
            let said = std::mem::take(&mut self.held_back);
            // A reply that is complete was spoken before it was.
            match matches!(event, RunEvent::ModelReplied(_) | RunEvent::RunFinished(_)) {
                true => frames.splice(0..0, said).for_each(drop),
                false => frames.extend(said),
            }
        }
        frames
    }

    fn replied(&mut self, replied: &ModelReplied) -> Vec<Frame> {
        let mut frames = Vec::new();
        if replied.frame.is_root() {
            let (rest, spoken) = account(&self.spoken, replied.text.as_deref().unwrap_or_default());
            frames.extend(rest.map(Frame::Text));
            self.spoken = spoken;
            self.last_words = Some(replied.text.clone().unwrap_or_default());
        }
        let Some((turn, agent)) = self.run.frame(&replied.frame).map(|frame| (frame.turns, frame.agent.id.clone()))
        else {
            return frames;
        };
        self.calls.extend(told(&replied.frame, turn, &agent, &replied.calls));
        // A call that cannot run is answered with the reply itself. One that repeats another was told before.
        for (index, record) in (0..).zip(&replied.calls) {
            if let Some(problem) = &record.problem {
                let (call, outcome) = (replied.frame.call(turn, index), Outcome::Invalid(problem.clone()));
                frames.extend(self.answered(&CallAnswered { call, outcome }));
            }
        }
        frames
    }

    fn started(&mut self, path: &CallPath) -> Vec<Frame> {
        let arguments = self.run.call(path).map(|call| call.arguments.clone());
        let progress = self.progress(path, "started");
        let Some(told) = self.calls.get_mut(path) else { return Vec::new() };
        // A call that a person sent again was shown when it first ran.
        if std::mem::replace(&mut told.is_shown, true) {
            return Vec::new();
        }
        let shown = display(&self.agent, told).stream_tool_use.then(|| {
            let arguments = arguments.unwrap_or_else(|| told.record.arguments.clone());
            Frame::ToolCall(tool_call(&told.record, &arguments, CallStatus::Calling))
        });
        shown.into_iter().chain(progress).collect()
    }

    fn answered(&mut self, answered: &CallAnswered) -> Vec<Frame> {
        let progress = self.progress(&answered.call, "finished");
        let Some(told) = self.calls.remove(&answered.call) else { return Vec::new() };
        let (display, outcome) = (display(&self.agent, &told), &answered.outcome);
        let result = outcome.to_output(&told.record.kind).to_text();
        let mut frames: Vec<Frame> = progress.into_iter().collect();
        if display.as_content && !outcome.is_error() {
            frames.push(Frame::Text(result));
            return frames;
        }
        if !display.stream_tool_use {
            return frames;
        }
        if !told.is_shown {
            let status = if outcome.is_error() { CallStatus::Error } else { CallStatus::Success };
            frames.push(Frame::ToolCall(tool_call(&told.record, &told.record.arguments, status)));
        }
        if display.stream_tool_result {
            frames.push(Frame::ToolResult(tool_result(&told.record, &result, outcome.is_error())));
        }
        frames
    }

    /// An agent that works for another begins or ends: which of those that its turn called.
    fn progress(&self, path: &CallPath, step: &'static str) -> Option<Frame> {
        let told = self.calls.get(path)?;
        let ToolKind::Agent { agent, .. } = &told.record.kind else { return None };
        let (current, total) = told.of_agents;
        Some(Frame::Progress(Progress { agent_name: self.name_of(&agent.id), step, total, current }))
    }

    /// Who hands over to whom, read before it happens.
    fn switch(&self, handed: &HandedOff) -> Option<Frame> {
        let told = self.calls.get(&handed.call)?;
        let ToolKind::Handoff { to } = &told.record.kind else { return None };
        let arguments = told.record.arguments.to_value();
        let reason = arguments.get("reason").and_then(|reason| reason.as_str()).unwrap_or_default();
        Some(Frame::AgentSwitch(AgentSwitch {
            from_agent: self.name_of(&told.agent),
            to_agent: self.name_of(&to.id),
            reason: visible(clamp(reason, RESULT_BYTES_MAX)),
        }))
    }

    fn finished(&mut self, end: &RunEnd) -> Vec<Frame> {
        match end {
            RunEnd::Done(content) => {
                let output = content.to_text();
                let is_said = output.is_empty() || self.last_words.as_deref() == Some(&output);
                if is_said { Vec::new() } else { vec![Frame::Text(output)] }
            }
            RunEnd::Failed { code, message } => {
                vec![Frame::Error(StreamError { code: code.clone(), message: visible(message), retryable: false })]
            }
            RunEnd::Cancelled { by, reason, .. } => {
                let message = format!("the run was ended by {by}: {}", visible(reason));
                vec![Frame::Error(StreamError { code: "aborted".to_owned(), message, retryable: false })]
            }
        }
    }

    fn name_of(&self, agent: &AgentId) -> String {
        self.agent.graph.name_of(agent).unwrap_or(agent.as_str()).to_owned()
    }
}

/// The calls of one turn, none of them shown yet.
fn told<'a>(
    frame: &FramePath,
    turn: u32,
    agent: &AgentId,
    records: impl IntoIterator<Item = &'a CallRecord>,
) -> Vec<(CallPath, Told)> {
    let records: Vec<&CallRecord> = records.into_iter().collect();
    let is_agent = |record: &&&CallRecord| matches!(record.kind, ToolKind::Agent { .. });
    let total = records.iter().filter(is_agent).count();
    let mut current = 0;
    let mut calls = Vec::with_capacity(records.len());
    for (index, record) in (0..).zip(&records) {
        current += usize::from(is_agent(&record));
        let told =
            Told { agent: agent.clone(), record: (*record).clone(), of_agents: (current, total), is_shown: false };
        calls.push((frame.call(turn, index), told));
    }
    calls
}

/// What is still to be said of a reply, and what was said beyond it: a reply that leads to nothing but another question
/// to the model is written down together with the next one.
///
/// Deltas are not kept for anybody: a slow reader may have lost some, and a model that was asked twice may have begun
/// twice. Then the whole reply is said once more, on a new line.
fn account(spoken: &str, reply: &str) -> (Option<String>, String) {
    match (reply.strip_prefix(spoken), spoken.strip_prefix(reply)) {
        (_, Some(beyond)) => (None, beyond.to_owned()),
        (Some(rest), None) => (Some(rest.to_owned()), String::new()),
        (None, None) if spoken.ends_with(reply) => (None, String::new()),
        (None, None) => (Some(format!("\n{reply}")), String::new()),
    }
}

fn display(agent: &ServedAgent, told: &Told) -> DisplayCard {
    agent.tool(&told.agent, &told.record.tool).map(|card| card.display.clone()).unwrap_or_default()
}

fn tool_call(record: &CallRecord, arguments: &CanonicalJson, status: CallStatus) -> ToolCall {
    // Clients take an object here. Arguments that are none could not be read, and stand as the text they were.
    let arguments = match arguments.is_object() {
        true => arguments.clone(),
        false => CanonicalJson::from_serialize(&json!({"input": arguments.to_value()})).unwrap_or(arguments.clone()),
    };
    ToolCall { id: visible(&record.call_id), name: record.tool.to_string(), arguments, status }
}

fn tool_result(record: &CallRecord, result: &str, is_error: bool) -> ToolResult {
    let shown = clamp(result, RESULT_BYTES_MAX);
    let cut = if shown.len() < result.len() { "… (cut)" } else { "" };
    let result = format!("{}{cut}", visible(shown));
    ToolResult { id: visible(&record.call_id), name: record.tool.to_string(), result, is_error }
}

#[cfg(test)]
mod tests;
