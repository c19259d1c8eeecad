//! Clicks that decide: recorded as made by the person behind the Slack user, durable before Slack is answered, once.

use serde_json::json;

use crate::world::{World, on};

#[tokio::test]
async fn an_approval_runs_exactly_what_was_shown_and_is_recorded_with_its_author() {
    let world = World::new().await;
    let asked = world.ask("mailer", "ana").await;
    world.click("UALICE", &asked.message, "approve").await.acknowledges();
    // Durable before the answer: it can be read at once.
    let decision = &world.pause(&asked.pause).await["decision"];
    let expected = json!({"type": "approve", "by": "alice@example.com", "at": crate::world::BEGINNING, "via": "slack"});
    assert_eq!(*decision, expected);
    assert_eq!(world.finished(&asked.run).await["output"], "outcome: sent");
    assert_eq!(world.effects.sent(), [r#"{"to":"ana"}"#]);
    let message = world.settled(&asked.message).await;
    assert!(message.blocks.to_string().contains("Approved by alice@example.com (slack)."), "{:#}", message.blocks);
    assert!(world.slack.ephemerals().is_empty());
}

#[tokio::test]
async fn whoever_is_late_is_told_who_won_when_and_how() {
    let world = World::new().await;
    let asked = world.ask("mailer", "ana").await;
    world.click("UALICE", &asked.message, "approve").await.acknowledges();
    world.click("UBEN", &asked.message, "approve").await.acknowledges();
    let (user, told) = world.whisper(1).await;
    assert_eq!(user, "UBEN");
    let won = format!(
        "pause {} was already decided: approve by alice@example.com at {}",
        asked.pause,
        crate::world::BEGINNING
    );
    assert_eq!(told, format!("This did not count: {won} (already_decided)"));
    // Also who decided it: the second click changes nothing.
    world.click("UALICE", &asked.message, "approve").await.acknowledges();
    assert!(world.whisper(2).await.1.contains("already decided: approve by alice@example.com"));
    world.click("UBEN", &asked.message, "deny").await.acknowledges();
    assert!(world.whisper(3).await.1.contains("already decided"));
    assert!(world.slack.views().is_empty(), "nothing is left to deny");
    world.finished(&asked.run).await;
    assert_eq!(world.effects.sent().len(), 1);
}

#[tokio::test]
async fn a_click_after_the_deadline_decides_nothing() {
    let world = World::new().await;
    let asked = world.ask("brief", "ana").await;
    world.clock.advance(std::time::Duration::from_secs(60));
    world.click("UALICE", &asked.message, "approve").await.acknowledges();
    let (_, told) = world.whisper(1).await;
    assert!(told.contains("expired at 2026-11-15T09:31:00.000Z"), "{told}");
    assert_eq!(world.effects.sent(), Vec::<String>::new());
}

#[tokio::test]
async fn a_button_that_saw_other_arguments_or_none_decides_nothing() {
    let world = World::new().await;
    let asked = world.ask("mailer", "ana").await;
    let before = world.everything().await;
    let other = format!("{} {}", asked.pause, "0".repeat(64));
    let click = |value: &str| on("UALICE", &asked.message).button("approve", value);
    world.deliver(&click(&other)).await.acknowledges();
    assert!(world.whisper(1).await.1.contains("(stale_view)"));
    world.deliver(&click(&format!("{} -", asked.pause))).await.acknowledges();
    assert!(world.whisper(2).await.1.contains("(not_found)"));
    for bad in ["", "approve", &asked.pause, &format!("{other} {other}")] {
        world.deliver(&click(bad)).await.refuses(400, "invalid_request");
    }
    let (run, _) = other.split_once('_').unwrap();
    let unknown = format!("{run}_00000000000000000000000000000000_1 {}", "0".repeat(64));
    world.deliver(&click(&unknown)).await.acknowledges();
    assert!(world.whisper(3).await.1.contains("(not_found)"));
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn a_pause_that_the_channel_is_not_told_of_cannot_be_decided_through_it() {
    let world = World::new().await;
    let private = world.run("private", "ana").await;
    let asked = world.ask("mailer", "ben").await;
    let pause = &private["pauses"][0];
    let value = format!("{} {}", pause["id"].as_str().unwrap(), pause["args_sha256"].as_str().unwrap());
    world.deliver(&on("UALICE", &asked.message).button("approve", &value)).await.acknowledges();
    assert!(world.whisper(1).await.1.contains("(not_found)"));
    assert_eq!(world.pause(pause["id"].as_str().unwrap()).await["status"], "open");
}

#[tokio::test]
async fn a_confirmation_is_given_or_refused() {
    let world = World::new().await;
    let asked = world.ask("confirmer", "delete").await;
    assert_eq!(asked.message.actions(), ["approve", "deny", "open"]);
    assert!(
        asked.message.blocks.to_string().contains("Shall I proceed? &lt;!channel&gt;"),
        "{:#}",
        asked.message.blocks
    );
    world.click("UALICE", &asked.message, "approve").await.acknowledges();
    world.finished(&asked.run).await;
    assert_eq!(world.settled(&asked.message).await.text, "Approved: confirmer asks whether to go on");
}

#[tokio::test]
async fn a_call_in_doubt_is_settled_left_or_run_again() {
    let mut world = World::new().await;
    let mut runs = Vec::new();
    for to in ["ana", "ben", "cem"] {
        let asked = world.ask("doubter", to).await;
        world.click("UALICE", &asked.message, "approve").await.acknowledges();
        runs.push(asked);
    }
    let begin = std::time::Instant::now();
    while world.effects.sent().len() < 3 {
        assert!(begin.elapsed().as_secs() < 60, "the tools do not run");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    world.kill_and_start().await;
    let mut doubts = Vec::new();
    for asked in &runs {
        let doubt = world
            .slack
            .until("a doubt", |slack| {
                let is_doubt = |found: &&holdpoint_testkit::slack_server::Message| {
                    found.button("abandon").is_some_and(|value| value.starts_with(&asked.pause[..36]))
                };
                slack.messages().iter().find(is_doubt).cloned()
            })
            .await;
        assert_eq!(doubt.actions(), ["happened", "run_again", "abandon", "open"]);
        doubts.push(doubt);
    }
    let view = world.open("UALICE", &doubts[0], "happened").await;
    let values = json!({"result": {"text": {"type": "plain_text_input", "value": "it was sent"}}});
    world.send_off("UALICE", &view, values).await.acknowledges();
    assert_eq!(world.finished(&runs[0].run).await["output"], "outcome: it was sent");
    world.click("UALICE", &doubts[1], "abandon").await.acknowledges();
    world.finished(&runs[1].run).await;
    world.effects.open_gate();
    world.click("UALICE", &doubts[2], "run_again").await.acknowledges();
    assert_eq!(world.finished(&runs[2].run).await["output"], "outcome: sent");
    assert_eq!(world.effects.sent().len(), 4);
    for doubt in &doubts {
        world.settled(doubt).await;
    }
}

#[tokio::test]
async fn a_link_and_what_is_not_ours_are_acknowledged_and_do_nothing() {
    let world = World::new().await;
    let asked = world.ask("mailer", "ana").await;
    let before = world.everything().await;
    let mut payload = on("UALICE", &asked.message).button("open", "");
    payload["actions"][0].as_object_mut().unwrap().remove("value");
    world.deliver(&payload).await.acknowledges();
    world.deliver(&on("UALICE", &asked.message).button("other_app_button", "x")).await.acknowledges();
    world.deliver(&json!({"type": "shortcut", "callback_id": "x", "user": {"id": "UALICE"}})).await.acknowledges();
    assert_eq!(world.everything().await, before);
}
