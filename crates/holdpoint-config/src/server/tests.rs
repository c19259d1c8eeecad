use secrecy::ExposeSecret;

use super::*;
use crate::diagnostic::Diagnostic;
use crate::environment::FixedEnvironment;
use crate::source::Source;
use crate::template::Template;

const DIGEST: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

fn read(file: &str, environment: &FixedEnvironment, flags: &[(&str, &str)]) -> ReadServer {
    let mut given = ServerFlags::none();
    for (flag, value) in flags {
        given.set(flag, *value).expect("the flag exists");
    }
    read_server(Some(Source::new("holdpoint.yaml", file)), environment, &given)
}

fn config(file: &str, environment: &FixedEnvironment, flags: &[(&str, &str)]) -> ServerConfig {
    let read = read(file, environment, flags);
    assert_eq!(read.diagnostics, []);
    read.config.expect("the settings are right")
}

fn check(file: &str, expected: &[&str]) {
    let read = read(file, &FixedEnvironment::empty(), &[]);
    let said: Vec<String> = read.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(said, expected, "\n{}", said.join("\n"));
    assert_eq!(read.config.is_none(), read.diagnostics.iter().any(Diagnostic::is_error));
}

#[test]
fn without_anything_the_server_listens_on_loopback_with_a_file() {
    let config = config("", &FixedEnvironment::empty(), &[]);
    assert_eq!(config.listen.to_string(), "127.0.0.1:8888");
    assert_eq!((config.store.kind(), config.store.sqlite_path()), (StoreKind::Sqlite, Some("holdpoint.db")));
    assert_eq!(config.agents.to_str(), Some("./agents"));
    assert_eq!(config.policies, None);
    assert!(!config.access.access.is_guarded() && !config.strict && config.traces.is_none());
    assert_eq!(config.pause_deadline, Some(Duration::from_secs(300)));
    assert_eq!(config.question_deadline, Some(Duration::from_secs(600)));
    assert_eq!(config.limits.body_bytes_max, 1_048_576);
    assert_eq!(config.log, Log { format: LogFormat::Text, filter: "info".to_owned() });
}

#[test]
fn a_flag_goes_before_the_environment_and_that_before_the_file() {
    let environment = FixedEnvironment::empty().with("HOLDPOINT_LISTEN", "127.0.0.1:2").with("HOLDPOINT_LOG", "debug");
    let file = "listen: 127.0.0.1:1\nlog: { filter: warn, format: json }\n";
    let config = config(file, &environment, &[("listen", "127.0.0.1:3")]);
    assert_eq!(config.listen.port(), 3);
    assert_eq!(config.log, Log { format: LogFormat::Json, filter: "debug".to_owned() });
}

#[test]
fn every_setting_has_three_names_and_each_works() {
    for setting in SETTINGS.iter().filter(|setting| !setting.key.is_empty()) {
        let value = match setting.kind {
            SettingKind::Boolean => "true",
            SettingKind::Integer { .. } => "7777",
            SettingKind::Number { .. } => "0.5",
            SettingKind::Listen => "127.0.0.1:7777",
            SettingKind::Store => "memory:",
            SettingKind::Url => "https://x.example/",
            SettingKind::Choice(choices) => choices[0],
            SettingKind::Digest => DIGEST,
            SettingKind::List | SettingKind::Text | SettingKind::Path => "https://x.example",
            SettingKind::Secret => "whsec_0123456789abcdef0123456789abcdef",
        };
        let value = if setting.key == "run.max_turns" { "77" } else { value };
        let value = if setting.key == "web.allowed_hosts" { "x.example" } else { value };
        let value = if setting.key == "protocols.mastra.prefix" { "/mastra" } else { value };
        let quoted = match setting.kind {
            SettingKind::Boolean | SettingKind::Integer { .. } | SettingKind::Number { .. } => value.to_owned(),
            SettingKind::Secret => "\"${S}\"".to_owned(),
            _ => format!("\"{value}\""),
        };
        let parts: Vec<&str> = setting.key.split('.').collect();
        let indented = |(depth, part): (usize, &&str)| format!("{}{part}:", "  ".repeat(depth));
        let file = parts.iter().enumerate().map(indented).collect::<Vec<_>>().join("\n") + " " + &quoted;
        let with_secret = FixedEnvironment::empty().with("S", value);
        // Some need others to go with them, which does not matter here: nobody may complain of this one.
        let not_this = |read: &ReadServer, name: &str| {
            let others = ["is missing", "needs", "nobody could approve"];
            let about = |problem: &&Diagnostic| !others.iter().any(|other| problem.message.contains(other));
            assert_eq!(read.diagnostics.iter().filter(about).count(), 0, "{name}: {:?}", read.diagnostics);
        };
        not_this(&read(&file, &with_secret, &[]), setting.key);
        not_this(&read("", &FixedEnvironment::empty().with(setting.variable, value), &[]), setting.variable);
        if setting.kind != SettingKind::Secret {
            not_this(&read("", &FixedEnvironment::empty(), &[(setting.flag, value)]), setting.flag);
        }
        assert!(setting.variable.starts_with("HOLDPOINT_"), "{}", setting.variable);
        assert!(settings_table().contains(&format!("`--{}` | `{}`", setting.flag, setting.variable)));
    }
    let count =
        |name: fn(&Setting) -> &'static str| SETTINGS.iter().map(name).collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!([count(|s| s.key), count(|s| s.flag), count(|s| s.variable)], [SETTINGS.len(); 3]);
    assert!(ServerFlags::none().set("lissten", "x").is_err());
}

