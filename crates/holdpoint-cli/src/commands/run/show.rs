//! Shows a run while it moves: the agent's words on standard output as they come, everything else beside it.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::time::Duration;

use console::style;
use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{CallPath, FramePath};
use holdpoint_core::run::Run;
use holdpoint_core::text::{clamp, visible};
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::{Outcome, ToolKind};
use holdpoint_runtime::ports::model::Delta;
use holdpoint_runtime::use_cases::WatchItem;
use indicatif::{ProgressBar, ProgressStyle};

use crate::render::line;

/// How much of a failure is shown.
const FAILURE_BYTES: usize = 300;

/// What stands on the screen.
pub struct Show {
    /// The run as far as it was seen here.
    run: Run,
    spinner: ProgressBar,
    /// Whether the cursor stands at the beginning of a line of standard output.
    is_at_start: bool,
    /// What was shown as it came, and is not known yet to be a whole reply: events come after the words, and a later reply may
    /// have begun.
    heard: String,
    /// What the agent said last, as a whole.
    last_said: Option<String>,
    under_way: BTreeSet<CallPath>,
    /// What is to be noted once the agent has finished its sentence.
    notes: Vec<String>,
}

impl Show {
    /// A screen for a run that stands here; what happened before is not shown again.
    pub fn new(run: Run) -> Self {
        Self {
            run,
            spinner: ProgressBar::hidden(),
            is_at_start: true,
            heard: String::new(),
            last_said: None,
            under_way: BTreeSet::new(),
            notes: Vec::new(),
        }
    }

    /// Whether a tool is at work, so that leaving now would leave open what it did.
    pub fn has_tools_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// What the agent said last, as it was shown.
    pub fn last_said(&self) -> Option<&str> {
        self.last_said.as_deref()
    }

    /// Says that something is going on. Nothing is drawn where nobody looks, and nothing while the agent speaks: what
    /// happened before it began may be told only now.
    pub fn wait(&mut self, what: &str) {
        if !self.heard.is_empty() {
            return;
        }
        self.end_line();
        if self.spinner.is_finished() || self.spinner.is_hidden() {
            self.spinner = ProgressBar::new_spinner();
            let style = ProgressStyle::with_template("{spinner:.cyan} {msg:.dim}");
            self.spinner.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            self.spinner.enable_steady_tick(Duration::from_millis(100));
        }
        self.spinner.set_message(what.to_owned());
    }

    /// Takes down what says that something is going on.
    pub fn rest(&mut self) {
        self.spinner.finish_and_clear();
        self.heard.clear();
        self.end_line();
        self.notes.drain(..).for_each(|note| err!("{note}"));
    }

    /// Shows what happened.
    ///
    /// # Errors
    /// Nobody reads standard output any more.
    pub fn take(&mut self, item: WatchItem) -> io::Result<()> {
        match item {
            WatchItem::Delta { run, frame, delta } if run == self.run.id() => self.hear(&frame, delta),
            WatchItem::Event { run, event, at, .. } if run == self.run.id() => self.see(&event, at),
            _ => Ok(()),
        }
    }

    fn hear(&mut self, frame: &FramePath, delta: Delta) -> io::Result<()> {
        match delta {
            Delta::Text(text) if frame.is_root() => {
                self.heard.push_str(&text);
                self.say(&text)
            }
            _ => Ok(()),
        }
    }

    fn see(&mut self, event: &RunEvent, at: Timestamp) -> io::Result<()> {
        if let RunEvent::CallAnswered(answered) = event {
            // Before it is taken as fact: with its last outcome a turn is over, and its calls are no longer at hand.
            self.under_way.remove(&answered.call);
            self.mark(&answered.call, &answered.outcome);
        }
        self.run.apply(event, at);
        match event {
            RunEvent::RunStarted(_) => self.wait("the model is thinking"),
            // What agents inside say is told by whoever called them.
            RunEvent::ModelReplied(replied) if replied.frame.is_root() => {
                if let Some(text) = &replied.text {
                    match self.heard.strip_prefix(text.as_str()) {
                        Some(later) => self.heard = later.to_owned(),
                        // After words that came to nothing: somebody else was faster.
                        None if self.heard.ends_with(text.as_str()) => self.heard.clear(),
                        None => {
                            self.end_line();
                            self.say(text)?;
                            self.heard.clear();
                        }
                    }
                    self.last_said = Some(text.clone());
                }
                // Unless the agent is in the middle of its next words.
                if self.heard.is_empty() {
                    self.rest();
                    self.wait("the agent is at work");
                }
            }
            RunEvent::CallStarted(started) => {
                let name = self.name(&started.call);
                self.under_way.insert(started.call.clone());
                self.wait(&format!("{name} is running"));
            }
            RunEvent::CallAnswered(_) => self.wait("the model is thinking"),
            RunEvent::PauseExpired(_) => self.note(&style("nobody answered in time").for_stderr().yellow().to_string()),
            RunEvent::RunFinished(_) | RunEvent::PauseOpened(_) => self.rest(),
            _ => {}
        }
        Ok(())
    }

    fn name(&self, call: &CallPath) -> String {
        self.run.call(call).map_or_else(|| call.to_string(), |call| call.record.tool.to_string())
    }

    fn mark(&mut self, call: &CallPath, outcome: &Outcome) {
        let name = self.name(call);
        let is_agent = self.run.call(call).is_some_and(|call| matches!(call.record.kind, ToolKind::Handoff { .. }));
        let (sign, about) = match outcome {
            Outcome::Result(_) if is_agent => (style("→").cyan(), String::new()),
            Outcome::Result(_) | Outcome::Responded(_) => (style("✓").green(), String::new()),
            Outcome::Failure(text) | Outcome::Invalid(text) => {
                (style("✗").red(), format!(": {}", line(clamp(text, FAILURE_BYTES))))
            }
            Outcome::Denied(_) => (style("✗").yellow(), " was denied".to_owned()),
            Outcome::Expired => (style("✗").yellow(), " was not answered in time".to_owned()),
            Outcome::Withdrawn => (style("✗").yellow(), " was withdrawn".to_owned()),
            Outcome::Abandoned => (style("✗").yellow(), ": whether it took effect is not known".to_owned()),
        };
        self.note(&format!("{} {name}{about}", sign.for_stderr()));
    }

    fn note(&mut self, text: &str) {
        if !self.heard.is_empty() {
            return self.notes.push(text.to_owned());
        }
        self.end_line();
        self.spinner.suspend(|| err!("{text}"));
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.spinner.finish_and_clear();
        let shown = visible(text);
        let mut out = io::stdout().lock();
        out.write_all(shown.as_bytes())?;
        out.flush()?;
        if !shown.is_empty() {
            self.is_at_start = shown.ends_with('\n');
        }
        Ok(())
    }

    /// Ends a line that was begun on standard output.
    fn end_line(&mut self) {
        if !self.is_at_start {
            out!();
            self.is_at_start = true;
        }
    }
}

impl Drop for Show {
    fn drop(&mut self) {
        self.rest();
    }
}
