//! A command is a list of stages. They run in order, each with a headline and its time, and the first failure ends it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::cargo::Cargo;

/// One named piece of work.
pub(crate) struct Stage {
    name: &'static str,
    work: Box<dyn FnOnce() -> Result<()>>,
}

impl Stage {
    pub(crate) fn new(name: &'static str, work: impl FnOnce() -> Result<()> + 'static) -> Self {
        Self { name, work: Box::new(work) }
    }

    /// A stage that is one cargo command.
    pub(crate) fn cargo(name: &'static str, command: Cargo) -> Self {
        Self::new(name, move || command.run())
    }
}

/// Runs the stages of the command `title` and prints a closing line. A failure is the closing line of its own.
pub(crate) fn run_in_order(title: &str, stages: Vec<Stage>) -> Result<()> {
    let total = stages.len();
    let began = Instant::now();
    for (index, stage) in stages.into_iter().enumerate() {
        println!("\n[{}/{total}] {}", index + 1, stage.name);
        let stage_began = Instant::now();
        (stage.work)().with_context(|| {
            let name = stage.name;
            format!("{title} FAILED in {name} after {} ({index} of {total} stages passed)", seconds(began.elapsed()))
        })?;
        println!("    {} passed in {}", stage.name, seconds(stage_began.elapsed()));
    }
    println!("\nxtask: {title} passed in {} ({total} of {total} stages passed)", seconds(began.elapsed()));
    Ok(())
}

fn seconds(elapsed: Duration) -> String {
    format!("{:.1} s", elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use anyhow::bail;

    use super::*;

    #[test]
    fn stages_run_in_order_and_stop_at_the_first_failure() {
        let ran = Rc::new(RefCell::new(Vec::new()));
        let stage = |name: &'static str, fails: bool| {
            let ran = Rc::clone(&ran);
            Stage::new(name, move || {
                ran.borrow_mut().push(name);
                if fails {
                    bail!("`cargo {name}` ended with exit status: 1");
                }
                Ok(())
            })
        };
        let stages = vec![stage("format", false), stage("clippy", true), stage("tests", false)];

        let error = run_in_order("test", stages).unwrap_err();

        assert_eq!(*ran.borrow(), ["format", "clippy"]);
        let line = format!("{error:#}");
        assert!(line.starts_with("test FAILED in clippy after "), "{line}");
        assert!(line.ends_with("(1 of 3 stages passed): `cargo clippy` ended with exit status: 1"), "{line}");
    }
}