#[test]
fn the_folder_of_agents_is_also_found_by_superagents_variable() {
    let environment = FixedEnvironment::empty().with("AGENT_CONFIG_DIR", "configs/agents");
    assert_eq!(config("", &environment, &[]).agents.to_str(), Some("configs/agents"));
    let environment = environment.with("HOLDPOINT_AGENTS", "other");
    assert_eq!(config("", &environment, &[]).agents.to_str(), Some("other"));
}

#[test]
fn a_whole_file_is_understood() {
    let file = format!(
        r#"
apiVersion: holdpoint/v1
kind: Server
listen: 0.0.0.0:8888
public_url: https://hold.example
store: postgres://hold:${{PG_PASSWORD}}@db.example:5432/hold?sslmode=require
agents: /etc/holdpoint/agents
policies: /etc/holdpoint/policies
strict: true
access:
  separation_of_duties: true
  api_keys:
    - {{ name: ci, role: agent, sha256: "{DIGEST}" }}
    - {{ name: ana@example.com, roles: [approver, auditor], groups: [finance], sha256: "sha256:{}", expires_at: 2027-01-31T00:00:00Z }}
  jwt:
    issuer: https://login.example
    audience: holdpoint
    jwks_url: https://login.example/keys
    role_claim: hp_roles
    roles: {{ hp-approvers: approver, hp-admins: admin }}
    algorithms: [ES256]
    leeway_seconds: 30
limits: {{ body_bytes_max: 2048, requests_per_second: 5, requests_burst: 10, streams_max: 100 }}
pause: {{ deadline_seconds: 0, question_deadline_seconds: 0 }}
run: {{ max_turns: 40 }}
retention: {{ days: 90, sweep_seconds: 60 }}
shutdown_seconds: 3
traces: {{ endpoint: "http://localhost:4318", sample_ratio: 0.25 }}
webhooks: {{ secret: "${{HOOK}}", allow_private: true }}
web: {{ allowed_hosts: [hold.example], allowed_origins: ["https://hold.example"] }}
log: {{ format: json, filter: holdpoint=debug }}
mcp_servers:
  files: {{ command: npx, args: [-y, server-filesystem, /data], env: {{ TOKEN: "${{MCP}}" }}, timeout_seconds: 30 }}
  search: {{ url: "https://mcp.example/mcp", headers: {{ Authorization: "Bearer ${{MCP}}" }} }}
"#,
        DIGEST.replace('9', "a")
    );
    let environment = FixedEnvironment::empty()
        .with("PG_PASSWORD", "s3cret-pg")
        .with("HOOK", "whsec_s3cret0123456789abcdef0123456789")
        .with("MCP", "s3cret-mcp");
    let config = config(&file, &environment, &[]);
    assert_eq!(config.store.expose(), "postgres://hold:s3cret-pg@db.example:5432/hold?sslmode=require");
    assert_eq!(config.store.to_string(), "postgres://db.example:5432/hold");
    assert_eq!((config.pause_deadline, config.question_deadline), (None, None));
    assert_eq!(config.turns_max, 40);
    let retention = Retention { keep: Duration::from_secs(90 * 24 * 3600), sweep: Duration::from_secs(60) };
    assert_eq!(config.retention, Some(retention));
    let Access::Guarded { api_keys, jwt } = &config.access.access else { panic!("guarded") };
    assert_eq!(api_keys[1].roles, [Role::Approver, Role::Auditor]);
    assert_eq!(api_keys[1].groups, ["finance"]);
    assert!(api_keys[1].expires_at.is_some());
    let jwt = jwt.as_ref().expect("tokens are configured");
    assert_eq!(jwt.roles, [("hp-approvers".to_owned(), Role::Approver), ("hp-admins".to_owned(), Role::Admin)]);
    assert_eq!((jwt.algorithms.as_slice(), jwt.leeway), (&[JwtAlgorithm::Es256][..], Duration::from_secs(30)));
    assert_eq!(config.webhooks.secret.as_ref().map(|key| key.expose_secret().len()), Some(38));
    assert_eq!(config.traces.as_ref().map(|traces| traces.sample_ratio), Some(0.25));
    let McpTransport::Program { argv, env, .. } = &config.mcp_servers["files"].transport else { panic!("a program") };
    assert_eq!(argv.iter().map(Template::as_written).collect::<Vec<_>>(), ["npx", "-y", "server-filesystem", "/data"]);
    assert_eq!(env["TOKEN"].as_written(), "${MCP}");
    let McpTransport::Http { headers, .. } = &config.mcp_servers["search"].transport else { panic!("an address") };
    assert_eq!(headers["authorization"].as_written(), "Bearer ${MCP}");
    assert!(!format!("{config:?}").contains("s3cret"), "{config:?}");
}

