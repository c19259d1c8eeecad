//! What instances over one database tell each other, by `LISTEN` and `NOTIFY`: on two connections that nothing else uses.
//!
//! `NOTIFY` takes a lock of the whole database when it commits, so it is kept out of the transactions that append, and does
//! not wait for the server's disk. Each schema has a channel of its own.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Config, Error, NoTls, Socket, Statement};

use super::{open, tls};
use crate::bus::{Ears, Road};

/// A payload is shorter than 8,000 bytes.
const TEXT_BYTES_MAX: usize = 7_900;

/// How often it is made sure that the connection which listens is still there.
const PROBE_EVERY: Duration = Duration::from_secs(10);

/// The texts in the messages of one statement have different numbers, so none is taken for a repetition of another; their
/// order is kept.
const NOTIFY: &str = "SELECT pg_notify($1, text) FROM unnest($2::text[]) AS text";

/// The way to the database.
pub(super) struct PostgresRoad {
    config: Config,
    authorities: Option<PathBuf>,
    patience: Duration,
    sender: Mutex<Option<Sender>>,
}

/// A connection that tells.
struct Sender {
    client: Client,
    notify: Statement,
    channel: String,
    _driver: Driver,
}

/// Drives a connection, as long as it lives.
struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What the server sends on a connection; whoever waits for an answer on it must look at this meanwhile.
type Messages = BoxStream<'static, Result<AsyncMessage, Error>>;

impl PostgresRoad {
    pub(super) fn new(config: Config, authorities: Option<PathBuf>, patience: Duration) -> Self {
        Self { config, authorities, patience, sender: Mutex::default() }
    }

    async fn connect(&self) -> Result<(Client, Messages), String> {
        let connected = async {
            match self.config.get_ssl_mode() {
                SslMode::Disable => connect(&self.config, NoTls).await,
                _ => connect(&self.config, tls::connector(self.authorities.as_deref())?).await,
            }
        };
        self.within(connected).await
    }

    /// Waits no longer than anybody waits for an answer.
    async fn within<T>(&self, something: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        match tokio::time::timeout(self.patience * 2, something).await {
            Ok(done) => done,
            Err(_) => Err("the server did not answer in time".to_owned()),
        }
    }

    async fn sender(&self) -> Result<Sender, String> {
        let (client, mut messages) = self.connect().await?;
        let driver = tokio::spawn(async move { while let Some(Ok(_)) = messages.next().await {} });
        let driver = Driver(driver.abort_handle());
        self.within(async {
            // A hint that a crash takes away is found by looking.
            client.batch_execute("SET synchronous_commit = off").await.map_err(|error| cause(&error))?;
            let channel = channel(&client).await?;
            let notify = client.prepare(NOTIFY).await.map_err(|error| cause(&error))?;
            Ok(Sender { client, notify, channel, _driver: driver })
        })
        .await
    }

    /// Asks for the notifications, and makes sure now and then that they would come.
    async fn ask(&self, client: &Client, ears: &Ears) -> String {
        let begun = async {
            let channel = channel(client).await?;
            client.batch_execute(&format!("LISTEN \"{channel}\"")).await.map_err(|error| cause(&error))
        };
        if let Err(why) = self.within(begun).await {
            return why;
        }
        ears.are_open();
        loop {
            tokio::time::sleep(PROBE_EVERY).await;
            let probe = client.batch_execute("").map(|done| done.map_err(|error| cause(&error)));
            if let Err(why) = self.within(probe).await {
                return why;
            }
        }
    }
}

#[async_trait]
impl Road for PostgresRoad {
    async fn listen(&self, ears: &Ears) -> String {
        let (client, mut messages) = match self.connect().await {
            Ok(connected) => connected,
            Err(why) => return why,
        };
        let hearing = async {
            loop {
                match messages.next().await {
                    Some(Ok(AsyncMessage::Notification(told))) => ears.hear(told.payload()),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return cause(&error),
                    None => return "the connection was closed".to_owned(),
                }
            }
        };
        tokio::select! {
            why = hearing => why,
            why = self.ask(&client, ears) => why,
        }
    }

    async fn send(&self, messages: &[String]) -> Result<(), String> {
        let mut kept = self.sender.lock().await;
        let sender = match kept.take() {
            Some(sender) if !sender.client.is_closed() => sender,
            _ => self.sender().await?,
        };
        let sent = async {
            let sent = sender.client.execute(&sender.notify, &[&sender.channel, &messages]).await;
            sent.map(drop).map_err(|error| cause(&error))
        };
        self.within(sent).await?;
        *kept = Some(sender);
        Ok(())
    }

    fn text_bytes_max(&self) -> usize {
        TEXT_BYTES_MAX
    }
}

async fn connect<T>(config: &Config, tls: T) -> Result<(Client, Messages), String>
where
    T: MakeTlsConnect<Socket>,
    T::TlsConnect: Send,
    T::Stream: Send + 'static,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let (client, mut connection) = config.connect(tls).await.map_err(|error| cause(&error))?;
    Ok((client, stream::poll_fn(move |context| connection.poll_message(context)).boxed()))
}

/// The channel of the schema that the store is in. Its number is part of the name: a name of any length has one.
async fn channel(client: &Client) -> Result<String, String> {
    let sql = "SELECT 'holdpoint_' || current_schema()::regnamespace::oid::text";
    let row = client.query_one(sql, &[]).await.map_err(|error| cause(&error))?;
    row.try_get(0).map_err(|error| cause(&error))
}

fn cause(error: &Error) -> String {
    open::cause(error)
}
