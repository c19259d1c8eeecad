//! Requests that Slack did not send, sent twice, or sent for somebody else: refused, and nothing is decided.

use std::time::Duration;

use holdpoint_testkit::slack_server::Signed;
use serde_json::{Value, json};

use crate::world::{Answer, KEY, Setup, World, on};

/// A click that would approve.
async fn approval(world: &World) -> (String, Value) {
    let asked = world.ask("mailer", "ana").await;
    let value = asked.message.button("approve").unwrap();
    (asked.pause, on("UALICE", &asked.message).button("approve", &value))
}

#[tokio::test]
async fn what_slack_did_not_sign_just_now_is_refused_and_changes_nothing() {
    let world = World::new().await;
    let (pause, click) = approval(&world).await;
    let before = world.everything().await;
    let now = world.now();
    let good = Signed::new(KEY, now, &click);
    let mut changed = good.clone();
    changed.body.push_str("&x=1");
    let mut reencoded = good.clone();
    reencoded.body = good.body.replace("%22", "%2522");
    for (what, signed) in [
        ("another key", Signed::new("another key of the same length!!", now, &click)),
        ("an old time", Signed::new(KEY, now - 301, &click)),
        ("a time to come", Signed::new(KEY, now + 301, &click)),
        ("a changed body", changed),
        ("a body encoded anew", reencoded),
        ("another time", Signed { timestamp: (now - 1).to_string(), ..good.clone() }),
        ("no signature", Signed { signature: "v0=".to_owned(), ..good.clone() }),
    ] {
        let answer = world.send(&signed).await;
        let problem = answer.refuses(401, "unauthenticated");
        // Which of the reasons it was is not told.
        assert_eq!(problem["detail"], "the request is not one that Slack signed just now for this app", "{what}");
    }
    for missing in ["x-slack-signature", "x-slack-request-timestamp"] {
        let mut request = world.interaction(&good).build().unwrap();
        request.headers_mut().remove(missing);
        let response = reqwest::Client::builder().no_proxy().build().unwrap().execute(request).await.unwrap();
        assert_eq!(response.status().as_u16(), 401, "{missing}");
    }
    assert_eq!(world.everything().await, before);
    assert_eq!(world.pause(&pause).await["status"], "open");
    // The same click, as Slack sends it.
    world.send(&good).await.acknowledges();
    assert_eq!(world.pause(&pause).await["status"], "decided");
}

#[tokio::test]
async fn the_window_is_five_minutes_both_ways_by_the_servers_clock() {
    let world = World::new().await;
    for (offset, status) in [(-301, 401), (-300, 200), (300, 200), (301, 401)] {
        let payload = json!({"type": "shortcut", "offset": offset});
        let answer = world.send(&Signed::new(KEY, world.now() + offset, &payload)).await;
        assert_eq!(answer.status, status, "{offset}");
    }
}

#[tokio::test]
async fn a_request_counts_once() {
    let world = World::new().await;
    let asked = world.ask("treasurer", "ana").await;
    let value = asked.message.button("approve").unwrap();
    let signed = Signed::new(KEY, world.now(), &on("UALICE", &asked.message).button("approve", &value));
    world.send(&signed).await.acknowledges();
    for wait in [0, 100, 199] {
        world.clock.advance(Duration::from_secs(wait));
        world.send(&signed).await.refuses(401, "unauthenticated");
    }
    // Many at once: one counts.
    let signed = Signed::new(KEY, world.now(), &json!({"type": "shortcut"}));
    let all = futures_util::future::join_all((0..20).map(|_| world.send(&signed))).await;
    assert_eq!(all.iter().filter(|answer| answer.status == 200).count(), 1, "{all:?}");
}

