//! Slack's Web API, as far as it is used: four calls and a test. Answers are bounded in size and time, redirects are not
//! followed, and the token goes nowhere else.

use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::{Response, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};

use super::BadSlack;
use super::blocks::View;
use super::message::Message;
use super::receipt::Receipt;
use super::text::plain;

/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 1 << 20;

pub(super) struct Client {
    http: reqwest::Client,
    base_url: String,
    token: SecretString,
}

/// Why a call did not do what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallFault {
    #[error("Slack asks for fewer calls")]
    TooFast(Option<Duration>),
    #[error("Slack refused: {0}")]
    Refused(String),
    #[error("{0}")]
    Away(String),
}

/// What Slack says of a token.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Workspace {
    /// The workspace's id.
    pub team_id: String,
    /// The workspace's name.
    pub team: String,
    /// The app's user.
    pub user: String,
}

impl Client {
    pub(super) fn new(base_url: &str, token: SecretString) -> Result<Self, BadSlack> {
        let url = reqwest::Url::parse(base_url).map_err(|_| BadSlack::Address)?;
        let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_local);
        if !is_safe {
            return Err(BadSlack::Address);
        }
        let builder = reqwest::Client::builder().timeout(TIMEOUT).redirect(reqwest::redirect::Policy::none());
        let builder = if is_local { builder.no_proxy() } else { builder };
        let http = builder.build().map_err(|_| BadSlack::Tls)?;
        Ok(Self { http, base_url: base_url.trim_end_matches('/').to_owned(), token })
    }

    /// Posts a message; its place is told.
    pub(super) async fn post(&self, channel: &str, message: &Message) -> Result<Receipt, CallFault> {
        let mut body = body(channel, message);
        body["unfurl_links"] = json!(false);
        body["unfurl_media"] = json!(false);
        let answer = self.call("chat.postMessage", &body).await?;
        serde_json::from_value::<Place>(answer)
            .map(|place| Receipt { channel: place.channel, ts: place.ts })
            .map_err(|_| CallFault::Away("Slack's answer does not say where the message is".to_owned()))
    }

    /// Puts another message in the place of one.
    pub(super) async fn update(&self, receipt: &Receipt, message: &Message) -> Result<(), CallFault> {
        let mut body = body(&receipt.channel, message);
        body["ts"] = json!(receipt.ts);
        self.call("chat.update", &body).await.map(|_| ())
    }

    /// Tells one person something, where a message stands.
    pub(super) async fn whisper(&self, channel: &str, user: &str, said: &str) -> Result<(), CallFault> {
        let body = json!({"channel": channel, "user": user, "text": plain(said), "mrkdwn": false, "parse": "none"});
        self.call("chat.postEphemeral", &body).await.map(|_| ())
    }

    /// Opens a modal for who clicked.
    pub(super) async fn open(&self, trigger_id: &str, view: &View) -> Result<(), CallFault> {
        self.call("views.open", &json!({"trigger_id": trigger_id, "view": view})).await.map(|_| ())
    }

    /// Asks whether the token holds.
    pub(super) async fn test(&self) -> Result<Workspace, CallFault> {
        let answer = self.call("auth.test", &json!({})).await?;
        serde_json::from_value(answer).map_err(|_| CallFault::Away("Slack's answer cannot be read".to_owned()))
    }

    async fn call(&self, method: &str, body: &Value) -> Result<Value, CallFault> {
        let away = |error: reqwest::Error| {
            let what = match (error.is_timeout(), error.is_connect()) {
                (true, _) => "Slack did not answer in time",
                (false, true) => "Slack was not reached",
                (false, false) => "Slack's answer broke off",
            };
            CallFault::Away(what.to_owned())
        };
        let request = self.http.post(format!("{}/{method}", self.base_url));
        let response = request.bearer_auth(self.token.expose_secret()).json(body).send().await.map_err(away)?;
        let status = response.status();
        if status == StatusCode::TOO_MANY_REQUESTS {
            return Err(CallFault::TooFast(retry_after(&response)));
        }
        if !status.is_success() {
            return Err(CallFault::Away(format!("Slack answered {}", status.as_u16())));
        }
        let retry = retry_after(&response);
        let answer: Value = read(response).await.map_err(away)?;
        match answer["ok"] == json!(true) {
            true => Ok(answer),
            false => Err(match answer["error"].as_str().map(code) {
                Some(error) if error == "ratelimited" || error == "rate_limited" => CallFault::TooFast(retry),
                Some(error) => CallFault::Refused(error),
                None => CallFault::Away("Slack's answer cannot be read".to_owned()),
            }),
        }
    }
}

#[derive(Deserialize)]
struct Place {
    channel: String,
    ts: String,
}

fn body(channel: &str, message: &Message) -> Value {
    json!({
        "channel": channel,
        "text": message.text,
        "blocks": message.blocks,
        "parse": "none",
        "link_names": false,
        "mrkdwn": false,
    })
}

/// The answer, where it is JSON of a bearable size; nothing otherwise.
async fn read(mut response: Response) -> Result<Value, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Ok(Value::Null);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// One of Slack's codes; whatever else stands there is not repeated.
fn code(text: &str) -> String {
    let is_code = text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if is_code { text.to_owned() } else { "an error without a name".to_owned() }
}
