//! Files of a folder as text: the only place that touches a disk.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::too_many;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::limits::{FILE_BYTES_MAX, FILES_MAX};
use crate::source::{Source, Span};

/// The texts of a folder's `.yaml` and `.yml` files, in the order of their names. Hidden files, other files and folders
/// are passed over.
pub(super) fn sources(folder: &Path, problems: &mut Vec<Diagnostic>) -> Vec<Source> {
    let mut paths = match paths(folder) {
        Ok(paths) => paths,
        Err(error) => {
            problems.push(unreadable(folder, "the folder cannot be read", &error));
            return Vec::new();
        }
    };
    paths.sort();
    if paths.len() > FILES_MAX {
        let message = format!("the folder has {} files, at most {FILES_MAX} are read", paths.len());
        problems.push(too_many(folder.display().to_string(), message));
        return Vec::new();
    }
    paths.iter().filter_map(|path| read_source(path).map_err(|problem| problems.push(*problem)).ok()).collect()
}

fn paths(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if is_yaml && !is_hidden && !path.is_dir() {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// The text of one file, within the bound on its size.
pub(crate) fn read_source(path: &Path) -> Result<Source, Box<Diagnostic>> {
    let name = path.display().to_string();
    let fail = |error| Box::new(unreadable(path, "the file cannot be read", &error));
    let file = File::open(path).map_err(fail)?;
    if !file.metadata().map_err(fail)?.is_file() {
        let message = "this is not a file".to_owned();
        return Err(Box::new(Diagnostic::outside(name, Severity::Error, Code::FileUnreadable, message)));
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX);
    file.take(limit + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() > FILE_BYTES_MAX {
        let message = format!("the file has more than {FILE_BYTES_MAX} bytes");
        return Err(Box::new(Diagnostic::outside(name, Severity::Error, Code::FileTooLarge, message)));
    }
    String::from_utf8(bytes).map(|text| Source::new(name.clone(), text)).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let source = Source::new(name, String::from_utf8_lossy(error.as_bytes()));
        let span = Span { start: at, end: at + char::REPLACEMENT_CHARACTER.len_utf8() };
        let problem =
            Diagnostic::within(&source.into(), span, Severity::Error, Code::FileNotUtf8, "the file is not UTF-8");
        Box::new(problem.with_hint("save it with the encoding UTF-8"))
    })
}

fn unreadable(path: &Path, message: &str, error: &std::io::Error) -> Diagnostic {
    let reason = match error.kind() {
        std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission is denied".to_owned(),
        _ => error.to_string(),
    };
    let message = format!("{message}: {reason}");
    Diagnostic::outside(path.display().to_string(), Severity::Error, Code::FileUnreadable, message)
}
