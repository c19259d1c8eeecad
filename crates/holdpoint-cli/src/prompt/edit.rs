//! Editing arguments: in the person's editor where one is set (`$VISUAL`, `$EDITOR`), otherwise on one line.

use std::ffi::OsString;

use holdpoint_core::json::CanonicalJson;
use inquire::{Confirm, Editor, Text};

use crate::prompt::{Step, back};
use crate::render;

/// Arguments that a person wrote, and why they were not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditProblem {
    /// What was written.
    pub arguments: CanonicalJson,
    /// What is wrong with it.
    pub problem: String,
}

/// Arguments as a person wants them, or `None` for one step back.
pub(super) fn arguments(held: &CanonicalJson, problem: Option<&EditProblem>) -> Step<CanonicalJson> {
    let mut text = render::raw_indented(problem.map_or(held, |problem| &problem.arguments));
    if let Some(problem) = problem {
        render::complain(&format!("these arguments were not taken: {}", problem.problem));
    }
    loop {
        let Some(written) = write(&text)? else { return Ok(None) };
        match CanonicalJson::parse(&written) {
            Ok(arguments) if arguments.is_object() => match confirm(held, &arguments)? {
                Some(true) => return Ok(Some(arguments)),
                Some(false) => {}
                None => return Ok(None),
            },
            Ok(_) => render::complain("the arguments are a JSON object: { … }"),
            Err(problem) => render::complain(&problem.to_string()),
        }
        text = written;
    }
}

fn write(text: &str) -> Step<String> {
    match editor() {
        Some(command) => {
            let command = command.to_string_lossy().into_owned();
            let mut words = command.split_whitespace().map(OsString::from);
            let (program, given) = (words.next().unwrap_or_default(), words.collect::<Vec<_>>());
            let given: Vec<_> = given.iter().map(OsString::as_os_str).collect();
            let prompt = Editor::new("The arguments")
                .with_editor_command(&program)
                .with_args(&given)
                .with_file_extension(".json")
                .with_predefined_text(text)
                .with_help_message("(e) opens your editor, Enter takes what you saved, Esc goes back")
                .with_formatter(&|_| "edited".to_owned());
            back(prompt.prompt())
        }
        None => {
            let line = text.lines().map(str::trim_start).collect::<String>();
            let hint = "JSON on one line; set $EDITOR for an editor of your own";
            back(Text::new("The arguments:").with_initial_value(&line).with_help_message(hint).prompt())
        }
    }
}

fn editor() -> Option<OsString> {
    let named = |name| std::env::var_os(name).filter(|command| !command.is_empty());
    named("VISUAL").or_else(|| named("EDITOR"))
}

/// What was written is shown as it would run, hidden characters and all.
fn confirm(held: &CanonicalJson, edited: &CanonicalJson) -> Step<bool> {
    if held == edited {
        render::complain("nothing was changed: choose Approve to run it as it is, or go on editing");
        return Ok(Some(false));
    }
    render::arguments(edited, &edited.digest());
    back(Confirm::new("Run it with these arguments?").with_default(false).prompt())
}
