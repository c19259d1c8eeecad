//! Under which path the routes stand: the client's `apiPrefix`.

use std::fmt;

/// A path that every route of this protocol begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(String);

/// A text that cannot be such a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a path such as /api expected, of letters, digits, '-' and '_', and not /api/v1 or /api/v2, which are taken")]
pub struct BadPrefix;

/// Bytes of a prefix.
const BYTES_MAX: usize = 128;

impl Prefix {
    /// Takes a path; one slash at its end does not count, and a slash alone is no prefix at all.
    ///
    /// # Errors
    /// It is no path, or leads to routes of other protocols.
    pub fn new(path: &str) -> Result<Self, BadPrefix> {
        let path = path.strip_suffix('/').unwrap_or(path);
        let is_plain = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        let is_path = path.is_empty() || path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_plain));
        let is_free =
            !["/api/v1", "/api/v2"].iter().any(|taken| path == *taken || path.starts_with(&format!("{taken}/")));
        if is_path && is_free && path.len() <= BYTES_MAX { Ok(Self(path.to_owned())) } else { Err(BadPrefix) }
    }

    /// Whether this address is one of this protocol's.
    pub(crate) fn is_before(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.0.as_str());
        rest.is_some_and(|rest| {
            rest == "/agents" || rest.starts_with("/agents/") || rest.starts_with("/memory/threads/")
        })
    }
}

impl Default for Prefix {
    fn default() -> Self {
        Self("/api".to_owned())
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_and_one_that_is_none_or_taken_is_not() {
        for (good, is) in [("/api", "/api"), ("/api/", "/api"), ("/", ""), ("", ""), ("/a/b-c_9", "/a/b-c_9")] {
            assert_eq!(Prefix::new(good).map(|prefix| prefix.to_string()), Ok(is.to_owned()), "{good}");
        }
        let long = format!("/{}", "a".repeat(BYTES_MAX));
        for bad in ["api", "//", "/a//b", "/a b", "/{x}", "/*", "/api/v1", "/api/v2/x", "/../x", &long] {
            assert_eq!(Prefix::new(bad), Err(BadPrefix), "{bad}");
        }
    }

    #[test]
    fn only_addresses_of_this_protocol_are_its_own() {
        let prefix = Prefix::default();
        for own in ["/api/agents", "/api/agents/x/stream", "/api/memory/threads/t/messages"] {
            assert!(prefix.is_before(own), "{own}");
        }
        for other in ["/api/v1/agents", "/api/v2/agents", "/agents", "/api/agentsx", "/api", "/"] {
            assert!(!prefix.is_before(other), "{other}");
        }
    }
}
