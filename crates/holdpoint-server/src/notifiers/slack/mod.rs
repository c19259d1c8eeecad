//! Slack: a message in a channel for each pause, with buttons, and the route that takes what people click.
//!
//! What is told goes out through the outbox ([`holdpoint_runtime::notices`]). What is clicked comes in at
//! `/api/v1/slack/{destination}/interactions`, signed by Slack. Neither knows a person who is not in the configuration.

mod act;
mod blocks;
mod client;
mod decide;
mod form;
mod interactions;
mod message;
mod modal;
mod notify;
mod payload;
mod people;
mod receipt;
mod reference;
mod sheet;
mod signature;

use std::sync::Arc;

use holdpoint_core::ids::ActorId;
use holdpoint_runtime::ports::notifier::{Destination, NotifyRule};
use secrecy::SecretString;

pub use client::Workspace;
pub(crate) use interactions::router;
pub use people::Person;

use client::Client;
use people::People;
use signature::Signatures;

use super::text;
use crate::app::App;

/// Through which door decisions came, as they record it.
const VIA: &str = "slack";

/// A channel of Slack.
pub struct Slack {
    rule: NotifyRule,
    channel: String,
    app_id: Option<String>,
    public_url: Option<String>,
    people: People,
    signatures: Signatures,
    client: Client,
}

/// What an operator says about a channel.
pub struct SlackSettings {
    /// Its name, and of which pauses it is told.
    pub rule: NotifyRule,
    /// The channel's id.
    pub channel: String,
    /// The token with which the app writes.
    pub bot_token: SecretString,
    /// The key with which Slack signs what people click.
    pub signing_secret: SecretString,
    /// The app's id, where clicks of another one are to be refused by it too.
    pub app_id: Option<String>,
    /// Who may click.
    pub people: Vec<Person>,
    /// Where Slack's Web API is.
    pub base_url: String,
    /// The address by which people reach this server; without one, messages have no link to it.
    pub public_url: Option<String>,
}

/// Why a channel cannot be used as it was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadSlack {
    /// The token would go out unencrypted.
    #[error("the address of Slack's Web API must begin with https://")]
    Address,
    /// No encrypted connection can be made.
    #[error("no TLS can be had")]
    Tls,
    /// The name is reserved.
    #[error("nobody may decide as {0:?}, a name for decisions that no person made")]
    Reserved(String),
    /// They could do nothing.
    #[error("{0} has no role: agent, approver, admin or auditor")]
    NoRole(ActorId),
    /// As whom they decide could not be told.
    #[error("user {user} of workspace {team} is named twice")]
    Twice {
        /// The workspace.
        team: String,
        /// The user.
        user: String,
    },
}

impl Slack {
    /// Slack's own Web API.
    pub const BASE_URL: &'static str = "https://slack.com/api";

    /// A channel.
    ///
    /// # Errors
    /// What an operator must change.
    pub fn new(settings: SlackSettings) -> Result<Self, BadSlack> {
        Ok(Self {
            rule: settings.rule,
            channel: settings.channel,
            app_id: settings.app_id,
            public_url: settings.public_url,
            people: People::new(settings.people)?,
            signatures: Signatures::new(settings.signing_secret),
            client: Client::new(&settings.base_url, settings.bot_token)?,
        })
    }

    /// Its name, and of which pauses it is told.
    pub fn rule(&self) -> &NotifyRule {
        &self.rule
    }

    /// Its name.
    pub fn destination(&self) -> &Destination {
        &self.rule.destination
    }

    /// Whether anybody of this workspace may click.
    pub fn knows_team(&self, team: &str) -> bool {
        self.people.knows_team(team)
    }

    /// Asks Slack whether the token holds.
    ///
    /// # Errors
    /// Why not, without the token.
    pub async fn test(&self) -> Result<Workspace, String> {
        self.client.test().await.map_err(|fault| fault.to_string())
    }

    /// Tells one person something, behind the answer to their click.
    fn whisper(self: &Arc<Self>, app: &App, channel: &str, user: &str, told: String) {
        let (slack, channel, user) = (self.clone(), channel.to_owned(), user.to_owned());
        app.tasks().spawn(async move {
            if let Err(fault) = slack.client.whisper(&channel, &user, &told).await {
                tracing::warn!(destination = %slack.destination(), %fault, "somebody who clicked could not be told");
            }
        });
    }
}
