//! `holdpoint approve`, `deny` and `answer`: one decision about one pause.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use holdpoint_core::decision::Decision;
use holdpoint_core::json::{CanonicalJson, Digest};
use holdpoint_core::pause::{PauseKind, Question};
use holdpoint_core::text::visible;
use serde::Serialize;

use super::pause::Pause;
use crate::args::{AnswerArgs, ApproveArgs, DenyArgs};
use crate::commands::client::Client;
use crate::exit::Exit;

/// A decision as the native API takes it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Body {
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<CanonicalJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<BTreeMap<String, Vec<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args_sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    always: Option<Always>,
}

/// A rule that is made with a decision.
#[derive(Debug, Serialize)]
struct Always {
    scope: &'static str,
}

impl Body {
    pub(super) fn of(decision: Decision) -> Self {
        let mut body = Self { decision: decision.name(), ..Self::default() };
        match decision {
            Decision::Approve | Decision::RunAgain | Decision::Abandon => {}
            Decision::ApproveEdited { arguments } => body.args = Some(arguments),
            Decision::Deny { message } => body.message = message,
            Decision::Respond { content } => body.content = Some(content),
            Decision::Answer { answers } => body.answers = Some(answers),
            Decision::Happened { result } => body.content = Some(result.to_text()),
        }
        body
    }

    /// The same decision for every further call of this tool in this session.
    pub(super) fn always(self) -> Self {
        Self { always: Some(Always { scope: "session" }), ..self }
    }

    /// The same decision about these arguments only.
    pub(super) fn seeing(self, digest: Option<Digest>) -> Self {
        Self { args_sha256: digest.map(|digest| digest.to_string()), ..self }
    }
}

/// Sends a decision. The key is the decision's own: sent twice, it counts once.
pub(super) async fn send(client: &Client, pause: &str, body: &Body) -> Result<Pause> {
    let key = format!("cli-{pause}-{}-{}", std::process::id(), body.decision);
    client.post(&format!("/api/v1/pauses/{pause}/decide"), &key, body).await
}

/// `holdpoint approve`
///
/// # Errors
/// The server is not there, or refuses.
pub async fn approve(args: &ApproveArgs) -> Result<Exit> {
    let decision = match &args.args {
        Some(text) => {
            let arguments = CanonicalJson::parse(text).context("--args is not JSON")?;
            Decision::ApproveEdited { arguments }
        }
        None => Decision::Approve,
    };
    let body = Body { args_sha256: args.sha256.clone(), ..Body::of(decision) };
    let pause = send(&Client::new(&args.server)?, &args.pause.to_string(), &body).await?;
    tell(&pause);
    Ok(Exit::Done)
}

/// `holdpoint deny`
///
/// # Errors
/// The server is not there, or refuses.
pub async fn deny(args: &DenyArgs) -> Result<Exit> {
    let body = Body::of(Decision::Deny { message: args.message.clone() });
    let pause = send(&Client::new(&args.server)?, &args.pause.to_string(), &body).await?;
    tell(&pause);
    Ok(Exit::Done)
}

/// `holdpoint answer`
///
/// # Errors
/// The server is not there, refuses, or asks something else.
pub async fn answer(args: &AnswerArgs) -> Result<Exit> {
    let client = Client::new(&args.server)?;
    let pause: Pause = client.get(&format!("/api/v1/pauses/{}", args.pause), &[]).await?;
    let asked = pause.asked()?;
    if asked.kind != PauseKind::Question {
        bail!("{} is no question: use `holdpoint approve` or `holdpoint deny`", args.pause);
    }
    let questions = asked.questions();
    if questions.len() != args.answers.len() {
        let texts: Vec<String> = questions.iter().map(|question| visible(&question.question)).collect();
        bail!("{} answers are expected, in this order: {}", questions.len(), texts.join(" · "));
    }
    let given = questions
        .iter()
        .zip(&args.answers)
        .map(|(question, text)| (question.question.clone(), choices(question, text)));
    let body = Body::of(Decision::Answer { answers: given.collect() });
    tell(&send(&client, &pause.id, &body).await?);
    Ok(Exit::Done)
}

/// One text, or several with commas where several may be chosen.
fn choices(question: &Question, text: &str) -> Vec<String> {
    match question.multi_select {
        true => text.split(',').map(|choice| choice.trim().to_owned()).filter(|choice| !choice.is_empty()).collect(),
        false => vec![text.to_owned()],
    }
}

fn tell(pause: &Pause) {
    out!("{} is {}", visible(&pause.id), visible(&pause.status));
}
