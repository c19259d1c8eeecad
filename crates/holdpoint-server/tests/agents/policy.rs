//! Policy files and tools' own rules together: the most restrictive verdict wins.

use std::time::SystemTime;

use holdpoint_core::decision::Decision;

use crate::bench::{Bench, agent, calls, echo, later, output, pause, waits_seconds};

fn bench(approval: &str, rules: &str) -> Bench {
    let bench = Bench::new(&[
        ("a.yaml", &agent("a", &format!("  tools:\n{}", echo("pay", "paid", approval)))),
        ("a.json", &calls("pay", r#"{"amount": 700}"#)),
    ]);
    if !rules.is_empty() {
        bench.write("policies/rules.yaml", &format!("rules:\n{rules}"));
    }
    bench
}

const DENY: &str =
    "  - { name: cap, match: { tool: pay }, when: \"args.amount > 500\", verdict: deny, message: too much }\n";
const HOLD: &str = "  - { name: two eyes, match: { tool: \"p*\" }, verdict: hold, message: look twice, timeout_seconds: 30, quorum: 2, approvers: [ben, eve] }\n";
const ALLOW: &str = "  - { name: free, match: { agent: a }, verdict: allow }\n";

#[tokio::test]
async fn a_rule_that_allows_lets_a_tool_run_that_says_nothing_itself() {
    let bench = bench("", ALLOW);
    let run = bench.start(&bench.open().unwrap(), "a", "go").await;
    assert_eq!(output(&run), r#"paid {"amount":700}"#);
}

#[tokio::test]
async fn a_tool_that_must_be_held_is_held_whatever_a_rule_allows() {
    let bench = bench("      approval: required\n", ALLOW);
    assert_eq!(
        pause(&bench.start(&bench.open().unwrap(), "a", "go").await).pause.terms.rule.as_deref(),
        Some("tool:pay")
    );
}

#[tokio::test]
async fn a_rule_that_denies_tells_the_model_its_words() {
    let bench = bench("      approval: never\n", &format!("{DENY}{ALLOW}"));
    let run = bench.start(&bench.open().unwrap(), "a", "go").await;
    assert_eq!(output(&run), "too much");
}

#[tokio::test]
async fn a_hold_carries_its_terms_to_the_pause() {
    let bench = bench("      approval: never\n", HOLD);
    let catalogue = bench.open().unwrap();
    let held = pause(&bench.start(&catalogue, "a", "go").await);
    let terms = &held.pause.terms;
    assert_eq!((terms.rule.as_deref(), terms.quorum), (Some("two eyes"), 2));
    assert_eq!(terms.approvers, ["ben", "eve"]);
    assert_eq!(held.pause.reason.as_deref(), Some("look twice"));
    assert_eq!(waits_seconds(&held), 30);
    // One of two: it waits on.
    let run = bench.decide(&catalogue, &held, Decision::Approve).await;
    assert_eq!(pause(&run).pause.approvals_missing(), 1);
}

#[tokio::test]
async fn a_condition_that_cannot_be_worked_out_holds_the_call() {
    let bench = bench("      approval: { when: \"args.missing > 1\" }\n", "");
    let held = pause(&bench.start(&bench.open().unwrap(), "a", "go").await);
    assert!(held.pause.reason.as_deref().is_some_and(|reason| reason.contains("cannot be worked out")), "{held:?}");
}

#[tokio::test]
async fn a_new_policy_counts_for_calls_from_now_on_also_in_runs_that_began_before() {
    let bench = bench("      approval: never\n", HOLD);
    let script = r#"{"replies": [
        {"calls": [{"tool": "pay", "arguments": {"amount": 1}}]},
        {"calls": [{"tool": "pay", "arguments": {"amount": 700}}]}, "{result}"]}"#;
    bench.write("a.json", script);
    bench.write("policies/rules.yaml", &format!("rules:\n{}", HOLD.replace("quorum: 2, ", "")));
    let catalogue = bench.open().unwrap();
    let held = pause(&bench.start(&catalogue, "a", "go").await);
    bench.write("policies/rules.yaml", &format!("rules:\n{DENY}"));
    catalogue.look(later());
    assert_eq!(output(&bench.decide(&catalogue, &held, Decision::Approve).await), "too much");
}

#[test]
fn a_policy_that_cannot_be_read_stops_the_start_and_later_leaves_the_old_one_standing() {
    let bad = "  - { name: x, when: \"args.(\", verdict: deny }\n";
    assert!(bench("", bad).open().is_err());
    let bench = bench("", DENY);
    let catalogue = bench.open().unwrap();
    bench.write("policies/rules.yaml", &format!("rules:\n{bad}"));
    assert!(catalogue.look(SystemTime::now()));
    assert_eq!(catalogue.rules_count(), 1);
    assert!(catalogue.diagnostics().iter().any(|problem| problem.is_error()));
}
