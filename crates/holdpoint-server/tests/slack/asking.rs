//! What stands in a channel: when a pause opens, and when it ends, wherever that happens.

use std::time::Duration;

use serde_json::json;

use crate::world::{CHANNEL, World};

#[tokio::test]
async fn a_pause_is_one_message_with_everything_that_a_person_needs() {
    let world = World::new().await;
    let asked = world.ask("mailer", "ana").await;
    let call = &world.slack.calls_of("chat.postMessage")[0];
    assert_eq!(call.authorization, format!("Bearer {}", crate::world::TOKEN));
    assert_eq!((&call.body["unfurl_links"], &call.body["unfurl_media"]), (&json!(false), &json!(false)));
    assert_eq!((&call.body["parse"], &call.body["link_names"]), (&json!("none"), &json!(false)));
    let message = &asked.message;
    assert_eq!(
        (message.channel.as_str(), message.text.as_str()),
        (CHANNEL, "Approval needed: mailer wants to run send_mail")
    );
    let digest = world.pause(&asked.pause).await["args_sha256"].as_str().unwrap().to_owned();
    let button = |action: &str, text: &str, style: Option<&str>| {
        let mut button = json!({"type": "button", "text": plain(text), "action_id": action, "value": format!("{} {digest}", asked.pause)});
        if let Some(style) = style {
            button["style"] = json!(style);
        }
        button
    };
    let mut link = button("open", "Open in holdpoint", None);
    link["url"] = json!(format!("https://hold.example/pauses/{}", asked.pause));
    link.as_object_mut().unwrap().remove("value");
    let about = format!("asked by  local\nreason    mail leaves the house\ndigest    sha256 {digest}");
    let expected = json!([
        {"type": "header", "text": plain("Approval needed")},
        {"type": "section", "text": plain("mailer wants to run send_mail")},
        verbatim("{\n  \"to\": \"ana\"\n}"),
        verbatim(&about),
        {"type": "context", "elements": [{"type": "mrkdwn", "verbatim": true, "text": "Waits until somebody answers."}]},
        {"type": "actions", "elements": [
            button("approve", "Approve", Some("primary")),
            button("edit", "Edit…", None),
            button("deny", "Deny…", Some("danger")),
            link,
        ]},
    ]);
    assert_eq!(message.blocks, expected, "{:#}", message.blocks);
}

fn plain(text: &str) -> serde_json::Value {
    json!({"type": "plain_text", "text": text, "emoji": false})
}

