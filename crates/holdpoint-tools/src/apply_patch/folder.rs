//! Edits files below one folder. Everything is checked and written aside before anything is changed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use holdpoint_core::text::is_plain;
use holdpoint_runtime::ports::tool::ToolContext;
use tempfile::NamedTempFile;

use crate::apply_patch::{ApplyPatchTool, PatchEditor, PatchOperation, diff};

/// Edits text files below a folder, one call at a time.
///
/// A path is relative to the folder. One that is absolute, has a `..` or a character that does not show, or leads
/// through a symbolic link is refused, wherever the link leads: the file that is changed is the one that was shown. A
/// file is replaced as a whole, so that a reader sees the old text or the new one. If something goes wrong in the
/// middle of several files, those that were changed are put back.
///
/// Whoever can change the folder's own structure at the same moment can win against these checks, and could as well
/// change the files.
#[derive(Debug, Clone)]
pub struct FolderEditor {
    root: PathBuf,
    file_bytes_max: usize,
    turn: Arc<Mutex<()>>,
}

impl FolderEditor {
    /// How many bytes a file may have, before and after, unless said otherwise.
    pub const FILE_BYTES: usize = 4 << 20;

    /// How many folders a path may lead through.
    pub const DEPTH_MAX: usize = 32;

    /// An editor of the files below this folder.
    ///
    /// # Errors
    /// There is no such folder.
    pub fn new(root: impl AsRef<Path>) -> io::Result<Self> {
        let root = root.as_ref().canonicalize()?;
        if !root.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { root, file_bytes_max: Self::FILE_BYTES, turn: Arc::default() })
    }

    /// How many bytes a file may have, before and after.
    #[must_use]
    pub fn file_bytes_max(mut self, bytes: usize) -> Self {
        self.file_bytes_max = bytes;
        self
    }

    /// Does all operations, or none.
    fn apply_now(&self, operations: &[PatchOperation]) -> Result<String, String> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut targets = BTreeSet::new();
        let mut changes = Vec::new();
        for operation in operations {
            let of_file = |problem: String| format!("{}: {problem}", operation.path());
            let change = self.plan(operation).map_err(of_file)?;
            if !targets.insert(change.target.clone()) {
                return Err(of_file("one operation for each file expected".to_owned()));
            }
            changes.push(change);
        }
        let mut made = Undo::default();
        let done = stage(&self.root, &changes, &mut made).and_then(|staged| commit(&changes, staged, &mut made));
        match done {
            Ok(()) => Ok(operations.iter().map(said).collect::<Vec<_>>().join("\n")),
            Err(problem) => Err(format!("{problem}; {}", made.undo())),
        }
    }

    /// Checks an operation against what is there, and changes nothing.
    fn plan(&self, operation: &PatchOperation) -> Result<Change, String> {
        let target = self.resolve(operation.path())?;
        let found = fs::symlink_metadata(&target).ok();
        if found.as_ref().is_some_and(|found| !found.is_file()) {
            return Err("it is not a regular file".to_owned());
        }
        match operation {
            PatchOperation::CreateFile { .. } if found.is_some() => Err("it exists already".to_owned()),
            PatchOperation::CreateFile { diff, .. } => {
                let text = diff::create(diff).map_err(|problem| problem.to_string())?;
                Ok(Change { target, old: None, new: Some(self.bounded(text)?) })
            }
            PatchOperation::UpdateFile { .. } | PatchOperation::DeleteFile { .. } if found.is_none() => {
                Err("it does not exist".to_owned())
            }
            PatchOperation::UpdateFile { diff, .. } => {
                let old = self.read(&target)?;
                let text = std::str::from_utf8(&old.bytes).map_err(|_| "it is not text".to_owned())?;
                let text = diff::update(text, diff).map_err(|problem| problem.to_string())?;
                let new = Some(self.bounded(text)?);
                Ok(Change { target, old: Some(old), new })
            }
            PatchOperation::DeleteFile { .. } => {
                let old = self.read(&target)?;
                Ok(Change { target, old: Some(old), new: None })
            }
        }
    }

    fn bounded(&self, text: String) -> Result<String, String> {
        if text.len() > self.file_bytes_max { Err(self.too_large(text.len() as u64)) } else { Ok(text) }
    }

    fn too_large(&self, bytes: u64) -> String {
        format!("it has or would have {bytes} bytes, at most {} are accepted", self.file_bytes_max)
    }

    fn read(&self, target: &Path) -> Result<Old, String> {
        let told = |error: io::Error| format!("it cannot be read: {error}");
        let found = fs::metadata(target).map_err(told)?;
        if found.len() > self.file_bytes_max as u64 {
            return Err(self.too_large(found.len()));
        }
        Ok(Old { bytes: fs::read(target).map_err(told)?, permissions: found.permissions() })
    }

    /// The file that a path means. No part of it below the root is a link.
    fn resolve(&self, path: &str) -> Result<PathBuf, String> {
        let refused = |problem: &str| Err(problem.to_owned());
        if path.is_empty() || path.len() > ApplyPatchTool::PATH_BYTES_MAX {
            return refused("a path of 1 to 1024 bytes expected");
        }
        if !path.chars().all(is_plain) {
            return refused("a path without characters that do not show expected");
        }
        if path.ends_with(['/', '\\']) {
            return refused("the path of a file expected");
        }
        let mut target = self.root.clone();
        let mut depth = 0;
        for component in Path::new(path).components() {
            match component {
                Component::CurDir => {}
                Component::Normal(name) => {
                    target.push(name);
                    depth += 1;
                    check_place(&target)?;
                }
                _ => return refused("a path below the folder expected, without `..` and not absolute"),
            }
        }
        if depth == 0 || depth > Self::DEPTH_MAX {
            return refused("the path of a file expected, not too deep");
        }
        Ok(target)
    }
}

