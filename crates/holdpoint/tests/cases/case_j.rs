//! Group J: a provider's call id stands for one tool and one set of arguments, what was done is not done again, and a
//! state document whose journal contradicts itself is refused before anything runs.

use crate::common::journal::*;
use crate::common::*;
use holdpoint::*;
use serde_json::{Value, json};

/// A reply with one call, its arguments exactly as written.
fn raw(id: &str, tool: &str, arguments: &str) -> Reply {
    let (id, tool, arguments) = (id.to_owned(), tool.to_owned(), arguments.to_owned());
    Reply::empty().and_proposed(ProposedCall { id, tool, arguments })
}

fn delete(id: &str, path: &str) -> Reply {
    Reply::empty().and_call_as(id, "delete", json!({"path": path}))
}

fn ran(path: &str) -> String {
    format!(r#"delete ran with {{"path":"{path}"}}"#)
}

fn families() -> [ToolShape; 4] {
    [ToolShape::Function, ToolShape::Shell, ToolShape::ApplyPatch, ToolShape::Computer]
}

struct Desk {
    runner: Runner,
    model: ScriptedModel,
    agent: Agent,
    /// What the gated tool `delete` did.
    deleted: Effects,
    /// What the free tool `look` did.
    looked: Effects,
}

fn desk_as(shape: ToolShape, replies: impl IntoIterator<Item = Reply>) -> Desk {
    let (deleted, looked) = (Effects::default(), Effects::default());
    let model = ScriptedModel::new(replies);
    let agent = agent("Ops", [gated_as(shape, "delete", &deleted), counted("look", &looked).build().unwrap()]);
    Desk { runner: Runner::in_memory(model.clone()), model, agent, deleted, looked }
}

fn desk(replies: impl IntoIterator<Item = Reply>) -> Desk {
    desk_as(ToolShape::Function, replies)
}

impl Desk {
    async fn start(&self) -> RunOutcome {
        let paused = self.runner.run(&self.agent, "go").await.unwrap();
        assert_eq!(paused.pauses().len(), 1, "{paused:?}");
        paused
    }

    async fn approve(&self, paused: &RunOutcome) -> RunOutcome {
        self.runner.approve(&paused.pauses()[0]).await.unwrap();
        self.runner.resume(&self.agent, paused.run_id()).await.unwrap()
    }
}

// Fingerprints.

/// Asks for one call and then, under the same id, for another: how often the tool ran, and what was refused.
async fn twice(first: &str, second: &str) -> (u32, Vec<String>) {
    let effects = Effects::default();
    let agent = agent("Ops", [counted("pay", &effects).build().unwrap()]);
    let replies = [raw("call_1", "pay", first), raw("call_1", "pay", second), Reply::text("Done.")];
    let runner = Runner::in_memory(ScriptedModel::new(replies));
    let done = runner.run(&agent, "go").await.unwrap();
    assert_eq!(text_of(&done), "Done.");
    (effects.count(), refused_replies(&runner, done.run_id()).await)
}

#[tokio::test]
async fn arguments_are_ordered_by_code_point_however_they_were_written() {
    let effects = Effects::default();
    let agent = agent("Ops", [counted("pay", &effects).needs_approval(true).build().unwrap()]);
    let written = r#"{"😀":1,"｡":2,"é":3,"z":4,"Z":5,"a":6,"ä":7}"#;
    let runner = Runner::in_memory(ScriptedModel::new([raw("call_1", "pay", written)]));
    let paused = runner.run(&agent, "go").await.unwrap();
    let call = paused.pauses()[0].call.as_ref().unwrap();
    // Neither a locale nor UTF-16 would put them so: the half-width stop comes before the face.
    assert_eq!(call.arguments.as_str(), r#"{"Z":5,"a":6,"z":4,"ä":7,"é":3,"｡":2,"😀":1}"#);
    let other_order = r#"{"a":6,"ä":7,"é":3,"z":4,"Z":5,"｡":2,"😀":1}"#;
    assert_eq!(twice(written, other_order).await, (1, vec![]), "the same call, written in another order");
}

#[tokio::test]
async fn numbers_are_compared_exactly() {
    let same = [
        ("1", "1.0"),
        ("1e3", "1000"),
        ("0.1", "0.10"),
        ("-0", "0"),
        ("18446744073709551617", "18446744073709551617.0"),
    ];
    for (first, second) in same {
        let with = |number: &str| format!(r#"{{"amount":{number}}}"#);
        assert_eq!(twice(&with(first), &with(second)).await, (1, vec![]), "{first} and {second}");
    }
    let different = [
        ("18446744073709551616", "18446744073709551617"),
        ("9007199254740992", "9007199254740993"),
        ("0.1", "0.1000000000000000000000001"),
        ("1", "\"1\""),
        ("1e400", "1e401"),
    ];
    for (first, second) in different {
        let with = |number: &str| format!(r#"{{"amount":{number}}}"#);
        let refused = vec!["call_id_reused".to_owned()];
        assert_eq!(twice(&with(first), &with(second)).await, (1, refused), "{first} and {second}");
    }
}

#[tokio::test]
async fn one_call_id_of_two_agents_is_two_calls() {
    // We have no callers within programs; the nearest is an inner agent that uses the outer one's call id.
    let (outer_did, inner_did) = (Effects::default(), Effects::default());
    let inner = agent("Inner", [gated(&inner_did)]);
    let outer = agent("Outer", [gated(&outer_did), inner.as_tool("ask_inner", "Asks.").build().unwrap()]);
    let model = ScriptedModel::new([
        delete("call_1", "a"),
        Reply::call("ask_inner", json!({"input": "go"})),
        Reply::text("Done."),
    ])
    .for_agent("ask_inner", [delete("call_1", "a"), Reply::text("inner done")]);
    let runner = Runner::in_memory(model);
    let paused = runner.run(&outer, "go").await.unwrap();
    runner.approve(&paused.pauses()[0]).await.unwrap();
    let paused = runner.resume(&outer, paused.run_id()).await.unwrap();
    assert_eq!(paused.pauses()[0].agent.as_str(), "Outer/ask_inner", "neither approved nor done by the outer one's");
    assert_eq!((outer_did.count(), inner_did.count()), (1, 0));
    runner.deny(&paused.pauses()[0]).await.unwrap();
    assert_eq!(text_of(&runner.resume(&outer, paused.run_id()).await.unwrap()), "Done.");
    assert_eq!((outer_did.count(), inner_did.count()), (1, 0));
}

#[tokio::test]
async fn an_agent_that_takes_over_does_not_inherit_what_a_call_id_stood_for() {
    let (first, second) = (Effects::default(), Effects::default());
    let relay = relay(gated(&first), gated(&second));
    let handover = || Reply::call("transfer_to_second", json!({}));
    let runner = Runner::in_memory(ScriptedModel::new([delete("call_1", "a"), handover(), delete("call_1", "a")]));
    let paused = runner.run(&relay, "go").await.unwrap();
    runner.approve(&paused.pauses()[0]).await.unwrap();
    let paused = runner.resume(&relay, paused.run_id()).await.unwrap();
    assert_eq!(paused.pauses()[0].agent.as_str(), "First/transfer_to_second", "the owner changed: asked anew");
    assert_eq!((first.count(), second.count()), (1, 0));
}

// What a document carries, and what it may not lack.

/// A document of a run with one call that was approved and done, and one that is held.
async fn one_done_one_held() -> (Desk, RunOutcome, String) {
    let desk = desk([delete("call_1", "a"), delete("call_2", "b"), Reply::text("Done.")]);
    let paused = desk.approve(&desk.start().await).await;
    assert_eq!(paused.pauses().len(), 1);
    let json = saved(&desk.runner, &desk.agent, &paused).await;
    (desk, paused, json)
}

fn refusal(desk: &Desk, json: &str) -> &'static str {
    RunState::from_json(&desk.agent, json).map_or_else(|refusal| refusal.code(), |_| "accepted")
}

#[tokio::test]
async fn a_document_carries_every_call_decision_start_and_outcome() {
    let (desk, _, json) = one_done_one_held().await;
    let mut names = Vec::new();
    let again = tampered(&json, |events| {
        names = events.iter().map(|event| event.as_object().unwrap().keys().next().unwrap().clone()).collect();
    });
    let expected = [
        "run.started",
        "model.replied",
        "pause.opened",
        "pause.decided",
        "call.started",
        "call.answered",
        "model.replied",
        "pause.opened",
    ];
    assert_eq!(names, expected);
    assert_eq!(refusal(&desk, &again), "accepted", "unchanged, it is read");
}

#[tokio::test]
async fn a_document_that_lacks_or_repeats_a_record_is_refused() {
    let (desk, _, json) = one_done_one_held().await;
    for name in ["run.started", "model.replied", "pause.opened", "pause.decided", "call.started", "call.answered"] {
        let lacking = tampered(&json, |events| drop(events.remove(place(events, name))));
        assert_eq!(refusal(&desk, &lacking), "state_corrupt", "without {name}");
        let repeated = tampered(&json, |events| {
            let at = place(events, name);
            events.insert(at, events[at].clone());
        });
        assert_eq!(refusal(&desk, &repeated), "state_corrupt", "{name} twice");
    }
    assert_eq!(desk.deleted.count(), 1);
}

#[tokio::test]
async fn a_document_without_its_parts_is_refused() {
    let (desk, _, json) = one_done_one_held().await;
    for (field, code) in
        [("kind", "not_a_state"), ("format", "not_a_state"), ("run", "state_corrupt"), ("entries", "state_corrupt")]
    {
        let mut document: Value = serde_json::from_str(&json).unwrap();
        document.as_object_mut().unwrap().remove(field).unwrap();
        assert_eq!(refusal(&desk, &document.to_string()), code, "without {field}");
    }
}

#[tokio::test]
async fn a_decision_that_is_bound_to_no_held_call_is_refused() {
    let (desk, _, json) = one_done_one_held().await;
    let opened = |change: fn(&mut Value)| {
        tampered(&json, |events| {
            let at = place(events, "pause.opened");
            change(&mut events[at]["pause.opened"]);
        })
    };
    let cases = [
        opened(|pause| drop(pause.as_object_mut().unwrap().remove("sha256"))),
        opened(|pause| pause["sha256"] = serde_json::to_value(Digest::of(b"{}")).unwrap()),
        opened(|pause| pause["at"] = json!("1.1")),
        tampered(&json, |events| {
            let at = place(events, "pause.decided");
            events[at]["pause.decided"]["number"] = json!(3);
        }),
        tampered(&json, |events| {
            let decided = json!({"pause.decided": {"number": 3, "decision": "approve", "by": "mallory"}});
            events.push(decided);
        }),
        tampered(&json, |events| events.push(json!({"call.allowed": {"call": "2.0", "by": {"pause": 1}}}))),
        tampered(&json, |events| events.push(json!({"call.allowed": {"call": "2.0", "by": "policy"}}))),
    ];
    for (index, json) in cases.iter().enumerate() {
        assert_eq!(refusal(&desk, json), "state_corrupt", "case {index}");
    }
    assert_eq!(desk.deleted.count(), 1);
}

#[tokio::test]
async fn a_contradiction_is_seen_before_anything_changes() {
    let (desk, paused, json) = one_done_one_held().await;
    let pause = &paused.pauses()[0];
    // In the state: a refused decision leaves it as it was.
    let mut state = RunState::from_json(&desk.agent, &json).unwrap();
    let before = state.to_json();
    let mut other = pause.clone();
    other.call.as_mut().unwrap().arguments = CanonicalJson::from_serialize(&json!({"path": "c"})).unwrap();
    assert_eq!(state.approve(&other).unwrap_err().code(), "stale_view");
    assert_eq!(state.to_json(), before);
    // In the store: a state that contradicts it leaves it as it was.
    state.approve(pause).unwrap();
    desk.runner.deny(pause).message("no").await.unwrap();
    let journal = events(&desk.runner, paused.run_id()).await;
    let error = desk.runner.resume_state(&desk.agent, state).await.unwrap_err();
    assert_eq!(error.code(), "state_stale");
    assert_eq!(events(&desk.runner, paused.run_id()).await, journal);
    // In a fresh store: a document that contradicts itself never gets there.
    let fresh = Runner::in_memory(desk.model.clone());
    let corrupt = tampered(&json, |events| drop(events.remove(place(events, "call.started"))));
    assert_eq!(fresh.read_state(&desk.agent, &corrupt).unwrap_err().code(), "state_corrupt");
    assert_eq!(fresh.read(paused.run_id()).await.unwrap_err().code(), "not_found");
    assert_eq!(desk.deleted.count(), 1);
}

#[tokio::test]
async fn a_rule_about_a_shell_patch_or_screen_is_the_agents_own_after_a_restart_too() {
    // There, such a rule covers every agent of the run; here only when its maker says so.
    for shape in [ToolShape::Shell, ToolShape::ApplyPatch, ToolShape::Computer] {
        let (first, second) = (Effects::default(), Effects::default());
        let relay = relay(gated_as(shape.clone(), "delete", &first), gated_as(shape, "delete", &second));
        let handover = Reply::call("transfer_to_second", json!({}));
        let replies = [delete("call_1", "a"), delete("call_2", "b"), handover, delete("call_3", "c")];
        let model = ScriptedModel::new(replies);
        let runner = Runner::in_memory(model.clone());
        let paused = runner.run(&relay, "go").await.unwrap();
        runner.approve(&paused.pauses()[0]).always(Always::in_run()).await.unwrap();
        let state = RunState::from_json(&relay, &saved(&runner, &relay, &paused).await).unwrap();
        let paused = Runner::in_memory(model).resume_state(&relay, state).await.unwrap();
        assert_eq!(paused.pauses().len(), 1, "{paused:?}");
        assert_eq!((first.count(), second.count()), (2, 0));
    }
}

#[tokio::test]
async fn deciding_one_agents_call_leaves_the_same_call_of_another_held() {
    let (left, right) = (Effects::default(), Effects::default());
    let ask = |name: &str, effects: &Effects| {
        agent(name, [gated(effects)]).as_tool(format!("ask_{name}"), "Asks.").build().unwrap()
    };
    let outer = agent("Outer", [ask("left", &left), ask("right", &right)]);
    let inner = || [delete("call_1", "a"), Reply::text("done")];
    let both = [("ask_left", json!({"input": "go"})), ("ask_right", json!({"input": "go"}))];
    let model = ScriptedModel::new([Reply::calls(both), Reply::text("Done.")])
        .for_agent("ask_left", inner())
        .for_agent("ask_right", inner());
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&outer, "go").await.unwrap();
    let mut state = RunState::from_json(&outer, &saved(&runner, &outer, &paused).await).unwrap();
    let of_right = state.pauses().into_iter().find(|pause| pause.agent.as_str() == "Outer/ask_right").unwrap();
    state.approve(&of_right).unwrap();
    let paused = Runner::in_memory(model).resume_state(&outer, state).await.unwrap();
    assert_eq!(paused.pauses().len(), 1, "{paused:?}");
    assert_eq!((left.count(), right.count()), (0, 1));
}

#[tokio::test]
async fn a_decision_is_bound_to_the_arguments_it_was_made_for() {
    for shape in [ToolShape::Function, ToolShape::Shell] {
        let deleted = Effects::default();
        let agent = agent("Ops", [gated_as(shape, "delete", &deleted)]);
        let both = [("delete", json!({"path": "a"})), ("delete", json!({"path": "b"}))];
        let runner = Runner::in_memory(ScriptedModel::new([Reply::calls(both), Reply::text("Done.")]));
        let paused = runner.run(&agent, "go").await.unwrap();
        let [first, second] = paused.pauses() else { panic!("{paused:?}") };
        let seen = second.call.as_ref().unwrap().digest;
        let error = runner.approve(first.id()).seeing(seen).await.unwrap_err();
        assert_eq!(error.code(), "stale_view");
        runner.approve(first).await.unwrap();
        let json = saved(&runner, &agent, &paused).await;
        // The approved arguments, changed in the document: the decision no longer binds to them.
        let changed = json.replace(r#"{"path":"a"}"#, r#"{"path":"/"}"#);
        assert_ne!(changed, json);
        assert_eq!(RunState::from_json(&agent, &changed).unwrap_err().code(), "state_corrupt");
        let again = runner.resume(&agent, paused.run_id()).await.unwrap();
        assert_eq!(again.pauses().len(), 1);
        assert_eq!(deleted.count(), 1);
    }
}

#[tokio::test]
async fn arguments_changed_together_with_their_digest_are_caught_by_the_signature() {
    let (desk, _, json) = one_done_one_held().await;
    let key = StateKey::new([7; 32]).unwrap();
    let signed = RunState::from_json(&desk.agent, &json).unwrap().to_json_signed(&key);
    let digest = |path: &str| {
        let json = CanonicalJson::from_serialize(&json!({"path": path})).unwrap();
        serde_json::to_value(json.digest()).unwrap().as_str().unwrap().to_owned()
    };
    let changed = signed.replace(r#"{"path":"b"}"#, r#"{"path":"/"}"#).replace(&digest("b"), &digest("/"));
    assert_eq!(refusal(&desk, &changed), "accepted", "without a key nobody can tell");
    let error = RunState::from_json_signed(&desk.agent, &changed, &key).unwrap_err();
    assert_eq!(error.code(), "state_tampered");
    assert!(RunState::from_json_signed(&desk.agent, &signed, &key).is_ok());
}

#[tokio::test]
async fn a_decision_about_a_served_tool_is_bound_to_its_server() {
    for approve in [true, false] {
        let deleted = Effects::default();
        let of = |server: &str| {
            let shape = ToolShape::Mcp { server: ToolName::new(server).unwrap() };
            agent("Ops", [gated_as(shape, "delete", &deleted)])
        };
        let (files, mail) = (of("files"), of("mail"));
        let runner = Runner::in_memory(ScriptedModel::new([delete("call_1", "a"), Reply::text("Done.")]));
        let paused = runner.run(&files, "go").await.unwrap();
        let mut state = runner.state(&files, paused.run_id()).await.unwrap();
        let pause = &paused.pauses()[0];
        if approve {
            state.approve(pause).unwrap()
        } else {
            state.deny(pause).unwrap()
        };
        let json = state.to_json();
        assert_eq!(RunState::from_json(&mail, &json).unwrap_err().code(), "tool_missing");
        assert_eq!(runner.resume(&mail, paused.run_id()).await.unwrap_err().code(), "tool_missing");
        let state = RunState::from_json(&files, &json).unwrap();
        assert_eq!(text_of(&runner.resume_state(&files, state).await.unwrap()), "Done.");
        assert_eq!(deleted.count(), u32::from(approve));
    }
}

// Replies that use an id for something else.

#[tokio::test]
async fn other_arguments_under_a_used_id_refuse_the_whole_reply() {
    let replies = [
        delete("call_1", "a"),
        Reply::call("look", json!({})).and_call_as("call_1", "delete", json!({"path": "/"})),
        Reply::text("Done."),
    ];
    let desk = desk(replies);
    let done = desk.approve(&desk.start().await).await;
    assert_eq!(text_of(&done), "Done.");
    assert_eq!((desk.deleted.count(), desk.looked.count()), (1, 0), "no sibling ran either");
    assert_eq!(refused_replies(&desk.runner, done.run_id()).await, ["call_id_reused"]);
    assert_eq!(results(&desk.model), [ran("a")], "the reply is not part of the conversation");
}

#[tokio::test]
async fn a_model_that_keeps_misusing_ids_ends_the_run() {
    let misused = || delete("call_1", "/");
    let desk = desk([delete("call_1", "a"), misused(), misused(), misused(), Reply::text("Done.")]);
    let failed = desk.approve(&desk.start().await).await;
    assert!(matches!(&failed, RunOutcome::Failed { code, .. } if code == "model_misbehaved"), "{failed:?}");
    assert_eq!(desk.deleted.count(), 1);
}

#[tokio::test]
async fn a_refused_reply_asks_no_predicate_and_no_guardrail() {
    // We search for no tools at run time; whatever of the application's code looks at a call is not asked.
    let (deleted, asked) = (Effects::default(), Effects::default());
    let (by_predicate, by_guardrail) = (asked.clone(), asked.clone());
    let predicate = move |_: ToolContext, _: Value| {
        by_predicate.happen();
        async { false }
    };
    let guardrail = ToolGuardrail::new("watch", move |_, _| {
        by_guardrail.happen();
        async { CallVerdict::Pass }
    });
    let tool = counted("delete", &deleted).needs_approval_when(predicate).guardrail(guardrail).build().unwrap();
    let agent = agent("Ops", [tool]);
    let runner =
        Runner::in_memory(ScriptedModel::new([delete("call_1", "a"), delete("call_1", "/"), Reply::text("Done.")]));
    assert_eq!(text_of(&runner.run(&agent, "go").await.unwrap()), "Done.");
    assert_eq!((deleted.count(), asked.count()), (1, 2), "one predicate and one guardrail, for the first call");
}

#[tokio::test]
async fn another_tool_under_a_used_id_refuses_the_reply() {
    let changed = Reply::empty().and_call_as("call_1", "look", json!({"path": "a"}));
    let desk = desk([delete("call_1", "a"), changed, Reply::text("Done.")]);
    let done = desk.approve(&desk.start().await).await;
    assert_eq!(text_of(&done), "Done.");
    assert_eq!((desk.deleted.count(), desk.looked.count()), (1, 0));
    assert_eq!(refused_replies(&desk.runner, done.run_id()).await, ["call_id_reused"]);
}

#[tokio::test]
async fn a_standing_rule_made_later_does_not_free_a_used_id() {
    let changed = Reply::empty().and_call_as("call_1", "look", json!({"path": "a"}));
    let desk = desk([delete("call_1", "a"), delete("call_2", "b"), changed, Reply::text("Done.")]);
    let paused = desk.approve(&desk.start().await).await;
    desk.runner.approve(&paused.pauses()[0]).always(Always::in_run()).await.unwrap();
    let done = desk.runner.resume(&desk.agent, paused.run_id()).await.unwrap();
    assert_eq!(text_of(&done), "Done.");
    assert_eq!((desk.deleted.count(), desk.looked.count()), (2, 0));
    assert_eq!(refused_replies(&desk.runner, done.run_id()).await, ["call_id_reused"]);
}

#[tokio::test]
async fn a_denial_is_bound_to_the_call_that_was_denied() {
    let desk = desk([delete("call_1", "a"), delete("call_1", "b"), delete("call_1", "a"), Reply::text("Done.")]);
    let paused = desk.start().await;
    desk.runner.deny(&paused.pauses()[0]).message("not a").await.unwrap();
    let done = desk.runner.resume(&desk.agent, paused.run_id()).await.unwrap();
    assert_eq!(text_of(&done), "Done.");
    assert_eq!(refused_replies(&desk.runner, done.run_id()).await, ["call_id_reused"], "another call is not answered");
    assert_eq!(results(&desk.model), ["not a", "not a"], "the same call is, and nobody is asked again");
    assert_eq!(desk.deleted.count(), 0);
}

#[tokio::test]
async fn an_exact_repeat_of_a_call_gets_the_same_outcome_and_runs_nothing() {
    let desk = desk([delete("call_1", "a"), delete("call_1", "a"), Reply::text("Done.")]);
    let done = desk.approve(&desk.start().await).await;
    assert_eq!(text_of(&done), "Done.");
    assert_eq!(results(&desk.model), [ran("a"), ran("a")]);
    assert_eq!(desk.deleted.count(), 1);
}

#[tokio::test]
async fn an_exact_repeat_within_one_reply_is_one_call() {
    let twice = delete("call_1", "a").and_call_as("call_1", "delete", json!({"path": "a"}));
    let desk = desk([twice, Reply::text("Done.")]);
    assert_eq!(text_of(&desk.approve(&desk.start().await).await), "Done.");
    assert_eq!(results(&desk.model), [ran("a")]);
    assert_eq!(desk.deleted.count(), 1);
}

#[tokio::test]
async fn what_was_done_is_known_from_the_journal_alone() {
    for shape in families() {
        let replies = [delete("call_1", "a"), delete("call_2", "b"), delete("call_1", "a"), Reply::text("Done.")];
        let desk = desk_as(shape, replies);
        let paused = desk.approve(&desk.start().await).await;
        let json = saved(&desk.runner, &desk.agent, &paused).await;
        let mut state = RunState::from_json(&desk.agent, &json).unwrap();
        let pause = state.pauses().remove(0);
        state.approve(&pause).unwrap();
        let done = Runner::in_memory(desk.model.clone()).resume_state(&desk.agent, state).await.unwrap();
        assert_eq!(text_of(&done), "Done.");
        assert_eq!(results(&desk.model), [ran("a"), ran("b"), ran("a")]);
        assert_eq!(desk.deleted.count(), 2, "the repeat after the restart ran nothing");
    }
}

#[tokio::test]
async fn a_changed_repeat_after_a_restart_is_refused() {
    for shape in families() {
        let replies = [delete("call_1", "a"), delete("call_2", "b"), delete("call_1", "/"), Reply::text("Done.")];
        let desk = desk_as(shape, replies);
        let paused = desk.approve(&desk.start().await).await;
        let json = saved(&desk.runner, &desk.agent, &paused).await;
        let mut state = RunState::from_json(&desk.agent, &json).unwrap();
        let pause = state.pauses().remove(0);
        state.deny(&pause).unwrap();
        let elsewhere = Runner::in_memory(desk.model.clone());
        let done = elsewhere.resume_state(&desk.agent, state).await.unwrap();
        assert_eq!(text_of(&done), "Done.");
        assert_eq!(refused_replies(&elsewhere, done.run_id()).await, ["call_id_reused"]);
        assert_eq!(desk.deleted.count(), 1);
    }
}

#[tokio::test]
async fn a_call_without_an_id_refuses_the_whole_reply() {
    let long = "x".repeat(257);
    for id in ["", &long] {
        let nameless = Reply::call("look", json!({})).and_call_as(id, "look", json!({"path": "a"}));
        let desk = desk([nameless, Reply::text("Done.")]);
        let done = desk.runner.run(&desk.agent, "go").await.unwrap();
        assert_eq!(text_of(&done), "Done.");
        assert_eq!(refused_replies(&desk.runner, done.run_id()).await, ["call_id_empty"]);
        assert_eq!(desk.looked.count(), 0, "no sibling ran either");
    }
}

// Outcomes that do not fit what is recorded.

#[tokio::test]
async fn a_call_whose_outcome_was_taken_out_is_refused() {
    let (desk, _, json) = one_done_one_held().await;
    // The next turn shows that it had an outcome: a document without it would run the call again.
    let lacking = tampered(&json, |events| drop(events.remove(place(events, "call.answered"))));
    assert_eq!(refusal(&desk, &lacking), "state_corrupt");
    let without_start = tampered(&lacking, |events| drop(events.remove(place(events, "call.started"))));
    assert_eq!(refusal(&desk, &without_start), "state_corrupt");
}

#[tokio::test]
async fn an_outcome_of_a_call_that_nobody_asked_for_is_refused() {
    let (desk, _, json) = one_done_one_held().await;
    let outcome = |call: &str| json!({"call.answered": {"call": call, "outcome": {"result": {"text": "done"}}}});
    for call in ["1.0", "1.1", "2.1", "3.0", "2.0/1.0"] {
        let changed = tampered(&json, |events| events.push(outcome(call)));
        assert_eq!(refusal(&desk, &changed), "state_corrupt", "{call}");
    }
    assert_eq!(refusal(&desk, &tampered(&json, |events| events.push(outcome("2.0")))), "state_corrupt", "it is held");
}

#[tokio::test]
async fn a_repeat_that_names_no_earlier_call_is_refused() {
    type Change = fn(&mut Value);
    let repeat =
        || [delete("call_1", "a"), delete("call_1", "a").and_call_as("call_2", "delete", json!({"path": "b"}))];
    let desk = desk(repeat());
    let paused = desk.approve(&desk.start().await).await;
    let json = saved(&desk.runner, &desk.agent, &paused).await;
    let second = |events: &mut Vec<Value>, change: Change| {
        let at = events.iter().rposition(|event| event.get("model.replied").is_some()).unwrap();
        change(&mut events[at]["model.replied"]["calls"]);
    };
    let changes: [(&str, Change); 4] = [
        ("no record of the repeat", |calls| drop(calls[0].as_object_mut().unwrap().remove("repeats"))),
        ("another call", |calls| calls[0]["repeats"] = json!("2.1")),
        ("a repeat of nothing", |calls| calls[1]["repeats"] = json!("1.0")),
        ("other arguments", |calls| calls[0]["arguments"] = json!({"path": "/"})),
    ];
    assert_eq!(refusal(&desk, &tampered(&json, |events| second(events, |_| {}))), "accepted");
    for (what, change) in changes {
        assert_eq!(refusal(&desk, &tampered(&json, |events| second(events, change))), "state_corrupt", "{what}");
    }
}

#[tokio::test]
async fn an_outcome_moved_to_another_call_or_agent_is_refused() {
    let replies = [Reply::calls([("delete", json!({"path": "a"})), ("delete", json!({"path": "b"}))])];
    let deleted = Effects::default();
    let agent = agent("Ops", [gated(&deleted)]);
    let runner = Runner::in_memory(ScriptedModel::new(replies));
    let paused = runner.run(&agent, "go").await.unwrap();
    runner.approve(&paused.pauses()[0]).await.unwrap();
    let paused = runner.resume(&agent, paused.run_id()).await.unwrap();
    let json = saved(&runner, &agent, &paused).await;
    for place_of in ["1.1", "1.2", "1.0/1.0"] {
        let moved = tampered(&json, |events| {
            let at = place(events, "call.answered");
            events[at]["call.answered"]["call"] = json!(place_of);
        });
        assert_eq!(RunState::from_json(&agent, &moved).unwrap_err().code(), "state_corrupt", "{place_of}");
    }
    // An outcome that no tool gives: the call was started, so nobody can say that it was denied.
    let denied = tampered(&json, |events| {
        let at = place(events, "call.answered");
        events[at]["call.answered"]["outcome"] = json!({"denied": "no"});
    });
    assert_eq!(RunState::from_json(&agent, &denied).unwrap_err().code(), "state_corrupt");
    assert_eq!(deleted.count(), 1);
}

#[tokio::test]
async fn a_restored_call_runs_the_tool_of_its_own_agent() {
    let (first, second) = (Effects::default(), Effects::default());
    let build = || relay(gated(&first), gated(&second));
    let model =
        ScriptedModel::new([Reply::call("transfer_to_second", json!({})), delete("call_1", "a"), Reply::text("Done.")]);
    let (then, now) = (build(), build());
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&then, "go").await.unwrap();
    let mut state = RunState::from_json(&now, &saved(&runner, &then, &paused).await).unwrap();
    state.approve(&paused.pauses()[0]).unwrap();
    assert_eq!(text_of(&Runner::in_memory(model).resume_state(&now, state).await.unwrap()), "Done.");
    assert_eq!((first.count(), second.count()), (0, 1));
}

#[tokio::test]
async fn a_restored_call_runs_the_code_that_stands_under_its_tools_name_now() {
    let (then, now) = (Effects::default(), Effects::default());
    let model = ScriptedModel::new([delete("call_1", "a"), Reply::text("Done.")]);
    let runner = Runner::in_memory(model.clone());
    let old = agent("Ops", [gated(&then)]);
    let paused = runner.run(&old, "go").await.unwrap();
    // The application wires its tools anew in every process; the function is another object, the definition is equal.
    let new = agent("Ops", [gated(&then).rebuild().runner(Echo { effects: now.clone() }).build().unwrap()]);
    let mut state = RunState::from_json(&new, &saved(&runner, &old, &paused).await).unwrap();
    state.approve(&paused.pauses()[0]).unwrap();
    assert_eq!(text_of(&Runner::in_memory(model).resume_state(&new, state).await.unwrap()), "Done.");
    assert_eq!((then.count(), now.count()), (0, 1));
}

#[tokio::test]
async fn a_large_argument_stands_once_in_the_document() {
    let quiet = |deleted: &Effects| {
        let deleted = deleted.clone();
        let run = move |_: ToolContext, _: Payload| {
            deleted.happen();
            async { "ok" }
        };
        Tool::builder("delete").needs_approval(true).function(run).unwrap()
    };
    let sizes = |bytes: usize| async move {
        let deleted = Effects::default();
        let agent = agent("Ops", [quiet(&deleted)]);
        let call = |id: &str, text: String| Reply::empty().and_call_as(id, "delete", json!({ "path": text }));
        let replies = [call("call_1", "x".repeat(bytes)), call("call_2", "y".to_owned())];
        let runner = Runner::in_memory(ScriptedModel::new(replies));
        let paused = runner.run(&agent, "go").await.unwrap();
        let held = saved(&runner, &agent, &paused).await.len();
        runner.approve(&paused.pauses()[0]).await.unwrap();
        let approved = saved(&runner, &agent, &paused).await.len();
        let paused = runner.resume(&agent, paused.run_id()).await.unwrap();
        assert_eq!(deleted.count(), 1);
        (held, approved, saved(&runner, &agent, &paused).await.len())
    };
    let (small, large) = (sizes(1).await, sizes(10_001).await);
    let growth = (large.0 - small.0, large.1 - small.1, large.2 - small.2);
    assert_eq!(growth, (10_000, 10_000, 10_000), "held, approved, done: one copy");
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Payload {
    #[allow(dead_code)] // Only its size matters.
    path: String,
}

#[tokio::test]
async fn what_was_done_is_known_after_a_handover_and_back() {
    let deleted = Effects::default();
    let (first, second) = (agent("First", [gated(&deleted)]), agent("Second", []));
    first.link_handoff(&second).unwrap();
    second.link_handoff(&first).unwrap();
    let handover = |to: &str| Reply::call(format!("transfer_to_{to}"), json!({}));
    let replies =
        [delete("call_1", "a"), handover("second"), handover("first"), delete("call_1", "a"), Reply::text("Done.")];
    let runner = Runner::in_memory(ScriptedModel::new(replies));
    let paused = runner.run(&first, "go").await.unwrap();
    runner.approve(&paused.pauses()[0]).await.unwrap();
    assert_eq!(text_of(&runner.resume(&first, paused.run_id()).await.unwrap()), "Done.");
    assert_eq!(deleted.count(), 1);
}

#[tokio::test]
async fn a_shell_decision_is_bound_to_the_command() {
    let ran = Effects::default();
    let agent = agent("Ops", [gated_as(ToolShape::Shell, "shell", &ran)]);
    let model = ScriptedModel::new([Reply::call("shell", json!({"command": "ls"})), Reply::text("Done.")]);
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&agent, "go").await.unwrap();
    let mut shown = paused.pauses()[0].clone();
    let other = CanonicalJson::from_serialize(&json!({"command": "rm -rf /"})).unwrap();
    shown.call.as_mut().unwrap().arguments = other.clone();
    assert_eq!(runner.approve(&shown).await.unwrap_err().code(), "stale_view");
    assert_eq!(runner.approve(paused.pauses()[0].id()).seeing(other.digest()).await.unwrap_err().code(), "stale_view");
    assert_eq!(ran.count(), 0);
    runner.approve(&paused.pauses()[0]).await.unwrap();
    assert_eq!(text_of(&runner.resume(&agent, paused.run_id()).await.unwrap()), "Done.");
    assert_eq!(results(&model), [r#"shell ran with {"command":"ls"}"#]);
}

#[tokio::test]
async fn a_tool_that_ran_before_the_model_failed_is_not_run_again() {
    let desk = desk([delete("call_1", "a"), Reply::text("Done.").after_faults(2, "overloaded")]);
    let paused = desk.start().await;
    let mut state = desk.runner.state(&desk.agent, paused.run_id()).await.unwrap();
    state.approve(&paused.pauses()[0]).unwrap();
    let kept = state.to_json();
    let error = desk.runner.resume_state(&desk.agent, state).await.unwrap_err();
    assert_eq!(error.code(), "model_unavailable");
    assert_eq!(desk.deleted.count(), 1);
    // There, a retry of the stored snapshot runs the tool again; here the store knows better.
    let old = RunState::from_json(&desk.agent, &kept).unwrap();
    assert_eq!(desk.runner.resume_state(&desk.agent, old).await.unwrap_err().code(), "state_stale");
    let error = desk.runner.resume(&desk.agent, paused.run_id()).await.unwrap_err();
    assert_eq!(error.code(), "model_unavailable");
    let done = desk.runner.resume(&desk.agent, paused.run_id()).await.unwrap();
    assert_eq!(text_of(&done), "Done.");
    assert_eq!(desk.deleted.count(), 1);
}
