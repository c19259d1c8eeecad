//! How fast the SQLite store appends and how much room a paused run takes, beside a bare loop that writes the same
//! bytes in as many commits. Run with `cargo run --release -p holdpoint-stores --example sqlite_bench`.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_core::record;
use holdpoint_runtime::ports::clock::{Clock, SystemClock};
use holdpoint_runtime::ports::ids::{Ids, TimeOrderedIds};
use holdpoint_runtime::ports::store::{Append, LeaseChange, PauseRow, PauseStatus, RunStatus, Store};
use holdpoint_stores::sqlite::SqliteStore;
use holdpoint_testkit::conformance::sample;
use rusqlite::Connection;

const CYCLES: usize = 16_000;
const PAUSED_RUNS: usize = 10_000;

#[tokio::main]
async fn main() {
    let only = std::env::args().nth(1);
    let wants = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if wants("size") {
        measure_size().await;
    }
    for concurrent in [1, 64] {
        if wants(&concurrent.to_string()) {
            measure_speed(concurrent).await;
        }
    }
}

/// The four appends of a cycle: begin, hold a call, decide, finish.
fn cycle(now: holdpoint_core::time::Timestamp) -> [Append; 4] {
    let run = TimeOrderedIds.new_run();
    let session = sample::session(&format!("session-{run}"));
    let agent = sample::agent("Support");
    let base = |expected, events: Vec<_>, status, lease| Append {
        run,
        expected,
        session: session.clone(),
        agent: agent.clone(),
        at: now,
        events: events.into(),
        status,
        lease,
        pauses: Vec::new(),
        rules: Vec::new(),
        definitions: Vec::new(),
        audit: Vec::new(),
        notices: Vec::new(),
        only_owner: false,
    };
    let pause = |status| PauseRow {
        id: holdpoint_core::ids::PauseId { run, number: 1 },
        kind: holdpoint_core::pause::PauseKind::Approval,
        status,
        session: session.clone(),
        agent: agent.clone(),
        tool: Some(sample::tool("send_email")),
        opened_at: now,
        expires_at: Some(now.after(Duration::from_secs(86_400))),
        group: 0,
    };
    let take = || LeaseChange::Take { owner: "worker-1234-5678".to_owned(), duration: Duration::from_secs(30) };
    let arguments = sample::json(&format!(r#"{{"body":"{}","to":"ana@example.com"}}"#, "x".repeat(168)));
    let opened = sample::opened(1, Some(now.after(Duration::from_secs(86_400))));
    [
        base(0, vec![sample::started(&session, &agent)], RunStatus::Working, take()),
        Append {
            pauses: vec![pause(PauseStatus::Open)],
            ..base(1, vec![sample::replied(arguments), opened], RunStatus::Waiting, LeaseChange::Release { epoch: 1 })
        },
        Append {
            pauses: vec![pause(PauseStatus::Decided)],
            ..base(2, vec![sample::decided(1)], RunStatus::Working, take())
        },
        base(3, vec![sample::finished()], RunStatus::Finished, LeaseChange::Release { epoch: 2 }),
    ]
}

async fn measure_speed(concurrent: usize) {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let path = folder.path().join("holdpoint.db");
    let store = Arc::new(SqliteStore::open(&path, SystemClock::shared()).expect("a store"));
    let cycles = if concurrent == 1 { CYCLES / 10 } else { CYCLES };
    let sizes: Vec<usize> =
        cycle(SystemClock.now()).iter().map(|append| record::encode(&append.events).len()).collect();

    let begin = Instant::now();
    let workers: Vec<_> = (0..concurrent)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for _ in 0..cycles / concurrent {
                    for append in cycle(store.now()) {
                        store.append(append).await.expect("an append");
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.expect("a worker");
    }
    let took = begin.elapsed();
    let writer_cpu = cpu_of_thread("holdpoint-sqlit");
    let counts = store.counts();
    let appends = (cycles / concurrent * concurrent * 4) as u64;
    report(&format!("store, {concurrent} at once"), appends, counts.commits, took, writer_cpu);
    drop(store);

    let per_commit = (appends as f64 / counts.commits as f64).round() as usize;
    let path = folder.path().join("bare.db");
    let begin = Instant::now();
    let bare = std::thread::Builder::new().name("bare".to_owned()).spawn(move || {
        let commits = bare_loop(&path, &sizes, appends as usize, per_commit.max(1));
        (commits, cpu_of_thread("bare"))
    });
    let (commits, cpu) = bare.expect("a thread").join().expect("the bare loop");
    report(&format!("bare loop, {per_commit} per commit"), appends, commits, begin.elapsed(), cpu);
    println!();
}

/// Writes as many bytes in as many commits, with nothing around them.
fn bare_loop(path: &Path, sizes: &[usize], appends: usize, per_commit: usize) -> u64 {
    let connection = Connection::open(path).expect("a file");
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).expect("wal");
    connection.pragma_update(None, "synchronous", "full").expect("full");
    connection.execute_batch("CREATE TABLE entry (key INTEGER PRIMARY KEY, body BLOB NOT NULL)").expect("a table");
    let bodies: Vec<Vec<u8>> = sizes.iter().map(|size| vec![b'x'; *size]).collect();
    let mut insert = connection.prepare("INSERT INTO entry (body) VALUES (?1)").expect("a statement");
    let mut commits = 0;
    let mut written = 0;
    while written < appends {
        connection.execute_batch("BEGIN IMMEDIATE").expect("begin");
        for _ in 0..per_commit.min(appends - written) {
            insert.execute([&bodies[written % bodies.len()]]).expect("insert");
            written += 1;
        }
        connection.execute_batch("COMMIT").expect("commit");
        commits += 1;
    }
    commits
}

fn report(what: &str, appends: u64, commits: u64, took: Duration, cpu: Option<Duration>) {
    let per_second = appends as f64 / took.as_secs_f64();
    let cpu = cpu.map_or(f64::NAN, |cpu| cpu.as_secs_f64() * 1e6 / appends as f64);
    println!("{what:<28} {per_second:>9.0} appends/s  {commits:>6} commits  {cpu:>5.1} us of the writer's CPU each");
}

/// What the thread of this name has used so far, which says more than the clock does on a machine that is shared.
fn cpu_of_thread(name: &str) -> Option<Duration> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?.filter_map(Result::ok).map(|task| task.path());
    let is_named = |task: &std::path::PathBuf| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    };
    let task = tasks.filter(is_named).last()?;
    let used = std::fs::read_to_string(task.join("schedstat")).ok()?;
    Some(Duration::from_nanos(used.split_whitespace().next()?.parse().ok()?))
}

