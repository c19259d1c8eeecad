//! Text with `${NAME}` in it. It is kept as it was written, so that it can be stored and shown, and becomes a secret
//! only where it is used.

use std::fmt;
use std::str::FromStr;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use crate::environment::Environment;

/// Text in which `${NAME}` stands for a value of the environment, and `$$` for one `$`.
///
/// Through serde it is the text as written. Its `Debug` shows the names alone, since what stands around them may be a
/// secret too.
///
/// ```
/// use holdpoint_config::{FixedEnvironment, Template};
/// use secrecy::ExposeSecret;
///
/// let header: Template = "Bearer ${BROKER_TOKEN}".parse()?;
/// let environment = FixedEnvironment::empty().with("BROKER_TOKEN", "s3cret");
/// assert_eq!(header.resolve(&environment)?.expose_secret(), "Bearer s3cret");
/// assert_eq!(header.as_written(), "Bearer ${BROKER_TOKEN}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Name(String),
}

impl Template {
    /// The text as it was written, with `${NAME}` in it.
    pub fn as_written(&self) -> &str {
        &self.text
    }

    /// The names that it asks for, in order; a name may occur twice.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Name(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// Whether it asks for no name, so that it is the same everywhere.
    pub fn is_constant(&self) -> bool {
        self.names().next().is_none()
    }

    /// The text with today's values in it.
    ///
    /// # Errors
    /// The first name that is not set.
    pub fn resolve(&self, environment: &dyn Environment) -> Result<SecretString, MissingVariable> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Name(name) => {
                    let value = environment.value(name).ok_or_else(|| MissingVariable(name.clone()))?;
                    text.push_str(value.expose_secret());
                }
            }
        }
        Ok(SecretString::from(text))
    }
}

impl FromStr for Template {
    type Err = BadTemplate;

    fn from_str(text: &str) -> Result<Self, BadTemplate> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            literal.push_str(&rest[..dollar]);
            let after = &rest[dollar + 1..];
            let at = text.len() - after.len() - 1;
            if let Some(after) = after.strip_prefix('$') {
                literal.push('$');
                rest = after;
            } else if let Some(after) = after.strip_prefix('{') {
                let end = after.find('}').ok_or(BadTemplate { at, problem: "`${` without `}`" })?;
                let name = &after[..end];
                if !is_variable_name(name) {
                    return Err(BadTemplate { at, problem: "a name of letters, digits and `_` expected in `${…}`" });
                }
                if !literal.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut literal)));
                }
                parts.push(Part::Name(name.to_owned()));
                rest = &after[end + 1..];
            } else {
                literal.push('$');
                rest = after;
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Self { text: text.to_owned(), parts })
    }
}

impl TryFrom<String> for Template {
    type Error = BadTemplate;

    fn try_from(text: String) -> Result<Self, BadTemplate> {
        text.parse()
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.text
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Template")?;
        f.debug_list().entries(self.names()).finish()
    }
}

/// Whether `name` can be the name of an environment variable: letters, digits and `_`, with no digit in front.
pub(crate) fn is_variable_name(name: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_inner) && name.starts_with(|c: char| !c.is_ascii_digit()) && name.len() <= 256
}

/// An environment variable that is not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("environment variable {0} is not set")]
pub struct MissingVariable(pub String);

/// Text that is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct BadTemplate {
    /// The byte at which the bad part starts.
    pub at: usize,
    /// What is wrong there.
    pub problem: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::FixedEnvironment;

    fn resolved(text: &str) -> String {
        let environment = FixedEnvironment::empty().with("A", "1").with("_b2", "two");
        let template: Template = text.parse().unwrap();
        template
            .resolve(&environment)
            .map_or_else(|missing| missing.to_string(), |text| text.expose_secret().to_owned())
    }

    #[test]
    fn names_are_replaced_and_doubled_dollars_are_not() {
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("${A}", "1"),
            ("x${A}y${_b2}z", "x1ytwoz"),
            ("$${A}", "${A}"),
            ("$$$$", "$$"),
            ("cost: 5$", "cost: 5$"),
            ("$A", "$A"),
            ("日${A}本", "日1本"),
            ("${NOT_SET}", "environment variable NOT_SET is not set"),
        ] {
            assert_eq!(resolved(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_a_name_is_refused_where_it_stands() {
        for (text, at) in [("ab${", 2), ("${}", 0), ("x ${a b}", 2), ("${1a}", 0), ("${A:-default}", 0), ("$$${", 2)] {
            assert_eq!(text.parse::<Template>().unwrap_err().at, at, "{text}");
        }
    }

    #[test]
    fn a_template_is_stored_as_written_and_its_debug_shows_names_alone() {
        let template: Template = "Bearer abc ${TOKEN}".parse().unwrap();
        let stored = serde_json::to_string(&template).unwrap();
        assert_eq!(stored, r#""Bearer abc ${TOKEN}""#);
        assert_eq!(serde_json::from_str::<Template>(&stored).unwrap(), template);
        assert_eq!(format!("{template:?}"), r#"Template["TOKEN"]"#);
    }
}
