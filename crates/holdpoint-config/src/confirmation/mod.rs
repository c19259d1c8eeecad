//! Phrases by which a model's reply asks a person to confirm.

mod fold;

use serde::{Deserialize, Serialize};

use fold::folded;

/// The phrases that ask without any setting, and other ways to spell each.
const DEFAULT: [(&str, &[&str]); 12] = [
    ("please confirm", &[]),
    ("do you confirm", &[]),
    ("are you sure", &[]),
    ("shall i proceed", &[]),
    ("would you like me to proceed", &[]),
    ("do you want to proceed", &[]),
    ("do you want me to", &[]),
    ("should i go ahead", &[]),
    ("confirm before", &[]),
    ("confirmation required", &[]),
    ("waiting for your confirmation", &[]),
    ("need your approval", &["needs your approval"]),
];

/// Phrases by which a reply asks for a confirmation, in any language.
///
/// Upper and lower case are the same, so are all white space and line breaks, and an accent is the same whether it is
/// part of its letter or follows it. Emphasis (`*`, `_`, `` ` ``) and characters that do not show are passed over. A
/// phrase is found anywhere in a reply.
///
/// ```
/// use holdpoint_config::Phrases;
///
/// let phrases = Phrases::default();
/// assert_eq!(phrases.matches("This action **needs your\n approval**."), Some("need your approval"));
/// assert_eq!(phrases.matches("Done."), None);
///
/// let phrases = Phrases::from_keywords(["+ xin xác nhận"]);
/// assert_eq!(phrases.matches("Xin  XÁC nhận giao dịch này"), Some("xin xác nhận"));
/// assert!(phrases.matches("Are you sure?").is_some());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct Phrases(Vec<Phrase>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Phrase {
    shown: String,
    folded: Vec<String>,
}

impl Phrases {
    /// Phrases from an agent's `keywords`. One that starts with `+` comes in addition to the default ones; if there is
    /// none such, the list replaces them. An empty list asks never.
    pub fn from_keywords<K: AsRef<str>>(keywords: impl IntoIterator<Item = K>) -> Self {
        let mut extends = false;
        let mut given = Vec::new();
        for keyword in keywords {
            let text = keyword.as_ref().trim();
            let rest = text.strip_prefix('+');
            extends |= rest.is_some();
            given.push(Phrase::new(rest.unwrap_or(text).trim()));
        }
        let mut phrases = if extends { Self::default().0 } else { Vec::new() };
        phrases.extend(given.into_iter().filter(|phrase| !phrase.is_empty()));
        Self(phrases)
    }

    /// The first phrase that `reply` has in it, as it was written.
    pub fn matches(&self, reply: &str) -> Option<&str> {
        let reply = folded(reply);
        let is_in = |phrase: &&Phrase| phrase.folded.iter().any(|spelling| reply.contains(spelling.as_str()));
        self.0.iter().find(is_in).map(|phrase| phrase.shown.as_str())
    }

    /// All phrases, as they were written.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|phrase| phrase.shown.as_str())
    }

    /// Whether a keyword has anything in it that could be found.
    pub(crate) fn is_searchable(keyword: &str) -> bool {
        let text = keyword.trim();
        !Phrase::new(text.strip_prefix('+').unwrap_or(text).trim()).is_empty()
    }
}

impl Default for Phrases {
    /// The twelve phrases of SuperAgent's documentation.
    fn default() -> Self {
        Self(DEFAULT.iter().map(|(phrase, _)| Phrase::new(phrase)).collect())
    }
}

impl From<Vec<String>> for Phrases {
    /// Exactly these phrases: the stored form, in which nothing is added.
    fn from(phrases: Vec<String>) -> Self {
        Self(phrases.iter().map(|phrase| Phrase::new(phrase)).filter(|phrase| !phrase.is_empty()).collect())
    }
}

impl From<Phrases> for Vec<String> {
    fn from(phrases: Phrases) -> Self {
        phrases.0.into_iter().map(|phrase| phrase.shown).collect()
    }
}

impl Phrase {
    fn new(text: &str) -> Self {
        let main = folded(text).trim().to_owned();
        let others = DEFAULT.iter().filter(|(phrase, _)| *phrase == main).flat_map(|(_, others)| *others);
        let others: Vec<String> = others.map(|other| (*other).to_owned()).collect();
        Self { shown: text.to_owned(), folded: std::iter::once(main).chain(others).collect() }
    }

    fn is_empty(&self) -> bool {
        self.folded.iter().all(String::is_empty)
    }
}

#[cfg(test)]
mod tests;
