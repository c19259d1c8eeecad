//! What a client is told when something did not go as asked: an RFC 9457 document with a stable code.
//!
//! One table maps refusals and faults to statuses. A status of 5xx means that trying again is right, with the one
//! exception of `internal`. What is told never holds arguments, paths, queries or causes; those go to the log.

mod code;
mod from_runtime;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};

pub use code::Code;
pub use from_runtime::status_of;

/// Where the pages of codes are.
const PAGES: &str = "https://github.com/holdpoint/holdpoint/blob/main/docs/errors";

/// What went wrong, as a client is told.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    detail: String,
    extra: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem of the server's own, with a sentence that says what is wrong and what to do.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self::told(code.status, code.name, code.title, detail)
    }

    /// A problem under a code of the core's, in the server's own words.
    pub(crate) fn of_code(status: StatusCode, code: &'static str, title: &'static str, detail: String) -> Self {
        Self::told(status, code, title, detail)
    }

    fn told(status: StatusCode, code: &'static str, title: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, title, detail: detail.into(), extra: Map::new(), headers: Vec::new() }
    }

    /// A mistake of the server's own. What happened goes to the log, not to the client.
    pub fn internal(what: &str) -> Self {
        tracing::error!(what, "the server made a mistake");
        Self::new(Code::INTERNAL, "the server made a mistake; nothing more is known here, and its log says what")
    }

    /// One more member of the document. The standard members cannot be replaced.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.extra.insert(name.to_owned(), value.into());
        self
    }

    /// The field or parameter that is wrong.
    #[must_use]
    pub fn at(self, field: impl Into<String>) -> Self {
        self.with("field", field.into())
    }

    /// A header beside the document.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// When trying again makes sense.
    #[must_use]
    pub fn retry_after(self, seconds: u64) -> Self {
        self.header(header::RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// The status that it is told with.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What is wrong and what to do, for people.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The headers beside the document.
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }

    /// One of the further members.
    pub fn member(&self, name: &str) -> Option<&Value> {
        self.extra.get(name)
    }

    /// The document.
    pub fn to_json(&self) -> Value {
        let mut document = self.extra.clone();
        let standard = json!({
            "type": format!("{PAGES}/{}.md", self.code),
            "title": self.title,
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        if let Value::Object(standard) = standard {
            document.extend(standard);
        }
        Value::Object(document)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.to_json().to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
        // Kept with the response, so that a protocol with another form of errors can say it in its own words.
        response.extensions_mut().insert(self);
        response
    }
}
