//! Which headers are whose: made by the connection, by us, or open to others.

use reqwest::header::{self, HeaderName};

/// Carries a call's stable key.
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Says where a message ends or what the connection does. Whoever could set these could send a second request inside
/// the first.
pub(super) fn is_framing(name: &HeaderName) -> bool {
    const FRAMING: [HeaderName; 8] = [
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::EXPECT,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::CONTENT_ENCODING,
    ];
    FRAMING.contains(name) || matches!(name.as_str(), "keep-alive" | "proxy-connection" | "http2-settings")
}

/// Says who is asking, or for whom. A model has no say in that unless an operator says so.
pub(super) fn is_identity(name: &HeaderName) -> bool {
    let name = name.as_str();
    matches!(
        name,
        "host" | "authorization" | "cookie" | "proxy-authorization" | "forwarded" | "via" | "x-real-ip" | "origin"
    ) || name.starts_with("x-forwarded-")
        || name.starts_with("proxy-")
        || name.starts_with("sec-")
        || name.starts_with("metadata-")
        || name.contains("-metadata-")
        || *name == *IDEMPOTENCY_KEY.as_str()
}
