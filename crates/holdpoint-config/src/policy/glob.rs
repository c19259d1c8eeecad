//! Names with `*` for any text and `?` for one character.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::limits::GLOB_CHARACTERS_MAX;

/// A pattern for names: `*` stands for any text, `?` for one character. Upper and lower case differ.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Glob(String);

impl Glob {
    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a name fits the pattern.
    pub fn matches(&self, name: &str) -> bool {
        let pattern: Vec<char> = self.0.chars().collect();
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut place) = (0, 0);
        // Where the last `*` was seen, and how much of the name it took: the only point to go back to.
        let mut star = None;
        while place < name.len() {
            match pattern.get(at) {
                Some('*') => {
                    star = Some((at, place));
                    at += 1;
                }
                Some(c) if *c == '?' || *c == name[place] => {
                    at += 1;
                    place += 1;
                }
                _ => match star {
                    Some((back, taken)) => {
                        star = Some((back, taken + 1));
                        at = back + 1;
                        place = taken + 1;
                    }
                    None => return false,
                },
            }
        }
        pattern[at..].iter().all(|c| *c == '*')
    }
}

impl FromStr for Glob {
    type Err = BadGlob;

    fn from_str(text: &str) -> Result<Self, BadGlob> {
        let is_right = !text.is_empty() && text.chars().count() <= GLOB_CHARACTERS_MAX;
        match is_right && !text.contains(|c: char| c.is_control() || matches!(c, '[' | ']' | '{' | '}')) {
            true => Ok(Self(text.to_owned())),
            false => Err(BadGlob),
        }
    }
}

impl TryFrom<String> for Glob {
    type Error = BadGlob;

    fn try_from(text: String) -> Result<Self, BadGlob> {
        text.parse()
    }
}

impl From<Glob> for String {
    fn from(glob: Glob) -> Self {
        glob.0
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Text that is not a pattern. Brackets are refused, since other programs read more into them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a name with `*` and `?` expected, of 1 to {GLOB_CHARACTERS_MAX} characters and without brackets")]
pub struct BadGlob;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text_and_a_question_mark_one_character() {
        for (glob, name, expected) in [
            ("*", "", true),
            ("*", "shell", true),
            ("shell", "shell", true),
            ("shell", "Shell", false),
            ("sh*", "shell", true),
            ("*ell", "shell", true),
            ("*e*l*", "shell", true),
            ("s?ell", "shell", true),
            ("s?ell", "sell", false),
            ("delete_*", "delete_user", true),
            ("delete_*", "undelete_user", false),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbXbX", false),
            ("**", "x", true),
            ("日?", "日本", true),
        ] {
            assert_eq!(glob.parse::<Glob>().unwrap().matches(name), expected, "{glob} {name}");
        }
    }

    #[test]
    fn many_stars_do_not_take_long() {
        let glob: Glob = "*a".repeat(99).parse().unwrap();
        assert!(!glob.matches(&format!("{}b", "a".repeat(5_000))));
    }

    #[test]
    fn what_other_programs_read_differently_is_refused() {
        for text in ["", "[ab]", "{a,b}", "a\nb"] {
            assert_eq!(text.parse::<Glob>(), Err(BadGlob), "{text}");
        }
    }
}
