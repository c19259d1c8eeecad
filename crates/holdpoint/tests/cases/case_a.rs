//! Group A: what decisions and standing rules speak of, and which of them counts.

use crate::common::journal::*;
use crate::common::*;
use holdpoint::*;
use serde_json::{Value, json};

fn delete(path: &str) -> (&'static str, Value) {
    ("delete", json!({"path": path}))
}

/// A reply with one call of `delete`.
fn deletes(path: &str) -> Reply {
    Reply::calls([delete(path)])
}

struct Desk {
    runner: Runner,
    model: ScriptedModel,
    agent: Agent,
    effects: Effects,
}

/// One agent with the gated tool `delete`, and what its model says.
fn desk(replies: impl IntoIterator<Item = Reply>) -> Desk {
    let effects = Effects::default();
    let model = ScriptedModel::new(replies);
    let runner = Runner::in_memory(model.clone());
    Desk { agent: agent("Ops", [gated(&effects)]), runner, model, effects }
}

impl Desk {
    async fn start(&self) -> RunOutcome {
        self.runner.run(&self.agent, "clean up").await.unwrap()
    }

    async fn go_on(&self, outcome: &RunOutcome) -> RunOutcome {
        self.runner.resume(&self.agent, outcome.run_id()).await.unwrap()
    }
}

