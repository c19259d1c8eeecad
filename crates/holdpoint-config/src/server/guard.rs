//! Who may call: keys and tokens as the file has them, and whether the server would stand open.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use super::access::{Access, AccessSettings, ApiKey, Jwt, JwtAlgorithm, KeyDigest, Role};
use super::read::Typed;
use crate::diagnostic::suggest::did_you_mean;
use crate::diagnostic::{Code, quoted};
use crate::limits::API_KEYS_MAX;
use crate::source::Span;
use crate::yaml::{Entry, Fields, Item, Node, Reader, Value, one_of, text};

type Structures<'n> = BTreeMap<&'static str, &'n Node>;

pub(super) fn read(
    typed: &Typed<'_>,
    structures: &Structures<'_>,
    listen: Option<SocketAddr>,
) -> Option<AccessSettings> {
    let mut api_keys = structures.get("access.api_keys").map(|node| keys(typed.reader, node)).unwrap_or_default();
    if let Some(digest) = admin_key(typed) {
        if let (true, Some(raw)) =
            (api_keys.iter().any(|key| key.name == "admin"), typed.origin("access.admin_key_sha256"))
        {
            let hint = "give the one in the list another name";
            typed.bad(raw, Code::Conflict, "an API key of the list is called `admin` too", hint);
        }
        let groups = Vec::new();
        api_keys.push(ApiKey { name: "admin".to_owned(), digest, roles: vec![Role::Admin], groups, expires_at: None });
    }
    let jwt = jwt(typed, structures).map(Box::new);
    let separation_of_duties = typed.boolean("access.separation_of_duties");
    let mode = typed.choice("access.mode");
    let guarded = !api_keys.is_empty() || jwt.is_some();
    let access = match mode {
        Some("solo") => {
            if guarded {
                bad_mode(
                    typed,
                    "`access.mode: solo` asks for no credentials, but some are configured",
                    "leave one of the two out",
                );
            }
            Access::Solo
        }
        Some("keys") => {
            if api_keys.is_empty() {
                bad_mode(
                    typed,
                    "`access.mode: keys` needs an API key",
                    "add one under `access.api_keys`, or set `access.admin_key_sha256`",
                );
            }
            Access::Guarded { api_keys, jwt: None }
        }
        Some("jwt") => {
            if jwt.is_none() {
                bad_mode(
                    typed,
                    "`access.mode: jwt` needs an issuer and an audience",
                    "set `access.jwt.issuer` and `access.jwt.audience`",
                );
            }
            Access::Guarded { api_keys: Vec::new(), jwt }
        }
        Some(_) => {
            if api_keys.is_empty() || jwt.is_none() {
                bad_mode(
                    typed,
                    "`access.mode: keys_and_jwt` needs an API key, an issuer and an audience",
                    "set what is missing under `access`",
                );
            }
            Access::Guarded { api_keys, jwt }
        }
        None if guarded => Access::Guarded { api_keys, jwt },
        None => Access::Solo,
    };
    if separation_of_duties && !access.is_guarded() {
        let raw = typed.origin("access.separation_of_duties")?;
        let hint = "configure API keys or an issuer, so that people can be told apart";
        typed.bad(
            raw,
            Code::Conflict,
            "without credentials everybody is the same person, and nobody could approve",
            hint,
        );
    }
    if let Some(listen) = listen.filter(|listen| !access.is_guarded() && !listen.ip().is_loopback()) {
        let message = format!("{listen} can be reached by others, and no credentials are asked for");
        let hint = "listen on 127.0.0.1, or configure `access.api_keys` or `access.jwt`";
        typed.bad(typed.origin("listen")?, Code::OpenServer, message, hint);
    }
    Some(AccessSettings { access, separation_of_duties })
}

fn bad_mode(typed: &Typed<'_>, message: &str, hint: &str) {
    if let Some(raw) = typed.origin("access.mode") {
        typed.bad(raw, Code::Conflict, message, hint);
    }
}

fn admin_key(typed: &Typed<'_>) -> Option<KeyDigest> {
    let text = typed.text("access.admin_key_sha256")?;
    let digest = text.trim().parse().ok();
    if digest.is_none() {
        let raw = typed.origin("access.admin_key_sha256")?;
        let hint = "give the SHA-256 of the key, not the key: 64 hexadecimal digits";
        typed.bad(raw, Code::BadValue, "`access.admin_key_sha256` is not a SHA-256", hint);
    }
    digest
}

