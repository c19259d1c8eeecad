//! `Digest`: the SHA-256 that names a text. It prints as hex for people and is stored as base64url, which is a third
//! shorter; both are spelt in exactly one way, so equal digests are equal text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

const BASE64URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const HEX_LENGTH: usize = 64;
const BASE64URL_LENGTH: usize = 43;

/// A SHA-256 digest.
///
/// Prints and parses as 64 lower-case hex digits. Serde writes 43 characters of unpadded base64url, and reads either.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of some bytes and those that follow them.
    pub(crate) fn of_both(first: &[u8], second: &[u8]) -> Self {
        Self(Sha256::new().chain_update(first).chain_update(second).finalize().into())
    }

    /// A digest that was taken before, from its bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes of the digest itself.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{:02x}{:02x}…", self.0[0], self.0[1])
    }
}

impl FromStr for Digest {
    type Err = BadDigest;

    fn from_str(text: &str) -> Result<Self, BadDigest> {
        from_hex(text.as_bytes()).map(Self).ok_or(BadDigest)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&to_base64url(&self.0))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(StoredDigest)
    }
}

struct StoredDigest;

impl de::Visitor<'_> for StoredDigest {
    type Value = Digest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sha-256 digest in base64url or hex")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Digest, E> {
        let bytes = match text.len() {
            BASE64URL_LENGTH => from_base64url(text.as_bytes()),
            _ => from_hex(text.as_bytes()),
        };
        bytes.map(Digest).ok_or_else(|| E::custom(BadDigest))
    }
}

/// The text is not a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("text is not a sha-256 digest")]
pub struct BadDigest;

fn from_hex(text: &[u8]) -> Option<[u8; 32]> {
    if text.len() != HEX_LENGTH {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = hex_digit(pair[0])? << 4 | hex_digit(pair[1])?;
    }
    Some(bytes)
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

fn to_base64url(bytes: &[u8; 32]) -> String {
    let mut text = String::with_capacity(BASE64URL_LENGTH);
    for chunk in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        // One character for each six bits that hold some of the chunk: four for three bytes, three for two.
        let sextets = (0..=chunk.len()).map(|index| (bits >> (18 - 6 * index)) as usize & 63);
        text.extend(sextets.map(|sextet| char::from(BASE64URL[sextet])));
    }
    text
}

fn from_base64url(text: &[u8]) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let mut filled = 0;
    let (mut bits, mut bit_count) = (0u32, 0);
    for &character in text {
        bits = bits << 6 | base64url_sextet(character)?;
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            *bytes.get_mut(filled)? = (bits >> bit_count) as u8;
            filled += 1;
            bits &= (1 << bit_count) - 1;
        }
    }
    // The last character has two bits to spare: unless they are zero, one digest would have four spellings.
    (filled == bytes.len() && bits == 0).then_some(bytes)
}

fn base64url_sextet(character: u8) -> Option<u32> {
    let sextet = match character {
        b'A'..=b'Z' => character - b'A',
        b'a'..=b'z' => character - b'a' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    };
    Some(sextet.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest of "abc" that FIPS 180-4 gives as an example.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const ABC_STORED: &str = "\"ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0\"";

    #[test]
    fn a_digest_prints_and_parses_as_lower_case_hex() {
        let digest = Digest::of(b"abc");
        assert_eq!(digest.to_string(), ABC);
        assert_eq!(ABC.parse(), Ok(digest));
        assert_eq!(format!("{digest:?}"), "sha256:ba78…");
    }

    #[test]
    fn a_digest_is_stored_as_base64url_and_read_from_hex_as_well() {
        let digest = Digest::of(b"abc");
        assert_eq!(serde_json::to_string(&digest).unwrap(), ABC_STORED);
        assert_eq!(serde_json::from_str::<Digest>(ABC_STORED).unwrap(), digest);
        assert_eq!(serde_json::from_str::<Digest>(&format!("\"{ABC}\"")).unwrap(), digest);
    }

    #[test]
    fn a_digest_is_a_key_of_a_stored_map() {
        let map = std::collections::BTreeMap::from([(Digest::of(b"abc"), 1)]);
        let text = serde_json::to_string(&map).unwrap();
        assert_eq!(text, format!("{{{ABC_STORED}:1}}"));
        assert_eq!(serde_json::from_str::<std::collections::BTreeMap<Digest, i32>>(&text).unwrap(), map);
    }

    #[test]
    fn what_is_not_exactly_a_digest_is_refused() {
        let upper = ABC.to_uppercase();
        let unicode = "é".repeat(32);
        for text in ["", "ba78", &ABC[1..], &upper, &ABC.replace('b', "g"), &unicode] {
            assert_eq!(text.parse::<Digest>(), Err(BadDigest), "{text}");
        }
    }

    #[test]
    fn a_stored_digest_has_one_spelling() {
        let spare_bits = ABC_STORED.replace("Fa0\"", "Fa1\"");
        let padded = ABC_STORED.replace("Fa0\"", "Fa0=\"");
        let plain_alphabet = ABC_STORED.replace('-', "+").replace('_', "/");
        let short = ABC_STORED.replace("Fa0\"", "Fa\"");
        for text in [spare_bits, padded, plain_alphabet, short, "7".to_owned(), "null".to_owned()] {
            assert!(serde_json::from_str::<Digest>(&text).is_err(), "{text}");
        }
    }
}
