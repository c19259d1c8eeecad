//! What instances over one database tell each other, by `PUBLISH` and `SUBSCRIBE`: heard on a connection that nothing else
//! uses. The channel is named like the keys, so that stores which share a server do not mix.

use std::time::Duration;

use ::redis::aio::ConnectionManager;
use ::redis::{Client, RedisError};
use async_trait::async_trait;
use futures_util::StreamExt as _;

use super::keys::Keys;
use crate::bus::{Ears, Road};

/// Redis would carry more; nobody needs to tell more at once.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// How often it is made sure that the connection which listens is still there.
const PROBE_EVERY: Duration = Duration::from_secs(10);

/// The way to the database.
pub(super) struct RedisRoad {
    client: Client,
    connection: ConnectionManager,
    keys: Keys,
    patience: Duration,
}

impl RedisRoad {
    pub(super) fn new(client: Client, connection: ConnectionManager, keys: Keys, patience: Duration) -> Self {
        Self { client, connection, keys, patience }
    }

    async fn within<T>(&self, something: impl Future<Output = Result<T, RedisError>>) -> Result<T, String> {
        match tokio::time::timeout(self.patience, something).await {
            Ok(done) => done.map_err(|error| error.to_string()),
            Err(_) => Err("the server did not answer in time".to_owned()),
        }
    }

    async fn hear(&self, ears: &Ears) -> Result<(), String> {
        let mut connection = self.within(self.client.get_async_pubsub()).await?;
        self.within(connection.subscribe(self.keys.bus())).await?;
        ears.are_open();
        let (mut asking, mut told) = connection.split();
        let hearing = async {
            while let Some(message) = told.next().await {
                // Text that is none is from somebody else.
                if let Ok(text) = std::str::from_utf8(message.get_payload_bytes()) {
                    ears.hear(text);
                }
            }
            Err("the connection was closed".to_owned())
        };
        let probing = async {
            loop {
                tokio::time::sleep(PROBE_EVERY).await;
                self.within(asking.ping::<::redis::Value>()).await?;
            }
        };
        tokio::select! {
            lost = hearing => lost,
            lost = probing => lost,
        }
    }
}

#[async_trait]
impl Road for RedisRoad {
    async fn listen(&self, ears: &Ears) -> String {
        self.hear(ears).await.err().unwrap_or_else(|| "the connection was closed".to_owned())
    }

    async fn send(&self, messages: &[String]) -> Result<(), String> {
        let mut pipe = ::redis::pipe();
        for message in messages {
            pipe.cmd("PUBLISH").arg(self.keys.bus()).arg(message).ignore();
        }
        self.within(pipe.query_async(&mut self.connection.clone())).await
    }

    fn text_bytes_max(&self) -> usize {
        TEXT_BYTES_MAX
    }
}
