//! What lies on the shelf: each file with its digest, and what a reader must make of it.

use std::sync::Once;

use holdpoint_core::json::Digest;
use holdpoint_core::record;
use serde::{Deserialize, Serialize};

use crate::common::{self, next_line};
use crate::shelf::{Shelf, folder};
use crate::{refused, runs};

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Runs that every later version reads.
    pub records: Vec<Record>,
    /// Records that no version accepts.
    pub refused: Vec<Refused>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub file: String,
    pub format: u64,
    pub writer: String,
    pub sha256: String,
    /// What must be done next.
    pub next: String,
    /// What a person is shown.
    pub pauses: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    pub file: String,
    pub sha256: String,
    pub code: String,
    /// What the refusal's text has in it.
    pub says: String,
}

impl Manifest {
    /// The manifest. With `HOLDPOINT_WRITE_FIXTURES` set, what is missing is written first.
    pub fn read() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            if std::env::var_os("HOLDPOINT_WRITE_FIXTURES").is_some() {
                write_missing();
            }
        });
        Self::load()
    }

    fn load() -> Self {
        serde_json::from_slice(&std::fs::read(folder().join("MANIFEST.json")).unwrap()).unwrap()
    }

    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let records = self.records.iter().map(|record| (record.file.as_str(), record.sha256.as_str()));
        records.chain(self.refused.iter().map(|case| (case.file.as_str(), case.sha256.as_str())))
    }

    fn has(&self, file: &str) -> bool {
        self.files().any(|(listed, _)| listed == file)
    }
}

/// Writes the records that are not on the shelf yet; what is there stays as it is.
fn write_missing() {
    let path = folder().join("MANIFEST.json");
    let mut manifest = if path.exists() { Manifest::load() } else { Manifest::default() };
    for (name, world) in runs::all() {
        let file = format!("format-{}/{name}.json", record::FORMAT);
        if manifest.has(&file) {
            continue;
        }
        let text = Shelf::of(world.run.id(), &world.entries).to_text();
        manifest.records.push(Record {
            sha256: write(&file, &text),
            file,
            format: record::FORMAT,
            writer: concat!("holdpoint-core ", env!("CARGO_PKG_VERSION")).to_owned(),
            next: next_line(&world.run),
            pauses: common::pauses(&world.run),
        });
    }
    for case in refused::all() {
        let file = format!("refused/{}.json", case.name);
        if manifest.has(&file) {
            continue;
        }
        let (code, says) = (case.code.to_owned(), case.says.to_owned());
        manifest.refused.push(Refused { sha256: write(&file, &case.text), file, code, says });
    }
    std::fs::write(path, serde_json::to_string_pretty(&manifest).unwrap() + "\n").unwrap();
}

/// Writes a new file, and gives its digest.
fn write(file: &str, text: &str) -> String {
    let path = folder().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(!path.exists(), "{file} exists, and is not in the manifest");
    std::fs::write(path, text).unwrap();
    Digest::of(text.as_bytes()).to_string()
}
