//! What is new in a run, as chunks. The narrator folds the same events as the run itself, so it knows what a call was
//! asked to do, in which step it stands, and when there is nothing more to say.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_core::event::{CallAnswered, ModelReplied, RunEnd, RunEvent, RunStarted};
use holdpoint_core::ids::{CallPath, FramePath, PauseId};
use holdpoint_core::message::{Item, Usage};
use holdpoint_core::pause::{Pause, Subject};
use holdpoint_core::run::Run;
use holdpoint_core::step::Step;
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::{CallRecord, Outcome};
use holdpoint_runtime::ports::model::Delta;
use holdpoint_runtime::use_cases::WatchItem;

use super::super::calls::{call_name, waiting};
use super::super::origin;
use super::super::wire::Chunk;
use super::make::{Maker, call};

/// Tells a run as chunks.
pub(in super::super) struct Narrator {
    run: Run,
    make: Maker,
    /// Where the step stands that the client was told of.
    at: At,
    /// What is being said, and what the model said of it that no complete reply has accounted for yet.
    voice: Voice,
    /// Whether what the model says is passed over until its next complete reply: who joins late has missed the beginning.
    is_deaf: bool,
    /// What it said before its step was announced: the outcomes of the step before come first.
    held_back: Vec<Delta>,
    /// The words of the last complete reply.
    last_words: Option<String>,
    /// What the step that is open has cost.
    cost: Usage,
    /// The calls of turns that are being settled: a call leaves the run's state together with its turn.
    calls: BTreeMap<CallPath, Told>,
    /// The questions that were announced.
    announced: BTreeSet<PauseId>,
}

/// Where a step stands. A step is one reply of the model, with the outcomes of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Between two steps.
    Rest,
    /// The model is asked, or speaks.
    Model,
    /// Its calls are being settled.
    Calls,
}

#[derive(Default)]
struct Voice {
    spoken: String,
    open: Option<Open>,
    blocks: u32,
    /// The calls whose arguments are being told, by the provider's id.
    arguments: BTreeSet<String>,
}

/// The block that is open.
struct Open {
    is_thought: bool,
    id: String,
}

/// A call that was asked for, and whether the client knows of it.
struct Told {
    record: CallRecord,
    name: String,
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
    pub(in super::super) fn new(run: Run, name: String) -> Self {
        let root = FramePath::root();
        let mut calls = BTreeMap::new();
        for (path, turn) in run.frames().filter_map(|(path, frame)| frame.turn().map(|turn| (path, turn))) {
            let asked = told(path, turn.number, turn.calls.iter().map(|call| &call.record));
            let is_settled = |path: &CallPath| run.call(path).is_none_or(|call| call.outcome().is_some());
            calls.extend(asked.into_iter().filter(|(path, _)| !is_settled(path)));
        }
        let has_turn = run.frame(&root).is_some_and(|frame| frame.turn().is_some());
        let last_words = run.items().iter().rev().find_map(|item| match &**item {
            Item::Assistant { text, .. } => text.clone(),
            Item::User(_) | Item::ToolResult { .. } => None,
        });
        Self {
            at: if has_turn { At::Calls } else { At::Rest },
            run,
            make: Maker { run: name },
            voice: Voice::default(),
            is_deaf: false,
            held_back: Vec::new(),
            last_words,
            cost: Usage::default(),
            calls,
            announced: BTreeSet::new(),
        }
    }

    /// The same for a client that comes while the model may be speaking.
    pub(in super::super) fn joining(mut self) -> Self {
        self.is_deaf = true;
        self
    }

    /// The run as far as it was told.
    pub(in super::super) fn run(&self) -> &Run {
        &self.run
    }

    /// Makes chunks of this run.
    pub(in super::super) fn maker(&self) -> &Maker {
        &self.make
    }

