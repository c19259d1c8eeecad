//! Why a connection ends.

use axum::extract::ws::CloseFrame;
use tungstenite::Error as SocketError;

/// Why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closing {
    /// The client is gone, or said goodbye.
    Gone,
    /// Bytes that are no WebSocket message.
    Broken,
    /// Text that is not UTF-8.
    NoText,
    /// The server stops.
    Stopping,
    /// Nobody said who it is, or the credential no longer holds.
    NotAuthenticated,
    /// The client was asked whether it is there, and said nothing.
    Silent,
    /// The client does not read what it asked for.
    TooSlow,
    /// A message larger than one may be.
    TooLarge,
    /// There are as many connections as there may be.
    Overloaded,
    /// The client's own pings come too fast. There is no frame that would refuse one.
    Flooded,
}

impl Closing {
    /// What the client is told; nothing where nobody listens.
    pub(super) fn frame(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Gone => return None,
            Self::Broken => (1002, "this is no WebSocket message"),
            Self::NoText => (1007, "text is UTF-8"),
            Self::Stopping => (1012, "the server stops: come back in a moment"),
            Self::NotAuthenticated => (4001, "not authenticated"),
            Self::Silent => (4008, "nothing was heard for too long"),
            Self::TooSlow => (4009, "events were not read in time: come back with after"),
            Self::TooLarge => (4010, "a message is too large"),
            Self::Overloaded => (4013, "too many connections: come back later"),
            Self::Flooded => (4013, "too many pings: one now and then is enough"),
        };
        Some(CloseFrame { code, reason: reason.into() })
    }

    /// Why no more can be read.
    pub(super) fn of(error: axum::Error) -> Self {
        match error.into_inner().downcast_ref::<SocketError>() {
            Some(SocketError::Capacity(_)) => Self::TooLarge,
            Some(SocketError::Utf8(_)) => Self::NoText,
            Some(SocketError::Protocol(_)) => Self::Broken,
            _ => Self::Gone,
        }
    }
}
