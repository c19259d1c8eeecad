//! Readers that come and go: whatever the moment, each ends with the same list, without a gap and without a repeat.

use std::net::SocketAddr;
use std::time::Duration;

use holdpoint_testkit::model_server::{Answer as Reply, Gate};
use serde_json::json;

use crate::client::{Client, is, is_block, until_asked};
use crate::rebuilt::Rebuilt;
use crate::stage::{Stage, message};

/// A small generator, so that a seed is all that a run of the test needs to be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// The seed: the one that is asked for, or one that nobody chose.
fn seed() -> u64 {
    let asked = std::env::var("HOLDPOINT_SEED").ok().and_then(|text| text.parse().ok());
    let seed = asked.unwrap_or_else(|| u64::from_le_bytes(*uuid::Uuid::now_v7().as_bytes().last_chunk().unwrap()) | 1);
    println!("HOLDPOINT_SEED={seed}");
    seed
}

/// Everything that the server tells somebody who was never there before.
async fn replay(address: SocketAddr, session: &str) -> Rebuilt {
    let mut client = Client::connect(address, None).await;
    let head = client.subscribe(session, 0).await["head_seq"].as_u64().unwrap();
    let mut rebuilt = Rebuilt::default();
    while rebuilt.cursor() < head {
        rebuilt.take(&client.next().await);
    }
    rebuilt
}

/// A reader that loses its connection again and again, until it has seen so many runs end.
async fn read(address: SocketAddr, session: &str, runs: usize, mut random: Random) -> Rebuilt {
    let mut rebuilt = Rebuilt::default();
    loop {
        let mut client = Client::connect(address, None).await;
        client.subscribe(session, rebuilt.cursor()).await;
        for _ in 0..=random.below(25) {
            rebuilt.take(&client.next().await);
            if rebuilt.ended() == runs {
                return rebuilt;
            }
        }
        client.vanish();
        rebuilt.reconnect();
    }
}

/// As [`read`], over server-sent events, as a browser does it: it comes back with the last id that it was given.
async fn read_as_a_browser(address: SocketAddr, session: &str, runs: usize, mut random: Random) -> Rebuilt {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://{address}/api/v1/sessions/{session}/blocks");
    let (mut rebuilt, mut last_id) = (Rebuilt::default(), "0".to_owned());
    loop {
        let mut response = http.get(&url).header("last-event-id", &last_id).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        let (mut text, mut left) = (String::new(), 1 + random.below(25));
        while left > 0 {
            let chunk = tokio::time::timeout(Duration::from_secs(30), response.chunk()).await.expect("a frame in time");
            text.push_str(std::str::from_utf8(&chunk.unwrap().expect("more frames")).unwrap());
            while let Some((frame, rest)) = text.split_once("\n\n").filter(|_| left > 0) {
                let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
                if let Some(id) = field("id: ") {
                    last_id = id.to_owned();
                }
                if let Some(data) = field("data: ") {
                    rebuilt.take(&serde_json::from_str(data).unwrap());
                    assert_eq!(last_id.parse::<u64>().unwrap(), rebuilt.cursor(), "{frame}");
                    left -= 1;
                }
                if rebuilt.ended() == runs {
                    return rebuilt;
                }
                text = rest.to_owned();
            }
        }
        rebuilt.reconnect();
    }
}

