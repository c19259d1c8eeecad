//! A letter about a pause: plain text, and the same as HTML. Nothing in it is loaded from elsewhere, and what a model or
//! a tool wrote is text in it, with every hidden character shown; the subject has nothing of it.

use holdpoint_core::pause::{PauseKind, PauseState, Subject, questions};
use holdpoint_core::policy::OnTimeout;
use holdpoint_core::text::visible;
use holdpoint_runtime::ports::notifier::{Notice, NoticeKey, NoticeKind};
use lettre::Message;
use lettre::message::header::{Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};

use crate::notifiers::outcome::{Outcome, as_decided, link};
use crate::notifiers::text::{Shown, json};

/// Characters of the arguments, or of the model's words.
const SUBJECT_CHARACTERS_MAX: usize = 16 << 10;

/// Characters of each other text that somebody wrote.
const SAID_CHARACTERS_MAX: usize = 2_000;

/// Says that no person wrote the letter, so that no machine answers it.
#[derive(Debug, Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

/// Writes the letter of a notice.
///
/// # Errors
/// It cannot be written, and never will be.
pub(super) fn write(
    notice: &Notice,
    from: &Mailbox,
    to: &[Mailbox],
    public_url: Option<&str>,
) -> Result<Message, String> {
    let page = Page::of(notice, public_url);
    let id =
        |key: &NoticeKey| format!("<{}.{}.{}@{}>", key.pause, key.kind.name(), key.destination, from.email.domain());
    let mut letter = Message::builder()
        .from(from.clone())
        .subject(page.subject.clone())
        // The same at every attempt: a mailbox that had it shows it once.
        .message_id(Some(id(&notice.key)))
        .header(AutoSubmitted);
    for somebody in to {
        letter = letter.to(somebody.clone());
    }
    if notice.receipt.is_some()
        && let Some(opened) = notice.key.opened()
    {
        letter = letter.in_reply_to(id(&opened)).references(id(&opened));
    }
    letter
        .multipart(MultiPart::alternative_plain_html(page.plain(), page.html()))
        .map_err(|_| "the letter cannot be written".to_owned())
}

