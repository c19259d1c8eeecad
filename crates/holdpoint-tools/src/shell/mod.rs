//! Commands in a shell. What is approved is the list of commands; the shell gets exactly these strings.
//!
//! There is no hosted shell here, one that a provider runs: nothing of it could be held.

#[cfg(unix)]
mod local;

#[cfg(test)]
mod tests;

use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::json::{CanonicalJson, Limits};
use holdpoint_core::message::Content;
use holdpoint_runtime::ports::tool::{RunTool, Tool, ToolBuilder, ToolContext, ToolFailure, ToolShape};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[cfg(unix)]
pub use local::LocalShell;

/// Makes shell tools.
pub struct ShellTool;

impl ShellTool {
    /// How many commands one call may have.
    pub const COMMANDS_MAX: usize = 32;

    /// A tool named `shell` whose commands this executor runs. Approval is set as on every tool; held by nobody unless
    /// said so.
    ///
    /// Its arguments are `{"commands": ["…"], "timeout_ms"?, "max_output_length"?}`, or `{"command": "…"}` for one. A
    /// call can ask for less time and less output than the executor allows, never for more. It answers
    /// `{"output": [{"stdout", "stderr", "outcome": {"type": "exit", "exit_code"} | {"type": "timeout"}}]}`.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use holdpoint_tools::shell::{LocalShell, ShellTool};
    ///
    /// let tool = ShellTool::builder(LocalShell::new("/tmp")?).needs_approval(true).build()?;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(executor: impl ShellExecutor) -> ToolBuilder {
        Tool::builder("shell")
            .description("Runs commands in a shell, one after the other, and gives back what they print.")
            .schema(schema())
            .shape(ToolShape::Shell)
            .runner(ShellRunner(executor))
    }
}

/// What runs the commands of a shell tool.
#[async_trait]
pub trait ShellExecutor: Send + Sync + 'static {
    /// Runs the commands in order, and stops after one that ran out of time.
    ///
    /// # Errors
    /// What the model is told when the shell itself did not work. A command that fails is no error here.
    async fn execute(&self, context: &ToolContext, action: ShellAction) -> Result<Vec<CommandOutput>, ToolFailure>;
}

/// What a call asks a shell to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellAction {
    /// The commands, exactly as they were approved.
    pub commands: Vec<String>,
    /// How long each may take, if the model asks for less than usual.
    pub timeout: Option<Duration>,
    /// How many bytes of output are wanted, if the model asks for less than usual.
    pub output_bytes_max: Option<usize>,
}

impl ShellAction {
    /// Reads a call's arguments in either form. A predicate that looks at commands should use this.
    ///
    /// # Errors
    /// Neither or both of `commands` and `command`, a command that is empty or has a NUL, a bound that is none.
    pub fn read(arguments: &Value) -> Result<Self, String> {
        Self::check(Body::deserialize(arguments))
    }

    fn check(body: serde_json::Result<Body>) -> Result<Self, String> {
        let body = body.map_err(|error| format!("commands expected: {error}"))?;
        let commands = match (body.commands, body.command) {
            (Some(commands), None) => commands,
            (None, Some(command)) => vec![command],
            _ => return Err("either commands or one command expected".to_owned()),
        };
        let is_command = |command: &String| !command.trim().is_empty() && !command.contains('\0');
        if !(1..=ShellTool::COMMANDS_MAX).contains(&commands.len()) || !commands.iter().all(is_command) {
            return Err(format!("1 to {} commands that are not empty expected", ShellTool::COMMANDS_MAX));
        }
        if body.timeout_ms == Some(0) {
            return Err("a timeout_ms of at least 1 expected".to_owned());
        }
        let timeout = body.timeout_ms.map(Duration::from_millis);
        Ok(Self { commands, timeout, output_bytes_max: body.max_output_length })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    commands: Option<Vec<String>>,
    command: Option<String>,
    timeout_ms: Option<u64>,
    max_output_length: Option<usize>,
}

/// What one command printed, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandOutput {
    /// What it printed; says so where it was cut.
    pub stdout: String,
    /// What it complained of; says so where it was cut.
    pub stderr: String,
    /// How it ended.
    pub outcome: CommandOutcome,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CommandOutcome {
    /// By itself.
    Exit {
        /// Its exit code; 128 and the signal's number where a signal ended it; `None` where it is not known.
        exit_code: Option<i32>,
    },
    /// It ran out of time and was killed.
    Timeout,
}

struct ShellRunner<E>(E);

#[async_trait]
impl<E: ShellExecutor> RunTool for ShellRunner<E> {
    async fn run(&self, context: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        let action = ShellAction::check(arguments.decode()).map_err(ToolFailure)?;
        let output = self.0.execute(&context, action).await?;
        told(&output)
    }
}

fn told(output: &[CommandOutput]) -> Result<Content, ToolFailure> {
    // Control characters take six bytes each in JSON, so the usual bound would be met by what an executor may print.
    let limits = Limits { bytes_max: 4 << 20, ..Limits::default() };
    let text = serde_json::to_string(&json!({ "output": output })).map_err(ToolFailure::new)?;
    CanonicalJson::parse_within(&text, &limits).map(Content::Json).map_err(ToolFailure::new)
}

/// Either `commands` or `command`, without the combinators that providers refuse at the top of a schema.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "commands": {
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "minItems": 1,
                "maxItems": ShellTool::COMMANDS_MAX,
                "description": "The commands, run one after the other, each in a shell of its own.",
            },
            "command": {"type": "string", "minLength": 1, "description": "One command, in place of `commands`."},
            "timeout_ms": {
                "type": ["integer", "null"],
                "minimum": 1,
                "description": "How long each command may take, in milliseconds.",
            },
            "max_output_length": {
                "type": ["integer", "null"],
                "minimum": 0,
                "description": "How many bytes of output are wanted.",
            },
        },
        "additionalProperties": false,
        "if": {"required": ["command"]},
        "then": {"properties": {"commands": false}},
        "else": {"required": ["commands"]},
    })
}
