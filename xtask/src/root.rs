//! Where the repository is, wherever the command was called from.

use std::path::{Path, PathBuf};

/// The repository's top folder: the one that holds `xtask/`.
pub(crate) fn directory() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().expect("xtask is a folder of the repository").to_path_buf()
}
