//! Standing rules, and the record of decisions.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::world::{Answer, World, first_pause, text};

async fn in_session(world: &World, input: &str) -> Value {
    let body = json!({"agent_id": "mailer", "input": input, "session_id": "s-1"});
    world.post("/api/v1/runs?wait=30", body).await.expect(201)
}

#[tokio::test]
async fn a_rule_made_with_a_decision_settles_later_calls_until_it_is_revoked() {
    let world = World::solo().await;
    let always = json!({"scope": "session", "where": [{"at": "/to", "equals": "ana"}]});
    let pause = first_pause(&in_session(&world, "ana").await);
    world.decide(&pause, json!({"decision": "approve", "always": always})).await.expect(200);
    assert_eq!(in_session(&world, "ana").await["status"], "done");
    assert_eq!(in_session(&world, "eve").await["status"], "paused");
    let rules = world.get("/api/v1/rules").await.expect(200);
    let rule = &rules["rules"][0];
    assert_eq!((&rule["effect"], &rule["scope"], &rule["uses"]), (&json!("approve"), &json!("session"), &json!(1)));
    assert_eq!((&rule["agent"], &rule["tool"], &rule["by"]), (&json!("mailer"), &json!("send_mail"), &json!("local")));
    assert_eq!(rule["where"], json!([{"at": "/to", "equals": "ana"}]));
    assert_eq!(rule["session_id"], "s-1");
    let path = format!("/api/v1/rules/{}", text(rule, "id"));
    assert_eq!(Answer::to(world.request("DELETE", &path)).await.status, 204);
    Answer::to(world.request("DELETE", &path)).await.refuses(404, "not_found");
    assert_eq!(world.get("/api/v1/rules?session=s-1").await.expect(200)["rules"], json!([]));
    assert_eq!(world.effects.sent().len(), 2);
}

#[tokio::test]
async fn rules_that_cannot_be_made_are_refused_with_the_decision() {
    let world = World::solo().await;
    let pause = first_pause(&in_session(&world, "ana").await);
    let past = json!({"scope": "session", "where": [{"at": "no-pointer", "equals": 1}]});
    world.decide(&pause, json!({"decision": "approve", "always": past})).await.refuses(422, "invalid_rule");
    assert_eq!(world.get(&format!("/api/v1/pauses/{pause}")).await.expect(200)["status"], "open");
}

#[tokio::test]
async fn every_decision_is_in_the_record_and_anybody_can_follow_the_chain() {
    let world = World::solo().await;
    let pause = first_pause(&in_session(&world, "ana").await);
    let edited = json!({"decision": "approve_edited", "args": {"to": "ben"}});
    world.decide(&pause, edited).await.expect(200);
    let cancelled = in_session(&world, "eve").await;
    world.post(&format!("/api/v1/runs/{}/cancel", text(&cancelled, "run_id")), json!({})).await.expect(200);
    let audit = world.get("/api/v1/audit").await.expect(200);
    let records = audit["records"].as_array().unwrap();
    let kinds: Vec<&str> = records.iter().map(|record| text(record, "type")).collect();
    assert_eq!(kinds, ["pause.decided", "pause.withdrawn", "run.cancelled"]);
    let first = &records[0];
    assert_eq!(
        (&first["outcome"], &first["by"], &first["via"]),
        (&json!("approve_edited"), &json!("local"), &json!("native"))
    );
    assert_eq!((text(first, "pause_id"), &first["tool"]), (pause.as_str(), &json!("send_mail")));
    assert_ne!(first["args_sha256"], first["edited_sha256"]);
    assert!(!audit.to_string().contains("ben"), "arguments are not in the record: {audit}");
    let mut before = vec![0_u8; 32];
    for record in records {
        before = Sha256::digest([before.as_slice(), text(record, "body").as_bytes()].concat()).to_vec();
        let hash: String = before.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text(record, "hash"), hash);
    }
    let check = world.get("/api/v1/audit/verify").await.expect(200);
    assert_eq!((&check["is_whole"], &check["records"], &check["head"]), (&json!(true), &json!(3), &records[2]["hash"]));
}

#[tokio::test]
async fn the_record_is_read_in_pages() {
    let world = World::solo().await;
    for input in ["a", "b", "c"] {
        let pause = first_pause(&in_session(&world, input).await);
        world.decide(&pause, json!({"decision": "deny"})).await.expect(200);
    }
    let page = world.get("/api/v1/audit?limit=2").await.expect(200);
    assert_eq!((page["records"].as_array().unwrap().len(), &page["next_since"]), (2, &json!(2)));
    let rest = world.get("/api/v1/audit?since=2&limit=2").await.expect(200);
    assert_eq!((&rest["records"][0]["n"], &rest["next_since"]), (&json!(3), &json!(null)));
    world.get("/api/v1/audit?since=x").await.refuses(400, "invalid_parameter");
}

/// A server with three decisions, and something done to its file.
async fn meddled(sql: &str) -> World {
    let mut world = World::solo().await;
    for input in ["a", "b", "c"] {
        let pause = first_pause(&in_session(&world, input).await);
        world.decide(&pause, json!({"decision": "deny"})).await.expect(200);
    }
    world.meddle(sql).await;
    world
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_said_to_be_corrupt() {
    let world = meddled("UPDATE audit SET body = '{}' WHERE n = 2").await;
    world.get("/api/v1/audit").await.refuses(500, "store_corrupt");
    assert_eq!(world.get("/api/v1/audit?since=2").await.expect(200)["records"][0]["n"], 3);
    let check = world.get("/api/v1/audit/verify").await.expect(200);
    assert_eq!((&check["is_whole"], &check["broken_at"], &check["records"]), (&json!(false), &json!(2), &json!(1)));
}

#[tokio::test]
async fn a_record_that_was_cut_off_at_the_end_is_missed() {
    let world = meddled("DELETE FROM audit WHERE n = 3").await;
    let check = world.get("/api/v1/audit/verify").await.expect(200);
    assert_eq!((&check["is_whole"], &check["broken_at"]), (&json!(false), &json!(3)));
    assert_eq!((&check["records"], &check["written"]), (&json!(2), &json!(3)));
    // What is decided afterwards does not cover it up.
    let pause = first_pause(&in_session(&world, "d").await);
    world.decide(&pause, json!({"decision": "deny"})).await.expect(200);
    let check = world.get("/api/v1/audit/verify").await.expect(200);
    assert_eq!((&check["is_whole"], &check["broken_at"]), (&json!(false), &json!(4)));
}