/// What stands in a letter.
struct Page {
    subject: String,
    headline: String,
    /// Names of ours, and what is said of each.
    lines: Vec<(&'static str, String)>,
    /// What it is about, and what stands above it.
    about: Option<(&'static str, String)>,
    /// What somebody said with their decision.
    said: Option<String>,
    link: Option<String>,
}

impl Page {
    fn of(notice: &Notice, public_url: Option<&str>) -> Self {
        let view = &as_decided(&notice.pause);
        let (pause, terms) = (&view.pause, &view.pause.terms);
        let agent = line(view.agent.as_str());
        let tool = view.tool().map(|tool| line(tool.as_str())).unwrap_or_default();
        let (subject, headline) = match view.kind() {
            PauseKind::Approval => ("Approval needed", format!("{agent} wants to run {tool}")),
            PauseKind::Question => ("Answer needed", format!("{agent} has a question")),
            PauseKind::Confirmation => ("Confirmation needed", format!("{agent} asks whether to go on")),
            PauseKind::InDoubt => {
                ("Did this happen?", format!("{agent} started {tool}; whether it took effect is not known"))
            }
        };
        let is_first = notice.key.kind == NoticeKind::Opened;
        let answers = if is_first { "" } else { "Re: " };
        let outcome = (!is_first).then(|| Outcome::of(pause));
        let mut lines = Vec::new();
        if let Some(outcome) = &outcome {
            lines.push(("outcome", format!("{}. {}", outcome.title, line(&outcome.told))));
            lines.push(("when", outcome.at.to_string()));
        }
        lines.extend(notice.run.started_by().map(|by| ("asked by", line(by.as_str()))));
        lines.extend(pause.reason.as_deref().map(|reason| ("reason", line(reason))));
        lines.extend(terms.rule.as_deref().map(|rule| ("rule", line(rule))));
        if !terms.approvers.is_empty() {
            lines.push(("for", line(&terms.approvers.join(", "))));
        }
        if terms.quorum > 1 {
            lines.push(("approvals", format!("{} different people must approve", terms.quorum)));
        }
        if is_first {
            lines.push(("until", until(&pause.state, terms.on_timeout)));
        }
        lines.extend(view.call.as_ref().map(|call| ("SHA-256", call.digest.to_string())));
        Self {
            subject: format!("{answers}{subject}: {headline}"),
            headline,
            lines,
            about: about(view),
            said: outcome.and_then(|outcome| outcome.said).map(|said| cut(&said, SAID_CHARACTERS_MAX)),
            link: public_url.map(|url| link(url, view.id())),
        }
    }

    fn plain(&self) -> String {
        let mut parts = vec![format!("{}.", self.headline)];
        parts.push(self.lines.iter().map(|(name, text)| format!("{name:<10}{text}")).collect::<Vec<_>>().join("\n"));
        parts.extend(self.about.as_ref().map(|(title, text)| format!("{title}:\n\n{text}")));
        parts.extend(self.said.as_ref().map(|said| format!("What was said:\n\n{said}")));
        parts.extend(self.link.as_ref().map(|link| format!("{link}\n{HARMLESS}")));
        parts.join("\n\n") + "\n"
    }

    fn html(&self) -> String {
        let mut html = format!("<!doctype html><html><body><h2>{}</h2><table>", escaped(&self.headline));
        for (name, text) in &self.lines {
            html += &format!("<tr><th align=\"left\">{}</th><td>{}</td></tr>", escaped(name), escaped(text));
        }
        html += "</table>";
        for (title, text) in self.about.iter().map(|(title, text)| (*title, text)) {
            html += &format!("<h3>{}</h3><pre>{}</pre>", escaped(title), escaped(text));
        }
        if let Some(said) = &self.said {
            html += &format!("<h3>What was said</h3><pre>{}</pre>", escaped(said));
        }
        if let Some(link) = &self.link {
            let link = escaped(link);
            html += &format!("<p><a href=\"{link}\">Open in holdpoint</a></p><p>{link}</p><p>{HARMLESS}</p>");
        }
        html + "</body></html>"
    }
}

const HARMLESS: &str = "Opening the link decides nothing.";

/// What it is about, whole or cut with words that say so.
fn about(view: &holdpoint_core::pause::PauseView) -> Option<(&'static str, String)> {
    match (&view.call, &view.pause.subject) {
        (Some(call), _) if view.kind() == PauseKind::Question => match questions(&call.arguments) {
            Ok(asked) => {
                let texts: Vec<&str> = asked.iter().map(|question| question.question.as_str()).collect();
                Some(("What is asked", cut(&texts.join("\n"), SUBJECT_CHARACTERS_MAX)))
            }
            Err(_) => Some(("What is asked", json(&call.arguments, SUBJECT_CHARACTERS_MAX).text)),
        },
        (Some(call), _) => match json(&call.arguments, SUBJECT_CHARACTERS_MAX) {
            Shown { text, is_whole: true } => Some(("Arguments, exactly as they would run", text)),
            Shown { text, is_whole: false } => {
                Some(("The beginning of the arguments: all of them are on the page, and their SHA-256 is above", text))
            }
        },
        (None, Subject::Words { text, .. }) => Some(("What it says", cut(text, SUBJECT_CHARACTERS_MAX))),
        (None, Subject::Call { .. }) => None,
    }
}

fn until(state: &PauseState, on_timeout: OnTimeout) -> String {
    let then = match on_timeout {
        OnTimeout::Deny => "without an answer it does not run",
        OnTimeout::Approve => "without an answer it runs as shown",
    };
    match state {
        PauseState::Open { expires_at: Some(at) } => format!("{at}; {then}"),
        _ => "somebody answers".to_owned(),
    }
}

/// One line, with every hidden character shown.
fn line(text: &str) -> String {
    cut(text, SAID_CHARACTERS_MAX).replace('\n', "⏎").replace('\t', "⇥")
}

/// Several lines, with every hidden character shown, and a mark where it is cut.
fn cut(text: &str, characters_max: usize) -> String {
    let text = visible(text);
    match text.char_indices().nth(characters_max) {
        None => text,
        Some((at, _)) => format!("{}\n⟦cut here: {} characters in all⟧", &text[..at], text.chars().count()),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}
