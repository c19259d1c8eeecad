//! Who may do what.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use holdpoint_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Who may call the server, and who may decide.
#[derive(Debug, Clone)]
pub struct AccessSettings {
    /// Who may call.
    pub access: Access,
    /// Whether who started a run is kept from approving its calls.
    pub separation_of_duties: bool,
}

/// Who may call the server.
#[derive(Debug, Clone)]
pub enum Access {
    /// Everybody on this machine, without credentials. Only on a loopback address.
    Solo,
    /// Callers with credentials.
    Guarded {
        /// API keys.
        api_keys: Vec<ApiKey>,
        /// Tokens of an identity provider.
        jwt: Option<Box<Jwt>>,
    },
}

impl Access {
    /// Whether callers need credentials.
    pub fn is_guarded(&self) -> bool {
        matches!(self, Self::Guarded { .. })
    }
}

/// An API key, of which the server knows the SHA-256 only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// The caller's name, which is recorded with what it does. No other key has it.
    pub name: String,
    /// The SHA-256 of the key.
    pub digest: KeyDigest,
    /// What the caller may do.
    pub roles: Vec<Role>,
    /// Groups of the caller, which rules name as approvers.
    pub groups: Vec<String>,
    /// Until when it counts.
    pub expires_at: Option<Timestamp>,
}

/// What a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Start runs and ask for approvals.
    Agent,
    /// Decide.
    Approver,
    /// Everything.
    Admin,
    /// Read everything, decide nothing.
    Auditor,
}

impl Role {
    pub(crate) const NAMES: [(&str, Self); 4] =
        [("agent", Self::Agent), ("approver", Self::Approver), ("admin", Self::Admin), ("auditor", Self::Auditor)];

    /// The role's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Approver => "approver",
            Self::Admin => "admin",
            Self::Auditor => "auditor",
        }
    }
}

/// The SHA-256 of an API key. Compare in constant time.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    /// The digest with these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for KeyDigest {
    type Err = BadDigest;

    fn from_str(text: &str) -> Result<Self, BadDigest> {
        let text = text.strip_prefix("sha256:").unwrap_or(text);
        if text.len() != 64 || !text.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(BadDigest);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| BadDigest)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| BadDigest)?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Debug for KeyDigest {
    /// The first bytes, enough to tell keys apart.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}{:02x}{:02x}…", self.0[0], self.0[1], self.0[2])
    }
}

/// Text that is not a SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("64 hexadecimal digits expected")]
pub struct BadDigest;

/// Tokens of an identity provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jwt {
    /// Who must have issued them (`iss`).
    pub issuer: String,
    /// For whom they must be (`aud`).
    pub audience: String,
    /// Where the issuer's keys are; `None` for where its discovery document says.
    pub jwks_url: Option<String>,
    /// The claim with the caller's roles.
    pub role_claim: String,
    /// The claim with the caller's groups.
    pub group_claim: String,
    /// Which value of the role claim gives which role. Without any, a value is the role's own name.
    pub roles: Vec<(String, Role)>,
    /// The signatures that are accepted; asymmetric ones only.
    pub algorithms: Vec<JwtAlgorithm>,
    /// How far clocks may differ.
    pub leeway: Duration,
}

/// A signature of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JwtAlgorithm {
    /// RSA with SHA-256.
    Rs256,
    /// RSA with SHA-384.
    Rs384,
    /// RSA with SHA-512.
    Rs512,
    /// RSA-PSS with SHA-256.
    Ps256,
    /// ECDSA on P-256.
    Es256,
    /// ECDSA on P-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl JwtAlgorithm {
    pub(crate) const NAMES: [(&str, Self); 7] = [
        ("RS256", Self::Rs256),
        ("RS384", Self::Rs384),
        ("RS512", Self::Rs512),
        ("PS256", Self::Ps256),
        ("ES256", Self::Es256),
        ("ES384", Self::Es384),
        ("EdDSA", Self::EdDsa),
    ];

    /// The algorithm's name in a token.
    pub fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(_, algorithm)| *algorithm == self).map_or("", |(name, _)| name)
    }
}
