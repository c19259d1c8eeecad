//! API keys: random, shown once, kept as a digest. They need no slow hash, since nobody can guess 256 bits.

use std::collections::BTreeSet;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdpoint_core::ids::ActorId;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::clock::{Clock as _, SystemClock};
use secrecy::SecretString;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{Caller, Role, is_reserved};

/// A key as the server knows it: whose it is, and the digest of it.
#[derive(Debug, Clone)]
pub struct ApiKey {
    /// Whose it is, as decisions record it.
    pub actor: ActorId,
    /// What its holder is to the server.
    pub roles: BTreeSet<Role>,
    /// Groups that its holder belongs to.
    pub groups: Vec<String>,
    /// Until when it holds.
    pub expires_at: Option<Timestamp>,
    sha256: [u8; 32],
}

/// A key that was just made. The secret is shown to its holder and then forgotten.
pub struct NewKey {
    /// What its holder sends.
    pub secret: SecretString,
    /// What the server keeps, in hexadecimal.
    pub sha256: String,
}

/// A key that cannot be used as it was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// The digest is none.
    #[error("the key of {0} needs its SHA-256 as 64 hexadecimal digits")]
    Digest(ActorId),
    /// The name is reserved.
    #[error("no key may belong to {0:?}, a name for decisions that no person made")]
    Reserved(String),
    /// The key allows nothing.
    #[error("the key of {0} has no role: agent, approver, admin or auditor")]
    NoRole(ActorId),
    /// Two keys are one.
    #[error("the keys of {0} and {1} are the same")]
    Same(ActorId, ActorId),
}

impl ApiKey {
    /// How every key begins, so that a lost one is found by scanners.
    pub const PREFIX: &'static str = "hpk_";

    /// A key by its digest.
    ///
    /// # Errors
    /// The digest is none, the name is reserved, or there is no role.
    pub fn new(actor: ActorId, sha256: &str, roles: impl IntoIterator<Item = Role>) -> Result<Self, BadKey> {
        if is_reserved(&actor) {
            return Err(BadKey::Reserved(actor.to_string()));
        }
        let roles: BTreeSet<Role> = roles.into_iter().collect();
        if roles.is_empty() {
            return Err(BadKey::NoRole(actor));
        }
        let Some(sha256) = unhex(sha256) else { return Err(BadKey::Digest(actor)) };
        Ok(Self { actor, roles, groups: Vec::new(), expires_at: None, sha256 })
    }

    /// Makes a key.
    ///
    /// # Errors
    /// The machine gives no random bytes.
    pub fn generate() -> Result<NewKey, getrandom::Error> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes)?;
        let secret = format!("{}{}", Self::PREFIX, URL_SAFE_NO_PAD.encode(bytes));
        let sha256 = Self::digest(&secret);
        Ok(NewKey { secret: secret.into(), sha256 })
    }

    /// What the server keeps of a key, in hexadecimal.
    pub fn digest(secret: &str) -> String {
        Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c.to_digit(16)?).ok()).collect();
    let bytes: Vec<u8> = digits?.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    bytes.try_into().ok().filter(|_| text.len() == 64)
}

/// The keys that the operator gave out.
#[derive(Debug, Clone, Default)]
pub struct ApiKeys(Vec<ApiKey>);

impl ApiKeys {
    /// These keys.
    ///
    /// # Errors
    /// Two of them are the same.
    pub fn new(keys: Vec<ApiKey>) -> Result<Self, BadKey> {
        for (index, key) in keys.iter().enumerate() {
            if let Some(other) = keys[..index].iter().find(|other| other.sha256 == key.sha256) {
                return Err(BadKey::Same(other.actor.clone(), key.actor.clone()));
            }
        }
        Ok(Self(keys))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whose key this is. Every key is compared in constant time, so that an answer takes equally long.
    pub(super) fn caller(&self, secret: &str) -> Option<Caller> {
        let given: [u8; 32] = Sha256::digest(secret.as_bytes()).into();
        let now = SystemClock.now();
        let found =
            self.0.iter().fold(None, |found, key| if bool::from(key.sha256.ct_eq(&given)) { Some(key) } else { found });
        let key = found.filter(|key| key.expires_at.is_none_or(|end| now < end))?;
        let (actor, roles, groups) = (key.actor.clone(), key.roles.clone(), key.groups.clone());
        Some(Caller { actor, roles, groups, is_solo: false })
    }
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey").field("sha256", &self.sha256).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn actor(name: &str) -> ActorId {
        ActorId::new(name).unwrap()
    }

    #[test]
    fn a_key_that_was_made_opens_and_no_other_does() {
        let made = ApiKey::generate().unwrap();
        let key = ApiKey::new(actor("ana"), &made.sha256, [Role::Approver]).unwrap();
        let keys = ApiKeys::new(vec![key]).unwrap();
        let secret = made.secret.expose_secret();
        assert!(secret.starts_with("hpk_") && secret.len() == 47, "{}", secret.len());
        assert_eq!(keys.caller(secret).map(|caller| caller.actor), Some(actor("ana")));
        assert_eq!(keys.caller(&format!("{secret}x")), None);
        assert_eq!(keys.caller("hpk_"), None);
        assert!(!format!("{made:?}{keys:?}").contains(secret));
    }

    #[test]
    fn a_key_whose_time_is_up_opens_nothing() {
        let made = ApiKey::generate().unwrap();
        let mut key = ApiKey::new(actor("ana"), &made.sha256, [Role::Admin]).unwrap();
        key.expires_at = Some(Timestamp::from_millis(1));
        assert_eq!(ApiKeys::new(vec![key]).unwrap().caller(made.secret.expose_secret()), None);
    }

    #[test]
    fn a_key_that_cannot_be_used_is_refused() {
        let digest = ApiKey::digest("hpk_x");
        for bad in ["", "abc", &digest[1..], &format!("{digest}0"), &digest.replacen(char::is_alphanumeric, "g", 1)] {
            let refused = ApiKey::new(actor("ana"), bad, [Role::Agent]).err();
            assert_eq!(refused, Some(BadKey::Digest(actor("ana"))), "{bad}");
        }
        for reserved in ["local", "timeout", "policy"] {
            let refused = ApiKey::new(actor(reserved), &digest, [Role::Agent]).err();
            assert_eq!(refused, Some(BadKey::Reserved(reserved.to_owned())));
        }
        assert_eq!(ApiKey::new(actor("ana"), &digest, []).err(), Some(BadKey::NoRole(actor("ana"))));
        let same = |name: &str| ApiKey::new(actor(name), &digest, [Role::Agent]).unwrap();
        let refused = ApiKeys::new(vec![same("ana"), same("ben")]).err();
        assert_eq!(refused, Some(BadKey::Same(actor("ana"), actor("ben"))));
    }
}
