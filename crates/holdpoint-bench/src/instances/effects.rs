//! Where the effects of tools are counted: outside of every instance, by the key that a call keeps whoever runs it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Counts what arrives.
#[derive(Clone)]
pub(super) struct Effects {
    address: SocketAddr,
    counted: Arc<Counted>,
}

struct Counted {
    /// How often each key came.
    keys: Mutex<HashMap<String, u32>>,
    /// Told when something came.
    came: watch::Sender<u64>,
    /// Whether calls that take a while may end.
    is_open: watch::Sender<bool>,
}

impl Effects {
    /// A counter on a free port.
    pub(super) async fn start() -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let counted = Arc::new(Counted {
            keys: Mutex::default(),
            came: watch::Sender::new(0),
            is_open: watch::Sender::new(false),
        });
        let effects = Self { address: listener.local_addr()?, counted: counted.clone() };
        let routes = Router::new().route("/now", post(now)).route("/held", post(held)).with_state(counted);
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(effects)
    }

    /// Where tools find it.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How often calls of this run came under each of their keys.
    pub(super) fn of_run(&self, run: &str) -> Vec<u32> {
        let keys = self.counted.keys();
        keys.iter().filter(|(key, _)| key.split(':').next() == Some(run)).map(|(_, times)| *times).collect()
    }

    /// All of them, by run: how often calls of it came under each of their keys.
    pub(super) fn by_run(&self) -> HashMap<String, Vec<u32>> {
        let mut runs: HashMap<String, Vec<u32>> = HashMap::new();
        for (key, times) in self.counted.keys().iter() {
            let run = key.split(':').next().unwrap_or_default();
            runs.entry(run.to_owned()).or_default().push(*times);
        }
        runs
    }

    /// Waits until calls of this run have come so often.
    pub(super) async fn wait_for(&self, run: &str, times: u32) -> Result<()> {
        let mut came = self.counted.came.subscribe();
        came.wait_for(|_| self.of_run(run).iter().sum::<u32>() >= times).await?;
        Ok(())
    }

    /// Lets calls that take a while end.
    pub(super) fn let_go(&self) {
        self.counted.is_open.send_replace(true);
    }

    /// Lets none of them end any more.
    pub(super) fn hold(&self) {
        self.counted.is_open.send_replace(false);
    }
}

impl Counted {
    fn keys(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, headers: &HeaderMap) {
        let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).unwrap_or("without a key");
        *self.keys().entry(key.to_owned()).or_default() += 1;
        self.came.send_modify(|came| *came += 1);
    }
}

async fn now(State(counted): State<Arc<Counted>>, headers: HeaderMap) -> &'static str {
    counted.count(&headers);
    "booked"
}

async fn held(State(counted): State<Arc<Counted>>, headers: HeaderMap) -> &'static str {
    counted.count(&headers);
    let mut is_open = counted.is_open.subscribe();
    // The counter outlives the trial, which lets everything go before it ends.
    let _ = is_open.wait_for(|is_open| *is_open).await;
    "booked"
}
