//! A bus that is cut, deaf, or lied to: things come late, and nothing goes wrong.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use holdpoint_core::event::RunEnd;
use holdpoint_runtime::DriveOptions;
use holdpoint_runtime::ports::bus::Heard;
use holdpoint_testkit::crash::CutStore;

use super::{Place, Stage, Watcher, ana, approve, soon};

/// How often the store is looked at where a test is about looking.
const OFTEN: Duration = Duration::from_millis(50);

pub async fn what_nobody_told_is_found_by_looking(place: &impl Place) {
    let stage = Stage::new();
    let quiet = CutStore::telling_nobody(place.store().await);
    assert!(holdpoint_runtime::ports::store::Store::bus(&*quiet).is_none(), "this one tells nobody");
    let (a, b) = (stage.instance(quiet, OFTEN), stage.instance(place.store().await, OFTEN));
    let mut watching = Watcher::of(&b);
    let pause = stage.paused(&a).await;
    watching.until("pause.opened").await;
    approve(&a, pause).await;
    watching.until("pause.decided").await;
    a.cancel_run(pause.run, ana(), "enough").await.unwrap();
    watching.until("run.finished").await;
    // Also by those who move a run.
    let (run, task) = stage.start(&b);
    stage.call(&["wait"]);
    soon(stage.effects.waiting.acquire()).await.unwrap().forget();
    a.cancel_run(run, ana(), "enough").await.unwrap();
    soon(stage.effects.cancelled.acquire()).await.unwrap().forget();
    assert!(matches!(soon(task).await.unwrap().unwrap().end(), Some(RunEnd::Cancelled { .. })));
    watching.until("run.finished").await;
    assert_eq!(b.instances_elsewhere(), 0);
}

pub async fn connections_that_are_lost_are_made_again_and_nothing_is_missed(place: &impl Place) {
    let stage = Stage::new();
    let [a, b] = stage.instances(place).await;
    let mut watching = Watcher::of(&b);
    for round in 1..=3 {
        place.hang_up().await;
        let pause = stage.paused(&a).await;
        watching.until("pause.opened").await;
        place.hang_up().await;
        approve(&a, pause).await;
        stage.say("Paid");
        stage.reply("Paid.");
        a.resume_run(pause.run, stage.graph.clone(), DriveOptions::default()).await.unwrap();
        watching.until("run.finished").await;
        assert_eq!(stage.effects.paid.available_permits(), round);
    }
    let stored: Vec<u64> = watching.numbers.clone();
    assert_eq!(stored, (1..=stored.len() as u64).collect::<Vec<_>>());
    // Words are heard again, too.
    let (_, task) = stage.start(&a);
    stage.say("Still here");
    watching.until_line("says: Still here").await;
    stage.reply("Still here.");
    soon(task).await.unwrap().unwrap();
}

pub async fn whatever_is_shouted_on_the_channel_changes_nothing(place: &impl Place) {
    let seed = RandomState::new().hash_one(0);
    println!("seed {seed}");
    let stage = Stage::new();
    let [a, b] = stage.instances(place).await;
    let mut watching = Watcher::of(&b);
    let pause = stage.paused(&a).await;
    watching.until("pause.opened").await;
    let run = pause.run;
    let said = |turn: &str| {
        format!(
            r#"{{"v":1,"from":"x","n":1,"news":{{"said":{{"session":"s","run":"{run}","frame":"","turn":{turn},"after":0,"attempt":1,"first":0,"parts":[{{"t":"lies"}}]}}}}}}"#
        )
    };
    let commit = format!(
        r#"{{"v":1,"from":"x","n":18446744073709551615,"news":{{"committed":{{"session":"s","run":"{run}","revision":18446744073709551615,"seq":18446744073709551615,"pauses":true,"needs_somebody":true}}}}}}"#
    );
    let mut shouts: Vec<Vec<u8>> = [
        "",
        "null",
        "[]",
        "{}",
        r#"{"v":1}"#,
        r#"{"v":2,"from":"x","n":1,"news":{"here":{"asks":true}}}"#,
        r#"{"v":1,"from":"x","n":1,"news":{"melted":{}}}"#,
        r#"{"v":1,"from":"x","n":-1,"news":{"here":{"asks":true}}}"#,
        r#"{"v":1,"from":"x","n":1,"news":{"here":{"asks":true}}}"#,
        r#"{"v":1,"from":"x","n":9,"news":{"watching":{"sessions":["s",""],"anew":true}}}"#,
        r#"{"v":1,"from":"x","n":9,"news":{"watching":{"sessions":["s","t"],"anew":true}}}"#,
        &commit,
        &commit.replace(&run.to_string(), "run_00000000000000000000000000000000"),
        // A call that is over, and one that nobody made.
        &said("1"),
        &said("4294967295"),
        &"[".repeat(7_000),
        &"9".repeat(7_000),
        &"x".repeat(100_000),
    ]
    .map(|text| text.as_bytes().to_vec())
    .into();
    let mut state = seed | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..100 {
        let length = random() % 600;
        shouts.push((0..length).map(|_| random() as u8).collect());
        let mut changed = commit.clone().into_bytes();
        let place = random() as usize % changed.len();
        changed[place] = random() as u8;
        shouts.push(changed);
    }
    for shout in &shouts {
        place.shout(shout).await;
    }
    approve(&a, pause).await;
    stage.reply("Paid.");
    a.resume_run(run, stage.graph.clone(), DriveOptions::default()).await.unwrap();
    watching.until("run.finished").await;
    assert_eq!(stage.effects.paid.available_permits(), 1);
    let mut fresh = Watcher::of(&a);
    fresh.until("run.finished").await;
    watching.saw(&fresh.seen);
    // And they still hear each other.
    let (_, task) = stage.start(&a);
    stage.say("Still here");
    watching.until_line("says: Still here").await;
    stage.reply("Still here.");
    soon(task).await.unwrap().unwrap();
}

pub async fn texts_come_in_order_to_all_and_to_no_other_store(place: &impl Place) {
    let (a, b, other) = (place.store().await, place.store().await, place.other_store().await);
    let (a, b, other) = (a.bus().unwrap(), b.bus().unwrap(), other.bus().unwrap());
    let (mut here, mut there, mut stranger) = (a.subscribe(), b.subscribe(), other.subscribe());
    for heard in [&mut here, &mut there, &mut stranger] {
        assert_eq!(soon(heard.next()).await, Some(Heard::Missed));
    }
    let longest = "x".repeat(a.text_bytes_max());
    let texts: Vec<String> = (0..500).map(|number| number.to_string()).chain([longest.clone()]).collect();
    texts.iter().for_each(|text| a.publish(text.clone()));
    a.publish(format!("{longest}x"));
    assert_eq!(a.dropped(), 1);
    for heard in [&mut here, &mut there] {
        for text in &texts {
            assert_eq!(soon(heard.next()).await, Some(Heard::Text(text.as_str().into())));
        }
    }
    other.publish("mine".to_owned());
    assert_eq!(soon(stranger.next()).await, Some(Heard::Text("mine".into())));
}
