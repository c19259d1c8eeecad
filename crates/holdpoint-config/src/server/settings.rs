//! The one table that the file, the environment, the flags, the help and the documentation follow.

use std::fmt::Write as _;

/// A setting, with its three names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Its key in the server's file, with a point between levels. Empty for the file's own path.
    pub key: &'static str,
    /// Its flag, without the hyphens in front.
    pub flag: &'static str,
    /// Its environment variable.
    pub variable: &'static str,
    /// An environment variable that counts where the first one is not set.
    pub other_variable: Option<&'static str>,
    /// Its value where nobody says; empty for none.
    pub default: &'static str,
    /// What it takes.
    pub kind: SettingKind,
    /// What it is for, in a sentence.
    pub help: &'static str,
}

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum SettingKind {
    /// Any text.
    Text,
    /// Text that is never shown.
    Secret,
    /// A path.
    Path,
    /// An address and a port to listen on.
    Listen,
    /// An address of a store.
    Store,
    /// An `http` or `https` address.
    Url,
    /// True or false.
    Boolean,
    /// A whole number.
    Integer {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
    },
    /// Any number.
    Number {
        /// The smallest.
        min: f64,
        /// The largest.
        max: f64,
    },
    /// One of several words.
    Choice(&'static [&'static str]),
    /// Several texts: a list in the file, with commas between them elsewhere.
    List,
    /// The SHA-256 of a key, as 64 hexadecimal digits.
    Digest,
}

impl SettingKind {
    /// What stands for the value in a help text.
    pub fn placeholder(self) -> &'static str {
        match self {
            Self::Text => "TEXT",
            Self::Secret => "SECRET",
            Self::Path => "PATH",
            Self::Listen => "ADDRESS",
            Self::Store | Self::Url => "URL",
            Self::Boolean => "BOOL",
            Self::Integer { .. } | Self::Number { .. } => "NUMBER",
            Self::Choice(_) => "WORD",
            Self::List => "A,B",
            Self::Digest => "SHA256",
        }
    }
}

const fn setting(
    key: &'static str,
    flag: &'static str,
    variable: &'static str,
    default: &'static str,
    kind: SettingKind,
    help: &'static str,
) -> Setting {
    Setting { key, flag, variable, other_variable: None, default, kind, help }
}

const DAY: i64 = 24 * 3600;