#[test]
fn an_address_that_others_reach_needs_credentials() {
    let message = "can be reached by others, and no credentials are asked for (hint: listen on 127.0.0.1, or configure `access.api_keys` or `access.jwt`)";
    check("listen: 0.0.0.0:8888", &[&format!("holdpoint.yaml:1:9: error: 0.0.0.0:8888 {message}")]);
    check("listen: ':8888'", &[&format!("holdpoint.yaml:1:9: error: 0.0.0.0:8888 {message}")]);
    check(
        "listen: 192.168.1.5:80\naccess: { mode: solo }",
        &[&format!("holdpoint.yaml:1:9: error: 192.168.1.5:80 {message}")],
    );
    check("listen: localhost:9000", &[]);
    check("listen: '[::1]:9000'", &[]);
    check(&format!("listen: 0.0.0.0:8888\naccess: {{ admin_key_sha256: '{DIGEST}' }}"), &[]);

    let environment = FixedEnvironment::empty().with("HOLDPOINT_LISTEN", "0.0.0.0:1");
    let read = read("", &environment, &[]);
    assert_eq!(
        read.diagnostics[0].to_string(),
        format!("environment variable HOLDPOINT_LISTEN: error: 0.0.0.0:1 {message}")
    );
    assert!(read.config.is_none());
}

#[test]
fn credentials_that_do_not_fit_together_are_refused() {
    check(
        "access: { mode: keys }",
        &[
            "holdpoint.yaml:1:17: error: `access.mode: keys` needs an API key (hint: add one under `access.api_keys`, or set `access.admin_key_sha256`)",
        ],
    );
    check(
        "access: { mode: jwt, separation_of_duties: true }",
        &[
            "holdpoint.yaml:1:17: error: `access.mode: jwt` needs an issuer and an audience (hint: set `access.jwt.issuer` and `access.jwt.audience`)",
        ],
    );
    check(
        "access: { separation_of_duties: true }",
        &[
            "holdpoint.yaml:1:33: error: without credentials everybody is the same person, and nobody could approve (hint: configure API keys or an issuer, so that people can be told apart)",
        ],
    );
    check(
        "access: { jwt: { issuer: 'http://login.example' } }",
        &[
            "holdpoint.yaml:1:26: error: `access.jwt.audience` is missing (hint: tokens are checked for both issuer and audience)",
            "holdpoint.yaml:1:26: error: `access.jwt.issuer` must start with https:// (hint: keys that come over http can be exchanged on the way)",
        ],
    );
    check(
        &format!(
            "access:\n  api_keys:\n    - {{ name: a, role: boss, sha256: abc }}\n    - {{ name: b, sha256: '{DIGEST}', key: x }}\n    - {{ name: c d, role: agent, sha256: '{DIGEST}' }}\n    - {{ name: e, role: agent, sha256: '{DIGEST}', expires_at: soon }}\n"
        ),
        &[
            "holdpoint.yaml:3:24: error: `role` cannot be `boss` (hint: write `agent`, `approver`, `admin` or `auditor`)",
            "holdpoint.yaml:3:38: error: `sha256` is not a SHA-256 (hint: give the SHA-256 of the key, not the key: 64 hexadecimal digits)",
            "holdpoint.yaml:4:7: error: an API key needs a role (hint: add `role`: `agent`, `approver`, `admin` or `auditor`)",
            "holdpoint.yaml:4:94: error: a key is not written into the file (hint: write its SHA-256 as `sha256`)",
            "holdpoint.yaml:5:15: error: a caller cannot be called `c d` (hint: use letters, digits and `_-.@:/`, 128 at most)",
            "holdpoint.yaml:6:15: error: two API keys have the same SHA-256",
            "holdpoint.yaml:6:119: error: `expires_at` is not a time (hint: write a time such as `2027-01-31T00:00:00Z`)",
        ],
    );
    check(
        "access: { jwt: { issuer: 'https://l.example', audience: a, algorithms: [HS256], roles: { x: root }, leeway_seconds: 999 } }",
        &[
            "holdpoint.yaml:1:73: error: signatures of type `HS256` are not accepted (hint: write `RS256`, `RS384`, `RS512`, `PS256`, `ES256`, `ES384` or `EdDSA`; signatures with a shared key are never accepted)",
            "holdpoint.yaml:1:93: error: there is no role `root` (hint: write `agent`, `approver`, `admin` or `auditor`)",
            "holdpoint.yaml:1:117: error: `access.jwt.leeway_seconds` must be from 0 to 300",
        ],
    );
}

