//! The address of a mail server.

use std::net::IpAddr;

use reqwest::Url;

use super::BadEmail;

/// How a conversation is kept from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encryption {
    /// From the first byte.
    Whole,
    /// From the second step; without it nothing is said.
    StartTls,
    /// Not at all: only within this machine.
    None,
}

/// A mail server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerAddress {
    pub(super) encryption: Encryption,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: Option<String>,
}

impl ServerAddress {
    pub(super) fn parse(text: &str) -> Result<Self, BadEmail> {
        let url = Url::parse(text).map_err(|_| BadEmail::Server)?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(BadEmail::Server)?;
        let is_bare = url.password().is_none() && url.query().is_none() && url.fragment().is_none();
        if !is_bare || !matches!(url.path(), "" | "/") {
            return Err(BadEmail::Server);
        }
        let (encryption, port) = match url.scheme() {
            "smtps" => (Encryption::Whole, 465),
            "smtp+starttls" => (Encryption::StartTls, 587),
            "smtp" if is_here(host) => (Encryption::None, 25),
            "smtp" => return Err(BadEmail::Unencrypted),
            _ => return Err(BadEmail::Server),
        };
        let user = percent_encoding::percent_decode_str(url.username()).decode_utf8().map_err(|_| BadEmail::Server)?;
        Ok(Self {
            encryption,
            host: host.trim_matches(['[', ']']).to_owned(),
            port: url.port().unwrap_or(port),
            user: Some(user.into_owned()).filter(|user| !user.is_empty()),
        })
    }
}

/// Whether a host is this machine.
fn is_here(host: &str) -> bool {
    let plain = host.trim_matches(['[', ']']);
    plain == "localhost" || plain.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypted_servers_anywhere_and_others_only_here() {
        let read = |text: &str| ServerAddress::parse(text);
        let server = read("smtps://ana%40example.com@mail.example").unwrap();
        assert_eq!((server.encryption, server.port), (Encryption::Whole, 465));
        assert_eq!((server.host.as_str(), server.user.as_deref()), ("mail.example", Some("ana@example.com")));
        let server = read("smtp+starttls://mail.example:2525").unwrap();
        assert_eq!((server.encryption, server.port, server.user), (Encryption::StartTls, 2525, None));
        assert_eq!(read("smtp://127.0.0.1:25").unwrap().encryption, Encryption::None);
        assert_eq!(read("smtp://[::1]:25").unwrap().host, "::1");
        assert_eq!(read("smtp://mail.example"), Err(BadEmail::Unencrypted));
        for bad in ["", "mail.example", "http://mail.example", "smtps://ana:secret@mail.example", "smtps://h/?x=1"] {
            assert_eq!(read(bad), Err(BadEmail::Server), "{bad}");
        }
    }
}
