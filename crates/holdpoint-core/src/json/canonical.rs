//! `CanonicalJson`: the one form in which holdpoint keeps, hashes and compares JSON it did not write itself.
//! It holds text, not a tree; who needs a tree decodes one and never writes it back in place of the text.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use super::{Digest, JsonProblem, Limits, exact, rewrite};

/// JSON text in canonical form: keys sorted by code point, no white space, numbers exact. Cheap to clone.
///
/// Two values are equal when their JSON means the same, however it was spelt.
///
/// Through serde it reads and writes as the JSON itself, so a record stays readable. Reading needs `serde_json`, which
/// can hand over the text as it stands: inside an internally tagged, untagged or flattened type serde keeps only a tree,
/// with numbers rounded and repeated keys hidden, and reading is refused there.
///
/// ```
/// use holdpoint_core::json::CanonicalJson;
///
/// let shown = CanonicalJson::parse(r#"{"to": "ana", "amount": 1.50}"#)?;
/// let edited = CanonicalJson::parse(r#"{"amount":15e-1,"to":"\u0061na"}"#)?;
/// assert_eq!(shown.as_str(), r#"{"amount":1.5,"to":"ana"}"#);
/// assert_eq!(shown.digest(), edited.digest());
/// # Ok::<(), holdpoint_core::json::JsonProblem>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CanonicalJson(Arc<str>);

impl CanonicalJson {
    /// Reads one JSON value within [`Limits::default`]. Refuses what is not strictly RFC 8259, and repeated keys.
    pub fn parse(text: &str) -> Result<Self, JsonProblem> {
        Self::parse_within(text, &Limits::default())
    }

    /// Reads one JSON value within `limits`, which hold for the text given and for its canonical form alike.
    pub fn parse_within(text: &str, limits: &Limits) -> Result<Self, JsonProblem> {
        rewrite::canonical(text, limits).map(|text| Self(text.into()))
    }

    /// Writes `value` as JSON and reads it back within [`Limits::default`]. A float that is not a number becomes
    /// `null`, as `serde_json` has it.
    pub fn from_serialize(value: &impl Serialize) -> Result<Self, JsonProblem> {
        let text = serde_json::to_string(value)
            .map_err(|problem| JsonProblem::Unserializable { reason: problem.to_string() })?;
        Self::parse(&text)
    }

    /// Writes a value whose own form is canonical: members in order, integers and no fractions.
    pub(crate) fn from_canonical(value: &impl Serialize) -> Result<Self, JsonProblem> {
        let text = serde_json::to_string(value)
            .map_err(|problem| JsonProblem::Unserializable { reason: problem.to_string() })?;
        rewrite::refuse_too_large(&text, &Limits::default())?;
        debug_assert_eq!(rewrite::canonical(&text, &Limits::default()).as_deref(), Ok(text.as_str()));
        Ok(Self(text.into()))
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes of the canonical text: what [`CanonicalJson::digest`] is taken of.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The SHA-256 of the canonical text.
    pub fn digest(&self) -> Digest {
        Digest::of(self.as_bytes())
    }

    /// Whether this is an object, as the arguments of a tool call must be.
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    /// The first number that a program which keeps numbers in 64 bits would change: an integer beyond `u64` and `i64`
    /// whose digits would be lost, a fraction with more digits than an `f64` has, or what lies beyond every `f64`.
    pub fn inexact_number(&self) -> Option<&str> {
        exact::first_inexact(&self.0)
    }

    /// A tree of this JSON, for rules and schemas that look inside.
    ///
    /// Lossy for numbers: a fraction, or an integer beyond `u64` and `i64`, becomes an `f64` close to it, and what lies
    /// beyond every `f64` becomes the largest one. A whole number is an integer here even where it was written `1.0`.
    /// Show a person the text, not this.
    pub fn to_value(&self) -> Value {
        // Only a number beyond `f64` makes serde_json refuse canonical text.
        serde_json::from_str(&self.0).unwrap_or_else(|_| saturated_value(&self.0))
    }

    /// Decodes this JSON into a `T`. A field of `T` that is a float takes the nearest one; a number that `T` cannot hold
    /// is an error.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }
}

impl fmt::Debug for CanonicalJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for CanonicalJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for CanonicalJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CanonicalJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A keeper of records may have pretty-printed them, so the text is made canonical again. Its size was bounded
        // when it was first accepted: a tighter limit here would make a committed fact unreadable.
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse_within(raw.get(), &Limits::WIDEST).map_err(D::Error::custom)
    }
}

fn saturated_value(text: &str) -> Value {
    match text.as_bytes().first() {
        Some(b'{') => serde_json::from_str::<BTreeMap<String, &RawValue>>(text)
            .expect("canonical text is an object")
            .into_iter()
            .map(|(key, value)| (key, saturated_value(value.get())))
            .collect(),
        Some(b'[') => serde_json::from_str::<Vec<&RawValue>>(text)
            .expect("canonical text is an array")
            .into_iter()
            .map(|value| saturated_value(value.get()))
            .collect(),
        _ => serde_json::from_str(text).unwrap_or_else(|_| saturated_number(text)),
    }
}

fn saturated_number(text: &str) -> Value {
    let nearest = if text.starts_with('-') { f64::MIN } else { f64::MAX };
    Number::from_f64(nearest).map_or(Value::Null, Value::Number)
}