async fn measure_size() {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let path = folder.path().join("holdpoint.db");
    let store = Arc::new(SqliteStore::open(&path, SystemClock::shared()).expect("a store"));
    let workers: Vec<_> = (0..64)
        .map(|worker| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for _ in (worker..PAUSED_RUNS).step_by(64) {
                    for append in cycle(store.now()).into_iter().take(2) {
                        store.append(append).await.expect("an append");
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.expect("a worker");
    }
    drop(store);
    let bodies: usize =
        cycle(SystemClock.now()).iter().take(2).map(|append| record::encode(&append.events).len()).sum();
    let file = std::fs::metadata(&path).expect("the file").len();
    println!("{} bytes per paused run, {bodies} of them the entries themselves", file / PAUSED_RUNS as u64);
    let connection = Connection::open(&path).expect("the file");
    let mut tables = connection
        .prepare("SELECT name, sum(pgsize), sum(pgsize) - sum(unused) FROM dbstat GROUP BY name ORDER BY 2 DESC")
        .expect("dbstat");
    let rows = tables.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)));
    for row in rows.expect("dbstat") {
        let (name, size, used) = row.expect("a row");
        println!("  {name:<36} {:>5} bytes per run, {:>3} % full", size / PAUSED_RUNS as i64, used * 100 / size);
    }
    println!();
}
