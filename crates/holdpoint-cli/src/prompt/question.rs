//! What is the answer?

use std::collections::BTreeMap;
use std::fmt;

use holdpoint_core::decision::{Answers, Decision};
use holdpoint_core::pause::{Question, QuestionOption};
use holdpoint_core::text::visible;
use inquire::{InquireError, MultiSelect};

use crate::asked::Asked;
use crate::prompt::{Said, Step, approval, back, choose, write};

#[derive(Clone, Copy)]
enum Choice {
    Answer,
    Respond,
    Deny,
    Later,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer => "Answer",
            Self::Respond => "Respond: say something else instead",
            Self::Deny => "Deny: do not answer, and say why",
            Self::Later => "Later: leave it open",
        })
    }
}

/// Asks the questions one after the other; Esc offers the other ways out.
pub(super) fn ask(asked: &Asked) -> Result<Said, InquireError> {
    loop {
        if let Some(answers) = answers(&asked.questions())? {
            return Ok(Said::Decide(Decision::Answer { answers }));
        }
        let choices = vec![Choice::Answer, Choice::Respond, Choice::Deny, Choice::Later];
        let said = match choose("What then?", choices)? {
            Some(Choice::Answer) => None,
            Some(Choice::Respond) => approval::respond("What is the model told instead?")?.map(Said::Decide),
            Some(Choice::Deny) => approval::deny("Why not?")?.map(Said::Decide),
            Some(Choice::Later) | None => Some(Said::Later),
        };
        if let Some(said) = said {
            return Ok(said);
        }
    }
}

fn answers(questions: &[Question]) -> Step<Answers> {
    let mut answers = BTreeMap::new();
    for question in questions {
        let Some(given) = answer(question)? else { return Ok(None) };
        answers.insert(question.question.clone(), given);
    }
    Ok((!answers.is_empty()).then_some(answers))
}

fn answer(question: &Question) -> Step<Vec<String>> {
    let message = visible(&question.question);
    if question.options.is_empty() {
        return Ok(write(&message, "your own words")?.map(|said| vec![said]));
    }
    let offered: Vec<Offered> = question.options.iter().map(Offered).collect();
    let chosen = if question.multi_select {
        let hint = "space to mark, Enter to take what is marked";
        back(MultiSelect::new(&message, offered).with_help_message(hint).prompt())?
    } else {
        choose(&message, offered)?.map(|one| vec![one])
    };
    let Some(chosen) = chosen.filter(|chosen| !chosen.is_empty()) else { return Ok(None) };
    let mut given = Vec::with_capacity(chosen.len());
    for Offered(option) in chosen {
        let Some(text) = words(option)? else { return Ok(None) };
        given.push(text);
    }
    Ok(Some(given))
}

/// An option is its label, or what is written for it.
fn words(option: &QuestionOption) -> Step<String> {
    match option.input {
        true => write(&visible(&option.label), "your own words"),
        false => Ok(Some(option.label.clone())),
    }
}

struct Offered<'a>(&'a QuestionOption);

impl fmt::Display for Offered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |text: &str| visible(text).replace(['\n', '\t'], " ");
        f.write_str(&line(&self.0.label))?;
        match &self.0.description {
            Some(about) => write!(f, ": {}", line(about)),
            None => Ok(()),
        }
    }
}
