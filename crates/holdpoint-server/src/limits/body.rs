//! A request's body: JSON within bounds, strictly read. What is refused is refused before anything is done with it.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use holdpoint_core::json::{CanonicalJson, JsonProblem, Limits as JsonLimits};
use holdpoint_core::text::{clamp, visible};
use http::{HeaderMap, header};
use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Deserializer};
use serde_json::value::RawValue;

use super::Limits;
use crate::app::App;
use crate::problem::{Code, Problem};

/// A body of JSON that fits `T`: no repeated keys, no unknown fields where `T` refuses them, nothing behind it.
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        require_json(request.headers())?;
        let bytes = read_body(request.headers().clone(), request.into_body(), app.limits()).await?;
        from_json(&bytes).map(Self)
    }
}

/// As [`JsonBody`], or nothing at all.
pub struct OptionalJsonBody<T>(pub Option<T>);

impl<T: DeserializeOwned> FromRequest<App> for OptionalJsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let headers = request.headers().clone();
        let bytes = read_body(headers.clone(), request.into_body(), app.limits()).await?;
        if bytes.is_empty() {
            return Ok(Self(None));
        }
        require_json(&headers)?;
        from_json(&bytes).map(Self)
    }
}

/// Refuses a body that is not declared as JSON: a web page can send other types without asking anybody.
///
/// # Errors
/// 415 `unsupported_media_type`.
pub fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"));
    let is_plain = !headers.contains_key(header::CONTENT_ENCODING);
    match is_json && is_plain {
        true => Ok(()),
        false => Err(Problem::new(
            Code::UNSUPPORTED_MEDIA_TYPE,
            "send the body as JSON, with the header Content-Type: application/json and without a content encoding",
        )),
    }
}

/// Reads a body within the bounds of size and time.
///
/// # Errors
/// 413 `payload_too_large`, 408 `request_timeout`, or 400 when the client broke off.
pub async fn read_body(headers: HeaderMap, body: Body, limits: &Limits) -> Result<Bytes, Problem> {
    let max = limits.body_bytes_max;
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let mut stream = body.into_data_stream();
    if declared.is_some_and(|declared| declared > max) {
        pass_over(&mut stream).await;
        return Err(too_large(max));
    }
    let reading = async {
        let mut bytes = BytesMut::with_capacity(declared.unwrap_or(0).min(max));
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|_| Problem::new(Code::INVALID_JSON, "the body broke off before its end"))?;
            if bytes.len() + chunk.len() > max {
                pass_over(&mut stream).await;
                return Err(too_large(max));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes.freeze())
    };
    let late = |_| {
        let seconds = limits.body_timeout.as_secs();
        Problem::new(Code::REQUEST_TIMEOUT, format!("the body did not arrive within {seconds} seconds: send it again"))
    };
    tokio::time::timeout(limits.body_timeout, reading).await.map_err(late)?
}

/// How much of a body that is refused is still taken in, and for how long.
const PASSED_OVER_MAX: usize = 16 << 20;
const PASSING_OVER_MAX: Duration = Duration::from_secs(2);

/// Takes in what is still coming, within bounds: a client that is cut off while it sends never reads why.
async fn pass_over(stream: &mut BodyDataStream) {
    let passing = async {
        let mut passed = 0;
        while let Some(Ok(chunk)) = stream.next().await {
            passed += chunk.len();
            if passed > PASSED_OVER_MAX {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(PASSING_OVER_MAX, passing).await;
}

fn too_large(max: usize) -> Problem {
    let detail = format!("a body may have {max} bytes: send less, or put large data elsewhere and send its address");
    Problem::new(Code::PAYLOAD_TOO_LARGE, detail).with("limit", max)
}

/// Reads JSON strictly.
///
/// # Errors
/// 400 `invalid_json` or `invalid_request`, with the place.
pub fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|bad| {
        Problem::new(Code::INVALID_JSON, format!("the body is not UTF-8 at byte {}", bad.valid_up_to()))
    })?;
    if text.trim().is_empty() {
        return Err(Problem::new(Code::INVALID_JSON, "the body is empty: send a JSON object"));
    }
    // The whole body is held to the rules for arguments, so that a key cannot hide behind another of its name.
    let body = CanonicalJson::parse_within(text, &JsonLimits::default()).map_err(not_json)?;
    if !body.is_object() {
        // Serde would take a list for an object, its elements in the order of the fields.
        return Err(Problem::new(Code::INVALID_REQUEST, "the body must be a JSON object"));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| misshapen(&error))
}

/// Reads a field that is an object, and no list in its place.
///
/// # Errors
/// It is neither an object of the right shape nor null.
pub fn object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    match Option::<Box<RawValue>>::deserialize(deserializer)? {
        Some(raw) => read_object(&raw).map(Some),
        None => Ok(None),
    }
}

/// Reads a field that is a list of objects.
///
/// # Errors
/// One of them is no object, or not of the right shape.
pub fn objects<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Vec::<Box<RawValue>>::deserialize(deserializer)?.iter().map(|raw| read_object(raw)).collect()
}

fn read_object<T: DeserializeOwned, E: serde::de::Error>(raw: &RawValue) -> Result<T, E> {
    if !raw.get().starts_with('{') {
        return Err(E::custom("an object expected"));
    }
    let mut reader = serde_json::Deserializer::from_str(raw.get());
    serde_path_to_error::deserialize(&mut reader).map_err(|error| E::custom(misshapen(&error).detail()))
}

