//! Start-up checks, the listener, and a stop that loses nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use holdpoint_runtime::Runtime;
use holdpoint_runtime::notices::{Dispatcher, DispatcherHandle};
use holdpoint_runtime::ports::notifier::{Destination, Notifier, NotifyRule};
use holdpoint_runtime::ports::store::{PauseFilter, StoreFault};
use holdpoint_runtime::worker::{Worker, WorkerHandle};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::access::{Access, Door};
use crate::agents::Catalogue;
use crate::app::App;
use crate::config::ServerConfig;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::requests::{BadCallbacks, Callbacks};
use crate::retention;
use crate::router::router;

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Anybody could come in.
    #[error(
        "{0} can be reached from other machines, and no credentials are configured: \
         listen on 127.0.0.1, or configure API keys or an identity provider"
    )]
    PublicWithoutCredentials(SocketAddr),
    /// Nobody could come in.
    #[error("credentials are asked for and none are configured: add an API key or an identity provider")]
    NoCredentials,
    /// Nobody could ever approve.
    #[error(
        "requester and approver are told to differ, and without credentials they are the same person: \
         configure credentials, or let the requester approve"
    )]
    SoloCannotDiffer,
    /// The address is taken, or not of this machine.
    #[error("{address} cannot be listened on")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the machine says.
        #[source]
        source: std::io::Error,
    },
    /// The store is out of order.
    #[error("the store is out of order")]
    Store(#[from] StoreFault),
    /// Callbacks could not be sent.
    #[error(transparent)]
    Callbacks(#[from] BadCallbacks),
}

/// A server that answers.
pub struct Running {
    address: SocketAddr,
    app: App,
    worker: WorkerHandle,
    dispatcher: DispatcherHandle,
    accepting: JoinHandle<()>,
    stop_accepting: CancellationToken,
    stop_grace: Duration,
}

/// Checks, listens, and answers until it is stopped.
///
/// # Errors
/// What an operator must change first; nothing is served then.
pub async fn serve(config: ServerConfig, runtime: Runtime, agents: Catalogue) -> Result<Running, StartError> {
    serve_with(config, runtime, agents, Metrics::default()).await
}

/// As [`serve`], with metrics that are also fed from elsewhere (see [`crate::telemetry`]).
///
/// # Errors
/// As [`serve`].
pub async fn serve_with(
    config: ServerConfig,
    runtime: Runtime,
    agents: Catalogue,
    metrics: Metrics,
) -> Result<Running, StartError> {
    check(&config)?;
    // Reading proves that the store is there, and that what it holds can be read.
    runtime.store().list_pauses(&PauseFilter { limit: 1, ..PauseFilter::open() }).await?;
    let unusable = |source| StartError::Listen { address: config.listen, source };
    let listener = TcpListener::bind(config.listen).await.map_err(unusable)?;
    let address = listener.local_addr().map_err(unusable)?;
    let callbacks = config.callbacks.map(Callbacks::new).transpose()?;
    let access = match config.credentials {
        None => Access::solo(Door::of_loopback(address, &config.hosts).with_origins(&config.origins)),
        Some(credentials) => {
            let door = Door::of_names(address, &config.hosts).with_origins(&config.origins);
            Access::with_credentials(door, credentials).requester_may_approve(config.requester_may_approve)
        }
    };
    let app = App::builder(runtime, agents, access)
        .limits(config.limits)
        .metrics(metrics)
        .callbacks(callbacks)
        .mastra_prefix(config.mastra_prefix)
        .slack(config.slack)
        .build();
    let durability = app.runtime().store().durability();
    tracing::info!(
        instance = app.runtime().settings().owner, %address, store = durability.store,
        survives_crash = durability.survives_crash, "serving"
    );
    let worker = Worker::new(app.runtime().clone(), app.sources()).spawn();
    let dispatcher = dispatcher(app.runtime(), config.notifiers).spawn();
    // Counted among the tasks: it sets runs in motion, also while the server stops.
    app.tasks().spawn(expire(app.clone()));
    if let Some(retention) = config.retention {
        tokio::spawn(retention::sweep(app.clone(), retention));
    }
    let stop_accepting = CancellationToken::new();
    let accepting = tokio::spawn(accept(listener, router(app.clone()), app.limits().clone(), stop_accepting.clone()));
    Ok(Running { address, app, worker, dispatcher, accepting, stop_accepting, stop_grace: config.stop_grace })
}

fn check(config: &ServerConfig) -> Result<(), StartError> {
    match &config.credentials {
        None if !config.listen.ip().is_loopback() => Err(StartError::PublicWithoutCredentials(config.listen)),
        None if !config.requester_may_approve => Err(StartError::SoloCannotDiffer),
        Some(credentials) if credentials.is_empty() => Err(StartError::NoCredentials),
        _ => Ok(()),
    }
}

/// Sends what people are to be told.
fn dispatcher(runtime: &Runtime, notifiers: Vec<(NotifyRule, Arc<dyn Notifier>)>) -> Dispatcher {
    let pairs = notifiers.into_iter().map(|(rule, notifier)| {
        if !runtime.settings().notify.contains(&rule) {
            tracing::warn!(destination = %rule.destination, "nothing is written down for a destination");
        }
        (rule.destination, notifier)
    });
    Dispatcher::new(runtime.clone(), pairs.collect::<Vec<(Destination, Arc<dyn Notifier>)>>())
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it shares.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// Takes no more requests, ends streams with a last frame, and lets runs come to a stop point. In the last quarter of the
    /// grace nothing more is begun, so that tools come to their end and others go on at once. What is still under way after
    /// the grace is left to the next process, which finds it in the store. The runtime moves no runs afterwards
    /// ([`Runtime::leave_runs`]): a program that goes on builds another one over the same store.
    pub async fn stop(self) {
        self.stop_accepting.cancel();
        self.app.stopping().cancel();
        self.app.tasks().close();
        let runtime = self.app.runtime().clone();
        let quiet = async {
            let (_, (), ()) = tokio::join!(self.accepting, self.worker.stop(), self.dispatcher.stop());
            // Last: requests that were under way may have set runs in motion until now.
            self.app.tasks().wait().await;
        };
        tokio::pin!(quiet);
        let last = self.stop_grace / 4;
        let is_quiet = tokio::time::timeout(self.stop_grace - last, &mut quiet).await.is_ok();
        runtime.leave_runs();
        if !is_quiet && tokio::time::timeout(last, quiet).await.is_err() {
            tracing::warn!("not everything came to a stop in time; what is under way goes on with the next start");
        }
    }

    /// Answers until the process is told to end (SIGTERM or Ctrl-C), then stops.
    ///
    /// # Errors
    /// The machine does not tell of signals.
    pub async fn until_told(self) -> std::io::Result<()> {
        told().await?;
        self.stop().await;
        Ok(())
    }
}

#[cfg(unix)]
async fn told() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        interrupted = tokio::signal::ctrl_c() => interrupted,
    }
}

