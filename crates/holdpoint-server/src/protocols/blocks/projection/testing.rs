//! A session for tests: real runs of the machine, whose events a watcher is told in their order.

use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::agent::{AgentBrief, FinishRule};
use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::ids::{ActorId, AgentId, CallPath, FramePath, PauseId, RunId, SessionId, ToolName};
use holdpoint_core::input::{Input, ReplyInput, StartInput};
use holdpoint_core::json::{CanonicalJson, Digest};
use holdpoint_core::message::{Content, Usage};
use holdpoint_core::pause::PauseState;
use holdpoint_core::policy::{PauseTerms, Screening, Verdict};
use holdpoint_core::run::Run;
use holdpoint_core::step::{Step, Work};
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::{CallRecord, Effect, Outcome, ToolKind};
use holdpoint_runtime::agent::Agent;
use holdpoint_runtime::ports::model::Delta;
use holdpoint_runtime::use_cases::WatchItem;
use serde_json::{Value, json};

use super::super::wire::events::Event;
use super::{Fact, Live, Projection};
use crate::agents::{DisplayCard, Held, OnNote, ServedAgent, ToolCard};

/// When every session begins.
pub(in super::super) const BEGINNING: i64 = 1_794_768_001_200;

/// A session that is being told.
pub(in super::super) struct Session {
    pub(in super::super) runs: Vec<Run>,
    pub(in super::super) items: Vec<WatchItem>,
    pub(in super::super) now: Timestamp,
    agent: Arc<ServedAgent>,
    seq: u64,
}

impl Session {
    /// A session with an agent, in which nothing has happened.
    pub(in super::super) fn with(agent: ServedAgent) -> Self {
        let now = Timestamp::from_millis(BEGINNING);
        Self { runs: Vec::new(), items: Vec::new(), now, agent: Arc::new(agent), seq: 0 }
    }

    /// A session in which a run just began.
    pub(in super::super) fn begun() -> Self {
        let mut session = Self::with(trader());
        session.start("Mua 100 VNM");
        session
    }

    /// Another run begins; says its place.
    pub(in super::super) fn start(&mut self, words: &str) -> usize {
        let place = self.runs.len();
        self.runs.push(Run::new(RunId::new(uuid::Uuid::from_u128(0xabc0 + place as u128))));
        let start = StartInput {
            session: id(),
            agent: brief("trader", FinishRule::ModelText),
            content: words.into(),
            context: None,
            turns_max: None,
            by: ActorId::local(),
            holds_every_call: false,
        };
        self.give(place, Input::Start(start));
        place
    }

    /// Gives a run an input that it must take.
    #[track_caller]
    pub(in super::super) fn give(&mut self, run: usize, input: Input) {
        let name = input.name();
        assert!(self.offer(run, input), "{name} was refused");
    }

    /// Gives a run an input; says whether it was taken.
    pub(in super::super) fn offer(&mut self, run: usize, input: Input) -> bool {
        let (id, at) = (self.runs[run].id(), self.now);
        let Ok(events) = self.runs[run].advance(input, at) else { return false };
        for event in events {
            self.seq += 1;
            self.items.push(WatchItem::Event { seq: self.seq, run: id, at, event });
        }
        true
    }

    /// Time goes by.
    pub(in super::super) fn wait(&mut self, seconds: u64) {
        self.now = self.now.after(Duration::from_secs(seconds));
    }

    /// A model says more.
    pub(in super::super) fn speaks(&mut self, run: usize, frame: &FramePath, delta: Delta) {
        self.items.push(WatchItem::Delta { run: self.runs[run].id(), frame: frame.clone(), delta });
    }

    /// The first run's root model says more.
    pub(in super::super) fn says(&mut self, text: &str) {
        self.speaks(0, &FramePath::root(), Delta::Text(text.to_owned()));
    }

    /// The first run's root model thinks more.
    pub(in super::super) fn thinks(&mut self, text: &str) {
        self.speaks(0, &FramePath::root(), Delta::Thinking(text.to_owned()));
    }

    /// The first run's root model replies with words.
    pub(in super::super) fn replies(&mut self, text: &str) {
        self.reply(0, ReplyInput { text: Some(text.to_owned()), ..reply() });
    }

    /// The first run's root model calls.
    pub(in super::super) fn calls(&mut self, calls: Vec<CallRecord>) {
        self.reply(0, ReplyInput { calls, ..reply() });
    }

    #[track_caller]
    pub(in super::super) fn reply(&mut self, run: usize, reply: ReplyInput) {
        let admitted = if reply.frame.is_root() { self.runs[run].staged().len() } else { 0 };
        let admitted = u32::try_from(admitted).unwrap();
        let turn = self.runs[run].frame(&reply.frame).map_or(1, |frame| frame.turns + 1);
        self.give(run, Input::ModelReply(ReplyInput { admitted, turn, ..reply }));
    }

