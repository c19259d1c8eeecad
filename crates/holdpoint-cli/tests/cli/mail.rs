//! Mail and webhooks with the real program: what `check` and `doctor` say.

use std::path::Path;

use holdpoint_testkit::smtp_server::SmtpServer;

use crate::world::{Place, complained, printed};

const PASSWORD: &str = "s3cret-of-the-mailbox";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const VARIABLES: [(&str, &str); 2] = [("MAIL_PASSWORD", PASSWORD), ("TICKETS_SECRET", SECRET)];

#[test]
fn the_configuration_in_the_guide_of_notifications_is_right() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/notifications.md");
    let text = std::fs::read_to_string(guide).unwrap();
    let (_, rest) = text.split_once("# holdpoint.yaml\n").unwrap();
    let (file, _) = rest.split_once("```").unwrap();
    let place = Place::new();
    place.run(&["init"]);
    place.write("holdpoint.yaml", file);
    let checked = place.holdpoint(&["check", "--format", "short"]).envs(VARIABLES).output().unwrap();
    // The guide has an agent of its own.
    let warned =
        "holdpoint.yaml: warning: notifications: finance: there is no agent called billing, so nobody is told of it\n";
    assert_eq!((checked.status.code(), printed(&checked).as_str()), (Some(0), warned), "{}", complained(&checked));
}

#[test]
fn a_webhook_that_the_server_would_not_call_is_found_before_it_starts() {
    let place = Place::new();
    place.run(&["init"]);
    let webhook = "notifications:\n  - { name: tickets, type: webhook, url: 'http://127.0.0.1:9/in', secret: '${TICKETS_SECRET}' }\n";
    let check = |file: &str| {
        place.write("holdpoint.yaml", file);
        place.holdpoint(&["check", "--format", "short"]).envs(VARIABLES).output().unwrap()
    };
    let checked = check(webhook);
    assert_eq!(checked.status.code(), Some(1));
    assert!(printed(&checked).contains("notifications: tickets: only https"), "{}", printed(&checked));
    let allowed = check(&format!("webhooks: {{ allow_private: true }}\n{webhook}"));
    assert_eq!((allowed.status.code(), printed(&allowed).as_str()), (Some(0), ""), "{}", complained(&allowed));
}

#[test]
fn doctor_asks_the_mail_server_and_calls_no_webhook() {
    let mail = SmtpServer::with_login("holdpoint", PASSWORD);
    let place = Place::new();
    place.run(&["init"]);
    let file = format!(
        "public_url: https://hold.example\nnotifications:\n  - {{ name: finance, type: email, smtp: '{}', password: '${{MAIL_PASSWORD}}', from: a@example.com, to: [b@example.com] }}\n  - {{ name: tickets, type: webhook, url: 'https://tickets.example/in', secret: '${{TICKETS_SECRET}}' }}\n",
        mail.url().replace("smtp://", "smtp://holdpoint@"),
    );
    place.write("holdpoint.yaml", &file);
    let doctor = |more: &[&str], password: &str| {
        let args: Vec<&str> = ["doctor"].iter().chain(more).copied().collect();
        let variables = [("MAIL_PASSWORD", password), ("TICKETS_SECRET", SECRET)];
        let told = place.holdpoint(&args).envs(variables).output().unwrap();
        format!("{}{}", printed(&told), complained(&told))
    };
    let told = doctor(&[], PASSWORD);
    assert!(told.contains("finance: the mail server takes letters from here"), "{told}");
    assert!(told.contains("tickets: the webhook is not called"), "{told}");
    // The server repeats what it was told; doctor does not.
    let told = doctor(&[], "s3cret-of-another");
    assert!(told.contains("finance: the mail server answered 535") && !told.contains("s3cret"), "{told}");
    let asked = mail.conversations();
    assert!(doctor(&["--offline"], PASSWORD).contains("finance: the mail server is not asked"));
    assert_eq!((mail.conversations(), mail.attempts().len()), (asked, 0));
}
