//! The scenarios: small runs that together pass every station of a run's life.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::decision::Decision;
use holdpoint_core::ids::{CallPath, SessionId};
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::{Content, Item};
use holdpoint_core::pause::PauseView;
use holdpoint_core::tool::Effect as Declared;
use holdpoint_models::scripted::{Reply, ScriptedModel};
use holdpoint_runtime::agent::Agent;
use holdpoint_runtime::ports::model::{Model, ModelRequest};
use holdpoint_runtime::ports::tool::{RunTool, Tool, ToolContext, ToolFailure};
use serde_json::json;

use crate::crash::World;
use crate::crash::world::Effect;

/// One small run and the person who answers it.
pub struct Scenario {
    /// What it is called.
    pub name: &'static str,
    /// What is asked.
    pub input: &'static str,
    /// What it must give out.
    pub output: &'static str,
    /// What the person answers; `None` leaves the pause to its deadline.
    pub answer: fn(&PauseView) -> Option<Decision>,
    /// How the answers are given.
    pub answering: Answering,
    /// How long pauses wait.
    pub pause_deadline: Option<Duration>,
    /// Whether the start is written before the first model call.
    pub commit_first: bool,
    /// Whether its tools may be repeated without asking.
    pub repeats: bool,
    /// The only arguments with which a tool may run; empty for any.
    pub allowed_arguments: &'static [&'static str],
    replies: fn() -> ScriptedModel,
    build: fn(&World) -> Agent,
}

