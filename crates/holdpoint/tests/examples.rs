//! Every example runs as a newcomer would run it: as a process, with a person's answers on its standard input.
#![allow(clippy::unwrap_used)] // Clippy allows it in tests and not in what they call.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::SystemTime;

/// What a process printed, once it ended well.
#[track_caller]
fn run(example: &str, arguments: &[&Path], answers: &str) -> String {
    let output = try_run(example, arguments, answers);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{example} ended with {}\n{out}\n{err}", output.status);
    out.into_owned()
}

fn try_run(example: &str, arguments: &[&Path], answers: &str) -> Output {
    let mut child = Command::new(FOLDER.join(format!("{example}{}", std::env::consts::EXE_SUFFIX)))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{example} does not start: {error}"));
    // One that asks nothing may be gone before it is answered.
    let _ = child.stdin.take().expect("it was asked for").write_all(answers.as_bytes());
    child.wait_with_output().unwrap()
}

/// Where cargo puts examples: beside the folder of this very test.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).expect("a test lies in a folder of the target folder").join("examples");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates lie in one folder");
    let source = newest(crates);
    if EXAMPLES.iter().any(|example| is_outdated(&folder.join(example), source)) {
        build(&folder);
    }
    folder
});

const EXAMPLES: [&str; 7] = [
    "approve_in_terminal",
    "edit_before_run",
    "nested_agents",
    "own_store",
    "standing_rules",
    "streaming",
    "survive_restart",
];

/// `cargo test --test examples` builds this test and not the examples: one that is older than what it is built from is
/// stale.
fn is_outdated(example: &Path, source: SystemTime) -> bool {
    changed(&example.with_extension(std::env::consts::EXE_EXTENSION)) < source
}

/// When a source file in a folder last changed; what only tests are built from aside.
fn newest(folder: &Path) -> SystemTime {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let newest_of = |path: PathBuf| match path.extension() {
        _ if path.is_dir() => {
            if path.ends_with("tests") {
                SystemTime::UNIX_EPOCH
            } else {
                newest(&path)
            }
        }
        Some(kind) if kind == "rs" || kind == "sql" || kind == "lua" => changed(&path),
        _ => SystemTime::UNIX_EPOCH,
    };
    entries.map(newest_of).max().unwrap_or(SystemTime::UNIX_EPOCH)
}

fn changed(path: &Path) -> SystemTime {
    path.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn build(folder: &Path) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--examples", "--all-features"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    if folder.parent().is_some_and(|profile| profile.ends_with("release")) {
        command.arg("--release");
    }
    assert!(command.status().unwrap().success(), "the examples do not build");
}

/// What a terminal would show, line by line.
#[track_caller]
fn check(told: &str, expected: &[&str]) {
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
}

const ASKED: &str = r#"Agent Data agent would like to use the tool get_weather with {"location":"San Francisco"}. Do you approve? (y/n): "#;
const PAUSED: &str = "The run is paused: 1 call(s) wait for a person.";

#[test]
fn only_san_francisco_asks_and_an_approval_finishes_the_run() {
    let told = run("approve_in_terminal", &[], "y\n");
    let sunny = "The weather in Oakland is sunny. The weather in San Francisco is sunny.";
    check(&told, &[PAUSED, &format!("{ASKED}{sunny}")]);
}

#[test]
fn the_state_goes_through_a_file_from_one_process_to_another() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let (start, finish) = ([file.as_path(), Path::new("start")], [file.as_path(), Path::new("finish")]);

    check(&run("approve_in_terminal", &start, ""), &[PAUSED]);
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.contains("The weather in Oakland is sunny."), "what needs no approval has run: {kept}");
    assert!(!kept.contains("The weather in San Francisco is sunny."), "what needs one has not: {kept}");

    let sunny = "The weather in Oakland is sunny. The weather in San Francisco is sunny.";
    check(&run("approve_in_terminal", &finish, "yes\n"), &[&format!("{ASKED}{sunny}")]);
    // The file now holds the finished run: nobody is asked again, and nothing runs again.
    check(&run("approve_in_terminal", &finish, ""), &[sunny]);
}

#[test]
fn a_denial_in_the_terminal_reaches_the_model() {
    let told = run("approve_in_terminal", &[], "n\n");
    let answer = "The weather in Oakland is sunny. Tool execution was not approved.";
    check(&told, &[PAUSED, &format!("{ASKED}{answer}")]);
}

#[test]
fn a_run_that_nobody_answers_stays_paused_in_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let unanswered = try_run("approve_in_terminal", &[&file], "");
    assert!(!unanswered.status.success());
    assert!(String::from_utf8_lossy(&unanswered.stderr).contains("the run is still paused"));
    let told = run("approve_in_terminal", &[&file, Path::new("finish")], "y\n");
    assert!(told.ends_with("The weather in San Francisco is sunny.\n"), "{told}");
}

