//! Rules that outlive their run: used in their session only, and never more often than they may be.
#![expect(missing_docs, reason = "each case is named by the sentence that it checks")]
#![expect(clippy::unwrap_used, reason = "a case is a test")]

use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::ids::{RuleId, SessionId};
use holdpoint_core::policy::{Constraint, Lifetime, RuleEffect, StandingRule};
use holdpoint_runtime::ports::store::{Append, AppendError, RuleChange, StoredRule};

use super::{RunPen, Trial, sample};

/// Begins a run that makes this rule.
async fn begin_with(trial: &Trial, run: &RunPen, rule: &StandingRule) {
    trial.ok(Append { rules: vec![RuleChange::Made(rule.clone())], ..trial.first(run) }).await;
}

/// An append of one event that changes rules.
fn changing(trial: &Trial, run: &RunPen, expected: u64, rules: Vec<RuleChange>) -> Append {
    Append { rules, ..trial.append(run, expected, [sample::said("x")]) }
}

async fn standing(trial: &Trial, session: &SessionId) -> Vec<StoredRule> {
    trial.store.session_rules(session).await.unwrap()
}

pub async fn a_rule_stands_in_its_session_as_it_was_made(trial: &Trial) {
    let run = trial.run(1, "s");
    let plain = sample::rule(run.id, 1, None, Lifetime::Session);
    let odd = StandingRule {
        effect: RuleEffect::Deny { message: Some(String::new()) },
        uses_max: Some(u32::MAX),
        lifetime: Lifetime::Until(trial.clock.now().after(Duration::from_secs(60))),
        ..sample::rule(run.id, 2, None, Lifetime::Session)
    };
    let mut odd = odd;
    odd.scope.constraints = vec![Constraint::equals("/to", sample::json(r#""\u0000 é""#))];
    let rules = vec![RuleChange::Made(plain.clone()), RuleChange::Made(odd.clone())];
    trial.ok(Append { rules, ..trial.first(&run) }).await;
    let expected = [StoredRule { rule: plain, uses: 0 }, StoredRule { rule: odd, uses: 0 }];
    assert_eq!(standing(trial, &run.session).await, expected);
    assert_eq!(standing(trial, &sample::session("another")).await, []);
}

pub async fn uses_are_counted_over_all_runs(trial: &Trial) {
    let (ana, bob) = (trial.run_of(1, "s", "Ana"), trial.run_of(2, "s", "Bob"));
    let rule = sample::rule(ana.id, 1, Some(5), Lifetime::Session);
    begin_with(trial, &ana, &rule).await;
    trial.begin(&bob).await;
    trial.ok(changing(trial, &ana, 1, vec![RuleChange::Used(rule.id)])).await;
    trial.ok(changing(trial, &bob, 1, vec![RuleChange::Used(rule.id); 2])).await;
    assert_eq!(standing(trial, &ana.session).await, [StoredRule { rule, uses: 3 }]);
}

pub async fn a_spent_rule_is_refused(trial: &Trial) {
    let run = trial.run(1, "s");
    let rule = sample::rule(run.id, 1, Some(1), Lifetime::Session);
    begin_with(trial, &run, &rule).await;
    trial.ok(changing(trial, &run, 1, vec![RuleChange::Used(rule.id)])).await;
    let again = changing(trial, &run, 2, vec![RuleChange::Used(rule.id)]);
    trial.refused(again, AppendError::RuleSpent(rule.id)).await;
    assert_eq!(standing(trial, &run.session).await, []);
}

pub async fn a_rule_taken_back_is_refused(trial: &Trial) {
    let run = trial.run(1, "s");
    let rule = sample::rule(run.id, 1, None, Lifetime::Session);
    begin_with(trial, &run, &rule).await;
    trial.ok(changing(trial, &run, 1, vec![RuleChange::Revoked(rule.id)])).await;
    let used = vec![RuleChange::Used(rule.id)];
    trial.refused(changing(trial, &run, 2, used), AppendError::RuleSpent(rule.id)).await;
    assert_eq!(standing(trial, &run.session).await, []);
    // Nor is it there again for being made again: it is the same rule.
    let again = vec![RuleChange::Made(rule.clone()), RuleChange::Used(rule.id)];
    trial.refused(changing(trial, &run, 2, again), AppendError::RuleSpent(rule.id)).await;
}

pub async fn an_unknown_rule_is_refused(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    let rule = RuleId { run: run.id, number: 1 };
    trial.refused(changing(trial, &run, 1, vec![RuleChange::Used(rule)]), AppendError::RuleSpent(rule)).await;
    let stranger = RuleId { run: sample::run_id(99), number: 1 };
    trial.refused(changing(trial, &run, 1, vec![RuleChange::Used(stranger)]), AppendError::RuleSpent(stranger)).await;
}

pub async fn a_rule_of_another_session_is_refused(trial: &Trial) {
    let (here, there) = (trial.run(1, "here"), trial.run(2, "there"));
    let rule = sample::rule(here.id, 1, None, Lifetime::Session);
    begin_with(trial, &here, &rule).await;
    let foreign = Append { rules: vec![RuleChange::Used(rule.id)], ..trial.first(&there) };
    trial.refused(foreign, AppendError::RuleSpent(rule.id)).await;
    assert!(trial.store.load(there.id, 0).await.unwrap().is_none());
    trial.begin(&there).await;
    let foreign = changing(trial, &there, 1, vec![RuleChange::Used(rule.id)]);
    trial.refused(foreign, AppendError::RuleSpent(rule.id)).await;
    assert_eq!(standing(trial, &here.session).await, [StoredRule { rule, uses: 0 }]);
}

pub async fn a_rule_past_its_time_is_refused(trial: &Trial) {
    let run = trial.run(1, "s");
    let minute = Duration::from_secs(60);
    let rule = sample::rule(run.id, 1, None, Lifetime::Until(trial.clock.now().after(minute)));
    begin_with(trial, &run, &rule).await;
    trial.clock.advance(minute - Duration::from_millis(1));
    trial.ok(changing(trial, &run, 1, vec![RuleChange::Used(rule.id)])).await;
    assert_eq!(standing(trial, &run.session).await.len(), 1);
    trial.clock.advance(Duration::from_millis(1));
    let used = vec![RuleChange::Used(rule.id)];
    trial.refused(changing(trial, &run, 2, used), AppendError::RuleSpent(rule.id)).await;
    assert_eq!(standing(trial, &run.session).await, []);
}

pub async fn a_rule_may_be_used_by_the_append_that_makes_it(trial: &Trial) {
    let run = trial.run(1, "s");
    let rule = sample::rule(run.id, 1, Some(3), Lifetime::Session);
    let rules = vec![RuleChange::Made(rule.clone()), RuleChange::Used(rule.id), RuleChange::Used(rule.id)];
    trial.ok(Append { rules, ..trial.first(&run) }).await;
    assert_eq!(standing(trial, &run.session).await, [StoredRule { rule: rule.clone(), uses: 2 }]);
    let rules = vec![RuleChange::Revoked(rule.id), RuleChange::Used(rule.id)];
    trial.refused(changing(trial, &run, 1, rules), AppendError::RuleSpent(rule.id)).await;
}

pub async fn one_append_cannot_use_a_rule_more_often_than_it_may(trial: &Trial) {
    let run = trial.run(1, "s");
    let rule = sample::rule(run.id, 1, Some(2), Lifetime::Session);
    begin_with(trial, &run, &rule).await;
    let thrice = vec![RuleChange::Used(rule.id); 3];
    trial.refused(changing(trial, &run, 1, thrice), AppendError::RuleSpent(rule.id)).await;
    assert_eq!(standing(trial, &run.session).await, [StoredRule { rule: rule.clone(), uses: 0 }]);
    trial.ok(changing(trial, &run, 1, vec![RuleChange::Used(rule.id); 2])).await;
}

pub async fn taking_back_what_is_not_there_changes_nothing(trial: &Trial) {
    let (here, there) = (trial.run(1, "here"), trial.run(2, "there"));
    let rule = sample::rule(here.id, 1, None, Lifetime::Session);
    begin_with(trial, &here, &rule).await;
    let unknown = RuleId { run: sample::run_id(77), number: 3 };
    let rules = vec![RuleChange::Revoked(rule.id), RuleChange::Revoked(unknown)];
    trial.ok(Append { rules: rules.clone(), ..trial.first(&there) }).await;
    trial.ok(changing(trial, &there, 1, rules)).await;
    assert_eq!(standing(trial, &here.session).await, [StoredRule { rule: rule.clone(), uses: 0 }]);
    trial.ok(changing(trial, &here, 1, vec![RuleChange::Used(rule.id)])).await;
}

pub async fn a_refused_use_leaves_no_trace(trial: &Trial) {
    let run = trial.run(1, "s");
    let rule = sample::rule(run.id, 1, Some(9), Lifetime::Session);
    begin_with(trial, &run, &rule).await;
    let unknown = RuleId { run: run.id, number: 2 };
    let rules = vec![RuleChange::Used(rule.id), RuleChange::Revoked(rule.id), RuleChange::Used(unknown)];
    trial.refused(changing(trial, &run, 1, rules), AppendError::RuleSpent(unknown)).await;
    let stale = changing(trial, &run, 0, vec![RuleChange::Used(rule.id)]);
    trial.refused(stale, AppendError::Conflict { run: run.id, revision: 1 }).await;
    assert_eq!(standing(trial, &run.session).await, [StoredRule { rule, uses: 0 }]);
}

pub async fn a_rule_with_ten_uses_settles_ten_calls_in_a_race(trial: &Trial) {
    let maker = trial.run_of(100, "s", "Maker");
    let rule = sample::rule(maker.id, 1, Some(10), Lifetime::Session);
    begin_with(trial, &maker, &rule).await;
    let users: Vec<_> = (1..=64)
        .map(|number| {
            let run = trial.run_of(number, "s", &format!("Agent {number}"));
            let append = Append { rules: vec![RuleChange::Used(rule.id)], ..trial.first(&run) };
            let store = Arc::clone(&trial.store);
            tokio::spawn(async move { store.append(append).await })
        })
        .collect();
    let mut settled = 0;
    for user in users {
        match user.await.unwrap() {
            Ok(_) => settled += 1,
            Err(AppendError::RuleSpent(id)) => assert_eq!(id, rule.id),
            Err(error) => panic!("a loser was told something else: {error}"),
        }
    }
    assert_eq!((settled, trial.entries("s").await.len()), (10, 11));
}
