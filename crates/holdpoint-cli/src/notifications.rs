//! Where people are told of pauses, as the settings say it.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use holdpoint_config::{
    EmailTarget, Notification, NotificationTarget, ServerConfig, SlackPerson, SlackTarget, WebhookTarget,
};
use holdpoint_runtime::ports::notifier::{Destination, Notifier, NotifyRule};
use holdpoint_server::access::Role;
use holdpoint_server::notifiers::email::{Email, EmailSettings};
use holdpoint_server::notifiers::slack::{Person, Slack, SlackSettings};
use holdpoint_server::notifiers::webhook::Webhook;
use holdpoint_server::webhooks::WebhookClient;
use holdpoint_tools::http::AddressGuard;

/// Everything that tells people, and what it needs to be answered.
#[derive(Default)]
pub struct Notifications {
    /// Who is told of what, and how.
    pub notifiers: Vec<(NotifyRule, Arc<dyn Notifier>)>,
    /// Channels of Slack, whose buttons are answered.
    pub slack: Vec<Arc<Slack>>,
}

/// Of which pauses each place is told. Whoever opens pauses must know, also where somebody else sends.
///
/// # Errors
/// A name that cannot be one.
pub fn rules(config: &ServerConfig) -> Result<Vec<NotifyRule>> {
    config.notifications.iter().map(rule).collect()
}

/// What sends.
///
/// # Errors
/// What an operator must change.
pub fn of(config: &ServerConfig) -> Result<Notifications> {
    let mut all = Notifications::default();
    for notification in &config.notifications {
        let rule = rule(notification)?;
        let about = || format!("notifications: {}", notification.name);
        match &notification.target {
            NotificationTarget::Slack(target) => {
                let slack = Arc::new(slack(config, rule.clone(), target).with_context(about)?);
                all.notifiers.push((rule, slack.clone()));
                all.slack.push(slack);
            }
            NotificationTarget::Webhook(target) => {
                all.notifiers.push((rule, Arc::new(webhook(config, target).with_context(about)?)));
            }
            NotificationTarget::Email(target) => {
                all.notifiers.push((rule, Arc::new(email(config, target).with_context(about)?)));
            }
        }
    }
    Ok(all)
}

fn rule(notification: &Notification) -> Result<NotifyRule> {
    let destination = Destination::new(&notification.name)
        .with_context(|| format!("notifications: {:?} cannot be a name", notification.name))?;
    Ok(NotifyRule { destination, agents: notification.agents.clone(), kinds: notification.kinds.clone() })
}

/// A channel of Slack.
///
/// # Errors
/// What an operator must change.
pub fn slack(config: &ServerConfig, rule: NotifyRule, target: &SlackTarget) -> Result<Slack> {
    Ok(Slack::new(SlackSettings {
        rule,
        channel: target.channel.clone(),
        bot_token: target.bot_token.clone(),
        signing_secret: target.signing_secret.clone(),
        app_id: target.app_id.clone(),
        people: target.people.iter().map(person).collect(),
        base_url: target.base_url.clone(),
        public_url: public_url(config),
    })?)
}

/// A system that is told by signed requests. It may be reached where callbacks may go.
///
/// # Errors
/// What an operator must change.
pub fn webhook(config: &ServerConfig, target: &WebhookTarget) -> Result<Webhook> {
    let guard = match config.webhooks.allow_private {
        true => AddressGuard::new().any_port().allow_private(),
        false => WebhookClient::guard(),
    };
    Ok(Webhook::new(&target.url, &target.secret, guard)?)
}

/// People who are told by mail.
///
/// # Errors
/// What an operator must change.
pub fn email(config: &ServerConfig, target: &EmailTarget) -> Result<Email> {
    Ok(Email::new(EmailSettings {
        server: target.smtp.clone(),
        password: target.password.clone(),
        from: target.from.clone(),
        to: target.to.clone(),
        public_url: public_url(config),
    })?)
}

fn person(person: &SlackPerson) -> Person {
    Person {
        team: person.team.clone(),
        user: person.user.clone(),
        principal: person.principal.clone(),
        roles: person.roles.iter().filter_map(|role| Role::named(role.name())).collect(),
        groups: person.groups.clone(),
    }
}

/// The address by which people reach the server: the one that is configured, or the one that it listens on.
fn public_url(config: &ServerConfig) -> Option<String> {
    let own = || (config.listen.port() != 0).then(|| format!("http://{}", config.listen));
    config.public_url.clone().or_else(own)
}
