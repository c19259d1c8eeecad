//! A server on threads of its own, so that it can be killed.

use std::time::Duration;

use holdpoint_runtime::Runtime;
use holdpoint_server::agents::Catalogue;
use holdpoint_server::{Running, ServerConfig, serve};

/// A server that runs.
pub struct Served(Option<Parts>);

struct Parts {
    threads: tokio::runtime::Runtime,
    running: Running,
}

impl Served {
    pub async fn start(config: ServerConfig, runtime: Runtime, catalogue: Catalogue) -> Self {
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let config = ServerConfig { stop_grace: Duration::from_secs(5), ..config };
        let running = threads.spawn(async move { serve(config, runtime, catalogue).await }).await.unwrap().unwrap();
        Self(Some(Parts { threads, running }))
    }

    pub fn running(&self) -> &Running {
        &self.0.as_ref().unwrap().running
    }

    /// Stops it in good order.
    pub async fn stop(mut self) {
        let Parts { threads, running } = self.0.take().unwrap();
        threads.spawn(running.stop()).await.unwrap();
        threads.shutdown_background();
    }

    /// Kills it in the middle of whatever it does.
    pub async fn kill(mut self) {
        let Parts { threads, running } = self.0.take().unwrap();
        drop(running);
        tokio::task::spawn_blocking(move || threads.shutdown_timeout(Duration::from_secs(5))).await.unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(Parts { threads, running }) = self.0.take() {
            drop(running);
            threads.shutdown_background();
        }
    }
}

/// Everything that was ever written, to see that nothing was.
pub async fn everything(runtime: &Runtime) -> String {
    let mut all = String::new();
    for row in runtime.list_runs(&Default::default()).await.unwrap().runs {
        all += &format!("{row:?}\n{:?}\n", runtime.read_journal(row.run).await.unwrap());
    }
    all
}
