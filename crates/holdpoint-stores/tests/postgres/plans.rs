//! What is read to answer: with very many rows in the tables, not more than what is asked for. Counted by the server
//! itself, in rows, whatever the time that it takes.

use std::time::{Duration, Instant};

use holdpoint_runtime::memory::MemoryStore;
use holdpoint_runtime::ports::store::{Append, PauseCursor, PauseFilter, PauseStatus, Store};
use holdpoint_stores::postgres::PostgresStore;
use holdpoint_testkit::conformance::{Trial, UnderTest, sample};
use tokio_postgres::Client;

use crate::database::Database;

/// How many paused runs there are; one in a hundred, those that opened last, is of another agent and tool.
const RUNS: i64 = 20_000;

/// How many rows and entries of indexes may be read for a page of a hundred, or for a single run: a page is looked up in a
/// few indexes, and the server looks at their ends when it plans.
const READ_MAX: i64 = 2_000;

/// Fills the tables as if so many runs had paused.
const FILL: &str = "
    INSERT INTO session (name, began_by, created_at, last_at, runs, events, pause_groups)
    SELECT 'many-' || n, 'ana', n, n, 1, 1, 1 FROM generate_series(1, 20000) AS n;
    INSERT INTO run (id, session, agent, first_seq, revision, status, started_at, last_at, epoch, since)
    SELECT lpad(to_hex(n), 32, '0')::uuid, key, CASE WHEN n > 19800 THEN 'rare' ELSE 'common' END, 1, 1, 1, n, n, 0, n
    FROM generate_series(1, 20000) AS n JOIN session ON name = 'many-' || n;
    INSERT INTO entry (session, last_seq, run, revision, pause_groups, at, token, body)
    SELECT session, 1, id, 1, 1, started_at, id, 'x' FROM run;
    INSERT INTO pause (run, number, session, kind, status, agent, tool, opened_at, expires_at, pause_group)
    SELECT id, 1, session, 0, 0, agent, agent || '_tool', started_at, 9000000000000 + started_at, 1 FROM run;
    ANALYZE";

struct Crowd {
    database: Database,
    client: Client,
}