    /// What one thing that happened adds to the stream. Other runs of the session are passed over.
    pub(in super::super) fn tell(&mut self, item: WatchItem) -> Vec<Chunk> {
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

    /// What waits and was not announced yet.
    pub(in super::super) fn announce(&mut self) -> Vec<Chunk> {
        let mut chunks = self.close();
        for named in waiting(&self.run) {
            if self.announced.insert(named.view.id()) {
                chunks.push(self.make.waiting(&named));
            }
        }
        chunks
    }

    /// The last chunks of a stream whose run cannot go on.
    pub(in super::super) fn fail(&mut self, code: &str, message: &str) -> Vec<Chunk> {
        let mut chunks = self.close();
        chunks.push(self.make.error(code, message));
        chunks.extend(self.finish_step("error", false));
        chunks.push(self.make.finish(self.turn(), "error", self.run.usage()));
        chunks
    }

    /// One more event of the run.
    pub(in super::super) fn take(&mut self, event: &RunEvent, at: Timestamp) -> Vec<Chunk> {
        self.run.apply(event, at);
        let mut chunks = match event {
            RunEvent::RunStarted(started) => self.started(started, at),
            RunEvent::ModelReplied(replied) => self.replied(replied),
            RunEvent::ReplyRefused(refused) if refused.frame.is_root() => {
                self.cost.add(refused.usage);
                self.is_deaf = false;
                self.voice.spoken.clear();
                self.close()
            }
            RunEvent::PauseOpened(opened) if !opened.at.frame().is_root() => self.show(&opened.at),
            RunEvent::CallStarted(started) => self.show(&started.call),
            RunEvent::CallAnswered(answered) => self.answered(answered),
            RunEvent::HandedOff(handed) => {
                let (call, outcome) = (handed.call.clone(), Outcome::Result("handed over".into()));
                self.answered(&CallAnswered { call, outcome })
            }
            RunEvent::RunFinished(end) => self.finished(end),
            _ => Vec::new(),
        };
        chunks.extend(self.settle(at));
        chunks
    }

    /// Ends the step whose calls are settled, and begins the one whose model is asked.
    fn settle(&mut self, at: Timestamp) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        let root = FramePath::root();
        let asks_model = match self.run.next_step() {
            Step::Work(work) => work.call_model.contains(&root),
            _ => false,
        };
        let has_turn = self.run.frame(&root).is_some_and(|frame| frame.turn().is_some());
        if self.at == At::Calls && !has_turn && self.run.end().is_none() {
            chunks.extend(self.finish_step("tool-calls", asks_model));
        }
        if self.at == At::Rest && asks_model {
            self.at = At::Model;
            chunks.push(self.make.step_start(self.turn() + 1, at));
            for delta in std::mem::take(&mut self.held_back) {
                chunks.extend(self.say(delta));
            }
        }
        chunks
    }

    fn finish_step(&mut self, reason: &'static str, is_continued: bool) -> Option<Chunk> {
        if std::mem::replace(&mut self.at, At::Rest) == At::Rest {
            return None;
        }
        Some(self.make.step_finish(self.turn(), reason, is_continued, std::mem::take(&mut self.cost)))
    }

    /// How many replies the root agent's model gave.
    fn turn(&self) -> u32 {
        self.run.frame(&FramePath::root()).map_or(1, |frame| frame.turns)
    }

    fn started(&mut self, started: &RunStarted, at: Timestamp) -> Vec<Chunk> {
        self.make.run = origin::run_name(&self.run);
        self.at = At::Model;
        vec![self.make.start(started.agent.id.root_name()), self.make.step_start(1, at)]
    }

    fn speak(&mut self, delta: Delta) -> Vec<Chunk> {
        match self.at {
            _ if self.is_deaf => Vec::new(),
            At::Model => self.say(delta),
            At::Rest | At::Calls => {
                self.held_back.push(delta);
                Vec::new()
            }
        }
    }

    fn say(&mut self, delta: Delta) -> Vec<Chunk> {
        match delta {
            Delta::Text(text) => {
                self.voice.spoken.push_str(&text);
                self.words(false, text)
            }
            Delta::Thinking(text) => self.words(true, text),
            Delta::Arguments { id, tool, text } => {
                let mut chunks = Vec::new();
                if self.voice.arguments.insert(id.clone()) {
                    chunks.push(self.make.arguments("tool-call-input-streaming-start", &id, Some(&tool), None));
                }
                chunks.push(self.make.arguments("tool-call-delta", &id, Some(&tool), Some(text)));
                chunks
            }
        }
    }

