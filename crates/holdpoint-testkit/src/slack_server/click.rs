//! People who click: requests as Slack sends them, signed with the app's key.

use std::sync::atomic::{AtomicU64, Ordering};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

/// Who clicks, in which workspace, and what Slack says of it.
#[derive(Debug, Clone)]
pub struct Click {
    /// The workspace.
    pub team: String,
    /// The user.
    pub user: String,
    /// The app that the click is for.
    pub app: String,
    /// The channel of the message.
    pub channel: String,
    /// The message.
    pub ts: String,
}

/// A request as Slack sends it.
#[derive(Debug, Clone)]
pub struct Signed {
    /// When, in seconds since 1970.
    pub timestamp: String,
    /// The signature over time and body.
    pub signature: String,
    /// A form with one field, `payload`.
    pub body: String,
}

impl Click {
    /// A click of this user on the first message of the channel `C0123456789`.
    pub fn by(team: &str, user: &str) -> Self {
        let of = str::to_owned;
        Self {
            team: of(team),
            user: of(user),
            app: of("A0123"),
            channel: of("C0123456789"),
            ts: of("1700000000.000001"),
        }
    }

    /// A click on a button.
    pub fn button(&self, action: &str, value: &str) -> Value {
        json!({
            "type": "block_actions",
            "user": {"id": self.user, "username": "somebody", "team_id": self.team},
            "api_app_id": self.app,
            "token": "deprecated",
            "container": {"type": "message", "message_ts": self.ts, "channel_id": self.channel, "is_ephemeral": false},
            "trigger_id": trigger(),
            "team": {"id": self.team, "domain": "example"},
            "enterprise": null,
            "channel": {"id": self.channel, "name": "ops"},
            "message": {"type": "message", "ts": self.ts, "text": "…", "blocks": []},
            "response_url": "http://127.0.0.1:1/never-called",
            "actions": [{"type": "button", "action_id": action, "block_id": "b", "value": value, "action_ts": "1700000002.1"}],
        })
    }

    /// A modal that was sent off, with what was entered: by block, then by action.
    pub fn submission(&self, view: &Value, values: Value) -> Value {
        json!({
            "type": "view_submission",
            "team": {"id": self.team, "domain": "example"},
            "user": {"id": self.user, "name": "somebody", "team_id": self.team},
            "api_app_id": self.app,
            "token": "deprecated",
            "trigger_id": trigger(),
            "view": {
                "id": view["id"],
                "type": "modal",
                "callback_id": view["callback_id"],
                "private_metadata": view["private_metadata"],
                "blocks": view["blocks"],
                "state": {"values": values},
            },
        })
    }
}

/// Slack names each click anew, so that no two requests are the same.
fn trigger() -> String {
    static CLICKS: AtomicU64 = AtomicU64::new(0);
    format!("13345224609.738474920.{}", CLICKS.fetch_add(1, Ordering::Relaxed))
}

impl Signed {
    /// A payload, signed at this second.
    pub fn new(key: &str, seconds: i64, payload: &Value) -> Self {
        Self::of_body(key, seconds, format!("payload={}", encode(&payload.to_string())))
    }

    /// Any body, signed at this second.
    pub fn of_body(key: &str, seconds: i64, body: String) -> Self {
        let timestamp = seconds.to_string();
        Self { signature: sign(key, &timestamp, body.as_bytes()), timestamp, body }
    }
}

/// Slack's signature, version 0.
///
/// # Panics
/// Never: keys of any length are taken.
pub fn sign(key: &str, timestamp: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("HMAC takes keys of any length");
    for part in [b"v0:", timestamp.as_bytes(), b":", body] {
        mac.update(part);
    }
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("v0={hex}")
}

/// As forms are encoded.
fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'*' => encoded.push(char::from(byte)),
            b' ' => encoded.push('+'),
            other => encoded.push_str(&format!("%{other:02X}")),
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Slack's own page on signatures.
    #[test]
    fn requests_are_signed_as_slack_signs_them() {
        let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
        let signed = Signed::of_body("8f742231b10e8888abcd99yyyzzz85a5", 1_531_420_618, body.to_owned());
        assert_eq!(signed.signature, "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503");
    }
}
