//! Agents on scripted models: one for each kind of pause.

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
use holdpoint_server::agents::{Catalogue, ServedAgent};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// What tools did, and the gate that holds one up. It outlives the servers of a test.
#[derive(Clone)]
pub struct Effects(Arc<(Mutex<Vec<String>>, Semaphore)>);

impl Default for Effects {
    fn default() -> Self {
        Self(Arc::new((Mutex::default(), Semaphore::new(0))))
    }
}

impl Effects {
    /// The arguments of every mail that was sent.
    pub fn sent(&self) -> Vec<String> {
        self.0.0.lock().unwrap().clone()
    }

    /// Lets one tool that waits go on.
    pub fn open_gate(&self) {
        self.0.1.add_permits(1);
    }
}

struct SendMail {
    effects: Effects,
    is_gated: bool,
}

#[async_trait]
impl RunTool for SendMail {
    async fn run(&self, _: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        self.effects.0.0.lock().unwrap().push(arguments.as_str().to_owned());
        if self.is_gated {
            self.effects.0.1.acquire().await.unwrap().forget();
        }
        Ok("sent".into())
    }
}

/// Holds on terms.
struct On(HoldTerms);

#[async_trait]
impl Policy for On {
    async fn verdict(&self, _: &ToolContext, _: &CanonicalJson) -> Result<PolicyVerdict, String> {
        Ok(PolicyVerdict::Hold(self.0.clone()))
    }
}

fn mail(effects: &Effects, terms: HoldTerms, is_gated: bool) -> Tool {
    let text = json!({"type": "string"});
    Tool::builder("send_mail")
        .schema(
            json!({"type": "object", "required": ["to"], "properties": {"to": text, "copies": {"type": "integer"}}}),
        )
        .effect(Effect::AtMostOnce)
        .approval(Approval::By(Arc::new(On(terms))))
        .runner(SendMail { effects: effects.clone(), is_gated })
        .build()
        .unwrap()
}

/// Asks to send a mail to whoever is named, then says what came of it.
fn mailing() -> Arc<dyn Model> {
    Arc::new(ScriptedModel::by(|request| match last_results(request).first() {
        Some((_, result)) => Reply::text(format!("outcome: {result}")),
        None => Reply::call("send_mail", json!({"to": last_said(request)})),
    }))
}

/// Asks what is told to it: JSON with questions.
fn asking() -> Arc<dyn Model> {
    Arc::new(ScriptedModel::by(|request| match last_results(request).first() {
        Some((_, result)) => Reply::text(format!("chosen: {result}")),
        None => Reply::call("ask_user_question", serde_json::from_str::<Value>(&last_said(request)).unwrap()),
    }))
}

/// The agents of every test.
pub fn catalogue(effects: &Effects) -> Catalogue {
    let mailer = |name: &str, terms: HoldTerms, is_gated: bool| {
        let tool = mail(effects, terms, is_gated);
        Agent::builder(name).model(mailing()).tool(tool).build().unwrap()
    };
    let asker = Agent::builder("asker")
        .model(asking())
        .tool(holdpoint_tools::ask_user_question::AskUserQuestion::builder().build().unwrap())
        .build()
        .unwrap();
    let confirmer = Agent::builder("confirmer")
        .model(Arc::new(ScriptedModel::by(|request| match last_said(request).as_str() {
            "delete" => Reply::text("Shall I proceed? <!channel>"),
            _ => Reply::text("as you say"),
        })))
        .confirm_when(|words| words.contains("Shall I proceed").then(|| "asks to proceed".to_owned()))
        .build()
        .unwrap();
    let four_eyes = HoldTerms {
        rule: Some("four-eyes".to_owned()),
        approvers: vec!["finance".to_owned()],
        quorum: 2,
        ..HoldTerms::because("large")
    };
    let brief = HoldTerms { deadline: Deadline::After(Duration::from_secs(60)), ..HoldTerms::default() };
    let agents = [
        mailer("mailer", HoldTerms::because("mail leaves the house"), false),
        mailer("private", HoldTerms::default(), false),
        mailer("brief", brief, false),
        mailer("treasurer", four_eyes, false),
        mailer("doubter", HoldTerms::default(), true),
        asker,
        confirmer,
    ];
    Catalogue::of(agents.iter().map(|agent| ServedAgent::new(agent.name(), agent.graph().unwrap())))
}
