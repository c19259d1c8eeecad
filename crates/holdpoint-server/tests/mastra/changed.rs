//! Tools that change or go while a call of them waits: what was shown is what runs, or nothing does.

use holdpoint_runtime::settings::{DriftPolicy, Settings};
use serde_json::json;

use crate::world::{Setup, World};

async fn world(drift: DriftPolicy) -> World {
    let setup = Setup::default();
    let settings = Settings { drift, ..setup.settings };
    World::start_with(None, Setup { settings, ..setup }).await
}

/// Changes the file agent's file, and starts the server again.
async fn edit(world: &mut World, from: &str, to: &str) {
    let file = world.files.get_mut("agents/file.yaml").unwrap();
    assert!(file.contains(from), "{from}");
    *file = file.replace(from, to);
    world.restart().await;
}

/// Another schema of the tool.
const SCHEMA: (&str, &str) = (
    "parameters: { type: object, required: [path], properties: { path: { type: string } } }",
    "parameters: { type: object, required: [name], properties: { name: { type: string } } }",
);

/// Another tool in its place.
const GONE: (&str, &str) = ("name: deleteFile", "name: shredFile");

#[tokio::test]
async fn a_tool_that_was_changed_or_removed_runs_as_it_was_shown() {
    for (from, to) in [SCHEMA, GONE] {
        let mut world = world(DriftPolicy::Pinned).await;
        let (run, calls) = world.held("delete a.txt").await;
        edit(&mut world, from, to).await;
        let resumed = world.approve(&run, &calls[0]).await;
        assert_eq!(resumed.types().last().unwrap(), "finish");
        assert_eq!(world.tools.calls_by_tool(), [r#"deleteFile {"path":"a.txt"}"#]);
    }
}

#[tokio::test]
async fn an_approval_of_a_tool_that_cannot_be_had_as_it_was_shown_decides_nothing() {
    let mut world = world(DriftPolicy::Pinned).await;
    let (run, calls) = world.held("delete a.txt").await;
    let files = world.files.clone();
    for file in world.files.values_mut() {
        *file = file.replace("${TOOLS}", "${OTHER}");
    }
    world.tools_variable = "OTHER";
    world.restart().await;
    let before = world.everything().await;
    for path in ["approve-tool-call", "approve-tool-call-generate", "resume-stream"] {
        let mut body = json!({"runId": run, "toolCallId": calls[0]});
        if path == "resume-stream" {
            body["resumeData"] = json!({"approved": true});
        }
        let refused = world.post(&format!("/agents/file-agent/{path}"), body).await;
        assert_eq!(refused.refusal(), (409, "tool_changed".to_owned()), "{path}");
        assert_eq!(refused.json()["waiting"], json!(calls));
    }
    assert_eq!(world.everything().await, before);
    assert_eq!(world.suspended().await["total"], json!(1));

    world.files = files;
    world.tools_variable = "TOOLS";
    world.restart().await;
    assert_eq!(world.approve(&run, &calls[0]).await.types().last().unwrap(), "finish");
    assert_eq!(world.tools.calls().len(), 1);
}

#[tokio::test]
async fn where_changes_are_refused_nothing_is_decided_until_the_agent_is_what_it_was() {
    for (from, to) in [SCHEMA, GONE, ("You manage files.", "You manage folders.")] {
        let mut world = world(DriftPolicy::Refuse).await;
        let (run, calls) = world.held("delete a.txt").await;
        edit(&mut world, from, to).await;
        let before = world.everything().await;
        assert_eq!(world.approve(&run, &calls[0]).await.refusal(), (409, "tool_changed".to_owned()), "{to}");
        assert_eq!(world.everything().await, before, "{to}");
        edit(&mut world, to, from).await;
        assert_eq!(world.approve(&run, &calls[0]).await.types().last().unwrap(), "finish", "{to}");
        assert_eq!(world.tools.calls().len(), 1, "{to}");
    }
}

#[tokio::test]
async fn where_changes_are_accepted_a_call_of_a_changed_tool_is_asked_about_once_more() {
    let mut world = world(DriftPolicy::Accept).await;
    let (run, calls) = world.held("delete a.txt").await;
    edit(&mut world, SCHEMA.0, SCHEMA.1).await;
    let anew = format!("{}#2", calls[0]);
    for _ in 0..2 {
        let refused = world.approve(&run, &calls[0]).await;
        assert_eq!(refused.refusal(), (409, "tool_changed".to_owned()));
        assert_eq!(refused.json()["waiting"], json!([anew]));
    }
    assert!(world.tools.calls().is_empty(), "nothing ran");
    let waits = world.suspended().await;
    assert_eq!(waits["runs"][0]["toolCalls"][0]["toolCallId"], json!(anew));
    let resumed = world.approve(&run, &anew).await;
    assert_eq!(resumed.types().last().unwrap(), "finish");
    assert_eq!(world.tools.calls().len(), 1);
}

#[tokio::test]
async fn where_changes_are_accepted_a_tool_that_is_gone_is_not_approved_and_other_changes_are_no_hindrance() {
    let mut world = world(DriftPolicy::Accept).await;
    let (run, calls) = world.held("delete a.txt").await;
    edit(&mut world, GONE.0, GONE.1).await;
    let before = world.everything().await;
    assert_eq!(world.approve(&run, &calls[0]).await.refusal(), (409, "tool_changed".to_owned()));
    assert_eq!(world.everything().await, before);
    edit(&mut world, GONE.1, GONE.0).await;
    edit(&mut world, "You manage files.", "You manage folders.").await;
    assert_eq!(world.approve(&run, &calls[0]).await.types().last().unwrap(), "finish");
    assert_eq!(world.tools.calls().len(), 1);
    assert_eq!(world.model.last_request().instructions(), "You manage folders.");
}
