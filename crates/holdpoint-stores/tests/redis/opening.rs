//! Opening a database: what cannot be used is refused and left as it was.

use holdpoint_runtime::ports::store::{Append, PauseFilter, PauseRow, PauseStatus, Store, StoreFault, StoreFaultKind};
use holdpoint_stores::redis::RedisStore;
use holdpoint_testkit::conformance::{Trial, UnderTest, sample};

use crate::database::{Database, options};

async fn refused(address: &str, prefix: &str) -> StoreFault {
    RedisStore::open_with(address, options(prefix)).await.err().expect("it is refused")
}

fn why(fault: &StoreFault) -> String {
    format!("{fault}: {}", fault.source.as_ref().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_a_newer_version_is_refused_and_left_as_it_was() {
    let database = Database::new().await;
    database.store().await;
    redis::cmd("SET").arg(database.key("format")).arg(3).query::<()>(&mut database.connect()).unwrap();
    let fault = refused(database.address(), &database.prefix).await;
    assert_eq!(fault.kind, StoreFaultKind::Newer);
    assert!(why(&fault).ends_with("the database has format 3, this program knows 2"), "{}", why(&fault));
    let format: String = redis::cmd("GET").arg(database.key("format")).query(&mut database.connect()).unwrap();
    assert_eq!(format, "3");
    redis::cmd("SET").arg(database.key("format")).arg("odd").query::<()>(&mut database.connect()).unwrap();
    assert_eq!(refused(database.address(), &database.prefix).await.kind, StoreFaultKind::Corrupt);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_the_first_format_is_brought_to_this_one_and_its_pauses_stand_as_they_did() {
    let database = Database::new().await;
    let trial = Trial::new(async |clock| UnderTest::new(database.open(clock).await)).await;
    let (open, decided) = (trial.run(1, "s"), trial.run(2, "t"));
    trial.begin_paused(&open, 1).await;
    trial.begin_paused(&decided, 1).await;
    let row = PauseRow { status: PauseStatus::Decided, ..trial.pause(&decided, 1) };
    trial.ok(Append { pauses: vec![row], ..trial.append(&decided, 1, [sample::decided(1)]) }).await;
    // As the first format had it: the record says so too, and there is a list.
    let (name, mut connection) = (format!("{}:0000000001", decided.id.uuid().simple()), database.connect());
    let record: String = redis::cmd("HGET").arg(database.key("pauses")).arg(&name).query(&mut connection).unwrap();
    let object = serde_json::from_str::<[serde_json::Value; 8]>(&record).unwrap();
    let [session, kind, _, agent, tool, opened_at, expires_at, group] = object;
    let object = serde_json::json!({"session": session, "kind": kind, "status": 1, "agent": agent, "tool": tool,
        "opened_at": opened_at, "expires_at": expires_at, "group": group});
    let decided_list = database.key("pause-order-of:1");
    redis::cmd("HSET").arg(database.key("pauses")).arg(&name).arg(object.to_string()).exec(&mut connection).unwrap();
    redis::cmd("ZADD").arg(&decided_list).arg(opened_at.to_string()).arg(&name).exec(&mut connection).unwrap();
    redis::cmd("SET").arg(database.key("format")).arg(1).exec(&mut connection).unwrap();

    let (one, other) = tokio::join!(database.store(), database.store());
    for store in [one, other] {
        let all = PauseFilter { status: None, ..PauseFilter::open() };
        let listed = store.list_pauses(&all).await.unwrap();
        let standing: Vec<_> = listed.iter().map(|row| (row.id.run, row.status)).collect();
        assert_eq!(standing, [(open.id, PauseStatus::Open), (decided.id, PauseStatus::Decided)]);
    }
    let format: String = redis::cmd("GET").arg(database.key("format")).query(&mut connection).unwrap();
    let is_there: bool = redis::cmd("EXISTS").arg(&decided_list).query(&mut connection).unwrap();
    assert_eq!((format.as_str(), is_there), ("2", false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_there_is_an_error_at_the_start_that_shows_no_password() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fault = refused(&format!("redis://:geheim@{nobody}/"), "x").await;
    assert_eq!(fault.kind, StoreFaultKind::Unavailable);
    assert!(why(&fault).contains("onnection refused"), "{}", why(&fault));
    assert!(!format!("{fault:?} {}", why(&fault)).contains("geheim"));
    let fault = refused("no address with geheim", "x").await;
    assert!(!format!("{fault:?} {}", why(&fault)).contains("geheim"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_says_how_much_it_promises() {
    let durability = Database::new().await.store().await.durability();
    assert_eq!((durability.store, durability.survives_crash, durability.is_shared), ("redis", true, true));
    for setting in ["appendonly=yes", "appendfsync=always", "maxmemory-policy=noeviction", "a fail-over may lose"] {
        assert!(durability.settings.contains(setting), "{}", durability.settings);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_with_different_prefixes_share_a_database_and_nothing_else() {
    let (one, two) = (Database::new().await, Database::new().await);
    let (first, second) = (one.store().await, two.store().await);
    let trial = Trial::new(async |clock| UnderTest::new(holdpoint_runtime::memory::MemoryStore::new(clock))).await;
    let run = trial.run(1, "s");
    first.append(trial.first(&run)).await.unwrap();
    assert!(second.load(run.id, 0).await.unwrap().is_none());
    assert_eq!(second.claimable(9).await.unwrap(), []);
    assert_eq!(second.append(trial.first(&run)).await.unwrap().seq, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_cannot_be_read_are_a_corrupt_store() {
    let database = Database::new().await;
    let trial = Trial::new(async |clock| UnderTest::new(database.open(clock).await)).await;
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    trial.ok(trial.append(&run, 1, [sample::said("x")])).await;
    let name = run.id.uuid().simple().to_string();
    let mut connection = database.connect();
    let journal = database.key(&format!("journal:{name}"));
    let load = async || trial.store.load(run.id, 0).await.unwrap_err().kind;
    redis::cmd("HSET").arg(&journal).arg(2).arg("1 2 3 4 t\nnot a record").query::<()>(&mut connection).unwrap();
    assert_eq!(load().await, StoreFaultKind::Corrupt);
    redis::cmd("HSET").arg(&journal).arg(2).arg("not an entry").query::<()>(&mut connection).unwrap();
    assert_eq!(load().await, StoreFaultKind::Corrupt);
    redis::cmd("HDEL").arg(&journal).arg(2).query::<()>(&mut connection).unwrap();
    assert_eq!(load().await, StoreFaultKind::Corrupt);
    redis::cmd("HSET").arg(database.key("runs")).arg(&name).arg("{}").query::<()>(&mut connection).unwrap();
    assert_eq!(load().await, StoreFaultKind::Corrupt);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stores_clock_is_the_databases() {
    let database = Database::new().await;
    let store = database.store().await;
    let mut connection = database.connect();
    let mut time = || -> i64 {
        let (seconds, micros): (i64, i64) = redis::cmd("TIME").query(&mut connection).unwrap();
        seconds * 1_000 + micros / 1_000
    };
    for _ in 0..50 {
        let (before, now, after) = (time(), store.now().as_millis(), time());
        assert!(now <= after, "it is {after} and the store says {now}");
        assert!(now + 1_000 >= before, "it is {before} and the store says {now}");
    }
}