#[test]
fn mistakes_in_the_file_are_named_with_their_places() {
    check(
        "lissten: x\nlimits: { body: 1, streams_max: 0, requests_burst: many }\nlog: { format: xml }\nstore: mysql://x\nstrict: maybe\n",
        &[
            "holdpoint.yaml:1:1: error: the server's file has no field `lissten` (hint: did you mean `listen`?)",
            "holdpoint.yaml:2:11: error: `limits` has no field `body` (hint: the fields are body_bytes_max, requests_per_second, requests_burst, streams_max)",
            "holdpoint.yaml:2:33: error: `limits.streams_max` must be from 1 to 1000000 (hint: choose another number)",
            "holdpoint.yaml:2:52: error: `limits.requests_burst` must be a whole number (hint: write a number from 1 to 1000000)",
            "holdpoint.yaml:3:16: error: `log.format` cannot be `xml` (hint: write `text` or `json`)",
            "holdpoint.yaml:4:8: error: `store` is not the address of a store (hint: write sqlite://FILE, postgres://…, redis://… or memory:)",
            "holdpoint.yaml:5:9: error: `strict` must be true or false (hint: write true or false)",
        ],
    );
    check(
        "webhooks: { secret: abc }\nstore: 'sqlite://${NO}'\nweb: { allowed_origins: ['*'], allowed_hosts: ['https://x'] }\naccess: 5\n",
        &[
            "holdpoint.yaml:1:21: error: `webhooks.secret` is shorter than 24 characters (hint: use 32 random bytes in base64)",
            "holdpoint.yaml:1:21: error: `webhooks.secret` is written into the file (hint: keep it in an environment variable and write `${NAME}`)",
            "holdpoint.yaml:2:18: error: environment variable NO is not set (hint: set NO before the start)",
            "holdpoint.yaml:3:25: error: `*` is not an origin (hint: write `https://host`, without a path; `*` is not accepted)",
            "holdpoint.yaml:3:47: error: `https://x` is not a host (hint: write `holdpoint.example` or `holdpoint.example:8888`)",
            "holdpoint.yaml:4:9: error: `access` must be a mapping and is a number",
        ],
    );
    check(
        "access: { modus_operandi: solo }\n",
        &[
            "holdpoint.yaml:1:11: error: `access` has no field `modus_operandi` (hint: the fields are mode, admin_key_sha256, separation_of_duties, jwt, api_keys)",
        ],
    );
    check(
        "mcp_servers:\n  a b: { command: x }\n  c: { command: x, url: 'https://y.example' }\n  d: {}\n  e: { url: nope, env: {} }\n",
        &[
            "holdpoint.yaml:2:3: error: an MCP server cannot be called `a b` (hint: use letters, digits, `_`, `-` and `.`)",
            "holdpoint.yaml:3:20: error: an MCP server has `command` or `url`, not both",
            "holdpoint.yaml:4:6: error: an MCP server needs `command` or `url` (hint: write `command: PROGRAM` with `args: […]`, or `url: https://…`)",
            "holdpoint.yaml:5:13: error: `url` is not an address (hint: write `https://host/path`)",
            "holdpoint.yaml:5:19: error: an MCP server has no field `env` (hint: the fields are timeout_seconds, url, headers)",
        ],
    );
}

