//! What is written to a connection: one message after the other, each within a bound of time. A client that does not read
//! hurts only itself.

use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use bytes::Bytes;
use futures_util::SinkExt as _;
use serde::Serialize;
use tokio::time::timeout;

use super::close::Closing;

/// How long a last word may take.
const LAST_WORD: Duration = Duration::from_secs(2);

/// A connection, as something that is read from and written to in bounded time.
pub(super) struct Outbox {
    socket: WebSocket,
    slow_reader: Duration,
}

impl Outbox {
    pub(super) fn new(socket: WebSocket, slow_reader: Duration) -> Self {
        Self { socket, slow_reader }
    }

    /// The next message. Nothing is lost by a caller that stops waiting.
    pub(super) async fn receive(&mut self) -> Result<Message, Closing> {
        match self.socket.recv().await {
            Some(Ok(message)) => Ok(message),
            Some(Err(error)) => Err(Closing::of(error)),
            None => Err(Closing::Gone),
        }
    }

    pub(super) async fn send(&mut self, message: &impl Serialize) -> Result<(), Closing> {
        self.send_all(std::iter::once(message)).await
    }

    /// Writes messages in their order.
    pub(super) async fn send_all<'a, T: Serialize + 'a>(
        &mut self,
        messages: impl Iterator<Item = &'a T>,
    ) -> Result<(), Closing> {
        let Self { socket, slow_reader } = self;
        for message in messages {
            // What has no JSON form is a mistake of ours.
            let text = serde_json::to_string(message).unwrap_or_else(|_| "null".to_owned());
            within(*slow_reader, socket.feed(Message::Text(text.into()))).await?;
        }
        within(*slow_reader, socket.flush()).await
    }

    /// Asks whether anybody is there.
    pub(super) async fn ping(&mut self) -> Result<(), Closing> {
        within(self.slow_reader, self.socket.send(Message::Ping(Bytes::new()))).await
    }

    /// Ends the connection, and gives the client a moment to read why.
    pub(super) async fn close(mut self, closing: Closing) {
        let Some(frame) = closing.frame() else {
            // Who said goodbye is answered: what reads on sends that.
            let goodbye = async { while let Some(Ok(_)) = self.socket.recv().await {} };
            let _ = timeout(LAST_WORD, goodbye).await;
            return;
        };
        let last_words = async {
            if self.socket.send(Message::Close(Some(frame))).await.is_ok() {
                while let Some(Ok(_)) = self.socket.recv().await {}
            }
            // What cannot be read any more would be answered with a reset, and the reason lost on the way.
            if closing == Closing::TooLarge {
                std::future::pending::<()>().await;
            }
        };
        let _ = timeout(LAST_WORD, last_words).await;
    }
}

async fn within(bound: Duration, writing: impl Future<Output = Result<(), axum::Error>>) -> Result<(), Closing> {
    match timeout(bound, writing).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Closing::Gone),
        Err(_) => Err(Closing::TooSlow),
    }
}