#[tokio::test]
async fn a_user_who_is_not_mapped_is_told_and_decides_nothing() {
    let world = World::new().await;
    let asked = world.ask("mailer", "ana").await;
    let before = world.everything().await;
    let value = asked.message.button("approve").unwrap();
    world.deliver(&on("USTRANGER", &asked.message).button("approve", &value)).await.acknowledges();
    let (user, told) = world.whisper(1).await;
    assert_eq!(user, "USTRANGER");
    assert!(told.starts_with("You are not among the people who may decide here, so nothing was decided."), "{told}");
    let view = json!({"id": "V1", "callback_id": "holdpoint.deny", "private_metadata": value, "blocks": []});
    let answer = world.send_off("USTRANGER", &view, json!({})).await.expect(200);
    assert_eq!(answer["response_action"], "update");
    assert!(answer["view"].to_string().contains("You are not among the people"), "{answer}");
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn another_workspace_or_app_is_refused() {
    let world = World::new().await;
    let (pause, click) = approval(&world).await;
    let before = world.everything().await;
    let change = |path: &[&str], value: Value| {
        let mut click = click.clone();
        let place = path.iter().fold(&mut click, |place, part| &mut place[*part]);
        *place = value;
        click
    };
    let mut elsewhere = change(&["team", "id"], json!("T999"));
    elsewhere["user"]["team_id"] = json!("T999");
    let mut nowhere = change(&["team"], Value::Null);
    nowhere["user"].as_object_mut().unwrap().remove("team_id");
    for (what, click) in [
        ("another workspace", elsewhere),
        ("a guest of another workspace", change(&["user", "team_id"], json!("T999"))),
        ("through another workspace", change(&["team", "id"], json!("T999"))),
        ("no workspace", nowhere),
        ("another app", change(&["api_app_id"], json!("A999"))),
    ] {
        assert_eq!(world.deliver(&click).await.refuses(403, "forbidden")["status"], 403, "{what}");
    }
    assert_eq!(world.everything().await, before);
    assert_eq!(world.pause(&pause).await["status"], "open");
    assert!(world.slack.ephemerals().is_empty());
}

#[tokio::test]
async fn a_signed_request_that_is_not_an_interaction_is_refused() {
    let world = World::new().await;
    let (_, click) = approval(&world).await;
    let before = world.everything().await;
    let send = async |body: String| world.send(&Signed::of_body(KEY, world.now(), body)).await;
    let form = |json: &str| format!("payload={}", json.replace('%', "%25").replace('&', "%26").replace('+', "%2B"));
    for (body, code) in [
        (String::new(), "invalid_request"),
        ("payload=".to_owned(), "invalid_request"),
        ("other=1".to_owned(), "invalid_request"),
        (format!("{0}&{0}", form(&click.to_string())), "invalid_request"),
        (form("[]"), "invalid_request"),
        (form("{}"), "invalid_request"),
        (form("{"), "invalid_json"),
        (form(r#"{"type":"block_actions","type":"shortcut"}"#), "invalid_json"),
        (form(r#"{"type":"block_actions"}"#), "invalid_request"),
        ("payload=%FF%FE".to_owned(), "invalid_request"),
    ] {
        send(body.clone()).await.refuses(400, code);
    }
    let signed = Signed::new(KEY, world.now(), &click);
    let mut request = world.interaction(&signed).build().unwrap();
    request.headers_mut().insert("content-type", "application/json".parse().unwrap());
    let response = reqwest::Client::builder().no_proxy().build().unwrap().execute(request).await.unwrap();
    assert_eq!(response.status().as_u16(), 415);
    let large = "x".repeat(600 << 10);
    send(format!("payload={large}")).await.refuses(413, "payload_too_large");
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn nothing_else_is_open_there_and_without_slack_nothing_at_all() {
    let world = World::new().await;
    world.get("/api/v1/slack/ops/interactions").await.refuses(405, "method_not_allowed");
    let signed = Signed::new(KEY, world.now(), &json!({"type": "shortcut"}));
    for path in ["/api/v1/slack/other/interactions", "/api/v1/slack/ops/other", "/api/v1/slack/%FF/interactions"] {
        let request = world
            .request("POST", path)
            .header("content-type", "application/x-www-form-urlencoded")
            .header("x-slack-request-timestamp", &signed.timestamp)
            .header("x-slack-signature", &signed.signature)
            .body(signed.body.clone());
        Answer::to(request).await.refuses(404, "route_not_found");
    }
    // What Slack signed opens no other door.
    let request = world.interaction(&signed).build().unwrap();
    let other = world.request("POST", "/api/v1/runs").headers(request.headers().clone()).body(signed.body.clone());
    Answer::to(other).await.refuses(415, "unsupported_media_type");
    // A foreign page and a foreign name are kept out of everything else, and Slack names neither.
    let through = world.interaction(&signed).header("origin", "https://evil.example");
    Answer::to(through).await.acknowledges();
    let world = World::with(Setup { is_without_slack: true, ..Setup::default() }).await;
    world.send(&Signed::new(KEY, world.now(), &json!({"type": "shortcut"}))).await.refuses(404, "route_not_found");
}

/// A generator whose numbers follow from its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    fn text(&mut self) -> String {
        (0..self.roll(80)).map(|_| char::from(u8::try_from(0x20 + self.roll(95)).unwrap())).collect()
    }
}

#[tokio::test]
async fn random_headers_and_bodies_are_never_believed() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) ^ 0x51ac_0000_0000_0000);
    println!("SEED={seed}");
    let mut dice = Dice(seed);
    let world = World::new().await;
    let (pause, click) = approval(&world).await;
    let good = Signed::new(KEY, world.now(), &click);
    let before = world.everything().await;
    for round in 0..300 {
        let mut signed = good.clone();
        match dice.roll(5) {
            0 => {
                signed.signature =
                    format!("v0={:064x}", u128::from(dice.roll(u64::MAX)) * u128::from(dice.roll(u64::MAX)))
            }
            1 => signed.timestamp = (world.now() + 1 + i64::try_from(dice.roll(299)).unwrap()).to_string(),
            2 => signed.body = format!("payload={}", dice.text()),
            3 => {
                let at = usize::try_from(dice.roll(signed.body.len() as u64)).unwrap();
                signed.body.insert(at, char::from(u8::try_from(0x21 + dice.roll(90)).unwrap()));
            }
            _ => signed = Signed { timestamp: dice.text(), signature: dice.text(), body: dice.text() },
        }
        let status = world.send(&signed).await.status;
        assert!(matches!(status, 400 | 401), "SEED={seed} round {round}: {status} {signed:?}");
    }
    assert_eq!(world.everything().await, before, "SEED={seed}");
    assert_eq!(world.pause(&pause).await["status"], "open");
    world.send(&good).await.acknowledges();
    assert_eq!(world.pause(&pause).await["status"], "decided", "what was sent at last was good");
}