/// How a person gives their answers.
#[derive(Debug, Clone, Copy)]
pub enum Answering {
    /// One pause after the other.
    OneByOne,
    /// All open pauses at once, with these words for the model beside them.
    Together(&'static str),
    /// Not at all: they say this instead.
    Instead(&'static str),
}

impl Scenario {
    /// Its model, as every process has it.
    pub fn model(&self) -> Arc<dyn Model> {
        Arc::new((self.replies)())
    }

    /// Its agent, acting on this world.
    pub fn agent(&self, world: &World) -> Agent {
        (self.build)(world)
    }

    /// Its session.
    pub fn session(&self) -> SessionId {
        SessionId::new(format!("crash {}", self.name)).expect("a session name")
    }

    /// Whether a call's effects are counted; those that only run an inner agent have none of their own.
    pub(super) fn counts(&self, call: &CallPath) -> bool {
        self.name != "nested agents" || call.depth() > 1
    }
}

/// All of them.
pub fn scenarios() -> Vec<Scenario> {
    vec![
        approve(),
        deny(),
        edit(),
        parallel(),
        expire(),
        nested(),
        hand_off(),
        repeatable(),
        two_rounds(),
        respond(),
        together(),
        instead(),
    ]
}

fn approve() -> Scenario {
    Scenario {
        name: "approve",
        input: "pay the invoice",
        output: "Paid.",
        answer: |_| Some(Decision::Approve),
        answering: Answering::OneByOne,
        pause_deadline: None,
        commit_first: false,
        repeats: false,
        allowed_arguments: &[r#"{"amount":12}"#],
        replies: || ScriptedModel::new([Reply::call("pay", json!({"amount": 12})), Reply::text("Paid.")]),
        build: |world| agent("Payer", [gated("pay", world)]),
    }
}

fn deny() -> Scenario {
    Scenario {
        name: "deny",
        output: "Not paid.",
        answer: |_| Some(Decision::Deny { message: None }),
        commit_first: true,
        replies: || ScriptedModel::new([Reply::call("pay", json!({"amount": 12})), Reply::text("Not paid.")]),
        ..approve()
    }
}

fn edit() -> Scenario {
    Scenario {
        name: "edit",
        answer: |_| {
            let arguments = CanonicalJson::parse(r#"{"amount": 7}"#).expect("JSON");
            Some(Decision::ApproveEdited { arguments })
        },
        allowed_arguments: &[r#"{"amount":7}"#],
        ..approve()
    }
}

fn respond() -> Scenario {
    Scenario {
        name: "respond",
        answer: |_| Some(Decision::Respond { content: "already paid by hand".to_owned() }),
        ..approve()
    }
}

/// Four calls in one turn: one free, one approved, one denied, one answered in its place.
fn parallel() -> Scenario {
    Scenario {
        name: "parallel",
        output: "Settled.",
        answer: |pause| {
            let arguments = pause.call.as_ref().map(|call| call.arguments.as_str().to_owned());
            Some(match arguments.as_deref() {
                Some(r#"{"amount":1}"#) => Decision::Approve,
                Some(r#"{"amount":2}"#) => Decision::deny("too much"),
                _ => Decision::Respond { content: "leave it".to_owned() },
            })
        },
        allowed_arguments: &[r#"{"of":"all"}"#, r#"{"amount":1}"#],
        replies: || {
            ScriptedModel::new([
                Reply::calls([
                    ("look", json!({"of": "all"})),
                    ("pay", json!({"amount": 1})),
                    ("pay", json!({"amount": 2})),
                    ("pay", json!({"amount": 3})),
                ]),
                Reply::text("Settled."),
            ])
        },
        build: |world| agent("Payer", [free("look", world), gated("pay", world)]),
        ..approve()
    }
}

fn expire() -> Scenario {
    Scenario {
        name: "expire",
        output: "Nobody answered.",
        answer: |_| None,
        pause_deadline: Some(Duration::from_secs(3_600)),
        replies: || ScriptedModel::new([Reply::call("pay", json!({"amount": 12})), Reply::text("Nobody answered.")]),
        ..approve()
    }
}

/// Two inner agents in one turn whose models use the same call ids.
fn nested() -> Scenario {
    Scenario {
        name: "nested agents",
        output: "Both done.",
        allowed_arguments: &[],
        replies: || {
            ScriptedModel::new([
                Reply::calls([("ask_clerk", json!({"input": "first"})), ("ask_clerk", json!({"input": "second"}))]),
                Reply::text("Both done."),
            ])
            .for_agent(
                "ask_clerk",
                [Reply::empty().and_call_as("call_0", "pay", json!({"amount": 5})), Reply::text("clerk done")],
            )
        },
        build: |world| {
            let clerk = agent("Clerk", [gated("pay", world)]);
            let tool = clerk.as_tool("ask_clerk", "Asks the clerk.").build().expect("a tool");
            agent("Boss", [tool])
        },
        ..approve()
    }
}

/// A held call beside a hand-off, then a held call of the agent that took over.
fn hand_off() -> Scenario {
    Scenario {
        name: "hand-off",
        output: "Handed over and done.",
        allowed_arguments: &[],
        replies: || {
            ScriptedModel::new([
                Reply::calls([("pay", json!({"amount": 1})), ("transfer_to_clerk", json!({}))]),
                Reply::call("pay", json!({"amount": 2})),
                Reply::text("Handed over and done."),
            ])
        },
        build: |world| {
            let clerk = agent("Clerk", [gated("pay", world)]);
            Agent::builder("Boss").tool(gated("pay", world)).handoff(&clerk).build().expect("an agent")
        },
        ..approve()
    }
}

/// Tools that may be repeated: nobody is asked after a crash.
fn repeatable() -> Scenario {
    Scenario {
        name: "repeatable tools",
        output: "Looked.",
        repeats: true,
        allowed_arguments: &[],
        replies: || {
            ScriptedModel::new([
                Reply::calls([("look", json!({"of": "a"})), ("put", json!({"key": "b"}))]),
                Reply::text("Looked."),
            ])
        },
        build: |world| {
            let look = tool("look", world).effect(Declared::ReadOnly).build().expect("a tool");
            let put = tool("put", world).effect(Declared::Idempotent).build().expect("a tool");
            agent("Looker", [look, put])
        },
        ..approve()
    }
}

fn two_rounds() -> Scenario {
    Scenario {
        name: "two rounds",
        output: "Both paid.",
        allowed_arguments: &[r#"{"amount":1}"#, r#"{"amount":2}"#],
        replies: || {
            ScriptedModel::new([
                Reply::call("pay", json!({"amount": 1})),
                Reply::call("pay", json!({"amount": 2})),
                Reply::text("Both paid."),
            ])
        },
        ..approve()
    }
}

/// The calls of a turn are decided at once, with words beside them that the model must hear once.
fn together() -> Scenario {
    Scenario {
        name: "together",
        output: "Settled, heard 1 times.",
        answering: Answering::Together("thank you"),
        replies: || ScriptedModel::by(|request| pay_three(request, "Settled", "thank you")),
        ..parallel()
    }
}

/// A message takes the place of the decisions: nothing runs, and the model must hear it once.
fn instead() -> Scenario {
    Scenario {
        name: "instead",
        output: "Left alone, heard 1 times.",
        answering: Answering::Instead("leave it"),
        allowed_arguments: &[r#"{"of":"all"}"#],
        replies: || ScriptedModel::by(|request| pay_three(request, "Left alone", "leave it")),
        ..parallel()
    }
}

/// A look and three payments; then how often the model heard these words.
fn pay_three(request: &ModelRequest, done: &str, words: &str) -> Reply {
    let pay = |amount: u32| ("pay", json!({"amount": amount}));
    if request.turn == 1 {
        return Reply::calls([("look", json!({"of": "all"})), pay(1), pay(2), pay(3)]);
    }
    let is_said = |item: &&Arc<Item>| matches!(&***item, Item::User(said) if said.to_text() == words);
    Reply::text(format!("{done}, heard {} times.", request.items.iter().filter(is_said).count()))
}

fn agent(name: &str, tools: impl IntoIterator<Item = Tool>) -> Agent {
    let agent = Agent::builder(name).instructions("Do what is asked.");
    tools.into_iter().fold(agent, |agent, tool| agent.tool(tool)).build().expect("an agent")
}

fn gated(name: &str, world: &World) -> Tool {
    tool(name, world).needs_approval(true).build().expect("a tool")
}

fn free(name: &str, world: &World) -> Tool {
    tool(name, world).build().expect("a tool")
}

fn tool(name: &str, world: &World) -> holdpoint_runtime::ports::tool::ToolBuilder {
    Tool::builder(name).description("Changes the world.").runner(ChangeWorld(world.clone()))
}

/// A tool whose effect is seen from outside.
struct ChangeWorld(World);

#[async_trait]
impl RunTool for ChangeWorld {
    async fn run(&self, context: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        self.0.happen(Effect {
            key: context.idempotency_key(),
            tool: context.tool.to_string(),
            arguments: arguments.as_str().to_owned(),
        });
        Ok(Content::Text(format!("{} done", context.tool)))
    }
}