#[tokio::test]
async fn each_call_of_a_turn_is_decided_on_its_own() {
    let desk = desk([Reply::calls([delete("a"), delete("b")]), Reply::text("Done.")]);
    let paused = desk.start().await;
    let [first, second] = paused.pauses() else { panic!("{paused:?}") };
    let yes = desk.runner.approve(first).by("ana").await.unwrap();
    let no = desk.runner.deny(second).by("ben").await.unwrap();
    let decision = |pause: &Pause| match &pause.state {
        PauseState::Decided(decided) => (decided.decision.clone(), decided.by.to_string()),
        other => panic!("{other:?}"),
    };
    assert_eq!(decision(&yes.pause), (Decision::Approve, "ana".to_owned()));
    assert_eq!(decision(&no.pause), (Decision::Deny { message: None }, "ben".to_owned()));
    assert_eq!(text_of(&desk.go_on(&paused).await), "Done.");
    assert_eq!(results(&desk.model), [r#"delete ran with {"path":"a"}"#, DENIED_TEXT]);
    assert_eq!(desk.effects.count(), 1);
}

#[tokio::test]
async fn a_standing_denial_answers_every_later_call_of_the_tool() {
    let desk = desk([deletes("a"), Reply::calls([delete("b"), delete("c")]), deletes("d"), Reply::text("Done.")]);
    let paused = desk.start().await;
    desk.runner.deny(&paused.pauses()[0]).always(Always::in_run()).await.unwrap();
    assert_eq!(text_of(&desk.go_on(&paused).await), "Done.");
    assert_eq!(results(&desk.model), [DENIED_TEXT; 4]);
    assert_eq!(desk.effects.count(), 0);
}

#[tokio::test]
async fn a_denial_of_one_call_stands_beside_a_standing_approval_and_cannot_be_turned() {
    let desk = desk([Reply::calls([delete("a"), delete("b")]), deletes("c"), Reply::text("Done.")]);
    let paused = desk.start().await;
    let [first, second] = paused.pauses() else { panic!("{paused:?}") };
    desk.runner.approve(first).always(Always::in_run()).await.unwrap();
    desk.runner.deny(second).message("keep b").await.unwrap();
    // There the last answer wins; here the first one stands, and the second is told so.
    let error = desk.runner.approve(second).await.unwrap_err();
    assert_eq!(error.code(), "already_decided");
    assert_eq!(text_of(&desk.go_on(&paused).await), "Done.");
    let shown = results(&desk.model);
    assert_eq!(shown, [r#"delete ran with {"path":"a"}"#, "keep b", r#"delete ran with {"path":"c"}"#]);
    assert_eq!(desk.effects.count(), 2);
}

#[tokio::test]
async fn an_approval_of_one_call_stands_beside_a_standing_denial_and_cannot_be_turned() {
    let desk = desk([Reply::calls([delete("a"), delete("b")]), deletes("c"), Reply::text("Done.")]);
    let paused = desk.start().await;
    let [first, second] = paused.pauses() else { panic!("{paused:?}") };
    desk.runner.deny(first).message("hands off").always(Always::in_run()).await.unwrap();
    desk.runner.approve(second).await.unwrap();
    let error = desk.runner.deny(second).await.unwrap_err();
    assert_eq!(error.code(), "already_decided");
    assert_eq!(text_of(&desk.go_on(&paused).await), "Done.");
    assert_eq!(results(&desk.model), ["hands off", r#"delete ran with {"path":"b"}"#, "hands off"]);
    assert_eq!(desk.effects.count(), 1);
}

#[tokio::test]
async fn a_rule_speaks_only_of_the_agent_whose_call_it_was_made_for() {
    let (of_first, of_second) = (Effects::default(), Effects::default());
    let agent = relay(gated(&of_first), gated(&of_second));
    let replies = [deletes("a"), deletes("b"), Reply::call("transfer_to_second", json!({})), deletes("c")];
    let runner = Runner::in_memory(ScriptedModel::new(replies));
    let paused = runner.run(&agent, "go").await.unwrap();
    runner.approve(&paused.pauses()[0]).always(Always::in_run()).await.unwrap();
    let paused = runner.resume(&agent, paused.run_id()).await.unwrap();
    assert_eq!(paused.pauses().len(), 1, "{paused:?}");
    assert_eq!(paused.pauses()[0].agent.as_str(), "First/transfer_to_second");
    assert_eq!((of_first.count(), of_second.count()), (2, 0));
}

/// Makes a rule for every agent at the first agent's tool, hands over, and says how the second agent's tool fares.
async fn leaks(first: Tool, second: Tool, deny: bool) -> bool {
    let call = |tool: &Tool| Reply::call(tool.name().to_string(), json!({"path": "x"}));
    let replies = [call(&first), Reply::call("transfer_to_second", json!({})), call(&second), Reply::text("Done.")];
    let agent = relay(first, second);
    let runner = Runner::in_memory(ScriptedModel::new(replies));
    let paused = runner.run(&agent, "go").await.unwrap();
    let always = Always::in_run().any_agent();
    let pause = &paused.pauses()[0];
    let decide = if deny { runner.deny(pause) } else { runner.approve(pause) };
    decide.always(always).await.unwrap();
    !runner.resume(&agent, paused.run_id()).await.unwrap().is_paused()
}

#[tokio::test]
async fn a_rule_about_a_shell_patch_or_screen_never_speaks_of_a_function_of_the_same_name() {
    for shape in [ToolShape::Shell, ToolShape::ApplyPatch, ToolShape::Computer] {
        for deny in [false, true] {
            let effects = Effects::default();
            let special = || gated_as(shape.clone(), "delete", &effects);
            assert!(!leaks(special(), gated(&effects), deny).await);
            assert!(!leaks(gated(&effects), special(), deny).await);
            // The same family under the same name is the same tool: the table above can fail.
            assert!(leaks(special(), special(), deny).await);
        }
    }
}

#[tokio::test]
async fn a_plain_tool_and_one_of_a_server_keep_separate_rules() {
    // We load no tools lazily; a tool that somebody else provides is one of an MCP server.
    let effects = Effects::default();
    let of = |server: &str| ToolShape::Mcp { server: ToolName::new(server).unwrap() };
    let served = |server: &str| gated_as(of(server), "delete", &effects);
    assert!(!leaks(gated(&effects), served("files"), false).await);
    assert!(!leaks(served("files"), gated(&effects), false).await);
    assert!(!leaks(served("files"), served("mail"), false).await);
    assert!(leaks(served("files"), served("files"), false).await);
}

#[tokio::test]
async fn a_dotted_name_is_not_a_server_and_a_tool() {
    let effects = Effects::default();
    let dotted = || counted("files.delete", &effects).needs_approval(true).build().unwrap();
    let served = || gated_as(ToolShape::Mcp { server: ToolName::new("files").unwrap() }, "delete", &effects);
    assert!(!leaks(dotted(), served(), false).await);
    assert!(!leaks(served(), dotted(), false).await);
    assert!(leaks(dotted(), dotted(), false).await);
}

#[tokio::test]
async fn a_standing_approval_made_later_never_undoes_a_denial() {
    for apply in [false, true] {
        let desk = desk([Reply::calls([delete("a"), delete("b"), delete("c")]), Reply::text("Done.")]);
        let paused = desk.start().await;
        let [first, second, third] = paused.pauses() else { panic!("{paused:?}") };
        desk.runner.deny(second).message("b is precious").await.unwrap();
        let always = if apply { Always::in_run().apply_to_open() } else { Always::in_run() };
        desk.runner.approve(first).always(always).await.unwrap();
        if !apply {
            desk.runner.approve(third).await.unwrap();
        }
        assert_eq!(text_of(&desk.go_on(&paused).await), "Done.");
        assert_eq!(results(&desk.model)[1], "b is precious");
        assert_eq!(desk.effects.count(), 2);
    }
}

#[tokio::test]
async fn a_denial_without_words_borrows_those_of_a_rule_about_the_same_tool_and_agent_only() {
    let (first, second) = (Effects::default(), Effects::default());
    let agent = relay(gated(&first), gated(&second));
    let replies = [
        Reply::calls([delete("a"), delete("b")]),
        Reply::call("transfer_to_second", json!({})),
        deletes("c"),
        Reply::text("Done."),
    ];
    let model = ScriptedModel::new(replies);
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&agent, "go").await.unwrap();
    runner.deny(&paused.pauses()[0]).message("frozen").always(Always::in_run()).await.unwrap();
    runner.deny(&paused.pauses()[1]).await.unwrap();
    let paused = runner.resume(&agent, paused.run_id()).await.unwrap();
    runner.deny(&paused.pauses()[0]).await.unwrap();
    runner.resume(&agent, paused.run_id()).await.unwrap();
    let shown = results(&model);
    assert_eq!((shown[0].as_str(), shown[1].as_str()), ("frozen", "frozen"));
    assert_eq!(shown[3], DENIED_TEXT);
    assert_eq!(first.count() + second.count(), 0);
}

#[tokio::test]
async fn the_words_of_a_standing_denial_are_said_again_for_later_calls() {
    let desk = desk([deletes("a"), deletes("b"), Reply::text("Done.")]);
    let paused = desk.start().await;
    desk.runner.deny(&paused.pauses()[0]).message("nothing is deleted").always(Always::in_run()).await.unwrap();
    assert_eq!(text_of(&desk.go_on(&paused).await), "Done.");
    assert_eq!(results(&desk.model), ["nothing is deleted"; 2]);
}

#[tokio::test]
async fn decisions_and_rules_are_the_same_after_a_trip_through_json() {
    let desk = desk([Reply::calls([delete("a"), delete("b"), delete("c")])]);
    let paused = desk.start().await;
    let [first, second, _] = paused.pauses() else { panic!("{paused:?}") };
    let only = Constraint::starts_with("/path", "tmp/");
    desk.runner.approve(first).by("ana").via("terminal").always(Always::in_session().only(only)).await.unwrap();
    desk.runner.deny(second).by("ben").message("no").await.unwrap();
    let before = desk.runner.state(&desk.agent, paused.run_id()).await.unwrap();
    let after = RunState::from_json(&desk.agent, &before.to_json()).unwrap();
    assert_eq!(after.all_pauses(), before.all_pauses());
    assert_eq!(after.run().rules(), before.run().rules());
    assert_eq!(after.run(), before.run());
    assert_eq!(after.pauses().len(), 1);
}

#[tokio::test]
async fn a_merged_context_keeps_the_decisions_and_takes_more() {
    let desk = desk([Reply::calls([delete("a"), delete("b")]), Reply::text("Done.")]);
    let paused = desk.start().await;
    let [first, second] = paused.pauses() else { panic!("{paused:?}") };
    desk.runner.approve(first).by("ana").await.unwrap();
    let json = saved(&desk.runner, &desk.agent, &paused).await;
    let given = Context::new(&json!({"user": "eva"})).unwrap();
    let mut state = RunState::from_json_with_context(&desk.agent, &json, given, ContextStrategy::Merge).unwrap();
    state.deny_with(second, "not b").unwrap();
    let kept = state.all_pauses()[0].clone();
    assert!(matches!(&kept.state, PauseState::Decided(by) if by.by.as_str() == "ana"), "{kept:?}");
    assert_eq!(text_of(&desk.runner.resume_state(&desk.agent, state).await.unwrap()), "Done.");
    assert_eq!(results(&desk.model), [r#"delete ran with {"path":"a"}"#, "not b"]);
    assert_eq!(desk.effects.count(), 1);
}

#[tokio::test]
async fn two_copies_that_were_decided_apart_are_never_united_silently() {
    let desk = desk([Reply::calls([delete("a"), delete("b")]), Reply::text("Done.")]);
    let paused = desk.start().await;
    let [first, second] = paused.pauses() else { panic!("{paused:?}") };
    let mut copy = desk.runner.state(&desk.agent, paused.run_id()).await.unwrap();
    copy.approve(second).unwrap();
    desk.runner.deny(first).await.unwrap();
    let error = desk.runner.resume_state(&desk.agent, copy).await.unwrap_err();
    assert_eq!(error.code(), "state_stale");
    let paused = desk.go_on(&paused).await;
    assert_eq!(paused.pauses().len(), 1, "the decision in the store stands, the other was never made");
    assert_eq!(desk.effects.count(), 0);
}

#[tokio::test]
async fn an_inner_agent_shares_rules_and_cost_and_has_its_own_input() {
    let effects = Effects::default();
    let inner = agent("Inner", [gated(&effects)]);
    let outer = agent("Outer", [inner.as_tool("ask_inner", "Asks.").build().unwrap()]);
    let cost = |reply: Reply| reply.costing(Usage::request(10, 1));
    let ask = |input: &str| cost(Reply::call("ask_inner", json!({"input": input})));
    let model = ScriptedModel::new([ask("first job"), ask("second job"), cost(Reply::text("All done."))])
        .for_agent("ask_inner", [cost(deletes("x")), cost(Reply::text("inner done"))]);
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&outer, "a secret plan").await.unwrap();
    runner.approve(&paused.pauses()[0]).always(Always::in_run()).await.unwrap();
    let done = runner.resume(&outer, paused.run_id()).await.unwrap();
    let RunOutcome::Done(done) = done else { panic!("the rule covers the second job: {done:?}") };
    assert_eq!(done.usage, Usage { requests: 7, input_tokens: 70, output_tokens: 7 });
    assert_eq!(effects.count(), 2);
    let inputs: Vec<String> = model
        .requests()
        .iter()
        .filter(|request| !request.frame.is_root() && request.turn == 1)
        .map(|request| match &*request.items[0] {
            Item::User(content) => content.to_text(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(inputs, ["first job", "second job"]);
}

#[tokio::test]
async fn an_inner_agent_is_not_shown_what_the_outer_one_was_told() {
    let inner = agent("Inner", []);
    let outer = agent("Outer", [inner.as_tool("ask_inner", "Asks.").build().unwrap()]);
    let model = ScriptedModel::new([Reply::call("ask_inner", json!({"input": "count"})), Reply::text("Done.")])
        .for_agent("ask_inner", [Reply::text("3")]);
    Runner::in_memory(model.clone()).run(&outer, "a secret plan").await.unwrap();
    let of_inner: Vec<_> = model.requests().into_iter().filter(|request| !request.frame.is_root()).collect();
    assert_eq!(of_inner.len(), 1);
    assert_eq!(of_inner[0].items.len(), 1, "{:?}", of_inner[0].items);
    assert!(!format!("{:?}", of_inner[0].items).contains("secret"));
}
