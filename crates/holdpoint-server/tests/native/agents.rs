//! Agents for tests, made in code: one for each thing that can happen to a run.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_core::tool::Effect;
use holdpoint_models::scripted::{Reply, ScriptedModel, last_results, last_said};
use holdpoint_runtime::agent::Agent;
use holdpoint_runtime::ports::model::Model;
use holdpoint_runtime::ports::tool::{
    Approval, Deadline, HoldTerms, Policy, PolicyVerdict, RunTool, Tool, ToolContext, ToolFailure,
};
use holdpoint_server::agents::{Catalogue, Held, ServedAgent, ToolCard};
use serde_json::json;
use tokio::sync::Semaphore;

/// What tools did, and the gates that hold them up. It outlives the servers of a test.
#[derive(Clone, Default)]
pub struct Effects(Arc<Seen>);

struct Seen {
    sent: Mutex<Vec<String>>,
    gate: Semaphore,
}

impl Default for Seen {
    fn default() -> Self {
        Self { sent: Mutex::default(), gate: Semaphore::new(0) }
    }
}

impl Effects {
    /// The arguments of every mail that was sent.
    pub fn sent(&self) -> Vec<String> {
        self.0.sent.lock().unwrap().clone()
    }

    /// Lets one tool or model that waits go on.
    pub fn open_gate(&self) {
        self.0.gate.add_permits(1);
    }
}

/// Sends a mail: writes down with which arguments.
struct SendMail {
    effects: Effects,
    is_gated: bool,
}

#[async_trait]
impl RunTool for SendMail {
    async fn run(&self, _: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        self.effects.0.sent.lock().unwrap().push(arguments.as_str().to_owned());
        if self.is_gated {
            self.effects.0.gate.acquire().await.unwrap().forget();
        }
        Ok("sent".into())
    }
}

fn mail(effects: &Effects, approval: Approval) -> Tool {
    gated_mail(effects, approval, false)
}

fn gated_mail(effects: &Effects, approval: Approval, is_gated: bool) -> Tool {
    Tool::builder("send_mail")
        .description("Sends a mail.")
        .schema(json!({"type": "object", "required": ["to"], "properties": {"to": {"type": "string"}, "copies": {"type": "integer"}}}))
        .effect(Effect::AtMostOnce)
        .approval(approval)
        .runner(SendMail { effects: effects.clone(), is_gated })
        .build()
        .unwrap()
}

/// Asks to send a mail to whoever is named, then says what came of it. `a and b` is two mails in one turn.
fn mailing() -> Arc<dyn Model> {
    Arc::new(ScriptedModel::by(|request| {
        let results = last_results(request);
        match results.first() {
            Some((_, result)) => Reply::text(format!("outcome: {result}")),
            None => {
                let said = last_said(request);
                Reply::calls(said.split(" and ").map(|to| ("send_mail", json!({"to": to}))).collect::<Vec<_>>())
            }
        }
    }))
}

/// Two must approve, out of a group.
struct FourEyes;

#[async_trait]
impl Policy for FourEyes {
    async fn verdict(&self, _: &ToolContext, _: &CanonicalJson) -> Result<PolicyVerdict, String> {
        Ok(PolicyVerdict::Hold(HoldTerms {
            rule: Some("four-eyes".to_owned()),
            approvers: vec!["treasury".to_owned()],
            quorum: 2,
            ..HoldTerms::because("large")
        }))
    }
}

/// Held for a minute.
struct Briefly;

#[async_trait]
impl Policy for Briefly {
    async fn verdict(&self, _: &ToolContext, _: &CanonicalJson) -> Result<PolicyVerdict, String> {
        let deadline = Deadline::After(Duration::from_secs(60));
        Ok(PolicyVerdict::Hold(HoldTerms { deadline, ..HoldTerms::default() }))
    }
}

/// The agents of every test.
pub fn catalogue(effects: &Effects) -> Catalogue {
    let mailer = |name: &str, tool: Tool| Agent::builder(name).model(mailing()).tool(tool).build().unwrap();
    let question = json!({"questions": [{"question": "Which one?", "options": [{"label": "red"}, {"label": "blue"}]}]});
    let asker = Agent::builder("asker")
        .model(Arc::new(ScriptedModel::by(move |request| match last_results(request).first() {
            Some((_, result)) => Reply::text(format!("chosen: {result}")),
            None => Reply::call("ask_user_question", question.clone()),
        })))
        .tool(holdpoint_tools::ask_user_question::AskUserQuestion::builder().build().unwrap())
        .build()
        .unwrap();
    let confirmer = Agent::builder("confirmer")
        .model(Arc::new(ScriptedModel::by(|request| match last_said(request).as_str() {
            "delete" => Reply::text("Shall I proceed?"),
            _ => Reply::text("as you say"),
        })))
        .confirm_when(|words| words.contains("Shall I proceed").then(|| "asks to proceed".to_owned()))
        .build()
        .unwrap();
    let gate = effects.clone();
    let talker = Agent::builder("talker")
        .model(Arc::new(
            ScriptedModel::by(|request| Reply::text(format!("you said {}", last_said(request)))).by_words(),
        ))
        .build()
        .unwrap();
    let agents = [
        mailer("mailer", mail(effects, Approval::Always)),
        mailer("brief", mail(effects, Approval::By(Arc::new(Briefly)))),
        mailer("treasurer", mail(effects, Approval::By(Arc::new(FourEyes)))),
        mailer("doubter", gated_mail(&gate, Approval::Always, true)),
        asker,
        confirmer,
        talker,
    ];
    Catalogue::of(agents.iter().map(served))
}

fn served(agent: &Agent) -> ServedAgent {
    let graph = agent.graph().unwrap();
    let root = graph.root().clone();
    let mut served = ServedAgent::new(agent.name(), graph);
    served.description = format!("The {} of the tests.", agent.name());
    if agent.name() == "mailer" {
        served.tools = vec![ToolCard {
            agent: root,
            name: "send_mail".parse().unwrap(),
            description: "Sends a mail.".to_owned(),
            parameters: json!({"type": "object"}),
            held: Held::Always,
            effect: Effect::AtMostOnce,
            display: Default::default(),
            fill: None,
            explicit_decision: false,
            on_note: Default::default(),
        }];
    }
    served
}
