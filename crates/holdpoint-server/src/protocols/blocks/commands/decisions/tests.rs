use holdpoint_core::ids::{ActorId, AgentId, RunId};
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::time::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::protocols::blocks::from_wire::{self, Command, Given};

const APPROVAL: &[&str] = &["approve", "edit", "reject"];

fn run() -> RunId {
    "run_0198c0ffee007000800000000000beef".parse().unwrap()
}

fn ask(number: u32, name: &str) -> Ask {
    let args = CanonicalJson::parse(r#"{"n":1}"#).unwrap();
    Ask {
        pause: PauseId { run: run(), number },
        agent: AgentId::root("trader").unwrap(),
        tool_use_id: Some(format!("toolu_{number}")),
        name: name.to_owned(),
        args_sha256: Some(args.digest()),
        args,
        questions: Vec::new(),
        allowed: APPROVAL,
        approvals_needed: 1,
        opened_at: Timestamp::from_millis(0),
        expires_at: None,
        rule: None,
        reason: None,
        state: AskState::Open,
    }
}

fn two() -> Vec<Ask> {
    vec![ask(1, "buy"), ask(2, "sell")]
}

fn given(decisions: Value) -> Vec<GivenDecision> {
    let command = json!({"type": "approval", "session_id": "s", "approval_key": "s_1", "decisions": decisions});
    match from_wire::command(&command.to_string(), None).command {
        Ok(Command::Approval(from_wire::Approval { given: Given::Decisions(decisions), .. })) => decisions,
        other => panic!("decisions expected: {other:?}"),
    }
}

/// A pause's number, its decision by name, and how that was given.
type Told = (u32, &'static str, Manner);

fn rulings(asks: &[Ask], decisions: Value) -> Result<Vec<Told>, (&'static str, String)> {
    match read(asks, None, &given(decisions), None) {
        Ok(read) => {
            let told = |ruling: &Ruling| (ruling.pause.number, ruling.decision.name(), ruling.manner);
            Ok(read.open.iter().map(told).collect())
        }
        Err(refused) => Err((refused.code.name(), refused.message)),
    }
}

#[track_caller]
fn refuses(asks: &[Ask], decisions: Value, code: &str, part: &str) {
    let (found, message) = rulings(asks, decisions).unwrap_err();
    assert_eq!(found, code, "{message}");
    assert!(message.contains(part), "{message}");
}

#[test]
fn there_is_one_decision_for_each_action_in_order() {
    let decisions = json!([{"type": "approve"}, {"type": "reject", "message": "no"}]);
    let expected = vec![(1, "approve", Manner::Given), (2, "deny", Manner::Given)];
    assert_eq!(rulings(&two(), decisions), Ok(expected));
    refuses(&two(), json!([{"type": "approve"}, {"type": "approve"}, {"type": "approve"}]), "bad_decisions", "3 dec");
}

#[test]
fn what_is_missing_is_filled_with_the_first_and_recorded_as_implied() {
    let decisions = json!([{"type": "reject"}]);
    let expected = vec![(1, "deny", Manner::Given), (2, "deny", Manner::Implied)];
    assert_eq!(rulings(&two(), decisions), Ok(expected));
}

#[test]
fn an_edit_is_never_copied() {
    let edit = json!({"type": "edit", "edited_action": {"name": "buy", "args": {"n": 2}}});
    refuses(&two(), json!([edit]), "bad_decisions", "never copied");
    let one = vec![ask(1, "buy")];
    assert_eq!(rulings(&one, json!([edit])), Ok(vec![(1, "approve_edited", Manner::Given)]));
}

#[test]
fn another_tools_name_or_a_decision_of_another_kind_is_not_allowed() {
    let one = vec![ask(1, "buy")];
    let other = json!([{"type": "edit", "edited_action": {"name": "sell", "args": {}}}]);
    refuses(&one, other, "not_allowed", "must stay \"buy\"");
    let mut unchangeable = one.clone();
    unchangeable[0].allowed = &["approve", "reject"];
    let edit = json!([{"type": "edit", "edited_action": {"name": "buy", "args": {}}}]);
    refuses(&unchangeable, edit, "not_allowed", "allowed: approve, reject");
    for stranger in [json!({"type": "run_again"}), json!({"type": "respond", "message": "done"})] {
        refuses(&one, json!([stranger]), "bad_decisions", "allowed: approve, edit, reject");
    }
    let listed = json!([{"type": "edit", "edited_action": {"name": "buy", "args": [1]}}]);
    refuses(&one, listed, "invalid_args", "an object expected");
}

#[test]
fn a_stale_screen_is_refused() {
    let digest = two()[0].args_sha256.unwrap().to_string();
    let fits = json!([{"type": "approve", "tool_use_id": "toolu_1", "args_sha256": digest}, {"type": "approve"}]);
    assert!(rulings(&two(), fits).is_ok());
    refuses(&two(), json!([{"type": "approve", "tool_use_id": "toolu_2"}]), "bad_decisions", "another call");
    let other = Digest::of(b"{}").to_string();
    refuses(&two(), json!([{"type": "approve", "args_sha256": other}]), "bad_decisions", "other arguments");
}

#[test]
fn what_was_decided_elsewhere_is_passed_over_where_it_agrees_and_refuses_all_where_it_does_not() {
    let mut partly = two();
    partly[1].state = AskState::Decided {
        decision: Decision::deny("no"),
        by: ActorId::new("ana").unwrap(),
        at: Timestamp::from_millis(5),
        manner: Manner::Given,
    };
    let agreeing = json!([{"type": "approve"}, {"type": "reject"}]);
    assert_eq!(rulings(&partly, agreeing), Ok(vec![(1, "approve", Manner::Given)]));
    refuses(&partly, json!([{"type": "approve"}, {"type": "approve"}]), "already_decided", "reject by ana");
    // What is copied is meant for those that are open.
    assert_eq!(rulings(&partly, json!([{"type": "approve"}])), Ok(vec![(1, "approve", Manner::Given)]));
}

#[test]
fn a_note_goes_beside_the_decision() {
    let one = vec![ask(1, "buy")];
    let read = read(&one, None, &given(json!([{"type": "approve"}])), Some("only 50")).unwrap();
    assert_eq!(read.note.as_deref(), Some("only 50"));
    assert_eq!(read.open[0].decision, Decision::Approve);
}
