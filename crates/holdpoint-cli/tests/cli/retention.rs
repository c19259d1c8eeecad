//! Old sessions are removed, by the server and by hand; what is unfinished and the record of decisions stay.

use serde_json::{Value, json};

use crate::databases;
use crate::world::{Place, Server, complained, printed};

/// Makes everything in the file look so much older.
fn age(place: &Place, days: i64) {
    let connection = rusqlite::Connection::open(place.join("holdpoint.db")).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
    connection.execute("UPDATE entry SET at = at - ?1", [days * 24 * 3600 * 1000]).unwrap();
}

/// A server over a file with a session that is over and one that waits, both ten days old.
fn aged() -> (Place, Value, Value) {
    let place = databases::place();
    let server = place.serve(&[]);
    let (over, waits) = (databases::start(&server), databases::start(&server));
    let (status, told) = server.post(
        &format!("/api/v1/pauses/{}/decide", over["pauses"][0]["id"].as_str().unwrap()),
        &json!({"decision": "approve"}),
    );
    assert_eq!(status, 200, "{told}");
    server.until(&path(&over), |run| run["status"] == "done");
    assert_eq!(server.terminate().0, Some(0));
    age(&place, 10);
    (place, over, waits)
}

fn path(run: &Value) -> String {
    format!("/api/v1/runs/{}", run["run_id"].as_str().unwrap())
}

/// The session that was over is gone, and nothing else is.
fn check(server: &Server, over: &Value, waits: &Value) {
    assert_eq!(server.get(&path(over)).0, 404);
    let (_, still) = server.get(&path(waits));
    assert_eq!((&still["status"], &still["pauses"][0]["id"]), (&json!("paused"), &waits["pauses"][0]["id"]));
    let (_, record) = server.get("/api/v1/audit/verify");
    assert_eq!((&record["is_whole"], record["records"].as_u64() > Some(0)), (&json!(true), true), "{record}");
}

#[test]
fn the_server_removes_sessions_that_are_older_than_it_is_told_to_keep() {
    let (place, over, waits) = aged();
    // Those that are younger stay.
    let server = place.serve(&["--retention-days", "11", "--retention-sweep-seconds", "1", "--log", "debug"]);
    place.await_log("looked for old sessions");
    assert_eq!(server.get(&path(&over)).0, 200);
    assert_eq!(server.terminate().0, Some(0));

    let server = place.serve(&["--retention-days", "9", "--retention-sweep-seconds", "1"]);
    place.await_log("old sessions were removed");
    check(&server, &over, &waits);
    let (status, told) = server.post(
        &format!("/api/v1/pauses/{}/decide", waits["pauses"][0]["id"].as_str().unwrap()),
        &json!({"decision": "approve"}),
    );
    assert_eq!(status, 200, "what waits is decided as ever: {told}");
    server.until(&path(&waits), |run| run["status"] == "done");
}

#[test]
fn old_sessions_are_removed_by_hand_after_a_look_beside_a_server() {
    let (place, over, waits) = aged();
    let prune = |more: &[&str]| {
        let arguments: Vec<&str> = ["sessions", "prune", "--older-than"].iter().chain(more).copied().collect();
        place.run(&arguments)
    };
    let server = place.serve(&[]);
    let looked = prune(&["9d", "--dry-run"]);
    assert!(printed(&looked).starts_with("1 session would be removed"), "{}", printed(&looked));
    assert_eq!(server.get(&path(&over)).0, 200, "it was only a look");
    let none = prune(&["11d"]);
    assert!(printed(&none).starts_with("0 sessions removed"), "{}", printed(&none));
    assert_eq!(server.get(&path(&over)).0, 200);
    let pruned = prune(&["216h"]);
    assert!(printed(&pruned).starts_with("1 session removed"), "{}{}", printed(&pruned), complained(&pruned));
    check(&server, &over, &waits);
    for wrong in ["9", "d", "0d", "-1d", "1y"] {
        assert_eq!(prune(&[wrong]).status.code(), Some(2), "{wrong}");
    }
}
