//! Pages of sessions, runs and rules.
#![expect(missing_docs, reason = "each case is named by the sentence that it checks")]
#![expect(clippy::unwrap_used, reason = "a case is a test")]

use std::time::Duration;

use holdpoint_core::event::{RunEvent, RunStarted};
use holdpoint_core::ids::ActorId;
use holdpoint_core::policy::Lifetime;
use holdpoint_runtime::ports::store::{
    Append, AppendError, PAGE_MAX, RuleChange, RuleFilter, RuleRow, RunFilter, RunStatus, RunSummary, SessionFilter,
    SessionRow,
};

use super::sample;
use super::trial::{RunPen, Trial};

fn actor(name: &str) -> ActorId {
    ActorId::new(name).expect("an actor id")
}

/// A run's first entry, by this actor.
fn first_by(trial: &Trial, run: &RunPen, by: &str) -> Append {
    let RunEvent::RunStarted(started) = sample::started(&run.session, &run.agent) else { unreachable!("it started") };
    trial.append(run, 0, [RunEvent::RunStarted(RunStarted { by: actor(by), ..started })])
}

fn finished(append: Append) -> Append {
    Append { status: RunStatus::Finished, ..append }
}

async fn sessions(trial: &Trial, filter: SessionFilter) -> Vec<String> {
    let rows = trial.store.list_sessions(&filter).await.unwrap();
    rows.into_iter().map(|row| row.session.to_string()).collect()
}

async fn runs(trial: &Trial, filter: RunFilter) -> Vec<RunSummary> {
    trial.store.list_runs(&filter).await.unwrap()
}

pub async fn a_session_knows_its_owner_and_its_times(trial: &Trial) {
    assert_eq!(trial.store.session(&sample::session("desk")).await.unwrap(), None);
    let (one, two) = (trial.run(1, "desk"), trial.run(2, "desk"));
    let created_at = trial.clock.now();
    trial.ok(finished(first_by(trial, &one, "ana"))).await;
    trial.clock.advance(Duration::from_secs(5));
    trial.ok(first_by(trial, &two, "bo")).await;
    trial.clock.advance(Duration::from_secs(5));
    trial.ok(trial.append(&two, 1, [sample::said("x"), sample::said("y")])).await;
    let expected = SessionRow {
        session: one.session.clone(),
        owner: actor("ana"),
        created_at,
        last_at: trial.clock.now(),
        runs: 2,
        events: 4,
    };
    assert_eq!(trial.store.session(&one.session).await.unwrap().as_ref(), Some(&expected));
    assert_eq!(trial.store.list_sessions(&SessionFilter::default()).await.unwrap(), [expected]);
}

pub async fn a_session_is_its_owners_where_a_run_says_so(trial: &Trial) {
    let (one, two) = (trial.run(1, "desk"), trial.run(2, "desk"));
    let only = |run: &RunPen, by: &str| Append { only_owner: true, ..first_by(trial, run, by) };
    trial.ok(finished(only(&one, "ana"))).await;
    let foreign = || AppendError::SessionForeign { session: one.session.clone() };
    trial.refused(only(&two, "bo"), foreign()).await;
    assert!(trial.store.load(two.id, 0).await.unwrap().is_none());
    trial.ok(finished(first_by(trial, &two, "bo"))).await;
    let three = trial.run(3, "desk");
    trial.ok(only(&three, "ana")).await;
    // Whoever may not know of the session is not told that it is busy.
    trial.refused(only(&trial.run(4, "desk"), "bo"), foreign()).await;
    // Only who begins a run is asked.
    let more = Append { only_owner: true, ..trial.append(&three, 1, [sample::said("x")]) };
    trial.ok(more).await;
}

pub async fn of_two_who_begin_a_session_one_owns_it(trial: &Trial) {
    for round in 0..8 {
        let session = format!("desk {round}");
        let (one, two) =
            (trial.run_of(round * 2 + 1, &session, "Support"), trial.run_of(round * 2 + 2, &session, "Sales"));
        let only = |run: &RunPen, by: &str| Append { only_owner: true, ..first_by(trial, run, by) };
        let (first, second) =
            futures_util::join!(trial.store.append(only(&one, "ana")), trial.store.append(only(&two, "bo")));
        assert!(first.is_ok() != second.is_ok(), "{first:?} and {second:?}");
        let owner = trial.store.session(&one.session).await.unwrap().unwrap().owner;
        assert_eq!(owner, actor(if first.is_ok() { "ana" } else { "bo" }));
    }
}

