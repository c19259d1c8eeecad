//! Slack is away, slow or confused, and servers die: what was asked is told at last, and nothing is told that is not so.

use std::time::Duration;

use holdpoint_testkit::slack_server::{Message, SlackServer, Trouble};
use serde_json::json;

use crate::world::{TOKEN, World};

fn first(slack: &SlackServer) -> Option<Message> {
    slack.messages().first().cloned()
}

#[tokio::test]
async fn a_slack_that_is_away_for_a_while_is_told_when_it_is_back() {
    let world = World::new().await;
    let troubles = [
        Trouble::Status(503),
        Trouble::CutBefore,
        Trouble::Nonsense,
        Trouble::Error("internal_error"),
        Trouble::Error("not_in_channel"),
        Trouble::Status(302),
    ];
    let count = troubles.len();
    for trouble in troubles {
        world.slack.push(trouble);
    }
    let run = world.run("mailer", "ana").await;
    let message = world.until("the message", first).await;
    assert_eq!(world.slack.calls_of("chat.postMessage").len(), count + 1);
    assert_eq!(message.actions(), ["approve", "edit", "deny", "open"]);
    world.click("UALICE", &message, "approve").await.acknowledges();
    world.finished(run["run_id"].as_str().unwrap()).await;
}

#[tokio::test]
async fn slack_says_when_to_come_back_and_is_left_alone_until_then() {
    let world = World::new().await;
    world.slack.push(Trouble::RateLimited(30));
    world.run("mailer", "ana").await;
    world.slack.until("the first attempt", |slack| (!slack.calls().is_empty()).then_some(())).await;
    // Another one is written down in between: nothing else is due before the half minute is over.
    world.clock.advance(Duration::from_secs(29));
    world.run("mailer", "ben").await;
    let other = world.slack.until("the other message", first).await;
    assert_eq!(world.slack.calls_of("chat.postMessage").len(), 2, "only the other pause was told");
    assert!(other.blocks.to_string().contains("ben"));
    world.clock.advance(Duration::from_secs(2));
    world.until("the first message", |slack| (slack.messages().len() == 2).then_some(())).await;
}

#[tokio::test]
async fn what_slack_will_never_take_is_given_up_and_holds_up_nobody() {
    let world = World::new().await;
    world.slack.push(Trouble::Error("invalid_blocks"));
    let run = world.run("mailer", "ana").await;
    world.slack.until("the attempt", |slack| (!slack.calls().is_empty()).then_some(())).await;
    let asked = world.ask("mailer", "ben").await;
    world.clock.advance(Duration::from_secs(7_200));
    world.click("UALICE", &asked.message, "approve").await.acknowledges();
    world.settled(&asked.message).await;
    assert_eq!(world.slack.calls_of("chat.postMessage").len(), 2);
    // The pause itself waits as it did.
    assert_eq!(world.pause(run["pauses"][0]["id"].as_str().unwrap()).await["status"], "open");
}

#[tokio::test]
async fn a_pause_that_ended_while_slack_was_away_is_not_asked_any_more() {
    let world = World::new().await;
    world.slack.push(Trouble::Status(503));
    let run = world.run("mailer", "ana").await;
    world.slack.until("the attempt", |slack| (!slack.calls().is_empty()).then_some(())).await;
    let path = format!("/api/v1/pauses/{}/decide", run["pauses"][0]["id"].as_str().unwrap());
    world.post(&path, json!({"decision": "deny"})).await.expect(200);
    let asked = world.ask("mailer", "ben").await;
    world.clock.advance(Duration::from_secs(60));
    world.click("UALICE", &asked.message, "approve").await.acknowledges();
    world.settled(&asked.message).await;
    world.all_told().await;
    assert_eq!(world.slack.messages().len(), 1);
}

