use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::tool::Effect;
use holdpoint_runtime::ports::tool::{AutoDecision, RunTool, ToolContext, ToolFailure, ToolShape};
use serde_json::{Value, json};

use super::{CommandOutcome, CommandOutput, ShellAction, ShellExecutor, ShellRunner, ShellTool};
use crate::testing::{arguments, context, holds};

/// Writes down what it is asked, and runs nothing.
#[derive(Clone, Default)]
struct Notebook(Arc<Mutex<Vec<ShellAction>>>);

#[async_trait]
impl ShellExecutor for Notebook {
    async fn execute(&self, _: &ToolContext, action: ShellAction) -> Result<Vec<CommandOutput>, ToolFailure> {
        let output = action.commands.iter().map(|command| CommandOutput {
            stdout: command.clone(),
            stderr: String::new(),
            outcome: CommandOutcome::Exit { exit_code: Some(0) },
        });
        let output = output.collect();
        self.0.lock().unwrap().push(action);
        Ok(output)
    }
}

fn read(value: Value) -> Result<ShellAction, String> {
    ShellAction::read(&value)
}

fn action(commands: &[&str], timeout_ms: Option<u64>, output_bytes_max: Option<usize>) -> ShellAction {
    let commands = commands.iter().map(|command| (*command).to_owned()).collect();
    ShellAction { commands, timeout: timeout_ms.map(Duration::from_millis), output_bytes_max }
}

#[test]
fn a_shell_tool_is_a_shell_and_runs_at_most_once() {
    let tool = ShellTool::builder(Notebook::default()).build().unwrap();
    assert_eq!((tool.name().as_str(), tool.effect()), ("shell", Effect::AtMostOnce));
    assert!(matches!(tool.shape(), ToolShape::Shell));
}

#[tokio::test]
async fn approval_is_set_as_on_every_tool() {
    let builder = || ShellTool::builder(Notebook::default());
    let call = json!({"commands": ["rm -r build"]});
    assert!(!holds(&builder().build().unwrap(), &call).await);
    assert!(holds(&builder().needs_approval(true).build().unwrap(), &call).await);
    assert!(!holds(&builder().needs_approval(false).build().unwrap(), &call).await);
    let when = builder().needs_approval_when(|_, arguments: Value| async move {
        ShellAction::read(&arguments).map(|action| action.commands.iter().any(|command| command != "ls"))
    });
    let tool = when.build().unwrap();
    for (call, is_held) in [
        (call, true),
        (json!({"command": "rm -r build"}), true),
        (json!({"commands": ["ls"]}), false),
        (json!({"command": "ls"}), false),
    ] {
        assert_eq!(holds(&tool, &call).await, is_held, "{call}");
    }
}

#[test]
fn a_decider_in_code_is_passed_through() {
    let builder = ShellTool::builder(Notebook::default()).needs_approval(true);
    let tool = builder.on_approval("ci", |_, _| async { AutoDecision::Deny("not here".to_owned()) }).build().unwrap();
    assert!(tool.has_decider());
}

/// The counterpart refuses approval options on a shell that the provider hosts. Here such a shell cannot be written
/// down: every shell tool has an executor of ours, and its calls pass the gate.
#[test]
fn there_is_no_hosted_shell_so_approval_options_on_one_cannot_exist() {
    let tool = ShellTool::builder(Notebook::default()).needs_approval(true).build().unwrap();
    assert!(matches!(tool.shape(), ToolShape::Shell));
    let hosted = json!({"commands": ["ls"], "environment": {"type": "container_auto"}});
    assert!(tool.validate(&arguments(&hosted)).is_err());
    assert!(read(hosted).is_err());
}

