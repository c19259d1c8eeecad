//! The order of an object's members: by the code points of their keys, each key once. Members are ranges of the output,
//! so sorting moves no text.

use std::cmp::Ordering;
use std::iter;

use super::{JsonProblem, string};

/// Where a member stands in the output: `"key":value`, without a comma.
pub(super) struct Member {
    /// Where the key starts in the text given.
    pub(super) offset: usize,
    pub(super) start: usize,
    /// Just past the key's closing quote.
    pub(super) key_end: usize,
    pub(super) end: usize,
    /// Whether the key, as written, has escapes.
    pub(super) has_escapes: bool,
}

impl Member {
    fn key<'a>(&self, out: &'a str) -> &'a [u8] {
        &out.as_bytes()[self.start + 1..self.key_end - 1]
    }
}

/// Sorts `members` by key, or refuses them for the first key, in that order, which comes twice.
pub(super) fn sort(members: &mut [Member], out: &str) -> Result<(), JsonProblem> {
    members.sort_by(|left, right| compare(left, right, out));
    let duplicate = members.windows(2).find(|pair| compare(&pair[0], &pair[1], out).is_eq());
    duplicate.map_or(Ok(()), |pair| Err(JsonProblem::DuplicateKey { offset: pair[1].offset }))
}

/// Compares by what the keys mean: escapes would sort by their backslash. The bytes of UTF-8 sort as code points do.
pub(super) fn compare(left: &Member, right: &Member, out: &str) -> Ordering {
    if left.has_escapes || right.has_escapes {
        unescaped(left.key(out)).cmp(unescaped(right.key(out)))
    } else {
        left.key(out).cmp(right.key(out))
    }
}

/// The bytes a canonical key stands for. Canonical escapes stand for ASCII only.
fn unescaped(key: &[u8]) -> impl Iterator<Item = u8> {
    let mut at = 0;
    iter::from_fn(move || {
        let byte = *key.get(at)?;
        if byte != b'\\' {
            at += 1;
            return Some(byte);
        }
        let (character, end) = string::unescape(key, at).ok()?;
        at = end;
        u8::try_from(character).ok()
    })
}
