//! A pause as a person reads it before deciding: everything that counts, nothing cut.

use console::style;
use holdpoint_core::json::{CanonicalJson, Digest};
use holdpoint_core::pause::PauseKind;
use holdpoint_core::text::visible;

use crate::asked::{About, Asked};
use crate::render::{indented, line};

/// Shows a pause on the terminal's error side.
pub fn pause(asked: &Asked) {
    let title = match asked.kind {
        PauseKind::Approval => "wants to run a tool",
        PauseKind::Question => "asks you",
        PauseKind::Confirmation => "asks for a confirmation",
        PauseKind::InDoubt => "started a tool, and how that ended is not known",
    };
    err!();
    err!("{} {} {title}", style("■").for_stderr().yellow(), style(line(&asked.agent)).for_stderr().bold());
    match &asked.about {
        About::Call { tool, .. } if asked.kind == PauseKind::Question => field("tool", tool),
        About::Call { tool, arguments: given, digest } => {
            field("tool", tool);
            arguments(given, digest);
        }
        About::Words(text) => block(text),
    }
    if let Some(rule) = &asked.rule {
        field("rule", &line(rule));
    }
    if let Some(reason) = asked.reason.as_ref().filter(|_| asked.kind != PauseKind::Confirmation) {
        field("reason", &line(reason));
    }
    if let (needed @ 2.., given) = asked.approvals {
        field("approvals", &format!("{given} of {needed}"));
    }
    if let Some(expires_at) = asked.expires_at {
        field("until", &expires_at.to_string());
    }
    field("pause", &asked.id.to_string());
}

/// Shows arguments exactly as they would run, and the digest that a decision binds to.
pub fn arguments(given: &CanonicalJson, digest: &Digest) {
    let shown = indented(given);
    let mut lines = shown.lines();
    field("arguments", lines.next().unwrap_or_default());
    lines.for_each(|line| err!("  {:<10} {line}", ""));
    field("sha256", &digest.to_string());
}

fn field(name: &str, value: &str) {
    err!("  {} {value}", style(format!("{name:<10}")).for_stderr().dim());
}

fn block(text: &str) {
    visible(text).lines().for_each(|line| err!("  {} {line}", style("│").for_stderr().dim()));
}
