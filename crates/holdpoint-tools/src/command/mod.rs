//! Tools that are programs on this machine. What is approved is the arguments; the program reads exactly these bytes.

mod local;

#[cfg(test)]
mod tests;

use std::process::ExitStatus;

use async_trait::async_trait;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_core::text::visible;
use holdpoint_runtime::ports::tool::{RunTool, Tool, ToolBuilder, ToolContext, ToolFailure};

pub use local::{BadCommand, LocalCommand};

use crate::clip::clip;
use local::{Ended, Printed};

/// Makes tools of commands.
pub struct CommandTool;

impl CommandTool {
    /// The variable in which a command finds its call's key: the same for every attempt at one call, and for no other.
    pub const IDEMPOTENCY_KEY: &'static str = "HOLDPOINT_IDEMPOTENCY_KEY";

    /// A tool of this name that runs this command. Description, schema, effect and approval are set as on every tool.
    ///
    /// The command reads the arguments as JSON from its standard input. What it prints is the result: JSON where it is
    /// an object or a list, else text. An exit code other than 0 is a failure, told with what it printed as an error.
    ///
    /// ```
    /// use holdpoint_tools::command::{CommandTool, LocalCommand};
    ///
    /// let command = LocalCommand::new("/tmp", ["wc", "-c"])?;
    /// let tool = CommandTool::builder("count", command).description("Counts bytes.").needs_approval(true).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(name: impl Into<String>, command: LocalCommand) -> ToolBuilder {
        Tool::builder(name).runner(CommandRunner(command))
    }
}

struct CommandRunner(LocalCommand);

#[async_trait]
impl RunTool for CommandRunner {
    async fn run(&self, context: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        let program = self.0.program();
        match self.0.run(&context, arguments.as_bytes()).await {
            Ok(Ended::Exited(status, printed)) if status.success() => Ok(result(printed)),
            Ok(Ended::Exited(status, printed)) => {
                let how = how_it_ended(status);
                Err(ToolFailure(complaint(format!("{program} {how}"), printed)))
            }
            Ok(Ended::OutOfTime(after, printed)) => {
                let how = format!("{program} did not end within {after:?} and was killed");
                Err(ToolFailure(complaint(how, printed)))
            }
            Ok(Ended::Cancelled) => {
                Err(ToolFailure(format!("the run was cancelled; {program} was killed in the middle of its work")))
            }
            Err(error) => Err(ToolFailure(format!("{program} was not run: {error}"))),
        }
    }
}

fn result(printed: Printed) -> Content {
    let text = printed.stdout.trim_end_matches(['\r', '\n']);
    // A number or a word stays as it was printed: `007` and `1.50` are not JSON's to rewrite.
    let is_structured = text.trim_start().starts_with(['{', '[']);
    match is_structured.then(|| CanonicalJson::parse(text)) {
        Some(Ok(json)) => Content::Json(json),
        _ => Content::Text(text.to_owned()),
    }
}

fn how_it_ended(status: ExitStatus) -> String {
    match (status.code(), crate::process::exit_code(status)) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(code)) => format!("was ended by signal {}", code - 128),
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

/// What happened and what the command said about it, in words that show every character.
fn complaint(what: String, printed: Printed) -> String {
    let said = match printed.stderr.trim() {
        "" => clip(printed.stdout.trim(), LocalCommand::COMPLAINT_BYTES),
        complaint => complaint.to_owned(),
    };
    if said.is_empty() { what } else { format!("{what}: {}", visible(&said)) }
}
