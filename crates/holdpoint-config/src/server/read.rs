//! The layers understood: text to typed settings, and what does not fit together.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use super::file::{self, FileValues};
use super::layers::{Layers, Origin, Raw, ServerFlags, report};
use super::settings::{Setting, SettingKind};
use super::{
    Log, LogFormat, RequestLimits, Retention, ServerConfig, StoreAddress, Traces, Web, Webhooks, guard, mcp,
    notifications,
};
use crate::diagnostic::suggest::did_you_mean;
use crate::diagnostic::{Code, Diagnostic, quoted};
use crate::environment::Environment;
use crate::folder::read_source;
use crate::source::Source;
use crate::yaml::{Reader, one_of};

/// What came of reading a server's settings.
#[derive(Debug)]
pub struct ReadServer {
    /// The settings; `None` where one of them has an error.
    pub config: Option<ServerConfig>,
    /// Everything that is wrong.
    pub diagnostics: Vec<Diagnostic>,
}

/// Finds the server's file by flag, environment or default, and reads all settings. A file that was named must be
/// there; the default one may be missing.
pub fn load_server(environment: &dyn Environment, flags: &ServerFlags) -> ReadServer {
    let (path, is_named) = file_path(environment, flags);
    let source = match read_source(&path) {
        Ok(source) => Some(source),
        Err(_) if !is_named && !path.exists() => None,
        Err(problem) => {
            let mut read = read_server(None, environment, flags);
            read.config = None;
            read.diagnostics.insert(0, *problem);
            return read;
        }
    };
    read_server(source, environment, flags)
}

/// Where the server's file is, and whether somebody named it.
fn file_path(environment: &dyn Environment, flags: &ServerFlags) -> (PathBuf, bool) {
    let setting = Setting::by_flag("config").expect("the table has the file's own path");
    let named = flags.value(setting.flag).cloned().or_else(|| environment.value(setting.variable));
    let named = named.map(|path| PathBuf::from(path.expose_secret())).filter(|path| !path.as_os_str().is_empty());
    match named {
        Some(path) => (path, true),
        None => (PathBuf::from(setting.default), false),
    }
}

/// Reads all settings from the text of a file, the environment and flags.
pub fn read_server(file: Option<Source>, environment: &dyn Environment, flags: &ServerFlags) -> ReadServer {
    let source = file.unwrap_or_else(|| Source::new("holdpoint.yaml", "{}"));
    let reader = Reader::new(Arc::new(source), environment);
    // A file with nothing but comments in it says nothing.
    let is_empty = reader.source().text().lines().all(|line| line.trim().is_empty() || line.trim().starts_with('#'));
    let root = if is_empty { None } else { reader.parse() };
    let values = root.as_ref().map(|root| file::values(&reader, root)).unwrap_or_default();
    let config = config(&reader, values, environment, flags);
    let config = config.filter(|_| !reader.has_errors());
    ReadServer { config, diagnostics: reader.finish() }
}

fn config(
    reader: &Reader<'_>,
    values: FileValues<'_>,
    environment: &dyn Environment,
    flags: &ServerFlags,
) -> Option<ServerConfig> {
    let FileValues { raw, structures } = values;
    let layers = Layers::new(raw, environment, flags);
    let typed = Typed { reader, layers: &layers };
    let listen = typed.listen();
    let store = typed.store();
    let mcp_servers = structures.get("mcp_servers").map(|node| mcp::read_all(reader, node));
    let notifications = structures.get("notifications").map(|node| notifications::read_all(reader, node));
    let access = guard::read(&typed, &structures, listen);
    let traces = typed.url("traces.endpoint").map(|endpoint| Traces {
        endpoint,
        service_name: typed.text("traces.service_name").unwrap_or_default(),
        sample_ratio: typed.number("traces.sample_ratio"),
    });
    let deadline = |key| {
        let seconds = u64::try_from(typed.integer(key)).ok().filter(|seconds| *seconds > 0);
        seconds.map(Duration::from_secs)
    };
    let pause_deadline = deadline("pause.deadline_seconds");
    let question_deadline = deadline("pause.question_deadline_seconds");
    let format = match typed.choice("log.format") {
        Some("json") => LogFormat::Json,
        _ => LogFormat::Text,
    };
    // All settings are looked at before the first one that is wrong ends this.
    let limits = RequestLimits {
        body_bytes_max: typed.count("limits.body_bytes_max"),
        requests_per_second: typed.small("limits.requests_per_second"),
        requests_burst: typed.small("limits.requests_burst"),
        streams_max: typed.count("limits.streams_max"),
    };
    let webhooks = Webhooks { secret: typed.webhook_secret(), allow_private: typed.boolean("webhooks.allow_private") };
    let web = Web { allowed_hosts: typed.hosts(), allowed_origins: typed.origins() };
    let mastra_prefix = typed.mastra_prefix();
    let (public_url, strict, turns_max) = (typed.public_url(), typed.boolean("strict"), typed.small("run.max_turns"));
    let retention = typed.retention();
    let shutdown = Duration::from_secs(u64::try_from(typed.integer("shutdown_seconds")).unwrap_or(0));
    Some(ServerConfig {
        listen: listen?,
        public_url,
        store: store?,
        agents: typed.text("agents").map(PathBuf::from).unwrap_or_default(),
        policies: typed.text("policies").map(PathBuf::from),
        strict,
        access: access?,
        limits,
        pause_deadline,
        question_deadline,
        turns_max,
        retention,
        shutdown,
        traces,
        webhooks,
        notifications: notifications.unwrap_or_default(),
        mcp_servers: mcp_servers.unwrap_or_else(BTreeMap::new),
        web,
        mastra_prefix,
        log: Log { format, filter: typed.text("log.filter").unwrap_or_default() },
    })
}

