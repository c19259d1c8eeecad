//! `run`, in a terminal and without one.

use std::process::Command;

use rexpect::process::WaitStatus;
use rexpect::session::{PtySession, spawn_command};
use serde_json::Value;

use crate::world::{Place, await_file, complained, printed};

const PATIENCE_MS: u64 = 60_000;

/// A terminal in which the program runs.
pub(crate) struct Terminal(PtySession);

impl Terminal {
    pub(crate) fn open(command: Command) -> Self {
        Self(spawn_command(command, Some(PATIENCE_MS)).unwrap())
    }

    fn run(place: &Place, args: &[&str]) -> Self {
        let mut command = place.holdpoint(&["run", "--demo"]);
        command.args(args).env("TERM", "xterm-256color");
        Self::open(command)
    }

    /// Waits for text; gives back what was shown before it.
    pub(crate) fn see(&mut self, text: &str) -> String {
        let shown = self.0.exp_string(text).unwrap_or_else(|error| panic!("{text:?} was not shown: {error}"));
        decoded(&shown)
    }

    fn keys(&mut self, keys: &str) {
        self.0.send(keys).unwrap();
        self.0.flush().unwrap();
    }

    /// Chooses what begins with these letters.
    pub(crate) fn choose(&mut self, letters: &str) {
        self.keys(letters);
        self.keys("\r");
    }

    /// Waits for the end; gives back how the program ended and what it still showed.
    pub(crate) fn end(mut self) -> (i32, String) {
        let shown = decoded(&self.0.exp_eof().unwrap());
        match self.0.process().wait().unwrap() {
            WaitStatus::Exited(_, code) => (code, shown),
            other => panic!("it ended with {other:?}: {shown}"),
        }
    }
}

