//! A run for tests, told event by event, as the runtime would.

use std::sync::Arc;

use holdpoint_core::agent::{AgentBrief, FinishRule};
use holdpoint_core::event::{ModelReplied, PauseOpened, RunEvent, RunStarted};
use holdpoint_core::ids::{ActorId, AgentId, CallPath, FramePath, RunId, SessionId, ToolName};
use holdpoint_core::json::{CanonicalJson, Digest};
use holdpoint_core::message::{Content, Usage};
use holdpoint_core::pause::PauseKind;
use holdpoint_core::policy::OnTimeout;
use holdpoint_core::run::Run;
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::{CallRecord, Effect, ToolKind};
use holdpoint_runtime::agent::Agent;
use holdpoint_runtime::ports::model::Delta;
use holdpoint_runtime::use_cases::WatchItem;
use serde_json::Value;

use crate::agents::ServedAgent;

pub(super) const OPENED_AT: i64 = 1_746_000_000_000;

/// A run that is being told.
pub(super) struct Story {
    pub(super) run: Run,
    seq: u64,
}

impl Story {
    /// The run of an agent that was just asked something.
    pub(super) fn begin() -> Self {
        let id: RunId = "run_0198c0ffee007000800000000000beef".parse().unwrap();
        let mut story = Self { run: Run::new(id), seq: 0 };
        story.happens(RunEvent::RunStarted(RunStarted {
            session: SessionId::new("session-123").unwrap(),
            agent: brief("approval-agent"),
            input: Content::Text("delete them".to_owned()),
            context: None,
            turns_max: None,
            by: ActorId::local(),
            holds_every_call: false,
        }));
        story
    }

    /// Something happens, and a watcher is told.
    pub(super) fn happens(&mut self, event: RunEvent) -> WatchItem {
        let at = Timestamp::from_millis(OPENED_AT);
        self.run.apply(&event, at);
        self.seq += 1;
        WatchItem::Event { seq: self.seq, run: self.run.id(), at, event }
    }

    /// The model says more in the root agent's frame.
    pub(super) fn says(&self, text: &str) -> WatchItem {
        let delta = Delta::Text(text.to_owned());
        WatchItem::Delta { run: self.run.id(), frame: FramePath::root(), delta }
    }

    /// The model's reply is complete.
    pub(super) fn replies(&mut self, text: Option<&str>, calls: Vec<CallRecord>) -> WatchItem {
        self.replies_in(FramePath::root(), text, calls)
    }

    pub(super) fn replies_in(&mut self, frame: FramePath, text: Option<&str>, calls: Vec<CallRecord>) -> WatchItem {
        let (text, usage) = (text.map(str::to_owned), Usage::default());
        self.happens(RunEvent::ModelReplied(ModelReplied { frame, admitted: 0, thinking: None, text, calls, usage }))
    }

    /// A person is asked.
    pub(super) fn pauses(&mut self, kind: PauseKind, at: CallPath) -> WatchItem {
        let number = u32::try_from(self.run.pauses().len()).unwrap() + 1;
        let sha256 = self.run.call(&at).map(|call| call.digest());
        self.happens(RunEvent::PauseOpened(PauseOpened {
            number,
            kind,
            at,
            sha256,
            reason: None,
            expires_at: None,
            rule: None,
            approvers: Vec::new(),
            quorum: 1,
            on_timeout: OnTimeout::Deny,
        }))
    }
}

/// A call of a function.
pub(super) fn call(id: &str, tool: &str, arguments: Value) -> CallRecord {
    call_of(ToolKind::Function, id, tool, arguments)
}

/// A call of a tool of this kind.
pub(super) fn call_of(kind: ToolKind, id: &str, tool: &str, arguments: Value) -> CallRecord {
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

/// An agent as runs remember it.
pub(super) fn brief(path: &str) -> AgentBrief {
    let id: AgentId = path.parse().unwrap();
    let digest = Digest::of(path.as_bytes());
    AgentBrief { id, digest, finish: FinishRule::ModelText, checks_input: false, checks_output: false }
}

/// An agent that is served, with nothing special about it.
pub(super) fn served() -> ServedAgent {
    let billing = Agent::builder("billing").build().unwrap();
    let support = Agent::builder("support").build().unwrap();
    let agent = Agent::builder("approval-agent")
        .try_tool(billing.as_tool("ask_billing", "Asks billing.").build())
        .handoff(&support)
        .build()
        .unwrap();
    ServedAgent::new("approval-agent", agent.graph().unwrap())
}

/// The place of a call of the root agent.
pub(super) fn at(turn: u32, index: u32) -> CallPath {
    FramePath::root().call(turn, index)
}

/// A served agent, shared.
pub(super) fn shared() -> Arc<ServedAgent> {
    Arc::new(served())
}
