//! What a click or a modal leads to, and what whoever clicked is told.

use std::sync::Arc;

use holdpoint_core::decision::Decision;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_core::pause::{PauseView, questions};

use super::blocks::View;
use super::decide::Decider;
use super::form::{FieldErrors, Form, written};
use super::payload::{BlockActions, Values, ViewSubmission};
use super::receipt::Receipt;
use super::reference::Reference;
use super::{Slack, message, modal};
use crate::access::Caller;
use crate::app::App;
use crate::problem::{Code, Problem};

/// What Slack is answered.
pub(super) enum Answer {
    /// Nothing more; a modal closes.
    Done,
    /// Words in the place of the modal.
    Say(String),
    /// What is wrong, beside the fields.
    Correct(FieldErrors),
    /// It was never offered.
    Refused(Problem),
}

/// What a button does.
enum Press {
    Decide(Decision),
    Show(fn(&PauseView) -> Option<View>, Decision),
}

impl Press {
    /// Modals are opened only for who could send them off: the decision stands for what would come of it.
    fn of(action: &str) -> Option<Self> {
        let empty = || CanonicalJson::parse("{}").ok();
        Some(match action {
            "approve" => Self::Decide(Decision::Approve),
            "run_again" => Self::Decide(Decision::RunAgain),
            "abandon" => Self::Decide(Decision::Abandon),
            "deny" => Self::Show(|view| Some(modal::deny(view)), Decision::Deny { message: None }),
            "edit" => Self::Show(modal::edit, Decision::ApproveEdited { arguments: empty()? }),
            "answer" => Self::Show(modal::answer, Decision::Answer { answers: Default::default() }),
            "happened" => {
                let decision = Decision::Happened { result: Content::Text(String::new()) };
                Self::Show(|view| Some(modal::happened(view)), decision)
            }
            _ => return None,
        })
    }
}

/// Somebody clicked a button.
pub(super) async fn press(app: &App, slack: &Arc<Slack>, caller: &Caller, taken: BlockActions) -> Answer {
    let [action] = taken.actions.as_slice() else { return Answer::Done };
    // A link opens by itself, and other elements of the app are not ours.
    let Some(press) = Press::of(&action.action_id) else { return Answer::Done };
    let Some(reference) = action.value.as_deref().and_then(|value| value.parse::<Reference>().ok()) else {
        return Answer::Refused(Problem::new(Code::INVALID_REQUEST, "the button does not say what it is about"));
    };
    let decider = Decider { app, slack, caller, reference };
    let done = match press {
        Press::Decide(decision) => decider.decide(decision).await,
        Press::Show(view, decision) => show(&decider, view, &decision, taken.trigger_id).await,
    };
    match done {
        Ok(()) => {
            tell_votes(&decider, &taken.container.channel_id, &taken.user.id).await;
            Answer::Done
        }
        Err(problem) => {
            let place = Receipt { channel: taken.container.channel_id, ts: taken.container.message_ts };
            refuse(&decider, place, &taken.user.id, problem).await
        }
    }
}

async fn show(
    decider: &Decider<'_>,
    view: fn(&PauseView) -> Option<View>,
    decision: &Decision,
    trigger: String,
) -> Result<(), Problem> {
    let looked = decider.look_before(decision).await?;
    let view = view(&looked.view).ok_or_else(|| {
        Problem::new(Code::NOT_FULLY_DISPLAYED, "there is no room for it in Slack: open it in holdpoint")
    })?;
    let slack = decider.slack.clone();
    decider.app.tasks().spawn(async move {
        if let Err(fault) = slack.client.open(&trigger, &view).await {
            tracing::warn!(destination = %slack.destination(), %fault, "a modal could not be opened");
        }
    });
    Ok(())
}

/// Where several must approve, who approved is told that theirs counts: the message stays as it is.
async fn tell_votes(decider: &Decider<'_>, channel: &str, user: &str) {
    let Ok(looked) = decider.look().await else { return };
    let pause = looked.pause();
    if pause.is_open() && pause.is_approved_by(&decider.caller.actor) {
        let missing = pause.approvals_missing();
        let told = format!("Your approval counts. {missing} more needed.");
        decider.slack.whisper(decider.app, channel, user, told);
    }
}