/// Settings by key, as the table says they are typed. A problem is reported where the value comes from.
pub(super) struct Typed<'r> {
    pub reader: &'r Reader<'r>,
    pub layers: &'r Layers,
}

impl Typed<'_> {
    fn raw(&self, key: &str) -> Option<(&'static Setting, &Raw)> {
        let setting = Setting::by_key(key)?;
        let raw = self.layers.get(key)?;
        Some((setting, raw))
    }

    pub(super) fn bad(&self, raw: &Raw, code: Code, message: impl Into<String>, hint: impl Into<String>) {
        report(self.reader, &raw.origin, code, message.into(), hint.into());
    }

    /// A text; an empty one counts as none.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.raw(key).map(|(_, raw)| raw.text()).filter(|text| !text.trim().is_empty())
    }

    pub(super) fn origin(&self, key: &str) -> Option<&Raw> {
        self.layers.get(key)
    }

    pub(super) fn url(&self, key: &str) -> Option<String> {
        let text = self.text(key)?;
        let (_, raw) = self.raw(key)?;
        if !is_web_address(&text) {
            self.bad(
                raw,
                Code::BadUrl,
                format!("`{key}` is not an address"),
                "write an address such as `https://host/path`",
            );
            return None;
        }
        Some(text)
    }

    /// The address that links to pages begin with: what follows its path would swallow theirs, and who sees a link would
    /// see a password in it.
    fn public_url(&self) -> Option<String> {
        let text = self.url("public_url")?;
        let (_, raw) = self.raw("public_url")?;
        if text.contains(['@', '?', '#']) {
            let message = "`public_url` has more than a host and a path".to_owned();
            self.bad(raw, Code::BadUrl, message, "write an address such as `https://host/path`, without a password");
            return None;
        }
        Some(text)
    }

    pub(super) fn boolean(&self, key: &str) -> bool {
        let Some((_, raw)) = self.raw(key) else { return false };
        match raw.text().as_str() {
            "true" | "1" => true,
            "false" | "0" => false,
            _ => {
                self.bad(raw, Code::WrongType, format!("`{key}` must be true or false"), "write true or false");
                false
            }
        }
    }

    fn integer(&self, key: &str) -> i64 {
        let Some((setting, raw)) = self.raw(key) else { return 0 };
        let SettingKind::Integer { min, max } = setting.kind else { return 0 };
        match raw.text().trim().parse::<i64>() {
            Ok(number) if (min..=max).contains(&number) => number,
            Ok(_) => {
                self.bad(
                    raw,
                    Code::OutOfRange,
                    format!("`{key}` must be from {min} to {max}"),
                    "choose another number",
                );
                min
            }
            Err(_) => {
                self.bad(
                    raw,
                    Code::WrongType,
                    format!("`{key}` must be a whole number"),
                    format!("write a number from {min} to {max}"),
                );
                min
            }
        }
    }

    fn count(&self, key: &str) -> usize {
        usize::try_from(self.integer(key)).unwrap_or(0)
    }

    fn small(&self, key: &str) -> u32 {
        u32::try_from(self.integer(key)).unwrap_or(0)
    }

    fn number(&self, key: &str) -> f64 {
        let Some((setting, raw)) = self.raw(key) else { return 0.0 };
        let SettingKind::Number { min, max } = setting.kind else { return 0.0 };
        match raw.text().trim().parse::<f64>() {
            Ok(number) if (min..=max).contains(&number) => number,
            _ => {
                self.bad(
                    raw,
                    Code::OutOfRange,
                    format!("`{key}` must be a number from {min} to {max}"),
                    "choose another number",
                );
                min
            }
        }
    }

    pub(super) fn choice(&self, key: &str) -> Option<&'static str> {
        let (setting, raw) = self.raw(key)?;
        let SettingKind::Choice(choices) = setting.kind else { return None };
        let text = raw.text();
        let found = choices.iter().copied().find(|choice| *choice == text);
        if found.is_none() && !text.is_empty() {
            let hint =
                did_you_mean(&text, choices.iter().copied()).unwrap_or_else(|| format!("write {}", one_of(choices)));
            self.bad(raw, Code::BadValue, format!("`{key}` cannot be {}", quoted(&text)), hint);
        }
        found
    }

    fn list(&self, key: &str) -> Vec<String> {
        let Some((_, raw)) = self.raw(key) else { return Vec::new() };
        let parts = |text: &SecretString| -> Vec<String> {
            let split = text.expose_secret().split(',').map(|part| part.trim().to_owned());
            split.filter(|part| !part.is_empty()).collect()
        };
        raw.texts.iter().flat_map(parts).collect()
    }

    fn listen(&self) -> Option<SocketAddr> {
        let (_, raw) = self.raw("listen")?;
        let text = raw.text();
        let text = text.trim();
        // `:8080` is every address; `localhost:8080` is the loopback one, without asking a name server.
        let written = match text.strip_prefix(':') {
            Some(port) => format!("0.0.0.0:{port}"),
            None => text.replacen("localhost:", "127.0.0.1:", 1),
        };
        let address = written.parse::<SocketAddr>().ok();
        if address.is_none() {
            let hint = "write an address and a port, such as `127.0.0.1:8888` or `[::1]:8888`";
            self.bad(raw, Code::BadValue, format!("`listen` cannot be {}", quoted(text)), hint);
        }
        address
    }

    fn retention(&self) -> Option<Retention> {
        let number = |key| u64::try_from(self.integer(key)).unwrap_or(0);
        let (days, sweep) = (number("retention.days"), Duration::from_secs(number("retention.sweep_seconds")));
        (days > 0).then(|| Retention { keep: Duration::from_secs(days * 24 * 3600), sweep })
    }

    fn store(&self) -> Option<StoreAddress> {
        let (_, raw) = self.raw("store")?;
        match StoreAddress::parse(raw.text().trim()) {
            Ok(store) => Some(store),
            Err(problem) => {
                self.bad(raw, Code::BadValue, "`store` is not the address of a store", problem);
                None
            }
        }
    }

    /// A key for Standard Webhooks: `whsec_` and base64, or any text that is long enough.
    fn webhook_secret(&self) -> Option<SecretString> {
        let text = self.text("webhooks.secret")?;
        let (_, raw) = self.raw("webhooks.secret")?;
        if matches!(raw.origin, Origin::Flag(_)) {
            let hint = "set HOLDPOINT_WEBHOOKS_SECRET instead";
            self.bad(raw, Code::SecretInFile, "other users of the machine can read the flags of a program", hint);
        }
        if text.trim().len() < 24 {
            self.bad(
                raw,
                Code::BadValue,
                "`webhooks.secret` is shorter than 24 characters",
                "use 32 random bytes in base64",
            );
            return None;
        }
        Some(SecretString::from(text.trim().to_owned()))
    }

    /// A path of plain segments that no other protocol stands under.
    fn mastra_prefix(&self) -> String {
        let key = "protocols.mastra.prefix";
        let Some((setting, raw)) = self.raw(key) else { return String::new() };
        let text = raw.text();
        let path = text.trim().trim_end_matches('/');
        let is_plain = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        let is_path = path.is_empty() || path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_plain));
        let is_taken = ["/api/v1", "/api/v2"].iter().any(|taken| format!("{path}/").starts_with(&format!("{taken}/")));
        if !is_path || is_taken || path.len() > 128 {
            let hint = "write a path such as `/api` or `/mastra`; `/api/v1` and `/api/v2` are taken";
            self.bad(raw, Code::BadValue, format!("`{key}` cannot be {}", quoted(&text)), hint);
            return setting.default.to_owned();
        }
        path.to_owned()
    }

    fn hosts(&self) -> Vec<String> {
        let hosts = self.list("web.allowed_hosts");
        for host in &hosts {
            let is_host = !host.contains(['/', '@', '*', ' ']) && host.parse::<http::uri::Authority>().is_ok();
            if let (false, Some((_, raw))) = (is_host, self.raw("web.allowed_hosts")) {
                self.bad(
                    raw,
                    Code::BadValue,
                    format!("{} is not a host", quoted(host)),
                    "write `holdpoint.example` or `holdpoint.example:8888`",
                );
            }
        }
        hosts.iter().map(|host| host.to_ascii_lowercase()).collect()
    }

    fn origins(&self) -> Vec<String> {
        let origins = self.list("web.allowed_origins");
        for origin in &origins {
            let rest = origin.split_once("://").map_or("", |(_, rest)| rest);
            let is_origin = is_web_address(origin) && !rest.contains(['/', '?', '#', '@', '*']);
            if let (false, Some((_, raw))) = (is_origin, self.raw("web.allowed_origins")) {
                self.bad(
                    raw,
                    Code::BadValue,
                    format!("{} is not an origin", quoted(origin)),
                    "write `https://host`, without a path; `*` is not accepted",
                );
            }
        }
        origins.iter().map(|origin| origin.to_ascii_lowercase()).collect()
    }
}

/// Whether text is an `http` or `https` address with a host.
pub(super) fn is_web_address(text: &str) -> bool {
    let uri: Option<http::Uri> = text.trim().parse().ok();
    uri.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
    })
}
