//! Real programs, also such as mean no good.

use std::path::Path;
use std::time::Duration;

use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_core::tool::Effect;
use holdpoint_runtime::ports::tool::{RunTool, ToolContext};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{BadCommand, CommandRunner, CommandTool, LocalCommand};
use crate::process::PASSED;
use crate::testing::{arguments, context, holds};

const SOON: Duration = Duration::from_secs(30);

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.expect("within the time that a test may take")
}

/// A command that is a script of `/bin/sh`, which is the program here and no part of the tool.
fn script(folder: &TempDir, text: &str) -> LocalCommand {
    LocalCommand::new(folder.path(), ["sh", "-c", text]).unwrap()
}

async fn run(command: LocalCommand, value: &Value) -> Result<Content, String> {
    soon(CommandRunner(command).run(context(), arguments(value))).await.map_err(|failure| failure.0)
}

async fn told(text: &str) -> Result<Content, String> {
    let folder = TempDir::new().unwrap();
    run(script(&folder, text), &json!({})).await
}

fn text(text: &str) -> Result<Content, String> {
    Ok(Content::Text(text.to_owned()))
}

#[tokio::test]
async fn a_tool_of_a_command_is_set_as_every_tool() {
    let folder = TempDir::new().unwrap();
    let tool = CommandTool::builder("deploy", script(&folder, "true")).needs_approval(true).build().unwrap();
    assert_eq!((tool.name().as_str(), tool.effect()), ("deploy", Effect::AtMostOnce));
    assert!(holds(&tool, &json!({})).await);
}

#[tokio::test]
async fn the_command_reads_the_arguments_byte_for_byte_as_they_were_approved() {
    let folder = TempDir::new().unwrap();
    let approved = r#"{"n":12345678901234567890.5,"text":"$(rm -r /) `x` \"'; é"}"#;
    let runner = CommandRunner(LocalCommand::new(folder.path(), ["tee", "read"]).unwrap());
    soon(runner.run(context(), CanonicalJson::parse(approved).unwrap())).await.unwrap();
    assert_eq!(std::fs::read_to_string(folder.path().join("read")).unwrap(), approved);
}

#[tokio::test]
async fn no_shell_reads_the_command() {
    let folder = TempDir::new().unwrap();
    let argv = ["printf", "%s|", "a b", "$HOME", "`id`", "; id", "*", "-n", ""];
    let command = LocalCommand::new(folder.path(), argv).unwrap();
    assert_eq!(run(command, &json!({})).await, text("a b|$HOME|`id`|; id|*|-n||"));
}

