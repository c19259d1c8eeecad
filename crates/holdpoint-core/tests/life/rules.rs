//! Standing rules: what they cover, how long, and what they never do.

use holdpoint_core::Run;
use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::ids::{PauseId, RuleId};
use holdpoint_core::input::Input;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::policy::{
    AgentScope, Constraint, Lifetime, NewRule, RuleEffect, Scope, Screening, StandingRule, Test, Verdict,
};
use holdpoint_core::run::limits;
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::{ToolKind, ToolRef};

use super::common::{World, actor, check, play, play_on, run_id};

#[test]
fn a_rule_settles_later_calls_of_its_agent_and_tool() {
    check(
        r#"user: go
           model: pay {"amount": 1}
           policy: hold
           ana: always approve #1
           tool 1.0: "paid"
           model: pay {"amount": 2} & sell
           ---
           policy: rule or hold
           look: rule 1"#,
        "call allowed 2.0 by rule 1
         pause opened #2 approval 2.1 sell {}
         rule         1 used 1
         next         run 2.0",
    );
}

#[test]
fn a_denial_that_stands_carries_its_words() {
    check(
        r#"user: go
           model: pay
           policy: hold
           ana: always deny #1 "never on Sundays"
           model: pay & pay
           ---
           policy: rule
           restart
           look: rule 1"#,
        r#"call denied   2.0 by ana rule 1
           call answered 2.0 denied "never on Sundays"
           call denied   2.1 by ana rule 1
           call answered 2.1 denied "never on Sundays"
           rule          1 used 2
           next          call model root"#,
    );
}

#[test]
fn a_rule_is_its_agents_unless_it_is_made_for_any() {
    let script = |scope: &str| {
        format!(
            r#"given tool helper: agent
               user: go
               model: pay & helper
               policy: hold & allow
               ana: always approve #1 {scope}
               model 1.1: pay
               ---
               policy: rule or hold"#
        )
    };
    check(&script(""), "pause opened #2 approval 1.1/1.0 pay {}\n next run 1.0");
    check(&script("any agent"), "call allowed 1.1/1.0 by rule 1\n next run 1.0 1.1/1.0");
}

#[test]
fn a_rule_of_an_inner_agent_is_not_the_outer_agents() {
    check(
        r#"given tool helper: agent
           user: go
           model: helper
           policy: allow
           model 1.0: pay
           policy: hold
           ana: always approve #1
           tool 1.0/1.0: "paid"
           model 1.0 says: done
           model: pay & helper
           policy: rule or hold & allow
           model 2.1: pay
           ---
           policy: rule or hold"#,
        "call allowed 2.1/1.0 by rule 1
         next         run 2.1/1.0",
    );
}