pub async fn sessions_are_listed_from_the_last_that_began(trial: &Trial) {
    for (number, (name, by)) in (1..).zip([("c", "ana"), ("a", "bo"), ("d", "ana"), ("b", "local")]) {
        trial.ok(first_by(trial, &trial.run(number, name), by)).await;
    }
    // What happens in a session later does not move it.
    trial.ok(trial.append(&trial.run(1, "c"), 1, [sample::said("x")])).await;
    assert_eq!(sessions(trial, SessionFilter::default()).await, ["b", "d", "a", "c"]);
    let of = |owner: &str| SessionFilter { owner: Some(actor(owner)), ..SessionFilter::default() };
    assert_eq!(sessions(trial, of("ana")).await, ["d", "c"]);
    assert_eq!(sessions(trial, of("local")).await, ["b"]);
    assert_eq!(sessions(trial, of("eve")).await, Vec::<String>::new());
    let after = |name: &str| SessionFilter { after: Some(sample::session(name)), limit: 2, ..SessionFilter::default() };
    assert_eq!(sessions(trial, after("b")).await, ["d", "a"]);
    assert_eq!(sessions(trial, after("a")).await, ["c"]);
    assert_eq!(sessions(trial, after("c")).await, Vec::<String>::new());
    assert_eq!(sessions(trial, after("unknown")).await, Vec::<String>::new());
    assert_eq!(sessions(trial, SessionFilter { after: Some(sample::session("b")), ..of("ana") }).await, ["d", "c"]);
    assert_eq!(sessions(trial, SessionFilter { after: Some(sample::session("d")), ..of("ana") }).await, ["c"]);
}

pub async fn runs_of_all_sessions_are_listed_from_the_last_id_on(trial: &Trial) {
    let started_at = trial.clock.now();
    let (a, b) = (trial.run(2, "desk"), trial.run(1, "other"));
    let c = trial.run_of(3, "desk", "Sales");
    trial.begin(&a).await;
    trial.begin_paused(&b, 1).await;
    trial.clock.advance(Duration::from_secs(5));
    trial.ok(finished(trial.first(&c))).await;
    trial.ok(trial.append(&a, 1, [sample::said("x"), sample::said("y")])).await;
    let now = trial.clock.now();
    let row = |run: &RunPen, status, started_at, last_at| RunSummary {
        run: run.id,
        session: run.session.clone(),
        agent: run.agent.clone(),
        status,
        started_at,
        last_at,
    };
    let rows = [
        row(&c, RunStatus::Finished, now, now),
        row(&a, RunStatus::Working, started_at, now),
        row(&b, RunStatus::Waiting, started_at, started_at),
    ];
    assert_eq!(runs(trial, RunFilter::default()).await, rows);
    assert_eq!(runs(trial, RunFilter { after: Some(c.id), limit: 1, ..RunFilter::default() }).await, rows[1..2]);
    assert_eq!(runs(trial, RunFilter { after: Some(a.id), ..RunFilter::default() }).await, rows[2..]);
    assert_eq!(runs(trial, RunFilter { after: Some(b.id), ..RunFilter::default() }).await, []);
    let waiting = RunFilter { status: Some(RunStatus::Waiting), ..RunFilter::default() };
    assert_eq!(runs(trial, waiting).await, rows[2..]);
    let of_sales = RunFilter { agent: Some(c.agent.clone()), ..RunFilter::default() };
    assert_eq!(runs(trial, of_sales).await, rows[..1]);
    let of_desk = RunFilter { session: Some(a.session.clone()), ..RunFilter::default() };
    assert_eq!(runs(trial, of_desk.clone()).await, rows[..2]);
    assert_eq!(runs(trial, RunFilter { after: Some(c.id), ..of_desk }).await, rows[1..2]);
    let elsewhere = RunFilter { session: Some(sample::session("unknown")), ..RunFilter::default() };
    assert_eq!(runs(trial, elsewhere).await, []);
}