#[cfg(not(unix))]
async fn told() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// Expires pauses whose time is up, whatever the worker is busy with, and lets their runs go on.
async fn expire(app: App) {
    let stop = app.stopping();
    while !stop.is_cancelled() {
        match app.runtime().expire_pauses(1_024).await {
            Ok(runs) => runs.into_iter().for_each(|run| app.go_on(run)),
            Err(error) => tracing::warn!(%error, "pauses could not be expired"),
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// How often it is looked for pauses whose time is up.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Takes connections until it is stopped, then lets those that are open come to their end.
async fn accept(listener: TcpListener, router: Router, limits: Limits, stop: CancellationToken) {
    let builder = Arc::new(builder(&limits));
    let slots = Arc::new(Semaphore::new(limits.connections_max));
    let open = GracefulShutdown::new();
    while let Some(stream) = next(&listener, &slots, &stop).await {
        let (stream, slot) = stream;
        // Frames are small and must arrive now.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
        let connection = open.watch(connection);
        tokio::spawn(async move {
            let _slot = slot;
            if let Err(error) = connection.await {
                tracing::debug!(error, "a connection ended badly");
            }
        });
    }
    drop(listener);
    open.shutdown().await;
}

type Slot = tokio::sync::OwnedSemaphorePermit;

/// The next connection, once there is room for one; `None` when the server stops.
async fn next(listener: &TcpListener, slots: &Arc<Semaphore>, stop: &CancellationToken) -> Option<(TcpStream, Slot)> {
    let accepted = async {
        let slot = slots.clone().acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => return Some((stream, slot)),
                // Out of file descriptors, as a rule: others will close theirs.
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => None,
        accepted = accepted => accepted,
    }
}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_headers(limits.headers_max)
        .max_buf_size(limits.head_bytes_max.max(8 << 10));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(256)
        .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX))
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}
