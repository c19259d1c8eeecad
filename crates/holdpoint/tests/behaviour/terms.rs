//! Policies: they allow, deny, or hold on terms. Who may decide then, how many must approve, and what waiting does.
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::journal::{events, results};
use crate::common::*;
use holdpoint::*;
use holdpoint_testkit::clock::TestClock;
use serde_json::{Value, json};

/// What it says depends on the call; what it was told is kept.
#[derive(Clone, Default)]
struct Rulebook {
    seen: Arc<Mutex<Vec<(String, String, Value)>>>,
}

#[async_trait::async_trait]
impl Policy for Rulebook {
    async fn verdict(&self, context: &ToolContext, arguments: &CanonicalJson) -> Result<PolicyVerdict, String> {
        let arguments = arguments.to_value();
        let seen = (context.session.to_string(), context.actor.to_string(), arguments.clone());
        self.seen.lock().unwrap().push(seen);
        let hold = |terms: HoldTerms| Ok(PolicyVerdict::Hold(terms));
        match arguments["say"].as_str().unwrap_or_default() {
            "allow" => Ok(PolicyVerdict::Allow),
            "deny" => {
                Ok(PolicyVerdict::Deny { by: "no wires".parse().unwrap(), message: Some("not today".to_owned()) })
            }
            "finance" => hold(HoldTerms { approvers: vec!["finance".to_owned()], ..HoldTerms::default() }),
            "two" => hold(HoldTerms { quorum: 2, rule: Some("big".to_owned()), ..HoldTerms::because("over 1000") }),
            "minute" => hold(HoldTerms { deadline: Deadline::After(Duration::from_secs(60)), ..HoldTerms::default() }),
            "never" => hold(HoldTerms { deadline: Deadline::Never, ..HoldTerms::default() }),
            "then run" => hold(HoldTerms {
                deadline: Deadline::After(Duration::from_secs(60)),
                on_timeout: OnTimeout::Approve,
                ..HoldTerms::default()
            }),
            "too many" => hold(HoldTerms { quorum: 1_000, ..HoldTerms::default() }),
            "panic" => panic!("the rulebook is out of order"),
            "long" => hold(HoldTerms::because("x".repeat(10_000))),
            "" => hold(HoldTerms::default()),
            other => Err(format!("nobody knows what {other} means")),
        }
    }
}

struct Desk {
    clock: TestClock,
    rulebook: Rulebook,
    effects: Effects,
    agent: Agent,
    model: ScriptedModel,
    runner: Runner,
}

impl Desk {
    /// A desk whose model asks for one wire after another, each with these words for the policy.
    fn new(says: &[&str]) -> Self {
        let calls = says.iter().map(|say| Reply::call("wire", json!({"say": say})));
        Self::with(calls.chain([Reply::text("Done.")]))
    }

    fn with(replies: impl IntoIterator<Item = Reply>) -> Self {
        let (clock, rulebook, effects) = (TestClock::default(), Rulebook::default(), Effects::default());
        let tool = counted("wire", &effects).policy(rulebook.clone()).build().unwrap();
        let model = ScriptedModel::new(replies);
        let runner = Runner::builder().model(Arc::new(model.clone())).clock(clock.shared());
        let runner = runner.pause_deadline(Duration::from_secs(3_600)).build();
        Self { clock, rulebook, effects, agent: agent("Desk", [tool]), model, runner }
    }

    async fn run(&self) -> RunOutcome {
        self.runner.run(&self.agent, "go").session("till").by("ana").await.unwrap()
    }

    async fn resume(&self, run: RunId) -> RunOutcome {
        self.runner.resume(&self.agent, run).await.unwrap()
    }

    fn worker(&self) -> Worker {
        Worker::new(self.runner.runtime().clone(), vec![self.agent.graph().unwrap()])
    }
}

#[tokio::test]
async fn a_policy_is_told_the_session_and_who_started_the_run() {
    let desk = Desk::new(&["allow"]);
    assert_eq!(text_of(&desk.run().await), "Done.");
    assert_eq!(*desk.rulebook.seen.lock().unwrap(), [("till".to_owned(), "ana".to_owned(), json!({"say": "allow"}))]);
    assert_eq!(desk.effects.count(), 1);
}

#[tokio::test]
async fn what_a_policy_denies_does_not_run_and_the_denial_names_the_rule() {
    let desk = Desk::new(&["deny"]);
    let outcome = desk.run().await;
    assert_eq!((text_of(&outcome).as_str(), desk.effects.count()), ("Done.", 0));
    assert_eq!(results(&desk.model), ["not today"]);
    let denied = events(&desk.runner, outcome.run_id()).await.into_iter().find_map(|event| match event {
        RunEvent::CallDenied(denied) => Some(denied.by.to_string()),
        _ => None,
    });
    assert_eq!(denied.as_deref(), Some("no wires"));
}

