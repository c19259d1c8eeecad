//! Tool calls: what a model asked for, and what came back.

use serde::{Deserialize, Serialize};

use crate::agent::AgentBrief;
use crate::ids::{ActorId, CallPath, RuleId, ToolName};
use crate::json::{CanonicalJson, Digest};
use crate::message::{Content, Part, Source};

/// What the model is told when nobody gave other words.
pub const DENIED_TEXT: &str = "Tool execution was not approved.";

/// What a tool does to the world, as its author declares it. It says what may happen after a crash in the middle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Changes nothing: run again.
    ReadOnly,
    /// Running it again with the same key changes nothing more: run again.
    Idempotent,
    /// A person is asked whether it happened.
    #[default]
    AtMostOnce,
}

impl Effect {
    /// Whether the tool may be run again without asking anybody.
    pub fn may_repeat(self) -> bool {
        matches!(self, Self::ReadOnly | Self::Idempotent)
    }

    fn is_default(&self) -> bool {
        *self == Self::AtMostOnce
    }
}

/// How a tool is reached, which decides how its denial reads and which rules speak of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToolKind {
    /// A function with a JSON schema.
    #[default]
    Function,
    /// Another agent, run to its end in the caller's journal.
    Agent {
        /// The agent.
        agent: AgentBrief,
        /// How many model calls it may make; `None` for no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turns_max: Option<u32>,
    },
    /// Another agent, which takes over the conversation.
    Handoff {
        /// The agent.
        to: AgentBrief,
    },
    /// Commands in a shell.
    Shell,
    /// Changes to files.
    ApplyPatch,
    /// A batch of actions at a screen.
    Computer,
    /// A tool of an MCP server.
    Mcp {
        /// The server's label.
        server: ToolName,
    },
    /// A question to a person: the answer is the outcome.
    Question,
}

impl ToolKind {
    /// The agent that a call of this kind leads to.
    pub fn agent(&self) -> Option<&AgentBrief> {
        match self {
            Self::Agent { agent, .. } | Self::Handoff { to: agent } => Some(agent),
            Self::Function | Self::Shell | Self::ApplyPatch | Self::Computer | Self::Mcp { .. } | Self::Question => {
                None
            }
        }
    }

    fn is_default(&self) -> bool {
        *self == Self::Function
    }
}

/// The tool that a rule or decision speaks of: a shell tool and a function of one name are two tools.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRef {
    /// The family of tools.
    #[serde(default, skip_serializing_if = "ToolClass::is_function")]
    pub class: ToolClass,
    /// Its name there.
    pub name: ToolName,
}

/// A family of tools whose names are of one list.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToolClass {
    /// Functions and agents used as tools.
    #[default]
    Function,
    /// Shells.
    Shell,
    /// File changes.
    ApplyPatch,
    /// Screens.
    Computer,
    /// Tools of one MCP server.
    Mcp {
        /// The server's label.
        server: ToolName,
    },
}

impl ToolClass {
    fn is_function(&self) -> bool {
        *self == Self::Function
    }
}

impl ToolRef {
    /// The tool that a call of this kind and name means.
    pub fn new(kind: &ToolKind, name: &ToolName) -> Self {
        let class = match kind {
            ToolKind::Function | ToolKind::Agent { .. } | ToolKind::Handoff { .. } | ToolKind::Question => {
                ToolClass::Function
            }
            ToolKind::Shell => ToolClass::Shell,
            ToolKind::ApplyPatch => ToolClass::ApplyPatch,
            ToolKind::Computer => ToolClass::Computer,
            ToolKind::Mcp { server } => ToolClass::Mcp { server: server.clone() },
        };
        Self { class, name: name.clone() }
    }

    /// Whether both mean one tool. The screen tool has an older name under which decisions still hold.
    pub fn is_same(&self, other: &Self) -> bool {
        let both_screens = self.class == ToolClass::Computer && other.class == ToolClass::Computer;
        self == other || (both_screens && is_screen_name(&self.name) && is_screen_name(&other.name))
    }
}

fn is_screen_name(name: &ToolName) -> bool {
    matches!(name.as_str(), "computer" | "computer_use_preview")
}

/// A call as it was asked for and resolved against the agent's definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRecord {
    /// The provider's id of the call.
    pub call_id: String,
    /// The tool's name.
    pub tool: ToolName,
    /// How the tool is reached.
    #[serde(default, skip_serializing_if = "ToolKind::is_default")]
    pub kind: ToolKind,
    /// What it does to the world.
    #[serde(default, skip_serializing_if = "Effect::is_default")]
    pub effect: Effect,
    /// The arguments, kept once. Text that was not JSON stands here as a JSON string, with a problem.
    pub arguments: CanonicalJson,
    /// Why the call cannot run at all; the model is told, nobody is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The earlier call that this one repeats to the letter: its outcome stands, nothing runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<CallPath>,
}

impl CallRecord {
    /// The tool that rules and decisions speak of.
    pub fn tool_ref(&self) -> ToolRef {
        ToolRef::new(&self.kind, &self.tool)
    }
}