pub async fn runs_are_listed_by_whose_the_session_is(trial: &Trial) {
    for (number, (session, by)) in (1..).zip([("a", "ana"), ("b", "bo"), ("c", "ana"), ("d", "local")]) {
        trial.ok(finished(first_by(trial, &trial.run(number, session), by))).await;
    }
    // In ana's session somebody else begins a run: it is the session that counts.
    trial.ok(first_by(trial, &trial.run(5, "a"), "bo")).await;
    let of = |owner: &str| RunFilter { owner: Some(actor(owner)), ..RunFilter::default() };
    let ids = async |filter| runs(trial, filter).await.into_iter().map(|row| row.run).collect::<Vec<_>>();
    let id = |number| trial.run(number, "a").id;
    assert_eq!(ids(of("ana")).await, [id(5), id(3), id(1)]);
    assert_eq!(ids(of("bo")).await, [id(2)]);
    assert_eq!(ids(of("local")).await, [id(4)]);
    assert_eq!(ids(of("eve")).await, []);
    assert_eq!(ids(RunFilter { after: Some(id(5)), limit: 1, ..of("ana") }).await, [id(3)]);
    assert_eq!(ids(RunFilter { status: Some(RunStatus::Finished), ..of("ana") }).await, [id(3), id(1)]);
    assert_eq!(ids(RunFilter { session: Some(sample::session("a")), ..of("ana") }).await, [id(5), id(1)]);
    assert_eq!(ids(RunFilter { session: Some(sample::session("b")), ..of("ana") }).await, []);
}

pub async fn rules_of_all_sessions_are_listed_as_long_as_they_stand(trial: &Trial) {
    let (a, b) = (trial.run(1, "desk"), trial.run(2, "other"));
    let soon = Lifetime::Until(trial.clock.now().after(Duration::from_secs(60)));
    let made =
        |run: &RunPen, number, uses_max, lifetime| RuleChange::Made(sample::rule(run.id, number, uses_max, lifetime));
    let rules = vec![
        made(&a, 1, None, Lifetime::Session),
        made(&a, 2, None, soon),
        made(&a, 3, Some(1), Lifetime::Session),
        made(&a, 4, None, Lifetime::Session),
    ];
    trial.ok(Append { rules, ..trial.first(&a) }).await;
    trial.ok(Append { rules: vec![made(&b, 1, Some(9), Lifetime::Session)], ..trial.first(&b) }).await;
    let of = |run: &RunPen, number| holdpoint_core::ids::RuleId { run: run.id, number };
    let spent = vec![RuleChange::Used(of(&a, 3)), RuleChange::Revoked(of(&a, 4))];
    trial.ok(Append { rules: spent, ..trial.append(&a, 1, [sample::said("x")]) }).await;
    trial.ok(Append { rules: vec![RuleChange::Used(of(&b, 1))], ..trial.append(&b, 1, [sample::said("x")]) }).await;

    let row = |run: &RunPen, number, uses_max, lifetime, uses| RuleRow {
        session: run.session.clone(),
        rule: sample::rule(run.id, number, uses_max, lifetime),
        uses,
    };
    let rows =
        [row(&a, 1, None, Lifetime::Session, 0), row(&a, 2, None, soon, 0), row(&b, 1, Some(9), Lifetime::Session, 1)];
    let list = async |filter: RuleFilter| trial.store.list_rules(&filter).await.unwrap();
    assert_eq!(list(RuleFilter::default()).await, rows);
    assert_eq!(list(RuleFilter { limit: 2, ..RuleFilter::default() }).await, rows[..2]);
    assert_eq!(list(RuleFilter { after: Some(of(&a, 2)), ..RuleFilter::default() }).await, rows[2..]);
    let of_desk = RuleFilter { session: Some(a.session.clone()), ..RuleFilter::default() };
    assert_eq!(list(of_desk.clone()).await, rows[..2]);
    assert_eq!(list(RuleFilter { after: Some(of(&a, 1)), ..of_desk }).await, rows[1..2]);
    trial.clock.advance(Duration::from_secs(60));
    assert_eq!(list(RuleFilter { limit: 2, ..RuleFilter::default() }).await, [rows[0].clone(), rows[2].clone()]);
}

pub async fn no_page_is_longer_than_a_page_may_be(trial: &Trial) {
    let most = PAGE_MAX as u64 + 1;
    for number in 1..=most {
        trial.ok(finished(trial.first(&trial.run(number, &format!("desk {number}"))))).await;
    }
    let limit = usize::MAX;
    assert_eq!(sessions(trial, SessionFilter { limit, ..SessionFilter::default() }).await.len(), PAGE_MAX);
    assert_eq!(runs(trial, RunFilter { limit, ..RunFilter::default() }).await.len(), PAGE_MAX);
    assert_eq!(runs(trial, RunFilter { limit: 0, ..RunFilter::default() }).await, []);
}
