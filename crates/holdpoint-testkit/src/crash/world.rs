//! The world outside: what tools did to it. It survives every process.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Effects, in the order in which they happened.
#[derive(Clone)]
pub struct World(Arc<Parts>);

struct Parts {
    memory: Mutex<Vec<Effect>>,
    file: Option<PathBuf>,
    processes: AtomicU32,
}

/// One thing that a tool did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The call's idempotency key.
    pub key: String,
    /// The tool.
    pub tool: String,
    /// The arguments it ran with, exactly.
    pub arguments: String,
}

impl World {
    /// A world in memory.
    pub fn in_memory() -> Self {
        Self(Arc::new(Parts { memory: Mutex::default(), file: None, processes: AtomicU32::new(0) }))
    }

    /// A world in a file that several processes write to.
    pub fn in_file(path: &Path) -> Self {
        let file = Some(path.to_owned());
        Self(Arc::new(Parts { memory: Mutex::default(), file, processes: AtomicU32::new(0) }))
    }

    /// Something happened.
    ///
    /// # Panics
    /// The file cannot be written.
    pub fn happen(&self, effect: Effect) {
        match &self.0.file {
            None => self.0.memory.lock().unwrap_or_else(PoisonError::into_inner).push(effect),
            Some(path) => {
                let line = format!("{}\t{}\t{}\n", effect.key, effect.tool, effect.arguments);
                let mut file: File =
                    OpenOptions::new().create(true).append(true).open(path).expect("the world's file opens");
                file.write_all(line.as_bytes()).expect("the world's file takes a line");
            }
        }
    }

    /// Everything that happened.
    ///
    /// # Panics
    /// The file cannot be read.
    pub fn effects(&self) -> Vec<Effect> {
        let Some(path) = &self.0.file else {
            return self.0.memory.lock().unwrap_or_else(PoisonError::into_inner).clone();
        };
        let mut text = String::new();
        if let Ok(mut file) = File::open(path) {
            file.read_to_string(&mut text).expect("the world's file is text");
        }
        text.lines().filter_map(read_line).collect()
    }

    /// How often the call with this key took effect.
    pub fn count(&self, key: &str) -> usize {
        self.effects().iter().filter(|effect| effect.key == key).count()
    }

    pub(super) fn next_process(&self) -> u32 {
        self.0.processes.fetch_add(1, Ordering::SeqCst)
    }
}

fn read_line(line: &str) -> Option<Effect> {
    let mut fields = line.splitn(3, '\t');
    let mut next = || fields.next().map(str::to_owned);
    Some(Effect { key: next()?, tool: next()?, arguments: next()? })
}