#[tokio::test]
async fn what_is_printed_is_the_result() {
    assert_eq!(told("echo one; echo two").await, text("one\ntwo"));
    assert_eq!(told("true").await, text(""));
    assert_eq!(told("echo said; echo complained >&2").await, text("said"));
    let json = CanonicalJson::parse(r#"{"a":[1.5],"b":null}"#).unwrap();
    assert_eq!(told(r#"echo '{"b": null, "a": [1.50]}'"#).await, Ok(Content::Json(json)));
    for printed in ["007", "1.50", "true", "{", r#"{"a":1,"a":2}"#] {
        assert_eq!(told(&format!("echo '{printed}'")).await, text(printed));
    }
}

#[tokio::test]
async fn an_exit_code_other_than_zero_is_a_failure_with_what_was_complained_of() {
    assert_eq!(told("echo out; echo no $1 >&2; exit 3").await, Err("sh ended with exit code 3: no".to_owned()));
    assert_eq!(told("echo only said; exit 1").await, Err("sh ended with exit code 1: only said".to_owned()));
    assert_eq!(told("exit 2").await, Err("sh ended with exit code 2".to_owned()));
    assert_eq!(told("kill -KILL $$").await, Err("sh was ended by signal 9".to_owned()));
    assert_eq!(
        told(r"printf 'a\033[2Kb' >&2; exit 1").await,
        Err("sh ended with exit code 1: a⟦U+001B⟧[2Kb".to_owned())
    );
}

#[tokio::test]
async fn of_many_complaints_the_last_are_told() {
    let failure = told("i=0; while [ $i -lt 2000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1").await.unwrap_err();
    assert!(failure.starts_with("sh ended with exit code 1: [cut here: "), "{failure}");
    assert!(failure.ends_with("line 1998\nline 1999"), "{failure}");
    assert!(failure.len() < LocalCommand::COMPLAINT_BYTES + 100, "{}", failure.len());
}

#[tokio::test]
async fn ten_megabytes_on_both_streams_are_read_to_the_end_and_cut() {
    let folder = TempDir::new().unwrap();
    let print = "head -c 10000000 /dev/zero | tr '\\0' x";
    let command = script(&folder, &format!("{{ {print} >&2; }} & {print}; wait")).output_bytes_max(1_000);
    let expected = format!("{}\n[cut here: 9999000 more bytes]", "x".repeat(1_000));
    assert_eq!(run(command, &json!({})).await, text(&expected));
    let most = script(&folder, print).output_bytes_max(usize::MAX);
    let printed = run(most, &json!({})).await.unwrap().to_text();
    assert!(printed.len() < LocalCommand::OUTPUT_BYTES_MAX + 100, "{}", printed.len());
}

#[tokio::test]
async fn output_that_is_no_text_does_no_harm() {
    assert_eq!(told(r"printf 'a\377\376b'").await, text("a\u{fffd}\u{fffd}b"));
    let failure = told(r"printf '\377' >&2; exit 1").await.unwrap_err();
    assert_eq!(failure, "sh ended with exit code 1: \u{fffd}");
}

#[tokio::test]
async fn a_command_that_does_not_read_its_arguments_is_free_not_to() {
    let folder = TempDir::new().unwrap();
    let long = json!({"text": "x".repeat(500_000)});
    assert_eq!(run(script(&folder, "echo done"), &long).await, text("done"));
    assert_eq!(run(script(&folder, "exec <&-; echo done"), &long).await, text("done"));
    // It prints more than a pipe holds before it reads anything.
    let print = "head -c 300000 /dev/zero | tr '\\0' x; cat | wc -c";
    let command = script(&folder, print).output_bytes_max(LocalCommand::OUTPUT_BYTES_MAX);
    let told = run(command, &long).await.unwrap().to_text();
    assert_eq!(told.trim_start_matches('x').trim(), arguments(&long).as_str().len().to_string());
}

#[tokio::test]
async fn a_command_works_in_its_folder_and_its_program_may_lie_there() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("bin")).unwrap();
    let program = folder.path().join("bin/where.sh");
    std::fs::write(&program, "#!/bin/sh\npwd\n").unwrap();
    let made = std::process::Command::new("chmod").arg("+x").arg(&program).status().unwrap();
    assert!(made.success());
    let place = folder.path().canonicalize().unwrap();
    for written in ["./bin/where.sh", "bin/where.sh", program.to_str().unwrap()] {
        let command = LocalCommand::new(folder.path(), [written]).unwrap();
        assert_eq!(run(command, &json!({})).await, text(place.to_str().unwrap()), "{written}");
    }
}

#[tokio::test]
async fn a_command_sees_only_the_environment_that_it_is_given() {
    let of_shells = ["PWD", "OLDPWD", "SHLVL", "_"];
    let is_own = |name: &String| !PASSED.contains(&name.as_str()) && !of_shells.contains(&name.as_str());
    let own: Vec<String> = std::env::vars().map(|(name, _)| name).filter(is_own).collect();
    let (let_in, kept_out) = own.split_first().expect("a process has variables of its own");
    let folder = TempDir::new().unwrap();
    let command = LocalCommand::new(folder.path(), ["env", "-0"]).unwrap();
    let command = command.env("ONLY_HERE", "this".to_owned().into()).unwrap().pass_env(let_in.as_str()).unwrap();
    let told = run(command, &json!({})).await.unwrap().to_text();
    let seen: Vec<(&str, &str)> = told.split('\0').filter_map(|variable| variable.split_once('=')).collect();
    assert!(seen.contains(&("ONLY_HERE", "this")), "{seen:?}");
    assert!(seen.contains(&(let_in, std::env::var(let_in).unwrap().as_str())), "{seen:?}");
    assert!(seen.contains(&(CommandTool::IDEMPOTENCY_KEY, context().idempotency_key().as_str())), "{seen:?}");
    assert!(kept_out.iter().all(|name| !seen.iter().any(|(seen, _)| seen == name)), "{seen:?}");
}

#[tokio::test]
async fn a_secret_that_a_command_prints_does_not_reach_the_model() {
    let folder = TempDir::new().unwrap();
    for (end, is_failure) in [("", false), ("; echo \"bad key $API_KEY\" >&2; exit 1", true)] {
        let command = script(&folder, &format!("echo \"$MODE $OTHER key $API_KEY\"{end}"));
        let command = command.env("API_KEY", "sk-0123456789".to_owned().into()).unwrap();
        let command = command.env("MODE", "production".to_owned().into()).unwrap();
        let command = command.env("OTHER", "also-a-secret".to_owned().into()).unwrap();
        let command = command.keep_secret(&"also-a-secret".to_owned().into());
        let told = run(command, &json!({})).await;
        assert_eq!(told.is_err(), is_failure);
        let told = told.map_or_else(|failure| failure, |content| content.to_text());
        assert!(told.ends_with("key [redacted]"), "{told}");
        assert!(is_failure || told.starts_with("production [redacted]"), "{told}");
    }
}

#[test]
fn what_cannot_be_run_is_refused_when_it_is_written() {
    let folder = TempDir::new().unwrap();
    let new = |argv: &[&str]| LocalCommand::new(folder.path(), argv.iter().copied());
    assert!(matches!(new(&[]), Err(BadCommand::Empty)));
    assert!(matches!(new(&[""]), Err(BadCommand::Argument(0))));
    assert!(matches!(new(&["ls", "a\0b"]), Err(BadCommand::Argument(1))));
    assert!(matches!(new(&["./none.sh"]), Err(BadCommand::NoProgram(program)) if program == "./none.sh"));
    assert!(matches!(new(&["./"]), Err(BadCommand::NoProgram(_))));
    assert!(matches!(LocalCommand::new(folder.path().join("none"), ["ls"]), Err(BadCommand::Folder { .. })));
    for name in ["", "A=B", "A\0"] {
        assert!(matches!(new(&["ls"]).unwrap().pass_env(name), Err(BadCommand::Variable(_))), "{name:?}");
        assert!(matches!(new(&["ls"]).unwrap().env(name, "x".to_owned().into()), Err(BadCommand::Variable(_))));
    }
    assert!(new(&["ls"]).unwrap().env("A", "x\0".to_owned().into()).is_err());
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told() {
    let folder = TempDir::new().unwrap();
    let command = LocalCommand::new(folder.path(), ["holdpoint-has-no-such-program"]).unwrap();
    let failure = run(command, &json!({})).await.unwrap_err();
    assert!(failure.starts_with("holdpoint-has-no-such-program was not run: "), "{failure}");
}

/// What a script does first so that a test sees it and its children come and go: both hold the pipe `alive` open for as
/// long as they live. Opening it waits for the reader, so that neither side can miss the other.
fn holding(folder: &TempDir) -> tokio::task::JoinHandle<String> {
    let alive = folder.path().join("alive");
    let made = std::process::Command::new("mkfifo").arg(&alive).status().unwrap();
    assert!(made.success());
    // Reads to the pipe's end, which comes when the last holder is gone.
    tokio::task::spawn_blocking(move || std::fs::read_to_string(alive).unwrap())
}

/// Runs until the script has made the file `ready`, then cancels, and gives the failure.
async fn cancelled_when_ready(folder: &Path, command: LocalCommand) -> String {
    let context = context();
    let cancelled = context.cancelled.clone();
    let running = tokio::spawn(async move { CommandRunner(command).run(context, arguments(&json!({}))).await });
    let ready = folder.join("ready");
    soon(async {
        while !ready.exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    cancelled.cancel();
    soon(running).await.unwrap().unwrap_err().0
}

const CHILD: &str = "exec 3>alive; sleep 1000 & echo started >&3;";
/// Ignores being asked to end, and so do its children.
const DEAF: &str = "trap '' TERM; exec 3>alive; sleep 1000 & echo started >&3;";

#[tokio::test]
async fn a_command_out_of_time_is_killed_with_all_that_it_started_also_if_it_will_not_go() {
    for beginning in [CHILD, DEAF] {
        let folder = TempDir::new().unwrap();
        let gone = holding(&folder);
        let command = script(&folder, &format!("{beginning} echo working >&2; wait; sleep 1000"));
        let command = command.timeout(Duration::from_millis(700)).grace(Duration::from_millis(100));
        let failure = run(command, &json!({})).await.unwrap_err();
        assert_eq!(failure, "sh did not end within 700ms and was killed: working");
        assert_eq!(soon(gone).await.unwrap(), "started\n");
    }
}

#[tokio::test]
async fn a_cancelled_run_kills_the_command_with_all_that_it_started_also_if_it_will_not_go() {
    for beginning in [CHILD, DEAF] {
        let folder = TempDir::new().unwrap();
        let gone = holding(&folder);
        let command = script(&folder, &format!("{beginning} echo > ready; wait; sleep 1000"));
        let failure = cancelled_when_ready(folder.path(), command.grace(Duration::from_millis(100))).await;
        assert_eq!(failure, "the run was cancelled; sh was killed in the middle of its work");
        assert_eq!(soon(gone).await.unwrap(), "started\n");
    }
}

#[tokio::test]
async fn a_command_is_asked_to_end_and_may_tidy_up_before_it_is_killed() {
    let folder = TempDir::new().unwrap();
    let text = "trap 'echo tidy > tidied; exit 1' TERM; echo > ready; sleep 1000 & wait";
    // Longer than the test may take: the command goes by itself, or the test fails.
    let failure = cancelled_when_ready(folder.path(), script(&folder, text).grace(SOON * 10)).await;
    assert_eq!(failure, "the run was cancelled; sh was killed in the middle of its work");
    assert_eq!(std::fs::read_to_string(folder.path().join("tidied")).unwrap(), "tidy\n");
}

#[tokio::test]
async fn a_child_that_keeps_the_output_open_does_not_keep_the_call() {
    let folder = TempDir::new().unwrap();
    let gone = holding(&folder);
    let command = script(&folder, &format!("{CHILD} echo done")).timeout(SOON * 10);
    assert_eq!(run(command, &json!({})).await, text("done"));
    assert_eq!(soon(gone).await.unwrap(), "started\n");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_escapes_the_group_with_all_pipes_does_not_keep_the_call() {
    let folder = TempDir::new().unwrap();
    for name in ["escaped", "end"] {
        assert!(std::process::Command::new("mkfifo").arg(folder.path().join(name)).status().unwrap().success());
    }
    // Once it has escaped it says so. It holds input and output open until it is let go below; the arguments are more
    // than the pipe to it takes.
    let escape = "setsid sh -c 'echo > escaped; read line < end' <&0 & read line < escaped; echo done";
    let command = script(&folder, escape).timeout(SOON * 10);
    let long = json!({"text": "x".repeat(500_000)});
    assert_eq!(run(command, &long).await, text("done"));
    let end = folder.path().join("end");
    soon(tokio::task::spawn_blocking(move || std::fs::write(end, "go\n").unwrap())).await.unwrap();
}

#[tokio::test]
async fn a_call_that_is_dropped_kills_the_command_with_all_that_it_started() {
    let folder = TempDir::new().unwrap();
    let gone = holding(&folder);
    let runner = CommandRunner(script(&folder, &format!("{DEAF} echo > ready; wait")));
    let ready = folder.path().join("ready");
    {
        let running = runner.run(ToolContext { attempt: 2, ..context() }, arguments(&json!({})));
        tokio::pin!(running);
        soon(async {
            while !ready.exists() {
                tokio::select! {
                    biased;
                    _ = &mut running => panic!("it waits"),
                    () = tokio::task::yield_now() => {}
                }
            }
        })
        .await;
    }
    assert_eq!(soon(gone).await.unwrap(), "started\n");
}
