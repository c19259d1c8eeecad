//! The markdown files that are ours: not what was built, installed or hidden.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

const NOT_OURS: [&str; 2] = ["target", "node_modules"];

/// Every `*.md` under `root`, as paths relative to it, sorted. Symbolic links are not followed.
pub(super) fn markdown_under(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let path = root.join(&folder);
        for entry in fs::read_dir(&path).with_context(|| format!("listing {}", path.display()))? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let relative = folder.join(entry.file_name());
            if kind.is_dir() && is_ours(&entry.file_name().to_string_lossy()) {
                folders.push(relative);
            } else if kind.is_file() && relative.extension().is_some_and(|extension| extension == "md") {
                found.push(relative);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_ours(folder: &str) -> bool {
    !folder.starts_with('.') && !NOT_OURS.contains(&folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_installed_and_hidden_folders_are_not_ours() {
        assert!(is_ours("docs"));
        assert!(!is_ours("target"));
        assert!(!is_ours("node_modules"));
        assert!(!is_ours(".git"));
    }

    #[test]
    fn this_repository_has_its_contributing_page() {
        let found = markdown_under(&crate::root::directory()).unwrap();
        assert!(found.contains(&PathBuf::from("CONTRIBUTING.md")), "{found:?}");
    }
}
