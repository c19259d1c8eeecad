//! Agents on scripted models: one for each kind of pause that is told of here.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_models::scripted::{Reply, ScriptedModel, last_results, last_said};
use holdpoint_runtime::agent::Agent;
use holdpoint_runtime::ports::model::Model;
use holdpoint_runtime::ports::tool::{
    Approval, Deadline, HoldTerms, Policy, PolicyVerdict, RunTool, Tool, ToolContext, ToolFailure,
};
use holdpoint_server::agents::{Catalogue, ServedAgent};
use serde_json::{Value, json};

/// A reason that would like to be a header, and then a page.
pub const REASON: &str = "mail leaves\r\nBcc: eve@evil.example\r\n\r\n<script>alert(1)</script>\u{202e}";

struct SendMail;

#[async_trait]
impl RunTool for SendMail {
    async fn run(&self, _: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
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

/// Asks to send a mail to whoever is named, then says what came of it.
fn mailer(name: &str, terms: HoldTerms) -> Agent {
    let model = ScriptedModel::by(|request| match last_results(request).first() {
        Some((_, result)) => Reply::text(format!("outcome: {result}")),
        None => Reply::call("send_mail", json!({"to": last_said(request), "amount": 12.50})),
    });
    let tool = Tool::builder("send_mail")
        .schema(json!({"type": "object", "required": ["to"], "properties": {"to": {"type": "string"}}}))
        .approval(Approval::By(Arc::new(On(terms))))
        .runner(SendMail)
        .build()
        .unwrap();
    Agent::builder(name).model(Arc::new(model) as Arc<dyn Model>).tool(tool).build().unwrap()
}

/// Asks what is told to it: JSON with questions.
fn asker() -> Agent {
    let model = ScriptedModel::by(|request| match last_results(request).first() {
        Some((_, result)) => Reply::text(format!("chosen: {result}")),
        None => Reply::call("ask_user_question", serde_json::from_str::<Value>(&last_said(request)).unwrap()),
    });
    let tool = holdpoint_tools::ask_user_question::AskUserQuestion::builder().build().unwrap();
    Agent::builder("asker").model(Arc::new(model) as Arc<dyn Model>).tool(tool).build().unwrap()
}

/// Says what is told to it, and asks whether to go on.
fn confirmer() -> Agent {
    let model = ScriptedModel::by(|request| Reply::text(format!("Shall I proceed? {}", last_said(request))));
    Agent::builder("confirmer")
        .model(Arc::new(model) as Arc<dyn Model>)
        .confirm_when(|words| words.contains("Shall I proceed").then(|| "asks to proceed".to_owned()))
        .build()
        .unwrap()
}

/// The agents of every test.
pub fn catalogue() -> Catalogue {
    let brief = HoldTerms { deadline: Deadline::After(Duration::from_secs(60)), ..HoldTerms::default() };
    let agents = [mailer("mailer", HoldTerms::because(REASON)), mailer("brief", brief), asker(), confirmer()];
    Catalogue::of(agents.iter().map(|agent| ServedAgent::new(agent.name(), agent.graph().unwrap())))
}
