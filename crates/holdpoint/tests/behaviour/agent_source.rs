//! Agents that are built from data: a paused run goes on with exactly the agent that it was paused with.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::common::*;
use holdpoint::*;
use serde_json::{Value, json};

/// An agent as an application's file describes it.
fn build(source: &Value, effects: &Effects) -> Agent {
    let tool = counted("delete", effects).needs_approval(true).build().unwrap();
    let instructions = source["instructions"].as_str().unwrap();
    Agent::builder("Desk").instructions(instructions).tool(tool).source(source.clone()).build().unwrap()
}

/// Has the agent as it is described now, and rebuilds older ones.
struct Catalogue {
    now: Agent,
    effects: Effects,
    wanted: Mutex<Vec<AgentWanted>>,
    built: Mutex<BTreeMap<Digest, Arc<AgentGraph>>>,
}

#[async_trait::async_trait]
impl AgentSource for Catalogue {
    async fn graph(&self, wanted: &AgentWanted) -> Option<Arc<AgentGraph>> {
        self.wanted.lock().unwrap().push(wanted.clone());
        let now = self.now.graph().ok().filter(|graph| graph.digest(&wanted.root) == Some(wanted.digest));
        let rebuilt = || build(wanted.source.as_ref()?, &self.effects).graph().ok();
        let graph = now.or_else(rebuilt)?;
        self.built.lock().unwrap().insert(wanted.digest, graph.clone());
        Some(graph)
    }
}

fn model() -> ScriptedModel {
    ScriptedModel::by(|request| match request.turn {
        1 => Reply::call("delete", json!({"path": "a"})),
        _ => Reply::text(format!("as told: {}", request.instructions)),
    })
}

#[tokio::test]
async fn a_worker_is_handed_what_the_paused_agent_was_built_from() {
    let effects = Effects::default();
    let runner = Runner::in_memory(model());
    let (old, new) = (json!({"instructions": "Be kind."}), json!({"instructions": "Be quick."}));
    let before = build(&old, &effects);
    let outcome = runner.run(&before, "go").await.unwrap();
    runner.approve(&outcome.pauses()[0]).await.unwrap();

    let catalogue = Arc::new(Catalogue {
        now: build(&new, &effects),
        effects: effects.clone(),
        wanted: Mutex::default(),
        built: Mutex::default(),
    });
    let worker = Worker::new(runner.runtime().clone(), catalogue.clone());
    assert_eq!(worker.sweep().await.unwrap().driven, [outcome.run_id()]);
    let digest = before.graph().unwrap().digest(&"Desk".parse().unwrap()).unwrap();
    let wanted = AgentWanted { root: "Desk".parse().unwrap(), digest, source: Some(old) };
    assert_eq!(*catalogue.wanted.lock().unwrap(), [wanted]);
    assert_eq!(catalogue.built.lock().unwrap()[&digest].digest(&"Desk".parse().unwrap()), Some(digest));
    let run = runner.read(outcome.run_id()).await.unwrap();
    assert_eq!(text_of(&RunOutcome::of(&run)), "as told: Be kind.");
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn the_source_is_part_of_the_digest_and_an_agent_without_one_keeps_the_digest_it_had() {
    let digest = |source: Value| {
        let agent = Agent::builder("Desk").instructions("Be kind.").source(source).build().unwrap();
        agent.graph().unwrap().digest(&"Desk".parse().unwrap()).unwrap()
    };
    let plain = Agent::builder("Desk").instructions("Be kind.").build().unwrap();
    assert_eq!(digest(Value::Null), plain.graph().unwrap().digest(&"Desk".parse().unwrap()).unwrap());
    assert_eq!(
        digest(Value::Null).to_string(),
        "79a4883b8d6fdb867cce428d3199dc6765fc1844d618e89b5450da9e5734faae",
        "stored definitions are found by it"
    );
    assert_ne!(digest(json!({"a": 1})), digest(json!({"a": 2})));
    assert_eq!(digest(json!({"a": 1, "b": 2})), digest(json!({"b": 2, "a": 1})));
}

#[tokio::test]
async fn whoever_moves_a_run_can_ask_which_agent_it_wants() {
    let effects = Effects::default();
    let runner = Runner::in_memory(model());
    let (old, new) = (json!({"instructions": "Be kind."}), json!({"instructions": "Be quick."}));
    let (before, after) = (build(&old, &effects), build(&new, &effects));
    let outcome = runner.run(&before, "go").await.unwrap();
    let run = outcome.run_id();
    let wanted = runner.runtime().agent_wanted(run).await.unwrap();
    assert_eq!(wanted.source, Some(old));

    // Where the edit was accepted, the run wants the agent as it was set.
    let accept = DriveOptions { drift: Some(DriftPolicy::Accept), ..DriveOptions::default() };
    runner.runtime().resume_run(run, after.graph().unwrap(), accept).await.unwrap();
    let wanted = runner.runtime().agent_wanted(run).await.unwrap();
    assert_eq!(wanted.source, Some(new));
    let unknown = runner.runtime().agent_wanted(runner.runtime().name_run()).await.unwrap_err();
    assert_eq!(unknown.code(), "not_found");
}
