//! Letters: what stands in them when a pause opens, and when it ends, wherever that happens.

use std::time::Duration;

use holdpoint_runtime::ports::notifier::NoticeKind;
use holdpoint_testkit::smtp_server::SmtpServer;
use serde_json::{Value, json};

use crate::world::{World, header_names, page_of, under};

const EXACTLY: &str = "Arguments, exactly as they would run";

#[tokio::test]
async fn the_letter_of_a_pause_has_everything_that_a_person_needs() {
    let mail = SmtpServer::start();
    let world = World::mailing(&mail).await;
    let pause = world.ask("brief", "ana & bén").await;
    let letters = mail.letters();
    let [letter] = letters.as_slice() else { panic!("{letters:?}") };
    assert_eq!(
        (letter.from.as_str(), letter.to.as_slice()),
        ("holdpoint@example.com", &["ana@example.com".to_owned(), "ben@example.com".to_owned()][..])
    );
    let expected = ["Auto-Submitted", "Content-Type", "Date", "From", "MIME-Version", "Message-ID", "Subject", "To"];
    assert_eq!(header_names(letter), expected);
    assert_eq!(letter.header("subject"), Some("Approval needed: brief wants to run send_mail"));
    assert_eq!(letter.header("auto-submitted"), Some("auto-generated"));
    assert_eq!(letter.header("message-id"), Some(format!("<{pause}.opened.ops@example.com>").as_str()));
    // The arguments are those that would run, to the last digit.
    let document = world.pause(&pause).await;
    assert_eq!(serde_json::from_str::<Value>(under(letter, EXACTLY)).unwrap(), document["args"]);
    assert_eq!(document["args"], json!({"to": "ana & bén", "amount": 12.5}));
    let (plain, html) = (letter.text("text/plain"), letter.text("text/html"));
    let digest = document["args_sha256"].as_str().unwrap();
    for part in [
        "brief wants to run send_mail",
        "local",
        "2026-11-15T09:31:00.000Z; without an answer it does not run",
        digest,
        &page_of(&pause),
        "Opening the link decides nothing.",
    ] {
        assert!(plain.contains(part) && html.contains(part), "{part} is not in {plain}\n{html}");
    }
    assert!(html.contains(&format!("<a href=\"{}\">", page_of(&pause))), "{html}");
}

#[tokio::test]
async fn a_decision_made_elsewhere_is_told_in_the_same_thread() {
    let mail = SmtpServer::start();
    let world = World::mailing(&mail).await;
    let pause = world.ask("mailer", "ana").await;
    world.settle(&pause, json!({"decision": "deny", "message": "not <b>today</b>"})).await;
    let letters = mail.letters();
    let [opened, settled] = letters.as_slice() else { panic!("{letters:?}") };
    assert_eq!(settled.header("subject"), Some("Re: Approval needed: mailer wants to run send_mail"));
    let thread = opened.header("message-id");
    assert!(thread.is_some() && settled.header("message-id") != thread);
    assert_eq!((settled.header("in-reply-to"), settled.header("references")), (thread, thread));
    let plain = settled.text("text/plain");
    assert!(plain.contains("outcome   Denied. Denied by local (native).\n"), "{plain}");
    assert_eq!(under(settled, "What was said"), "not <b>today</b>");
    assert!(settled.text("text/html").contains("<pre>not &lt;b&gt;today&lt;/b&gt;</pre>"), "{}", settled.raw);
}

#[tokio::test]
async fn a_pause_whose_time_is_up_is_told_in_the_same_thread() {
    let mail = SmtpServer::start();
    let world = World::mailing(&mail).await;
    let pause = world.ask("brief", "ana").await;
    world.clock.advance(Duration::from_secs(61));
    world.delivered(&pause, NoticeKind::Settled).await;
    let letters = mail.letters();
    let [opened, settled] = letters.as_slice() else { panic!("{letters:?}") };
    assert_eq!(settled.header("in-reply-to"), opened.header("message-id"));
    let plain = settled.text("text/plain");
    assert!(plain.contains("outcome   Expired. Nobody decided in time.\n"), "{plain}");
    assert!(!plain.contains("without an answer"), "{plain}");
}

#[tokio::test]
async fn the_letter_about_an_edited_approval_shows_the_arguments_that_run() {
    let mail = SmtpServer::start();
    let world = World::mailing(&mail).await;
    let pause = world.ask("mailer", "ana").await;
    world.settle(&pause, json!({"decision": "approve_edited", "args": {"to": "eve", "amount": 1}})).await;
    let letters = mail.letters();
    let [opened, settled] = letters.as_slice() else { panic!("{letters:?}") };
    assert_eq!(under(opened, EXACTLY), "{\n  \"amount\": 12.5,\n  \"to\": \"ana\"\n}");
    assert_eq!(under(settled, EXACTLY), "{\n  \"amount\": 1,\n  \"to\": \"eve\"\n}");
    let told = "Approved. Approved with the arguments shown, which were changed, by local (native).";
    assert!(settled.text("text/plain").contains(told), "{}", settled.raw);
    // The digest is that of what is shown.
    let document = world.pause(&pause).await;
    let before = document["args_sha256"].as_str().unwrap();
    assert!(opened.text("text/plain").contains(before) && !settled.text("text/plain").contains(before));
}

#[tokio::test]
async fn arguments_that_are_too_long_for_a_letter_are_cut_with_words_that_say_so_and_their_digest() {
    let mail = SmtpServer::start();
    let world = World::mailing(&mail).await;
    let whole = world.ask("mailer", &"x".repeat(16_000)).await;
    let cut = world.ask("mailer", &format!("{}PAYLOAD", "x".repeat(16 << 10))).await;
    let letters = mail.letters();
    let [first, second] = letters.as_slice() else { panic!("{letters:?}") };
    let shown: Value = serde_json::from_str(under(first, EXACTLY)).unwrap();
    assert_eq!(shown, world.pause(&whole).await["args"]);
    let title = "The beginning of the arguments: all of them are on the page, and their SHA-256 is above";
    let shown = under(second, title);
    assert!(shown.starts_with("{\"amount\":12.5,\"to\":\"xxx") && shown.ends_with(" characters in all⟧"), "{shown}");
    let digest = world.pause(&cut).await["args_sha256"].as_str().unwrap().to_owned();
    for kind in ["text/plain", "text/html"] {
        let text = second.text(kind);
        assert!(text.contains(&digest) && text.contains(title) && text.contains(&page_of(&cut)), "{text}");
        assert!(!text.contains("PAYLOAD") && !text.contains(EXACTLY), "{text}");
    }
}