#[test]
fn commands_are_read_to_the_letter() {
    assert_eq!(read(json!({"commands": ["ls ", " pwd\n"]})), Ok(action(&["ls ", " pwd\n"], None, None)));
    assert_eq!(read(json!({"command": "ls"})), Ok(action(&["ls"], None, None)));
    let bounded = json!({"commands": ["ls"], "timeout_ms": 5, "max_output_length": 0});
    assert_eq!(read(bounded), Ok(action(&["ls"], Some(5), Some(0))));
    let unbounded = json!({"commands": ["ls"], "timeout_ms": null, "max_output_length": null});
    assert_eq!(read(unbounded), Ok(action(&["ls"], None, None)));
}

#[test]
fn arguments_that_cannot_run_break_the_schema_or_are_refused() {
    let tool = ShellTool::builder(Notebook::default()).build().unwrap();
    for value in [
        json!({}),
        json!({"commands": []}),
        json!({"commands": "ls"}),
        json!({"commands": [""]}),
        json!({"commands": [1]}),
        json!({"command": ["ls"]}),
        json!({"command": "ls", "commands": ["ls"]}),
        json!({"commands": ["ls"], "timeout_ms": 0}),
        json!({"commands": ["ls"], "timeout_ms": -1}),
        json!({"commands": ["ls"], "max_output_length": "1"}),
        json!({"commands": vec!["ls"; ShellTool::COMMANDS_MAX + 1]}),
        json!({"commands": ["ls"], "requires_approval": false}),
    ] {
        assert!(tool.validate(&arguments(&value)).is_err(), "{value}");
        assert!(read(value.clone()).is_err(), "{value}");
    }
    for value in [json!({"commands": ["  "]}), json!({"command": "ls\u{0}"})] {
        assert!(read(value.clone()).is_err(), "{value}");
    }
    for value in [json!({"command": "ls"}), json!({"commands": ["ls"], "timeout_ms": 5})] {
        assert_eq!(tool.validate(&arguments(&value)), Ok(()), "{value}");
    }
}

#[tokio::test]
async fn an_executor_of_ones_own_is_given_the_commands() {
    let notebook = Notebook::default();
    let runner = ShellRunner(notebook.clone());
    let told = runner.run(context(), arguments(&json!({"commands": ["a", "b"]}))).await.unwrap();
    let expected = concat!(
        r#"{"output":[{"outcome":{"exit_code":0,"type":"exit"},"stderr":"","stdout":"a"},"#,
        r#"{"outcome":{"exit_code":0,"type":"exit"},"stderr":"","stdout":"b"}]}"#
    );
    assert_eq!(told.to_text(), expected);
    assert_eq!(*notebook.0.lock().unwrap(), [action(&["a", "b"], None, None)]);
    assert!(runner.run(context(), CanonicalJson::parse("{}").unwrap()).await.is_err());
    assert_eq!(notebook.0.lock().unwrap().len(), 1);
}

#[cfg(unix)]
mod local {
    use std::path::Path;

    use tempfile::TempDir;

    use super::*;
    use crate::process::PASSED;
    use crate::shell::LocalShell;

    const SOON: Duration = Duration::from_secs(30);

    async fn run_in(shell: LocalShell, value: Value) -> Result<Value, ToolFailure> {
        let content = ShellRunner(shell).run(context(), arguments(&value)).await?;
        Ok(serde_json::from_str(&content.to_text()).unwrap())
    }

    async fn run(commands: &[&str]) -> Value {
        let folder = TempDir::new().unwrap();
        run_in(LocalShell::new(folder.path()).unwrap(), json!({"commands": commands})).await.unwrap()
    }

    fn exit(stdout: &str, stderr: &str, exit_code: i32) -> Value {
        json!({"stdout": stdout, "stderr": stderr, "outcome": {"type": "exit", "exit_code": exit_code}})
    }

    #[tokio::test]
    async fn commands_run_in_order_each_with_its_outcome() {
        let told = run(&["echo one; echo two >&2", "exit 3", "printf ok"]).await;
        assert_eq!(told, json!({"output": [exit("one\n", "two\n", 0), exit("", "", 3), exit("ok", "", 0)]}));
    }

