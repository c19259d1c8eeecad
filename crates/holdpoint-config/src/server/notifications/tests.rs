use secrecy::ExposeSecret;

use super::*;
use crate::diagnostic::Diagnostic;
use crate::environment::FixedEnvironment;
use crate::server::{ReadServer, Role, ServerFlags, read_server};
use crate::source::Source;

fn read(file: &str) -> ReadServer {
    let environment = FixedEnvironment::empty()
        .with("TOKEN", "xoxb-s3cret-0123456789")
        .with("KEY", "s3cret0123456789abcdef0123456789")
        .with("SHORT", "s3cret");
    read_server(Some(Source::new("holdpoint.yaml", file)), &environment, &ServerFlags::none())
}

#[track_caller]
fn check(file: &str, expected: &[&str]) {
    let read = read(file);
    let said: Vec<String> = read.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(said, expected, "\n{}", said.join("\n"));
    assert!(!said.join("\n").contains("s3cret"), "{said:?}");
    assert_eq!(read.config.is_none(), read.diagnostics.iter().any(Diagnostic::is_error));
}

const WHOLE: &str = r#"
notifications:
  - name: ops
    type: slack
    channel: C0123456789
    bot_token: ${TOKEN}
    signing_secret: ${KEY}
    app_id: A0123
    agents: [billing]
    kinds: [approval, in_doubt]
    people:
      - { team: T012, user: U045, principal: alice@example.com, roles: [approver], groups: [finance] }
      - { team: T012, user: W046, principal: ben, role: admin }
  - name: other
    type: slack
    channel: G1
    bot_token: ${TOKEN}
    signing_secret: ${KEY}
    base_url: http://127.0.0.1:9/api/
    people: [{ team: T012, user: U045, principal: alice@example.com, role: approver }]
"#;

#[test]
fn a_channel_is_read_with_the_people_who_may_click() {
    let config = read(WHOLE).config.expect("the file is right");
    let [ops, other] = config.notifications.as_slice() else { panic!("two expected") };
    assert_eq!((ops.name.as_str(), ops.agents.len()), ("ops", 1));
    assert_eq!(ops.kinds, [PauseKind::Approval, PauseKind::InDoubt]);
    let NotificationTarget::Slack(slack) = &ops.target else { panic!("a channel expected") };
    assert_eq!((slack.channel.as_str(), slack.app_id.as_deref()), ("C0123456789", Some("A0123")));
    assert_eq!(slack.base_url, "https://slack.com/api");
    assert_eq!(slack.bot_token.expose_secret(), "xoxb-s3cret-0123456789");
    let alice = &slack.people[0];
    assert_eq!((alice.principal.as_str(), alice.roles.as_slice()), ("alice@example.com", &[Role::Approver][..]));
    assert_eq!(alice.groups, ["finance"]);
    let NotificationTarget::Slack(slack) = &other.target else { panic!("a channel expected") };
    assert_eq!((slack.base_url.as_str(), slack.app_id.as_deref()), ("http://127.0.0.1:9/api", None));
    assert!(other.agents.is_empty() && other.kinds.is_empty());
    assert!(!format!("{config:?}").contains("s3cret"), "{config:?}");
}

#[test]
fn without_the_section_nobody_is_told() {
    assert!(read("").config.expect("nothing is wrong").notifications.is_empty());
    assert!(read("notifications:\n").config.expect("nothing is wrong").notifications.is_empty());
}

