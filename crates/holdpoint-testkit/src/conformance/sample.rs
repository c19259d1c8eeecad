//! Names and events to write. What they mean is no matter to a store.

use holdpoint_core::agent::{AgentBrief, FinishRule};
use holdpoint_core::audit::{AuditKind, AuditNote};
use holdpoint_core::decision::{Decision, Manner};
use holdpoint_core::event::{
    InputStaged, ModelReplied, PauseDecided, PauseExpired, PauseOpened, RunEnd, RunEvent, RunStarted,
};
use holdpoint_core::ids::{ActorId, AgentId, CallPath, PauseId, RuleId, RunId, SessionId, ToolName};
use holdpoint_core::json::{CanonicalJson, Digest, Limits};
use holdpoint_core::message::{Content, Usage};
use holdpoint_core::pause::PauseKind;
use holdpoint_core::policy::{AgentScope, Lifetime, RuleEffect, Scope, StandingRule};
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::{CallRecord, Effect, ToolClass, ToolKind, ToolRef};

/// The run with this number.
pub fn run_id(number: u64) -> RunId {
    format!("run_0198c0ffee0070008000{number:012x}").parse().expect("a run id")
}

/// The session of this name.
pub fn session(name: &str) -> SessionId {
    SessionId::new(name).expect("a session id")
}

/// The agent at this path.
pub fn agent(path: &str) -> AgentId {
    path.parse().expect("an agent id")
}

/// The tool of this name.
pub fn tool(name: &str) -> ToolName {
    ToolName::new(name).expect("a tool name")
}

/// Somebody who decides.
pub fn ana() -> ActorId {
    ActorId::new("ana@example.com").expect("an actor id")
}

/// A run began.
pub fn started(session: &SessionId, agent: &AgentId) -> RunEvent {
    RunEvent::RunStarted(RunStarted {
        session: session.clone(),
        agent: AgentBrief {
            id: agent.clone(),
            digest: Digest::of(agent.as_str().as_bytes()),
            finish: FinishRule::ModelText,
            checks_input: false,
            checks_output: false,
        },
        input: "remove the old backup".into(),
        context: None,
        turns_max: Some(10),
        by: ana(),
        holds_every_call: false,
    })
}

/// Somebody said something: an event of no consequence.
pub fn said(text: &str) -> RunEvent {
    RunEvent::InputStaged(InputStaged { content: text.into(), by: ana(), request: None, frame: CallPath::root() })
}

/// The model asked for a call of `send_email` with these arguments.
pub fn replied(arguments: CanonicalJson) -> RunEvent {
    RunEvent::ModelReplied(ModelReplied {
        frame: CallPath::root(),
        admitted: 0,
        thinking: None,
        text: None,
        calls: vec![CallRecord {
            call_id: "call_1".to_owned(),
            tool: tool("send_email"),
            kind: ToolKind::Function,
            effect: Effect::AtMostOnce,
            arguments,
            problem: None,
            repeats: None,
        }],
        usage: Usage::request(120, 40),
    })
}

/// Arguments, however large.
pub fn json(text: &str) -> CanonicalJson {
    CanonicalJson::parse_within(text, &Limits::WIDEST).expect("JSON")
}

/// A pause opened.
pub fn opened(number: u32, expires_at: Option<Timestamp>) -> RunEvent {
    let (at, sha256) = (CallPath::root().call(1, number - 1), Some(Digest::of(&number.to_be_bytes())));
    RunEvent::PauseOpened(PauseOpened { expires_at, ..PauseOpened::new(number, PauseKind::Approval, at, sha256) })
}

/// A pause was approved.
pub fn decided(number: u32) -> RunEvent {
    let (decision, by) = (Decision::Approve, ana());
    RunEvent::PauseDecided(PauseDecided {
        number,
        decision,
        by,
        via: None,
        rule: None,
        request: None,
        manner: Manner::Given,
    })
}

/// A pause expired.
pub fn expired(number: u32) -> RunEvent {
    RunEvent::PauseExpired(PauseExpired { number })
}

/// The run ended.
pub fn finished() -> RunEvent {
    RunEvent::RunFinished(RunEnd::Done(Content::from("done")))
}

/// A rule made in a run: always approve `send_email`, as often and as long as said.
pub fn rule(run: RunId, number: u32, uses_max: Option<u32>, lifetime: Lifetime) -> StandingRule {
    StandingRule {
        id: RuleId { run, number },
        effect: RuleEffect::Approve,
        scope: Scope {
            agent: AgentScope::Any,
            tool: ToolRef { class: ToolClass::Function, name: tool("send_email") },
            constraints: Vec::new(),
        },
        lifetime,
        uses_max,
        approvers: Vec::new(),
        author: ana(),
        made_at: Timestamp::from_millis(1_794_735_000_000),
    }
}

/// A note that somebody approved a call of `send_email`.
pub fn note(session: &SessionId, run: RunId) -> AuditNote {
    AuditNote {
        at: Timestamp::from_millis(1_794_735_000_000),
        kind: AuditKind::PauseDecided,
        session: session.clone(),
        run,
        pause: Some(PauseId { run, number: 1 }),
        agent: Some(agent("Support")),
        tool: Some(tool("send_email")),
        outcome: Some("approve".to_owned()),
        by: Some(ana()),
        via: None,
        request: None,
        manner: None,
        sha256: Some(Digest::of(b"{}")),
        edited_sha256: None,
        rule: None,
        held_by: None,
    }
}
