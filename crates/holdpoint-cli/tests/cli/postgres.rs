//! The program over PostgreSQL.

use holdpoint_testkit::servers::OwnServer;

use crate::databases;

fn database() -> OwnServer {
    OwnServer::postgres().unwrap_or_else(|why| panic!("{why}"))
}

/// Lets the database's own client say something.
fn psql(address: &str, sql: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(address, tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(sql).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
    });
}

#[test]
fn a_pause_survives_a_kill_and_a_database_that_restarts() {
    let database = database();
    databases::a_kill_loses_nothing(&database, "postgres");
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
    databases::a_database_that_is_not_there_is_a_plain_error("postgres");
    let database = database();

    // Looking leaves nothing behind.
    let (is_fine, told) = databases::doctor(database.address(), &[]);
    assert!(is_fine && told.contains("nothing is in it yet") && told.contains("survives a crash"), "{told}");
    let wrong = database.address().replacen("holdpoint:", "holdpoint:not", 1);
    let told = databases::refusal(&wrong);
    assert!(told.contains("password authentication failed") && !told.contains(&password(&wrong)), "{told}");

    let place = databases::place();
    let server = place.serve_with(&[], &[("HOLDPOINT_STORE", database.address())]);
    assert_eq!(server.terminate().0, Some(0));
    let (is_fine, told) = databases::doctor(database.address(), &[]);
    assert!(is_fine && told.contains("it can be read; 0 pauses wait"), "{told}");
    psql(database.address(), "INSERT INTO holdpoint_migration (number, sha256) VALUES (9999, '\\x00')");
    let told = databases::refusal(database.address());
    for part in ["it was written by a newer version", "use the version of holdpoint that wrote it", "9999"] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    let (is_fine, told) = databases::doctor(database.address(), &[]);
    assert!(!is_fine && told.contains("newer version"), "{told}");
}

fn password(address: &str) -> String {
    address.rsplit_once('@').unwrap().0.rsplit(':').next().unwrap().to_owned()
}