/// All settings, in the order in which help and documentation have them.
pub const SETTINGS: &[Setting] = &[
    setting("", "config", "HOLDPOINT_CONFIG", "holdpoint.yaml", SettingKind::Path, "The server's own file"),
    setting(
        "listen",
        "listen",
        "HOLDPOINT_LISTEN",
        "127.0.0.1:8888",
        SettingKind::Listen,
        "Address and port to listen on",
    ),
    setting(
        "public_url",
        "public-url",
        "HOLDPOINT_PUBLIC_URL",
        "",
        SettingKind::Url,
        "Address by which people reach the server, if another",
    ),
    setting(
        "store",
        "store",
        "HOLDPOINT_STORE",
        "sqlite://holdpoint.db",
        SettingKind::Store,
        "Where runs are kept: sqlite://FILE, postgres://USER:PASSWORD@HOST/DATABASE, redis://HOST or memory:",
    ),
    Setting {
        other_variable: Some("AGENT_CONFIG_DIR"),
        ..setting("agents", "agents", "HOLDPOINT_AGENTS", "./agents", SettingKind::Path, "Folder of agent files")
    },
    setting(
        "policies",
        "policies",
        "HOLDPOINT_POLICIES",
        "",
        SettingKind::Path,
        "Folder of policy files, if not `policies` in or beside the agents' folder",
    ),
    setting(
        "strict",
        "strict",
        "HOLDPOINT_STRICT",
        "false",
        SettingKind::Boolean,
        "Do not start with a bad agent file",
    ),
    setting(
        "access.mode",
        "access",
        "HOLDPOINT_ACCESS",
        "",
        SettingKind::Choice(&["solo", "keys", "jwt", "keys_and_jwt"]),
        "Who may call: solo (loopback only, no credentials), keys, jwt or keys_and_jwt; by what is configured otherwise",
    ),
    setting(
        "access.admin_key_sha256",
        "admin-key-sha256",
        "HOLDPOINT_ADMIN_KEY_SHA256",
        "",
        SettingKind::Digest,
        "SHA-256 of an API key with the role admin",
    ),
    setting(
        "access.separation_of_duties",
        "separation-of-duties",
        "HOLDPOINT_SEPARATION_OF_DUTIES",
        "false",
        SettingKind::Boolean,
        "Who started a run cannot approve its calls",
    ),
    setting("access.jwt.issuer", "jwt-issuer", "HOLDPOINT_JWT_ISSUER", "", SettingKind::Url, "Issuer of tokens (OIDC)"),
    setting(
        "access.jwt.audience",
        "jwt-audience",
        "HOLDPOINT_JWT_AUDIENCE",
        "",
        SettingKind::Text,
        "Audience that tokens must be for",
    ),
    setting(
        "access.jwt.jwks_url",
        "jwt-jwks-url",
        "HOLDPOINT_JWT_JWKS_URL",
        "",
        SettingKind::Url,
        "Where the issuer's keys are, if not where its discovery document says",
    ),
    setting(
        "access.jwt.role_claim",
        "jwt-role-claim",
        "HOLDPOINT_JWT_ROLE_CLAIM",
        "roles",
        SettingKind::Text,
        "Claim with the caller's roles",
    ),
    setting(
        "access.jwt.group_claim",
        "jwt-group-claim",
        "HOLDPOINT_JWT_GROUP_CLAIM",
        "groups",
        SettingKind::Text,
        "Claim with the caller's groups, which rules name as approvers",
    ),
    setting(
        "limits.body_bytes_max",
        "body-bytes-max",
        "HOLDPOINT_BODY_BYTES_MAX",
        "1048576",
        SettingKind::Integer { min: 1024, max: 64 * 1024 * 1024 },
        "Largest body of a request, in bytes",
    ),
    setting(
        "limits.requests_per_second",
        "requests-per-second",
        "HOLDPOINT_REQUESTS_PER_SECOND",
        "50",
        SettingKind::Integer { min: 1, max: 100_000 },
        "Requests of one caller per second, over time",
    ),
    setting(
        "limits.requests_burst",
        "requests-burst",
        "HOLDPOINT_REQUESTS_BURST",
        "200",
        SettingKind::Integer { min: 1, max: 1_000_000 },
        "Requests of one caller at once",
    ),
    setting(
        "limits.streams_max",
        "streams-max",
        "HOLDPOINT_STREAMS_MAX",
        "10000",
        SettingKind::Integer { min: 1, max: 1_000_000 },
        "Streams that are open at the same time",
    ),
    setting(
        "pause.deadline_seconds",
        "pause-deadline-seconds",
        "HOLDPOINT_PAUSE_DEADLINE_SECONDS",
        "300",
        SettingKind::Integer { min: 0, max: crate::limits::DEADLINE_SECONDS_MAX },
        "How long somebody is waited for where neither tool nor rule says; 0 for ever",
    ),
    setting(
        "pause.question_deadline_seconds",
        "question-deadline-seconds",
        "HOLDPOINT_QUESTION_DEADLINE_SECONDS",
        "600",
        SettingKind::Integer { min: 0, max: crate::limits::DEADLINE_SECONDS_MAX },
        "How long an agent's question waits for its answer where no rule says; 0 for ever",
    ),
    setting(
        "run.max_turns",
        "max-turns",
        "HOLDPOINT_MAX_TURNS",
        "25",
        SettingKind::Integer { min: 1, max: crate::limits::TURNS_MAX },
        "How often a model may be called in one run where its agent does not say",
    ),
    setting(
        "retention.days",
        "retention-days",
        "HOLDPOINT_RETENTION_DAYS",
        "0",
        SettingKind::Integer { min: 0, max: 36_500 },
        "How many days a session is kept after the last thing that happened in it; 0 for ever",
    ),
    setting(
        "retention.sweep_seconds",
        "retention-sweep-seconds",
        "HOLDPOINT_RETENTION_SWEEP_SECONDS",
        "3600",
        SettingKind::Integer { min: 1, max: 7 * DAY },
        "How often it is looked for sessions that need not be kept any more",
    ),
    setting(
        "shutdown_seconds",
        "shutdown-seconds",
        "HOLDPOINT_SHUTDOWN_SECONDS",
        "10",
        SettingKind::Integer { min: 0, max: DAY },
        "How long runs in motion may take when the server ends",
    ),
    setting(
        "traces.endpoint",
        "traces-endpoint",
        "HOLDPOINT_TRACES_ENDPOINT",
        "",
        SettingKind::Url,
        "Collector of traces (OTLP over HTTP); without one there are none",
    ),
    setting(
        "traces.service_name",
        "traces-service-name",
        "HOLDPOINT_TRACES_SERVICE_NAME",
        "holdpoint",
        SettingKind::Text,
        "Name under which traces are found",
    ),
    setting(
        "traces.sample_ratio",
        "traces-sample-ratio",
        "HOLDPOINT_TRACES_SAMPLE_RATIO",
        "1.0",
        SettingKind::Number { min: 0.0, max: 1.0 },
        "Share of runs that are traced",
    ),
    setting(
        "webhooks.secret",
        "webhooks-secret",
        "HOLDPOINT_WEBHOOKS_SECRET",
        "",
        SettingKind::Secret,
        "Key that signs callbacks (Standard Webhooks, whsec_…); without one there are none",
    ),
    setting(
        "webhooks.allow_private",
        "webhooks-allow-private",
        "HOLDPOINT_WEBHOOKS_ALLOW_PRIVATE",
        "false",
        SettingKind::Boolean,
        "Let callbacks go to private and loopback addresses",
    ),
    setting(
        "web.allowed_hosts",
        "allowed-hosts",
        "HOLDPOINT_ALLOWED_HOSTS",
        "",
        SettingKind::List,
        "Names of this server, besides the address it listens on",
    ),
    setting(
        "web.allowed_origins",
        "allowed-origins",
        "HOLDPOINT_ALLOWED_ORIGINS",
        "",
        SettingKind::List,
        "Origins of web pages that may call the server",
    ),
    setting(
        "protocols.mastra.prefix",
        "mastra-prefix",
        "HOLDPOINT_MASTRA_PREFIX",
        "/api",
        SettingKind::Text,
        "Path under which Mastra's protocol stands: the client's `apiPrefix`",
    ),
    setting(
        "log.format",
        "log-format",
        "HOLDPOINT_LOG_FORMAT",
        "text",
        SettingKind::Choice(&["text", "json"]),
        "Form of log lines",
    ),
    setting(
        "log.filter",
        "log",
        "HOLDPOINT_LOG",
        "info",
        SettingKind::Text,
        "What is logged, such as `info` or `holdpoint=debug`",
    ),
];

impl Setting {
    /// The setting with this key.
    pub fn by_key(key: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.key == key && !key.is_empty())
    }

    /// The setting with this flag, given without hyphens.
    pub fn by_flag(flag: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.flag == flag)
    }
}

/// The table as Markdown, for the documentation.
pub fn settings_table() -> String {
    let mut table = String::from("| flag | environment | key | default | what |\n| --- | --- | --- | --- | --- |\n");
    for setting in SETTINGS {
        let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
        let variable = match setting.other_variable {
            Some(other) => format!("{}, else {}", code(setting.variable), code(other)),
            None => code(setting.variable),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            table,
            "| `--{}` | {variable} | {} | {} | {} |",
            setting.flag,
            code(setting.key),
            code(setting.default),
            setting.help
        );
    }
    table
}