fn check_place(target: &Path) -> Result<(), String> {
    match fs::symlink_metadata(target) {
        Ok(found) if found.is_symlink() => Err("it leads through a symbolic link".to_owned()),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(format!("it cannot be reached: {error}")),
    }
}

#[async_trait]
impl PatchEditor for FolderEditor {
    async fn apply(&self, _: &ToolContext, operations: Vec<PatchOperation>) -> Result<String, String> {
        let editor = self.clone();
        // Once begun it is finished, also when nobody waits any more: half a patch is worse than one nobody reads of.
        let applied = tokio::task::spawn_blocking(move || editor.apply_now(&operations)).await;
        applied.unwrap_or_else(|error| Err(format!("the editor stopped: {error}")))
    }
}

/// What an operation comes to: a file that comes (`new` alone), goes (`old` alone) or changes.
struct Change {
    target: PathBuf,
    old: Option<Old>,
    new: Option<String>,
}

struct Old {
    bytes: Vec<u8>,
    permissions: fs::Permissions,
}

fn said(operation: &PatchOperation) -> String {
    match operation {
        PatchOperation::CreateFile { path, .. } => format!("created {path}"),
        PatchOperation::UpdateFile { path, .. } => format!("updated {path}"),
        PatchOperation::DeleteFile { path } => format!("deleted {path}"),
    }
}

/// Writes every new text beside its place. A full disk is met here, before anything has changed.
fn stage(root: &Path, changes: &[Change], made: &mut Undo<'_>) -> Result<Vec<Option<NamedTempFile>>, String> {
    let told = |change: &Change, error: io::Error| format!("{} cannot be written: {error}", name(root, &change.target));
    let mut staged = Vec::with_capacity(changes.len());
    for change in changes {
        staged.push(match &change.new {
            Some(text) => Some(stage_one(change, text, made).map_err(|error| told(change, error))?),
            None => None,
        });
    }
    Ok(staged)
}

fn stage_one(change: &Change, text: &str, made: &mut Undo<'_>) -> io::Result<NamedTempFile> {
    let folder = change.target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    made.folders(folder)?;
    write_beside(folder, text.as_bytes(), change.old.as_ref().map(|old| &old.permissions))
}

fn write_beside(folder: &Path, bytes: &[u8], permissions: Option<&fs::Permissions>) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".holdpoint-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Narrowed by the process's mask, as for any new file.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions.clone())?;
    }
    file.as_file().sync_all()?;
    Ok(file)
}

fn commit<'a>(changes: &'a [Change], staged: Vec<Option<NamedTempFile>>, made: &mut Undo<'a>) -> Result<(), String> {
    for (change, staged) in changes.iter().zip(staged) {
        let target = &change.target;
        let done = match (staged, &change.old) {
            (Some(file), None) => file.persist_noclobber(target).map(drop).map_err(|error| error.error),
            (Some(file), Some(_)) => file.persist(target).map(drop).map_err(|error| error.error),
            (None, _) => fs::remove_file(target),
        };
        done.map_err(|error| format!("a file cannot be replaced: {error}"))?;
        made.changed.push(change);
    }
    let folders: BTreeSet<&Path> = changes.iter().filter_map(|change| change.target.parent()).collect();
    // What was renamed is there for every reader; whether it outlives a power cut is all that is at stake here.
    folders.into_iter().for_each(|folder| {
        let _ = fs::File::open(folder).and_then(|folder| folder.sync_all());
    });
    Ok(())
}

fn name(root: &Path, target: &Path) -> String {
    target.strip_prefix(root).unwrap_or(target).display().to_string()
}

/// What was done so far, so that it can be put back.
#[derive(Default)]
struct Undo<'a> {
    folders: Vec<PathBuf>,
    changed: Vec<&'a Change>,
}

impl Undo<'_> {
    /// Makes the folders that are missing, outermost first.
    fn folders(&mut self, folder: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = folder.ancestors().take_while(|place| !place.exists()).collect();
        for place in missing.into_iter().rev() {
            fs::create_dir(place)?;
            self.folders.push(place.to_owned());
        }
        Ok(())
    }

    /// Puts everything back, last first, and says whether that worked.
    fn undo(self) -> String {
        let mut is_whole = true;
        for change in self.changed.into_iter().rev() {
            is_whole &= put_back(change).is_ok();
        }
        for folder in self.folders.iter().rev() {
            is_whole &= fs::remove_dir(folder).is_ok();
        }
        let told =
            if is_whole { "nothing was changed" } else { "not every file could be put back: look at the folder" };
        told.to_owned()
    }
}

fn put_back(change: &Change) -> io::Result<()> {
    let Some(old) = &change.old else { return fs::remove_file(&change.target) };
    let folder = change.target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let file = write_beside(folder, &old.bytes, Some(&old.permissions))?;
    file.persist(&change.target).map(drop).map_err(|error| error.error)
}
