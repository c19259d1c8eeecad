//! Signatures of states that leave our hands: whoever changes one cannot sign it.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use holdpoint_core::refusal::Refusal;
use sha2::Sha256;

/// A key for signing states (HMAC-SHA-256). It is never printed.
#[derive(Clone)]
pub struct StateKey(Arc<[u8]>);

impl StateKey {
    /// A key of at least 32 bytes.
    ///
    /// # Errors
    /// A shorter one.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, Refusal> {
        let bytes = bytes.as_ref();
        if bytes.len() < 32 {
            let problem = format!("a state key has at least 32 bytes, and this has {}", bytes.len());
            return Err(Refusal::InvalidDefinition(problem));
        }
        Ok(Self(bytes.into()))
    }

    pub(super) fn sign(&self, text: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(self.mac(text).finalize().into_bytes())
    }

    /// Compares in constant time.
    pub(super) fn verify(&self, text: &[u8], signature: &str) -> Result<(), Refusal> {
        let given = URL_SAFE_NO_PAD.decode(signature).map_err(|_| Refusal::StateTampered)?;
        self.mac(text).verify_slice(&given).map_err(|_| Refusal::StateTampered)
    }

    fn mac(&self, text: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(text);
        mac
    }
}

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateKey(…)")
    }
}
