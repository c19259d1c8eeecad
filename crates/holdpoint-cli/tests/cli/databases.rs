//! What must hold over every database that several servers may share, played with the real program: kills, a database that
//! is gone for a while, two instances, and a rolling restart.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdpoint_testkit::servers::OwnServer;
use serde_json::{Value, json};

use crate::world::{Place, Server, complained, printed};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A folder with an agent whose tool leaves a line for every time that it runs.
pub(crate) fn place() -> Place {
    let place = Place::new();
    let argv = r#"["/bin/sh", "-c", "echo ran >> ran.txt; echo done"]"#;
    let agent = format!(
        "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: {{ name: once }}\nspec:\n  type: chat_model_agent\n  \
         model: {{ primary: scripted/once.json }}\n  tools:\n    - name: act\n      description: acts\n      \
         parameters: {{ type: object }}\n      command: {{ argv: {argv} }}\n"
    );
    place.write("agents/once.yaml", &agent);
    place.write("agents/once.json", r#"{"replies": [{"calls": [{"tool": "act", "arguments": {}}]}, "It is done."]}"#);
    place
}

/// How often the tool ran.
pub(crate) fn ran(place: &Place) -> usize {
    std::fs::read_to_string(place.join("ran.txt")).unwrap_or_default().lines().count()
}

fn serve(place: &Place, database: &OwnServer) -> Server {
    // By the environment, as a password should come.
    place.serve_with(&[], &[("HOLDPOINT_STORE", database.address())])
}

/// Starts a run and waits for its first stop.
pub(crate) fn start(server: &Server) -> Value {
    let (status, run) = server.post("/api/v1/runs?wait=60", &json!({"agent_id": "once", "input": "act"}));
    assert_eq!((status / 100, run["status"].as_str()), (2, Some("paused")), "{status} {run}");
    run
}

fn path(run: &Value) -> String {
    format!("/api/v1/runs/{}", run["run_id"].as_str().unwrap())
}

fn approve(server: &Server, run: &Value) -> (u16, Value) {
    let pause = &run["pauses"][0];
    let body = json!({"decision": "approve", "args_sha256": pause["args_sha256"]});
    server.post(&format!("/api/v1/pauses/{}/decide", pause["id"].as_str().unwrap()), &body)
}

fn finished(server: &Server, run: &Value) {
    let done = server.until(&path(run), |run| run["status"] == "done");
    assert_eq!(done["output"], "It is done.", "{done}");
}

fn is_ready(server: &Server) -> bool {
    server.get("/readyz").0 == 200
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what} never came true");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A pause survives the server that opened it.
pub(crate) fn a_kill_loses_nothing(database: &OwnServer, name: &str) {
    let place = place();
    let server = serve(&place, database);
    let run = start(&server);
    let (_, ready) = server.get("/readyz");
    assert_eq!((&ready["store"]["name"], &ready["store"]["survives_crash"]), (&json!(name), &json!(true)), "{ready}");
    assert_eq!(ready["store"]["is_shared"], true, "{ready}");
    let first = ready["instance"].as_str().unwrap().to_owned();
    server.kill();

    let server = serve(&place, database);
    let (_, ready) = server.get("/readyz");
    assert_ne!(ready["instance"].as_str().unwrap(), first, "another process is another instance");
    let (_, still) = server.get(&path(&run));
    assert_eq!((&still["status"], &still["pauses"]), (&json!("paused"), &run["pauses"]));
    assert_eq!(approve(&server, &run).0, 200);
    finished(&server, &run);
    assert_eq!(ran(&place), 1);
    let (_, record) = server.get("/api/v1/audit/verify");
    assert_eq!(record["is_whole"], true, "{record}");
    let (code, greeting) = server.terminate();
    assert_eq!(code, Some(0), "{greeting}");
    assert!(greeting.contains(&format!("store     {name}://127.0.0.1:")), "{greeting}");
    assert!(greeting.contains("survives crashes") && greeting.contains("instance  pid-"), "{greeting}");
    let log = place.log();
    assert!(log.contains(&first) && log.contains("serving"), "{log}");
    let password = password(database);
    assert!(!log.contains(&password) && !greeting.contains(&password), "{log}{greeting}");
}

fn password(database: &OwnServer) -> String {
    let (user, _) = database.address().rsplit_once('@').unwrap();
    user.rsplit(':').next().unwrap().to_owned()
}

/// The database is gone for a while: the server says so, and goes on by itself when it is back.
pub(crate) fn a_database_that_restarts_loses_nothing(mut database: OwnServer) {
    let place = place();
    let server = serve(&place, &database);
    let (waiting, other) = (start(&server), start(&server));
    assert_eq!(approve(&server, &other).0, 200);
    finished(&server, &other);

    database.crash().unwrap();
    until("the server is not ready", || server.get("/readyz").0 == 503);
    assert_eq!(server.get("/healthz").0, 200, "it lives all the same");
    let (status, told) = approve(&server, &waiting);
    assert_eq!(status, 503, "{told}");
    let code = told["code"].as_str().unwrap();
    assert!(["store_unavailable", "store_unknown"].contains(&code), "{told}");

    database.start().unwrap();
    until("the server is ready again", || is_ready(&server));
    let (status, told) = approve(&server, &waiting);
    assert_eq!(status, 200, "{told}");
    finished(&server, &waiting);
    finished(&server, &other);
    assert_eq!(ran(&place), 2);
}

/// What one instance opened, another one decides; both tell the same.
pub(crate) fn a_pause_of_one_instance_is_decided_at_another(database: &OwnServer) {
    let place = place();
    let (one, two) = (serve(&place, database), serve(&place, database));
    let instance = |server: &Server| server.get("/readyz").1["instance"].as_str().unwrap().to_owned();
    assert_ne!(instance(&one), instance(&two));
    let run = start(&one);
    let (_, inbox) = two.get("/api/v1/pauses?status=open");
    assert_eq!(inbox["pauses"][0]["id"], run["pauses"][0]["id"], "{inbox}");
    assert_eq!(approve(&two, &run).0, 200);
    finished(&one, &run);
    finished(&two, &run);
    assert_eq!(ran(&place), 1);
    let (status, late) = {
        let body = json!({"decision": "deny"});
        one.post(&format!("/api/v1/pauses/{}/decide", run["pauses"][0]["id"].as_str().unwrap()), &body)
    };
    assert_eq!((status, &late["code"]), (409, &json!("already_decided")), "{late}");
}

/// How many runs there are in a rolling restart.
const RUNS: usize = 24;

/// Both instances are replaced one after the other while runs are started and decided: every run that was acknowledged ends,
/// and its tool ran once.
pub(crate) fn a_rolling_restart_loses_nothing(database: &OwnServer) {
    let place = place();
    let servers = [Mutex::new(Some(serve(&place, database))), Mutex::new(Some(serve(&place, database)))];
    let (started, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (servers, started, next, is_over) = (&servers, &started, &next, &is_over);
            scope.spawn(move || {
                while next.fetch_add(1, Ordering::SeqCst) < RUNS {
                    let run = started_somewhere(servers, client);
                    approved_somewhere(servers, client, &run);
                    started.lock().unwrap_or_else(PoisonError::into_inner).push(run);
                }
                is_over.store(true, Ordering::SeqCst);
            });
        }
        // At least once around, and for as long as anybody is busy.
        let mut rounds = 0;
        while rounds < 2 || !is_over.load(Ordering::SeqCst) {
            let slot = &servers[rounds % 2];
            let old = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
            let (code, rest) = old.unwrap().terminate();
            assert_eq!(code, Some(0), "{rest}");
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(serve(&place, database));
            rounds += 1;
        }
    });
    let started = started.into_inner().unwrap();
    assert_eq!(started.len(), RUNS);
    let server = servers[0].lock().unwrap_or_else(PoisonError::into_inner);
    let server = server.as_ref().unwrap();
    for run in &started {
        finished(server, run);
    }
    // Runs that nobody was told of may have begun as well; none of those that ended ran its tool twice.
    assert_eq!(ran(&place), RUNS);
    let (_, record) = server.get("/api/v1/audit/verify");
    assert_eq!(record["is_whole"], true, "{record}");
}