    #[tokio::test]
    async fn a_command_that_begins_with_a_dash_is_a_command() {
        let told = run(&["-x"]).await;
        assert_eq!(told["output"][0]["outcome"], json!({"type": "exit", "exit_code": 127}));
    }

    #[tokio::test]
    async fn a_signal_is_told_as_shells_tell_it() {
        assert_eq!(run(&["kill -TERM $$"]).await["output"][0]["outcome"]["exit_code"], 128 + 15);
    }

    #[tokio::test]
    async fn commands_work_in_the_folder_given_and_read_nothing() {
        let folder = TempDir::new().unwrap();
        let shell = LocalShell::new(folder.path()).unwrap();
        let told = run_in(shell, json!({"command": "cat; pwd; echo x > made"})).await.unwrap();
        let place = folder.path().canonicalize().unwrap();
        assert_eq!(told["output"][0], exit(&format!("{}\n", place.display()), "", 0));
        assert_eq!(std::fs::read_to_string(place.join("made")).unwrap(), "x\n");
    }

    #[test]
    fn a_shell_needs_a_folder() {
        let folder = TempDir::new().unwrap();
        assert!(LocalShell::new(folder.path().join("none")).is_err());
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(LocalShell::new(folder.path().join("file")).is_err());
    }

    #[tokio::test]
    async fn a_folder_that_is_gone_is_told() {
        let folder = TempDir::new().unwrap();
        let shell = LocalShell::new(folder.path()).unwrap();
        drop(folder);
        let failure = run_in(shell, json!({"command": "ls"})).await.unwrap_err();
        assert!(failure.0.starts_with("the shell did not start: "), "{failure}");
    }

    #[tokio::test]
    async fn commands_see_only_the_environment_that_is_passed() {
        let of_shells = ["PWD", "OLDPWD", "SHLVL", "_"];
        let is_own = |name: &String| !PASSED.contains(&name.as_str()) && !of_shells.contains(&name.as_str());
        let own: Vec<String> = std::env::vars().map(|(name, _)| name).filter(is_own).collect();
        let (let_in, kept_out) = own.split_first().expect("a process has variables of its own");
        let folder = TempDir::new().unwrap();
        let shell = LocalShell::new(folder.path()).unwrap().env("ONLY_HERE", "this one").pass_env(let_in);
        let told = run_in(shell, json!({"command": "env -0"})).await.unwrap();
        let text = told["output"][0]["stdout"].as_str().unwrap();
        let seen: Vec<(&str, &str)> = text.split('\0').filter_map(|variable| variable.split_once('=')).collect();
        assert!(seen.contains(&("ONLY_HERE", "this one")), "{seen:?}");
        assert!(seen.contains(&(let_in, std::env::var(let_in).unwrap().as_str())), "{seen:?}");
        assert!(kept_out.iter().all(|name| !seen.iter().any(|(seen, _)| seen == name)), "{seen:?}");
    }

    #[tokio::test]
    async fn a_secret_that_a_command_prints_does_not_reach_the_model() {
        let folder = TempDir::new().unwrap();
        let shell = LocalShell::new(folder.path()).unwrap().env("API_KEY", "sk-0123456789").env("MODE", "production");
        let shell = shell.env("OTHER", "also-a-secret").keep_secret(&"also-a-secret".to_owned().into());
        let shown = format!("{shell:?}");
        assert!(shown.contains("API_KEY") && !shown.contains("sk-01"), "{shown}");
        let call = json!({"command": "echo $API_KEY $MODE; echo $OTHER >&2"});
        let told = run_in(shell, call).await.unwrap();
        assert_eq!(told["output"][0], exit("[redacted] production\n", "[redacted]\n", 0));
    }

    #[tokio::test]
    async fn output_beyond_the_bound_is_cut_and_says_so() {
        let folder = TempDir::new().unwrap();
        let shell = LocalShell::new(folder.path()).unwrap().output_bytes_max(20);
        let call = json!({"commands": ["printf 0123456789abcdef; printf ok >&2", "printf 0123456789"]});
        let told = run_in(shell, call).await.unwrap();
        assert_eq!(told["output"][0], exit("0123456789\n[cut here: 6 more bytes]", "ok", 0));
        assert_eq!(told["output"][1], exit("0123\n[cut here: 6 more bytes]", "", 0));
    }

