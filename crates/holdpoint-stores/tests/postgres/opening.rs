//! Opening a database: the schema is brought up to date once, and what cannot be used is refused and left as it was.

use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::ids::RunId;
use holdpoint_core::json::Digest;
use holdpoint_runtime::ports::store::{NoticeFilter, Store, StoreFault, StoreFaultKind};
use holdpoint_stores::postgres::{PostgresOptions, PostgresStore};
use holdpoint_testkit::conformance::sample;

use crate::database::Database;

async fn refused(address: &str) -> StoreFault {
    let mut options = PostgresOptions::default();
    options.patience = Duration::from_millis(500);
    PostgresStore::open_with(address, options).await.err().expect("it is refused")
}

fn why(fault: &StoreFault) -> String {
    format!("{fault}: {}", fault.source.as_ref().unwrap())
}

async fn tables(database: &Database) -> Vec<String> {
    let sql = "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1";
    database.connect().await.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_that_start_at_once_one_makes_the_tables() {
    let database = Arc::new(Database::new().await);
    let starts: Vec<_> = (0..8)
        .map(|_| {
            let database = Arc::clone(&database);
            tokio::spawn(async move { PostgresStore::open(&database.address).await.map(drop) })
        })
        .collect();
    for start in starts {
        start.await.unwrap().unwrap();
    }
    let client = database.connect().await;
    let notes = client.query("SELECT number FROM holdpoint_migration ORDER BY number", &[]).await.unwrap();
    let numbers: Vec<i64> = notes.iter().map(|row| row.get(0)).collect();
    assert!(numbers.len() > 1 && numbers.iter().copied().eq(1..=numbers.len() as i64), "{numbers:?}");
    assert_eq!(tables(&database).await.len(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_a_newer_version_is_refused_and_left_as_it_was() {
    let database = Database::new().await;
    PostgresStore::open(&database.address).await.unwrap();
    let client = database.connect().await;
    client.execute("INSERT INTO holdpoint_migration (number, sha256) VALUES (1000, 'x')", &[]).await.unwrap();
    let before = tables(&database).await;
    let fault = refused(&database.address).await;
    assert_eq!(fault.kind, StoreFaultKind::Newer);
    assert!(why(&fault).contains("the database has migration 1000, this program knows "), "{}", why(&fault));
    assert_eq!(tables(&database).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_the_first_version_is_brought_up_to_date() {
    let database = Database::new().await;
    let first = include_str!("../../src/postgres/migrations/0001_runs.sql");
    let client = database.connect().await;
    let notes = "CREATE TABLE holdpoint_migration (number BIGINT PRIMARY KEY, sha256 BYTEA NOT NULL,
                                                   applied_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp())";
    client.batch_execute(notes).await.unwrap();
    client.batch_execute(first).await.unwrap();
    let sha256 = Digest::of(first.as_bytes());
    let note = "INSERT INTO holdpoint_migration (number, sha256) VALUES (1, $1)";
    client.execute(note, &[&sha256.as_bytes().as_slice()]).await.unwrap();
    let store = PostgresStore::open(&database.address).await.unwrap();
    assert_eq!(store.list_notices(&NoticeFilter::default()).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_went_another_way_is_refused() {
    let database = Database::new().await;
    PostgresStore::open(&database.address).await.unwrap();
    database.connect().await.execute("UPDATE holdpoint_migration SET sha256 = 'x'", &[]).await.unwrap();
    let fault = refused(&database.address).await;
    assert_eq!(fault.kind, StoreFaultKind::Corrupt);
    assert!(why(&fault).contains("migration 1 of the database is not the one"), "{}", why(&fault));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_another_program_are_refused_and_left_as_they_were() {
    let database = Database::new().await;
    database.connect().await.batch_execute("CREATE TABLE session (id INT)").await.unwrap();
    let fault = refused(&database.address).await;
    assert_eq!(fault.kind, StoreFaultKind::Corrupt);
    assert!(why(&fault).contains("a table named session that is not ours"), "{}", why(&fault));
    assert_eq!(tables(&database).await, ["session"]);
    // Others beside ours do no harm.
    let database = Database::new().await;
    database.connect().await.batch_execute("CREATE TABLE customer (id INT)").await.unwrap();
    PostgresStore::open(&database.address).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_that_is_not_there_is_refused() {
    let database = Database::new().await;
    let fault = refused(&format!("{}_gone", database.address)).await;
    assert_eq!(fault.kind, StoreFaultKind::Unavailable);
    assert!(why(&fault).contains("no schema of the search path"), "{}", why(&fault));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_there_is_an_error_at_the_start_that_shows_no_password() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fault = refused(&format!("postgres://ana:geheim@{nobody}/x?sslmode=disable")).await;
    assert_eq!(fault.kind, StoreFaultKind::Unavailable);
    assert!(why(&fault).contains("onnection refused"), "{}", why(&fault));
    assert!(!format!("{fault:?} {}", why(&fault)).contains("geheim"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_never_answers_is_not_waited_for_for_ever() {
    // It accepts, by the kernel's queue, and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let fault = refused(&format!("postgres://ana@{}/x?sslmode=disable", silent.local_addr().unwrap())).await;
    assert_eq!(fault.kind, StoreFaultKind::Unavailable);
    assert!(why(&fault).contains("in time"), "{}", why(&fault));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_and_a_wrong_database_are_told() {
    let database = Database::new().await;
    let config: tokio_postgres::Config = database.address.parse().unwrap();
    let password = String::from_utf8(config.get_password().unwrap().to_vec()).unwrap();
    let fault = refused(&database.address.replace(&password, "wrong")).await;
    assert!(why(&fault).contains("password authentication failed"), "{}", why(&fault));
    let fault = refused(&database.address.replace("/postgres?", "/nowhere?")).await;
    assert!(why(&fault).contains("database \"nowhere\" does not exist"), "{}", why(&fault));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_tls_is_refused_where_tls_must_be() {
    let database = Database::new().await;
    let fault = refused(&database.address.replace("sslmode=disable", "sslmode=require")).await;
    assert!(why(&fault).contains("TLS"), "{}", why(&fault));
    // Where it is only preferred, none is found and none is used.
    PostgresStore::open(&database.address.replace("sslmode=disable", "sslmode=prefer")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_acknowledged_is_flushed_whatever_the_database_is_set_to() {
    let database = Database::new().await;
    let careless = format!("{}%20-csynchronous_commit%3Doff", database.address);
    let store = PostgresStore::open(&careless).await.unwrap();
    let durability = store.durability();
    assert_eq!((durability.store, durability.survives_crash, durability.is_shared), ("postgres", true, true));
    assert!(durability.settings.contains("fsync=on"), "{}", durability.settings);
    assert!(durability.settings.contains("synchronous_commit=on"), "{}", durability.settings);
    assert!(durability.settings.starts_with("PostgreSQL 1"), "{}", durability.settings);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stores_clock_is_the_databases() {
    let database = Database::new().await;
    let store = PostgresStore::open(&database.address).await.unwrap();
    let client = database.connect().await;
    let sql = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    for _ in 0..50 {
        let before: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
        let now = store.now().as_millis();
        let after: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
        assert!(now <= after, "it is {after} and the store says {now}");
        // How far it is behind is at most how long the first look took.
        assert!(now + 1_000 >= before, "it is {before} and the store says {now}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_cannot_be_read_are_a_corrupt_store() {
    let database = Database::new().await;
    let trial = holdpoint_testkit::conformance::Trial::new(async |clock| {
        let store = PostgresStore::open(&database.address).await.unwrap().going_by(clock);
        holdpoint_testkit::conformance::UnderTest::new(store)
    })
    .await;
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    trial.ok(trial.append(&run, 1, [sample::said("x")])).await;
    let client = database.connect().await;
    let load = async |id: RunId| trial.store.load(id, 0).await.unwrap_err().kind;
    client.execute("UPDATE entry SET body = 'not a record' WHERE revision = 2", &[]).await.unwrap();
    assert_eq!(load(run.id).await, StoreFaultKind::Corrupt);
    client.execute("DELETE FROM entry WHERE revision = 2", &[]).await.unwrap();
    assert_eq!(load(run.id).await, StoreFaultKind::Corrupt);
    client.execute("UPDATE run SET epoch = -1", &[]).await.unwrap();
    assert_eq!(load(run.id).await, StoreFaultKind::Corrupt);
    client.execute("UPDATE run SET status = 9", &[]).await.unwrap();
    assert_eq!(trial.store.session_runs(&run.session, 9).await.unwrap_err().kind, StoreFaultKind::Corrupt);
}
