//! Group L: agents are known by their place in the graph, never by their name or by the order they were written in.

use crate::common::journal::*;
use crate::common::*;
use holdpoint::*;
use serde_json::{Value, json};

fn delete(path: &str) -> Reply {
    Reply::call("delete", json!({"path": path}))
}

fn ids(agent: &Agent) -> Vec<String> {
    agent.graph().unwrap().agents().map(ToString::to_string).collect()
}

/// Two workers of one name, each with a gated tool of one name, reached by two hand-offs.
struct Twins {
    root: Agent,
    red: Agent,
    blue: Agent,
    of_red: Effects,
    of_blue: Effects,
}

/// The same graph from new code: the order of the hand-offs and the first twin's instructions are up to the caller.
fn twins(red_first: bool, instructions: &str, of_red: &Effects, of_blue: &Effects) -> Twins {
    let worker = |words: &str, effects: &Effects| {
        Agent::builder("Worker").instructions(words).tool(gated(effects)).build().unwrap()
    };
    let (red, blue) = (worker(instructions, of_red), worker("Be blue.", of_blue));
    let root = Agent::builder("Root").instructions("Do.");
    let root = match red_first {
        true => root.handoff_named("to_red", &red).handoff_named("to_blue", &blue),
        false => root.handoff_named("to_blue", &blue).handoff_named("to_red", &red),
    };
    Twins { root: root.build().unwrap(), red, blue, of_red: of_red.clone(), of_blue: of_blue.clone() }
}

fn new_twins() -> Twins {
    twins(true, "Be red.", &Effects::default(), &Effects::default())
}

impl Twins {
    fn again(&self, red_first: bool, instructions: &str) -> Twins {
        twins(red_first, instructions, &self.of_red, &self.of_blue)
    }

    fn counts(&self) -> (u32, u32) {
        (self.of_red.count(), self.of_blue.count())
    }
}

#[tokio::test]
async fn two_agents_of_one_name_have_two_places_which_last() {
    let twins = new_twins();
    assert_eq!(ids(&twins.root), ["Root", "Root/to_blue", "Root/to_red"]);
    let graph = twins.root.graph().unwrap();
    assert_eq!(graph.id_of(&twins.red).unwrap().as_str(), "Root/to_red");
    assert_eq!(graph.id_of(&twins.blue).unwrap().as_str(), "Root/to_blue");
    for (red_first, words) in [(true, "Be red."), (false, "Be red."), (true, "Zzz."), (false, "Aaa.")] {
        let again = twins.again(red_first, words);
        let graph = again.root.graph().unwrap();
        assert_eq!(graph.id_of(&again.red).unwrap().as_str(), "Root/to_red");
        assert_eq!(graph.id_of(&again.blue).unwrap().as_str(), "Root/to_blue");
    }
}

#[tokio::test]
async fn a_name_cannot_look_like_a_place() {
    for name in ["Root/to_red", "/", "a/b", ""] {
        let error = Agent::builder(name).build().unwrap_err();
        assert_eq!(error.code(), "invalid_definition", "{name:?}");
    }
    // Names with the suffixes that others generate are names like any other.
    let twin = |name: &str| agent(name, []);
    let (one, two, literal) = (twin("Worker"), twin("Worker"), twin("Worker#2"));
    let root = Agent::builder("Worker").handoff_named("a", &one).handoff_named("b", &two).handoff(&literal);
    assert_eq!(ids(&root.build().unwrap()), ["Worker", "Worker/a", "Worker/b", "Worker/transfer_to_worker_2"]);
}

#[tokio::test]
async fn a_pause_goes_back_to_its_own_agent_after_a_restart() {
    for (red_first, words) in [(true, "Be red."), (false, "Be red."), (true, "Zzz."), (false, "Aaa.")] {
        let then = new_twins();
        let model = ScriptedModel::new([Reply::call("to_red", json!({})), delete("a"), Reply::text("Done.")]);
        let runner = Runner::in_memory(model.clone());
        let paused = runner.run(&then.root, "go").await.unwrap();
        assert_eq!(paused.pauses()[0].agent.as_str(), "Root/to_red");
        let json = saved(&runner, &then.root, &paused).await;
        // There, changed instructions or another order let the other agent of that name run its tool.
        let now = then.again(red_first, words);
        let mut state = RunState::from_json(&now.root, &json).unwrap();
        let pause = state.pauses().remove(0);
        assert_eq!(pause.agent.as_str(), "Root/to_red");
        state.approve(&pause).unwrap();
        let done = Runner::in_memory(model).resume_state(&now.root, state).await.unwrap();
        assert_eq!(text_of(&done), "Done.");
        assert_eq!(then.counts(), (1, 0), "{red_first} {words}");
    }
}