type Slots = [Mutex<Option<Server>>; 2];

/// Asks one instance after the other until one of them answers as wanted.
fn somewhere(servers: &Slots, first: usize, ask: impl Fn(&str) -> Option<(u16, Value)>) -> Value {
    let begin = Instant::now();
    for turn in first.. {
        let address = {
            let slot = servers[turn % 2].lock().unwrap_or_else(PoisonError::into_inner);
            slot.as_ref().map(|server| server.address.clone())
        };
        match address.and_then(|address| ask(&address)) {
            Some((200..300, answer)) => return answer,
            Some((429 | 500.., _)) | None => {}
            Some((status, answer)) => panic!("{status} {answer}"),
        }
        assert!(begin.elapsed() < PATIENCE, "nobody answers");
        std::thread::sleep(Duration::from_millis(50));
    }
    unreachable!("the turns never end")
}

fn started_somewhere(servers: &Slots, first: usize) -> Value {
    let body = json!({"agent_id": "once", "input": "act"});
    let run = somewhere(servers, first, |address| crate::world::try_post(address, "/api/v1/runs", &body));
    let run_path = path(&run);
    somewhere(servers, first, |address| {
        let (status, run) = crate::world::try_get(address, &run_path)?;
        (status != 200 || run["status"] == "paused").then_some((status, run))
    })
}