fn keys(reader: &Reader<'_>, node: &Node) -> Vec<ApiKey> {
    let Value::List(items) = &node.value else {
        let message = format!("`access.api_keys` must be a list and is {}", node.kind());
        reader.error_with_hint(node.span, Code::WrongType, message, "write one `- …` line for each");
        return Vec::new();
    };
    if items.len() > API_KEYS_MAX {
        let message = format!("there are {} API keys, at most {API_KEYS_MAX} are accepted", items.len());
        reader.error(node.span, Code::OutOfRange, message);
        return Vec::new();
    }
    let mut keys: Vec<ApiKey> = Vec::new();
    for node in items {
        let Some((key, name)) = key(reader, node) else { continue };
        if keys.iter().any(|other| other.name == key.name) {
            reader.error(name, Code::Conflict, format!("two API keys are called {}", quoted(&key.name)));
        } else if keys.iter().any(|other| other.digest == key.digest) {
            reader.error(name, Code::Conflict, "two API keys have the same SHA-256");
        } else {
            keys.push(key);
        }
    }
    keys
}

fn key(reader: &Reader<'_>, node: &Node) -> Option<(ApiKey, Span)> {
    let fields = reader.fields(node, "an API key")?;
    let name = fields.required_text("name");
    let digest = fields.required_text("sha256").and_then(|item| {
        let digest = item.value.parse().ok();
        if digest.is_none() {
            let hint = "give the SHA-256 of the key, not the key: 64 hexadecimal digits";
            reader.error_with_hint(item.span(), Code::BadValue, "`sha256` is not a SHA-256", hint);
        }
        digest
    });
    let roles = roles(reader, &fields, "an API key");
    let groups = fields.texts("groups", 64).iter().map(|item| item.value.to_owned()).collect();
    let expires_at = fields.text("expires_at").and_then(|item| {
        let time = item.value.parse().ok();
        if time.is_none() {
            let hint = "write a time such as `2027-01-31T00:00:00Z`";
            reader.error_with_hint(item.span(), Code::BadValue, "`expires_at` is not a time", hint);
        }
        time
    });
    fields.unsupported("key", "a key is not written into the file", "write its SHA-256 as `sha256`");
    fields.finish();
    let name = name?;
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '@' | ':' | '/');
    if name.value.len() > 128 || !name.value.chars().all(is_inner) {
        let message = format!("a caller cannot be called {}", quoted(name.value));
        reader.error_with_hint(name.span(), Code::BadName, message, "use letters, digits and `_-.@:/`, 128 at most");
    }
    let key = ApiKey { name: name.value.to_owned(), digest: digest?, roles: roles?, groups, expires_at };
    Some((key, name.span()))
}

/// `role: admin` or `roles: [agent, approver]`.
pub(super) fn roles(reader: &Reader<'_>, fields: &Fields<'_>, what: &str) -> Option<Vec<Role>> {
    let one = fields.choice("role", &Role::NAMES).map(|item| item.value);
    let many = fields.texts("roles", Role::NAMES.len());
    let several: Vec<Role> = many.iter().filter_map(|item| role(reader, item)).collect();
    if one.is_none() && many.is_empty() {
        if fields.key_span("role").is_none() {
            let hint = format!("add `role`: {}", one_of(&Role::NAMES.map(|(name, _)| name)));
            reader.error_with_hint(fields.span, Code::MissingField, format!("{what} needs a role"), hint);
        }
        return None;
    }
    Some(one.into_iter().chain(several).collect())
}

fn role(reader: &Reader<'_>, item: &Item<'_, &str>) -> Option<Role> {
    let found = Role::NAMES.into_iter().find(|(name, _)| *name == item.value).map(|(_, role)| role);
    if found.is_none() {
        let message = format!("there is no role {}", quoted(item.value));
        let names = Role::NAMES.map(|(name, _)| name);
        let near = did_you_mean(item.value, names);
        reader.error_with_hint(
            item.span(),
            Code::BadValue,
            message,
            near.unwrap_or_else(|| format!("write {}", one_of(&names))),
        );
    }
    found
}

