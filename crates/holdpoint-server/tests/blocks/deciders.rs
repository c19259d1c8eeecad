//! Ten thousand people press a button at once, over two doors. One of them wins, and everybody learns who it was.

use std::sync::Arc;

use holdpoint_server::limits::Limits;
use holdpoint_testkit::model_server::Answer as Reply;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::agents::key;
use crate::client::{is, until_asked};
use crate::stage::{Setup, Stage, commands_path, message};

const CLIENTS: usize = 100;
const COMMANDS: usize = 50;

fn trade(quantity: u32) -> Value {
    json!({"symbol": "VNM", "quantity": quantity})
}

/// A decision under a name that no other has.
fn command(name: String, decision: Value) -> Value {
    json!({"type": "approval", "request_id": name, "session_id": "s", "approval_key": "s_1", "decisions": [decision]})
}

/// What one decider was told: that it won, or who did.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Won,
    Lost { to: String },
}

fn told(name: &str, answer: &Value) -> Told {
    assert_eq!(answer["request_id"], name, "{answer}");
    match answer["type"].as_str() {
        Some("approval_resolved") => Told::Won,
        Some("error") => {
            assert_eq!(answer["error"]["code"], "already_decided", "{answer}");
            let details = &answer["error"]["details"];
            assert!(details["decided_at"].is_string() && details["outcome"].is_string(), "{answer}");
            Told::Lost { to: details["decided_by"].as_str().unwrap().to_owned() }
        }
        _ => panic!("neither won nor lost: {answer}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_ten_thousand_decisions_over_two_doors_one_counts_and_every_loser_is_told_who_won() {
    let limits = Limits { requests_per_second: 1_000_000, requests_burst: 1_000_000, ..Limits::default() };
    let stage = Stage::with(Setup { has_keys: true, limits: Some(limits), ..Setup::default() }).await;
    let mut owner = stage.connect_by("agnes").await;
    stage.model.push(Reply::call("execute_trade", trade(100)));
    stage.model.script(|_| Reply::text("Xong."));
    owner.send(&message("trader", "s", "Mua")).await;
    until_asked(&mut owner).await;

    // Ana's clients approve over sockets what the model asked for; Ben's change it, over HTTP.
    let begin = Arc::new(Barrier::new(2 * CLIENTS));
    let mut deciders = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        let mut client = stage.connect_by("ana").await;
        let (begin, decision) = (begin.clone(), json!({"type": "approve"}));
        deciders.spawn(async move {
            begin.wait().await;
            for turn in 0..COMMANDS {
                client.send(&command(format!("ws-{number}-{turn}"), decision.clone())).await;
            }
            let mut all = Vec::new();
            while all.len() < COMMANDS {
                let answer = client.next().await;
                // Whoever won may be told what follows as well.
                if let Some(name) = answer["request_id"].as_str() {
                    all.push(("ana", told(name, &answer)));
                }
            }
            all
        });
    }
    for number in 0..CLIENTS {
        let path = commands_path("s");
        let request = stage.request("POST", &path).bearer_auth(key("ben"));
        let begin = begin.clone();
        let edit = json!({"type": "edit", "edited_action": {"name": "execute_trade", "args": trade(7)}});
        deciders.spawn(async move {
            begin.wait().await;
            let mut all = Vec::new();
            for turn in 0..COMMANDS {
                let name = format!("http-{number}-{turn}");
                let body = command(name.clone(), edit.clone());
                let response = request.try_clone().unwrap().json(&body).send().await.unwrap();
                let answer: Value = response.json().await.unwrap();
                all.push(("ben", told(&name, &answer)));
            }
            all
        });
    }
    let all: Vec<(&str, Told)> = deciders.join_all().await.into_iter().flatten().collect();
    assert_eq!(all.len(), 2 * CLIENTS * COMMANDS);
    let winners: Vec<&str> = all.iter().filter(|(_, told)| *told == Told::Won).map(|(who, _)| *who).collect();
    let [winner] = winners[..] else { panic!("one wins: {winners:?}") };
    let wrong = all.iter().find(|(_, told)| matches!(told, Told::Lost { to } if to != winner));
    assert_eq!(wrong, None, "everybody else is told that {winner} won");

    let events = owner.until(is("message_stop")).await;
    let resolved: Vec<&Value> = events.iter().filter(|event| event["type"] == "approval_resolved").collect();
    assert_eq!(resolved.len(), 1, "{resolved:?}");
    assert_eq!(resolved[0]["decided_by"], winner);
    // The effect, counted where it happens.
    let effects: Vec<Value> = stage.tools.calls().iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    assert_eq!(effects, [trade(if winner == "ana" { 100 } else { 7 })]);
}
