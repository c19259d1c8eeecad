//! What people see. Whatever a model, a tool or a stranger wrote is shown with nothing in it that hides or steers the
//! terminal.

// Before the modules, which print with them.
/// A line on standard output, as `println!`, that does not mind when nobody reads it.
macro_rules! out {
    () => { $crate::render::print("\n") };
    ($($text:tt)+) => { $crate::render::line_out(format_args!($($text)+)) };
}

/// A line on standard error, as `eprintln!`, that does not mind when nobody reads it.
macro_rules! err {
    () => { $crate::render::print_err("\n") };
    ($($text:tt)+) => { $crate::render::print_err(&format!("{}\n", format_args!($($text)+))) };
}

mod json;
mod pause;

use std::io::Write as _;

use console::style;
use holdpoint_core::text::visible;

use crate::exit::Exit;

pub use json::{indented, raw_indented};
pub use pause::{arguments, pause};

/// A line on standard output. Where nobody reads it any more, as after `| head`, the program ends quietly.
pub fn line_out(text: std::fmt::Arguments<'_>) {
    print(&format!("{text}\n"));
}

/// Text on standard output, as it is.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(Exit::Done as i32);
    }
}

/// Text on standard output, as it is. For what goes on when nobody reads it.
pub fn announce(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Text on standard error, as it is. What nobody reads changes nothing: the program ends as it would have.
pub fn print_err(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// A line of our own on the error side.
pub fn note(text: &str) {
    err!("{}", style(text).for_stderr().dim());
}

/// Something that is wrong with what a person gave.
pub fn complain(text: &str) {
    err!("{} {}", style("✗").for_stderr().red(), visible(text));
}

/// One line of foreign text: line breaks and tabs become signs.
pub fn line(text: &str) -> String {
    visible(text).replace('\n', "⏎").replace('\t', "⇥")
}

/// An error with its causes, on one line each.
pub fn chain(error: &anyhow::Error) -> String {
    let mut causes = error.chain();
    let first = causes.next().map(|cause| visible(&cause.to_string())).unwrap_or_default();
    causes.fold(first, |told, cause| {
        let cause = visible(&cause.to_string());
        // Some errors repeat their cause in their own words.
        if told.contains(&cause) { told } else { format!("{told}\n  because {cause}") }
    })
}