    /// Everything that policy must look at gets this verdict.
    pub(in super::super) fn screened(&mut self, run: usize, verdict: impl Fn(&CallRecord) -> Verdict) {
        let calls = self.work(run).screen;
        let screening = |call: CallPath| {
            let verdict = verdict(&self.runs[run].call(&call).unwrap().record);
            Screening { call, verdict, guardrails: Vec::new() }
        };
        let screenings = calls.into_iter().map(screening).collect();
        self.give(run, Input::Screened(screenings));
    }

    /// All calls that wait for policy are held for so many seconds.
    pub(in super::super) fn holds(&mut self, seconds: u64) {
        let expires_at = Some(self.now.after(Duration::from_secs(seconds)));
        self.screened(0, |call| Verdict::Hold {
            reason: None,
            expires_at,
            terms: PauseTerms { rule: Some(call.tool.to_string()), ..PauseTerms::default() },
        });
    }

    /// Every call that may run does, and gives this.
    pub(in super::super) fn runs_with(&mut self, run: usize, result: &str) {
        let calls = self.work(run).run_tools;
        self.give(run, Input::StartCalls(calls.clone()));
        for call in calls {
            let outcome = Outcome::Result(Content::Text(result.to_owned()));
            self.give(run, Input::CallEnded { call, outcome });
        }
    }

    /// Somebody decides a pause of the first run.
    #[track_caller]
    pub(in super::super) fn decides(&mut self, number: u32, decision: Decision) {
        let input = self.decision(0, number, decision);
        self.give(0, Input::Decision(input));
    }

    pub(in super::super) fn decision(&self, run: usize, number: u32, decision: Decision) -> DecisionInput {
        DecisionInput::new(PauseId { run: self.runs[run].id(), number }, decision, ActorId::local())
    }

    /// The deadlines that have passed are noticed.
    pub(in super::super) fn expire(&mut self, run: usize) {
        let is_due =
            |state: &PauseState| matches!(state, PauseState::Open { expires_at: Some(end) } if *end <= self.now);
        let due: Vec<PauseId> =
            self.runs[run].pauses().iter().filter(|pause| is_due(&pause.state)).map(|pause| pause.id).collect();
        for pause in due {
            self.offer(run, Input::DeadlinePassed(pause));
        }
    }

    pub(in super::super) fn work(&self, run: usize) -> Work {
        match self.runs[run].next_step() {
            Step::Work(work) => work,
            _ => Work::default(),
        }
    }

    /// The projection of everything that happened.
    pub(in super::super) fn projection(&self) -> Projection {
        self.told().0
    }

    /// What is told of everything that happened.
    pub(in super::super) fn facts(&self) -> Vec<Fact> {
        self.told().1
    }

    fn told(&self) -> (Projection, Vec<Fact>) {
        let mut projection = self.empty();
        let facts = self.items.iter().flat_map(|item| projection.take(item)).collect();
        (projection, facts)
    }

    /// A projection that knows the agents and nothing else.
    pub(in super::super) fn empty(&self) -> Projection {
        let mut projection = Projection::new(id());
        self.runs.iter().for_each(|run| projection.learn(run.id(), self.agent.clone()));
        projection
    }

    /// The stream, told again from the beginning.
    pub(in super::super) fn replay(&self) -> Vec<Event> {
        self.facts().into_iter().flat_map(Fact::into_events).collect()
    }

    /// The stream as a subscriber is shown it that watches from the beginning.
    pub(in super::super) fn live(&self) -> Vec<Event> {
        let mut live = self.watching();
        self.items.iter().flat_map(|item| live.take(item)).collect()
    }

    /// A subscriber that watches from before the beginning.
    pub(in super::super) fn watching(&self) -> Live {
        let mut live = Live::new(self.empty(), 0);
        assert_eq!(live.caught_up(), []);
        live
    }

    /// What the stream says, each event as its type and what matters of it.
    pub(in super::super) fn told_in_short(&self) -> Vec<String> {
        self.replay().iter().map(|event| short(&json(event))).collect()
    }
}

/// An event as clients get it.
pub(in super::super) fn json(event: &Event) -> Value {
    serde_json::to_value(event).unwrap()
}

