//! Where people are told: whether tokens hold, whether the people who may click are of the workspace, and whether a mail
//! server takes letters.

use holdpoint_config::{EmailTarget, NotificationTarget, ServerConfig};

use super::report::{Finding, Report};
use crate::notifications;

pub(super) async fn look(config: &ServerConfig, is_offline: bool, report: &mut Report) {
    let has_links = |target: &NotificationTarget| match target {
        NotificationTarget::Slack(_) | NotificationTarget::Email(_) => true,
        NotificationTarget::Webhook(_) => false,
    };
    if config.public_url.is_none() && config.notifications.iter().any(|told| has_links(&told.target)) {
        let what = "public_url is not set: links in messages lead to the address that the server listens on";
        report.add("notify", Finding::caution(what, "set public_url to the address by which people reach it"));
    }
    let all = match notifications::of(config) {
        Ok(all) => all,
        Err(error) => {
            report.add("notify", Finding::failure(format!("{error:#}"), "correct it in holdpoint.yaml"));
            return;
        }
    };
    for slack in &all.slack {
        let name = slack.destination();
        if is_offline {
            report.add("notify", Finding::fine(format!("{name}: Slack is not asked: nothing leaves this machine")));
            continue;
        }
        report.add(
            "notify",
            match slack.test().await {
                Ok(found) if slack.knows_team(&found.team_id) => {
                    Finding::fine(format!("{name}: Slack takes the token, as {} in {}", found.user, found.team))
                }
                Ok(found) => Finding::caution(
                    format!("{name}: the token is of workspace {}, and nobody of it may click", found.team_id),
                    format!("name its people with `team: {}`", found.team_id),
                ),
                Err(why) => Finding::failure(
                    format!("{name}: {why}"),
                    "check bot_token, the app's scope chat:write, and the network",
                ),
            },
        );
    }
    for told in &config.notifications {
        match &told.target {
            NotificationTarget::Email(target) => {
                report.add("notify", mail(config, &told.name, target, is_offline).await);
            }
            // A request that tells of nothing would confuse whoever gets it.
            NotificationTarget::Webhook(_) => {
                report.add("notify", Finding::fine(format!("{}: the webhook is not called", told.name)));
            }
            NotificationTarget::Slack(_) => {}
        }
    }
}

async fn mail(config: &ServerConfig, name: &str, target: &EmailTarget, is_offline: bool) -> Finding {
    if is_offline {
        return Finding::fine(format!("{name}: the mail server is not asked: nothing leaves this machine"));
    }
    let told = match notifications::email(config, target) {
        Ok(email) => email.test().await,
        Err(error) => Err(format!("{error:#}")),
    };
    match told {
        Ok(()) => Finding::fine(format!("{name}: the mail server takes letters from here")),
        Err(why) => Finding::failure(format!("{name}: {why}"), "check smtp, password and the network"),
    }
}
