//! Which hosts a request may be meant for, and which web pages it may come from.
//!
//! A server on loopback is reachable for every page in the browser of its user: by a name that resolves to it
//! (rebinding), or by a plain cross-site request. Both are told by headers that pages cannot forge.

use std::net::SocketAddr;

use http::{HeaderMap, HeaderValue, Method, Uri, header};

use crate::problem::{Code, Problem};

/// Which hosts a request may be meant for, and which other sites' pages may send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Door {
    /// `name:port`, lower case; empty for any.
    hosts: Vec<String>,
    /// `scheme://name:port`, lower case, of pages elsewhere that an operator trusts.
    origins: Vec<String>,
}

/// The names of every machine for itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

impl Door {
    /// The names of this machine for itself, at the port that is listened on, and further names.
    ///
    /// A further name without a port is taken with every port of a web server: none, and the one listened on.
    pub fn of_loopback(listen: SocketAddr, further: &[String]) -> Self {
        let names = LOOPBACK.map(str::to_owned);
        let names = names.into_iter().chain(further.iter().map(|name| name.to_ascii_lowercase()));
        Self { hosts: names.flat_map(|name| with_ports(&name, listen.port())).collect(), origins: Vec::new() }
    }

    /// Only these names, and those of this machine for itself, by which health checks ask beside the server: no page of
    /// anybody else has them. None: any, for a server whose callers show credentials.
    pub fn of_names(listen: SocketAddr, names: &[String]) -> Self {
        match names {
            [] => Self { hosts: Vec::new(), origins: Vec::new() },
            names => Self::of_loopback(listen, names),
        }
    }

    /// Lets pages of these origins in, such as `https://console.example`.
    #[must_use]
    pub fn with_origins(mut self, origins: &[String]) -> Self {
        let plain = |origin: &String| origin.trim_end_matches('/').to_ascii_lowercase();
        self.origins = origins.iter().map(plain).collect();
        self
    }

    /// The page elsewhere that sends the request, where the operator trusts it.
    pub fn trusted_origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(header::ORIGIN)?;
        let text = origin.to_str().ok()?.to_ascii_lowercase();
        self.origins.contains(&text).then(|| origin.clone())
    }

    /// Refuses a request that is meant for another host, or that a foreign page sent.
    ///
    /// # Errors
    /// 421 `bad_host`, 403 `bad_origin`.
    pub fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        if !self.hosts.is_empty() {
            self.check_host(uri, headers)?;
        }
        if self.trusted_origin(headers).is_some() {
            return Ok(());
        }
        check_site(method, uri, headers)?;
        self.check_origin(uri, headers)
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let mut named = headers.get_all(header::HOST).iter().map(HeaderValue::as_bytes);
        let by_uri = uri.authority().map(|authority| authority.as_str().as_bytes());
        let is_known = |host: &[u8]| self.hosts.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(host));
        let is_named = by_uri.is_some() || headers.contains_key(header::HOST);
        let is_one = headers.get_all(header::HOST).iter().count() <= 1;
        match is_named && is_one && named.all(is_known) && by_uri.is_none_or(is_known) {
            true => Ok(()),
            false => Err(Problem::new(
                Code::BAD_HOST,
                "the Host header does not name this server: use the address that it printed, or add the name to its hosts",
            )),
        }
    }

    /// A page says where it comes from. Only this server's own pages may call it.
    fn check_origin(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default().to_ascii_lowercase();
        let of = |host: &str| [format!("http://{host}"), format!("https://{host}")];
        let is_own = match self.hosts.is_empty() {
            false => self.hosts.iter().flat_map(|host| of(host)).any(|own| own == origin),
            // Any name is this server's: its pages come from the name that the request is meant for.
            true => {
                let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
                let host = host.or(uri.authority().map(http::uri::Authority::as_str)).unwrap_or_default();
                of(&host.to_ascii_lowercase()).contains(&origin)
            }
        };
        if is_own { Ok(()) } else { Err(foreign_page()) }
    }
}

fn with_ports(name: &str, port: u16) -> Vec<String> {
    let has_port = name.rsplit_once(':').is_some_and(|(host, _)| !host.is_empty() && !name.ends_with(']'));
    match (has_port, port) {
        (true, _) => vec![name.to_owned()],
        (false, 80 | 443) => vec![name.to_owned(), format!("{name}:{port}")],
        (false, port) if LOOPBACK.contains(&name) => vec![format!("{name}:{port}")],
        (false, port) => vec![name.to_owned(), format!("{name}:{port}")],
    }
}

/// Browsers say how the page that sends a request stands to this server. Following a link to a page of ours is fine.
fn check_site(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let said = |name: &str| headers.get(name).map(|value| value.as_bytes());
    match said("sec-fetch-site") {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => {
            let is_link = said("sec-fetch-mode") == Some(b"navigate") && said("sec-fetch-dest") == Some(b"document");
            let is_page = matches!(uri.path(), "/" | "/docs") || uri.path().starts_with("/pauses/");
            // Programs that look into letters ask for the head of what is linked, too.
            let only_reads = matches!(*method, Method::GET | Method::HEAD);
            if is_link && is_page && only_reads { Ok(()) } else { Err(foreign_page()) }
        }
    }
}

