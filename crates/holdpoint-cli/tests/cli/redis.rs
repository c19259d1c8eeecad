//! The program over Redis.

use holdpoint_testkit::servers::OwnServer;

use crate::databases;

fn database() -> OwnServer {
    OwnServer::redis().unwrap_or_else(|why| panic!("{why}"))
}

/// Lets the database be told something.
fn tell(database: &OwnServer, words: &[&str]) {
    let mut connection = redis::Client::open(database.address()).unwrap().get_connection().unwrap();
    let mut command = redis::cmd(words[0]);
    words[1..].iter().for_each(|word| {
        command.arg(word);
    });
    command.query::<redis::Value>(&mut connection).unwrap();
}

#[test]
fn a_pause_survives_a_kill_and_a_database_that_restarts() {
    let database = database();
    databases::a_kill_loses_nothing(&database, "redis");
    databases::a_database_that_restarts_loses_nothing(database);
}

#[test]
fn two_instances_share_a_database_and_are_replaced_one_by_one_under_load() {
    let database = database();
    databases::a_pause_of_one_instance_is_decided_at_another(&database);
    databases::a_rolling_restart_loses_nothing(&database);
}

#[test]
fn a_database_that_cannot_be_used_is_refused_with_what_to_do() {
    databases::a_database_that_is_not_there_is_a_plain_error("redis");
    let database = database();
    let (is_fine, told) = databases::doctor(database.address(), &[]);
    assert!(is_fine && told.contains("nothing is in it yet") && told.contains("survives a crash"), "{told}");

    tell(&database, &["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let told = databases::refusal(database.address());
    assert!(told.contains("allkeys-lru") && told.contains("set `maxmemory-policy noeviction`"), "{told}");
    let (is_fine, told) = databases::doctor(database.address(), &[]);
    assert!(!is_fine && told.contains("noeviction"), "{told}");
    tell(&database, &["CONFIG", "SET", "maxmemory-policy", "noeviction"]);

    tell(&database, &["SET", "{holdpoint}:format", "99"]);
    let told = databases::refusal(database.address());
    for part in ["it was written by a newer version", "use the version of holdpoint that wrote it", "99"] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    let (is_fine, told) = databases::doctor(database.address(), &[]);
    assert!(!is_fine && told.contains("newer version"), "{told}");
}

#[test]
fn a_redis_that_flushes_later_is_used_without_the_label_and_says_so_everywhere() {
    let database = database();
    tell(&database, &["CONFIG", "SET", "appendfsync", "everysec"]);
    let (is_fine, told) = databases::doctor(database.address(), &[]);
    assert!(is_fine && told.contains("may be lost in a crash") && told.contains("`appendfsync always`"), "{told}");
    let place = databases::place();
    let server = place.serve_with(&[], &[("HOLDPOINT_STORE", database.address())]);
    let (_, ready) = server.get("/readyz");
    assert_eq!(ready["store"]["survives_crash"], false, "{ready}");
    assert!(ready["store"]["settings"].as_str().unwrap().contains("appendfsync=everysec"), "{ready}");
    let (_, greeting) = server.terminate();
    assert!(greeting.contains("what it acknowledged last may be lost in a crash"), "{greeting}");
    assert!(place.log().contains("appendfsync always"), "{}", place.log());
}
