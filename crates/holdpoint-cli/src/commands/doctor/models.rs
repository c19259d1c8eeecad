//! Models: whether there is a key, and whether somebody answers where they are asked. Keys are never shown.

use std::collections::BTreeSet;
use std::time::Duration;

use holdpoint_config::{
    Environment as _, FolderReader, ModelName, ProcessEnvironment, Provider, ServerConfig, Template,
};
use secrecy::{ExposeSecret as _, SecretString};

use super::report::{Finding, Report};

/// How long a provider may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where models of one provider are asked, and whether with a key.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Door {
    provider: Provider,
    address: String,
    has_key: bool,
}

pub(super) async fn look(config: &ServerConfig, is_offline: bool, report: &mut Report) {
    let doors = doors(config);
    if doors.is_empty() {
        report.add("models", Finding::fine("no agent asks a provider"));
    }
    for door in doors {
        report.add("models", key(&door));
        if !is_offline {
            report.add("models", reach(&door).await);
        }
    }
}

/// Every provider that an agent names, at each address.
fn doors(config: &ServerConfig) -> BTreeSet<Door> {
    if !config.agents.is_dir() {
        return BTreeSet::new();
    }
    let folder = FolderReader::new(&config.agents).read(&ProcessEnvironment);
    let mut doors = BTreeSet::new();
    for spec in folder.agents.iter().filter_map(|agent| agent.file.spec.model.as_ref()) {
        let primary = spec.primary.resolve(&ProcessEnvironment).ok();
        doors.extend(primary.and_then(|name| door(&name, spec.base_url.as_ref(), spec.api_key.as_ref())));
        let fallback = spec.fallback.as_ref().and_then(|model| model.resolve(&ProcessEnvironment).ok());
        doors.extend(fallback.and_then(|name| door(&name, None, None)));
    }
    doors
}

fn door(name: &ModelName, base_url: Option<&Template>, api_key: Option<&Template>) -> Option<Door> {
    let (address, key, usual) = match name.provider {
        Provider::OpenAi => ("OPENAI_BASE_URL", "OPENAI_API_KEY", "https://api.openai.com/v1"),
        Provider::Anthropic => ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "https://api.anthropic.com"),
        Provider::Scripted => return None,
    };
    let is_set = |value: &SecretString| !value.expose_secret().trim().is_empty();
    let own = |template: Option<&Template>| template.and_then(|template| template.resolve(&ProcessEnvironment).ok());
    let value = |template, name| own(template).or_else(|| ProcessEnvironment.value(name)).filter(is_set);
    let address = value(base_url, address).map_or_else(|| usual.to_owned(), |value| value.expose_secret().to_owned());
    Some(Door { provider: name.provider, address, has_key: value(api_key, key).is_some() })
}

fn key(door: &Door) -> Finding {
    let variable = match door.provider {
        Provider::Anthropic => "ANTHROPIC_API_KEY",
        Provider::OpenAi | Provider::Scripted => "OPENAI_API_KEY",
    };
    let is_own = door.address.contains("api.openai.com") || door.address.contains("api.anthropic.com");
    match (door.has_key, is_own) {
        (true, _) => Finding::fine(format!("{} at {}: a key is set", door.provider.name(), host(&door.address))),
        (false, true) => Finding::failure(
            format!("{} at {}: no key", door.provider.name(), host(&door.address)),
            format!("set {variable}"),
        ),
        (false, false) => {
            Finding::fine(format!("{} at {}: asked without a key", door.provider.name(), host(&door.address)))
        }
    }
}

/// Whether somebody answers there. Nothing is sent but a request for the address itself, without a key.
async fn reach(door: &Door) -> Finding {
    let advice = "check the address, the network and proxies";
    let client = reqwest::Client::builder().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none()).build();
    let client = match client {
        Ok(client) => client,
        Err(error) => return Finding::failure(format!("no connection can be made from here: {error}"), advice),
    };
    match client.get(&door.address).send().await {
        Ok(answer) => Finding::fine(format!("{} answers ({})", host(&door.address), answer.status())),
        Err(error) => {
            let error = error.without_url();
            Finding::failure(format!("{} does not answer: {error}", host(&door.address)), advice)
        }
    }
}

/// Host and port of an address: the rest may hold what is not to be shown.
fn host(address: &str) -> String {
    match address.parse::<reqwest::Url>() {
        Ok(url) => {
            let host = url.host_str().unwrap_or("?").to_owned();
            url.port().map_or(host.clone(), |port| format!("{host}:{port}"))
        }
        Err(_) => "an address that cannot be read".to_owned(),
    }
}
