//! The address of a provider: as people write it, with or without a slash, a version or an endpoint at its end.

use reqwest::Url;

/// An address that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadProvider {
    /// The address is none.
    #[error("{variable} is not an address such as https://api.example.com/v1: {reason}")]
    Address {
        /// Where it is set.
        variable: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A key, organisation or project that no header can carry.
    #[error("{variable} has characters that a header cannot carry: check it for line breaks and accents")]
    Header {
        /// Where it is set.
        variable: &'static str,
    },
}

/// The address of a provider.
#[derive(Clone)]
pub(crate) struct Address(Url);

const ENDPOINTS: &[&str] = &["/chat/completions", "/responses", "/messages"];

impl Address {
    /// Reads an address that was set in `variable`.
    pub(crate) fn parse(text: &str, variable: &'static str) -> Result<Self, BadProvider> {
        let bad = |reason: &str| BadProvider::Address { variable, reason: reason.to_owned() };
        let mut url = Url::parse(text.trim()).map_err(|problem| bad(&problem.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad("it begins with neither https:// nor http://"));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(bad("it has no host"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("it has a user name or password in it, which would end up in logs"));
        }
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/');
        let path = ENDPOINTS.iter().find_map(|endpoint| path.strip_suffix(endpoint)).unwrap_or(path);
        let path = if path.split('/').any(is_version) { path.to_owned() } else { format!("{path}/v1") };
        url.set_path(&path);
        Ok(Self(url))
    }

    /// The address of an endpoint, such as `chat/completions`.
    pub(crate) fn endpoint(&self, endpoint: &str) -> Url {
        let mut url = self.0.clone();
        url.set_path(&format!("{}/{endpoint}", self.0.path().trim_end_matches('/')));
        url
    }

    /// Host and port, for people.
    pub(crate) fn host(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    pub(crate) fn is_at(&self, host: &str) -> bool {
        self.0.host_str() == Some(host)
    }

    /// Whether it is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
        host == "localhost" || host.ends_with(".localhost") || address.is_ok_and(|address| address.is_loopback())
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Whether what is sent there can be read on the way.
    pub(crate) fn is_in_the_open(&self) -> bool {
        !self.is_encrypted() && !self.is_loopback()
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without what follows a question mark, where some servers want a key.
        write!(f, "{}://{}{}", self.0.scheme(), self.host(), self.0.path())
    }
}

/// Whether a part of a path is a version: `v1`, `v1beta`.
fn is_version(part: &str) -> bool {
    part.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_people_write_it() {
        for (text, expected) in [
            ("https://api.openai.com", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            (" https://api.openai.com/v1/ ", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/v1//", "https://api.openai.com/v1/chat/completions"),
            ("http://localhost:11434", "http://localhost:11434/v1/chat/completions"),
            ("http://localhost:11434/v1/chat/completions", "http://localhost:11434/v1/chat/completions"),
            ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"),
            ("https://example.com/llm", "https://example.com/llm/v1/chat/completions"),
            ("https://example.com/v1beta/openai/", "https://example.com/v1beta/openai/chat/completions"),
            ("https://example.com/v1?api-version=3", "https://example.com/v1/chat/completions?api-version=3"),
        ] {
            let address = Address::parse(text, "OPENAI_BASE_URL").unwrap();
            assert_eq!(address.endpoint("chat/completions").as_str(), expected);
        }
    }

    #[test]
    fn an_address_that_is_none_says_where_it_was_set() {
        for (text, reason) in [
            ("", "relative URL without a base"),
            ("localhost:11434", "it begins with neither https:// nor http://"),
            ("api.openai.com", "relative URL without a base"),
            ("https://user:secret@example.com", "it has a user name or password in it, which would end up in logs"),
        ] {
            let told = Address::parse(text, "OPENAI_BASE_URL").unwrap_err().to_string();
            let expected = format!("OPENAI_BASE_URL is not an address such as https://api.example.com/v1: {reason}");
            assert_eq!(told, expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_shown_of_an_address_has_no_query() {
        let address = Address::parse("https://example.com:8443/v1?key=secret", "OPENAI_BASE_URL").unwrap();
        assert_eq!(format!("{address:?}"), "https://example.com:8443/v1");
        assert_eq!(address.host(), "example.com:8443");
    }

    #[test]
    fn this_machine_is_known() {
        for (text, is_loopback) in [
            ("http://127.0.0.1:1", true),
            ("http://[::1]:1", true),
            ("http://localhost:1", true),
            ("http://10.0.0.1", false),
            ("http://example.com", false),
        ] {
            let address = Address::parse(text, "X").unwrap();
            assert_eq!((address.is_loopback(), address.is_in_the_open()), (is_loopback, !is_loopback), "{text}");
        }
    }
}