fn not_json(problem: JsonProblem) -> Problem {
    let code = match problem {
        JsonProblem::TooLarge { .. } => Code::PAYLOAD_TOO_LARGE,
        _ => Code::INVALID_JSON,
    };
    Problem::new(code, format!("the body is not accepted as JSON: {problem}"))
}

fn misshapen(error: &serde_path_to_error::Error<serde_json::Error>) -> Problem {
    let place = match error.path().to_string() {
        path if path == "." || path.is_empty() => None,
        path => Some(visible(clamp(&path, 64))),
    };
    let what = without_values(&error.inner().to_string());
    let detail = match &place {
        Some(place) => format!("{place}: {what}"),
        None => what,
    };
    let problem = Problem::new(Code::INVALID_REQUEST, detail);
    match place {
        Some(place) => problem.at(place),
        None => problem,
    }
}

/// What serde says, without the value that was found: it may be a secret, and is known to the client.
fn without_values(message: &str) -> String {
    let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
    let is_about_value = message.starts_with("invalid ");
    let said = match (is_about_value, message.rsplit_once(", expected ")) {
        (true, Some((_, expected))) => format!("expected {}", in_words(expected)),
        _ => message.to_owned(),
    };
    visible(clamp(&said, 300))
}

/// What serde expects, for people who do not write Rust.
fn in_words(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "a whole number of at least 0",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        "unit" => "null",
        _ if expected.starts_with("struct ") || expected.contains(" enum ") => "an object",
        _ => expected,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only read from JSON")]
    struct Sample {
        name: String,
        #[serde(default)]
        args: Option<CanonicalJson>,
        #[serde(default, deserialize_with = "crate::limits::object")]
        inner: Option<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only read from JSON")]
    struct Inner {
        count: u32,
        #[serde(default)]
        is_big: bool,
        #[serde(default)]
        sizes: Vec<i64>,
    }

    #[track_caller]
    fn check(body: &str, code: &str, detail: &str) {
        let problem = from_json::<Sample>(body.as_bytes()).unwrap_err();
        assert_eq!((problem.code(), problem.detail()), (code, detail), "{body}");
    }

    #[test]
    fn a_bad_body_is_told_what_is_wrong_and_where() {
        check("", "invalid_json", "the body is empty: send a JSON object");
        check("{", "invalid_json", "the body is not accepted as JSON: expected a key at byte 1");
        check(
            r#"{"name":"a","name":"b"}"#,
            "invalid_json",
            "the body is not accepted as JSON: object key at byte 12 is a duplicate",
        );
        check(
            r#"{"name":"a","args":{"x":1,"x":2}}"#,
            "invalid_json",
            "the body is not accepted as JSON: object key at byte 26 is a duplicate",
        );
        check("{}", "invalid_request", "missing field `name`");
        check(
            r#"{"name":"a","nam":1}"#,
            "invalid_request",
            "nam: unknown field `nam`, expected one of `name`, `args`, `inner`",
        );
        check(r#"{"name":7}"#, "invalid_request", "name: expected a string");
        check(
            r#"{"name":"a","inner":{"count":"secret"}}"#,
            "invalid_request",
            "inner: count: expected a whole number of at least 0",
        );
        let inner = |field: &str, detail: &str| {
            check(
                &format!(r#"{{"name":"a","inner":{{"count":1,{field}}}}}"#),
                "invalid_request",
                &format!("inner: {detail}"),
            );
        };
        inner(r#""is_big":"x""#, "is_big: expected true or false");
        inner(r#""sizes":7"#, "sizes: expected a list");
        inner(r#""sizes":[1.5]"#, "sizes[0]: expected a whole number");
        check("[]", "invalid_request", "the body must be a JSON object");
        check(r#"["a"]"#, "invalid_request", "the body must be a JSON object");
        check("null", "invalid_request", "the body must be a JSON object");
        check(r#"{"name":"a","inner":[1]}"#, "invalid_request", "inner: an object expected");
    }

    #[test]
    fn arguments_keep_their_exact_numbers() {
        let body: Sample = from_json(br#"{"name":"a","args":{"n":12345678901234567890123}}"#).unwrap();
        assert_eq!(body.args.unwrap().as_str(), r#"{"n":1.2345678901234567890123e+22}"#);
    }

    #[tokio::test]
    async fn a_body_over_the_bound_is_refused_whether_declared_or_not() {
        let limits = Limits { body_bytes_max: 4, ..Limits::default() };
        let mut declared = HeaderMap::new();
        declared.insert(header::CONTENT_LENGTH, 5.into());
        for headers in [declared, HeaderMap::new()] {
            let problem = read_body(headers, Body::from("12345"), &limits).await.unwrap_err();
            assert_eq!(problem.code(), "payload_too_large");
        }
        assert_eq!(read_body(HeaderMap::new(), Body::from("1234"), &limits).await.unwrap(), "1234");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_arrive_is_given_up() {
        let never = Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
        let problem = read_body(HeaderMap::new(), never, &Limits::default()).await.unwrap_err();
        assert_eq!(problem.code(), "request_timeout");
    }

    #[test]
    fn only_json_is_taken() {
        let of = |value: &'static str| HeaderMap::from_iter([(header::CONTENT_TYPE, value.parse().unwrap())]);
        for good in ["application/json", "Application/JSON; charset=utf-8", "application/merge-patch+json"] {
            assert!(require_json(&of(good)).is_ok(), "{good}");
        }
        for bad in ["text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data", "text/json"] {
            assert!(require_json(&of(bad)).is_err(), "{bad}");
        }
        assert!(require_json(&HeaderMap::new()).is_err());
    }
}