#[tokio::test]
async fn what_a_policy_cannot_say_is_held_and_the_pause_says_why() {
    for (say, why) in [
        ("gibberish", "the approval rule failed: nobody knows what gibberish means"),
        ("panic", "the approval rule failed: it panicked"),
        (
            "too many",
            "the approval rule failed: its terms are not accepted: at most 64 approvals of a pause are accepted, and this has 1000",
        ),
    ] {
        let desk = Desk::new(&[say]);
        let outcome = desk.run().await;
        assert_eq!(outcome.pauses()[0].pause.reason.as_deref(), Some(why));
        assert_eq!(outcome.pauses()[0].pause.terms, PauseTerms::default());
        assert_eq!(desk.effects.count(), 0);
    }
    let outcome = Desk::new(&["long"]).run().await;
    assert_eq!(outcome.pauses()[0].pause.reason.as_ref().map(String::len), Some(2_000), "a reason is bounded");
}

#[tokio::test]
async fn a_pause_of_a_policy_shows_its_terms_and_two_must_approve_it() {
    let desk = Desk::new(&["two"]);
    let outcome = desk.run().await;
    let view = &outcome.pauses()[0];
    assert_eq!((view.pause.reason.as_deref(), view.pause.terms.rule.as_deref()), (Some("over 1000"), Some("big")));
    assert_eq!((view.pause.approvals_needed(), view.pause.approvals_missing()), (2, 2));

    let first = desk.runner.approve(view).by("bo").request("r1").await.unwrap();
    assert!(first.pause.is_open() && !first.is_repeat);
    let again = desk.runner.approve(view).by("bo").request("r1").await.unwrap();
    assert!(again.pause.is_open() && again.is_repeat);
    let still = desk.resume(outcome.run_id()).await;
    assert_eq!((still.pauses().len(), desk.effects.count()), (1, 0));
    assert_eq!(still.pauses()[0].pause.approvals_missing(), 1);

    let edited = desk.runner.approve(view).edited(&json!({"say": "two", "amount": 1})).by("cy").await.unwrap_err();
    assert_eq!(edited.code(), "decision_not_allowed");
    let second = desk.runner.approve(view).by("cy").request("r2").await.unwrap();
    assert!(!second.pause.is_open() && !second.is_repeat);
    assert!(desk.runner.approve(view).by("cy").await.unwrap().is_repeat);
    assert_eq!((text_of(&desk.resume(outcome.run_id()).await).as_str(), desk.effects.count()), ("Done.", 1));
}

#[tokio::test]
async fn of_many_who_approve_at_once_exactly_the_second_decides() {
    let desk = Desk::new(&["two"]);
    let outcome = desk.run().await;
    let id = outcome.pauses()[0].id();
    let votes = (0..16).map(|number| {
        let runner = desk.runner.clone();
        tokio::spawn(async move { runner.approve(id).by(format!("p{number}")).await.map(|decided| decided.is_repeat) })
    });
    let answers: Vec<_> = futures_util::future::join_all(votes).await.into_iter().map(Result::unwrap).collect();
    let counted = answers.iter().filter(|answer| matches!(answer, Ok(false))).count();
    assert_eq!(counted, 2, "{answers:?}");
    let all = events(&desk.runner, outcome.run_id()).await;
    assert_eq!(all.iter().filter(|event| event.name() == "pause.voted").count(), 1);
    assert_eq!(all.iter().filter(|event| event.name() == "pause.decided").count(), 1);
}

#[tokio::test]
async fn only_approvers_decide() {
    let desk = Desk::new(&["finance"]);
    let outcome = desk.run().await;
    let view = &outcome.pauses()[0];
    for who in ["bo", "timeout"] {
        assert_eq!(desk.runner.approve(view).by(who).await.unwrap_err().code(), "not_an_approver");
        assert_eq!(desk.runner.deny(view).by(who).await.unwrap_err().code(), "not_an_approver");
    }
    let sales = desk.runner.approve(view).by("bo").acting_as(["sales"]).await.unwrap_err();
    assert_eq!(sales.code(), "not_an_approver");
    desk.runner.approve(view).by("cy").acting_as(["staff", "finance"]).await.unwrap();
    assert_eq!((text_of(&desk.resume(outcome.run_id()).await).as_str(), desk.effects.count()), ("Done.", 1));
}

#[tokio::test]
async fn a_policy_sets_the_deadline_or_leaves_it_to_the_runner() {
    for (say, waits) in [("", Some(3_600)), ("minute", Some(60)), ("never", None)] {
        let desk = Desk::new(&[say]);
        let outcome = desk.run().await;
        let until = waits.map(|waits| desk.clock.now().after(Duration::from_secs(waits)));
        assert_eq!(outcome.pauses()[0].pause.state, PauseState::Open { expires_at: until }, "{say}");
    }
}