#[test]
fn an_argument_constraint_keeps_a_rule_small() {
    let script = |rule: &str, arguments: &str| {
        format!(
            r#"user: go
               model: pay {{"amount": 11, "to": "bo"}}
               policy: hold
               ana: always approve #1 {rule}
               tool 1.0: "paid"
               model: pay {arguments}
               ---
               policy: rule or hold"#
        )
    };
    let covered = "call allowed 2.0 by rule 1\n next run 2.0";
    for (rule, arguments) in [
        ("where /amount <= 100", r#"{"amount": 100, "to": "eve"}"#),
        (r#"where /to = "bo""#, r#"{"amount": 1000000, "to": "bo"}"#),
        (r#"where /to ^ "b" where /amount <= 5"#, r#"{"amount": 5, "to": "bea"}"#),
    ] {
        check(&script(rule, arguments), covered);
    }
    for (rule, arguments) in [
        ("where /amount <= 100", r#"{"amount":1000000,"to":"bo"}"#),
        ("where /amount <= 100", r#"{"amount":"11","to":"bo"}"#),
        ("where /amount <= 100", r#"{"to":"bo"}"#),
        (r#"where /to ^ "b" where /amount <= 5"#, r#"{"amount":6,"to":"bo"}"#),
    ] {
        check(&script(rule, arguments), &format!("pause opened #2 approval 2.0 pay {arguments}\n next await #2"));
    }
}

#[test]
fn a_rule_has_so_many_uses_even_within_one_batch() {
    check(
        r#"user: go
           model: pay
           policy: hold
           ana: always approve #1 uses 2
           tool 1.0: "paid"
           model: pay & pay & pay
           ---
           policy: rule
           look: rule 1
           policy: rule or hold"#,
        "call allowed 2.0 by rule 1
         call allowed 2.1 by rule 1
         rule         1 used 2
         pause opened #2 approval 2.2 pay {}
         next         run 2.0 2.1",
    );
}

#[test]
fn a_rule_ends_at_its_time() {
    let script = |clock: &str| {
        format!(
            r#"user: go
               model: pay
               policy: hold
               ana: always approve #1 until +1h
               tool 1.0: "paid"
               model: pay
               clock {clock}
               ---
               policy: rule or hold"#
        )
    };
    check(&script("+3599s"), "call allowed 2.0 by rule 1\n next run 2.0");
    check(&script("+1h"), "pause opened #2 approval 2.0 pay {}\n next await #2");
}

#[test]
fn a_rule_that_ended_while_it_was_on_its_way_leaves_the_call_to_be_looked_at_again() {
    let mut world = play(
        r#"user: go
           model: pay
           policy: hold
           ana: always approve #1 until +1h
           tool 1.0: "paid"
           model: pay
           ---"#,
    );
    let call = "2.0".parse().unwrap();
    let rule = world.run.ruling(&call, &[], world.now).unwrap();
    let screening = Screening { call, verdict: Verdict::Ruled(rule.clone()), guardrails: Vec::new() };
    let later = world.now.after(std::time::Duration::from_secs(3600));
    assert_eq!(world.run.handle(Input::Screened(vec![screening.clone()]), later), Ok(Vec::new()));

    world.give(Input::RevokeRule { rule: rule.id, by: actor("ana") }).unwrap();
    assert_eq!(world.give(Input::Screened(vec![screening])), Ok(Vec::new()));
    assert_eq!(world.report().last().unwrap(), "next screen 2.0");
}

#[test]
fn a_denial_beats_an_approval() {
    for (first, second) in [("deny", "approve"), ("approve", "deny")] {
        check(
            &format!(
                r#"user: go
                   model: pay & pay
                   policy: hold
                   ana: always {first} #1
                   ana: always {second} #2
                   words: "no"
                   start
                   tool 1.0: "paid"
                   tool 1.1: "paid"
                   model: pay
                   ---
                   policy: rule"#
            ),
            &format!("call denied 2.0 by ana rule {}\n next word 2.0", if first == "deny" { 1 } else { 2 }),
        );
    }
}

#[test]
fn an_exact_decision_beats_a_rule() {
    check(
        "user: go
         model: pay & pay
         policy: hold
         ---
         ana: always deny #1 \"no\"
         bo: approve #2",
        r#"pause decided #1 deny "no" by ana
           call answered 1.0 denied "no"
           rule made     1 denies pay of Support
           pause decided #2 approve by bo
           next          run 1.1"#,
    );
}

#[test]
fn making_a_rule_never_undoes_a_decision() {
    check(
        r#"user: go
           model: pay & pay & pay
           policy: hold
           ---
           ana: deny #2 "no"
           ana: always approve #1 open too
           look: pauses
           look: call 1.1"#,
        r#"pause decided #2 deny "no" by ana
           call answered 1.1 denied "no"
           pause decided #1 approve by ana
           rule made     1 approves pay of Support
           pause decided #3 approve by ana rule 1
           call          1.1 is answered {} after 0 starts
           next          run 1.0 1.2"#,
    );
}

#[test]
fn a_rule_settles_open_pauses_only_when_its_maker_says_so() {
    check(
        "user: go
         model: pay & pay
         policy: hold
         ---
         ana: always approve #1
         look: rule 1",
        "pause decided #1 approve by ana
         rule made     1 approves pay of Support
         rule          1 used 0
         next          run 1.0",
    );
}

#[test]
fn a_rule_for_open_pauses_settles_those_it_covers_as_often_as_it_may() {
    check(
        r#"user: go
           model: pay {"amount": 1} & sell & pay {"amount": 2} & pay {"amount": 900} & pay {"amount": 3}
           policy: hold & hold & hold & hold & hold
           ---
           ana: always approve #1 where /amount <= 100 uses 1 open too
           look: rule 1
           look: pauses"#,
        r#"pause decided #1 approve by ana
           rule made     1 approves pay of Support
           pause decided #3 approve by ana rule 1
           rule          1 used 1
           open          #2 approval of Support 1.1 sell {}
           open          #4 approval of Support 1.3 pay {"amount":900}
           open          #5 approval of Support 1.4 pay {"amount":3}
           next          run 1.0 1.2"#,
    );
}

#[test]
fn a_rule_for_open_pauses_leaves_doubt_and_questions_to_a_person() {
    check(
        r#"user: go
           model: pay & pay
           policy: allow & hold
           start
           crash
           ---
           ana: always approve #1 open too
           look: pauses"#,
        "pause decided #1 approve by ana
         rule made     1 approves pay of Support
         open          #2 in_doubt of Support 1.0 pay {}
         next          run 1.1",
    );
}

#[test]
fn a_rule_for_open_pauses_passes_over_what_is_overdue() {
    check(
        "user: go
         model: pay & pay
         policy: hold & hold until +10m
         clock +10m
         ---
         ana: always approve #1 open too",
        "pause decided #1 approve by ana
         rule made     1 approves pay of Support
         next          run 1.0",
    );
}

#[test]
fn an_approval_of_open_pauses_passes_over_what_a_standing_denial_covers() {
    check(
        r#"user: go
           model: pay {"amount": 900} & pay {"amount": 1} & pay {"amount": 901}
           policy: hold
           ana: always deny #1 "too much" where /amount = 901
           ---
           ana: always approve #2 open too
           look: pauses"#,
        r#"pause decided #2 approve by ana
           rule made     2 approves pay of Support
           open          #3 approval of Support 1.2 pay {"amount":901}
           next          run 1.1"#,
    );
}

#[test]
fn a_rule_can_be_taken_back() {
    check(
        r#"user: go
           model: pay
           policy: hold
           ana: always approve #1
           tool 1.0: "paid"
           ---
           bo: revoke rule 1
           bo: revoke rule 1
           bo: revoke rule 2
           model: pay
           policy: rule or hold"#,
        "rule revoked  1 by bo
         refused       not_found
         refused       not_found
         model replied
         pause opened  #2 approval 2.0 pay {}
         next          await #2",
    );
}

#[test]
fn a_rule_that_was_taken_back_is_not_brought_back_by_what_the_store_remembers() {
    let mut world = play(
        r#"user: go
           model: pay & pay
           policy: hold & skip
           ana: always approve #1 for session"#,
    );
    let stored = world.run.rules().to_vec();
    let call = "1.1".parse().unwrap();
    assert_eq!(world.run.ruling(&call, &stored, world.now), Some(stored[0].clone()));
    play_on(&mut world, "ana: revoke rule 1");
    assert_eq!(world.run.ruling(&call, &stored, world.now), None);
}

#[test]
fn the_number_of_a_rule_that_was_taken_back_is_not_used_again() {
    check(
        "user: go
         model: pay & pay
         policy: hold
         ana: always approve #1
         ana: revoke rule 1
         ---
         ana: always approve #2",
        "pause decided #2 approve by ana
         rule made     2 approves pay of Support
         next          run 1.0 1.1",
    );
}

#[test]
fn a_rule_of_the_session_can_be_taken_back_after_its_run() {
    check(
        r#"user: go
           model: pay
           policy: hold
           ana: always approve #1 for session
           tool 1.0: "paid"
           model says: done
           ---
           ana: revoke rule 1"#,
        r#"rule revoked 1 by ana
           next         finished done "done""#,
    );
}

#[test]
fn what_is_not_an_approval_or_denial_cannot_stand() {
    check(
        r#"user: go
           model: pay
           policy: hold
           ---
           ana: always respond #1 "x"
           ana: always approve #1 edited {"amount": 1}
           ana: always approve #1 uses 0
           ana: always approve #1 until +0s
           ana: always approve #1 where amount = 1"#,
        "refused invalid_rule
         refused invalid_rule
         refused invalid_rule
         refused invalid_rule
         refused invalid_rule
         next    await #1",
    );
}

#[test]
fn a_rule_about_the_screen_holds_under_its_older_name() {
    for (first, second) in [("computer", "computer_use_preview"), ("computer_use_preview", "computer")] {
        check(
            &format!(
                r#"given tool {first}: computer
                   given tool {second}: computer
                   user: go
                   model: {first} {{"actions": []}}
                   policy: hold
                   ana: always approve #1
                   tool 1.0: "shot"
                   model: {second} {{"action": {{}}}}
                   ---
                   policy: rule or hold"#
            ),
            "call allowed 2.0 by rule 1\n next run 2.0",
        );
    }
}

#[test]
fn tools_of_one_name_in_two_families_are_two_tools() {
    let families = ["", "shell", "patch", "computer", "mcp files", "mcp mail"];
    for first in families {
        for second in families {
            let expected = if first == second {
                "call allowed 2.0 by rule 1\n next run 2.0"
            } else {
                "pause opened #2 approval 2.0 act {}\n next await #2"
            };
            check(
                &format!(
                    r#"given tool act: {first}
                       user: go
                       model: act
                       policy: hold
                       ana: always approve #1
                       tool 1.0: "done"
                       given tool act: {second}
                       model: act
                       ---
                       policy: rule or hold"#
                ),
                expected,
            );
        }
    }
}

#[test]
fn a_rule_of_another_run_holds_in_its_session() {
    let mut world = asked_again();
    let rule = foreign_rule(Lifetime::Session, None);
    let call = "1.0".parse().unwrap();
    let ruling = |run: &Run, rule: &StandingRule, now| run.ruling(&call, std::slice::from_ref(rule), now);
    assert_eq!(ruling(&world.run, &rule, world.now).as_ref(), Some(&rule));
    assert_eq!(ruling(&world.run, &foreign_rule(Lifetime::Run, None), world.now), None);

    let screening = |rule| Screening { call: call.clone(), verdict: Verdict::Ruled(rule), guardrails: Vec::new() };
    let of_one_run = Input::Screened(vec![screening(foreign_rule(Lifetime::Run, None))]);
    assert_eq!(world.give(of_one_run).map_err(|refusal| refusal.code()), Err("invalid_rule"));
    world.give(Input::Screened(vec![screening(rule.clone())])).unwrap();
    assert_eq!(world.run.rule_uses(rule.id), 1);
}

#[test]
fn a_rule_of_another_run_has_its_uses_counted_here() {
    let mut world = asked_again();
    let rule = foreign_rule(Lifetime::Session, Some(1));
    let paths = ["1.0".parse().unwrap(), "1.1".parse().unwrap()];
    let screenings = paths.iter().map(|call: &holdpoint_core::ids::CallPath| Screening {
        call: call.clone(),
        verdict: Verdict::Ruled(rule.clone()),
        guardrails: Vec::new(),
    });
    world.give(Input::Screened(screenings.collect())).unwrap();
    assert_eq!(world.report().last().unwrap(), "next screen 1.1; run 1.0");
    assert_eq!(world.run.ruling(&paths[1], std::slice::from_ref(&rule), world.now), None);
}

#[test]
fn a_rule_that_does_not_speak_of_the_call_is_refused() {
    let mut world = play(
        r#"user: go
           model: pay & sell
           policy: hold & skip
           ana: always approve #1
           ---"#,
    );
    let made = world.run.rules()[0].clone();
    let forged = StandingRule { scope: Scope { agent: AgentScope::Any, ..made.scope.clone() }, ..made.clone() };
    let sell = ToolRef { name: "sell".parse().unwrap(), ..made.scope.tool.clone() };
    let stretched = StandingRule { scope: Scope { tool: sell, ..made.scope.clone() }, ..made.clone() };
    let unmade = StandingRule { id: RuleId { number: 7, ..made.id }, ..stretched.clone() };
    for rule in [made, forged, stretched, unmade] {
        let screening =
            Screening { call: "1.1".parse().unwrap(), verdict: Verdict::Ruled(rule), guardrails: Vec::new() };
        let answer = world.give(Input::Screened(vec![screening]));
        assert_eq!(answer.map_err(|refusal| refusal.code()), Err("invalid_rule"));
    }
}

#[test]
fn the_constraints_of_a_rule_are_bounded() {
    let mut world = play("user: go\n model: pay\n policy: hold");
    let pause = PauseId { run: world.run.id(), number: 1 };
    let long = CanonicalJson::parse(&format!("\"{}\"", "x".repeat(600_000))).unwrap();
    for constraints in [
        vec![Constraint::at_most("/amount", 5); NewRule::CONSTRAINTS_MAX + 1],
        vec![Constraint { at: "/x".to_owned(), test: Test::OneOf(vec![long.clone(), long]) }],
    ] {
        let mut input = DecisionInput::new(pause, Decision::Approve, actor("ana"));
        input.rule = Some(NewRule { constraints, ..NewRule::default() });
        assert_eq!(world.give(Input::Decision(input)).map_err(|refusal| refusal.code()), Err("over_limit"));
    }
}

#[test]
fn so_many_rules_are_made_in_a_run_and_no_more() {
    let round = |from: usize| (from..from + 128).map(|n| format!("pay#{n}")).collect::<Vec<_>>().join(" & ");
    let mut world = play("user: go");
    let mut decide = |number: usize| {
        if number % 128 == 1 {
            play_on(&mut world, &format!("model: {}\n policy: hold", round(number)));
        }
        let pause = PauseId { run: world.run.id(), number: number as u32 };
        let mut input = DecisionInput::new(pause, Decision::deny("no"), actor("ana"));
        input.rule = Some(NewRule::default());
        world.give(Input::Decision(input)).map_err(|refusal| refusal.code())
    };
    for number in 1..=limits::RULES_MAX {
        assert!(decide(number).is_ok());
    }
    assert_eq!(decide(limits::RULES_MAX + 1), Err("over_limit"));
}

/// A run in which a tool is asked for twice and nothing was decided.
fn asked_again() -> World {
    play("user: go\n model: pay & pay\n ---")
}

fn foreign_rule(lifetime: Lifetime, uses_max: Option<u32>) -> StandingRule {
    StandingRule {
        id: RuleId { run: run_id(2), number: 1 },
        effect: RuleEffect::Approve,
        scope: Scope {
            agent: AgentScope::Any,
            tool: ToolRef::new(&ToolKind::Function, &"pay".parse().unwrap()),
            constraints: Vec::new(),
        },
        lifetime,
        uses_max,
        approvers: Vec::new(),
        author: actor("bo"),
        made_at: Timestamp::from_millis(1),
    }
}