fn jwt(typed: &Typed<'_>, structures: &Structures<'_>) -> Option<Jwt> {
    let issuer = typed.url("access.jwt.issuer");
    let audience = typed.text("access.jwt.audience");
    let jwks_url = typed.url("access.jwt.jwks_url");
    for (key, address) in [("access.jwt.issuer", &issuer), ("access.jwt.jwks_url", &jwks_url)] {
        if let (Some(address), Some(raw)) = (address, typed.origin(key))
            && !is_safe(address)
        {
            typed.bad(
                raw,
                Code::BadUrl,
                format!("`{key}` must start with https://"),
                "keys that come over http can be exchanged on the way",
            );
        }
    }
    let missing = match (&issuer, &audience) {
        (Some(_), None) => Some(("access.jwt.issuer", "access.jwt.audience")),
        (None, Some(_)) => Some(("access.jwt.audience", "access.jwt.issuer")),
        _ => None,
    };
    if let Some((has, lacks)) = missing {
        let raw = typed.origin(has)?;
        typed.bad(
            raw,
            Code::MissingField,
            format!("`{lacks}` is missing"),
            "tokens are checked for both issuer and audience",
        );
    }
    let reader = typed.reader;
    let roles = structures.get("access.jwt.roles").map(|node| claim_roles(reader, node)).unwrap_or_default();
    let algorithms = structures.get("access.jwt.algorithms").map(|node| algorithms(reader, node));
    let leeway = structures.get("access.jwt.leeway_seconds").map(|node| leeway(reader, node));
    Some(Jwt {
        issuer: issuer?,
        audience: audience?,
        jwks_url,
        role_claim: typed.text("access.jwt.role_claim").unwrap_or_default(),
        group_claim: typed.text("access.jwt.group_claim").unwrap_or_default(),
        roles,
        algorithms: algorithms.unwrap_or_else(|| vec![JwtAlgorithm::Rs256, JwtAlgorithm::Es256, JwtAlgorithm::EdDsa]),
        leeway: leeway.unwrap_or(Duration::from_secs(60)),
    })
}

/// Https, or http to this machine.
pub(super) fn is_safe(address: &str) -> bool {
    let host = address.parse::<http::Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default();
    let host = host.trim_matches(['[', ']']).to_owned();
    let is_loopback = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    address.starts_with("https://") || is_loopback
}

fn claim_roles(reader: &Reader<'_>, node: &Node) -> Vec<(String, Role)> {
    let Value::Mapping(entries) = &node.value else {
        let message = format!("`access.jwt.roles` must be a mapping and is {}", node.kind());
        reader.error_with_hint(node.span, Code::WrongType, message, "write `claim value: role`");
        return Vec::new();
    };
    let read = |entry: &Entry| {
        let item = text(reader, &entry.value, "a role")?;
        role(reader, &item).map(|role| (entry.key.clone(), role))
    };
    entries.iter().take(1_000).filter_map(read).collect()
}

fn algorithms(reader: &Reader<'_>, node: &Node) -> Vec<JwtAlgorithm> {
    let names = JwtAlgorithm::NAMES.map(|(name, _)| name);
    let items: &[Node] = match &node.value {
        Value::List(items) if !items.is_empty() => items,
        _ => {
            let hint = format!("name at least one of {}", names.join(", "));
            reader.error_with_hint(
                node.span,
                Code::WrongType,
                "`access.jwt.algorithms` must be a list of signatures",
                hint,
            );
            return Vec::new();
        }
    };
    let read = |node: &Node| {
        let item = text(reader, node, "a signature")?;
        let found = JwtAlgorithm::NAMES.into_iter().find(|(name, _)| *name == item.value).map(|(_, found)| found);
        if found.is_none() {
            let message = format!("signatures of type {} are not accepted", quoted(item.value));
            let hint = format!("write {}; signatures with a shared key are never accepted", one_of(&names));
            reader.error_with_hint(item.span(), Code::BadValue, message, hint);
        }
        found
    };
    items.iter().filter_map(read).collect()
}

fn leeway(reader: &Reader<'_>, node: &Node) -> Duration {
    let seconds = match &node.value {
        Value::Number(number) => number.as_u64().filter(|seconds| *seconds <= 300),
        _ => None,
    };
    if seconds.is_none() {
        reader.error(node.span, Code::OutOfRange, "`access.jwt.leeway_seconds` must be from 0 to 300");
    }
    Duration::from_secs(seconds.unwrap_or(60))
}