#[tokio::test]
async fn a_pending_call_stays_with_its_agent_when_another_is_set_to_go_on() {
    let twins = new_twins();
    let model = ScriptedModel::new([Reply::call("to_red", json!({})), delete("a"), delete("b")]);
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&twins.root, "go").await.unwrap();
    let mut state = runner.state(&twins.root, paused.run_id()).await.unwrap();
    state.set_current_agent(&twins.blue).unwrap();
    assert_eq!(state.current_agent().unwrap().as_str(), "Root/to_blue");
    assert_eq!(state.pauses()[0].agent.as_str(), "Root/to_red", "the call is still the one's who asked");
    state.approve(&paused.pauses()[0]).unwrap();
    let paused = runner.resume_state(&twins.root, state).await.unwrap();
    assert_eq!(twins.counts(), (1, 0));
    assert_eq!(paused.pauses()[0].agent.as_str(), "Root/to_blue", "and the other one goes on");
    assert_eq!(&*model.requests().pop().unwrap().instructions, "Be blue.");
}

#[tokio::test]
async fn a_pending_call_runs_although_the_agent_that_goes_on_lacks_its_tool() {
    let effects = Effects::default();
    let second = agent("Second", []);
    let first = Agent::builder("First").instructions("Do.").tool(gated(&effects)).handoff(&second).build().unwrap();
    let model = ScriptedModel::new([delete("a"), Reply::text("Done.")]);
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&first, "go").await.unwrap();
    let mut state = runner.state(&first, paused.run_id()).await.unwrap();
    assert_eq!(state.set_current_agent(&agent("Second", [])).unwrap_err().code(), "invalid_definition", "a stranger");
    state.set_current_agent(&second).unwrap();
    let mut state = RunState::from_json(&first, &state.to_json()).unwrap();
    let edited = CanonicalJson::from_serialize(&json!({"path": "b"})).unwrap();
    state.decide(&paused.pauses()[0], Decision::ApproveEdited { arguments: edited }, None).unwrap();
    assert_eq!(text_of(&runner.resume_state(&first, state).await.unwrap()), "Done.");
    assert_eq!(results(&model), [r#"delete ran with {"path":"b"}"#]);
    assert_eq!(model.requests().pop().unwrap().agent.as_str(), "First/transfer_to_second");
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn a_state_of_an_agent_that_is_gone_is_refused() {
    let twins = new_twins();
    let runner = Runner::in_memory(ScriptedModel::new([Reply::call("to_red", json!({})), delete("a")]));
    let paused = runner.run(&twins.root, "go").await.unwrap();
    let json = saved(&runner, &twins.root, &paused).await;
    let without = Agent::builder("Root").instructions("Do.").handoff_named("to_blue", &twins.blue).build().unwrap();
    assert_eq!(RunState::from_json(&without, &json).unwrap_err().code(), "agent_missing");
    assert_eq!(runner.resume(&without, paused.run_id()).await.unwrap_err().code(), "agent_missing");
    // The twin as the root is no help either: a name is no identity.
    assert_eq!(RunState::from_json(&twins.red, &json).unwrap_err().code(), "agent_missing");
    assert_eq!(twins.counts(), (0, 0));
}

#[tokio::test]
async fn a_state_that_names_an_agent_without_its_place_is_refused() {
    let twins = new_twins();
    let runner = Runner::in_memory(ScriptedModel::new([Reply::call("to_red", json!({})), delete("a")]));
    let paused = runner.run(&twins.root, "go").await.unwrap();
    let json = saved(&runner, &twins.root, &paused).await;
    let by_name = json.replace("Root/to_red", "Worker");
    assert_ne!(by_name, json);
    assert_eq!(RunState::from_json(&twins.root, &by_name).unwrap_err().code(), "agent_missing");
}

#[tokio::test]
async fn one_tool_in_two_agents_is_decided_for_each() {
    let (left, right) = (Effects::default(), Effects::default());
    let ask =
        |place: &str, effects: &Effects| agent("Worker", [gated(effects)]).as_tool(place, "Asks.").build().unwrap();
    let outer = agent("Outer", [ask("ask_left", &left), ask("ask_right", &right)]);
    let inner = || [delete("a"), delete("b"), Reply::text("done")];
    let both = || Reply::calls([("ask_left", json!({"input": "go"})), ("ask_right", json!({"input": "go"}))]);
    let model = ScriptedModel::new([both(), Reply::text("Done.")])
        .for_agent("ask_left", inner())
        .for_agent("ask_right", inner());
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&outer, "go").await.unwrap();
    let mut state = RunState::from_json(&outer, &saved(&runner, &outer, &paused).await).unwrap();
    for pause in state.pauses() {
        match pause.agent.as_str() {
            "Outer/ask_left" => state.approve_always(&pause, Always::in_run()).unwrap(),
            "Outer/ask_right" => state.deny_always(&pause, Some("not you"), Always::in_run()).unwrap(),
            other => panic!("{other}"),
        };
    }
    let done = Runner::in_memory(model).resume_state(&outer, state).await.unwrap();
    assert_eq!(text_of(&done), "Done.");
    assert_eq!((left.count(), right.count()), (2, 0));
}

#[tokio::test]
async fn rules_are_restored_for_agents_of_any_name() {
    for name in ["__proto__", "constructor", "Root#2", "local", "*", "any", "1.0"] {
        let effects = Effects::default();
        let agent = agent(name, [gated(&effects)]);
        let model = ScriptedModel::new([delete("a"), delete("b"), Reply::text("Done.")]);
        let runner = Runner::in_memory(model.clone());
        let paused = runner.run(&agent, "go").await.unwrap();
        runner.approve(&paused.pauses()[0]).always(Always::in_run()).await.unwrap();
        let json = saved(&runner, &agent, &paused).await;
        let state = RunState::from_json(&agent, &json).unwrap();
        let done = Runner::in_memory(model).resume_state(&agent, state).await.unwrap();
        assert_eq!(text_of(&done), "Done.", "{name}");
        assert_eq!(effects.count(), 2, "{name}");
    }
}

#[tokio::test]
async fn two_agents_in_one_place_are_refused_before_anything_runs() {
    let (one, two) = (agent("Worker", []), agent("Worker", []));
    let error = Agent::builder("Root").handoff(&one).handoff(&two).build().unwrap_err();
    assert_eq!(error.code(), "invalid_definition");
    let ask = |agent: &Agent| agent.as_tool("ask", "Asks.").build().unwrap();
    let error = Agent::builder("Root").tool(ask(&one)).tool(ask(&two)).build().unwrap_err();
    assert_eq!(error.code(), "invalid_definition");
    let root = Agent::builder("Root").handoff(&one).build().unwrap();
    assert_eq!(root.link_handoff(&two).unwrap_err().code(), "invalid_definition");
    assert_eq!(ids(&root), ["Root", "Root/transfer_to_worker"]);
}

#[tokio::test]
async fn two_agents_of_one_name_are_never_merged_in_the_graph() {
    // Their old map by name refused such graphs; ours has no map by name at all.
    let twins = new_twins();
    let graph = twins.root.graph().unwrap();
    assert_eq!(graph.agents().count(), 3);
    assert_ne!(graph.id_of(&twins.red), graph.id_of(&twins.blue));
    let (red, blue) = (graph.id_of(&twins.red).unwrap(), graph.id_of(&twins.blue).unwrap());
    assert_ne!(graph.digest(red), graph.digest(blue), "they were told different things");
}

#[tokio::test]
async fn a_ring_of_agents_is_walked_once() {
    let effects = Effects::default();
    let (first, second) = (agent("First", [gated(&effects)]), agent("Second", []));
    first.link_handoff(&second).unwrap();
    second.link_handoff(&first).unwrap();
    second.link_handoff(&second).unwrap();
    assert_eq!(ids(&first), ["First", "First/transfer_to_second"]);
    let handover = |to: &str| Reply::call(format!("transfer_to_{to}"), Value::Object(serde_json::Map::new()));
    let model = ScriptedModel::new([handover("second"), handover("first"), delete("a"), Reply::text("Done.")]);
    let runner = Runner::in_memory(model);
    let paused = runner.run(&first, "go").await.unwrap();
    assert_eq!(paused.pauses()[0].agent.as_str(), "First");
    let mut state = RunState::from_json(&first, &saved(&runner, &first, &paused).await).unwrap();
    state.approve(&paused.pauses()[0]).unwrap();
    assert_eq!(text_of(&runner.resume_state(&first, state).await.unwrap()), "Done.");
    assert_eq!(effects.count(), 1);
}
