//! Weaknesses that were measured in the SDK whose guide this library follows. None of them may exist here.
use std::future::IntoFuture as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::*;
use holdpoint::*;
use holdpoint_testkit::clock::TestClock;
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};

/// One store and one clock, under as many runners as there are processes.
struct Bench {
    clock: TestClock,
    store: Arc<MemoryStore>,
}

impl Bench {
    fn new() -> Self {
        let clock = TestClock::default();
        Self { store: Arc::new(MemoryStore::new(clock.shared())), clock }
    }

    fn builder(&self, model: &ScriptedModel) -> RunnerBuilder {
        Runner::builder().store(self.store.clone()).clock(self.clock.shared()).model(Arc::new(model.clone()))
    }

    fn runner(&self, model: &ScriptedModel) -> Runner {
        self.builder(model).build()
    }

    fn outlive_the_lease(&self) {
        self.clock.advance(Settings::default().lease + Duration::from_secs(1));
    }
}

/// A tool that takes effect, says so, and then hangs the first time: whoever drives it can be killed there.
#[derive(Clone, Default)]
struct Hanging {
    effects: Effects,
    took_effect: Arc<Notify>,
    attempts: Arc<Mutex<Vec<(String, u32)>>>,
}

#[async_trait::async_trait]
impl RunTool for Hanging {
    async fn run(&self, context: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        let is_first = self.effects.happen() == 1;
        self.attempts.lock().unwrap().push((context.idempotency_key(), context.attempt));
        self.took_effect.notify_one();
        if is_first {
            std::future::pending::<()>().await;
        }
        Ok("paid".into())
    }
}

impl Hanging {
    fn tool(&self, effect: Effect) -> Tool {
        let schema = json!({"type": "object"});
        let tool = Tool::builder("pay").description("Pays.").schema(schema).effect(effect).needs_approval(true);
        tool.runner(self.clone()).build().unwrap()
    }
}

fn pay_once() -> ScriptedModel {
    ScriptedModel::new([Reply::call("pay", json!({"amount": 11})), Reply::text("Done.")])
}

/// Starts a run, approves its one pause, and kills the process in the middle of the tool.
async fn crash_in_the_tool(bench: &Bench, agent: &Agent, hanging: &Hanging) -> RunId {
    let runner = bench.runner(&pay_once());
    let paused = runner.run(agent, "pay").await.unwrap();
    runner.approve(&paused.pauses()[0]).by("ana").await.unwrap();
    let driving = tokio::spawn(runner.resume(agent, paused.run_id()).into_future());
    hanging.took_effect.notified().await;
    driving.abort();
    assert!(driving.await.unwrap_err().is_cancelled());
    paused.run_id()
}

#[tokio::test]
async fn a_crash_after_the_side_effect_is_shown_and_never_rerun() {
    let (bench, hanging) = (Bench::new(), Hanging::default());
    let agent = agent("Payer", [hanging.tool(Effect::AtMostOnce)]);
    let run = crash_in_the_tool(&bench, &agent, &hanging).await;
    let runner = bench.runner(&pay_once());

    let busy = runner.resume(&agent, run).await.unwrap_err();
    assert_eq!(busy.code(), "run_busy", "the dead process's lease still stands");
    bench.outlive_the_lease();
    for _ in 0..3 {
        let asked = runner.resume(&agent, run).await.unwrap();
        assert_eq!(asked.pauses().len(), 1, "{asked:?}");
        assert_eq!(asked.pauses()[0].pause.kind, PauseKind::InDoubt);
        assert_eq!(hanging.effects.count(), 1);
    }

    let doubt = runner.read(run).await.unwrap().open_pauses().remove(0);
    let wrong = runner.approve(&doubt).await.unwrap_err();
    assert_eq!(wrong.code(), "decision_not_allowed", "an approval says nothing about what happened");
    runner.happened(&doubt, "paid, says the bank").by("ana").await.unwrap();
    let done = runner.resume(&agent, run).await.unwrap();
    assert_eq!(text_of(&done), "Done.");
    assert_eq!(hanging.effects.count(), 1);
    let told = runner.read(run).await.unwrap().items();
    assert!(told.iter().any(|item| matches!(&**item, Item::ToolResult { output, is_error: false, .. }
        if output.to_text() == "paid, says the bank")));
}

#[tokio::test]
async fn a_worker_that_finds_a_crashed_run_asks_too() {
    let (bench, hanging) = (Bench::new(), Hanging::default());
    let agent = agent("Payer", [hanging.tool(Effect::AtMostOnce)]);
    let run = crash_in_the_tool(&bench, &agent, &hanging).await;
    let runner = bench.runner(&pay_once());
    let worker = runner.worker(std::slice::from_ref(&agent)).unwrap();
    assert!(worker.sweep().await.unwrap().is_idle(), "the lease stands");
    bench.outlive_the_lease();
    assert_eq!(worker.sweep().await.unwrap().driven, [run]);
    let doubt = runner.read(run).await.unwrap().open_pauses().remove(0);
    assert_eq!(doubt.pause.kind, PauseKind::InDoubt);
    assert_eq!(hanging.effects.count(), 1);

    runner.run_again(&doubt).await.unwrap();
    assert_eq!(text_of(&runner.resume(&agent, run).await.unwrap()), "Done.");
    assert_eq!(hanging.effects.count(), 2, "only because a person said so");
}

