//! What Slack sends when somebody clicks: a form with one field, in which there is JSON. Only what is used is read; Slack
//! may add to it at any time.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, header};
use holdpoint_core::ids::ActorId;
use holdpoint_core::json::CanonicalJson;
use serde::Deserialize;

use crate::limits::Query;
use crate::problem::{Code, Problem};

/// What somebody did.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Payload {
    /// They clicked a button.
    BlockActions(BlockActions),
    /// They sent a modal off.
    ViewSubmission(ViewSubmission),
    /// Something that nothing here asks for.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
pub(super) struct BlockActions {
    pub(super) user: User,
    pub(super) team: Option<Named>,
    pub(super) api_app_id: String,
    pub(super) trigger_id: String,
    pub(super) container: Container,
    pub(super) actions: Vec<ActionTaken>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ViewSubmission {
    pub(super) user: User,
    pub(super) team: Option<Named>,
    pub(super) api_app_id: String,
    pub(super) view: SentView,
}

#[derive(Debug, Deserialize)]
pub(super) struct User {
    pub(super) id: String,
    pub(super) team_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Named {
    pub(super) id: String,
}

/// Where the button stands.
#[derive(Debug, Deserialize)]
pub(super) struct Container {
    pub(super) channel_id: String,
    pub(super) message_ts: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct ActionTaken {
    pub(super) action_id: String,
    pub(super) value: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SentView {
    pub(super) callback_id: String,
    pub(super) private_metadata: String,
    pub(super) state: SentState,
}

#[derive(Debug, Deserialize)]
pub(super) struct SentState {
    pub(super) values: Values,
}

/// What was entered, by field and action.
pub(super) type Values = BTreeMap<String, BTreeMap<String, Entered>>;

#[derive(Debug, Deserialize)]
pub(super) struct Entered {
    pub(super) value: Option<String>,
    pub(super) selected_option: Option<Chosen>,
    pub(super) selected_options: Option<Vec<Chosen>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Chosen {
    pub(super) value: String,
}

/// Reads a request that was found to be Slack's.
///
/// # Errors
/// 415 or 400: it is not as Slack sends it.
pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Payload, Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let detail = "Slack sends interactions as a form: application/x-www-form-urlencoded";
        return Err(Problem::new(Code::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let bad = |detail: &'static str| Problem::new(Code::INVALID_REQUEST, detail);
    let form = std::str::from_utf8(body).map_err(|_| bad("the form is not text"))?;
    let form =
        Query::new(Some(form)).only(&["payload"]).map_err(|_| bad("a form with one field, payload, expected"))?;
    let payload = form.text("payload").ok_or_else(|| bad("the form has no payload"))?;
    // No key twice: which one counts could not be told.
    let json = CanonicalJson::parse(payload).map_err(|problem| {
        Problem::new(Code::INVALID_JSON, format!("the payload is not accepted as JSON: {problem}"))
    })?;
    json.decode().map_err(|_| bad("the payload is not an interaction as Slack sends them"))
}

impl Payload {
    /// Who did it, in which workspaces Slack says they are, and for which app.
    pub(super) fn author(&self) -> Option<Author<'_>> {
        let (user, team, app) = match self {
            Self::BlockActions(taken) => (&taken.user, &taken.team, &taken.api_app_id),
            Self::ViewSubmission(sent) => (&sent.user, &sent.team, &sent.api_app_id),
            Self::Other => return None,
        };
        let teams = team.iter().map(|team| team.id.as_str()).chain(user.team_id.as_deref()).collect();
        Some(Author { user: &user.id, teams, app })
    }
}

/// Who did something.
pub(super) struct Author<'p> {
    pub(super) user: &'p str,
    teams: Vec<&'p str>,
    pub(super) app: &'p str,
}

impl<'p> Author<'p> {
    /// Somebody who is nobody here, so that they too can be told to slow down.
    pub(super) fn as_actor(&self) -> ActorId {
        ActorId::new(format!("slack:{}", self.user)).unwrap_or_else(|_| ActorId::timeout())
    }

    /// The workspace, where Slack names one and no other.
    pub(super) fn team(&self) -> Option<&'p str> {
        let first = *self.teams.first()?;
        self.teams.iter().all(|team| *team == first).then_some(first)
    }
}