#[test]
fn what_a_person_edited_is_what_runs() {
    let told = run("edit_before_run", &[], "");
    let lines: Vec<&str> = told.lines().collect();
    let [held, refused, tool, model] = lines[..] else { panic!("{told}") };
    assert_eq!(held, r#"held:     refund {"amount_cents":250000,"order":"A-17"}"#);
    assert!(refused.starts_with("refused:  invalid_arguments (the edited arguments of pause pau_"), "{refused}");
    assert_eq!(tool, "tool:     refunding 2500 cents of order A-17");
    assert_eq!(model, "model:    Done: refunded 2500 cents of order A-17.");
}

#[test]
fn pauses_of_an_inner_agent_are_decided_at_the_outer_run() {
    check(
        &run("nested_agents", &[], ""),
        &[
            "the run is paused:",
            r#"  Travel desk asks at 1.0 for ask_booker {"input":"Flights to Lisbon and to Porto, please."}"#,
            "the run is paused:",
            r#"  Travel desk/ask_booker asks at 1.0/1.0 for book_flight {"to":"Lisbon"}"#,
            r#"  Travel desk/ask_booker asks at 1.0/1.1 for book_flight {"to":"Porto"}"#,
            "  booking a flight to Lisbon",
            "Lisbon is booked, Porto is not.",
        ],
    );
}

#[test]
fn a_rule_settles_what_it_speaks_of_until_it_is_taken_back() {
    let told = run("standing_rules", &[], "");
    let lines: Vec<&str> = told.lines().filter(|line| !line.starts_with("rule rul_")).collect();
    assert_eq!(
        lines,
        [
            "Pay for the flowers",
            r#"  asks: transfer {"amount":60,"to":"florist"}"#,
            "  tool: 60 to florist",
            "  said: Done.",
            "Pay for the bread",
            "  tool: 12 to baker",
            "  said: Done.",
            "Pay the rent",
            r#"  asks: transfer {"amount":900,"to":"landlord"}"#,
            "  said: Done.",
            "Pay for the milk",
            r#"  asks: transfer {"amount":8,"to":"grocer"}"#,
        ]
    );
    assert!(told.contains("by ana, used 1 time(s), is taken back"), "{told}");
}

#[test]
fn a_store_of_ones_own_sees_every_append() {
    let told = run("own_store", &[], "");
    let appends: Vec<(&str, &str)> = told
        .lines()
        .map(|line| line.splitn(3, ' ').nth(2).expect("time, run, rest"))
        .map(|append| append.split_once(": ").expect("a revision, then events"))
        .collect();
    let (revisions, events): (Vec<&str>, Vec<&str>) = appends.into_iter().unzip();
    // An outcome waits a moment for company, and is written alone where the machine is slow.
    assert!(["r1 r2 r3 r4", "r1 r2 r3 r4 r5"].contains(&revisions.join(" ").as_str()), "{told}");
    assert_eq!(events[..3], ["run.started, model.replied, pause.opened", "pause.decided", "call.started"]);
    assert_eq!(events[3..].join(", "), "call.answered, model.replied, run.finished");
}

#[test]
fn a_stream_goes_on_after_the_pause_where_it_stopped() {
    let told = run("streaming", &[], "");
    let events: Vec<&str> = told.lines().filter(|line| line.starts_with("event ")).collect();
    assert_eq!(
        events,
        [
            "event 1: run.started",
            "event 2: model.replied",
            "event 3: pause.opened",
            "event 5: call.started",
            "event 6: call.answered",
            "event 7: model.replied",
            "event 8: run.finished",
        ],
        "number 4 is the decision, which was made between the two streams"
    );
    assert!(told.contains("model: I wrote a post about otters and would like to publish it.\n"), "{told}");
    assert!(told.ends_with("-- done: The post about otters is out.\n"), "{told}");
}

#[test]
fn a_pause_outlives_its_process() {
    let told = run("survive_restart", &[], "");
    let lines: Vec<&str> = told.lines().collect();
    let [start, approve, tool, finish] = lines[..] else { panic!("{told}") };
    assert!(start.ends_with("leaves 1 pause(s) behind"), "{told}");
    assert!(approve.ends_with(r#"sees delete_backup {"name":"2019.tar"}"#), "{told}");
    assert_eq!(tool, "  tool: deleting 2019.tar");
    assert!(finish.ends_with("says: The old backup is gone."), "{told}");
}

#[test]
fn a_run_is_finished_once_however_often_a_worker_looks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runs.db");
    let part = |part: &str| run("survive_restart", &[&file, Path::new(part)], "");
    part("start");
    check(&part("finish"), &[]);
    part("approve");
    assert_eq!(part("finish").lines().count(), 2);
    check(&part("finish"), &[]);
    check(&part("approve"), &[]);
}