/// The terminal is read byte by byte; characters of several bytes are put together again.
fn decoded(bytes: &str) -> String {
    let bytes: Vec<u8> = bytes.chars().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_call_is_shown_exactly_and_approved_with_a_key() {
    let place = Place::new();
    let mut terminal = Terminal::run(&place, &["refund-desk", "refund it"]);
    terminal.see("I look the order up first.");
    terminal.see("wants to run a tool");
    let shown = terminal.see("May this call run?");
    for part in ["issue_refund", "\"amount\": 120.5", "Money leaves the company", "sha256", "pau_"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    terminal.choose("");
    terminal.see("Done. The tool says: refund booked");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn a_denial_and_its_words_reach_the_model() {
    let place = Place::new();
    let mut terminal = Terminal::run(&place, &["refund-desk", "refund it"]);
    terminal.see("May this call run?");
    terminal.choose("Deny");
    terminal.see("Why not?");
    terminal.choose("ask for a photo");
    terminal.see("I was told: ask for a photo");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn arguments_are_edited_on_a_line_checked_and_shown_before_they_run() {
    let place = Place::new();
    let mut terminal = Terminal::run(&place, &["refund-desk", "refund it"]);
    terminal.see("May this call run?");
    terminal.choose("Edit");
    terminal.see("The arguments:");
    terminal.keys(&"\u{7f}".repeat(100));
    terminal.choose(r#"{"order": "A-1001", "amount": 9000}"#);
    terminal.see("Run it with these arguments?");
    terminal.choose("y");
    terminal.see("were not taken");
    terminal.see("The arguments:");
    terminal.keys(&"\u{7f}".repeat(100));
    terminal.choose(r#"{"order": "A-1001", "amount": 50}"#);
    terminal.see("Run it with these arguments?");
    terminal.choose("y");
    terminal.see("refund booked");
    let (code, shown) = terminal.end();
    assert!(code == 0 && shown.contains(r#""amount":50"#), "{shown}");
}

#[test]
fn arguments_are_edited_in_the_persons_own_editor() {
    let place = Place::new();
    place.write("editor.sh", "#!/bin/sh\nsed -i 's/120.5/7/' \"$1\"\n");
    let mut command = place.holdpoint(&["run", "--demo", "refund-desk", "refund it"]);
    command.env("TERM", "xterm-256color").env("EDITOR", format!("/bin/sh {}", place.join("editor.sh").display()));
    let mut terminal = Terminal::open(command);
    terminal.see("May this call run?");
    terminal.choose("Edit");
    terminal.see("The arguments");
    // The second key waits until the editor is done.
    terminal.choose("e");
    terminal.see("Run it with these arguments?");
    terminal.choose("y");
    terminal.see("refund booked");
    let (code, shown) = terminal.end();
    assert!(code == 0 && shown.contains(r#""amount":7"#), "{shown}");
}

#[test]
fn questions_are_answered_by_choosing_and_by_writing() {
    let place = Place::new();
    let mut terminal = Terminal::run(&place, &["trip-planner", "plan"]);
    terminal.see("Where shall it go?");
    terminal.choose("Somewhere");
    terminal.see("Somewhere else");
    terminal.see("your own words");
    terminal.choose("a lighthouse");
    terminal.see("What do you want to do there?");
    terminal.keys(" ");
    terminal.keys("\r");
    terminal.see("Then I plan with your answers");
    let (code, shown) = terminal.end();
    assert!(code == 0 && shown.contains("a lighthouse") && shown.contains("Walk"), "{shown}");
}

#[test]
fn a_confirmation_is_declined() {
    let place = Place::new();
    let mut terminal = Terminal::run(&place, &["record-keeper", "clean up"]);
    terminal.see("asks for your confirmation");
    terminal.choose("Decline");
    terminal.see("Why not?");
    terminal.choose("keep them");
    terminal.see("You answered");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn ctrl_c_at_a_prompt_leaves_the_pause_and_says_how_to_go_on() {
    let place = Place::new();
    let mut terminal = Terminal::run(&place, &["refund-desk", "refund it"]);
    terminal.see("May this call run?");
    terminal.keys("\u{3}");
    terminal.see("--resume ");
    let (code, shown) = terminal.end();
    let run = shown.split_whitespace().next().unwrap().trim_end_matches("\u{1b}[0m").to_owned();
    assert!(code == 130 && run.starts_with("run_"), "{code} {shown}");
    let mut terminal = Terminal::run(&place, &["--resume", &run]);
    terminal.see("May this call run?");
    terminal.choose("");
    terminal.see("Done. The tool says");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn ctrl_c_while_a_tool_works_waits_for_it_so_that_nothing_is_in_doubt() {
    let place = Place::new();
    place.write(
        "agents/a.yaml",
        "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: { name: a }\nspec:\n  type: chat_model_agent\n  \
         model: { primary: scripted/a.json }\n  tools:\n    - name: act\n      description: acts\n      \
         parameters: { type: object }\n      approval: never\n      \
         command: { argv: [\"/bin/sh\", \"-c\", \"echo > begun; while [ ! -e go ]; do sleep 0.05; done; echo acted\"] }\n    \
         - { ref: builtin/ask_user_question }\n",
    );
    let script = r#"{"replies": [
        {"calls": [{"tool": "act", "arguments": {}}]},
        {"calls": [{"tool": "ask_user_question", "arguments": {"questions": [{"question": "Well?"}]}}]},
        "{result}"]}"#;
    place.write("agents/a.json", script);
    let mut command = place.holdpoint(&["run", "a", "go"]);
    command.env("TERM", "xterm-256color");
    let mut terminal = Terminal::open(command);
    await_file(&place.join("begun"));
    terminal.keys("\u{3}");
    terminal.see("is waited for");
    place.write("go", "");
    terminal.see("--resume ");
    let (code, shown) = terminal.end();
    let run = shown.split_whitespace().next().unwrap().trim_end_matches("\u{1b}[0m").to_owned();
    assert_eq!(code, 130, "{shown}");
    let left = place.run(&["run", "--resume", &run]);
    let pause: Value = serde_json::from_str(printed(&left).lines().last().unwrap()).unwrap();
    assert_eq!((left.status.code(), &pause["kind"]), (Some(3), &Value::from("question")));
}

#[test]
fn what_an_agent_says_after_one_that_works_for_it_is_shown_once() {
    let place = Place::new();
    let agent = |name: &str, tools: &str| {
        let head = "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: { name: ";
        let spec = format!("spec:\n  type: chat_model_agent\n  model: {{ primary: scripted/{name}.json }}\n");
        place.write(&format!("agents/{name}.yaml"), &format!("{head}{name} }}\n{spec}{tools}"));
    };
    agent("outer", "  tools:\n    - ref: agent://inner\n");
    agent("inner", "");
    let calls = r#"{"replies": [{"calls": [{"tool": "inner", "arguments": {"input": "x"}}]}, "outer: {result}"]}"#;
    place.write("agents/outer.json", calls);
    place.write("agents/inner.json", r#"{"replies": ["inner"]}"#);
    let ended = place.run(&["run", "outer", "go"]);
    assert_eq!((ended.status.code(), printed(&ended).as_str()), (Some(0), "outer: inner\n"));
}

#[test]
fn keys_that_were_pressed_before_the_question_answer_nothing() {
    let place = Place::new();
    let mut terminal = Terminal::run(&place, &["refund-desk", "refund it"]);
    terminal.see("I look the order up");
    terminal.keys("\r\r\r");
    terminal.see("May this call run?");
    terminal.choose("Later");
    terminal.see("--resume ");
    assert_eq!(terminal.end().0, 3);
}

#[test]
fn what_a_model_hides_in_arguments_is_shown() {
    let place = Place::new();
    place.write("agents/a.yaml", "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: { name: a }\nspec:\n  type: chat_model_agent\n  model: { primary: scripted/a.json }\n  tools:\n    - { name: act, description: acts, parameters: { type: object }, command: { argv: [cat] } }\n");
    place.write("agents/a.json", "{\"replies\": [{\"text\": \"look \\u001b[2J\", \"calls\": [{\"tool\": \"act\", \"arguments\": {\"to\": \"a\u{202e}b\"}}]}, \"done\"]}");
    let mut command = place.holdpoint(&["run", "a", "go"]);
    command.env("TERM", "xterm-256color");
    let mut terminal = Terminal::open(command);
    let shown = terminal.see("May this call run?");
    assert!(shown.contains("⟦U+001B⟧[2J") && shown.contains("a⟦U+202E⟧b"), "{shown}");
    terminal.keys("\u{3}");
    assert_eq!(terminal.end().0, 130);
}

#[test]
fn without_a_terminal_nobody_guesses_and_the_pause_is_printed() {
    let place = Place::new();
    let left = place.run(&["run", "--demo", "refund-desk", "refund it"]);
    assert_eq!(left.status.code(), Some(3), "{}", complained(&left));
    let shown = printed(&left);
    let pause: Value = serde_json::from_str(shown.lines().last().unwrap()).unwrap();
    assert_eq!((pause["kind"].as_str(), pause["tool"].as_str()), (Some("approval"), Some("issue_refund")));
    let run = pause["run_id"].as_str().unwrap();
    assert!(complained(&left).contains(&format!("holdpoint run --resume {run}")));
    let done = place.run(&["run", "--demo", "--resume", run, "--yes"]);
    assert_eq!(done.status.code(), Some(0), "{}", complained(&done));
    assert!(printed(&done).contains("Done. The tool says"), "{}", printed(&done));
}

#[test]
fn one_of_two_approvals_leaves_the_run_waiting() {
    let place = Place::new();
    place.run(&["init"]);
    let rule = "rules: [{ name: two, match: { tool: issue_refund }, verdict: hold, quorum: 2 }]\n";
    place.write("agents/policies/limits.yaml", rule);
    let left = place.run(&["run", "refund-desk", "refund it", "--yes"]);
    assert_eq!(left.status.code(), Some(3), "{}", printed(&left));
    assert!(complained(&left).contains("1 more must approve"), "{}", complained(&left));
}

#[test]
fn yes_answers_no_questions() {
    let place = Place::new();
    let left = place.run(&["run", "--demo", "trip-planner", "plan", "--yes"]);
    assert_eq!(left.status.code(), Some(3));
    let shown = printed(&left);
    let pause: Value = serde_json::from_str(shown.lines().last().unwrap()).unwrap();
    assert_eq!(pause["kind"], "question");
}

#[test]
fn words_are_streamed_whole_and_a_session_is_remembered() {
    let place = Place::new();
    place.write("agents/echo.yaml", "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: { name: echo }\nspec: { type: chat_model_agent, model: { primary: scripted/echo.json } }\n");
    place.write("agents/echo.json", r#"{"replies": ["you said {said}"]}"#);
    let said = place.run(&["run", "echo", "two words", "--session", "s1"]);
    assert_eq!((said.status.code(), printed(&said).as_str()), (Some(0), "you said two words\n"));
    assert_eq!(printed(&place.run(&["run", "echo", "more", "--session", "s1"])), "you said more\n");
}
