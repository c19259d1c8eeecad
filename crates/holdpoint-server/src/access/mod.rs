//! Who may come in, and as whom. Without credentials only the machine itself may (`solo`); with them, every request
//! carries one in its `Authorization` or `X-API-Key` header, never in its address.

mod caller;
mod door;
mod identity;
mod jwks;
mod jwt;
mod keys;
mod layer;
mod roles;

use std::fmt;

use holdpoint_core::ids::ActorId;
use http::{HeaderMap, HeaderValue, header};

pub use caller::Caller;
pub use door::Door;
pub(crate) use identity::Identity;
pub use jwks::Jwks;
pub use jwt::{BadJwtSettings, JwtSettings, JwtVerifier};
pub use keys::{ApiKey, ApiKeys, BadKey, NewKey};
pub(crate) use layer::{authenticate, guard_door};
pub use roles::{Action, Reach, Role, may};

use crate::problem::{Code, Problem};

/// Who may come in.
pub struct Access {
    door: Door,
    credentials: Option<Credentials>,
    requester_may_approve: bool,
}

/// What callers show that they are who they say.
#[derive(Default)]
pub struct Credentials {
    /// Keys that the operator gave out.
    pub keys: ApiKeys,
    /// Tokens of an identity provider.
    pub jwt: Option<JwtVerifier>,
}

impl Credentials {
    /// Whether nobody could come in with them.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.jwt.is_none()
    }
}

impl Access {
    /// No credentials: everybody who gets through the door is the person at the machine.
    pub fn solo(door: Door) -> Self {
        Self { door, credentials: None, requester_may_approve: true }
    }

    /// Every caller shows a credential.
    pub fn with_credentials(door: Door, credentials: Credentials) -> Self {
        Self { door, credentials: Some(credentials), requester_may_approve: true }
    }

    /// Whether the one who started a run may approve its calls.
    #[must_use]
    pub fn requester_may_approve(mut self, may: bool) -> Self {
        self.requester_may_approve = may;
        self
    }

    /// Whether no credentials are asked for.
    pub fn is_solo(&self) -> bool {
        self.credentials.is_none()
    }

    /// Which hosts and pages requests may come through.
    pub fn door(&self) -> &Door {
        &self.door
    }

    /// Whether the caller may approve calls of a run that `requester` started.
    pub fn may_approve_for(&self, caller: &Caller, requester: Option<&ActorId>) -> bool {
        self.requester_may_approve || requester != Some(&caller.actor)
    }

    /// Finds out who calls.
    ///
    /// # Errors
    /// 401 `unauthenticated`; 503 `keys_unavailable` while the identity provider's keys cannot be fetched.
    pub async fn caller(&self, headers: &HeaderMap) -> Result<Caller, Problem> {
        match self.credentials {
            None => Ok(Caller::solo()),
            Some(_) => self.caller_with(token(headers)?).await,
        }
    }

    /// The credential that a request shows; `None` where it shows none.
    ///
    /// # Errors
    /// 401 `unauthenticated`: there is one, and it cannot be read.
    pub fn shown(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
        match headers.contains_key(header::AUTHORIZATION) || headers.contains_key("x-api-key") {
            true => token(headers).map(Some),
            false => Ok(None),
        }
    }

    /// Finds out who shows this credential.
    ///
    /// # Errors
    /// As [`Access::caller`].
    pub async fn caller_with(&self, token: &str) -> Result<Caller, Problem> {
        let Some(credentials) = &self.credentials else { return Ok(Caller::solo()) };
        if token.is_empty() || token.len() > TOKEN_BYTES_MAX {
            return Err(unauthenticated("the credential cannot be read"));
        }
        if token.starts_with(ApiKey::PREFIX) {
            return credentials
                .keys
                .caller(token)
                .ok_or_else(|| unauthenticated("the API key is not known here, or its time is up"));
        }
        match &credentials.jwt {
            Some(jwt) => jwt.caller(token).await,
            None => Err(unauthenticated("an API key (hpk_…) is expected")),
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("is_solo", &self.is_solo()).finish_non_exhaustive()
    }
}

/// The longest credential that is looked at.
const TOKEN_BYTES_MAX: usize = 16 << 10;

fn token(headers: &HeaderMap) -> Result<&str, Problem> {
    let given = headers.get_all(header::AUTHORIZATION).iter().chain(headers.get_all("x-api-key")).count();
    if given > 1 {
        return Err(unauthenticated("more than one credential was sent: which one counts cannot be told"));
    }
    let found = match (headers.get(header::AUTHORIZATION), headers.get("x-api-key")) {
        (Some(value), _) => value.to_str().ok().and_then(bearer),
        (None, Some(value)) => value.to_str().ok().map(str::trim),
        (None, None) => return Err(unauthenticated("send a credential in the header Authorization: Bearer …")),
    };
    found.filter(|token| !token.is_empty() && token.len() <= TOKEN_BYTES_MAX).ok_or_else(|| {
        unauthenticated("the credential cannot be read: send Authorization: Bearer …, or X-API-Key: hpk_…")
    })
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// 401 with what to do.
fn unauthenticated(detail: &'static str) -> Problem {
    Problem::new(Code::UNAUTHENTICATED, detail)
        .header(header::WWW_AUTHENTICATE, HeaderValue::from_static(r#"Bearer realm="holdpoint""#))
}

/// Names that no caller may go by: decisions under them were not made by a person.
pub(crate) fn is_reserved(actor: &ActorId) -> bool {
    *actor == ActorId::local() || *actor == ActorId::timeout() || actor.as_str() == "policy"
}