#[tokio::test]
async fn a_repeatable_tool_is_rerun_after_a_crash_with_the_same_key() {
    for effect in [Effect::Idempotent, Effect::ReadOnly] {
        let (bench, hanging) = (Bench::new(), Hanging::default());
        let agent = agent("Payer", [hanging.tool(effect)]);
        let run = crash_in_the_tool(&bench, &agent, &hanging).await;
        bench.outlive_the_lease();
        let done = bench.runner(&pay_once()).resume(&agent, run).await.unwrap();
        assert_eq!(text_of(&done), "Done.");
        let attempts = hanging.attempts.lock().unwrap().clone();
        let key = format!("{run}:1.0");
        assert_eq!(attempts, [(key.clone(), 1), (key, 2)], "{effect:?}");
    }
}

/// A tool that takes effect and then waits to be let go; only the first effect waits, so that a second one is seen.
#[derive(Clone, Default)]
struct Slow {
    effects: Effects,
    go: Arc<Notify>,
}

#[async_trait::async_trait]
impl RunTool for Slow {
    async fn run(&self, _: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        if self.effects.happen() == 1 {
            self.go.notified().await;
        }
        Ok("paid".into())
    }
}

#[tokio::test]
async fn of_two_workers_that_resume_one_pause_one_runs_the_tool() {
    let (bench, slow) = (Bench::new(), Slow::default());
    let both_are_ready = Arc::new(Barrier::new(2));
    let meet = ToolGuardrail::new("meet", move |_, _| {
        let both_are_ready = both_are_ready.clone();
        async move {
            both_are_ready.wait().await;
            CallVerdict::Pass
        }
    });
    let pay = Tool::builder("pay").description("Pays.").needs_approval(true).guardrail(meet);
    let agent = agent("Payer", [pay.runner(slow.clone()).build().unwrap()]);
    let (one, two) = (bench.runner(&pay_once()), bench.runner(&pay_once()));
    let paused = one.run(&agent, "pay").await.unwrap();
    one.approve(&paused.pauses()[0]).await.unwrap();

    let run = paused.run_id();
    let mut first = tokio::spawn(one.resume(&agent, run).into_future());
    let mut second = tokio::spawn(two.resume(&agent, run).into_future());
    let (loser, winner) = tokio::select! {
        loser = &mut first => (loser, second),
        loser = &mut second => (loser, first),
    };
    assert_eq!(loser.unwrap().unwrap_err().code(), "run_busy");
    slow.go.notify_one();
    assert_eq!(text_of(&winner.await.unwrap().unwrap()), "Done.");
    assert_eq!(slow.effects.count(), 1);
    assert_eq!(text_of(&two.resume(&agent, run).await.unwrap()), "Done.", "later the result is there for everybody");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_workers_over_one_store_run_each_approved_call_once() {
    for round in 0..200 {
        let (bench, effects) = (Bench::new(), Effects::default());
        let agent = agent("Payer", [counted("pay", &effects).needs_approval(true).build().unwrap()]);
        let runners: Vec<Runner> = (0..4).map(|_| bench.runner(&pay_once())).collect();
        let paused = runners[0].run(&agent, "pay").await.unwrap();
        runners[1].approve(&paused.pauses()[0]).await.unwrap();
        let resumes = runners.iter().map(|runner| tokio::spawn(runner.resume(&agent, paused.run_id()).into_future()));
        for resumed in resumes.collect::<Vec<_>>() {
            match resumed.await.unwrap() {
                Ok(done) => assert_eq!(text_of(&done), "Done.", "round {round}"),
                Err(error) => assert_eq!(error.code(), "run_busy", "round {round}: {error}"),
            }
        }
        assert_eq!(effects.count(), 1, "round {round}");
    }
}

#[tokio::test]
async fn a_worker_that_comes_late_to_a_crashed_run_does_not_take_the_start_for_its_own() {
    let (bench, hanging) = (Bench::new(), Hanging::default());
    let (late_is_ready, let_late_go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (ready, go) = (late_is_ready.clone(), let_late_go.clone());
    let wait = ToolGuardrail::new("wait", move |context, _| {
        let (ready, go) = (ready.clone(), go.clone());
        async move {
            if context.context.get("late").is_some() {
                ready.notify_one();
                go.notified().await;
            }
            CallVerdict::Pass
        }
    });
    let pay = hanging.tool(Effect::AtMostOnce).rebuild().guardrail(wait).build().unwrap();
    let agent = agent("Payer", [pay]);
    let (one, two) = (bench.runner(&pay_once()), bench.runner(&pay_once()));
    let paused = one.run(&agent, "pay").await.unwrap();
    let run = paused.run_id();
    one.approve(&paused.pauses()[0]).await.unwrap();

    // The second has read the run, and is about to start the call, when the first starts it and dies.
    let late = two.resume(&agent, run).context(Context::new(&json!({"late": true})).unwrap());
    let late = tokio::spawn(late.into_future());
    late_is_ready.notified().await;
    let driving = tokio::spawn(one.resume(&agent, run).into_future());
    hanging.took_effect.notified().await;
    driving.abort();
    assert!(driving.await.unwrap_err().is_cancelled());
    bench.outlive_the_lease();
    let_late_go.notify_one();

    // It may say that somebody else was there, or ask at once; it may not run the tool.
    if let Err(error) = late.await.unwrap() {
        assert_eq!(error.code(), "run_busy");
    }
    assert_eq!(hanging.effects.count(), 1);
    let asked = two.resume(&agent, run).await.unwrap();
    assert_eq!(asked.pauses().len(), 1, "{asked:?}");
    assert_eq!(asked.pauses()[0].pause.kind, PauseKind::InDoubt);
    assert_eq!(hanging.effects.count(), 1);
}

/// A model that is slow to reply in one turn.
struct Stalling {
    model: ScriptedModel,
    turn: u32,
    go: Arc<Notify>,
}

#[async_trait::async_trait]
impl Model for Stalling {
    async fn reply(&self, request: ModelRequest, deltas: DeltaSink) -> Result<ModelReply, ModelFault> {
        if request.turn == self.turn {
            self.go.notified().await;
        }
        self.model.reply(request, deltas).await
    }

    fn name(&self) -> &str {
        self.model.name()
    }
}

#[tokio::test]
async fn a_worker_that_is_told_that_the_run_is_busy_has_changed_nothing() {
    let (bench, paid, filed) = (Bench::new(), Effects::default(), Effects::default());
    let pay = counted("pay", &paid).needs_approval(true).build().unwrap();
    let agent = agent("Payer", [pay, counted("file", &filed).build().unwrap()]);
    let model =
        ScriptedModel::new([Reply::call("pay", json!({})), Reply::call("file", json!({})), Reply::text("Done.")]);
    let go = Arc::new(Notify::new());
    let stalling = Arc::new(Stalling { model: model.clone(), turn: 2, go: go.clone() });
    let (one, two) = (bench.builder(&model).model(stalling).build(), bench.runner(&model));
    let paused = one.run(&agent, "pay").await.unwrap();
    let run = paused.run_id();
    one.approve(&paused.pauses()[0]).await.unwrap();
    let driving = tokio::spawn(one.resume(&agent, run).into_future());
    while two.read(run).await.unwrap().items().len() < 3 {
        bench.clock.advance(Duration::from_millis(1));
        tokio::task::yield_now().await;
    }

    // The first is slow: its lease runs out, and it takes it again before the second has written anything.
    let before = two.read(run).await.unwrap();
    bench.outlive_the_lease();
    let busy = two.resume(&agent, run).await.unwrap_err();
    assert_eq!(busy.code(), "run_busy");
    assert_eq!(two.read(run).await.unwrap(), before);
    assert_eq!(filed.count(), 0);
    go.notify_one();
    assert_eq!(text_of(&driving.await.unwrap().unwrap()), "Done.");
    assert_eq!((paid.count(), filed.count()), (1, 1));
}

/// A tool that takes effect and then waits until it may go on.
#[derive(Clone, Default)]
struct Waiting {
    effects: Effects,
    took_effect: Arc<Notify>,
    may_go_on: Arc<Notify>,
}

#[async_trait::async_trait]
impl RunTool for Waiting {
    async fn run(&self, _: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        self.effects.happen();
        self.took_effect.notify_one();
        self.may_go_on.notified().await;
        Ok("paid".into())
    }
}

#[tokio::test]
async fn a_driver_whose_lease_was_taken_writes_nothing_of_what_its_tool_did() {
    let (bench, waiting) = (Bench::new(), Waiting::default());
    let tool = Tool::builder("pay").description("Pays.").schema(json!({"type": "object"})).runner(waiting.clone());
    let agent = agent("Payer", [tool.build().unwrap()]);
    let slow = bench.runner(&pay_once());
    let driving = tokio::spawn(slow.run(&agent, "pay").session("till").into_future());
    waiting.took_effect.notified().await;
    let run = bench.store.session_runs(&"till".parse().unwrap(), 1).await.unwrap()[0].run;
    let before = bench.store.load(run, 0).await.unwrap().unwrap().entries;

    // Its lease runs out, and before it can be renewed somebody else takes the run.
    bench.clock.advance(Settings::default().lease);
    bench.store.claim(run, "another process", Duration::from_secs(60)).await.unwrap();
    waiting.may_go_on.notify_one();
    assert_eq!(driving.await.unwrap().unwrap_err().code(), "run_busy");
    assert_eq!(bench.store.load(run, 0).await.unwrap().unwrap().entries, before, "nothing was written");

    bench.clock.advance(Duration::from_secs(60));
    let asked = bench.runner(&pay_once()).resume(&agent, run).await.unwrap();
    assert_eq!(asked.pauses()[0].kind(), PauseKind::InDoubt, "whoever goes on asks what happened");
    assert_eq!(waiting.effects.count(), 1);
}

#[tokio::test]
async fn a_call_in_doubt_waits_for_a_person_however_long_it_takes() {
    let (bench, hanging) = (Bench::new(), Hanging::default());
    let agent = agent("Payer", [hanging.tool(Effect::AtMostOnce)]);
    let run = crash_in_the_tool(&bench, &agent, &hanging).await;
    bench.outlive_the_lease();
    let runner = bench.builder(&pay_once()).pause_deadline(Duration::from_secs(60)).build();
    let asked = runner.resume(&agent, run).await.unwrap();
    assert_eq!(asked.pauses()[0].pause.state, PauseState::Open { expires_at: None }, "no deadline resolves a doubt");
    bench.clock.advance(Duration::from_secs(365 * 86_400));
    let worker = Worker::new(runner.runtime().clone(), vec![agent.graph().unwrap()]);
    assert!(worker.sweep().await.unwrap().is_idle());
    assert_eq!(runner.read(run).await.unwrap().open_pauses().len(), 1);
    assert_eq!(hanging.effects.count(), 1);
}

#[tokio::test]
async fn an_approval_for_open_pauses_passes_over_what_another_run_of_the_session_denied_for_good() {
    let effects = Effects::default();
    let delete = |path: &str| ("delete", json!({"path": path}));
    let model = ScriptedModel::new([])
        .for_agent("First", [Reply::calls([delete("x"), delete("a"), delete("b")]), Reply::text("Done.")])
        .for_agent("Second", [Reply::calls([delete("a")]), Reply::text("Done.")]);
    let runner = Runner::in_memory(model);
    let (first, second) = (agent("First", [gated(&effects)]), agent("Second", [gated(&effects)]));
    let open = runner.run(&first, "go").session("desk").await.unwrap();
    let other = runner.run(&second, "go").session("desk").await.unwrap();
    let only_a = Constraint::equals("/path", CanonicalJson::parse("\"a\"").unwrap());
    let never = Always::in_session().any_agent().only(only_a);
    runner.deny(&other.pauses()[0]).always(never).by("ana").await.unwrap();

    runner.approve(&open.pauses()[0]).always(Always::in_run().apply_to_open()).by("bo").await.unwrap();
    let left = runner.resume(&first, open.run_id()).await.unwrap();
    assert_eq!(left.pauses().len(), 1, "{left:?}");
    assert_eq!(arguments(&left, 0), json!({"path": "a"}), "what ana denied for good stays a person's to decide");
    assert_eq!(effects.count(), 2);
}

#[tokio::test]
async fn a_failing_sibling_neither_undoes_nor_reruns_the_others() {
    let (paid, failed, panicked) = (Effects::default(), Effects::default(), Effects::default());
    let tried = failed.clone();
    let fail = Tool::builder("fail").needs_approval(true);
    let fail = fail.function(move |_, _: Value| {
        tried.happen();
        async { Err::<String, _>("the bank is closed") }
    });
    let tried = panicked.clone();
    let fall = Tool::builder("fall").needs_approval(true);
    let fall = fall.function(move |_, _: Value| {
        let tried = tried.clone();
        async move {
            let times = tried.happen();
            assert_eq!(times, 0, "it panics whenever it runs");
        }
    });
    let pay = counted("pay", &paid).needs_approval(true).build().unwrap();
    let agent = agent("Payer", [pay, fail.unwrap(), fall.unwrap()]);
    // After the tools the model is away once: going on must not begin the turn again.
    let calls = Reply::calls([("pay", json!({})), ("fail", json!({})), ("fall", json!({})), ("pay", json!({"n": 2}))]);
    let model = ScriptedModel::new([calls, Reply::text("Half done.").after_faults(1, "away")]);
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&agent, "pay").await.unwrap();
    for pause in paused.pauses() {
        runner.approve(pause).await.unwrap();
    }
    let fault = runner.resume(&agent, paused.run_id()).await.unwrap_err();
    assert_eq!(fault.code(), "model_unavailable");
    let done = runner.resume(&agent, paused.run_id()).await.unwrap();
    assert_eq!(text_of(&done), "Half done.");
    assert_eq!((paid.count(), failed.count(), panicked.count()), (2, 1, 1));
    let told = holdpoint_models::scripted::last_results(model.requests().last().unwrap());
    let told: Vec<&str> = told.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(told, ["pay ran with {}", "the bank is closed", "the tool panicked", r#"pay ran with {"n":2}"#]);
}

#[tokio::test]
async fn a_rule_made_after_an_exact_denial_does_not_revive_the_denied_call() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let two = Reply::calls([("delete", json!({"path": "a"})), ("delete", json!({"path": "b"}))]);
    let runner =
        Runner::in_memory(ScriptedModel::new([two, Reply::call("delete", json!({"path": "c"})), Reply::text("Done.")]));
    let paused = runner.run(&agent, "tidy up").await.unwrap();
    runner.deny(&paused.pauses()[1]).by("ana").message("keep b").await.unwrap();
    runner.approve(&paused.pauses()[0]).by("ben").always(Always::in_run().apply_to_open()).await.unwrap();
    let done = runner.resume(&agent, paused.run_id()).await.unwrap();
    assert_eq!(text_of(&done), "Done.");
    let results = results_of(&runner.read(paused.run_id()).await.unwrap());
    assert_eq!(results, [r#"delete ran with {"path":"a"}"#, "keep b", r#"delete ran with {"path":"c"}"#]);
    assert_eq!(effects.count(), 2);
}

#[tokio::test]
async fn a_rule_made_after_an_exact_approval_does_not_undo_the_approved_call() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let two = Reply::calls([("delete", json!({"path": "a"})), ("delete", json!({"path": "b"}))]);
    let runner = Runner::in_memory(ScriptedModel::new([two, Reply::text("Done.")]));
    let paused = runner.run(&agent, "tidy up").await.unwrap();
    runner.approve(&paused.pauses()[0]).await.unwrap();
    let deny = runner.deny(&paused.pauses()[1]).message("no more").always(Always::in_run().apply_to_open());
    deny.await.unwrap();
    runner.resume(&agent, paused.run_id()).await.unwrap();
    let results = results_of(&runner.read(paused.run_id()).await.unwrap());
    assert_eq!(results, [r#"delete ran with {"path":"a"}"#, "no more"]);
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn a_decision_for_a_foreign_unknown_or_used_pause_is_refused_and_nothing_runs() {
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let model = || ScriptedModel::new([Reply::call("delete", json!({"path": "a"})), Reply::text("Done.")]);
    let (here, elsewhere) = (Runner::in_memory(model()), Runner::in_memory(model()));
    let paused = here.run(&agent, "go").await.unwrap();
    let foreign = elsewhere.run(&agent, "go").await.unwrap();
    let pause = paused.pauses()[0].id();

    // Of a run that this store has never seen.
    assert_eq!(here.approve(&foreign.pauses()[0]).await.unwrap_err().code(), "not_found");
    // Of a run that it knows, with a number that was never given out.
    for number in [0, 2, u32::MAX] {
        assert_eq!(here.approve(PauseId { number, ..pause }).await.unwrap_err().code(), "not_found");
    }
    // The same in a state that the caller keeps, also for an edited approval.
    let mut state = here.state(&agent, paused.run_id()).await.unwrap();
    assert_eq!(state.approve(&foreign.pauses()[0]).unwrap_err().code(), "not_found");
    let edited = Decision::ApproveEdited { arguments: CanonicalJson::parse("{}").unwrap() };
    let unknown = PauseId { number: 7, ..pause };
    assert_eq!(state.decide(unknown, edited.clone(), None).unwrap_err().code(), "not_found");
    assert_eq!(here.decide(unknown, edited).await.unwrap_err().code(), "not_found");
    assert!(here.resume(&agent, paused.run_id()).await.unwrap().is_paused());
    assert_eq!(effects.count(), 0);

    // Used: another answer is told who was first; the same answer again gets what was recorded.
    let recorded = here.deny(pause).by("ana").message("no").await.unwrap();
    let late = here.approve(pause).by("ben").await.unwrap_err();
    let Some(Refusal::AlreadyDecided { by, outcome, .. }) = late.refusal() else { panic!("{late}") };
    assert_eq!((late.code(), by.as_str(), *outcome), ("already_decided", "ana", "deny"));
    assert_eq!(here.deny(pause).by("ben").message("no").await.unwrap().pause, recorded.pause);
    here.resume(&agent, paused.run_id()).await.unwrap();
    // And after the run is over.
    assert_eq!(here.approve(pause).await.unwrap_err().code(), "already_decided");
    assert_eq!(effects.count(), 0);
}

#[tokio::test]
async fn an_undecided_resume_does_not_run_although_the_predicate_would_now_let_it() {
    let (effects, asked) = (Effects::default(), Effects::default());
    let needs_approval = Arc::new(AtomicBool::new(true));
    let (says, counts) = (needs_approval.clone(), asked.clone());
    let tool = counted("delete", &effects).needs_approval_when(move |_, _| {
        counts.happen();
        let held = says.load(Ordering::SeqCst);
        async move { held }
    });
    let agent = agent("Ops", [tool.build().unwrap()]);
    let model = ScriptedModel::new([Reply::call("delete", json!({"path": "a"})), Reply::text("Done.")]);
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&agent, "go").await.unwrap();
    needs_approval.store(false, Ordering::SeqCst);

    let resumed = runner.resume(&agent, paused.run_id()).await.unwrap();
    assert_eq!(resumed, paused);
    let json = runner.state(&agent, paused.run_id()).await.unwrap().to_json();
    let elsewhere = Runner::in_memory(model);
    let state = RunState::from_json(&agent, &json).unwrap();
    let resumed = elsewhere.resume_state(&agent, state).await.unwrap();
    assert_eq!(resumed.pauses().len(), 1);
    let sweep = elsewhere.worker(std::slice::from_ref(&agent)).unwrap().sweep().await.unwrap();
    assert!(sweep.is_idle());
    assert_eq!((effects.count(), asked.count()), (0, 1));
}

#[tokio::test]
async fn edited_arguments_that_break_the_schema_are_refused_and_the_pause_stays_open() {
    let effects = Effects::default();
    let schema = json!({
        "type": "object",
        "properties": {"amount": {"type": "integer", "maximum": 100}},
        "required": ["amount"],
        "additionalProperties": false,
    });
    let pay = counted("pay", &effects).needs_approval(true).schema(schema).build().unwrap();
    let agent = agent("Payer", [pay]);
    let runner = Runner::in_memory(pay_once());
    let paused = runner.run(&agent, "pay").await.unwrap();
    let pause = &paused.pauses()[0];
    let broken =
        [json!({"amount": "many"}), json!({"amount": 101}), json!({}), json!({"amount": 1, "to": "me"}), json!([1])];
    for arguments in broken {
        let refused = runner.approve(pause).edited(&arguments).await.unwrap_err();
        assert_eq!(refused.code(), "invalid_arguments", "{arguments}");
        let mut state = runner.state(&agent, paused.run_id()).await.unwrap();
        let edited = Decision::ApproveEdited { arguments: CanonicalJson::from_serialize(&arguments).unwrap() };
        assert_eq!(state.decide(pause, edited, None).unwrap_err().code(), "invalid_arguments", "{arguments}");
        assert_eq!(state.pauses().len(), 1);
    }
    assert_eq!(runner.resume(&agent, paused.run_id()).await.unwrap(), paused, "still open, still undecided");
    assert_eq!(effects.count(), 0);

    runner.approve(pause).edited(&json!({"amount": 12})).await.unwrap();
    runner.resume(&agent, paused.run_id()).await.unwrap();
    let results = results_of(&runner.read(paused.run_id()).await.unwrap());
    assert_eq!(results, [r#"pay ran with {"amount":12}"#]);
    assert_eq!(effects.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deadline_and_a_decision_that_race_have_one_outcome_and_the_answer_is_what_the_store_says() {
    const DEADLINE: Duration = Duration::from_secs(60);
    let (mut decided, mut expired) = (0, 0);
    for seed in 0..400_u64 {
        println!("seed {seed}");
        let mut dice = Dice(seed);
        let (bench, effects) = (Bench::new(), Effects::default());
        let agent = agent("Ops", [gated(&effects)]);
        let model = ScriptedModel::new([Reply::call("delete", json!({"path": "a"})), Reply::text("Done.")]);
        let make = || bench.builder(&model).pause_deadline(DEADLINE).build();
        let (one, two) = (make(), make());
        let paused = one.run(&agent, "go").await.unwrap();
        let (run, pause) = (paused.run_id(), paused.pauses()[0].id());
        // Time stands right before the deadline, or the clock itself is part of the race.
        bench.clock.advance(DEADLINE - Duration::from_millis(1));

        let clock = bench.clock.clone();
        let yields: Vec<u64> = (0..3).map(|_| dice.below(6)).collect();
        let (before_clock, before_decision, before_sweep) = (yields[0], yields[1], yields[2]);
        let time = tokio::spawn(async move {
            yield_times(before_clock).await;
            clock.advance(Duration::from_millis(1));
        });
        let answer = tokio::spawn(async move {
            yield_times(before_decision).await;
            one.approve(pause).by("ana").await
        });
        let sweeper = two.worker(std::slice::from_ref(&agent)).unwrap();
        let sweep = tokio::spawn(async move {
            yield_times(before_sweep).await;
            sweeper.sweep().await.unwrap();
        });
        time.await.unwrap();
        let answer = answer.await.unwrap();
        sweep.await.unwrap();
        two.worker(std::slice::from_ref(&agent)).unwrap().sweep().await.unwrap();
        let last = finish(&two, &agent, run).await;
        assert_eq!(text_of(&last), "Done.", "seed {seed}");

        let stored = two.read(run).await.unwrap();
        match (&answer, &stored.pause(pause).unwrap().state) {
            (Ok(recorded), PauseState::Decided(by)) => {
                assert_eq!(recorded.pause.state, PauseState::Decided(by.clone()), "seed {seed}");
                assert_eq!(effects.count(), 1, "seed {seed}");
                decided += 1;
            }
            (Err(refused), PauseState::Expired { .. }) => {
                assert_eq!(refused.code(), "expired", "seed {seed}");
                assert_eq!(effects.count(), 0, "seed {seed}");
                expired += 1;
            }
            other => panic!("seed {seed}: the caller was told one thing and the store says another: {other:?}"),
        }
    }
    assert!(decided > 0 && expired > 0, "the race must go both ways: {decided} decided, {expired} expired");
}

#[tokio::test]
async fn equal_call_ids_in_parallel_nested_runs_are_two_pauses_decided_separately() {
    // Equal arguments are the worst case there: one approval ran both.
    for (first, second) in [("a", "a"), ("a", "b")] {
        let effects = Effects::default();
        let inner = agent("Inner", [gated(&effects)]);
        let outer = agent("Outer", [inner.as_tool("ask_inner", "Asks.").build().unwrap()]);
        let both = Reply::calls([("ask_inner", json!({"input": first})), ("ask_inner", json!({"input": second}))]);
        let model = ScriptedModel::new([both, Reply::text("outer done")]).for_agent_by("ask_inner", |request| {
            match request.turn {
                1 => {
                    let path = holdpoint_models::scripted::last_said(request);
                    Reply::empty().and_call_as("call_0", "delete", json!({"path": path}))
                }
                _ => Reply::text("inner done"),
            }
        });
        let runner = Runner::in_memory(model);
        let paused = runner.run(&outer, "go").await.unwrap();
        assert_eq!(paused.pauses().len(), 2, "{paused:?}");
        let ids: Vec<_> = paused.pauses().iter().map(|pause| pause.call.as_ref().unwrap().call_id.as_str()).collect();
        assert_eq!(ids, ["call_0", "call_0"]);

        runner.approve(&paused.pauses()[0]).await.unwrap();
        let still = runner.resume(&outer, paused.run_id()).await.unwrap();
        assert_eq!(still.pauses(), &paused.pauses()[1..], "the other is still asked");
        assert_eq!(effects.count(), 1);
        runner.deny(&still.pauses()[0]).await.unwrap();
        let done = runner.resume(&outer, paused.run_id()).await.unwrap();
        assert_eq!(text_of(&done), "outer done");
        assert_eq!(effects.count(), 1);
    }
}

/// An agent with one gated tool, as it was and as it is after an edit.
fn edition(instructions: &str, description: &str, maximum: u32, effects: &Effects) -> Agent {
    let schema = json!({"type": "object", "properties": {"amount": {"type": "integer", "maximum": maximum}}});
    let pay = counted("pay", effects).description(description).schema(schema).needs_approval(true).build().unwrap();
    Agent::builder("Payer").instructions(instructions).tool(pay).build().unwrap()
}

#[tokio::test]
async fn an_agent_that_was_edited_while_paused_goes_on_as_it_was() {
    let effects = Effects::default();
    let (then, now) = (edition("Be kind.", "Pays.", 100, &effects), edition("Be rude.", "Robs.", 5, &effects));
    let model = pay_once();
    let runner = Runner::in_memory(model.clone());
    let paused = runner.run(&then, "pay").await.unwrap();
    // Edits are held against the schema that the run knows, whatever the tool takes now.
    let refused = runner.approve(&paused.pauses()[0]).edited(&json!({"amount": 101})).await.unwrap_err();
    assert_eq!(refused.code(), "invalid_arguments");
    runner.approve(&paused.pauses()[0]).edited(&json!({"amount": 99})).await.unwrap();
    assert_eq!(text_of(&runner.resume(&now, paused.run_id()).await.unwrap()), "Done.");
    assert_eq!(effects.count(), 1);
    let last = model.requests().pop().unwrap();
    assert_eq!(&*last.instructions, "Be kind.");
    assert_eq!(last.tools[0].description, "Pays.");
    assert_eq!(last.tools[0].schema["properties"]["amount"]["maximum"], 100);
    // A run that starts now is of the agent as it is now.
    runner.run(&now, "pay").await.unwrap();
    assert_eq!(&*model.requests().pop().unwrap().instructions, "Be rude.");
}

#[tokio::test]
async fn an_agent_that_was_edited_while_paused_is_refused_where_that_is_asked_for() {
    let effects = Effects::default();
    let (then, now) = (edition("Be kind.", "Pays.", 100, &effects), edition("Be rude.", "Pays.", 100, &effects));
    let runner = Runner::builder().model(Arc::new(pay_once())).drift(DriftPolicy::Refuse).build();
    let paused = runner.run(&then, "pay").await.unwrap();
    runner.approve(&paused.pauses()[0]).await.unwrap();
    let before = runner.read(paused.run_id()).await.unwrap();
    assert_eq!(runner.resume(&now, paused.run_id()).await.unwrap_err().code(), "agent_changed");
    assert_eq!(runner.read(paused.run_id()).await.unwrap(), before, "nothing changed");
    assert_eq!(effects.count(), 0);
    assert_eq!(text_of(&runner.resume(&then, paused.run_id()).await.unwrap()), "Done.");
    assert_eq!(effects.count(), 1);
}

#[tokio::test]
async fn a_call_approved_for_a_tool_that_changed_is_held_again_where_the_edit_is_accepted() {
    let effects = Effects::default();
    let (then, now) = (edition("Be kind.", "Pays.", 100, &effects), edition("Be rude.", "Pays twice.", 100, &effects));
    let model = pay_once();
    let runner = Runner::builder().model(Arc::new(model.clone())).drift(DriftPolicy::Accept).build();
    let paused = runner.run(&then, "pay").await.unwrap();
    runner.approve(&paused.pauses()[0]).await.unwrap();
    let again = runner.resume(&now, paused.run_id()).await.unwrap();
    assert_eq!(again.pauses().len(), 1, "{again:?}");
    assert_ne!(again.pauses()[0].id(), paused.pauses()[0].id());
    assert!(again.pauses()[0].pause.reason.as_deref().is_some_and(|reason| reason.contains("changed")));
    assert_eq!(effects.count(), 0);
    runner.approve(&again.pauses()[0]).await.unwrap();
    assert_eq!(text_of(&runner.resume(&now, paused.run_id()).await.unwrap()), "Done.");
    assert_eq!(effects.count(), 1);
    assert_eq!(&*model.requests().pop().unwrap().instructions, "Be rude.");

    // An edit that leaves the tool as it was does not cost the approval.
    let kinder = edition("Be kinder.", "Pays twice.", 100, &effects);
    let paused = runner.run(&now, "pay").await.unwrap();
    runner.approve(&paused.pauses()[0]).await.unwrap();
    assert_eq!(text_of(&runner.resume(&kinder, paused.run_id()).await.unwrap()), "Done.");
    assert_eq!(effects.count(), 2);
    assert_eq!(&*model.requests().pop().unwrap().instructions, "Be kinder.");
}

#[tokio::test]
async fn a_signed_state_file_that_was_tampered_with_is_refused() {
    let effects = Effects::default();
    let agent = agent("Payer", [counted("pay", &effects).needs_approval(true).build().unwrap()]);
    let key = StateKey::new([7; 32]).unwrap();
    let runner = Runner::builder().model(Arc::new(pay_once())).state_key(key.clone()).build();
    let paused = runner.run(&agent, "pay").await.unwrap();
    let mut state = runner.state(&agent, paused.run_id()).await.unwrap();
    let json = state.to_json();
    assert!(runner.read_state(&agent, &json).is_ok());
    // Re-formatting is no tampering: a database may store it as it likes.
    let value: Value = serde_json::from_str(&json).unwrap();
    assert!(runner.read_state(&agent, &serde_json::to_string_pretty(&value).unwrap()).is_ok());

    let larger = json.replace(r#""amount":11"#, r#""amount":1000000"#);
    assert_ne!(larger, json);
    let mut unsigned = value.clone();
    unsigned.as_object_mut().unwrap().remove("signature");
    state.approve(paused.pauses()[0].id()).unwrap();
    let mut approved: Value = serde_json::from_str(&state.to_json()).unwrap();
    approved["signature"] = value["signature"].clone();
    let foreign = state.to_json_signed(&StateKey::new([8; 32]).unwrap());
    for tampered in [larger, unsigned.to_string(), approved.to_string(), foreign] {
        assert_eq!(runner.read_state(&agent, &tampered).unwrap_err().code(), "state_tampered", "{tampered}");
    }
    assert!(StateKey::new([7; 31]).is_err(), "a key that can be guessed is no key");
    assert_eq!(format!("{key:?}"), "StateKey(…)");
    assert_eq!(effects.count(), 0);
}

#[tokio::test]
async fn without_a_key_a_state_file_that_contradicts_itself_is_refused() {
    let effects = Effects::default();
    let agent = agent("Payer", [counted("pay", &effects).needs_approval(true).build().unwrap()]);
    let runner = Runner::in_memory(pay_once());
    let paused = runner.run(&agent, "pay").await.unwrap();
    let honest = runner.state(&agent, paused.run_id()).await.unwrap().to_json();
    let value: Value = serde_json::from_str(&honest).unwrap();
    let with = |event: Value| {
        let mut value = value.clone();
        let at = value["entries"][0]["at"].clone();
        value["entries"].as_array_mut().unwrap().push(json!({"at": at, "events": [event]}));
        value.to_string()
    };
    let result = json!({"call": "1.0", "outcome": {"result": {"text": "paid"}}});
    let decided = |number: u32| json!({"number": number, "decision": "approve", "by": "mallory"});
    let tampered = [
        ("other arguments than were held", honest.replace(r#""amount":11"#, r#""amount":1000000"#)),
        ("a start that nobody approved", with(json!({"call.started": {"call": "1.0"}}))),
        ("a result of a call that never started", with(json!({"call.answered": result}))),
        ("an allowance beside the pause", with(json!({"call.allowed": {"call": "1.0", "by": "policy"}}))),
        ("an approval by a pause", with(json!({"call.allowed": {"call": "1.0", "by": {"pause": 1}}}))),
        ("a decision for a pause that there is not", with(json!({"pause.decided": decided(2)}))),
        ("an end while a pause is open", with(json!({"run.finished": {"done": {"text": "Done."}}}))),
        ("a second beginning", with(value["entries"][0]["events"][0].clone())),
    ];
    for (what, json) in tampered {
        assert_ne!(json, honest);
        let refused = RunState::from_json(&agent, &json).unwrap_err();
        assert_eq!(refused.code(), "state_corrupt", "{what}: {refused}");
    }
    // What a signature alone can tell: a decision that somebody wrote in by hand looks like any other.
    let forged = RunState::from_json(&agent, &with(json!({"pause.decided": decided(1)}))).unwrap();
    assert!(forged.pauses().is_empty());
    // Even so the store is not rewound: it knows a run of this id, and what it knows is never overwritten.
    runner.deny(&paused.pauses()[0]).await.unwrap();
    assert_eq!(runner.resume_state(&agent, forged).await.unwrap_err().code(), "state_stale");
    assert_eq!(effects.count(), 0);
}

#[tokio::test]
async fn always_approving_a_small_payment_does_not_let_a_large_one_through() {
    let effects = Effects::default();
    let agent = agent("Payer", [counted("pay", &effects).needs_approval(true).build().unwrap()]);
    let replies = [11, 50, 1_000_000].map(|amount| Reply::call("pay", json!({"amount": amount})));
    let odd = Reply::call("pay", json!({"amount": "11", "also": 1}));
    let model = ScriptedModel::new(replies.into_iter().chain([odd, Reply::text("Done.")]));
    let runner = Runner::in_memory(model);
    let paused = runner.run(&agent, "pay").await.unwrap();
    let small = Always::in_run().only(Constraint::at_most("/amount", 100));
    runner.approve(&paused.pauses()[0]).always(small).await.unwrap();
    let asked = runner.resume(&agent, paused.run_id()).await.unwrap();
    assert_eq!(effects.count(), 2, "11 by hand, 50 by the rule");
    assert_eq!(arguments(&asked, 0), json!({"amount": 1_000_000}));
    runner.deny(&asked.pauses()[0]).await.unwrap();
    let asked = runner.resume(&agent, paused.run_id()).await.unwrap();
    assert_eq!(arguments(&asked, 0), json!({"amount": "11", "also": 1}), "what is not a number is asked about");
    runner.deny(&asked.pauses()[0]).await.unwrap();
    assert_eq!(text_of(&runner.resume(&agent, paused.run_id()).await.unwrap()), "Done.");
    assert_eq!(effects.count(), 2);
}

/// What the model was told of each call of the root agent, in order.
fn results_of(run: &Run) -> Vec<String> {
    let text = |item: &Arc<Item>| match &**item {
        Item::ToolResult { output, .. } => Some(output.to_text()),
        _ => None,
    };
    run.items().iter().filter_map(text).collect()
}

/// Resumes until nobody else moves the run.
async fn finish(runner: &Runner, agent: &Agent, run: RunId) -> RunOutcome {
    loop {
        match runner.resume(agent, run).await {
            Err(error) if error.code() == "run_busy" => tokio::task::yield_now().await,
            outcome => return outcome.unwrap(),
        }
    }
}

async fn yield_times(times: u64) {
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}

/// Small and the same everywhere: the seed says it all.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