    fn words(&mut self, is_thought: bool, text: String) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        if text.is_empty() {
            return chunks;
        }
        let (begin, more) = match is_thought {
            true => ("reasoning-start", "reasoning-delta"),
            false => ("text-start", "text-delta"),
        };
        let id = match &self.voice.open {
            Some(open) if open.is_thought == is_thought => open.id.clone(),
            _ => {
                chunks.extend(self.close());
                let id = format!("txt-{}", self.voice.blocks);
                self.voice.blocks += 1;
                self.voice.open = Some(Open { is_thought, id: id.clone() });
                chunks.push(self.make.block(begin, &id));
                id
            }
        };
        chunks.push(self.make.words(more, &id, text));
        chunks
    }

    /// Ends the block that is open.
    fn close(&mut self) -> Vec<Chunk> {
        let Some(open) = self.voice.open.take() else { return Vec::new() };
        vec![self.make.block(if open.is_thought { "reasoning-end" } else { "text-end" }, &open.id)]
    }

    fn replied(&mut self, replied: &ModelReplied) -> Vec<Chunk> {
        let turn = self.run.frame(&replied.frame).map_or(0, |frame| frame.turns);
        self.calls.extend(told(&replied.frame, turn, &replied.calls));
        if !replied.frame.is_root() {
            return Vec::new();
        }
        let text = replied.text.as_deref().unwrap_or_default();
        let mut chunks = match self.voice.spoken.is_empty() {
            // Nothing was told while the model spoke: also its thoughts are new.
            true => replied.thinking.clone().map(|thought| self.words(true, thought)).unwrap_or_default(),
            false => Vec::new(),
        };
        let (rest, beyond) = account(&self.voice.spoken, text);
        chunks.extend(rest.map(|rest| self.words(false, rest)).unwrap_or_default());
        chunks.extend(self.close());
        self.voice.spoken = beyond;
        self.is_deaf = false;
        self.last_words = Some(text.to_owned());
        self.cost.add(replied.usage);
        for (index, record) in (0..).zip(&replied.calls) {
            chunks.extend(self.asked(&replied.frame.call(turn, index), record));
        }
        match replied.calls.is_empty() {
            true => chunks.extend(self.finish_step("stop", false)),
            false => self.at = At::Calls,
        }
        chunks
    }

    /// A call that the model asked for. One that cannot run is answered with the reply itself.
    fn asked(&mut self, path: &CallPath, record: &CallRecord) -> Vec<Chunk> {
        let (id, tool) = (call_name(path, &record.call_id), record.tool.as_str());
        let mut chunks = Vec::new();
        // The outcome of the call that this one repeats stands for both, and was told.
        if record.repeats.is_some() {
            return chunks;
        }
        if !self.voice.arguments.remove(&record.call_id) {
            chunks.push(self.make.arguments("tool-call-input-streaming-start", &id, Some(tool), None));
            let text = record.arguments.as_str().to_owned();
            chunks.push(self.make.arguments("tool-call-delta", &id, Some(tool), Some(text)));
        }
        chunks.push(self.make.arguments("tool-call-input-streaming-end", &id, None, None));
        chunks.extend(self.show(path));
        if let Some(problem) = &record.problem {
            let (call, outcome) = (path.clone(), Outcome::Invalid(problem.clone()));
            chunks.extend(self.answered(&CallAnswered { call, outcome }));
        }
        chunks
    }

    /// Shows a call, once. Calls of agents below are shown where a person is asked about them.
    fn show(&mut self, path: &CallPath) -> Vec<Chunk> {
        let is_asked_about = self.run.pauses().iter().any(|pause| is_about(pause, path));
        if !path.frame().is_root() && !is_asked_about {
            return Vec::new();
        }
        let arguments = self.run.call(path).map(|call| call.arguments.clone());
        let Some(told) = self.calls.get_mut(path) else { return Vec::new() };
        if std::mem::replace(&mut told.is_shown, true) {
            return Vec::new();
        }
        let arguments = arguments.unwrap_or_else(|| told.record.arguments.clone());
        vec![self.make.call(&told.name, told.record.tool.as_str(), &arguments)]
    }

    fn answered(&mut self, answered: &CallAnswered) -> Vec<Chunk> {
        let arguments = self.run.call(&answered.call).map(|call| call.arguments.clone());
        let mut chunks = self.show(&answered.call);
        let Some(told) = self.calls.remove(&answered.call) else { return chunks };
        if told.is_shown {
            let arguments = arguments.unwrap_or_else(|| told.record.arguments.clone());
            let call = call(&told.name, told.record.tool.as_str(), &arguments);
            chunks.push(self.make.outcome(call, &answered.outcome, &told.record.kind));
        }
        chunks
    }

    fn finished(&mut self, end: &RunEnd) -> Vec<Chunk> {
        let mut chunks = self.close();
        let reason = match end {
            RunEnd::Done(content) => {
                let output = content.to_text();
                if self.last_words.as_deref() != Some(&output) {
                    chunks.extend(self.words(false, output));
                    chunks.extend(self.close());
                }
                "stop"
            }
            RunEnd::Failed { code, message } => {
                chunks.push(self.make.error(code, message));
                "error"
            }
            RunEnd::Cancelled { by, reason, .. } => {
                chunks.push(self.make.error("cancelled", &format!("the run was ended by {by}: {reason}")));
                "error"
            }
        };
        chunks.extend(self.finish_step(reason, false));
        chunks.push(self.make.finish(self.turn(), reason, self.run.usage()));
        chunks
    }
}

/// The calls of one turn, none of them shown yet.
fn told<'a>(frame: &FramePath, turn: u32, records: impl IntoIterator<Item = &'a CallRecord>) -> Vec<(CallPath, Told)> {
    let tell = |(index, record): (u32, &CallRecord)| {
        let path = frame.call(turn, index);
        let name = call_name(&path, &record.call_id);
        (path, Told { record: record.clone(), name, is_shown: false })
    };
    (0..).zip(records).map(tell).collect()
}

fn is_about(pause: &Pause, path: &CallPath) -> bool {
    matches!(&pause.subject, Subject::Call { path: of, .. } if of == path)
}

/// What is still to be said of a reply, and what was said beyond it.
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
