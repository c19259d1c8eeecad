//! Models as an agent's file names them: by provider and name, one that stands in for another, or a script.

use std::sync::Arc;

use holdpoint_config::{ModelName, ModelRef, ModelSpec, OpenAiApi, Provider};
use holdpoint_models::HttpSettings;
use holdpoint_models::fallback::FallbackModel;
use holdpoint_models::providers::{Providers, from_name};
use holdpoint_models::scripted::ScriptedModel;
use holdpoint_runtime::ports::model::Model;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};

use super::{Bundle, Flaw, Workshop};

/// The model of this description.
pub(super) fn make(spec: &ModelSpec, bundle: &Bundle, workshop: &Workshop) -> Result<Arc<dyn Model>, Flaw> {
    let first = one(&spec.primary, Place::Primary, spec, bundle, workshop)?;
    let Some(fallback) = &spec.fallback else { return Ok(first) };
    let second = one(fallback, Place::Fallback, spec, bundle, workshop)?;
    Ok(Arc::new(FallbackModel::new(first, second)))
}

/// What the model is told about how to reply.
pub(super) fn settings(spec: &ModelSpec) -> Value {
    let mut settings = Map::new();
    let mut set = |name: &str, value: Option<Value>| value.map(|value| settings.insert(name.to_owned(), value));
    set("temperature", spec.temperature.map(Value::from));
    set("top_p", spec.top_p.map(Value::from));
    set("max_tokens", spec.max_tokens.map(Value::from));
    if settings.is_empty() { Value::Null } else { Value::Object(settings) }
}

/// The variables that must be set before the models of a description can be asked, each with the model's place.
pub(crate) fn missing_keys(spec: &ModelSpec, workshop: &Workshop) -> Vec<(&'static str, &'static str)> {
    let models = [(Place::Primary, Some(&spec.primary)), (Place::Fallback, spec.fallback.as_ref())];
    let missing = models.into_iter().filter_map(|(place, model)| {
        let name = model?.resolve(workshop.environment()).ok()?;
        let providers = providers(place, name.provider, spec, workshop).ok()?;
        Some((place.path(), providers.missing_key(&written(&name, spec)).ok()??))
    });
    missing.collect()
}

/// Which of a description's two models is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Primary,
    Fallback,
}

impl Place {
    fn path(self) -> &'static str {
        match self {
            Self::Primary => "spec.model.primary",
            Self::Fallback => "spec.model.fallback",
        }
    }
}

fn one(
    model: &ModelRef,
    place: Place,
    spec: &ModelSpec,
    bundle: &Bundle,
    workshop: &Workshop,
) -> Result<Arc<dyn Model>, Flaw> {
    let flaw = |message: String| Flaw::at(place.path(), message);
    let name = model.resolve(workshop.environment()).map_err(|problem| flaw(problem.to_string()))?;
    if name.provider == Provider::Scripted {
        let script = bundle.scripts.get(&name.model);
        let script = script.ok_or_else(|| flaw(format!("the script {} was not read", name.model)))?;
        let model = ScriptedModel::from_json(script).map_err(|problem| flaw(problem.to_string()))?;
        return Ok(Arc::new(model.named(name.to_string())));
    }
    let providers = providers(place, name.provider, spec, workshop).map_err(&flaw)?;
    from_name(&written(&name, spec), &providers).map_err(|problem| flaw(problem.to_string()))
}

/// A name as providers read it.
fn written(name: &ModelName, spec: &ModelSpec) -> String {
    match (name.provider, spec.api) {
        (Provider::OpenAi, OpenAiApi::Responses) => format!("openai-responses/{}", name.model),
        _ => name.to_string(),
    }
}

/// The providers of the environment; with an address, key or time of its own, an agent's primary model has its own.
fn providers(place: Place, provider: Provider, spec: &ModelSpec, workshop: &Workshop) -> Result<Providers, String> {
    let is_primary = place == Place::Primary;
    let has_own = spec.timeout.is_some() || (is_primary && (spec.base_url.is_some() || spec.api_key.is_some()));
    if !has_own {
        return workshop.providers.clone();
    }
    let own = |template: &Option<holdpoint_config::Template>| match template {
        Some(template) if is_primary => template.resolve(workshop.environment()).map(Some),
        _ => Ok(None),
    };
    let base_url = own(&spec.base_url).map_err(|missing| missing.to_string())?;
    let api_key = own(&spec.api_key).map_err(|missing| missing.to_string())?;
    let (address, key) = match provider {
        Provider::Anthropic => ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
        Provider::OpenAi | Provider::Scripted => ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
    };
    let variable = |name: &str| {
        let own = if name == address { base_url.clone() } else { None };
        let own = own.or_else(|| if name == key { api_key.clone() } else { None });
        own.or_else(|| workshop.environment().value(name)).map(|value: SecretString| value.expose_secret().to_owned())
    };
    let mut http = HttpSettings::default();
    if let Some(timeout) = spec.timeout {
        http.total_timeout = timeout;
        http.first_byte_timeout = http.first_byte_timeout.min(timeout);
    }
    Providers::from_env(variable, &http).map_err(|bad| bad.to_string())
}