/// Tells who clicked why it did not count. A message that still has buttons although its pause is over loses them.
async fn refuse(decider: &Decider<'_>, place: Receipt, user: &str, problem: Problem) -> Answer {
    let slack = decider.slack;
    let pause = decider.reference.pause;
    tracing::info!(destination = %slack.destination(), pause.id = %pause, code = problem.code(), "a click did not count");
    slack.whisper(decider.app, &place.channel, user, words(&problem));
    if let Ok(looked) = decider.look().await
        && !looked.pause().is_open()
        && place.channel == slack.channel
    {
        let message = message::settled(&looked.view, looked.dossier.run.started_by());
        let slack = slack.clone();
        decider.app.tasks().spawn(async move {
            if let Err(fault) = slack.client.update(&place, &message).await {
                tracing::info!(destination = %slack.destination(), %fault, "an old message could not be changed");
            }
        });
    }
    match problem.code() == Code::NOT_FULLY_DISPLAYED.name {
        true => Answer::Refused(problem),
        false => Answer::Done,
    }
}

fn words(problem: &Problem) -> String {
    format!("This did not count: {} ({})", problem.detail(), problem.code())
}

/// Somebody sent a modal off.
pub(super) async fn send_off(app: &App, slack: &Arc<Slack>, caller: &Caller, sent: ViewSubmission) -> Answer {
    let Ok(reference) = sent.view.private_metadata.parse::<Reference>() else { return Answer::Done };
    let decider = Decider { app, slack, caller, reference };
    let values = &sent.view.state.values;
    let (field, decision) = match read(&decider, &sent.view.callback_id, values).await {
        Ok(Some(read)) => read,
        Ok(None) => return Answer::Done,
        Err(answer) => return answer,
    };
    match decider.decide(decision).await {
        Ok(()) => Answer::Done,
        Err(problem) => {
            let code = problem.code();
            let pause = reference.pause;
            tracing::info!(destination = %slack.destination(), pause.id = %pause, code, "a modal did not count");
            match matches!(code, "invalid_arguments" | "invalid_answers" | "number_out_of_range" | "over_limit") {
                true => wrong(&field, problem.detail()),
                false => Answer::Say(words(&problem)),
            }
        }
    }
}

/// The decision that was entered, and the field at which it is told what is wrong with it; nothing for a modal that is not
/// ours.
async fn read(decider: &Decider<'_>, modal: &str, values: &Values) -> Result<Option<(String, Decision)>, Answer> {
    let text = |field: &str| written(values, field);
    Ok(Some(match modal {
        modal::DENY => {
            let message = text(modal::REASON).map(str::to_owned);
            (modal::REASON.to_owned(), Decision::Deny { message })
        }
        modal::EDIT => {
            let given = text(modal::ARGUMENTS).ok_or_else(|| wrong(modal::ARGUMENTS, "arguments are missing"))?;
            let arguments = CanonicalJson::parse(given);
            let arguments = arguments.map_err(|problem| wrong(modal::ARGUMENTS, &problem.to_string()))?;
            (modal::ARGUMENTS.to_owned(), Decision::ApproveEdited { arguments })
        }
        modal::HAPPENED => {
            let result = text(modal::RESULT).ok_or_else(|| wrong(modal::RESULT, "say what came of it"))?;
            (modal::RESULT.to_owned(), Decision::Happened { result: Content::Text(result.to_owned()) })
        }
        modal::ANSWER => {
            let looked = decider.look().await.map_err(|problem| Answer::Say(words(&problem)))?;
            let asked = looked.view.arguments().and_then(|arguments| questions(arguments).ok()).unwrap_or_default();
            let no_room =
                || Answer::Say("These questions cannot be answered in Slack: open them in holdpoint.".to_owned());
            let form = Form::of(&asked).ok_or_else(no_room)?;
            let answers = form.read(values).map_err(Answer::Correct)?;
            (form.first_field(), Decision::Answer { answers })
        }
        _ => return Ok(None),
    }))
}

/// What is wrong with one field.
fn wrong(field: &str, problem: &str) -> Answer {
    let problem = super::text::words(problem, 300).text;
    Answer::Correct(FieldErrors::from([(field.to_owned(), problem)]))
}