/// An event in a few words.
pub(in super::super) fn short(event: &Value) -> String {
    let kind = event["type"].as_str().unwrap();
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let more = match kind {
        "group_start" => format!("{} {:?}", text("/group_id"), text("/summary")),
        "group_end" => format!("{} {:?} {} {}", text("/group_id"), text("/summary"), event["items"], text("/status")),
        "content_block_start" => {
            let named = text("/content_block/name") + &text("/content_block/approval_key");
            let status = text("/content_block/status");
            format!("{} {} {named} {status}", event["index"], text("/content_block/type"))
        }
        "content_block_delta" => format!("{} {}", event["index"], event["delta"]),
        "content_block_stop" => event["index"].to_string(),
        "approval_resolved" => format!("{} {} {}", text("/approval_key"), text("/outcome"), text("/decided_by")),
        "message_stop" => text("/stop_reason"),
        "rewind" => event["after"].to_string(),
        _ => String::new(),
    };
    let seq = event["seq"].as_u64().map(|seq| format!("{seq} ")).unwrap_or_default();
    format!("{seq}{kind} {more}").trim_end().to_owned()
}

pub(in super::super) fn id() -> SessionId {
    SessionId::new("abc-123").unwrap()
}

/// A reply of a root agent with nothing in it.
pub(in super::super) fn reply() -> ReplyInput {
    ReplyInput {
        frame: FramePath::root(),
        turn: 1,
        admitted: 0,
        thinking: None,
        text: None,
        calls: Vec::new(),
        asks_confirmation: None,
        usage: Usage::default(),
    }
}

/// A call of a function.
pub(in super::super) fn call(id: &str, tool: &str, arguments: Value) -> CallRecord {
    call_of(ToolKind::Function, id, tool, arguments)
}

/// A call of a tool of this kind.
pub(in super::super) fn call_of(kind: ToolKind, id: &str, tool: &str, arguments: Value) -> CallRecord {
    CallRecord {
        call_id: id.to_owned(),
        tool: ToolName::new(tool).unwrap(),
        kind,
        effect: Effect::AtMostOnce,
        arguments: CanonicalJson::from_serialize(&arguments).unwrap(),
        problem: None,
        repeats: None,
    }
}

/// A question.
pub(in super::super) fn question(id: &str, text: &str) -> CallRecord {
    let arguments =
        json!({"questions": [{"question": text, "options": [{"label": "A"}, {"label": "B", "input": true}]}]});
    call_of(ToolKind::Question, id, "ask_user_question", arguments)
}

/// A call that runs another agent.
pub(in super::super) fn nested(id: &str) -> CallRecord {
    let agent = brief("trader/ask_research", FinishRule::ModelText);
    call_of(ToolKind::Agent { agent, turns_max: None }, id, "ask_research", json!({"input": "look"}))
}

/// A call that hands the conversation over.
pub(in super::super) fn handoff(id: &str) -> CallRecord {
    let to = brief("trader/transfer_to_support", FinishRule::ModelText);
    call_of(ToolKind::Handoff { to }, id, "transfer_to_support", json!({}))
}

/// An agent as runs remember it.
pub(in super::super) fn brief(path: &str, finish: FinishRule) -> AgentBrief {
    let id: AgentId = path.parse().unwrap();
    AgentBrief { digest: Digest::of(path.as_bytes()), id, finish, checks_input: false, checks_output: false }
}

/// The agent of the tests, with tools that are shown in every way.
pub(in super::super) fn trader() -> ServedAgent {
    let research = Agent::builder("research").build().unwrap();
    let support = Agent::builder("support").build().unwrap();
    let agent = Agent::builder("trader")
        .try_tool(research.as_tool("ask_research", "Asks research.").build())
        .handoff(&support)
        .build()
        .unwrap();
    let mut served = ServedAgent::new("trader", agent.graph().unwrap());
    let shown = DisplayCard::default();
    for agent in ["trader", "trader/ask_research", "trader/transfer_to_support"] {
        served.tools.extend([
            tool(
                agent,
                "execute_trade",
                DisplayCard { message: Some("Đặt lệnh mua {symbol}".to_owned()), ..shown.clone() },
            ),
            tool(agent, "write_todos", DisplayCard { message: Some("{title}".to_owned()), ..shown.clone() }),
            tool(agent, "quiet", DisplayCard { stream_tool_use: false, stream_tool_result: false, ..shown.clone() }),
            tool(agent, "only_result", DisplayCard { stream_tool_use: false, ..shown.clone() }),
            tool(agent, "show_chart", DisplayCard { as_content: true, ..shown.clone() }),
        ]);
    }
    served
}

fn tool(agent: &str, name: &str, display: DisplayCard) -> ToolCard {
    ToolCard {
        agent: agent.parse().unwrap(),
        name: ToolName::new(name).unwrap(),
        description: String::new(),
        parameters: json!({"type": "object"}),
        held: Held::Sometimes,
        effect: Effect::AtMostOnce,
        display,
        fill: None,
        explicit_decision: false,
        on_note: OnNote::Append,
    }
}
