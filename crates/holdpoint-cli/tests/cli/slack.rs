//! Slack with the real program: what `check` and `doctor` say, and what is left when the program is killed.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, SystemTime};

use holdpoint_testkit::slack_server::{Click, Message, Signed, SlackServer, Trouble};
use serde_json::json;

use crate::world::{Place, Server, complained, printed};

const KEY: &str = "8f742231b10e8888abcd99yyyzzz85a5";
const TOKEN: &str = "xoxb-s3cret-token-of-the-app";
const VARIABLES: [(&str, &str); 2] = [("SLACK_BOT_TOKEN", TOKEN), ("SLACK_SIGNING_SECRET", KEY)];

/// A folder whose server tells this Slack.
fn place(base_url: &str) -> Place {
    let place = Place::new();
    place.run(&["init"]);
    place.write(
        "holdpoint.yaml",
        &format!(
            "public_url: https://hold.example\nnotifications:\n  - name: ops\n    type: slack\n    channel: C0123456789\n    bot_token: ${{SLACK_BOT_TOKEN}}\n    signing_secret: ${{SLACK_SIGNING_SECRET}}\n    base_url: {base_url}\n    people:\n      - {{ team: T012, user: UALICE, principal: alice@example.com, roles: [approver] }}\n"
        ),
    );
    place
}

#[test]
fn the_configuration_in_the_guide_is_right() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/slack.md");
    let text = std::fs::read_to_string(guide).unwrap();
    let (_, rest) = text.split_once("# holdpoint.yaml\n").unwrap();
    let (file, _) = rest.split_once("```").unwrap();
    let place = Place::new();
    place.run(&["init"]);
    place.write("holdpoint.yaml", file);
    let checked = place.holdpoint(&["check", "--format", "short"]).envs(VARIABLES).output().unwrap();
    // The guide has an agent of its own.
    let warned =
        "holdpoint.yaml: warning: notifications: ops: there is no agent called billing, so nobody is told of it\n";
    assert_eq!((checked.status.code(), printed(&checked).as_str()), (Some(0), warned), "{}", complained(&checked));
}

#[test]
fn two_entries_of_one_app_are_warned_of() {
    let place = Place::new();
    place.run(&["init"]);
    let entry = |name: &str| {
        format!(
            "  - {{ name: {name}, type: slack, channel: C0123456789, bot_token: '${{SLACK_BOT_TOKEN}}', signing_secret: '${{SLACK_SIGNING_SECRET}}', people: [{{ team: T012, user: UALICE, principal: ana, roles: [approver] }}] }}\n"
        )
    };
    place.write("holdpoint.yaml", &format!("notifications:\n{}{}", entry("ops"), entry("finance")));
    let checked = place.holdpoint(&["check", "--format", "short"]).envs(VARIABLES).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{}", complained(&checked));
    let told = printed(&checked);
    assert!(told.contains("warning: notifications: ops and finance are one Slack app"), "{told}");
    assert!(!told.contains(TOKEN), "{told}");
}

#[test]
fn mistakes_are_found_with_their_line_and_a_secret_that_is_missing_too() {
    let place = place("https://slack.com/api");
    let checked = place.holdpoint(&["check", "--format", "short"]).env("SLACK_BOT_TOKEN", TOKEN).output().unwrap();
    assert_eq!(checked.status.code(), Some(1));
    let told = printed(&checked);
    assert!(told.contains("holdpoint.yaml:7:") && told.contains("SLACK_SIGNING_SECRET is not set"), "{told}");
    assert!(!told.contains(TOKEN), "{told}");
}

#[test]
fn doctor_asks_slack_whether_the_token_holds() {
    let slack = SlackServer::start();
    let place = place(&slack.base_url());
    let doctor = |more: &[&str]| {
        let args: Vec<&str> = ["doctor"].iter().chain(more).copied().collect();
        printed(&place.holdpoint(&args).envs(VARIABLES).output().unwrap())
    };
    let told = doctor(&[]);
    assert!(told.contains("ops: Slack takes the token, as holdpoint in Example"), "{told}");
    slack.push(Trouble::Error("invalid_auth"));
    let told = doctor(&[]);
    assert!(told.contains("ops: Slack refused: invalid_auth") && !told.contains(TOKEN), "{told}");
    let asked = slack.calls().len();
    assert!(doctor(&["--offline"]).contains("ops: Slack is not asked"));
    assert_eq!(slack.calls().len(), asked);
}

/// Posts a form as Slack does; gives back the status.
fn send(server: &Server, signed: &Signed) -> u16 {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = format!(
        "POST /api/v1/slack/ops/interactions HTTP/1.0\r\nHost: hooks.hold.example\r\nContent-Type: application/x-www-form-urlencoded\r\nX-Slack-Request-Timestamp: {}\r\nX-Slack-Signature: {}\r\nContent-Length: {}\r\n\r\n",
        signed.timestamp,
        signed.signature,
        signed.body.len()
    );
    stream.write_all(format!("{head}{}", signed.body).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

fn click(server: &Server, message: &Message, action: &str) -> u16 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let click = Click { ts: message.ts.clone(), ..Click::by("T012", "UALICE") };
    let payload = click.button(action, &message.button(action).unwrap());
    send(server, &Signed::new(KEY, i64::try_from(now).unwrap(), &payload))
}

#[test]
fn a_program_that_is_killed_between_the_message_and_its_end_tells_the_end_when_it_is_back() {
    let slack = SlackServer::start();
    let place = place(&slack.base_url());
    let server = place.serve_with(&[], &VARIABLES);
    let body = json!({"agent_id": "refund-desk", "input": "refund it"});
    let (status, run) = server.post("/api/v1/runs?wait=60", &body);
    assert!((200..300).contains(&status), "{run}");
    let asked = slack.wait_until("the message", |slack| slack.messages().first().cloned());
    let delivered = r#"holdpoint_notices_total{destination="ops",outcome="delivered"} 1"#;
    server.until("/metrics", |told| told.as_str().is_some_and(|told| told.contains(delivered)));
    server.kill();

    let server = place.serve_with(&[], &VARIABLES);
    assert_eq!(click(&server, &asked, "approve"), 200);
    let path = format!("/api/v1/runs/{}", run["run_id"].as_str().unwrap());
    server.until(&path, |run| run["status"] == "done");
    let find = |slack: &SlackServer| slack.messages().into_iter().find(|message| message.actions().is_empty());
    let ended = slack.wait_until("the end", find);
    assert!(ended.blocks.to_string().contains("Approved by alice@example.com (slack)."), "{:#}", ended.blocks);
    assert_eq!(slack.messages().len(), 1);
    assert!(!place.log().contains(TOKEN) && !place.log().contains(KEY), "{}", place.log());
}