    #[tokio::test]
    async fn a_call_can_ask_for_less_output_and_never_for_more() {
        let folder = TempDir::new().unwrap();
        let shell = LocalShell::new(folder.path()).unwrap().output_bytes_max(8);
        for (wanted, kept) in [(4, "ab"), (1_000_000, "abcd"), (0, "")] {
            let call = json!({"command": "printf abcdefgh", "max_output_length": wanted});
            let told = run_in(shell.clone(), call).await.unwrap();
            let expected = format!("{kept}\n[cut here: {} more bytes]", 8 - kept.len());
            assert_eq!(told["output"][0]["stdout"], expected, "{wanted}");
        }
    }

    #[tokio::test]
    async fn a_character_is_not_cut_in_two() {
        let folder = TempDir::new().unwrap();
        let shell = LocalShell::new(folder.path()).unwrap().output_bytes_max(6);
        let told = run_in(shell, json!({"command": "printf 'aéé'"})).await.unwrap();
        assert_eq!(told["output"][0]["stdout"], "aé\n[cut here: 2 more bytes]");
        let shell = LocalShell::new(folder.path()).unwrap().output_bytes_max(4);
        let told = run_in(shell, json!({"command": "printf 'aé'"})).await.unwrap();
        assert_eq!(told["output"][0]["stdout"], "a\n[cut here: 1 more bytes]");
    }

    #[tokio::test]
    async fn the_largest_output_of_the_worst_bytes_is_still_told() {
        let folder = TempDir::new().unwrap();
        let shell = LocalShell::new(folder.path()).unwrap().output_bytes_max(usize::MAX);
        let print = format!("head -c {0} /dev/zero; head -c {0} /dev/zero >&2", LocalShell::OUTPUT_BYTES_MAX);
        let told = run_in(shell, json!({"command": print})).await.unwrap();
        let stdout = told["output"][0]["stdout"].as_str().unwrap();
        assert!(stdout.starts_with(&"\0".repeat(LocalShell::OUTPUT_BYTES_MAX / 2)));
    }

    #[tokio::test]
    async fn a_command_that_prints_without_end_is_stopped_in_time() {
        let folder = TempDir::new().unwrap();
        let shell = LocalShell::new(folder.path()).unwrap().output_bytes_max(8);
        let told = run_in(shell, json!({"commands": ["yes"], "timeout_ms": 500})).await.unwrap();
        assert_eq!(told["output"][0]["outcome"], json!({"type": "timeout"}));
        assert!(told["output"][0]["stdout"].as_str().unwrap().starts_with("y\ny\n\n[cut here: "));
    }

    #[tokio::test]
    async fn a_call_can_ask_for_less_time_and_never_for_more() {
        let folder = TempDir::new().unwrap();
        let patient = LocalShell::new(folder.path()).unwrap();
        let hasty = patient.clone().timeout(Duration::from_millis(500));
        let calls = [
            (patient, json!({"commands": ["echo a; sleep 1000", "echo b"], "timeout_ms": 500})),
            (hasty, json!({"commands": ["echo a; sleep 1000", "echo b"], "timeout_ms": 9_000_000})),
        ];
        for (shell, call) in calls {
            let told = tokio::time::timeout(SOON, run_in(shell, call)).await.unwrap().unwrap();
            let stopped = json!({"stdout": "a\n", "stderr": "", "outcome": {"type": "timeout"}});
            assert_eq!(told, json!({"output": [stopped]}), "what follows a command that ran out of time does not run");
        }
    }