fn verbatim(text: &str) -> serde_json::Value {
    let part = json!({"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text}]});
    json!({"type": "rich_text", "elements": [part]})
}

#[tokio::test]
async fn a_deadline_is_told_in_the_readers_own_time() {
    let world = World::new().await;
    let asked = world.ask("brief", "ana").await;
    let blocks = asked.message.blocks.to_string();
    let token = "Waits until <!date^1794735060^{date_short_pretty} at {time_secs}|2026-11-15T09:31:00.000Z>; without an answer it does not run.";
    assert!(blocks.contains(token), "{blocks}");
}

#[tokio::test]
async fn agents_that_the_channel_is_not_told_of_are_not_told_of() {
    let world = World::new().await;
    world.run("private", "ana").await;
    let asked = world.ask("mailer", "ben").await;
    assert_eq!(world.slack.messages().len(), 1);
    assert!(asked.message.blocks.to_string().contains("ben"));
}

#[tokio::test]
async fn a_decision_made_elsewhere_changes_the_message_and_takes_its_buttons() {
    let world = World::new().await;
    let asked = world.ask("mailer", "ana").await;
    let path = format!("/api/v1/pauses/{}/decide", asked.pause);
    world.post(&path, json!({"decision": "deny", "message": "not <!here> today"})).await.expect(200);
    let message = world.settled(&asked.message).await;
    assert_eq!(message.text, "Denied: mailer wants to run send_mail");
    let blocks = message.blocks.to_string();
    for part in [
        "Denied by local (native).",
        "not &lt;!here&gt; today",
        "{\\n  \\\"to\\\": \\\"ana\\\"\\n}",
        "<!date^1794735000^",
    ] {
        assert!(blocks.contains(part), "{part} is not in {blocks}");
    }
    assert_eq!(world.slack.messages().len(), 1);
}

#[tokio::test]
async fn other_arguments_that_were_approved_stand_in_place_of_those_that_were_asked_for() {
    let world = World::new().await;
    let asked = world.ask("mailer", "ana").await;
    let path = format!("/api/v1/pauses/{}/decide", asked.pause);
    world.post(&path, json!({"decision": "approve_edited", "args": {"to": "eve"}})).await.expect(200);
    let blocks = world.settled(&asked.message).await.blocks.to_string();
    let told = "Approved with the arguments shown, which were changed, by local (native).";
    for part in [told, "\\\"to\\\": \\\"eve\\\""] {
        assert!(blocks.contains(part), "{part} is not in {blocks}");
    }
    // The digest is that of what is shown, too.
    let before = world.pause(&asked.pause).await["args_sha256"].as_str().unwrap().to_owned();
    assert!(!blocks.contains("ana") && !blocks.contains(&before), "{blocks}");
}

#[tokio::test]
async fn a_pause_whose_time_is_up_or_whose_run_was_cancelled_says_so() {
    let world = World::new().await;
    let brief = world.ask("brief", "ana").await;
    let cancelled = world.ask("mailer", "ben").await;
    world.post(&format!("/api/v1/runs/{}/cancel", cancelled.run), json!({})).await;
    assert_eq!(world.settled(&cancelled.message).await.text, "Withdrawn: mailer wants to run send_mail");
    world.clock.advance(Duration::from_secs(61));
    let message = world.settled(&brief.message).await;
    assert_eq!(message.text, "Expired: brief wants to run send_mail");
    assert!(message.blocks.to_string().contains("Nobody decided in time."), "{:#}", message.blocks);
    assert_eq!(world.effects.sent(), Vec::<String>::new());
}

#[tokio::test]
async fn arguments_that_do_not_fit_can_be_denied_there_and_not_approved() {
    let world = World::new().await;
    let long = format!("{}PAYLOAD", "x".repeat(10_000));
    let asked = world.ask("mailer", &long).await;
    assert_eq!(asked.message.actions(), ["deny", "open"]);
    let blocks = asked.message.blocks.to_string();
    assert!(!blocks.contains("PAYLOAD") && blocks.contains("⟦cut here: 10016 characters in all⟧"), "{blocks}");
    assert!(blocks.contains("it cannot be approved here"), "{blocks}");
    // The button that is not there, clicked all the same.
    let value = asked.message.button("deny").unwrap();
    for action in ["approve", "edit"] {
        let forged = crate::world::on("UALICE", &asked.message).button(action, &value);
        let answer = world.deliver(&forged).await;
        let problem = answer.refuses(409, "not_fully_displayed");
        let detail = "the message could not show everything that would run, so it cannot be approved there: open it in holdpoint";
        assert_eq!(problem["detail"], detail);
    }
    let edit = json!({"id": "V1", "callback_id": "holdpoint.edit", "private_metadata": value, "blocks": []});
    let values = json!({"arguments": {"text": {"type": "plain_text_input", "value": "{\"to\":\"eve\"}"}}});
    let answer = world.send_off("UALICE", &edit, values).await.expect(200);
    assert!(answer["view"]["blocks"].to_string().contains("not_fully_displayed"), "{answer}");
    assert_eq!(world.pause(&asked.pause).await["status"], "open");
    assert!(world.slack.views().is_empty());
    let view = world.open("UALICE", &asked.message, "deny").await;
    world.send_off("UALICE", &view, json!({})).await.acknowledges();
    assert_eq!(world.pause(&asked.pause).await["status"], "decided");
    assert_eq!(world.effects.sent(), Vec::<String>::new());
}

#[tokio::test]
async fn the_longest_arguments_that_fit_can_be_approved_and_run_whole() {
    let world = World::new().await;
    // What stands around it in the dense form.
    let whole = "x".repeat(3_000 - r#"{"to":""}"#.len());
    let asked = world.ask("mailer", &whole).await;
    assert_eq!(asked.message.actions(), ["approve", "edit", "deny", "open"]);
    world.click("UALICE", &asked.message, "approve").await.acknowledges();
    world.finished(&asked.run).await;
    assert_eq!(world.effects.sent(), [format!(r#"{{"to":"{whole}"}}"#)]);
    let one_more = world.ask("mailer", &format!("{whole}x")).await;
    assert_eq!(one_more.message.actions(), ["deny", "open"]);
}
