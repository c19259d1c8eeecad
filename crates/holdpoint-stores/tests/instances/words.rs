//! What a model says at one instance, seen at another.

use holdpoint_core::event::RunEvent;
use holdpoint_runtime::ports::bus::Heard;
use holdpoint_runtime::ports::model::{Delta, ModelReply};
use holdpoint_runtime::use_cases::WatchItem;

use super::{Line, Place, Stage, Watcher, session, soon, until};

pub async fn words_are_seen_elsewhere_while_the_model_speaks_and_by_latecomers_from_the_beginning(place: &impl Place) {
    let stage = Stage::new();
    let [a, b, c] = stage.instances(place).await;
    let mut watching = Watcher::of(&b);
    let (_, task) = stage.start(&a);
    stage.say("Hel");
    watching.until_line("says: Hel").await;
    stage.say("lo");
    stage.say(" there");
    watching.until_line("says: Hello there").await;
    let mut late = Watcher::of(&c);
    late.until_line("says: Hello there").await;
    stage.reply("Hello there!");
    for watcher in [&mut watching, &mut late] {
        watcher.until("run.finished").await;
        watcher.saw(&["run.started", "says: Hello there", "model.replied", "run.finished"]);
    }
    soon(task).await.unwrap().unwrap();
}

pub async fn words_of_several_turns_stand_where_they_stand_at_the_instance_that_drives(place: &impl Place) {
    let stage = Stage::new();
    let [a, b] = stage.instances(place).await;
    let (mut here, mut there) = (Watcher::of(&a), Watcher::of(&b));
    let (_, task) = stage.start(&a);
    for turn in 1..=4 {
        for part in ["I look", " it up", " once more."] {
            stage.say(part);
        }
        stage.say(&turn.to_string());
        stage.call(&["note"]);
    }
    stage.say("Done.");
    stage.reply("Done.");
    soon(task).await.unwrap().unwrap();
    here.until("run.finished").await;
    there.until("run.finished").await;
    assert_eq!(here.seen.iter().filter(|line| line.starts_with("says: ")).count(), 5, "{:?}", here.seen);
    there.saw(&here.seen);
}

pub async fn whoever_begins_to_watch_behind_the_beginning_sees_the_words_that_follow(place: &impl Place) {
    let stage = Stage::new();
    let [a, b] = stage.instances(place).await;
    let mut here = Watcher::of(&a);
    let (_, task) = stage.start(&a);
    stage.call(&["note"]);
    stage.say("Now");
    here.until_line("says: Now").await;
    // The reply before these words is not shown to this watcher.
    let seen = *here.numbers.last().unwrap();
    let mut watch = b.watch_session(&session(), seen + 1);
    let first = soon(watch.next()).await.unwrap();
    assert!(matches!(&first, WatchItem::Delta { delta: Delta::Text(text), .. } if text == "Now"), "{first:?}");
    stage.reply("Now.");
    let next = soon(watch.next()).await.unwrap();
    let WatchItem::Event { seq, event: RunEvent::ModelReplied(_), .. } = next else { panic!("{next:?}") };
    assert_eq!(seq, seen + 1);
    soon(task).await.unwrap().unwrap();
}

pub async fn long_and_hostile_words_arrive_whole(place: &impl Place) {
    let stage = Stage::new();
    let [a, b] = stage.instances(place).await;
    let mut watch = b.watch_session(&session(), 1);
    until(|| a.sessions_watched_elsewhere() == 1).await;
    let (_, task) = stage.start(&a);
    let text = "'); NOTIFY x; --\u{0}\u{1}\u{202e}\u{200b}日本\"\\\r\n{\"v\":1}".repeat(2_000);
    let thought = "\u{7}".repeat(5_000);
    let arguments =
        |text: &str| Delta::Arguments { id: "c\"1".to_owned(), tool: "pay".to_owned(), text: text.to_owned() };
    for delta in [Delta::Thinking(thought.clone()), Delta::Text(text.clone()), arguments("{\"a\":"), arguments("1}")] {
        stage.lines.send(Line::Say(delta)).unwrap();
    }
    let (mut said, mut thinking, mut argued) = (String::new(), String::new(), String::new());
    let wanted = (thought.len(), text.len(), "{\"a\":1}".len());
    // Words that come behind the reply which they are part of are not shown: the reply waits for them.
    while (thinking.len(), said.len(), argued.len()) != wanted {
        match soon(watch.next()).await.unwrap() {
            WatchItem::Delta { delta: Delta::Text(more), .. } => said += &more,
            WatchItem::Delta { delta: Delta::Thinking(more), .. } => thinking += &more,
            WatchItem::Delta { delta: Delta::Arguments { id, tool, text }, .. } => {
                assert_eq!((id.as_str(), tool.as_str()), ("c\"1", "pay"));
                argued += &text;
            }
            WatchItem::Event { event, .. } => assert!(!matches!(event, RunEvent::RunFinished(_)), "{argued}"),
        }
    }
    assert!((thinking, said) == (thought, text), "other words arrived");
    assert_eq!(argued, "{\"a\":1}");
    stage.reply("short");
    soon(task).await.unwrap().unwrap();
}

pub async fn words_are_told_only_where_somebody_watches(place: &impl Place) {
    let stage = Stage::new();
    let [a, b] = stage.instances(place).await;
    let spy = place.store().await;
    let mut heard = spy.bus().unwrap().subscribe();
    assert_eq!(soon(heard.next()).await, Some(Heard::Missed));
    let mut told_of = async |finished: &str| {
        let mut words = 0;
        loop {
            let Some(Heard::Text(text)) = soon(heard.next()).await else { continue };
            words += usize::from(text.contains("\"said\""));
            if text.contains(finished) {
                return words;
            }
        }
    };
    let (_, task) = stage.start(&a);
    stage.say("Nobody");
    stage.say(" hears");
    stage.reply("Nobody hears");
    soon(task).await.unwrap().unwrap();
    assert_eq!(told_of("\"seq\":3").await, 0);
    let mut watching = Watcher::of(&b);
    until(|| a.sessions_watched_elsewhere() == 1).await;
    let (_, task) = stage.start(&a);
    stage.say("Somebody");
    watching.until_line("says: Somebody").await;
    stage.lines.send(Line::Reply(ModelReply::default())).unwrap();
    soon(task).await.unwrap().unwrap();
    assert!(told_of("\"seq\":6").await > 0);
}
