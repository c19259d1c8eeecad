//! Tools that work on this machine: commands in a shell, changes to files, programs of the operator.

use std::path::Path;

use holdpoint_config::{ApplyPatchConfig, CommandTool as CommandSpec, ShellConfig};
use holdpoint_runtime::ports::tool::ToolBuilder;
use holdpoint_tools::apply_patch::{ApplyPatchTool, FolderEditor};
use holdpoint_tools::command::{CommandTool, LocalCommand};
use holdpoint_tools::shell::{LocalShell, ShellTool};
use secrecy::ExposeSecret as _;

use super::{secret, secrets, size, taken};
use crate::agents::build::Workshop;

pub(super) fn shell(config: &ShellConfig, workshop: &Workshop) -> Result<ToolBuilder, String> {
    let folder = workshop.folder(config.working_directory.as_deref());
    let mut shell = LocalShell::new(&folder).map_err(|error| no_folder(&folder, &error))?;
    for (name, value) in secrets(&config.env, workshop.environment())? {
        shell = shell.env(name, value.expose_secret());
    }
    for value in taken(config.env.values(), workshop.environment()) {
        shell = shell.keep_secret(&value);
    }
    if let Some(timeout) = config.timeout {
        shell = shell.timeout(timeout);
    }
    if let Some(bytes) = config.output_bytes_max {
        shell = shell.output_bytes_max(size(bytes));
    }
    Ok(ShellTool::builder(shell))
}

pub(super) fn apply_patch(config: &ApplyPatchConfig, workshop: &Workshop) -> Result<ToolBuilder, String> {
    let folder = workshop.folder(config.working_directory.as_deref());
    let mut editor = FolderEditor::new(&folder).map_err(|error| no_folder(&folder, &error))?;
    if let Some(bytes) = config.file_bytes_max {
        editor = editor.file_bytes_max(size(bytes));
    }
    Ok(ApplyPatchTool::builder(editor))
}

pub(super) fn command(spec: &CommandSpec, workshop: &Workshop) -> Result<ToolBuilder, String> {
    let part = |template| Ok(secret(template, workshop.environment())?.expose_secret().to_owned());
    let argv = spec.argv.iter().map(part).collect::<Result<Vec<String>, String>>()?;
    let folder = workshop.folder(spec.working_directory.as_deref());
    let mut command = LocalCommand::new(folder, argv).map_err(|error| error.to_string())?;
    for (name, value) in secrets(&spec.env, workshop.environment())? {
        command = command.env(name, value).map_err(|error| error.to_string())?;
    }
    for value in taken(spec.argv.iter().chain(spec.env.values()), workshop.environment()) {
        command = command.keep_secret(&value);
    }
    if let Some(timeout) = spec.timeout {
        command = command.timeout(timeout);
    }
    if let Some(bytes) = spec.output_bytes_max {
        command = command.output_bytes_max(size(bytes));
    }
    Ok(CommandTool::builder(&spec.name, command).description(&spec.description).schema(spec.parameters.clone()))
}

fn no_folder(folder: &Path, error: &std::io::Error) -> String {
    format!("working_directory {} cannot be used: {error}", folder.display())
}
