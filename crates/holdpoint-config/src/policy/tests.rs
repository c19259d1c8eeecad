use std::time::Duration;

use holdpoint_core::json::CanonicalJson;
use holdpoint_core::policy::OnTimeout;

use super::*;
use crate::agent::{AgentTool, BuiltinTool, Deadline, DisplaySpec, ShellConfig, ToolSource};
use crate::environment::FixedEnvironment;
use crate::folder::FolderReader;
use crate::source::Source;

fn set(rules: &str) -> PolicySet {
    let rules = if rules == "[]" { "rules: []".to_owned() } else { format!("rules:\n{rules}") };
    let source = Source::new("p.yaml", rules);
    let folder = FolderReader::new("x").check(Vec::new(), vec![source], &FixedEnvironment::empty());
    assert_eq!(folder.diagnostics, []);
    folder.policies.expect("the rules are right")
}

/// What rules say of a call, in one line.
fn said(outcome: &PolicyOutcome) -> String {
    match outcome {
        PolicyOutcome::Silent => "silent".to_owned(),
        PolicyOutcome::Allow { rules } => format!("allow by {}", rules.join(", ")),
        PolicyOutcome::Deny { rules, message } => {
            format!("deny by {}: {}", rules.join(", "), message.as_deref().unwrap_or("-"))
        }
        PolicyOutcome::Hold(hold) => {
            let deadline = match hold.deadline {
                Deadline::Default => "default".to_owned(),
                Deadline::Never => "never".to_owned(),
                Deadline::After(after) => format!("{}s", after.as_secs()),
            };
            let approvers = hold.approvers.join("+");
            format!(
                "hold by {} {deadline} x{} [{approvers}]: {}",
                hold.rule(),
                hold.quorum,
                hold.reason().unwrap_or_default()
            )
        }
    }
}

fn facts<'a>(agent: &'a str, tool: &'a str, args: &'a CanonicalJson) -> Facts<'a> {
    Facts { agent, tool, args, session: "s1", actor: "ana" }
}

fn check(rules: &str, args: &str, expected: &str) {
    let args = CanonicalJson::parse(args).unwrap();
    assert_eq!(said(&set(rules).verdict(&facts("trader", "execute_trade", &args))), expected, "{rules}");
}

#[test]
fn the_most_restrictive_verdict_wins_whatever_the_order() {
    let allow = "- { name: a, verdict: allow }";
    let hold = "- { name: h, verdict: hold }";
    let deny = "- { name: d, verdict: deny, message: no }";
    check("[]", "{}", "silent");
    check(allow, "{}", "allow by a");
    for rules in [[allow, hold, deny], [deny, hold, allow], [hold, deny, allow], [hold, allow, deny]] {
        check(&rules.join("\n"), "{}", "deny by d: no");
    }
    for rules in [[allow, hold], [hold, allow]] {
        check(&rules.join("\n"), "{}", "hold by h default x1 []: ");
    }
}

#[test]
fn rules_are_about_the_agents_and_tools_that_they_match() {
    for (matched, expected) in [
        ("{ agent: trader }", "deny by r: -"),
        ("{ agent: 'trad*', tool: 'execute_*' }", "deny by r: -"),
        ("{ agent: [x, trader] }", "deny by r: -"),
        ("{ agent: Trader }", "silent"),
        ("{ agent: trader, tool: other }", "silent"),
        ("{ tool: [a, b] }", "silent"),
    ] {
        check(&format!("- {{ name: r, match: {matched}, verdict: deny }}"), "{}", expected);
    }
}

