//! Several pauses at once, over a real file: decided together or not at all, words beside decisions, and messages in
//! their place.
use std::sync::Arc;
use std::time::Duration;

use crate::common::*;
use holdpoint::*;
use holdpoint_testkit::clock::TestClock;
use serde_json::json;
use tokio::sync::Barrier;

/// One file and one clock, under as many processes as a test needs.
struct Bench {
    folder: tempfile::TempDir,
    clock: TestClock,
    effects: Effects,
    agent: Agent,
}

impl Bench {
    fn new() -> Self {
        let effects = Effects::default();
        let schema = json!({"type": "object", "properties": {"path": {"type": "string", "maxLength": 8}}});
        let delete = counted("delete", &effects).schema(schema).needs_approval(true).build().unwrap();
        let agent = agent("Ops", [delete]);
        Self { folder: tempfile::tempdir().unwrap(), clock: TestClock::default(), effects, agent }
    }

    /// A process of its own: its own store over the same file.
    fn process(&self, model: &ScriptedModel) -> Runner {
        let store = SqliteStore::open(self.folder.path().join("holdpoint.db"), self.clock.shared()).unwrap();
        let runner = Runner::builder().store(Arc::new(store)).clock(self.clock.shared()).model(Arc::new(model.clone()));
        runner.settings(|settings| settings.pause_deadline = Some(Duration::from_secs(60))).build()
    }
}

/// Two calls of one turn; then what a person said, and what came of the calls.
fn two_calls() -> ScriptedModel {
    ScriptedModel::by(|request| match request.turn {
        1 => Reply::calls([("delete", json!({"path": "a"})), ("delete", json!({"path": "b"}))]).and_thinking("hm, two"),
        _ => {
            let said: Vec<String> = request.items.iter().filter_map(|item| said(item)).collect();
            let results: Vec<String> = last_results(request).into_iter().map(|(_, text)| text).collect();
            Reply::text(format!("{} | {}", results.join(" + "), said.join(" + ")))
        }
    })
}

fn said(item: &Item) -> Option<String> {
    match item {
        Item::User(content) => Some(content.to_text()),
        _ => None,
    }
}

fn by(who: &str, pause: &PauseView, decision: Decision) -> DecisionInput {
    DecisionInput::new(pause.id(), decision, ActorId::new(who).unwrap())
}

fn both(who: &str, paused: &RunOutcome, decision: &Decision) -> Vec<DecisionInput> {
    paused.pauses().iter().map(|pause| by(who, pause, decision.clone())).collect()
}

const NOT_RUN: &str = "This call did not run: the person sent a new message instead of deciding about it.";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_who_decide_everything_at_once_one_wins_all_of_it() {
    let (mut approved, mut denied) = (0, 0);
    for round in 0..40 {
        let (bench, model) = (Bench::new(), two_calls());
        let (one, two) = (bench.process(&model), bench.process(&model));
        let paused = one.run(&bench.agent, "go").await.unwrap();
        let mut inputs = [both("ana", &paused, &Decision::Approve), both("bo", &paused, &Decision::deny("no"))];
        // Who names the pauses in another order must not get half of them.
        inputs[1].reverse();
        let gate = Arc::new(Barrier::new(2));
        let decide = |runner: &Runner, inputs: Vec<DecisionInput>| {
            let (runtime, gate) = (runner.runtime().clone(), gate.clone());
            tokio::spawn(async move {
                gate.wait().await;
                runtime.decide_pauses(inputs).await
            })
        };
        let [first, second] = inputs;
        let (first, second) = (decide(&one, first), decide(&two, second));
        let (first, second) = (first.await.unwrap(), second.await.unwrap());
        let (winner, lost) = match (first, second) {
            (Ok(_), Err(lost)) => ("ana", lost),
            (Err(lost), Ok(_)) => ("bo", lost),
            other => panic!("round {round}: {other:?}"),
        };
        assert_eq!(lost.code(), "already_decided", "round {round}");
        let run = two.read(paused.run_id()).await.unwrap();
        for pause in run.pauses() {
            let PauseState::Decided(decided) = &pause.state else { panic!("round {round}: {pause:?}") };
            assert_eq!(decided.by.as_str(), winner, "round {round}");
        }
        two.resume(&bench.agent, paused.run_id()).await.unwrap();
        assert_eq!(bench.effects.count(), if winner == "ana" { 2 } else { 0 }, "round {round}");
        *if winner == "ana" { &mut approved } else { &mut denied } += 1;
    }
    println!("{approved} times approved, {denied} times denied");
}