#[test]
fn mistakes_are_named_with_their_places_and_no_secret_is_shown() {
    check(
        "notifications: { name: x }",
        &[
            "holdpoint.yaml:1:16: error: `notifications` must be a list and is a mapping (hint: write one `- …` line for each)",
        ],
    );
    check(
        "notifications:\n  - { name: Ops!, type: slak }\n",
        &[
            "holdpoint.yaml:2:13: error: a notification cannot be called `Ops!` (hint: use lower-case letters, digits, `-` and `_`, 64 at most)",
            "holdpoint.yaml:2:25: error: `type` cannot be `slak` (hint: did you mean `slack`?)",
        ],
    );
    check(
        "notifications:\n  - name: ops\n    type: slack\n    channel: '#ops'\n    bot_token: xoxb-written-into-it\n    signing_secret: ${SHORT}\n    kinds: [aproval]\n    people:\n      - { team: T1, user: alice, principal: local, roles: [boss] }\n",
        &[
            "holdpoint.yaml:4:14: error: `channel` cannot be `#ops` (hint: write Slack's id of it, such as `C0123456789`, not its name)",
            "holdpoint.yaml:5:16: error: `bot_token` is written into the file (hint: keep it in an environment variable and write `${NAME}`)",
            "holdpoint.yaml:6:21: error: `signing_secret` does not look like one (hint: see the app's page Basic Information)",
            "holdpoint.yaml:7:13: error: there is no kind of pause called `aproval` (hint: did you mean `approval`?)",
            "holdpoint.yaml:9:27: error: `user` cannot be `alice` (hint: write Slack's id of it, such as `U0123456789`, not its name)",
            "holdpoint.yaml:9:45: error: nobody can decide as `local` (hint: write the name that they have elsewhere too, such as `ana@example.com`)",
            "holdpoint.yaml:9:60: error: there is no role `boss` (hint: write `agent`, `approver`, `admin` or `auditor`)",
        ],
    );
    let head = "notifications:\n  - name: ops\n    type: slack\n    channel: C1\n    bot_token: ${TOKEN}\n    signing_secret: ${KEY}\n";
    check(
        &format!("{head}    people: []\n    base_url: http://slack.example/api\n"),
        &[
            "holdpoint.yaml:7:5: error: nobody could click: `people` names nobody",
            "holdpoint.yaml:8:15: error: `base_url` is not an address to send a token to (hint: leave it out, unless Slack is played by another server; it must start with https://)",
        ],
    );
    let person = "{ team: T1, user: U1, principal: ana, role: approver }";
    check(
        &format!("{head}    people: [{person}, {person}]\n    chanel: C2\n"),
        &[
            "holdpoint.yaml:7:70: error: user U1 of T1 stands here twice",
            "holdpoint.yaml:8:5: error: a notification has no field `chanel` (hint: did you mean `channel`?)",
        ],
    );
}

#[test]
fn two_places_cannot_have_one_name() {
    let file = WHOLE.replace("name: other", "name: ops");
    let read = read(&file);
    let said: Vec<String> = read.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].ends_with("two notifications are called `ops`"), "{said:?}");
}

#[test]
fn a_webhook_and_mail_are_read() {
    let file = "notifications:\n  - { name: hook, type: webhook, url: 'https://x.example/in', secret: '${HOOK}' }\n  - name: mail\n    type: email\n    smtp: smtps://ana@mail.example:465\n    password: ${PASSWORD}\n    from: holdpoint <holdpoint@example.com>\n    to: [ops@example.com, Ana <ana@example.com>]\n";
    let environment =
        FixedEnvironment::empty().with("HOOK", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").with("PASSWORD", "s3cret");
    let read = read_server(Some(Source::new("holdpoint.yaml", file)), &environment, &ServerFlags::none());
    let config = read.config.unwrap_or_else(|| panic!("{:?}", read.diagnostics));
    let [hook, mail] = config.notifications.as_slice() else { panic!("two expected") };
    let NotificationTarget::Webhook(hook) = &hook.target else { panic!("a webhook expected") };
    assert_eq!(hook.url, "https://x.example/in");
    let NotificationTarget::Email(mail) = &mail.target else { panic!("mail expected") };
    assert_eq!((mail.smtp.as_str(), mail.to.len()), ("smtps://ana@mail.example:465", 2));
    assert_eq!(mail.password.as_ref().map(ExposeSecret::expose_secret), Some("s3cret"));
    assert!(!format!("{config:?}").contains("s3cret"), "{config:?}");
}

#[test]
fn mistakes_in_a_webhook_and_in_mail_are_named_and_no_secret_is_shown() {
    check(
        "notifications:\n  - { name: hook, type: webhook, url: 'ftp://x.example', secret: '${SHORT}' }\n",
        &[
            "holdpoint.yaml:2:39: error: `url` is not an address to call (hint: write an address that begins with https://, without a password in it)",
            "holdpoint.yaml:2:66: error: `secret` does not look like one (hint: it is `whsec_` and 24 to 64 bytes in base64: echo \"whsec_$(openssl rand -base64 32)\")",
        ],
    );
    let hint =
        "(hint: write `smtps://USER@HOST:465` or `smtp+starttls://USER@HOST:587`, and the password as `password`)";
    check(
        "notifications:\n  - { name: mail, type: email, smtp: 'smtps://ana:s3cret@mail.example', from: nobody, to: [a@b] }\n",
        &[
            &format!("holdpoint.yaml:2:38: error: `smtp` has a password in it {hint}"),
            "holdpoint.yaml:2:79: error: `from` cannot be `nobody` (hint: write `Ana <ana@example.com>` or `ana@example.com`)",
        ],
    );
    check(
        "notifications:\n  - { name: mail, type: email, smtp: 'smtps://ana@mail.example', from: a@b, to: [a@b] }\n",
        &[
            "holdpoint.yaml:2:5: error: `password` of the user in `smtp` is missing (hint: add `password: ${NAME}`, or take the user out of `smtp`)",
        ],
    );
}
