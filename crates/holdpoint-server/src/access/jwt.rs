//! Tokens of an identity provider: signed by a key it publishes, for this server, now, by a role that is mapped.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_core::ids::ActorId;
use jsonwebtoken::{Algorithm, AlgorithmFamily, Validation, decode, decode_header};
use serde_json::{Map, Value};

use super::jwks::{Jwks, Lookup};
use super::{Caller, Role, is_reserved, unauthenticated};
use crate::problem::Problem;

/// How tokens are read.
#[derive(Debug, Clone)]
pub struct JwtSettings {
    /// Who issues them, as `iss` says.
    pub issuer: String,
    /// Whom they are for, as `aud` says: this server.
    pub audience: String,
    /// Which signatures count; only such that need a private key.
    pub algorithms: Vec<Algorithm>,
    /// The claim that names the actor.
    pub actor_claim: String,
    /// The claim that lists roles or groups.
    pub roles_claim: String,
    /// Which of its values mean which role.
    pub roles: BTreeMap<String, Role>,
    /// The claim that lists the groups by which pauses name approvers.
    pub groups_claim: String,
    /// How far clocks may differ, in seconds.
    pub leeway_seconds: u64,
}

impl JwtSettings {
    /// Tokens of this issuer for this audience, with the usual claims, and no role mapped yet.
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            audience: audience.into(),
            algorithms: vec![Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA],
            actor_claim: "sub".to_owned(),
            roles_claim: "roles".to_owned(),
            roles: BTreeMap::new(),
            groups_claim: "groups".to_owned(),
            leeway_seconds: 60,
        }
    }
}

/// Settings under which tokens could not be checked, or nobody could come in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadJwtSettings {
    /// The issuer or the audience is empty.
    #[error("tokens need an issuer and an audience to be checked against")]
    Unbound,
    /// No signature counts, or one counts that whoever can check can also make.
    #[error("tokens need signature algorithms with a private key, such as RS256, ES256 or EdDSA")]
    Algorithms,
    /// No value means a role.
    #[error("no value of the roles claim is mapped to a role, so no token would let anybody in")]
    NoRoles,
}

/// Checks tokens.
pub struct JwtVerifier {
    settings: JwtSettings,
    keys: Jwks,
}

impl JwtVerifier {
    /// Checks tokens by these settings and keys.
    ///
    /// # Errors
    /// Settings under which nothing could be checked.
    pub fn new(settings: JwtSettings, keys: Jwks) -> Result<Self, BadJwtSettings> {
        if settings.issuer.is_empty() || settings.audience.is_empty() {
            return Err(BadJwtSettings::Unbound);
        }
        let is_shared = |algorithm: &Algorithm| algorithm.family() == AlgorithmFamily::Hmac;
        if settings.algorithms.is_empty() || settings.algorithms.iter().any(is_shared) {
            return Err(BadJwtSettings::Algorithms);
        }
        if settings.roles.is_empty() {
            return Err(BadJwtSettings::NoRoles);
        }
        Ok(Self { settings, keys })
    }

    /// Whose token this is. Why one is refused is for the log; the client is told no more than which check failed.
    pub(super) async fn caller(&self, token: &str) -> Result<Caller, Problem> {
        let header = decode_header(token).map_err(|_| unauthenticated("the token is not a JWT that can be read"))?;
        if !self.settings.algorithms.contains(&header.alg) {
            return Err(unauthenticated("the token is signed by an algorithm that is not accepted here"));
        }
        let key = match self.keys.find(header.kid.as_deref(), header.alg).await {
            Lookup::Found(key) => key,
            Lookup::Unknown => {
                return Err(unauthenticated("the token is signed by a key that its issuer does not publish"));
            }
            Lookup::Unavailable(problem) => return Err(problem),
        };
        let mut validation = Validation::new(header.alg);
        validation.set_issuer(&[&self.settings.issuer]);
        validation.set_audience(&[&self.settings.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.validate_nbf = true;
        validation.leeway = self.settings.leeway_seconds;
        let claims = decode::<Map<String, Value>>(token, &key, &validation).map_err(|error| {
            tracing::debug!(%error, "a token was refused");
            unauthenticated("the token's signature, issuer, audience or time does not hold")
        })?;
        self.read(&claims.claims)
    }

    fn read(&self, claims: &Map<String, Value>) -> Result<Caller, Problem> {
        let actor =
            claims.get(&self.settings.actor_claim).and_then(Value::as_str).and_then(|name| ActorId::new(name).ok());
        let actor = actor
            .filter(|actor| !is_reserved(actor))
            .ok_or_else(|| unauthenticated("the token does not name an actor that can be recorded"))?;
        let roles: BTreeSet<Role> = texts(claims.get(&self.settings.roles_claim))
            .filter_map(|value| self.settings.roles.get(value).copied())
            .collect();
        let groups = texts(claims.get(&self.settings.groups_claim)).take(GROUPS_MAX).map(str::to_owned).collect();
        Ok(Caller { actor, roles, groups, is_solo: false })
    }
}

/// How many groups of a token are looked at.
const GROUPS_MAX: usize = 256;

/// The texts of a claim: a list, or one text with spaces between.
fn texts(claim: Option<&Value>) -> impl Iterator<Item = &str> {
    let list = claim.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default().iter().filter_map(Value::as_str);
    let words = claim.and_then(Value::as_str).unwrap_or_default().split_ascii_whitespace();
    list.chain(words)
}