#[test]
fn a_rule_applies_when_its_condition_holds() {
    let rules = "- { name: r, when: args.amount > 100, verdict: hold, message: large }";
    check(rules, r#"{"amount": 101}"#, "hold by r default x1 []: large");
    check(rules, r#"{"amount": 100}"#, "silent");
    check(rules, r#"{"amount": 100.5}"#, "hold by r default x1 []: large");
}

#[test]
fn a_condition_that_cannot_be_worked_out_holds_whatever_the_verdict() {
    for verdict in ["allow", "hold", "deny"] {
        let rules = format!("- {{ name: r, when: args.amount > 100, verdict: {verdict}, message: m }}");
        let why = "hold by r default x1 []: rule r cannot be worked out: ";
        check(&rules, "{}", &format!("{why}the call has no `amount`"));
        check(&rules, r#"{"amount": "much"}"#, &format!("{why}`>` does not take values of type string and int"));
        let wide = "the arguments have a whole number beyond 64 bits, which expressions cannot compare";
        check(&rules, r#"{"amount": 18446744073709551616}"#, &format!("{why}{wide}"));
    }
    // Another rule that denies still denies.
    check("- { name: r, when: args.x > 1, verdict: allow }\n- { name: d, verdict: deny }", "{}", "deny by d: -");
}

#[test]
fn several_holds_become_one_that_satisfies_all() {
    let rules = "
- { name: a, verdict: hold, message: one, timeout_seconds: 600, approvers: [ana, bo, cy], quorum: 2 }
- { name: b, verdict: hold, message: two, timeout_seconds: 60, approvers: [bo, cy, di] }
- { name: c, verdict: hold, timeout_seconds: 0 }
- { name: d, verdict: hold }";
    check(rules, "{}", "hold by a, b, c, d 60s x2 [bo+cy]: one; two");
}

#[test]
fn holds_without_a_common_approver_deny() {
    let rules = "
- { name: a, verdict: hold, approvers: [ana] }
- { name: b, verdict: hold, approvers: [bo] }";
    check(rules, "{}", "deny by a, b: no approver may decide for all of the rules a, b");
}

#[test]
fn the_tighter_deadline_is_a_written_one_and_the_sooner() {
    let after = |seconds| Deadline::After(Duration::from_secs(seconds));
    for (one, other, expected) in [
        (Deadline::Default, Deadline::Default, Deadline::Default),
        (Deadline::Default, Deadline::Never, Deadline::Never),
        (Deadline::Default, after(5), after(5)),
        (Deadline::Never, after(5), after(5)),
        (after(7), after(5), after(5)),
    ] {
        assert_eq!(one.tighter(other), expected);
        assert_eq!(other.tighter(one), expected);
    }
}

fn shell(approval: Option<ApprovalSpec>) -> ToolSpec {
    let source = ToolSource::Builtin(BuiltinTool::Shell(ShellConfig::default()));
    let display = DisplaySpec::default();
    ToolSpec { source, approval, effects: Default::default(), display, explicit_decision: false }
}

#[test]
fn a_tools_own_rule_is_a_rule_too_and_without_one_it_is_held_unless_a_rule_allows() {
    let required = Some(ApprovalSpec::Held(HeldApproval::default()));
    let never = Some(ApprovalSpec::Never);
    let when = |text: &str| {
        Some(ApprovalSpec::Held(HeldApproval { when: Some(text.parse().unwrap()), ..HeldApproval::default() }))
    };
    let allow = "- { name: a, verdict: allow }";
    let hold = "- { name: h, verdict: hold }";
    let deny = "- { name: d, verdict: deny }";
    let args = CanonicalJson::parse(r#"{"n": 5}"#).unwrap();
    let facts = facts("ops", "shell", &args);
    for (approval, rules, expected) in [
        (None, "[]", "hold by default default x1 []: "),
        (None, allow, "allow by a"),
        (None, hold, "hold by h default x1 []: "),
        (None, deny, "deny by d: -"),
        (never.clone(), "[]", "allow by tool:shell"),
        (never.clone(), hold, "hold by h default x1 []: "),
        (never, deny, "deny by d: -"),
        (required.clone(), "[]", "hold by tool:shell default x1 []: "),
        (required.clone(), allow, "hold by tool:shell default x1 []: "),
        (required, deny, "deny by d: -"),
        (when("args.n > 4"), "[]", "hold by tool:shell default x1 []: "),
        (when("args.n > 5"), "[]", "allow by tool:shell"),
        (when("args.n > 5"), hold, "hold by h default x1 []: "),
        (
            when("args.m > 5"),
            allow,
            "hold by tool:shell default x1 []: rule tool:shell cannot be worked out: the call has no `m`",
        ),
    ] {
        assert_eq!(said(&shell(approval.clone()).verdict(&set(rules), &facts)), expected, "{approval:?} {rules}");
    }
}

#[test]
fn questions_and_agents_need_nobodys_leave_by_themselves() {
    let args = CanonicalJson::parse("{}").unwrap();
    let agent = AgentTool { agent: "b".parse().unwrap(), name: None, description: None, max_turns: None };
    for source in [ToolSource::Builtin(BuiltinTool::AskUserQuestion), ToolSource::Agent(agent)] {
        let tool = ToolSpec { source, ..shell(None) };
        assert_eq!(said(&tool.verdict(&PolicySet::default(), &facts("a", "b", &args))), "allow by default");
        let rules = set("- { name: d, match: { tool: b }, verdict: deny }");
        assert_eq!(said(&tool.verdict(&rules, &facts("a", "b", &args))), "deny by d: -");
    }
}

#[test]
fn silence_approves_only_where_every_hold_says_so() {
    let held = |on_timeout| ApprovalSpec::Held(HeldApproval { on_timeout, ..HeldApproval::default() });
    let args = CanonicalJson::parse("{}").unwrap();
    let facts = facts("ops", "shell", &args);
    let on_timeout = |rules: &str| match shell(Some(held(OnTimeout::Approve))).verdict(&set(rules), &facts) {
        PolicyOutcome::Hold(hold) => hold.on_timeout,
        other => panic!("{other:?}"),
    };
    assert_eq!(on_timeout("[]"), OnTimeout::Approve);
    assert_eq!(on_timeout("- { name: h, verdict: hold }"), OnTimeout::Deny);
}

#[test]
fn rules_are_stored_and_read_back() {
    let rules = set(
        "- { name: r, match: { agent: a, tool: 'b*' }, when: args.x > 1, verdict: hold, timeout_seconds: 5, approvers: [x], quorum: 3 }",
    );
    let stored = serde_json::to_value(&rules).unwrap();
    assert_eq!(serde_json::from_value::<PolicySet>(stored).unwrap(), rules);
}