/// Who let a call run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowance {
    /// The policy asked for no approval.
    Policy,
    /// A standing rule.
    Rule(RuleId),
    /// A decider in code.
    Decider(ActorId),
    /// A person, at the run's pause of this number.
    Pause(u32),
}

/// Where a call stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallState {
    /// Asked for; no policy has looked yet.
    Requested,
    /// A person is asked, at the run's pause of this number.
    Held {
        /// The pause.
        pause: u32,
    },
    /// May run, has not started.
    Allowed {
        /// Who let it.
        by: Allowance,
    },
    /// Turned down; the words for the model are still to be found.
    Denied,
    /// Started, and not known to have ended. For an agent tool: its frame is open.
    Started,
    /// Started by a process that is gone; a person is asked what happened.
    InDoubt {
        /// The pause.
        pause: u32,
    },
    /// Settled for good.
    Answered(Outcome),
}

impl CallState {
    /// The state's name, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Held { .. } => "held",
            Self::Allowed { .. } => "allowed",
            Self::Denied => "denied",
            Self::Started => "started",
            Self::InDoubt { .. } => "in doubt",
            Self::Answered(_) => "answered",
        }
    }
}

/// A call within a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// As it was asked for.
    pub record: CallRecord,
    /// The arguments that run: those asked for, or those a person put in their place.
    pub arguments: CanonicalJson,
    /// Whether a person changed the arguments.
    pub is_edited: bool,
    /// How often it was started.
    pub attempts: u32,
    /// Where it stands.
    pub state: CallState,
}

impl Call {
    /// A call that was just asked for.
    pub fn new(record: CallRecord) -> Self {
        let arguments = record.arguments.clone();
        Self { record, arguments, is_edited: false, attempts: 0, state: CallState::Requested }
    }

    /// The digest of the arguments that would run.
    pub fn digest(&self) -> Digest {
        self.arguments.digest()
    }

    /// What came of it, once it is settled.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.state {
            CallState::Answered(outcome) => Some(outcome),
            _ => None,
        }
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The tool ran and gave this.
    Result(Content),
    /// The tool ran and failed.
    Failure(String),
    /// The call could not run: unknown tool, arguments that break the schema.
    Invalid(String),
    /// A person, rule, decider or guardrail turned it down.
    Denied(String),
    /// A person answered in the tool's place.
    Responded(String),
    /// Nobody answered in time.
    Expired,
    /// The run ended first.
    Withdrawn,
    /// A person gave up on a call in doubt.
    Abandoned,
}

impl Outcome {
    /// Whether the model is told of it as an error.
    pub fn is_error(&self) -> bool {
        !matches!(self, Self::Result(_) | Self::Responded(_))
    }

    /// What the model is told, in the form that a tool of this kind answers in.
    pub fn to_output(&self, kind: &ToolKind) -> Content {
        match self {
            Self::Result(content) => content.clone(),
            Self::Responded(text) | Self::Failure(text) | Self::Invalid(text) => Content::Text(text.clone()),
            Self::Denied(text) => refused(kind, text),
            Self::Expired => refused(kind, "Nobody approved the call in time; it did not run."),
            Self::Withdrawn => refused(kind, "The call was withdrawn; it did not run."),
            Self::Abandoned => refused(kind, "The call was interrupted; whether it took effect is not known."),
        }
    }
}

/// A refusal as the tool's own family would report one.
fn refused(kind: &ToolKind, text: &str) -> Content {
    match kind {
        ToolKind::Shell => json(&ShellRefusal {
            output: [ShellChunk { stdout: "", stderr: text, outcome: ShellExit { kind: "exit", exit_code: None } }],
        }),
        ToolKind::ApplyPatch => json(&PatchRefusal { status: "failed", output: text }),
        ToolKind::Computer => Content::Parts(vec![
            Part::Image { media_type: "image/png".to_owned(), source: Source::Base64(ONE_WHITE_PIXEL.to_owned()) },
            Part::Text(text.to_owned()),
        ]),
        ToolKind::Mcp { .. } => {
            json(&McpRefusal { approve: false, reason: Some(text).filter(|text| !text.is_empty()) })
        }
        ToolKind::Function | ToolKind::Agent { .. } | ToolKind::Handoff { .. } | ToolKind::Question => {
            Content::Text(text.to_owned())
        }
    }
}

#[derive(Serialize)]
struct ShellRefusal<'a> {
    output: [ShellChunk<'a>; 1],
}

#[derive(Serialize)]
struct ShellChunk<'a> {
    stdout: &'a str,
    stderr: &'a str,
    outcome: ShellExit,
}

#[derive(Serialize)]
struct ShellExit {
    #[serde(rename = "type")]
    kind: &'static str,
    exit_code: Option<i32>,
}

#[derive(Serialize)]
struct PatchRefusal<'a> {
    status: &'static str,
    output: &'a str,
}

#[derive(Serialize)]
struct McpRefusal<'a> {
    approve: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// What stands in for a screenshot of an action that did not happen.
const ONE_WHITE_PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAG7buVgAAAABJRU5ErkJggg==";

fn json(value: &impl Serialize) -> Content {
    CanonicalJson::from_serialize(value).map_or_else(|problem| Content::Text(problem.to_string()), Content::Json)
}
