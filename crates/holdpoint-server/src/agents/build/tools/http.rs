//! Tools that ask over HTTP: an address of the operator, or one that the model chooses within the operator's bounds.

use holdpoint_config::{Glob, HttpMethod as MethodSpec, HttpRequestConfig, HttpTool as EndpointSpec};
use holdpoint_core::json::CanonicalJson;
use holdpoint_runtime::guardrail::{CallVerdict, GuardrailPhase, ToolGuardrail};
use holdpoint_runtime::ports::tool::ToolBuilder;
use holdpoint_tools::http::{AddressGuard, Endpoint, HttpMethod, HttpRequestTool, HttpTool};
use secrecy::ExposeSecret as _;

use super::{secret, secrets, size, taken};
use crate::agents::build::Workshop;

pub(super) fn endpoint(spec: &EndpointSpec, workshop: &Workshop) -> Result<ToolBuilder, String> {
    let url = secret(&spec.url, workshop.environment())?;
    let mut endpoint = Endpoint::new(method(spec.method), url.expose_secret()).map_err(|error| error.to_string())?;
    for (name, value) in secrets(&spec.headers, workshop.environment())? {
        endpoint = endpoint.header(&name, value).map_err(|error| error.to_string())?;
    }
    for value in taken([&spec.url].into_iter().chain(spec.headers.values()), workshop.environment()) {
        endpoint = endpoint.keep_secret(&value);
    }
    if let Some(timeout) = spec.timeout {
        endpoint = endpoint.timeout(timeout);
    }
    if let Some(bytes) = spec.output_bytes_max {
        endpoint = endpoint.response_bytes_max(size(bytes));
    }
    let tool = HttpTool::builder(&spec.name, workshop.http()?, endpoint);
    Ok(tool.description(&spec.description).schema(spec.parameters.clone()))
}

fn method(spec: MethodSpec) -> HttpMethod {
    match spec {
        MethodSpec::Get => HttpMethod::Get,
        MethodSpec::Post => HttpMethod::Post,
        MethodSpec::Put => HttpMethod::Put,
        MethodSpec::Patch => HttpMethod::Patch,
        MethodSpec::Delete => HttpMethod::Delete,
    }
}

pub(super) fn request(config: &HttpRequestConfig) -> Result<ToolBuilder, String> {
    let mut tool = HttpRequestTool::new(guard(config));
    if let Some(timeout) = config.timeout {
        tool = tool.timeout(timeout);
    }
    if let Some(bytes) = config.output_bytes_max {
        tool = tool.response_bytes_max(size(bytes));
    }
    if config.allowed_hosts.is_empty() {
        return tool.builder().map_err(|error| error.to_string());
    }
    // A host that is allowed could send a request on to one that is not.
    let builder = tool.redirects_max(0).builder().map_err(|error| error.to_string())?;
    let globs = config.allowed_hosts.iter().map(|glob| glob.to_lowercase().parse::<Glob>());
    let globs = globs.collect::<Result<Vec<_>, _>>().map_err(|bad| format!("allowed_hosts: {bad}"))?;
    Ok(builder.guardrail(only_hosts(globs)))
}

fn guard(config: &HttpRequestConfig) -> AddressGuard {
    let guard = AddressGuard::new();
    if config.allow_private { guard.allow_private().any_port() } else { guard }
}

/// Refuses every other host, before a person is asked and again before the request is sent.
fn only_hosts(allowed: Vec<Glob>) -> ToolGuardrail {
    let check = move |_, arguments: CanonicalJson| {
        let host = host_of(&arguments);
        let is_allowed = host.as_deref().is_some_and(|host| allowed.iter().any(|glob| glob.matches(host)));
        let refusal = "this host is not among those that may be asked";
        std::future::ready(if is_allowed { CallVerdict::Pass } else { CallVerdict::Reject(refusal.to_owned()) })
    };
    ToolGuardrail::new("allowed_hosts", check).phases(&[GuardrailPhase::BeforePause, GuardrailPhase::BeforeRun])
}

fn host_of(arguments: &CanonicalJson) -> Option<String> {
    let url = arguments.to_value().get("url")?.as_str()?.parse::<reqwest::Url>().ok()?;
    url.host_str().map(|host| host.trim_end_matches('.').to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_as_it_will_be_asked() {
        let of = |url: &str| host_of(&CanonicalJson::from_serialize(&serde_json::json!({ "url": url })).unwrap());
        assert_eq!(of("https://user@API.example.com.:8443/x").as_deref(), Some("api.example.com"));
        assert_eq!(of("not an address"), None);
    }
}
