//! Reads a server's answer: bounded while it arrives, and after it was decompressed. The body is the result.

use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_core::text::{clamp, visible};
use holdpoint_runtime::ports::tool::ToolFailure;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Response, StatusCode, Url};

use crate::http::client;
use crate::redact::Redactor;

/// How many bytes of the body of a failure are told.
const FAILURE_BYTES: usize = 2 << 10;

/// The answer as a result, or as a failure that says what the server said.
pub(super) async fn read(response: Response, bytes_max: usize, redactor: &Redactor) -> Result<Content, ToolFailure> {
    let status = response.status();
    if let Some(to) = redirect(&response) {
        return Err(ToolFailure(redactor.redact(told_redirect(status, &to, "redirects are not followed"))));
    }
    let is_json = is_json(&response);
    let bytes_max = if status.is_success() { bytes_max } else { bytes_max.min(FAILURE_BYTES) };
    let body = Body::read(response, bytes_max).await?;
    let is_cut = body.is_cut();
    let text = redactor.redact(body.into_text());
    if !status.is_success() {
        let said = visible(text.trim());
        let answered = format!("the server answered {}", name_of(status));
        return Err(ToolFailure(if said.is_empty() { answered } else { format!("{answered}: {said}") }));
    }
    if text.is_empty() {
        return Ok(Content::Text(format!("the server answered {} without a body", name_of(status))));
    }
    match (is_json && !is_cut).then(|| CanonicalJson::parse(&text)) {
        Some(Ok(json)) => Ok(Content::Json(json)),
        _ => Ok(Content::Text(text)),
    }
}

/// Where a redirect leads to.
pub(super) fn redirect(response: &Response) -> Option<String> {
    if !response.status().is_redirection() {
        return None;
    }
    let location = response.headers().get(LOCATION)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

/// A redirect that is not followed. Query and credentials of where it leads are not shown: they hold keys at times.
pub(super) fn told_redirect(status: StatusCode, to: &str, why: &str) -> String {
    let shown = match Url::parse(to) {
        Ok(url) if url.has_host() => format!("{}{}", url.origin().ascii_serialization(), url.path()),
        _ => to.split(['?', '#']).next().unwrap_or_default().to_owned(),
    };
    format!("the server answered {} and points to {}: {why}", name_of(status), clamp(&visible(&shown), 300))
}

fn name_of(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

fn is_json(response: &Response) -> bool {
    let Some(Ok(kind)) = response.headers().get(CONTENT_TYPE).map(|kind| kind.to_str()) else { return false };
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}

/// The first bytes of a body, and what is known of the rest.
struct Body {
    kept: Vec<u8>,
    rest: Rest,
}

enum Rest {
    Nothing,
    Bytes(u64),
    Unknown,
}

impl Body {
    /// Reads until the bound is met, and leaves the connection then: a body may have no end.
    async fn read(mut response: Response, bytes_max: usize) -> Result<Self, ToolFailure> {
        let length = response.content_length();
        let mut kept = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(client::failure)? {
            let room = bytes_max - kept.len();
            if chunk.len() > room {
                kept.extend_from_slice(&chunk[..room]);
                let rest = length.map_or(Rest::Unknown, |length| Rest::Bytes(length.saturating_sub(bytes_max as u64)));
                return Ok(Self { kept, rest });
            }
            kept.extend_from_slice(&chunk);
        }
        Ok(Self { kept, rest: Rest::Nothing })
    }

    fn is_cut(&self) -> bool {
        !matches!(self.rest, Rest::Nothing)
    }

    fn into_text(self) -> String {
        if self.kept.contains(&0) {
            let bytes = self.kept.len();
            let more = if self.is_cut() { " and more" } else { "" };
            return format!("[not text: {bytes} bytes{more}, not shown]");
        }
        let text = String::from_utf8_lossy(&self.kept);
        let text = text.trim_start_matches('\u{feff}');
        // A character that was cut in two became a sign that is longer than its half.
        let whole = clamp(text.trim_end_matches('\u{fffd}'), self.kept.len());
        match self.rest {
            Rest::Nothing => text.to_owned(),
            Rest::Bytes(more) => format!("{whole}\n[cut here: {more} more bytes]"),
            Rest::Unknown => format!("{whole}\n[cut here: the answer goes on]"),
        }
    }
}