#[tokio::test]
async fn one_decision_that_is_refused_leaves_nothing_behind() {
    let (bench, model) = (Bench::new(), two_calls());
    let runner = bench.process(&model);
    let paused = runner.run(&bench.agent, "go").await.unwrap();
    let (run, pauses) = (paused.run_id(), paused.pauses());
    let before = runner.runtime().read_journal(run).await.unwrap();
    let edited = |text: &str| Decision::ApproveEdited { arguments: CanonicalJson::parse(text).unwrap() };
    let stale = DecisionInput { seen: Some(Digest::of(b"other")), ..by("ana", &pauses[1], Decision::Approve) };
    for (second, code) in [
        (by("ana", &pauses[1], edited(r#"{"path": "much too long"}"#)), "invalid_arguments"),
        (by("ana", &pauses[1], Decision::Abandon), "decision_not_allowed"),
        (stale, "stale_view"),
    ] {
        let inputs = vec![by("ana", &pauses[0], Decision::Approve), second];
        let error = runner.runtime().decide_pauses(inputs).await.unwrap_err();
        assert_eq!((error.code(), error.refusal().unwrap().pause()), (code, Some(pauses[1].id())));
    }
    assert_eq!(runner.runtime().read_journal(run).await.unwrap(), before);
    assert_eq!(runner.runtime().audit(0, 10).await.unwrap().records, []);
}

#[tokio::test]
async fn pauses_of_two_runs_are_not_decided_together() {
    let (bench, model) = (Bench::new(), two_calls());
    let runner = bench.process(&model);
    let one = runner.run(&bench.agent, "go").await.unwrap();
    let two = runner.run(&bench.agent, "go").await.unwrap();
    let pick = |outcome: &RunOutcome| by("ana", &outcome.pauses()[0], Decision::Approve);
    let error = runner.runtime().decide_pauses(vec![pick(&one), pick(&two)]).await.unwrap_err();
    assert_eq!((error.code(), error.refusal().unwrap().pause()), ("not_found", Some(two.pauses()[0].id())));
    assert_eq!(runner.read(one.run_id()).await.unwrap().open_pauses().len(), 2);
    assert!(runner.runtime().decide_pauses(Vec::new()).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_was_decided_before_is_told_apart_from_what_is_decided_now() {
    let (bench, model) = (Bench::new(), two_calls());
    let runner = bench.process(&model);
    let paused = runner.run(&bench.agent, "go").await.unwrap();
    runner.approve(&paused.pauses()[1]).by("bo").await.unwrap();
    let approve = || both("ana", &paused, &Decision::Approve);
    let is_repeat = |decided: Vec<Decided>| decided.iter().map(|one| one.is_repeat).collect::<Vec<_>>();
    assert_eq!(is_repeat(runner.runtime().decide_pauses(approve()).await.unwrap()), [false, true]);
    assert_eq!(is_repeat(runner.runtime().decide_pauses(approve()).await.unwrap()), [true, true]);
    let other = both("cy", &paused, &Decision::deny("no"));
    let error = runner.runtime().decide_pauses(other).await.unwrap_err();
    assert_eq!(error.code(), "already_decided");
}

#[tokio::test]
async fn a_deadline_that_passed_refuses_the_whole_request_and_is_written_down() {
    let (bench, model) = (Bench::new(), two_calls());
    let runner = bench.process(&model);
    let paused = runner.run(&bench.agent, "go").await.unwrap();
    bench.clock.advance(Duration::from_secs(60));
    let error = runner.runtime().decide_pauses(both("ana", &paused, &Decision::Approve)).await.unwrap_err();
    assert_eq!((error.code(), error.refusal().unwrap().pause()), ("expired", Some(paused.pauses()[0].id())));
    let run = runner.read(paused.run_id()).await.unwrap();
    assert!(matches!(run.pauses()[0].state, PauseState::Expired { .. }), "{:?}", run.pauses()[0]);
    assert_eq!(run.pauses()[1].decision(), None);
    assert_eq!(bench.effects.count(), 0);
}

#[tokio::test]
async fn words_beside_a_decision_survive_the_process_and_reach_the_model_after_the_results() {
    let (bench, model) = (Bench::new(), two_calls());
    let paused = {
        let first = bench.process(&model);
        let paused = first.run(&bench.agent, "go").await.unwrap();
        let mut inputs = both("ana", &paused, &Decision::Approve);
        inputs[0].note = Some("only these two".to_owned());
        inputs[1].manner = Manner::Implied;
        first.runtime().decide_pauses(inputs).await.unwrap();
        paused
    };
    let second = bench.process(&model);
    let done = second.resume(&bench.agent, paused.run_id()).await.unwrap();
    let ran = r#"delete ran with {"path":"a"} + delete ran with {"path":"b"}"#;
    assert_eq!(text_of(&done), format!("{ran} | go + only these two"));
    assert_eq!(bench.effects.count(), 2);
    let notes = second.runtime().audit(0, 10).await.unwrap().records;
    let manners: Vec<_> = notes.iter().map(|record| record.note().unwrap().manner).collect();
    assert_eq!(manners, [None, Some(Manner::Implied)]);
}

#[tokio::test]
async fn words_beside_a_single_decision_are_staged_with_it() {
    let (bench, model) = (Bench::new(), two_calls());
    let runner = bench.process(&model);
    let paused = runner.run(&bench.agent, "go").await.unwrap();
    runner.approve(&paused.pauses()[0]).note("just this one").await.unwrap();
    runner.deny(&paused.pauses()[1]).message("not that").await.unwrap();
    let done = runner.resume(&bench.agent, paused.run_id()).await.unwrap();
    assert_eq!(text_of(&done), r#"delete ran with {"path":"a"} + not that | go + just this one"#);
}

#[tokio::test]
async fn a_message_in_the_place_of_decisions_lets_nothing_run_and_the_model_is_told_why() {
    let (bench, model) = (Bench::new(), two_calls());
    let paused = {
        let first = bench.process(&model);
        let paused = first.run(&bench.agent, "go").await.unwrap();
        let (content, by) = (Content::Text("never mind".to_owned()), ActorId::new("ana").unwrap());
        let (via, request) = (Some("blocks".to_owned()), Some("m7".to_owned()));
        let message = SupersedeInput { content, by, via, request };
        let run = first.runtime().supersede(paused.run_id(), message).await.unwrap();
        assert!(run.open_pauses().is_empty());
        paused
    };
    let second = bench.process(&model);
    let late = second.approve(&paused.pauses()[0]).by("bo").await.unwrap_err();
    assert_eq!(late.code(), "already_decided");
    let done = second.resume(&bench.agent, paused.run_id()).await.unwrap();
    assert_eq!(text_of(&done), format!("{NOT_RUN} + {NOT_RUN} | go + never mind"));
    assert_eq!(bench.effects.count(), 0);
    let notes = second.runtime().audit(0, 10).await.unwrap().records;
    let notes: Vec<AuditNote> = notes.iter().map(|record| record.note().unwrap()).collect();
    for note in &notes {
        assert_eq!((note.manner, note.outcome.as_deref()), (Some(Manner::Superseded), Some("deny")));
        assert_eq!((note.via.as_deref(), note.request.as_deref()), (Some("blocks"), Some("m7")));
    }
    assert_eq!(notes.len(), 2);
}

#[tokio::test]
async fn what_a_model_thought_is_kept_with_its_reply_and_not_shown_to_it_again() {
    let (bench, model) = (Bench::new(), two_calls());
    let runner = bench.process(&model);
    let paused = runner.run(&bench.agent, "go").await.unwrap();
    runner.runtime().decide_pauses(both("ana", &paused, &Decision::Approve)).await.unwrap();
    runner.resume(&bench.agent, paused.run_id()).await.unwrap();
    let journal = runner.runtime().read_journal(paused.run_id()).await.unwrap();
    let thoughts = journal.iter().flat_map(|entry| entry.events.iter()).filter_map(|event| match event {
        RunEvent::ModelReplied(replied) => Some(replied.thinking.as_deref()),
        _ => None,
    });
    assert_eq!(thoughts.collect::<Vec<_>>(), [Some("hm, two"), None]);
    assert!(model.requests().iter().all(|request| !format!("{:?}", request.items).contains("hm, two")));
}

#[tokio::test]
async fn a_question_waits_for_as_long_as_questions_do() {
    let minute = Duration::from_secs(60);
    for (deadline, expected) in
        [(Deadline::Default, Some(minute)), (Deadline::After(10 * minute), Some(10 * minute)), (Deadline::Never, None)]
    {
        let clock = TestClock::default();
        let asked = json!({"questions": [{"question": "Which?"}]});
        let model = ScriptedModel::new([Reply::calls([("ask_user_question", asked), ("delete", json!({}))])]);
        let runner = Runner::builder().clock(clock.shared()).model(Arc::new(model)).pause_deadline(minute);
        let runner = runner.settings(|settings| settings.question_deadline = deadline).build();
        let question = tools::ask_user_question::AskUserQuestion::builder().build().unwrap();
        let paused = runner.run(&agent("Ops", [question, gated(&Effects::default())]), "go").await.unwrap();
        let ends = paused.pauses().iter().map(|pause| match pause.pause.state {
            PauseState::Open { expires_at } => expires_at.map(|end| end.since(pause.pause.opened_at)),
            _ => panic!("{pause:?}"),
        });
        assert_eq!(ends.collect::<Vec<_>>(), [expected, Some(minute)]);
    }
}
