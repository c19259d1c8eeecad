//! What is done at one instance, and what follows from it at another.

use holdpoint_core::event::RunEnd;
use holdpoint_runtime::DriveOptions;
use holdpoint_runtime::ports::observer::Change;
use holdpoint_runtime::use_cases::PauseNews;
use holdpoint_runtime::worker::Worker;

use super::{NEVER, Place, Stage, Watcher, ana, approve, soon};

pub async fn what_one_commits_the_others_see(place: &impl Place) {
    let stage = Stage::new();
    let [a, b, c] = stage.instances(place).await;
    let (mut here, mut there, mut elsewhere) = (Watcher::of(&a), Watcher::of(&b), Watcher::of(&c));
    let pause = stage.paused(&a).await;
    there.until("pause.opened").await;
    elsewhere.until("pause.opened").await;
    // Any instance takes a decision, and goes on.
    approve(&b, pause).await;
    stage.reply("Paid.");
    b.resume_run(pause.run, stage.graph.clone(), DriveOptions::default()).await.unwrap();
    for watcher in [&mut here, &mut there, &mut elsewhere] {
        watcher.until("run.finished").await;
    }
    assert_eq!(stage.effects.paid.available_permits(), 1);
    there.saw(&here.seen);
    elsewhere.saw(&here.seen);
}

pub async fn the_feed_of_pauses_shows_what_others_change(place: &impl Place) {
    let stage = Stage::new();
    let [a, b] = stage.instances(place).await;
    let mut feed = b.watch_pauses();
    let mut next = async || loop {
        match soon(feed.next()).await.unwrap() {
            PauseNews::Changed(change) => return change,
            PauseNews::Missed(0) => {}
            other => panic!("{other:?}"),
        }
    };
    let pause = stage.paused(&a).await;
    let opened = next().await;
    assert_eq!((opened.pause, opened.change), (pause, Change::Opened));
    assert_eq!((opened.session.as_str(), opened.agent.as_str()), ("s", "Desk"));
    assert_eq!(opened.tool.unwrap().as_str(), "pay");
    approve(&a, pause).await;
    let decided = next().await;
    assert_eq!(
        (decided.pause, decided.change, decided.opened_at),
        (pause, Change::Decided("approve"), opened.opened_at)
    );
}

pub async fn a_decision_wakes_whoever_moves_the_run_elsewhere(place: &impl Place) {
    let stage = Stage::new();
    let [a, b] = stage.instances(place).await;
    let (run, task) = stage.start(&a);
    stage.call(&["pay", "wait"]);
    soon(stage.effects.waiting.acquire()).await.unwrap().forget();
    // The run is in motion at the first one, whose driver waits for a tool.
    approve(&b, holdpoint_core::ids::PauseId { run, number: 1 }).await;
    soon(stage.effects.paid.acquire()).await.unwrap().forget();
    stage.effects.let_go.add_permits(1);
    stage.reply("Paid.");
    assert!(matches!(soon(task).await.unwrap().unwrap().end(), Some(RunEnd::Done(_))));
}

pub async fn a_cancellation_reaches_whoever_moves_the_run_elsewhere(place: &impl Place) {
    let stage = Stage::new();
    let [a, b] = stage.instances(place).await;
    // In the middle of a tool.
    let (run, task) = stage.start(&a);
    stage.call(&["wait"]);
    soon(stage.effects.waiting.acquire()).await.unwrap().forget();
    b.cancel_run(run, ana(), "enough").await.unwrap();
    soon(stage.effects.cancelled.acquire()).await.unwrap().forget();
    assert!(matches!(soon(task).await.unwrap().unwrap().end(), Some(RunEnd::Cancelled { .. })));
    // In the middle of a model's words.
    let mut watching = Watcher::of(&b);
    let (run, task) = stage.start(&a);
    stage.say("I am still");
    watching.until_line("says: I am still").await;
    b.cancel_run(run, ana(), "enough").await.unwrap();
    assert!(matches!(soon(task).await.unwrap().unwrap().end(), Some(RunEnd::Cancelled { .. })));
}

pub async fn a_run_that_needs_somebody_is_gone_on_with_by_any_worker(place: &impl Place) {
    let stage = Stage::new();
    let [a, b, c] = stage.instances(place).await;
    let workers = [&a, &c].map(|runtime| Worker::new(runtime.clone(), vec![stage.graph.clone()]).poll(NEVER).spawn());
    let mut watching = Watcher::of(&b);
    for round in 1..=3_usize {
        let pause = stage.paused(&b).await;
        // Decided where nobody goes on with anything.
        approve(&b, pause).await;
        stage.reply("Paid.");
        watching.until("run.finished").await;
        assert_eq!(stage.effects.paid.available_permits(), round);
    }
    for worker in workers {
        soon(worker.stop()).await;
    }
}