#[test]
fn what_links_begin_with_has_a_host_and_a_path_and_nothing_else() {
    for address in ["https://ana:word@hold.example", "https://hold.example/x?y", "https://hold.example/#z"] {
        let read = read(&format!("public_url: \"{address}\"\n"), &FixedEnvironment::empty(), &[]);
        let said: Vec<String> = read.diagnostics.iter().map(ToString::to_string).collect();
        assert!(said.len() == 1 && said[0].contains("`public_url` has more than a host and a path"), "{said:?}");
    }
    let file = "public_url: https://hold.example/desk\n";
    let config = config(file, &FixedEnvironment::empty(), &[]);
    assert_eq!(config.public_url.as_deref(), Some("https://hold.example/desk"));
}

#[test]
fn values_are_not_repeated_where_they_may_be_secrets() {
    let environment = FixedEnvironment::empty()
        .with("HOLDPOINT_STORE", "pg://user:s3cret@host")
        .with("HOLDPOINT_ADMIN_KEY_SHA256", "s3cret");
    let read = read("", &environment, &[("webhooks-secret", "s3cret")]);
    assert!(read.config.is_none());
    assert_eq!(read.diagnostics.len(), 4);
    assert!(!format!("{:?}", read.diagnostics).contains("s3cret"), "{:?}", read.diagnostics);
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("own.yaml");
    let mut flags = ServerFlags::none();
    flags.set("config", path.display().to_string()).expect("the flag exists");
    let read = load_server(&FixedEnvironment::empty(), &flags);
    assert!(read.config.is_none());
    assert!(read.diagnostics[0].to_string().ends_with("the file cannot be read: it does not exist"));
    std::fs::write(&path, "listen: 127.0.0.1:99\n").expect("a file");
    let read = load_server(&FixedEnvironment::empty(), &flags);
    assert_eq!(read.config.expect("it is right").listen.port(), 99);
}

#[test]
fn addresses_of_stores() {
    for (address, expected) in [
        ("memory:", Ok("memory:")),
        ("memory://", Ok("memory:")),
        ("sqlite://holdpoint.db", Ok("sqlite://holdpoint.db")),
        ("sqlite:///var/lib/holdpoint.db", Ok("sqlite:///var/lib/holdpoint.db")),
        ("sqlite:holdpoint.db", Ok("sqlite://holdpoint.db")),
        ("postgresql://u:p@h/d?x=y", Ok("postgres://h/d")),
        ("rediss://:p@h:1/0", Ok("redis://h:1/0")),
        // A password that somebody forgot to encode is not shown all the same.
        ("postgres://u:p/w@h/d", Ok("postgres://h/d")),
        ("postgres://u:p?w@h/d", Ok("postgres://h/d")),
        ("redis://:p#w@h/0", Ok("redis://h/0")),
        ("redis://:p@w@h/0", Ok("redis://h/0")),
        ("sqlite://", Err("a file is missing, as in `sqlite://holdpoint.db`")),
        ("postgres://", Err("a host is missing, as in `postgres://host/database`")),
        ("redis:", Err("a host is missing, as in `redis://host`")),
        ("", Err("write sqlite://FILE, postgres://…, redis://… or memory:")),
        ("holdpoint.db", Err("write sqlite://FILE, postgres://…, redis://… or memory:")),
    ] {
        let found = StoreAddress::parse(address).map(|store| store.to_string());
        assert_eq!(found, expected.map(str::to_owned), "{address}");
    }
}

#[test]
fn mastras_protocol_stands_under_a_path_that_is_free() {
    let prefix = |file: &str| config(file, &FixedEnvironment::empty(), &[]).mastra_prefix;
    assert_eq!(prefix(""), "/api");
    assert_eq!(prefix("protocols: { mastra: { prefix: /mastra/v1/ } }\n"), "/mastra/v1");
    assert_eq!(prefix("protocols: { mastra: { prefix: / } }\n"), "");
    for bad in ["/api/v1", "/api/v2/x", "mastra", "/{id}"] {
        let hint = "write a path such as `/api` or `/mastra`; `/api/v1` and `/api/v2` are taken";
        check(
            &format!("protocols: {{ mastra: {{ prefix: '{bad}' }} }}\n"),
            &[&format!("holdpoint.yaml:1:32: error: `protocols.mastra.prefix` cannot be `{bad}` (hint: {hint})")],
        );
    }
}