impl Crowd {
    async fn new() -> Self {
        let database = Database::new().await;
        PostgresStore::open(&database.address).await.unwrap();
        let crowd = Self { client: database.connect().await, database };
        // A connection tells what it read when it ends, at the latest: what filling read is told before anything is counted.
        let filling = crowd.database.connect().await;
        let process: i32 = filling.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        filling.batch_execute(FILL).await.unwrap();
        drop(filling);
        let gone = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1";
        let began = Instant::now();
        while crowd.client.query_one(gone, &[&process]).await.unwrap().get::<_, i64>(0) > 0 || crowd.read().await < RUNS
        {
            assert!(began.elapsed() < Duration::from_secs(60), "the connection that filled the tables does not end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        crowd
    }

    /// How many rows and entries of indexes the server has read in this schema.
    async fn read(&self) -> i64 {
        let sql = "SELECT ((SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables
                            WHERE schemaname = current_schema())
                         + (SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes
                            WHERE schemaname = current_schema()))::bigint";
        self.client.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// Does something with a store of its own, and checks how much was read for it: something, and not too much.
    async fn check<T>(&self, what: &str, least: i64, doing: impl AsyncFnOnce(&PostgresStore) -> T) -> T {
        let name = format!("plans-{}", uuid::Uuid::now_v7().simple());
        let address = format!("{}&application_name={name}", self.database.address);
        let before = self.read().await;
        let store = PostgresStore::open(&address).await.unwrap();
        let done = doing(&store).await;
        drop(store);
        let gone = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";
        let began = Instant::now();
        loop {
            let open: i64 = self.client.query_one(gone, &[&name]).await.unwrap().get(0);
            let read = self.read().await - before;
            if open == 0 && read >= least {
                assert!(read <= READ_MAX, "{what}: {read} rows were read");
                return done;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{what}: only {read} rows, {open} connections are open");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn open() -> PauseFilter {
    PauseFilter { limit: 100, ..PauseFilter::open() }
}

fn of_agent(name: &str) -> PauseFilter {
    PauseFilter { agent: Some(name.parse().unwrap()), ..open() }
}

fn of_tool(name: &str) -> PauseFilter {
    PauseFilter { tool: Some(name.parse().unwrap()), ..open() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_the_inbox_reads_what_it_shows_and_not_what_it_passes_over() {
    let crowd = Crowd::new().await;
    let page = async |filter: &PauseFilter, least: i64| {
        crowd.check(&format!("{filter:?}"), least, async |store| store.list_pauses(filter).await.unwrap()).await
    };
    let first = page(&open(), 100).await;
    assert_eq!(first.len(), 100);
    // Deep in the list: the place after the 15,000th.
    let run = holdpoint_core::ids::RunId::new(uuid::Uuid::from_u128(15_000));
    let opened_at = holdpoint_core::time::Timestamp::from_millis(15_000);
    let after = Some(PauseCursor { opened_at, id: holdpoint_core::ids::PauseId { run, number: 1 } });
    let deep = page(&PauseFilter { after, ..open() }, 100).await;
    assert_eq!((deep.len(), deep[0].opened_at.as_millis()), (100, 15_001));
    for filter in [of_agent("common"), of_tool("common_tool"), PauseFilter { after, ..of_agent("common") }] {
        assert_eq!(page(&filter, 100).await.len(), 100);
    }
    for filter in
        [of_agent("rare"), of_tool("rare_tool"), PauseFilter { tool: of_tool("rare_tool").tool, ..of_agent("rare") }]
    {
        let rows = page(&filter, 100).await;
        assert_eq!((rows.len(), rows[0].opened_at.as_millis()), (100, 19_801));
    }
    assert_eq!(page(&PauseFilter { status: None, after, ..open() }, 100).await.len(), 100);
    let session = PauseFilter { session: Some("many-77".parse().unwrap()), ..open() };
    assert_eq!(page(&session, 1).await.len(), 1);
    assert_eq!(page(&PauseFilter { status: Some(PauseStatus::Decided), ..open() }, 0).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_worker_looks_for_is_found_among_many_that_wait() {
    let crowd = Crowd::new().await;
    let look = async |store: &PostgresStore| {
        (
            store.claimable(100).await.unwrap().len(),
            store.due_pauses(100).await.unwrap().len(),
            store.next_deadline().await.unwrap().map(|at| at.as_millis()),
        )
    };
    assert_eq!(crowd.check("a sweep", 1, look).await, (0, 0, Some(9_000_000_000_001)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_and_loads_touch_their_own_runs_among_many() {
    let crowd = Crowd::new().await;
    let trial = Trial::new(async |clock| UnderTest::new(MemoryStore::new(clock))).await;
    let runs: Vec<_> = (1..=8).map(|number| trial.run(number, &format!("s{number}"))).collect();
    crowd
        .check("eight runs begin", 1, async |store| {
            for run in &runs {
                store.append(trial.first(run)).await.unwrap();
            }
        })
        .await;
    crowd
        .check("eight runs go on together and are read", 8, async |store| {
            let appends = runs.iter().map(|run| {
                let (pauses, audit) = (vec![trial.pause(run, 1)], vec![sample::note(&run.session, run.id)]);
                let append = trial.append(run, 1, [sample::said("more"), sample::opened(1, None)]);
                store.append(Append { pauses, audit, ..append })
            });
            for appended in futures_util::future::join_all(appends).await {
                assert_eq!(appended.unwrap().revision, 2);
            }
            let loaded = futures_util::future::join_all(runs.iter().map(|run| store.load(run.id, 0))).await;
            assert!(loaded.into_iter().all(|loaded| loaded.unwrap().unwrap().entries.len() == 2));
        })
        .await;
    assert_eq!(RUNS, 20_000, "the text that fills the tables has the same number");
}
