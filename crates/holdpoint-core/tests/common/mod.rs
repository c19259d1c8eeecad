//! Scripts in, events out: the one place where these tests call the machine.
//!
//! [`check`] plays a script and compares what happened, in short form, with what was expected. Whatever a script does,
//! [`World::give`] also asserts what must always hold: a refused input changes nothing, folding the journal from its
//! stored bytes gives the same run, and a careful reader accepts the journal.

// Each test binary uses a part of it; a script that cannot be read fails its test.
#![allow(dead_code, unused_imports, clippy::unwrap_used)]

mod script;
mod told;

use std::sync::Arc;

use holdpoint_core::agent::AgentBrief;
use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{ActorId, AgentId, RunId, SessionId};
use holdpoint_core::input::Input;
use holdpoint_core::json::Digest;
use holdpoint_core::record::{self, Entry};
use holdpoint_core::text::clamp;
use holdpoint_core::time::Timestamp;
use holdpoint_core::{Refusal, Run};

pub use told::{item_line, next_line, outcome, pauses, told};

/// Plays `script` and compares what happened after its `---` line, or all of it, with `expected`.
#[track_caller]
pub fn check(script: &str, expected: &str) {
    let found = play(script).report();
    let expected: Vec<String> = expected.lines().map(plain).filter(|line| !line.is_empty()).collect();
    assert!(found == expected, "\nfound:\n  {}\nexpected:\n  {}\n", found.join("\n  "), expected.join("\n  "));
}

/// Plays `script`, whatever comes of it.
pub fn play(script: &str) -> World {
    let mut world = World::new();
    play_on(&mut world, script);
    world
}

/// Goes on with `script` where another stopped.
pub fn play_on(world: &mut World, script: &str) {
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        script::act(world, line);
    }
}

/// One space between words, so that columns can be set as they read best.
pub fn plain(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A run with its journal, its clock and the tools that its agents know.
#[derive(Clone)]
pub struct World {
    pub run: Run,
    pub now: Timestamp,
    pub entries: Vec<Entry>,
    pub(crate) cast: script::Cast,
    told: Vec<String>,
}

impl World {
    pub fn new() -> Self {
        let now = Timestamp::from_millis(START_MILLIS);
        Self { run: Run::new(run_id(1)), now, entries: Vec::new(), cast: script::Cast::new(), told: Vec::new() }
    }

    /// Gives the run an input, takes down what happened, and asserts what must hold after every input.
    #[track_caller]
    pub fn give(&mut self, input: Input) -> Result<Vec<RunEvent>, Refusal> {
        let before = self.run.clone();
        let foreseen = self.run.handle(input.clone(), self.now);
        assert_same(&self.run, &before, "handling an input changed the run");
        let answer = self.run.advance(input, self.now);
        assert_same(&answer, &foreseen, "handling and advancing differ");
        match &answer {
            Ok(events) => {
                self.append(events);
                let lines: Vec<String> = events.iter().map(|event| told(event, self)).collect();
                self.told.extend(lines);
                self.check_journal();
            }
            Err(refusal) => {
                assert_same(&self.run, &before, "a refused input changed the run");
                self.told.push(format!("refused {}", refusal.code()));
            }
        }
        answer
    }

    /// Takes an event as fact that the machine would not have given out here, but that a record may hold.
    pub fn record(&mut self, event: RunEvent) {
        self.run.apply(&event, self.now);
        self.append(&[event]);
        self.check_journal();
    }

    fn append(&mut self, events: &[RunEvent]) {
        if events.is_empty() {
            return;
        }
        let read_back = record::decode(&record::encode(events)).expect("what is written can be read");
        assert_same(&read_back[..], events, "events changed on their way through the stored form");
        let revision = self.entries.len() as u64 + 1;
        let seq = self.entries.last().map_or(1, |entry| entry.seq + entry.events.len() as u64);
        let opens = events.iter().any(|event| matches!(event, RunEvent::PauseOpened(_)));
        let pause_group =
            opens.then(|| self.entries.iter().filter(|entry| entry.pause_group.is_some()).count() as u64 + 1);
        self.entries.push(Entry { revision, seq, pause_group, at: self.now, events: Arc::from(read_back) });
    }

    #[track_caller]
    fn check_journal(&self) {
        let folded = self.folded();
        assert_same(&folded, &self.run, "folding the journal gives another run");
        assert_same(&folded.next_step(), &self.run.next_step(), "a restarted process would do something else");
        if !self.entries.is_empty() {
            let read = record::replay(self.run.id(), &self.entries);
            assert_same(&read, &Ok(folded), "a careful reader disagrees");
        }
    }

    /// The run as a new process would know it.
    pub fn folded(&self) -> Run {
        Run::fold(self.run.id(), self.entries.iter().flat_map(Entry::timed))
    }

    /// Forgets what happened so far; what follows is compared.
    pub(crate) fn forget_told(&mut self) {
        self.told.clear();
    }

    pub(crate) fn note(&mut self, line: String) {
        self.told.push(line);
    }

    /// What happened, and what must be done next.
    pub fn report(&self) -> Vec<String> {
        let next = next_line(&self.run);
        self.told.iter().chain([&next]).map(|line| plain(line)).collect()
    }
}

/// Like `assert_eq`, for values that may be megabytes long.
#[track_caller]
pub fn assert_same<T: PartialEq + std::fmt::Debug + ?Sized>(found: &T, expected: &T, what: &str) {
    if found != expected {
        let (found, expected) = (format!("{found:?}"), format!("{expected:?}"));
        panic!("{what}\nfound:    {}\nexpected: {}", clamp(&found, 4_000), clamp(&expected, 4_000));
    }
}

/// When scripts begin: 2026-11-15T09:30:00Z.
pub const START_MILLIS: i64 = 1_794_735_000_000;

pub fn run_id(number: u128) -> RunId {
    // The shape of a version 7 UUID, so that ids look as they do in use.
    RunId::new(uuid::Uuid::from_u128(0x0198_c0ff_ee00_7000_8000_0000_0000_0000 + number))
}

pub fn actor(name: &str) -> ActorId {
    ActorId::new(name).unwrap()
}

pub fn session() -> SessionId {
    SessionId::new("desk-1").unwrap()
}

pub fn brief(id: &str) -> AgentBrief {
    AgentBrief {
        id: id.parse::<AgentId>().unwrap(),
        digest: Digest::of(id.as_bytes()),
        finish: Default::default(),
        checks_input: false,
        checks_output: false,
    }
}
