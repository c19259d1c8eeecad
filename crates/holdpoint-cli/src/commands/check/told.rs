//! Where people are told: what only shows when it is put together as for serving.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use holdpoint_config::{Code, Diagnostic, NotificationTarget, ServerConfig, Severity};
use secrecy::ExposeSecret as _;

use crate::notifications;

/// The file that they stand in, whatever it is called.
const FILE: &str = "holdpoint.yaml";

/// What is wrong with the places where people are told, given the names of the agents that are served.
///
/// # Errors
/// The machine has no threads or files left.
pub(super) fn problems(config: &ServerConfig, agents: &[String]) -> Result<Vec<Diagnostic>> {
    let mut problems = Vec::new();
    // Some of them want a runtime around them, although nothing is sent.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("a runtime")?;
    let _entered = runtime.enter();
    if let Err(error) = notifications::of(config) {
        problems.push(Diagnostic::outside(FILE, Severity::Error, Code::BadValue, format!("{error:#}")));
    }
    // Where the agents cannot be read, that is told already.
    if !agents.is_empty() {
        problems.extend(strangers(config, agents));
    }
    problems.extend(shared_apps(config));
    Ok(problems)
}

/// Agents of which somebody is to be told, and which there are not.
fn strangers(config: &ServerConfig, agents: &[String]) -> Vec<Diagnostic> {
    let named = config.notifications.iter().flat_map(|told| told.agents.iter().map(|agent| (&told.name, agent)));
    named
        .filter(|(_, agent)| agents.iter().all(|known| known != agent.as_str()))
        .map(|(name, agent)| {
            let message = format!("notifications: {name}: there is no agent called {agent}, so nobody is told of it");
            Diagnostic::outside(FILE, Severity::Warning, Code::BadName, message)
        })
        .collect()
}

/// Entries that share a Slack app: all its clicks come to one address.
fn shared_apps(config: &ServerConfig) -> Vec<Diagnostic> {
    let mut apps: BTreeMap<&str, &str> = BTreeMap::new();
    let mut problems = Vec::new();
    for told in &config.notifications {
        let NotificationTarget::Slack(target) = &told.target else { continue };
        let name = told.name.as_str();
        let first = *apps.entry(target.bot_token.expose_secret()).or_insert(name);
        if first != name {
            let message =
                format!("notifications: {first} and {name} are one Slack app, which sends clicks to one address");
            let hint = format!("make an app of its own for {name}: its buttons do not count otherwise");
            problems.push(Diagnostic::outside(FILE, Severity::Warning, Code::BadValue, message).with_hint(hint));
        }
    }
    problems
}
