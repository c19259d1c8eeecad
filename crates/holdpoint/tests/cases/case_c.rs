//! Group C: pauses as they are handed out and read back: copies that name what they are about and can change nothing.

use crate::common::journal::*;
use crate::common::*;
use holdpoint::*;
use serde_json::{Value, json};

fn delete(path: &str) -> Reply {
    Reply::call("delete", json!({"path": path}))
}

#[tokio::test]
async fn a_restored_pause_shows_its_tool_and_arguments() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let runner = Runner::in_memory(ScriptedModel::new([delete("a"), Reply::text("Done.")]));
    let paused = runner.run(&agent, "go").await.unwrap();
    let json = saved(&runner, &agent, &paused).await;
    let restored = RunState::from_json(&agent, &json).unwrap().pauses();
    assert_eq!(restored, paused.pauses(), "what was shown before is what is shown after");
    let call = restored[0].call.as_ref().unwrap();
    assert_eq!(call.tool.as_str(), "delete");
    assert_eq!(call.call_id, "call_1_0");
    assert_eq!(call.arguments.as_str(), r#"{"path":"a"}"#);
    assert_eq!(call.digest, call.arguments.digest());
    assert_eq!(restored[0].agent.as_str(), "Ops");
}

#[tokio::test]
async fn a_pause_of_an_agent_that_is_not_there_is_refused_and_never_given_to_another() {
    // There, an unknown owner falls back to the current agent, whose tool of the same name would then run.
    let effects = Effects::default();
    let relay = relay(gated(&effects), gated(&effects));
    let runner = Runner::in_memory(ScriptedModel::new([Reply::call("transfer_to_second", json!({})), delete("a")]));
    let paused = runner.run(&relay, "go").await.unwrap();
    let json = saved(&runner, &relay, &paused).await;
    let alone = agent("First", [gated(&effects)]);
    assert_eq!(RunState::from_json(&alone, &json).unwrap_err().code(), "agent_missing");
    assert_eq!(runner.resume(&alone, paused.run_id()).await.unwrap_err().code(), "agent_missing");
    let renamed = json.replace("First/transfer_to_second", "First/transfer_to_nobody");
    assert_eq!(RunState::from_json(&relay, &renamed).unwrap_err().code(), "agent_missing");
    assert_eq!(effects.count(), 0);
}

#[tokio::test]
async fn a_pause_of_an_inner_agent_whose_tool_is_gone_is_refused() {
    let effects = Effects::default();
    let inner = agent("Inner", [gated(&effects)]);
    let ask = inner.as_tool("ask_inner", "Asks.").build().unwrap();
    let outer = agent("Outer", [ask, gated(&effects)]);
    let model = ScriptedModel::new([Reply::call("ask_inner", json!({"input": "go"}))])
        .for_agent("ask_inner", [delete("a"), Reply::text("inner done")]);
    let runner = Runner::in_memory(model);
    let paused = runner.run(&outer, "go").await.unwrap();
    let json = saved(&runner, &outer, &paused).await;
    let renamed = json.replace("Outer/ask_inner", "Outer/ask_nobody");
    assert_eq!(RunState::from_json(&outer, &renamed).unwrap_err().code(), "tool_missing");
    let without = agent("Outer", [gated(&effects)]);
    assert_eq!(RunState::from_json(&without, &json).unwrap_err().code(), "tool_missing");
    assert_eq!(runner.resume(&without, paused.run_id()).await.unwrap_err().code(), "tool_missing");
    assert_eq!(effects.count(), 0);
}

#[tokio::test]
async fn a_restored_pause_of_a_served_tool_can_be_approved() {
    let effects = Effects::default();
    let server = ToolShape::Mcp { server: ToolName::new("files").unwrap() };
    let agent = agent("Ops", [gated_as(server, "delete", &effects)]);
    let model = ScriptedModel::new([delete("a"), Reply::text("Done.")]);
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&agent, "go").await.unwrap();
    let mut state = RunState::from_json(&agent, &saved(&runner, &agent, &paused).await).unwrap();
    let pause = state.pauses().remove(0);
    // There, the arguments of such a call cannot be read from the item.
    assert_eq!(pause.call.as_ref().unwrap().arguments.to_value(), json!({"path": "a"}));
    state.approve(&pause).unwrap();
    let done = Runner::in_memory(model).resume_state(&agent, state).await.unwrap();
    assert_eq!(text_of(&done), "Done.");
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn a_pause_of_a_served_tool_has_the_name_that_the_model_used() {
    // We qualify no names: the server stands beside the name, never inside it.
    let effects = Effects::default();
    let server = ToolShape::Mcp { server: ToolName::new("files").unwrap() };
    let agent = agent("Ops", [gated_as(server, "delete", &effects)]);
    let runner = Runner::in_memory(ScriptedModel::new([delete("a")]));
    let paused = runner.run(&agent, "go").await.unwrap();
    let json = saved(&runner, &agent, &paused).await;
    for pause in [&paused.pauses()[0], &RunState::from_json(&agent, &json).unwrap().pauses()[0]] {
        assert_eq!(pause.call.as_ref().unwrap().tool.as_str(), "delete");
    }
}

