//! The inbox: filtered, paged, live.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Reading, World, first_pause, text};

fn ids(list: &Value) -> Vec<String> {
    list["pauses"].as_array().unwrap().iter().map(|pause| text(pause, "id").to_owned()).collect()
}

#[tokio::test]
async fn pauses_are_listed_oldest_first_in_pages() {
    let world = World::solo().await;
    let mut opened = Vec::new();
    for input in ["a", "b", "c", "d", "e"] {
        opened.push(first_pause(&world.start("mailer", input).await));
        world.clock.advance(Duration::from_secs(1));
    }
    let (mut found, mut path) = (Vec::new(), "/api/v1/pauses?limit=2".to_owned());
    loop {
        let page = world.get(&path).await.expect(200);
        found.extend(ids(&page));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/api/v1/pauses?limit=2&cursor={cursor}");
    }
    assert_eq!(found, opened);
}

#[tokio::test]
async fn pauses_are_filtered_by_status_agent_tool_and_session() {
    let world = World::solo().await;
    let decided = first_pause(&world.start("mailer", "a").await);
    world.decide(&decided, json!({"decision": "deny"})).await.expect(200);
    let mail = world.start("mailer", "b").await;
    let question = world.start("asker", "c").await;
    let get = async |query: &str| ids(&world.get(&format!("/api/v1/pauses{query}")).await.expect(200));
    assert_eq!(get("").await, [first_pause(&mail), first_pause(&question)]);
    assert_eq!(get("?status=open").await.len(), 2);
    assert_eq!(get("?status=decided").await, [decided.as_str()]);
    assert_eq!(get("?status=all").await.len(), 3);
    assert_eq!(get("?agent=asker").await, [first_pause(&question)]);
    assert_eq!(get("?tool=send_mail").await, [first_pause(&mail)]);
    assert_eq!(get(&format!("?session={}", text(&mail, "session_id"))).await, [first_pause(&mail)]);
    assert_eq!(get("?status=expired").await, Vec::<String>::new());
    assert_eq!(get("?status=superseded").await, Vec::<String>::new());
    world.supersede(&mail).await;
    assert_eq!(get("?status=superseded").await, [first_pause(&mail)]);
    assert_eq!(get("?status=decided").await, [decided]);
    assert_eq!(get("?status=all").await.len(), 3);
}

#[tokio::test]
async fn what_is_no_filter_is_refused() {
    let world = World::solo().await;
    for query in [
        "status=odd",
        "tool=a%20b",
        "limit=0",
        "limit=201",
        "limit=x",
        "debug=1",
        "status=open&status=open",
        "agent=%ZZ",
    ] {
        world.get(&format!("/api/v1/pauses?{query}")).await.refuses(400, "invalid_parameter");
    }
    world.start("mailer", "a").await;
    world.start("mailer", "b").await;
    let page = world.get("/api/v1/pauses?limit=1").await.expect(200);
    let cursor = text(&page, "next_cursor");
    world.get(&format!("/api/v1/pauses?limit=1&status=all&cursor={cursor}")).await.refuses(400, "invalid_cursor");
    world.get(&format!("/api/v1/runs?cursor={cursor}")).await.refuses(400, "invalid_cursor");
    world.get("/api/v1/pauses?cursor=AAAA").await.refuses(400, "invalid_cursor");
}

#[tokio::test]
async fn the_inbox_is_followed_live_from_what_is_open_on() {
    let world = World::solo().await;
    let before = first_pause(&world.start("mailer", "a").await);
    let mut inbox = Reading::begin(world.request("GET", "/api/v1/pauses/stream")).await;
    let open = inbox.next().await.unwrap();
    assert_eq!((open.event.as_str(), text(&open.data, "id")), ("pause.opened", before.as_str()));
    assert_eq!(inbox.next().await.unwrap().event, "ready");
    let during = first_pause(&world.start("brief", "b").await);
    let opened = inbox.next().await.unwrap();
    assert_eq!((opened.event.as_str(), text(&opened.data, "id")), ("pause.opened", during.as_str()));
    assert_eq!(opened.data["args"], json!({"to": "b"}));
    world.decide(&before, json!({"decision": "deny", "message": "no"})).await.expect(200);
    let decided = inbox.next().await.unwrap();
    assert_eq!((decided.event.as_str(), &decided.data["decision"]["message"]), ("pause.decided", &json!("no")));
    world.clock.advance(Duration::from_secs(60));
    let expired = inbox.next().await.unwrap();
    assert_eq!((expired.event.as_str(), text(&expired.data, "id")), ("pause.expired", during.as_str()));
    assert_eq!(expired.data["status"], "expired");
}