fn foreign_page() -> Problem {
    Problem::new(
        Code::BAD_ORIGIN,
        "the request comes from a web page of another site; only this server's own pages may call it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn solo() -> Door {
        Door::of_loopback("127.0.0.1:8888".parse().unwrap(), &["box.local".to_owned(), "proxy.example:99".to_owned()])
    }

    #[track_caller]
    fn check(door: &Door, path: &str, pairs: &[(&'static str, &'static str)]) -> Option<&'static str> {
        let uri: Uri = path.parse().unwrap();
        door.check(&Method::GET, &uri, &headers(pairs)).err().map(|problem| problem.code())
    }

    #[test]
    fn only_names_of_this_machine_open_the_door() {
        for good in [
            "localhost:8888",
            "127.0.0.1:8888",
            "[::1]:8888",
            "LOCALHOST:8888",
            "box.local",
            "box.local:8888",
            "proxy.example:99",
        ] {
            let uri: Uri = "/api/v1/runs".parse().unwrap();
            let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(good))]);
            assert!(solo().check(&Method::GET, &uri, &headers).is_ok(), "{good}");
        }
        for bad in [
            "evil.example",
            "127.0.0.1.evil.example:8888",
            "localhost:9",
            "localhost",
            "proxy.example",
            "localhost:8888.evil.example",
            "evil.example@localhost:8888",
            "",
        ] {
            let uri: Uri = "/api/v1/runs".parse().unwrap();
            let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(bad))]);
            assert_eq!(solo().check(&Method::GET, &uri, &headers).err().map(|p| p.code()), Some("bad_host"), "{bad}");
        }
    }

    #[test]
    fn a_request_without_a_host_with_two_or_with_another_in_its_address_is_refused() {
        assert_eq!(check(&solo(), "/", &[]), Some("bad_host"));
        assert_eq!(check(&solo(), "/", &[("host", "localhost:8888"), ("host", "localhost:8888")]), Some("bad_host"));
        assert_eq!(check(&solo(), "http://evil.example/", &[("host", "localhost:8888")]), Some("bad_host"));
        assert_eq!(check(&solo(), "http://localhost:8888/", &[("host", "localhost:8888")]), None);
        assert_eq!(check(&solo(), "http://localhost:8888/", &[]), None);
    }

    #[test]
    fn other_pages_may_not_call() {
        let host = ("host", "localhost:8888");
        for own in ["http://localhost:8888", "http://127.0.0.1:8888", "http://[::1]:8888"] {
            assert_eq!(check(&solo(), "/", &[host, ("origin", own)]), None, "{own}");
        }
        for foreign in ["https://evil.example", "null", "http://localhost.evil.example", "http://localhost:1", ""] {
            assert_eq!(check(&solo(), "/", &[host, ("origin", foreign)]), Some("bad_origin"), "{foreign}");
        }
        for site in ["cross-site", "same-site", "odd"] {
            assert_eq!(check(&solo(), "/api/v1/runs", &[host, ("sec-fetch-site", site)]), Some("bad_origin"), "{site}");
        }
        for site in ["same-origin", "none"] {
            assert_eq!(check(&solo(), "/api/v1/runs", &[host, ("sec-fetch-site", site)]), None, "{site}");
        }
    }

    #[test]
    fn a_link_to_a_page_may_be_followed_and_nothing_else() {
        let link = [
            ("host", "localhost:8888"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        assert_eq!(check(&solo(), "/", &link), None);
        assert_eq!(check(&solo(), "/docs", &link), None);
        assert_eq!(check(&solo(), "/pauses/pau_0198c0ffee007000800000000000beef_1", &link), None);
        assert_eq!(check(&solo(), "/api/v1/pauses", &link), Some("bad_origin"));
        let framed = [link[0], link[1], link[2], ("sec-fetch-dest", "iframe")];
        assert_eq!(check(&solo(), "/", &framed), Some("bad_origin"));
        let asked = |method: Method| solo().check(&method, &Uri::from_static("/pauses/pau_1"), &headers(&link)).is_ok();
        assert_eq!([Method::GET, Method::HEAD, Method::POST, Method::PUT].map(asked), [true, true, false, false]);
    }

    #[test]
    fn pages_that_the_operator_trusts_may_call_and_only_from_exactly_there() {
        let door = solo().with_origins(&["https://Console.example/".to_owned()]);
        let from = |origin| [("host", "localhost:8888"), ("origin", origin), ("sec-fetch-site", "cross-site")];
        assert_eq!(check(&door, "/api/v1/runs", &from("https://console.example")), None);
        for foreign in ["http://console.example", "https://console.example:8443", "https://console.example.evil"] {
            assert_eq!(check(&door, "/api/v1/runs", &from(foreign)), Some("bad_origin"), "{foreign}");
        }
        let elsewhere = [("host", "evil.example"), ("origin", "https://console.example")];
        assert_eq!(check(&door, "/", &elsewhere), Some("bad_host"));
    }

    #[test]
    fn a_server_with_names_is_also_asked_by_health_checks_beside_it() {
        let named = Door::of_names("0.0.0.0:8888".parse().unwrap(), &["holdpoint.example".to_owned()]);
        assert_eq!(check(&named, "/", &[("host", "holdpoint.example")]), None);
        assert_eq!(check(&named, "/readyz", &[("host", "127.0.0.1:8888")]), None);
        assert_eq!(check(&named, "/readyz", &[("host", "127.0.0.1:9")]), Some("bad_host"));
        assert_eq!(check(&named, "/readyz", &[("host", "evil.example")]), Some("bad_host"));
    }

    #[test]
    fn a_server_with_credentials_and_no_names_takes_any_host_and_still_no_foreign_page() {
        let open = Door::of_names("0.0.0.0:8888".parse().unwrap(), &[]);
        assert_eq!(check(&open, "/", &[("host", "holdpoint.example")]), None);
        assert_eq!(check(&open, "/", &[("host", "holdpoint.example"), ("origin", "https://holdpoint.example")]), None);
        assert_eq!(
            check(&open, "/", &[("host", "holdpoint.example"), ("origin", "https://evil.example")]),
            Some("bad_origin")
        );
    }
}
