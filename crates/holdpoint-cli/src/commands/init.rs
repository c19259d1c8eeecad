//! `holdpoint init`: a folder to start from. A file that is there already is left as it is.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use console::style;
use holdpoint_server::agents::demo;

use crate::args::InitArgs;
use crate::exit::Exit;

const CONFIG: &str = include_str!("init/holdpoint.yaml");

/// Writes what is not there yet, and says what to do next.
///
/// # Errors
/// A folder or file cannot be written.
pub fn run(args: &InitArgs) -> Result<Exit> {
    let files = demo::FILES.iter().map(|(path, text)| (format!("agents/{path}"), *text));
    let files = std::iter::once(("holdpoint.yaml".to_owned(), CONFIG)).chain(files);
    let mut written = 0;
    for (path, text) in files {
        let is_new = write_new(&args.folder.join(&path), text)?;
        let sign = if is_new { style("+").green() } else { style("=").dim() };
        let about = if is_new { "" } else { " (was there, left as it is)" };
        out!("{sign} {path}{about}");
        written += usize::from(is_new);
    }
    out!();
    if written == 0 {
        out!("Everything was there already.");
    }
    let folder = args.folder.display();
    out!("Next:");
    out!("  cd {folder}");
    out!("  holdpoint check");
    out!("  holdpoint serve");
    for (agent, message, _) in demo::TRY.iter().take(1) {
        out!("  holdpoint run {agent} \"{message}\"");
    }
    Ok(Exit::Done)
}

/// Writes a file that is not there yet; says whether it was.
fn write_new(path: &Path, text: &str) -> Result<bool> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    }
    // Never over a file that came in the meantime.
    match fs::OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => {
            file.write_all(text.as_bytes()).with_context(|| format!("{} cannot be written", path.display()))?;
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error).with_context(|| format!("{} cannot be written", path.display())),
    }
}
