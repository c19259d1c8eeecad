//! The operator's settings as the server takes them.

use anyhow::{Context as _, Result};
use holdpoint_config::{
    Access, ApiKey as KeySettings, Jwt, LogFormat, Retention, Role as RoleName, ServerConfig as Settings, Webhooks,
};
use holdpoint_core::ids::ActorId;
use holdpoint_server::ServerConfig;
use holdpoint_server::access::{ApiKey, ApiKeys, Credentials, Jwks, JwtSettings, JwtVerifier, Role};
use holdpoint_server::protocols::mastra::Prefix;
use holdpoint_server::requests::CallbackSettings;
use holdpoint_server::retention;
use holdpoint_server::telemetry::{self, TelemetrySettings, TraceSettings};
use holdpoint_server::webhooks::WebhookSecret;
use holdpoint_tools::http::AddressGuard;

use crate::notifications;

/// The server's own form of the settings.
///
/// # Errors
/// Credentials that nobody could use.
pub fn server(settings: &Settings) -> Result<ServerConfig> {
    let mut config = ServerConfig::solo(settings.listen);
    config.credentials = credentials(&settings.access.access)?;
    config.hosts = settings.web.allowed_hosts.clone();
    config.origins = settings.web.allowed_origins.clone();
    config.requester_may_approve = !settings.access.separation_of_duties;
    config.limits.body_bytes_max = settings.limits.body_bytes_max;
    config.limits.requests_per_second = settings.limits.requests_per_second;
    config.limits.requests_burst = settings.limits.requests_burst;
    config.limits.streams_max = settings.limits.streams_max;
    config.callbacks = callbacks(&settings.webhooks)?;
    config.stop_grace = settings.shutdown;
    let told = notifications::of(settings)?;
    (config.notifiers, config.slack) = (told.notifiers, told.slack);
    config.retention = settings.retention.map(|Retention { keep, sweep }| retention::Retention { keep, sweep });
    config.mastra_prefix = Prefix::new(&settings.mastra_prefix).context("protocols.mastra.prefix")?;
    Ok(config)
}

/// How requests for approval are called back: not at all without a key to sign with.
fn callbacks(webhooks: &Webhooks) -> Result<Option<CallbackSettings>> {
    let Some(secret) = &webhooks.secret else { return Ok(None) };
    let mut callbacks = CallbackSettings::new(WebhookSecret::parse(secret).context("webhooks.secret")?);
    if webhooks.allow_private {
        callbacks.guard = AddressGuard::new().any_port().allow_private();
    }
    Ok(Some(callbacks))
}

/// What is logged and traced.
pub fn telemetry(settings: &Settings) -> TelemetrySettings {
    TelemetrySettings {
        format: match settings.log.format {
            LogFormat::Text => telemetry::LogFormat::Text,
            LogFormat::Json => telemetry::LogFormat::Json,
        },
        filter: settings.log.filter.clone(),
        traces: settings.traces.as_ref().map(|traces| TraceSettings {
            endpoint: traces.endpoint.clone(),
            service_name: traces.service_name.clone(),
            sample_ratio: traces.sample_ratio,
        }),
    }
}

/// Who may come in, in a line.
pub fn access_in_words(settings: &Settings) -> String {
    match &settings.access.access {
        Access::Solo => "solo: everybody on this machine, without credentials; nobody else".to_owned(),
        Access::Guarded { api_keys, jwt } => {
            let keys = match api_keys.len() {
                0 => None,
                1 => Some("1 API key".to_owned()),
                count => Some(format!("{count} API keys")),
            };
            let jwt = jwt.as_ref().map(|jwt| format!("tokens of {}", jwt.issuer));
            keys.into_iter().chain(jwt).collect::<Vec<_>>().join(" and ")
        }
    }
}

fn credentials(access: &Access) -> Result<Option<Credentials>> {
    let Access::Guarded { api_keys, jwt } = access else { return Ok(None) };
    let keys = api_keys.iter().map(key).collect::<Result<Vec<_>>>()?;
    let jwt = jwt.as_deref().map(verifier).transpose()?;
    Ok(Some(Credentials { keys: ApiKeys::new(keys)?, jwt }))
}

fn key(settings: &KeySettings) -> Result<ApiKey> {
    let actor = ActorId::new(&settings.name).with_context(|| format!("access.api_keys: {:?}", settings.name))?;
    let digest: String = settings.digest.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut key = ApiKey::new(actor, &digest, settings.roles.iter().copied().map(role))?;
    key.groups = settings.groups.clone();
    key.expires_at = settings.expires_at;
    Ok(key)
}

fn verifier(jwt: &Jwt) -> Result<JwtVerifier> {
    let mut settings = JwtSettings::new(&jwt.issuer, &jwt.audience);
    settings.roles_claim = jwt.role_claim.clone();
    settings.groups_claim = jwt.group_claim.clone();
    settings.leeway_seconds = jwt.leeway.as_secs();
    settings.algorithms = jwt.algorithms.iter().map(|algorithm| algorithm.name().parse()).collect::<Result<_, _>>()?;
    settings.roles = match jwt.roles.is_empty() {
        true => Role::ALL.into_iter().map(|role| (role.name().to_owned(), role)).collect(),
        false => jwt.roles.iter().map(|(value, name)| (value.clone(), role(*name))).collect(),
    };
    let keys = match &jwt.jwks_url {
        Some(url) => Jwks::at(url),
        None => Jwks::of_issuer(&jwt.issuer),
    };
    let keys = keys.map_err(anyhow::Error::msg).context("access.jwt")?;
    Ok(JwtVerifier::new(settings, keys)?)
}

fn role(name: RoleName) -> Role {
    match name {
        RoleName::Agent => Role::Agent,
        RoleName::Approver => Role::Approver,
        RoleName::Admin => Role::Admin,
        RoleName::Auditor => Role::Auditor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guard of callbacks, as the settings make it.
    fn guard(allow_private: bool) -> AddressGuard {
        let secret = Some("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz".to_owned().into());
        callbacks(&Webhooks { secret, allow_private }).unwrap().unwrap().guard
    }

    fn lets(guard: &AddressGuard, url: &str) -> bool {
        guard.check(&url.parse().unwrap()).is_ok()
    }

    #[test]
    fn private_addresses_are_called_back_only_where_the_operator_says_so() {
        for url in ["http://10.1.2.3:8080/hook", "http://192.168.0.9/", "http://127.0.0.1:9/", "http://[fd12::1]/"] {
            assert!(!lets(&guard(false), url), "{url}");
            assert!(lets(&guard(true), url), "{url}");
        }
        assert!(lets(&guard(false), "https://hooks.example/"));
        assert!(lets(&guard(true), "https://hooks.example/"));
    }

    #[test]
    fn link_local_and_metadata_addresses_are_never_called_back() {
        for url in [
            "http://169.254.169.254/latest/meta-data/",
            "https://169.254.0.1/",
            "http://[fe80::1]/",
            "http://[::ffff:169.254.169.254]/",
            "http://[fd00:ec2::254]/",
            "http://100.100.100.200/",
            "http://0.0.0.0/",
        ] {
            assert!(!lets(&guard(false), url), "{url}");
            assert!(!lets(&guard(true), url), "{url}");
        }
    }

    #[test]
    fn without_a_key_to_sign_with_nobody_is_called_back() {
        assert!(callbacks(&Webhooks { secret: None, allow_private: true }).unwrap().is_none());
    }
}
