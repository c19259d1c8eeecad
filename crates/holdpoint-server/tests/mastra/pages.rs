//! Pages: how much is asked for has a bound, and what is beyond it is refused and not cut.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::world::{World, deciding};

#[tokio::test]
async fn a_page_larger_than_one_may_be_is_refused_by_name() {
    let world = World::start().await;
    let body = json!({"messages": "delete a.txt", "memory": {"thread": "th"}});
    world.post("/agents/mem-agent/stream", body).await.chunks();
    for (path, max) in [("/agents/mem-agent/suspended-runs", 100), ("/memory/threads/th/messages", 1_000)] {
        for bad in ["0".to_owned(), (max + 1).to_string(), "-1".to_owned(), "x".to_owned(), "1.5".to_owned()] {
            let refused = world.get(&format!("{path}?perPage={bad}")).await;
            assert_eq!(refused.refusal(), (400, "invalid_parameter".to_owned()), "{path} {bad}");
            assert_eq!(refused.json()["issues"][0]["field"], json!("perPage"), "{path} {bad}");
        }
        let told = world.get(&format!("{path}?perPage={}", max + 1)).await.json();
        assert!(told["issues"][0]["message"].as_str().unwrap().contains(&max.to_string()), "{told}");
        assert_eq!(world.get(&format!("{path}?perPage={max}")).await.status, 200);
        let beyond = world.get(&format!("{path}?perPage={max}&page={}", usize::MAX)).await;
        let beyond = beyond.json();
        let shown = beyond.get("runs").or(beyond.get("messages")).unwrap();
        assert_eq!(shown, &json!([]), "{path}: a page behind the last one is empty");
    }
}

#[tokio::test]
async fn pages_together_show_everything_that_waits_and_nothing_twice() {
    let world = World::start().await;
    let mut held = BTreeSet::new();
    for _ in 0..5 {
        held.insert(world.held("delete a.txt").await.0);
    }
    // With and without something that only the run itself tells.
    for narrow in ["", "&fromDate=2026-01-01T00:00:00Z"] {
        let mut seen = Vec::new();
        for page in 0..3 {
            let path = format!("/agents/file-agent/suspended-runs?perPage=2&page={page}{narrow}");
            let shown = world.get(&path).await.json();
            assert_eq!((&shown["total"], shown.get("truncated")), (&json!(5), None));
            let runs = shown["runs"].as_array().unwrap();
            seen.extend(runs.iter().map(|run| run["runId"].as_str().unwrap().to_owned()));
        }
        assert_eq!(seen.len(), 5, "{narrow}");
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), held, "{narrow}");
    }
}

#[tokio::test]
async fn a_large_result_is_cut_in_streams_and_in_what_is_remembered() {
    use holdpoint_testkit::model_server::Answer as Reply;
    let world = World::start().await;
    let arguments = json!({"path": "x".repeat(100 << 10)}).to_string();
    world.model.push(Reply::empty().and_call_as("c", "deleteFile", arguments));
    let body = json!({"messages": "go", "memory": {"thread": "th"}});
    let held = world.post("/agents/file-agent/stream", body).await;
    let resumed = world.post("/agents/file-agent/approve-tool-call", deciding(&held.run(), "c")).await;
    let told = world.get("/memory/threads/th/messages").await.json();
    let parts = &told["messages"][1]["content"]["parts"];
    let kept = parts.as_array().unwrap().iter().find(|part| part["type"] == "tool-invocation").unwrap();
    let is_cut = |result: &Value| {
        let text = result.as_str().unwrap();
        assert!(text.len() < (64 << 10) + 32 && text.ends_with("… (cut)"), "{} bytes", text.len());
    };
    is_cut(&resumed.payloads("tool-result")[0]["result"]);
    is_cut(&kept["toolInvocation"]["result"]);
    assert!(world.tools.calls()[0].len() > 100 << 10, "the tool got all of it");
}
