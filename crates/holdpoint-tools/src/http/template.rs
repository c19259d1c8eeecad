//! An address with places for arguments: `https://shop.example/orders/{id}?lang={lang}`. What is filled in stays inside
//! its place: it can neither leave its segment nor reach another host.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use reqwest::Url;

use crate::http::BadEndpoint;

/// How long an address may be once it is filled.
pub(super) const URL_BYTES_MAX: usize = 8 << 10;

/// An address, read and checked.
#[derive(Clone)]
pub(super) struct UrlTemplate {
    /// Scheme, host and port, as they are sent.
    origin: String,
    pieces: Vec<Piece>,
    names: BTreeSet<String>,
    /// The keys that the query has of its own.
    query_keys: BTreeSet<String>,
}

#[derive(Clone)]
enum Piece {
    Text(String),
    InPath(String),
    InQuery(String),
}

impl UrlTemplate {
    /// Reads a template.
    pub(super) fn parse(text: &str) -> Result<Self, BadEndpoint> {
        let (origin, rest) = split_origin(text)?;
        let pieces = read_pieces(rest)?;
        let mut sample = origin.to_owned();
        let mut names = BTreeSet::new();
        for piece in &pieces {
            match piece {
                Piece::Text(text) => sample.push_str(text),
                Piece::InPath(name) | Piece::InQuery(name) => {
                    sample.push('x');
                    names.insert(name.clone());
                }
            }
        }
        let url = Url::parse(&sample).map_err(|error| BadEndpoint::Address(error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadEndpoint::address("has credentials: put them into a header"));
        }
        let origin = url.origin().ascii_serialization();
        if url.as_str().strip_prefix(&origin) != sample.get(sample.len() - written_length(&pieces)..) {
            return Err(BadEndpoint::address(
                "would be sent differently from how it is written: write no `.` or `..` segments, \
                 and percent-encode what is not plain ASCII",
            ));
        }
        let query_keys = url.query_pairs().map(|(key, _)| key.into_owned()).collect();
        Ok(Self { origin, pieces, names, query_keys })
    }

    /// The arguments it takes.
    pub(super) fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Whether the query has this key, so that an argument of that name would be a second one.
    pub(super) fn has_query_key(&self, key: &str) -> bool {
        self.query_keys.contains(key)
    }

    /// The address with these values, which must be there for every name.
    pub(super) fn fill(&self, values: &BTreeMap<String, String>) -> Result<Url, String> {
        let mut filled = self.origin.clone();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::InPath(name) => {
                    let value = value_of(values, name)?;
                    check_path_value(name, value)?;
                    encode(value, &mut filled);
                }
                Piece::InQuery(name) => encode(value_of(values, name)?, &mut filled),
            }
            if filled.len() > URL_BYTES_MAX {
                return Err(format!("the address with its arguments is longer than {URL_BYTES_MAX} bytes"));
            }
        }
        let url = Url::parse(&filled).map_err(|error| format!("the address with its arguments is none: {error}"))?;
        // Whatever a value did, the address is the one that was put together here, or it is not sent.
        if url.as_str() != filled {
            return Err("an argument would change the path of the address, which is refused".to_owned());
        }
        Ok(url)
    }
}

fn value_of<'a>(values: &'a BTreeMap<String, String>, name: &str) -> Result<&'a str, String> {
    values.get(name).map(String::as_str).ok_or_else(|| format!("the argument {name} is missing: the address needs it"))
}

/// Cuts off scheme and authority, which are taken as written.
fn split_origin(text: &str) -> Result<(&str, &str), BadEndpoint> {
    let (scheme, after) = text.split_once("://").ok_or(BadEndpoint::Scheme)?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(BadEndpoint::Scheme);
    }
    if text.contains(['\\', '#']) {
        return Err(BadEndpoint::address("has a backslash or a fragment, which cannot be sent"));
    }
    let end = after.find(['/', '?']).unwrap_or(after.len());
    let (authority, rest) = after.split_at(end);
    if authority.contains(['{', '}']) {
        return Err(BadEndpoint::address("has a placeholder in its host or port: only path and query may have them"));
    }
    Ok((&text[..scheme.len() + "://".len() + authority.len()], rest))
}

/// Path and query in pieces. A path is at least `/`.
fn read_pieces(rest: &str) -> Result<Vec<Piece>, BadEndpoint> {
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    let mut pieces = Vec::new();
    read_placeholders(if path.is_empty() { "/" } else { path }, Piece::InPath, &mut pieces)?;
    if let Some(query) = query {
        let key = |pair: &str| pair.split_once('=').map_or(pair, |(key, _)| key).contains('{');
        if query.split('&').any(key) {
            return Err(BadEndpoint::address("has a placeholder as a key of its query: only a value may be one"));
        }
        pieces.push(Piece::Text("?".to_owned()));
        read_placeholders(query, Piece::InQuery, &mut pieces)?;
    }
    Ok(pieces)
}

fn read_placeholders(mut text: &str, place: fn(String) -> Piece, pieces: &mut Vec<Piece>) -> Result<(), BadEndpoint> {
    while let Some((before, after)) = text.split_once('{') {
        let (name, rest) = after.split_once('}').ok_or_else(|| BadEndpoint::address("has a { without its }"))?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_name) {
            return Err(BadEndpoint::Placeholder(name.chars().take(64).collect()));
        }
        push_text(before, pieces)?;
        pieces.push(place(name.to_owned()));
        text = rest;
    }
    push_text(text, pieces)
}

fn push_text(text: &str, pieces: &mut Vec<Piece>) -> Result<(), BadEndpoint> {
    if text.contains('}') {
        return Err(BadEndpoint::address("has a } without its {"));
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text.to_owned()));
    }
    Ok(())
}

/// How many bytes path and query of the sample have, in which every value is one letter.
fn written_length(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| if let Piece::Text(text) = piece { text.len() } else { 1 }).sum()
}

/// Some servers decode `%2F` before they look at the path, so what reads as a way out of a segment is refused even
/// though it would be encoded. An empty value would name the list in place of one of its things.
fn check_path_value(name: &str, value: &str) -> Result<(), String> {
    if value.is_empty() {
        return Err(format!("the argument {name} is empty: it is a part of the address's path"));
    }
    let leaves = value.split(['/', '\\']).any(|segment| segment == "." || segment == "..");
    if leaves || value.chars().any(char::is_control) {
        return Err(format!("the argument {name} would change the path of the address, which is refused"));
    }
    Ok(())
}

/// Everything but letters, digits and `-._~` is encoded.
pub(super) fn encode(value: &str, into: &mut String) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            into.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(into, "%{byte:02X}");
        }
    }
}