#[tokio::test]
async fn a_call_that_waiting_approves_runs_when_nobody_decided_and_that_is_on_record() {
    let desk = Desk::new(&["then run"]);
    let outcome = desk.run().await;
    let run = outcome.run_id();
    desk.clock.advance(Duration::from_secs(59));
    assert!(desk.worker().sweep().await.unwrap().is_idle());
    desk.clock.advance(Duration::from_secs(1));
    let late = desk.runner.deny(&outcome.pauses()[0]).by("bo").await.unwrap_err();
    assert_eq!(late.code(), "already_decided", "what the deadline led to is what is told");
    assert_eq!(desk.worker().sweep().await.unwrap().driven, [run]);
    assert_eq!(desk.effects.count(), 1);
    let page = desk.runner.runtime().audit(0, 9).await.unwrap();
    let note = page.records[0].note().unwrap();
    assert_eq!((note.outcome.as_deref(), note.by), (Some("approve"), Some(ActorId::timeout())));
}

#[tokio::test]
async fn a_standing_approval_never_outweighs_a_policy_that_denies_or_wants_others_to_look() {
    let desk = Desk::new(&["", "", "deny", "finance", "two", "allow"]);
    let outcome = desk.run().await;
    let always = || Always::in_session();
    desk.runner.approve(&outcome.pauses()[0]).always(always()).by("bo").await.unwrap();
    // The second call is approved by the rule, the third is denied; the fourth needs finance.
    let outcome = desk.resume(outcome.run_id()).await;
    assert_eq!(desk.effects.count(), 2);
    assert_eq!(outcome.pauses()[0].pause.terms.approvers, ["finance"]);
    desk.runner.approve(&outcome.pauses()[0]).by("cy").acting_as(["finance"]).await.unwrap();
    let outcome = desk.resume(outcome.run_id()).await;
    assert_eq!(outcome.pauses()[0].pause.terms.quorum, 2);
    let refused = desk.runner.approve(&outcome.pauses()[0]).always(always()).by("bo").await.unwrap_err();
    assert_eq!(refused.code(), "invalid_rule", "nobody alone approves later calls that two must approve");
    for who in ["bo", "cy"] {
        desk.runner.approve(&outcome.pauses()[0]).by(who).await.unwrap();
    }
    let done = desk.resume(outcome.run_id()).await;
    assert_eq!((text_of(&done).as_str(), desk.effects.count()), ("Done.", 5));
    let stored = desk.runner.session_rules(&"till".parse().unwrap()).await.unwrap();
    assert_eq!((stored.len(), stored[0].uses), (1, 1), "a policy that allows needs no rule");
}

#[tokio::test]
async fn a_rule_that_approvers_made_stands_where_the_same_approvers_are_asked() {
    let desk = Desk::new(&["finance", "finance", ""]);
    let outcome = desk.run().await;
    let decide = desk.runner.approve(&outcome.pauses()[0]).always(Always::in_run());
    decide.by("cy").acting_as(["finance"]).await.unwrap();
    let done = desk.resume(outcome.run_id()).await;
    assert_eq!((text_of(&done).as_str(), desk.effects.count()), ("Done.", 3));
}

#[tokio::test]
async fn a_confirmation_has_a_deadline_of_its_own() {
    let clock = TestClock::default();
    let agent = |deadline: Option<Deadline>| {
        let builder = Agent::builder("Asker").instructions("Ask.");
        match deadline {
            None => builder.confirm_when(|_| Some("it asks".to_owned())),
            Some(deadline) => builder.confirm_when(move |_| Some(ConfirmTerms::new("it asks", deadline))),
        }
        .build()
        .unwrap()
    };
    let minute = Duration::from_secs(60);
    for (deadline, waits) in
        [(None, Some(60 * minute)), (Some(Deadline::After(minute)), Some(minute)), (Some(Deadline::Never), None)]
    {
        let runner = Runner::builder().model(Arc::new(ScriptedModel::new([Reply::text("Shall I?")])));
        let runner = runner.clock(clock.shared()).pause_deadline(60 * minute).build();
        let outcome = runner.run(&agent(deadline), "go").await.unwrap();
        let expires_at = waits.map(|waits| clock.now().after(waits));
        assert_eq!(outcome.pauses()[0].pause.state, PauseState::Open { expires_at });
    }
}

#[tokio::test]
async fn arguments_that_a_person_changed_pass_the_policy_too() {
    for (say, runs, told) in [
        ("allow", 1, "deleted"),
        ("deny", 0, "not today"),
        ("two", 0, "the changed arguments need the approval of others: ask for them as a call of its own"),
        ("finance", 0, "the changed arguments need the approval of others: ask for them as a call of its own"),
        ("minute", 1, "deleted"),
    ] {
        let desk = Desk::new(&[""]);
        let outcome = desk.run().await;
        desk.runner.approve(&outcome.pauses()[0]).edited(&json!({"say": say})).by("ben").await.unwrap();
        assert_eq!(text_of(&desk.resume(outcome.run_id()).await), "Done.");
        assert_eq!(desk.effects.count(), runs, "{say}");
        if runs == 0 {
            assert_eq!(results(&desk.model), [told], "{say}");
        }
    }
}