#[tokio::test]
async fn an_agent_sees_its_own_pauses_only_listed_and_live() {
    let world = World::with_keys().await;
    let others = first_pause(&world.start_by("otto", "mailer", "a").await);
    let own = first_pause(&world.start_by("agnes", "mailer", "b").await);
    assert_eq!(ids(&world.get_by("agnes", "/api/v1/pauses").await.expect(200)), [own.as_str()]);
    assert_eq!(ids(&world.get_by("ana", "/api/v1/pauses").await.expect(200)).len(), 2);
    let mut inbox = Reading::begin(world.request_by("agnes", "GET", "/api/v1/pauses/stream")).await;
    assert_eq!(text(&inbox.next().await.unwrap().data, "id"), own);
    assert_eq!(inbox.next().await.unwrap().event, "ready");
    world.decide_by("ana", &others, json!({"decision": "deny"})).await.expect(200);
    world.decide_by("ana", &own, json!({"decision": "deny"})).await.expect(200);
    let seen = inbox.next().await.unwrap();
    assert_eq!((seen.event.as_str(), text(&seen.data, "id")), ("pause.decided", own.as_str()));
}

#[tokio::test]
async fn a_page_of_what_one_may_see_is_found_behind_what_one_may_not() {
    let world = World::with_keys().await;
    for input in ["a", "b", "c"] {
        world.start_by("otto", "mailer", input).await;
    }
    let own = first_pause(&world.start_by("agnes", "mailer", "d").await);
    let (mut found, mut path) = (Vec::new(), "/api/v1/pauses?limit=1".to_owned());
    loop {
        let page = world.get_by("agnes", &path).await.expect(200);
        found.extend(ids(&page));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/api/v1/pauses?limit=1&cursor={cursor}");
    }
    assert_eq!(found, [own]);
}

/// Makes the first entry of the first run unreadable.
const BREAK_THE_FIRST: &str = "UPDATE entry SET body = x'7b7d' WHERE n = (SELECT min(n) FROM entry)";

#[tokio::test]
async fn a_run_that_cannot_be_read_hides_no_other_pause() {
    let mut world = World::solo().await;
    let broken = world.start("mailer", "a").await;
    let whole = first_pause(&world.start("mailer", "b").await);
    let before = world.get("/api/v1/pauses").await.expect(200)["pauses"][0].clone();
    world.meddle(BREAK_THE_FIRST).await;
    let list = world.get("/api/v1/pauses").await.expect(200);
    assert_eq!(ids(&list), [first_pause(&broken), whole.clone()]);
    let shown = &list["pauses"][0];
    assert_eq!(
        (&shown["unreadable"], &shown["allowed_decisions"], &shown["args"]),
        (&json!(true), &json!([]), &json!(null))
    );
    for member in ["key", "kind", "status", "session_id", "run_id", "agent", "tool", "created_at", "expires_at"] {
        assert_eq!(shown[member], before[member], "{member}");
    }
    assert_eq!(list["pauses"][1].get("unreadable"), None);
    let mut inbox = Reading::begin(world.request("GET", "/api/v1/pauses/stream")).await;
    let (first, second) = (inbox.next().await.unwrap(), inbox.next().await.unwrap());
    assert_eq!((first.event.as_str(), &first.data), ("pause.opened", shown));
    assert_eq!(text(&second.data, "id"), whole);
    assert_eq!(inbox.next().await.unwrap().event, "ready");
    let path = format!("/api/v1/pauses/{}", first_pause(&broken));
    world.get(&path).await.refuses(500, "store_corrupt");
    world.decide(&first_pause(&broken), json!({"decision": "approve"})).await.refuses(500, "store_corrupt");
    assert!(world.effects.sent().is_empty());
    world.decide(&whole, json!({"decision": "deny"})).await.expect(200);
    assert_eq!(inbox.next().await.unwrap().event, "pause.decided");
}

#[tokio::test]
async fn a_run_that_cannot_be_read_is_nobodys_own() {
    let mut world = World::with_keys().await;
    let broken = world.start_by("agnes", "mailer", "a").await;
    let own = first_pause(&world.start_by("agnes", "mailer", "b").await);
    world.meddle(BREAK_THE_FIRST).await;
    assert_eq!(ids(&world.get_by("agnes", "/api/v1/pauses").await.expect(200)), [own.as_str()]);
    let seen = ids(&world.get_by("ana", "/api/v1/pauses").await.expect(200));
    assert_eq!(seen, [first_pause(&broken), own]);
}