#[tokio::test]
async fn a_message_whose_answer_was_lost_is_posted_twice_and_both_answer_truthfully() {
    let world = World::new().await;
    world.slack.push(Trouble::CutAfter);
    let run = world.run("mailer", "ana").await;
    let messages =
        world.until("the second message", |slack| Some(slack.messages()).filter(|messages| messages.len() == 2)).await;
    let [older, newer] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!(older.button("approve"), newer.button("approve"), "the same thing is asked");
    world.click("UALICE", newer, "approve").await.acknowledges();
    world.settled(newer).await;
    // The older one still has its buttons; who clicks there is told, and they go.
    world.click("UBEN", older, "approve").await.acknowledges();
    assert!(world.whisper(1).await.1.contains("already decided: approve by alice@example.com"));
    let older = world.settled(older).await;
    assert!(older.blocks.to_string().contains("Approved by alice@example.com (slack)."), "{:#}", older.blocks);
    world.finished(run["run_id"].as_str().unwrap()).await;
    assert_eq!(world.effects.sent().len(), 1);
}

#[tokio::test]
async fn a_server_that_dies_between_the_message_and_the_end_leaves_nobody_in_doubt() {
    let mut world = World::new().await;
    let asked = world.ask("mailer", "ana").await;
    // The end cannot be told before the server dies.
    world.slack.push(Trouble::Hang);
    world.click("UALICE", &asked.message, "approve").await.acknowledges();
    world.slack.until("the attempt", |slack| (!slack.calls_of("chat.update").is_empty()).then_some(())).await;
    // The tool has run: what is cut off is the message alone.
    world.finished(&asked.run).await;
    world.kill().await;
    assert_eq!(world.slack.messages()[0].actions(), ["approve", "edit", "deny", "open"]);
    world.start_again().await;
    let ts = asked.message.ts.clone();
    let ended =
        |slack: &SlackServer| slack.messages().into_iter().find(|found| found.ts == ts && found.actions().is_empty());
    let message = world.until("the end", ended).await;
    assert!(message.blocks.to_string().contains("Approved by alice@example.com (slack)."), "{:#}", message.blocks);
    world.finished(&asked.run).await;
    assert_eq!(world.effects.sent().len(), 1);
    assert_eq!(world.slack.messages().len(), 1);
}

#[tokio::test]
async fn a_server_that_dies_while_it_posts_posts_again_and_the_click_still_counts_once() {
    let mut world = World::new().await;
    world.slack.push(Trouble::HangAfter);
    let run = world.run("mailer", "ana").await;
    world.slack.until("the post", |slack| (!slack.messages().is_empty()).then_some(())).await;
    world.kill_and_start().await;
    let both = |slack: &SlackServer| Some(slack.messages()).filter(|messages| messages.len() >= 2);
    let messages = world.until("the second message", both).await;
    world.click("UALICE", &messages[0], "approve").await.acknowledges();
    world.click("UBEN", &messages[1], "approve").await.acknowledges();
    assert!(world.whisper(1).await.1.contains("already decided: approve by alice@example.com"));
    world.finished(run["run_id"].as_str().unwrap()).await;
    assert_eq!(world.effects.sent().len(), 1);
}

#[tokio::test]
async fn a_slack_that_hangs_does_not_hold_up_the_answer_to_a_click() {
    let world = World::new().await;
    let asked = world.ask("mailer", "ana").await;
    for _ in 0..4 {
        world.slack.push(Trouble::Hang);
    }
    let answer = tokio::time::timeout(Duration::from_secs(30), world.click("UALICE", &asked.message, "approve")).await;
    answer.unwrap().acknowledges();
    assert_eq!(world.pause(&asked.pause).await["status"], "decided");
    world.finished(&asked.run).await;
}

#[tokio::test]
async fn no_reason_that_is_written_down_shows_the_token() {
    let world = World::new().await;
    world.slack.push(Trouble::Error("invalid_auth"));
    world.run("mailer", "ana").await;
    world.slack.until("the attempt", |slack| (!slack.calls().is_empty()).then_some(())).await;
    world.until("the message", first).await;
    assert!(!world.everything().await.contains(TOKEN));
    let notices = world.runtime().store().list_notices(&Default::default()).await.unwrap();
    assert!(!format!("{notices:?}").contains(TOKEN), "{notices:?}");
}
