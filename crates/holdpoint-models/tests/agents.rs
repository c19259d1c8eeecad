//! Whole runs over real connections: an agent that is held, approved, denied and resumed, in each protocol.
#![cfg(all(feature = "openai", feature = "anthropic"))]
#![allow(clippy::unwrap_used)]

mod support;

use holdpoint::{Agent, RunOutcome, Runner, Tool};
use holdpoint_core::ids::RunId;
use holdpoint_models::HttpSettings;
use holdpoint_runtime::ports::clock::SystemClock;
use holdpoint_testkit::model_server::{Answer, Asked, ModelServer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use support::models;

#[derive(Deserialize, JsonSchema)]
struct File {
    path: String,
}

/// Deletes two files at once, and then tells what came of it.
fn script(asked: &Asked) -> Answer {
    match asked.tool_results().as_slice() {
        [] => Answer::text("I delete both.")
            .and_call("files_delete", json!({"path": "a"}))
            .and_call("files_delete", json!({"path": "b"})),
        results => {
            let told: Vec<&str> = results.iter().map(|(_, text)| text.as_str()).collect();
            Answer::text(told.join(" / "))
        }
    }
}

#[tokio::test]
async fn an_approval_and_a_denial_reach_the_model_and_the_run_ends() {
    let server = ModelServer::start();
    server.script(script);
    for (name, model) in models(&server.url(), &HttpSettings::default(), &SystemClock::shared()) {
        let delete = Tool::builder("files.delete")
            .description("Deletes a file.")
            .needs_approval(true)
            .function(|_, file: File| async move { Ok::<_, String>(format!("deleted {}", file.path)) })
            .unwrap();
        let agent = Agent::builder("Cleaner").instructions("You clean up.").tool(delete).build().unwrap();
        let runner = Runner::builder().model(model).build();
        let RunOutcome::Paused { run_id, pauses } = runner.run(&agent, "Remove a and b.").await.unwrap() else {
            panic!("{name}: both calls are held")
        };
        assert_eq!(pauses.len(), 2, "{name}");
        runner.approve(&pauses[0]).by("ana").await.unwrap();
        runner.deny(&pauses[1]).message("b is still needed").by("ana").await.unwrap();
        let outcome = runner.resume(&agent, run_id).await.unwrap();
        assert_eq!(outcome.text().as_deref(), Some("deleted a / b is still needed"), "{name}");
    }
}

#[tokio::test]
async fn a_conversation_that_is_handed_over_goes_on_in_every_protocol() {
    let server = ModelServer::start();
    server.script(|asked| match (asked.instructions().as_str(), asked.replies_since_user()) {
        ("You send people on.", _) => Answer::call("transfer_to_billing", json!({})),
        ("You know bills.", 1) => Answer::text("Your bill is paid."),
        (instructions, replies) => Answer::error(400, format!("unexpected: {instructions} after {replies}")),
    });
    for (name, model) in models(&server.url(), &HttpSettings::default(), &SystemClock::shared()) {
        // The second agent has no tools, though its conversation speaks of one.
        let billing = Agent::builder("Billing").instructions("You know bills.").build().unwrap();
        let desk = Agent::builder("Desk").instructions("You send people on.").handoff(&billing).build().unwrap();
        let outcome = Runner::builder().model(model).build().run(&desk, "What about my bill?").await.unwrap();
        assert_eq!(outcome.text().as_deref(), Some("Your bill is paid."), "{name}");
        let told = server.last_request().tool_results();
        assert_eq!(told[0].1, "The conversation was handed over to Desk/transfer_to_billing.", "{name}");
    }
}

#[tokio::test]
async fn a_reply_that_breaks_off_leaves_the_run_where_it_was() {
    let server = ModelServer::start();
    for (name, model) in models(&server.url(), &HttpSettings::default(), &SystemClock::shared()) {
        let agent = Agent::builder("Helper").build().unwrap();
        let runner = Runner::builder().model(model).build();
        server.push(Answer::tokens(["Half a"]).then_cut());
        let fault = runner.run(&agent, "hello").session("s").await.unwrap_err();
        assert_eq!(fault.code(), "model_unavailable", "{name}");
        let run = fault.to_string().split(' ').find_map(|word| word.parse::<RunId>().ok()).unwrap();
        server.push(Answer::text("A whole one."));
        let outcome = runner.resume(&agent, run).await.unwrap();
        assert_eq!(outcome.text().as_deref(), Some("A whole one."), "{name}");
        assert_eq!(server.last_request().messages().iter().filter(|message| message["role"] == "assistant").count(), 0);
    }
}
