//! What those see who look later: pauses after their turn, sessions and their owners, runs, rules, the audit.
use std::sync::Arc;
use std::time::Duration;

use crate::common::*;
use holdpoint::store::{RuleFilter, RunFilter, SessionFilter};
use holdpoint::*;
use holdpoint_testkit::clock::TestClock;
use serde_json::json;

fn delete(path: &str) -> Reply {
    Reply::call("delete", json!({"path": path}))
}

fn desk(replies: impl IntoIterator<Item = Reply>) -> (Runner, Agent, TestClock) {
    let clock = TestClock::default();
    let runner = Runner::builder().model(Arc::new(ScriptedModel::new(replies))).clock(clock.shared());
    let runner = runner.pause_deadline(Duration::from_secs(60)).build();
    (runner, agent("Desk", [gated(&Effects::default())]), clock)
}

#[tokio::test]
async fn a_pause_can_be_read_after_its_turn_with_what_was_held() {
    let (runner, agent, _) = desk([delete("a"), delete("b"), Reply::text("Done.")]);
    let outcome = runner.run(&agent, "go").await.unwrap();
    let denied = outcome.pauses()[0].id();
    runner.deny(denied).message("keep it").by("ana").await.unwrap();
    let outcome = runner.resume(&agent, outcome.run_id()).await.unwrap();
    let edited = outcome.pauses()[0].id();
    runner.approve(edited).edited(&json!({"path": "c"})).by("ana").await.unwrap();
    runner.resume(&agent, outcome.run_id()).await.unwrap();

    let view = runner.runtime().read_pause(denied).await.unwrap();
    assert_eq!((view.agent.as_str(), view.arguments().unwrap().as_str()), ("Desk", r#"{"path":"a"}"#));
    assert_eq!(view.pause.decision(), Some(&Decision::deny("keep it")));
    let view = runner.runtime().read_pause(edited).await.unwrap();
    let call = view.call.unwrap();
    assert_eq!(call.arguments.as_str(), r#"{"path":"c"}"#, "what ran");
    assert_eq!(call.digest, CanonicalJson::parse(r#"{"path":"b"}"#).unwrap().digest(), "what was shown");
    let unknown = runner.runtime().read_pause(PauseId { number: 9, ..denied }).await.unwrap_err();
    assert_eq!(unknown.code(), "not_found");
}

#[tokio::test]
async fn a_session_is_its_first_actors() {
    let (runner, agent, _) = desk([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")]);
    let ask = |who: &str| runner.run(&agent, "go").session("till").by(who);
    ask("ana").only_owner().await.unwrap();
    let foreign = ask("bo").only_owner().await.unwrap_err();
    assert_eq!((foreign.code(), foreign.to_string().as_str()), ("session_not_found", "session till is not known"));
    ask("bo").await.unwrap();
    ask("ana").only_owner().await.unwrap();

    let till = runner.runtime().session(&"till".parse().unwrap()).await.unwrap();
    assert_eq!((till.owner.as_str(), till.runs), ("ana", 3));
    let unknown = runner.runtime().session(&"nobody's".parse().unwrap()).await.unwrap_err();
    assert_eq!(unknown.code(), "session_not_found");
}

#[tokio::test]
async fn a_refused_start_leaves_no_run_and_calls_no_tool() {
    let effects = Effects::default();
    let model = ScriptedModel::new([Reply::text("Hello."), Reply::call("look", json!({})), Reply::text("Seen.")]);
    let runner = Runner::in_memory(model);
    let agent = agent("Desk", [counted("look", &effects).build().unwrap()]);
    runner.run(&agent, "go").session("till").by("ana").await.unwrap();
    let refused = runner.run(&agent, "go").session("till").by("bo").only_owner().await.unwrap_err();
    assert_eq!((refused.code(), effects.count()), ("session_not_found", 0));
    let runs = runner.runtime().list_runs(&RunFilter::default()).await.unwrap().runs;
    assert_eq!(runs.len(), 1);
}

#[tokio::test]
async fn sessions_runs_and_rules_are_listed_in_pages() {
    let (runner, agent, clock) = desk([delete("a"), Reply::text("Done."), delete("a"), delete("a"), delete("a")]);
    let first = runner.run(&agent, "go").session("s1").by("ana").await.unwrap();
    runner.approve(&first.pauses()[0]).always(Always::in_session()).by("ana").await.unwrap();
    runner.resume(&agent, first.run_id()).await.unwrap();
    let mut runs = vec![first.run_id()];
    for session in ["s2", "s3", "s4"] {
        clock.advance(Duration::from_secs(1));
        runs.push(runner.run(&agent, "go").session(session).by("bo").await.unwrap().run_id());
    }
    let runtime = runner.runtime();
    let (mut sessions, mut after) = (Vec::new(), None);
    loop {
        let page = runtime.list_sessions(&SessionFilter { after, limit: 3, owner: None }).await.unwrap();
        sessions.extend(page.sessions.into_iter().map(|row| row.session.to_string()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(sessions, ["s4", "s3", "s2", "s1"]);
    let of_bo = SessionFilter { owner: Some("bo".parse().unwrap()), ..SessionFilter::default() };
    assert_eq!(runtime.list_sessions(&of_bo).await.unwrap().sessions.len(), 3);

    runs.sort_unstable_by(|a, b| b.cmp(a));
    let page = runtime.list_runs(&RunFilter { limit: 3, ..RunFilter::default() }).await.unwrap();
    let rest = runtime.list_runs(&RunFilter { after: page.next, ..RunFilter::default() }).await.unwrap();
    let listed: Vec<RunId> = page.runs.iter().chain(&rest.runs).map(|row| row.run).collect();
    assert_eq!((listed, rest.next), (runs, None));
    let waiting = RunFilter { status: Some(store::RunStatus::Waiting), ..RunFilter::default() };
    assert_eq!(runtime.list_runs(&waiting).await.unwrap().runs.len(), 3);

    let rules = runtime.list_rules(&RuleFilter::default()).await.unwrap().rules;
    assert_eq!(rules.iter().map(|row| row.session.as_str()).collect::<Vec<_>>(), ["s1"]);
    runtime.revoke_rule(rules[0].rule.id, "cy".parse().unwrap()).await.unwrap();
    assert_eq!(runtime.list_rules(&RuleFilter::default()).await.unwrap().rules, []);

    for found in [
        runtime.list_sessions(&SessionFilter { limit: 1_001, ..SessionFilter::default() }).await.unwrap_err(),
        runtime.list_runs(&RunFilter { limit: 1_001, ..RunFilter::default() }).await.unwrap_err(),
        runtime.list_rules(&RuleFilter { limit: 1_001, ..RuleFilter::default() }).await.unwrap_err(),
        runtime.audit(0, 1_001).await.unwrap_err(),
    ] {
        assert_eq!(found.code(), "over_limit");
    }
}

/// Every record in short.
async fn audited(runner: &Runner) -> Vec<String> {
    let records = runner.runtime().audit(0, 1_000).await.unwrap().records;
    let line = |record: &AuditRecord| {
        let note = record.note().unwrap();
        let by = note.by.map_or("nobody".to_owned(), |by| by.to_string());
        let tool = note.tool.map_or("-".to_owned(), |tool| tool.to_string());
        format!("{} {} {} {by} {tool}", record.n, note.kind.name(), note.outcome.unwrap_or_default())
    };
    records.iter().map(line).collect()
}

async fn every_decision_is_in_the_audit(store: Arc<dyn Store>, clock: &TestClock) {
    let replies = [delete("a"), delete("b"), delete("c"), delete("d"), Reply::text("Done."), delete("e")];
    let runner = Runner::builder().store(store).model(Arc::new(ScriptedModel::new(replies))).clock(clock.shared());
    let runner = runner.pause_deadline(Duration::from_secs(60)).build();
    let agent = agent("Desk", [gated(&Effects::default())]);
    let outcome = runner.run(&agent, "go").session("till").await.unwrap();
    let run = outcome.run_id();
    let first = outcome.pauses()[0].clone();
    runner.approve(&first).edited(&json!({"path": "z"})).by("ana").via("console").request("r1").await.unwrap();
    let outcome = runner.resume(&agent, run).await.unwrap();
    runner.deny(&outcome.pauses()[0]).by("bo").await.unwrap();
    runner.resume(&agent, run).await.unwrap();
    clock.advance(Duration::from_secs(60));
    runner.runtime().expire_pauses(9).await.unwrap();
    let outcome = runner.resume(&agent, run).await.unwrap();
    let always = Always::in_session().only(Constraint::equals("/path", CanonicalJson::parse("\"d\"").unwrap()));
    runner.approve(&outcome.pauses()[0]).always(always).by("ana").await.unwrap();
    runner.resume(&agent, run).await.unwrap();
    let rule = runner.session_rules(&"till".parse().unwrap()).await.unwrap()[0].rule.id;
    runner.runtime().revoke_rule(rule, "cy".parse().unwrap()).await.unwrap();
    let outcome = runner.run(&agent, "go").session("till").await.unwrap();
    runner.runtime().cancel_run(outcome.run_id(), "ana".parse().unwrap(), "enough").await.unwrap();

    assert_eq!(
        audited(&runner).await,
        [
            "1 pause.decided approve_edited ana delete",
            "2 pause.decided deny bo delete",
            "3 pause.expired  nobody delete",
            "4 pause.decided approve ana delete",
            "5 rule.made approve ana delete",
            "6 rule.revoked  cy -",
            "7 pause.withdrawn  nobody delete",
            "8 run.cancelled  ana -",
        ]
    );
    let note = runner.runtime().audit(0, 1).await.unwrap().records[0].note().unwrap();
    let edited = CanonicalJson::parse(r#"{"path":"z"}"#).unwrap().digest();
    assert_eq!((note.pause, note.run, note.session.as_str()), (Some(first.id()), run, "till"));
    assert_eq!((note.sha256, note.edited_sha256), (Some(first.call.unwrap().digest), Some(edited)));
    assert_eq!((note.via.as_deref(), note.request.as_deref()), (Some("console"), Some("r1")));
    let check = runner.runtime().verify_audit().await.unwrap();
    assert_eq!((check.records, check.broken_at, check.is_whole()), (8, None, true));
    assert_eq!(check.head, runner.runtime().audit(7, 1).await.unwrap().records.first().map(|record| record.hash));
}

#[tokio::test]
async fn every_decision_is_in_the_audit_of_a_store_in_memory() {
    let clock = TestClock::default();
    every_decision_is_in_the_audit(Arc::new(MemoryStore::new(clock.shared())), &clock).await;
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn every_decision_is_in_the_audit_of_a_file() {
    let (clock, folder) = (TestClock::default(), tempfile::tempdir().unwrap());
    let store = SqliteStore::open(folder.path().join("holdpoint.db"), clock.shared()).unwrap();
    every_decision_is_in_the_audit(Arc::new(store), &clock).await;
}

#[tokio::test]
async fn a_run_that_is_brought_in_from_a_document_brings_its_decisions_into_the_audit() {
    let (runner, agent) =
        (Runner::in_memory(ScriptedModel::new([delete("a")])), agent("Desk", [gated(&Effects::default())]));
    let outcome = runner.run(&agent, "go").await.unwrap();
    let mut state = runner.state(&agent, outcome.run_id()).await.unwrap();
    state.acting_as("ana").unwrap();
    state.deny_with(&outcome.pauses()[0], "no").unwrap();
    let elsewhere = Runner::in_memory(ScriptedModel::by(|_| Reply::text("Done.")));
    elsewhere.resume_state(&agent, state).await.unwrap();
    assert_eq!(audited(&elsewhere).await, ["1 pause.decided deny ana delete"]);
}