#[tokio::test]
async fn a_document_that_was_written_out_in_another_way_reads_the_same() {
    // Format 1 is the first: there is no older shape of a pause. What keepers do to JSON must not matter either.
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let runner = Runner::in_memory(ScriptedModel::new([Reply::empty().and_proposed(ProposedCall {
        id: "call_1".to_owned(),
        tool: "delete".to_owned(),
        arguments: r#"{ "path":"a",  "amount":1.50, "account":18446744073709551617 }"#.to_owned(),
    })]));
    let paused = runner.run(&agent, "go").await.unwrap();
    let json = saved(&runner, &agent, &paused).await;
    let mut pretty = String::new();
    let mut in_text = false;
    for c in json.chars() {
        in_text ^= c == '"';
        pretty.push(c);
        if !in_text && matches!(c, '{' | ',' | ':' | '[') {
            pretty.push_str("\n  ");
        }
    }
    assert_ne!(pretty, json);
    let state = RunState::from_json(&agent, &pretty).unwrap();
    assert_eq!(state.pauses(), paused.pauses());
    let arguments = &state.pauses()[0].call.as_ref().unwrap().arguments.clone();
    assert_eq!(arguments.as_str(), r#"{"account":18446744073709551617,"amount":1.5,"path":"a"}"#);
}

#[tokio::test]
async fn a_turn_that_is_half_done_is_restored_half_done() {
    let (free, gated_effects) = (Effects::default(), Effects::default());
    let look = counted("look", &free).build().unwrap();
    let agent = agent("Ops", [look, gated(&gated_effects)]);
    let model = ScriptedModel::new([
        Reply::text("Both.").and_call("look", json!({})).and_call("delete", json!({"path": "a"})),
        Reply::text("Done."),
    ]);
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&agent, "go").await.unwrap();
    assert_eq!((free.count(), gated_effects.count()), (1, 0));
    let before = runner.state(&agent, paused.run_id()).await.unwrap();
    let mut after = RunState::from_json(&agent, &before.to_json()).unwrap();
    assert_eq!(after.run(), before.run());
    assert_eq!(after.items(), before.items());
    assert_eq!(after.pauses(), paused.pauses());
    after.approve(&paused.pauses()[0]).unwrap();
    let done = Runner::in_memory(model.clone()).resume_state(&agent, after).await.unwrap();
    assert_eq!(text_of(&done), "Done.");
    assert_eq!(results(&model), ["look ran with {}", r#"delete ran with {"path":"a"}"#]);
    assert_eq!((free.count(), gated_effects.count()), (1, 1), "what was done is not done again");
}

#[tokio::test]
async fn one_call_id_used_by_two_agents_is_two_pauses() {
    let (left, right) = (Effects::default(), Effects::default());
    let ask = |name: &str, effects: &Effects| {
        agent(name, [gated(effects)]).as_tool(format!("ask_{name}"), "Asks.").build().unwrap()
    };
    let outer = agent("Outer", [ask("left", &left), ask("right", &right)]);
    // Two inner models that both number their calls from zero, and ask for the very same thing.
    let inner = || [Reply::empty().and_call_as("call_0", "delete", json!({"path": "a"})), Reply::text("done")];
    let both = [("ask_left", json!({"input": "go"})), ("ask_right", json!({"input": "go"}))];
    let model = ScriptedModel::new([Reply::calls(both), Reply::text("Done.")])
        .for_agent("ask_left", inner())
        .for_agent("ask_right", inner());
    let runner = Runner::in_memory(model);
    let paused = runner.run(&outer, "go").await.unwrap();
    assert_eq!(paused.pauses().len(), 2, "{paused:?}");
    let of = |agent: &str| paused.pauses().iter().find(|pause| pause.agent.as_str() == agent).unwrap();
    assert_ne!(of("Outer/ask_left").id(), of("Outer/ask_right").id());
    runner.approve(of("Outer/ask_left")).await.unwrap();
    let paused = runner.resume(&outer, paused.run_id()).await.unwrap();
    assert_eq!((left.count(), right.count()), (1, 0), "one approval runs one of them");
    assert_eq!(paused.pauses().len(), 1);
    runner.deny(&paused.pauses()[0]).await.unwrap();
    let done = runner.resume(&outer, paused.run_id()).await.unwrap();
    assert_eq!(text_of(&done), "Done.");
    assert_eq!((left.count(), right.count()), (1, 0));
}

#[tokio::test]
async fn what_is_handed_out_is_a_copy() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let runner = Runner::in_memory(ScriptedModel::new([delete("a"), Reply::text("Done.")]));
    let mut paused = runner.run(&agent, "go").await.unwrap();
    let run = paused.run_id();
    let RunOutcome::Paused { pauses, .. } = &mut paused else { panic!("not paused") };
    pauses.clear();
    let state = runner.state(&agent, run).await.unwrap();
    let mut handed_out = state.pauses();
    handed_out[0].pause.state = PauseState::Withdrawn { at: handed_out[0].pause.opened_at, reason: String::new() };
    handed_out[0].call = None;
    assert_eq!(state.pauses()[0].call.as_ref().unwrap().arguments.to_value(), json!({"path": "a"}));
    let again = runner.resume(&agent, run).await.unwrap();
    assert_eq!(again.pauses(), state.pauses());
    assert_eq!(effects.count(), 0);
}

#[tokio::test]
async fn approving_a_copy_with_changed_arguments_approves_nothing() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let runner = Runner::in_memory(ScriptedModel::new([delete("a"), Reply::text("Done.")]));
    let paused = runner.run(&agent, "go").await.unwrap();
    let mut copy = paused.pauses()[0].clone();
    copy.call.as_mut().unwrap().arguments = CanonicalJson::from_serialize(&json!({"path": "/"})).unwrap();
    assert_eq!(runner.approve(&copy).await.unwrap_err().code(), "stale_view");
    let mut state = runner.state(&agent, paused.run_id()).await.unwrap();
    assert_eq!(state.approve(&copy).unwrap_err().code(), "stale_view");
    assert_eq!(state.deny(&copy).unwrap_err().code(), "stale_view");
    let again = runner.resume(&agent, paused.run_id()).await.unwrap();
    assert_eq!(again.pauses(), paused.pauses());
    assert_eq!(effects.count(), 0);
}

