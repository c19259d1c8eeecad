//! The parameters of an address, strictly read: none twice, none unknown, nothing that does not decode.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use holdpoint_core::text::{clamp, visible};
use http::request::Parts;

use crate::problem::{Code, Problem};

/// The parameters as they came; a handler says which there may be.
pub struct Query(Option<String>);

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.uri.query().map(str::to_owned)))
    }
}

impl Query {
    /// A query as it stands in an address.
    pub fn new(query: Option<&str>) -> Self {
        Self(query.map(str::to_owned))
    }

    /// The parameters, where no others than these are given.
    ///
    /// # Errors
    /// 400 `invalid_parameter`: one is unknown, given twice, or does not decode.
    pub fn only(&self, known: &'static [&'static str]) -> Result<Params, Problem> {
        let mut values = BTreeMap::new();
        for pair in self.0.as_deref().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name).ok_or_else(|| undecodable("a name"))?;
            let Some(known) = known.iter().find(|known| **known == name) else {
                let shown = visible(clamp(&name, 64));
                let detail = match known {
                    [] => format!("{shown:?} is not known: this address takes no parameters"),
                    known => format!("{shown:?} is not known: this address takes {}", known.join(", ")),
                };
                return Err(Problem::new(Code::INVALID_PARAMETER, detail).at(shown));
            };
            let value = decode(value).ok_or_else(|| undecodable(known))?;
            if values.insert(*known, value).is_some() {
                let detail = format!("{known} is given twice: which one counts cannot be told");
                return Err(Problem::new(Code::INVALID_PARAMETER, detail).at(*known));
            }
        }
        Ok(Params(values))
    }
}

fn undecodable(what: &str) -> Problem {
    Problem::new(Code::INVALID_PARAMETER, format!("{what} is not valid percent-encoded UTF-8")).at(what)
}

/// Parameters by name.
#[derive(Debug)]
pub struct Params(BTreeMap<&'static str, String>);

impl Params {
    /// One parameter as text; an empty one counts as not given.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// One parameter as text, also where it is empty.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// One parameter as something that can be read from text.
    ///
    /// # Errors
    /// 400 `invalid_parameter`, in the words of the type.
    pub fn parsed<T>(&self, name: &'static str) -> Result<Option<T>, Problem>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse::<T>().map(Some).map_err(|problem| invalid(name, &problem.to_string()))
    }

    /// One parameter as a whole number within bounds.
    ///
    /// # Errors
    /// 400 `invalid_parameter`.
    pub fn number(&self, name: &'static str, within: RangeInclusive<u64>) -> Result<Option<u64>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| is_plain && within.contains(number));
        let (from, to) = (within.start(), within.end());
        number.map(Some).ok_or_else(|| invalid(name, &format!("a whole number from {from} to {to} expected")))
    }
}

impl Params {
    /// How many rows a page may have.
    pub const PAGE_MAX: u64 = 200;

    /// `limit`: how many rows a page has; 50 when nothing is said.
    ///
    /// # Errors
    /// 400 `invalid_parameter`.
    pub fn limit(&self) -> Result<usize, Problem> {
        let limit = self.number("limit", 1..=Self::PAGE_MAX)?.unwrap_or(50);
        Ok(usize::try_from(limit).unwrap_or(50))
    }
}

fn invalid(name: &'static str, problem: &str) -> Problem {
    Problem::new(Code::INVALID_PARAMETER, format!("{name}: {problem}")).at(name)
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => hex(rest.next()?)? << 4 | hex(rest.next()?)?,
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read(query: &str) -> Result<Params, Problem> {
        Query::new(Some(query)).only(&["limit", "agent"])
    }

    #[test]
    fn parameters_are_decoded() {
        let params = read("agent=a%20b+%C3%A4&limit=7").unwrap();
        assert_eq!(params.text("agent"), Some("a b ä"));
        assert_eq!(params.number("limit", 1..=10).unwrap(), Some(7));
        let params = read("agent=").unwrap();
        assert_eq!((params.text("agent"), params.given("agent")), (None, Some("")));
    }

    #[test]
    fn what_cannot_be_told_is_refused() {
        for bad in ["limit=1&limit=2", "limi=1", "agent=%ZZ", "agent=%C3%28", "agent=%4", "%=1", "debug"] {
            assert_eq!(read(bad).unwrap_err().code(), "invalid_parameter", "{bad}");
        }
        for bad in ["0", "11", "-1", "1.0", "1e1", "+1", "x", "99999999999999999999999"] {
            let params = read(&format!("limit={bad}")).unwrap();
            assert_eq!(params.number("limit", 1..=10).unwrap_err().code(), "invalid_parameter", "{bad}");
        }
    }
}