    /// A command that starts another one in the background. Both hold the pipe `alive` open for as long as they live;
    /// opening it waits for the reader, so that neither side can miss the other.
    fn holding(folder: &Path, end: &str) -> Value {
        let made = std::process::Command::new("mkfifo").arg(folder.join("alive")).status().unwrap();
        assert!(made.success());
        json!({"command": format!("exec 3>alive; sleep 1000 & echo started >&3; {end}")})
    }

    /// Reads the pipe to its end, which comes when the last holder is gone.
    fn all_gone(folder: &Path) -> tokio::task::JoinHandle<String> {
        let alive = folder.join("alive");
        tokio::task::spawn_blocking(move || std::fs::read_to_string(alive).unwrap())
    }

    async fn soon<T>(what: impl Future<Output = T>) -> T {
        tokio::time::timeout(SOON, what).await.expect("within the time that a test may take")
    }

    #[tokio::test]
    async fn a_command_out_of_time_is_killed_with_all_that_it_started() {
        let folder = TempDir::new().unwrap();
        let mut call = holding(folder.path(), "wait");
        call["timeout_ms"] = json!(1_000);
        let gone = all_gone(folder.path());
        let told = soon(run_in(LocalShell::new(folder.path()).unwrap(), call)).await.unwrap();
        assert_eq!(told["output"][0]["outcome"], json!({"type": "timeout"}));
        assert_eq!(soon(gone).await.unwrap(), "started\n");
    }

    #[tokio::test]
    async fn a_command_leaves_nothing_in_the_background() {
        let folder = TempDir::new().unwrap();
        let call = holding(folder.path(), "exit 0");
        let gone = all_gone(folder.path());
        let told = soon(run_in(LocalShell::new(folder.path()).unwrap(), call)).await.unwrap();
        assert_eq!(told["output"][0], exit("", "", 0));
        assert_eq!(soon(gone).await.unwrap(), "started\n");
    }

    #[tokio::test]
    async fn a_cancelled_run_kills_the_command_with_all_that_it_started() {
        let folder = TempDir::new().unwrap();
        let call = arguments(&holding(folder.path(), "echo ready > ready.tmp; mv ready.tmp ready; wait"));
        let (context, gone) = (context(), all_gone(folder.path()));
        let cancelled = context.cancelled.clone();
        let runner = ShellRunner(LocalShell::new(folder.path()).unwrap());
        let running = tokio::spawn(async move { runner.run(context, call).await });
        let ready = folder.path().join("ready");
        soon(async {
            while !ready.exists() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        cancelled.cancel();
        let failure = soon(running).await.unwrap().unwrap_err();
        assert_eq!(failure.0, "the run was cancelled; the command was killed");
        assert_eq!(soon(gone).await.unwrap(), "started\n");
    }

    #[tokio::test]
    async fn a_call_that_is_dropped_kills_the_command_with_all_that_it_started() {
        let folder = TempDir::new().unwrap();
        let call = arguments(&holding(folder.path(), "echo ready > ready.tmp; mv ready.tmp ready; wait"));
        let gone = all_gone(folder.path());
        let runner = ShellRunner(LocalShell::new(folder.path()).unwrap());
        let ready = folder.path().join("ready");
        {
            let running = runner.run(context(), call);
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

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn what_escapes_the_group_does_not_keep_the_call() {
        let folder = TempDir::new().unwrap();
        for name in ["escaped", "end"] {
            let made = std::process::Command::new("mkfifo").arg(folder.path().join(name)).status().unwrap();
            assert!(made.success());
        }
        // Once it has escaped it says so, and holds the output open until it is let go below.
        let escape = "setsid sh -c 'echo > escaped; read line < end' & read line < escaped";
        let call = json!({"command": format!("echo before; {escape}")});
        let told = soon(run_in(LocalShell::new(folder.path()).unwrap(), call)).await.unwrap();
        assert_eq!(told["output"][0]["stdout"], "before\n");
        let end = folder.path().join("end");
        soon(tokio::task::spawn_blocking(move || std::fs::write(end, "go\n").unwrap())).await.unwrap();
    }
}
