//! Whose turn it is to write to a session. Within one process those of a session wait here, where waiting costs no
//! connection; between processes the database's locks see to it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use holdpoint_core::ids::SessionId;
use tokio::sync::{Mutex, MutexGuard};

/// How many sessions can be told apart. Two that fall together only wait for each other.
const LANES: usize = 1_024;

pub(crate) struct Turns(Vec<Mutex<()>>);

impl Default for Turns {
    fn default() -> Self {
        Self((0..LANES).map(|_| Mutex::default()).collect())
    }
}

impl Turns {
    pub(crate) async fn wait(&self, session: &SessionId) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        session.as_str().hash(&mut hasher);
        self.0[hasher.finish() as usize % LANES].lock().await
    }
}