/// Words that take a while to say.
fn words(count: u64) -> Reply {
    Reply::tokens((0..count).map(|word| format!("{word} "))).pace(Duration::from_millis(1))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_readers_that_lose_their_connection_at_random_each_rebuild_the_same_list() {
    const RUNS: usize = 4;
    let mut random = Random(seed());
    let stage = Stage::solo().await;
    let mut owner = stage.connect().await;
    // The first run makes the session, so that readers find it.
    stage.model.push(words(3));
    owner.send(&message("trader", "s", "Xin chào")).await;
    owner.until(is("message_stop")).await;
    let readers: Vec<_> = (0..20)
        .map(|number| {
            let random = Random(random.below(u64::MAX - 1) + 1);
            let address = stage.address();
            tokio::spawn(async move {
                match number % 2 {
                    0 => read(address, "s", RUNS, random).await,
                    _ => read_as_a_browser(address, "s", RUNS, random).await,
                }
            })
        })
        .collect();
    for run in 1..RUNS {
        let quote = json!({"symbol": format!("S{run}")});
        stage
            .model
            .push(words(random.below(30)).and_thinking("Nghĩ thêm một chút").and_call("get_quote", quote.clone()));
        stage.model.push(Reply::empty().and_thinking("Xem giá trước").and_call("get_quote", quote));
        stage.model.push(words(random.below(30)).and_call("execute_trade", json!({"symbol": "VNM", "quantity": 1})));
        stage.model.push(words(20 + random.below(60)));
        owner.send(&message("trader", "s", "Mua")).await;
        until_asked(&mut owner).await;
        let decisions = json!([{"type": if random.below(2) == 0 { "approve" } else { "reject" }}]);
        let key = format!("s_{run}");
        let command = json!({"type": "approval", "session_id": "s", "approval_key": key, "decisions": decisions});
        owner.send(&command).await;
        owner.until(is("message_stop")).await;
    }
    let expected = replay(stage.address(), "s").await;
    for reader in readers {
        let rebuilt = tokio::time::timeout(Duration::from_secs(120), reader).await.expect("a reader in time").unwrap();
        rebuilt.check_same(&expected);
    }
}

#[tokio::test]
async fn any_cursor_goes_on_without_a_gap_and_the_twin_over_http_tells_the_same() {
    let stage = Stage::solo().await;
    let mut owner = stage.connect().await;
    stage.model.push(words(5).and_call("execute_trade", json!({"symbol": "VNM", "quantity": 1})));
    stage.model.push(words(5));
    owner.send(&message("trader", "s", "Mua")).await;
    let mut live = Rebuilt::default();
    until_asked(&mut owner).await.iter().for_each(|event| live.take(event));
    owner
        .send(&json!({"type": "approval", "session_id": "s", "approval_key": "s_1",
        "decisions": [{"type": "approve"}]}))
        .await;
    owner.until(is("message_stop")).await.iter().for_each(|event| live.take(event));
    let whole = replay(stage.address(), "s").await;
    live.check_same(&whole);
    let head = whole.cursor();
    for after in 0..=head {
        let mut client = stage.connect().await;
        let subscribed = client.subscribe("s", after).await;
        assert_eq!((&subscribed["status"], &subscribed["head_seq"]), (&json!("completed"), &json!(head)));
        let mut rebuilt = whole.up_to(after);
        let mut events = Vec::new();
        while rebuilt.cursor() < head {
            let event = client.next().await;
            rebuilt.take(&event);
            events.push(event);
        }
        rebuilt.check_same(&whole);
        let twin = stage.server_sent("s", after, events.len()).await;
        assert_eq!(twin, events, "after {after}");
    }
    // Who claims to have seen more than there is must forget it.
    let mut client = stage.connect().await;
    client.subscribe("s", head + 5).await;
    let rewind = client.next().await;
    assert_eq!((&rewind["type"], &rewind["after"]), (&json!("rewind"), &json!(head)), "{rewind}");
}

#[tokio::test]
async fn a_request_that_waits_survives_the_death_of_the_server_and_the_numbers_go_on() {
    let mut stage = Stage::solo().await;
    let mut owner = stage.connect().await;
    stage.model.push(Reply::text("Tôi đặt lệnh.").and_call("execute_trade", json!({"symbol": "VNM", "quantity": 1})));
    owner.send(&message("trader", "s", "Mua")).await;
    let mut rebuilt = Rebuilt::default();
    until_asked(&mut owner).await.iter().for_each(|event| rebuilt.take(event));
    stage.kill_and_start().await;
    rebuilt.reconnect();
    let mut client = stage.connect().await;
    let subscribed = client.subscribe("s", rebuilt.cursor()).await;
    assert_eq!((&subscribed["status"], &subscribed["open"]), (&json!("waiting"), &json!(["s_1"])));
    assert_eq!(subscribed["head_seq"], rebuilt.cursor());
    stage.model.push(Reply::text("Xong."));
    client
        .send(&json!({"type": "approval", "session_id": "s", "approval_key": "s_1",
        "decisions": [{"type": "approve"}]}))
        .await;
    let told = client.until(is("message_stop")).await;
    told.iter().for_each(|event| rebuilt.take(event));
    let indexes: Vec<u64> = rebuilt.indexes();
    assert_eq!(indexes, (0..indexes.len() as u64).collect::<Vec<_>>(), "block indexes go on counting");
    rebuilt.check_same(&replay(stage.address(), "s").await);
    assert_eq!(stage.tools.calls().len(), 1);
}

#[tokio::test]
async fn a_call_that_was_under_way_when_the_server_died_is_asked_about_here_and_not_repeated() {
    let mut stage = Stage::solo().await;
    let mut owner = stage.connect().await;
    stage.model.push(Reply::call("execute_trade", json!({"symbol": "VNM", "quantity": 1})));
    owner.send(&message("trader", "s", "Mua")).await;
    let mut rebuilt = Rebuilt::default();
    until_asked(&mut owner).await.iter().for_each(|event| rebuilt.take(event));
    stage.tools.close();
    let approve = json!({"type": "approval", "session_id": "s", "approval_key": "s_1",
        "decisions": [{"type": "approve"}]});
    owner.send(&approve).await;
    stage.tools.wait_for_calls(1).await;
    stage.kill_and_start().await;
    rebuilt.reconnect();
    let mut client = stage.connect().await;
    client.subscribe("s", rebuilt.cursor()).await;
    let told = until_asked(&mut client).await;
    told.iter().for_each(|event| rebuilt.take(event));
    let request = &told.iter().rev().find(|event| is_block(event, "approval_request")).unwrap()["content_block"];
    assert_eq!((&request["pause"]["kind"], &request["approval_key"]), (&json!("in_doubt"), &json!("s_2")), "{request}");
    let happened = |kind: &str| {
        json!({"type": "approval", "session_id": "s", "approval_key": "s_2",
        "decisions": [{"type": kind, "message": "Đã khớp lệnh"}]})
    };
    let refused = client.ask(&happened("reject"), "approval_resolved").await;
    assert_eq!(refused["error"]["code"], "not_allowed", "nobody can reject what may have happened: {refused}");
    stage.model.push(Reply::text("Xong."));
    client.send(&happened("happened")).await;
    client.until(is("message_stop")).await.iter().for_each(|event| rebuilt.take(event));
    rebuilt.check_same(&replay(stage.address(), "s").await);
    assert_eq!(stage.tools.calls().len(), 1, "the call was not repeated");
    assert!(stage.model.last_request().tool_results()[0].1.contains("Đã khớp lệnh"));
}

/// The server dies while the model speaks, after those who watch have seen the group before its words end. The next
/// attempt says something else.
async fn other_words_after_a_death(second: Reply, third: Option<Reply>) {
    let mut stage = Stage::solo().await;
    let mut owner = stage.connect().await;
    let gate = Gate::closed();
    stage.model.push(Reply::call("get_quote", json!({"symbol": "VNM"})));
    stage.model.push(Reply::tokens(["Giá ", "là "]).and_gate(&gate));
    owner.send(&message("trader", "s", "Giá?")).await;
    let mut rebuilt = Rebuilt::default();
    let told = owner.until(|event| event["delta"]["text"] == "là ").await;
    told.iter().for_each(|event| rebuilt.take(event));
    assert!(told.iter().any(|event| is_block(event, "text")), "{told:?}");
    stage.model.push(second);
    third.into_iter().for_each(|reply| stage.model.push(reply));
    stage.kill_and_start().await;
    gate.open();
    // Another reader sees the run end; this one comes back only then, with the cursor from before the death.
    let mut other = stage.connect().await;
    other.subscribe("s", 0).await;
    other.until(is("message_stop")).await;
    rebuilt.reconnect();
    let mut client = stage.connect().await;
    client.subscribe("s", rebuilt.cursor()).await;
    loop {
        rebuilt.take(&client.next().await);
        if rebuilt.ended() == 1 {
            break;
        }
    }
    rebuilt.check_same(&replay(stage.address(), "s").await);
}

#[tokio::test]
async fn other_words_of_an_attempt_after_a_death_are_shown_in_place_of_the_first() {
    other_words_after_a_death(Reply::text("Không rõ."), None).await;
}

#[tokio::test]
async fn a_call_in_an_attempt_after_a_death_is_shown_to_those_who_saw_words_before() {
    let second = Reply::call("get_quote", json!({"symbol": "FPT"}));
    other_words_after_a_death(second, Some(Reply::text("Không rõ."))).await;
}