#[tokio::test]
async fn a_copy_with_another_id_decides_nothing_and_the_call_stays_held() {
    // A decision is addressed by the pause's id. The provider's call id is only shown: changing it leads nowhere else.
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let runner = Runner::in_memory(ScriptedModel::new([delete("a"), Reply::text("Done.")]));
    let paused = runner.run(&agent, "go").await.unwrap();
    let mut copy = paused.pauses()[0].clone();
    copy.pause.id.number = 2;
    copy.call.as_mut().unwrap().call_id = "call_other".to_owned();
    assert_eq!(runner.approve(&copy).await.unwrap_err().code(), "not_found");
    let again = runner.resume(&agent, paused.run_id()).await.unwrap();
    assert_eq!(again.pauses(), paused.pauses());
    assert_eq!(effects.count(), 0);
}

#[tokio::test]
async fn a_pause_is_written_as_number_kind_place_and_digest() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let runner = Runner::in_memory(ScriptedModel::new([delete("a")]));
    let paused = runner.run(&agent, "go").await.unwrap();
    let document: Value = serde_json::from_str(&saved(&runner, &agent, &paused).await).unwrap();
    let entries = document["entries"].as_array().unwrap();
    let events = entries.iter().flat_map(|entry| entry["events"].as_array().unwrap());
    let opened: Vec<&Value> = events.filter_map(|event| event.get("pause.opened")).collect();
    let digest = serde_json::to_value(paused.pauses()[0].call.as_ref().unwrap().digest).unwrap();
    // The arguments are not repeated here: they stand once, in the model's reply.
    assert_eq!(opened, [&json!({"number": 1, "kind": "approval", "at": "1.0", "sha256": digest})]);
}