fn approved_somewhere(servers: &Slots, first: usize, run: &Value) {
    let pause = &run["pauses"][0];
    let path = format!("/api/v1/pauses/{}/decide", pause["id"].as_str().unwrap());
    // Sent again after a connection that was lost, the same decision is no error.
    let body = json!({"decision": "approve", "args_sha256": pause["args_sha256"]});
    somewhere(servers, first, |address| crate::world::try_post(address, &path, &body));
}

/// A start that is refused, and what is said then. The password is not.
pub(crate) fn refusal(address: &str) -> String {
    let place = place();
    let mut command = place.holdpoint(&["serve", "--listen", "127.0.0.1:0"]);
    let refused = command.env("HOLDPOINT_STORE", address).output().unwrap();
    let told = complained(&refused);
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(!place.join("holdpoint.db").exists(), "nothing is kept elsewhere instead");
    told
}

/// What `doctor` says of a store, and whether it is content.
pub(crate) fn doctor(address: &str, more: &[&str]) -> (bool, String) {
    let place = place();
    let arguments: Vec<&str> = ["doctor", "--listen", "127.0.0.1:0"].iter().chain(more).copied().collect();
    let looked = place.holdpoint(&arguments).env("HOLDPOINT_STORE", address).output().unwrap();
    (looked.status.success(), printed(&looked))
}

/// A server that is not there is told of in plain words.
pub(crate) fn a_database_that_is_not_there_is_a_plain_error(scheme: &str) {
    let address = format!("{scheme}://ana:hunter2@{}/0", crate::world::free_address());
    let told = refusal(&address);
    for part in ["cannot be opened", "see that the server is running", "HOLDPOINT_STORE", "127.0.0.1:"] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    assert!(!told.contains("hunter2"), "{told}");
    let (is_fine, told) = doctor(&address, &[]);
    assert!(!is_fine && told.contains("cannot be used") && !told.contains("hunter2"), "{told}");
    let (_, told) = doctor(&address, &["--offline"]);
    assert!(told.contains("is not asked") && !told.contains("hunter2"), "{told}");
}
