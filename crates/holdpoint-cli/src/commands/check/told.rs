//! Where people are told: what only shows when it is put together as for serving.

use anyhow::{Context as _, Result};
use holdpoint_config::{Code, Diagnostic, NotificationTarget, ServerConfig, Severity, SlackTarget};
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
    for told in config.notifications.iter().filter(|_| !agents.is_empty()) {
        for agent in told.agents.iter().filter(|agent| agents.iter().all(|known| known != agent.as_str())) {
            let message =
                format!("notifications: {}: there is no agent called {agent}, so nobody is told of it", told.name);
            problems.push(Diagnostic::outside(FILE, Severity::Warning, Code::BadName, message));
        }
    }
    let slack: Vec<(&str, &SlackTarget)> = config
        .notifications
        .iter()
        .filter_map(|told| match &told.target {
            NotificationTarget::Slack(target) => Some((told.name.as_str(), target)),
            NotificationTarget::Webhook(_) | NotificationTarget::Email(_) => None,
        })
        .collect();
    for (index, (name, target)) in slack.iter().enumerate() {
        let is_same = |other: &SlackTarget| other.bot_token.expose_secret() == target.bot_token.expose_secret();
        if let Some((first, _)) = slack[..index].iter().find(|(_, other)| is_same(other)) {
            let message =
                format!("notifications: {first} and {name} are one Slack app, which sends clicks to one address");
            let problem = Diagnostic::outside(FILE, Severity::Warning, Code::BadValue, message);
            problems.push(
                problem.with_hint(format!("make an app of its own for {name}: its buttons do not count otherwise")),
            );
        }
    }
    Ok(problems)
}
