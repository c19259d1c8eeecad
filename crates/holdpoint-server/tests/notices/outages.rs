//! A mail server that is away, refuses or breaks off: what was asked is told at last, under one name, and nothing is told
//! that is not so.

use std::io::Write;
use std::sync::{Arc, Mutex};

use holdpoint_runtime::ports::notifier::NoticeKind;
use holdpoint_server::notifiers::email::{Email, EmailSettings};
use holdpoint_testkit::smtp_server::{SmtpServer, Trouble};
use serde_json::json;

use crate::world::{World, letters_through};

const PASSWORD: &str = "s3cret-of-the-mailbox";

#[tokio::test]
async fn a_letter_that_was_not_taken_is_sent_again_under_the_same_name() {
    let mail = SmtpServer::start();
    let world = World::mailing(&mail).await;
    for trouble in [Trouble::AtEnd(451), Trouble::AtSender(421), Trouble::CutInData, Trouble::AtEnd(452)] {
        mail.push(trouble);
    }
    let pause = world.open("mailer", "ana").await;
    let notice = world.delivered(&pause, NoticeKind::Opened).await;
    assert_eq!((notice.attempts, mail.letters().len()), (5, 1));
    let whole = mail.attempts();
    assert_eq!(whole.len(), 3, "those that were read to their end");
    assert!(whole.iter().all(|letter| letter.header("message-id") == whole[0].header("message-id")), "{whole:?}");
    assert!(whole.iter().all(|letter| letter.text("text/plain") == whole[0].text("text/plain")), "{whole:?}");
    assert!(whole[0].header("message-id").is_some());
}

#[tokio::test]
async fn a_letter_whose_answer_was_lost_comes_twice_and_a_mailbox_can_tell() {
    let mail = SmtpServer::start();
    let world = World::mailing(&mail).await;
    mail.push(Trouble::CutAfterData);
    let pause = world.ask("mailer", "ana").await;
    let letters = mail.letters();
    let [first, second] = letters.as_slice() else { panic!("{letters:?}") };
    assert_eq!(first.header("message-id"), Some(format!("<{pause}.opened.ops@example.com>").as_str()));
    assert_eq!(first.header("message-id"), second.header("message-id"));
}

#[tokio::test]
async fn a_letter_that_is_refused_for_good_is_given_up_and_the_next_one_is_not() {
    let mail = SmtpServer::start();
    let world = World::mailing(&mail).await;
    mail.push(Trouble::AtEnd(550));
    let pause = world.open("mailer", "ana").await;
    assert_eq!(world.given_up(&pause, NoticeKind::Opened).await, "the mail server answered 550");
    assert_eq!(world.notice(&pause, NoticeKind::Opened).await.unwrap().attempts, 1);
    // The pause is not touched, and its end is told on its own: there is no letter to answer.
    assert_eq!(world.pause(&pause).await["status"], "open");
    world.settle(&pause, json!({"decision": "approve"})).await;
    let letters = mail.letters();
    let [settled] = letters.as_slice() else { panic!("{letters:?}") };
    assert_eq!((settled.header("in-reply-to"), settled.header("references")), (None, None));
}

#[tokio::test]
async fn a_pause_that_ended_while_the_mail_server_was_away_is_not_asked_any_more() {
    let mail = SmtpServer::start();
    let world = World::mailing(&mail).await;
    mail.push(Trouble::AtSender(421));
    let pause = world.open("mailer", "ana").await;
    // The clock stands, so the next attempt is not made before the decision.
    mail.until("the attempt", |mail| (mail.conversations() == 1).then_some(())).await;
    world.settle(&pause, json!({"decision": "approve"})).await;
    let letters = mail.letters();
    let [settled] = letters.as_slice() else { panic!("{letters:?}") };
    assert!(settled.text("text/plain").contains("Approved. Approved by local (native)."), "{}", settled.raw);
    assert_eq!(settled.header("in-reply-to"), None);
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn with_password(mail: &SmtpServer, password: &str) -> Email {
    let server = mail.url().replace("smtp://", "smtp://ana%40example.com@");
    let settings = EmailSettings { password: Some(password.to_owned().into()), ..letters_through(server) };
    Email::new(settings).unwrap()
}

#[tokio::test]
async fn a_login_that_is_refused_is_tried_again_and_the_password_is_shown_nowhere() {
    let log = Log::default();
    let kept = log.clone();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    // No other test in here looks at what is logged.
    tracing::subscriber::set_global_default(subscriber.with_writer(move || kept.clone()).finish()).unwrap();
    // This server repeats what it was told when it refuses.
    let mail = SmtpServer::with_login("ana@example.com", "another");
    let email = with_password(&mail, PASSWORD);
    assert_eq!(email.test().await, Err("the mail server answered 535".to_owned()));
    let world = World::telling(email).await;
    let pause = world.open("mailer", "ana").await;
    world.notice_when(&pause, NoticeKind::Opened, |notice| notice.attempts >= 3).await;
    assert!(mail.attempts().is_empty());
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("the mail server answered 535"), "{logged}");
    for told in [logged, world.everything().await] {
        assert!(!told.contains(PASSWORD), "{told}");
    }
}

#[tokio::test]
async fn letters_go_out_after_the_login_that_the_server_asks_for() {
    let mail = SmtpServer::with_login("ana@example.com", PASSWORD);
    let email = with_password(&mail, PASSWORD);
    assert_eq!(email.test().await, Ok(()));
    assert_eq!(mail.attempts(), [], "asking sends nothing");
    let world = World::telling(email).await;
    world.ask("mailer", "ana").await;
    assert_eq!(mail.letters().len(), 1);
    assert!(!mail.letters()[0].raw.contains(PASSWORD));
    // Whoever does not log in sends nothing.
    let stranger = World::mailing(&mail).await;
    let pause = stranger.open("mailer", "ana").await;
    stranger.notice_when(&pause, NoticeKind::Opened, |notice| notice.attempts >= 2).await;
    assert_eq!(mail.letters().len(), 1);
}
