//! `holdpoint run`: an agent in the terminal, in this process and over the same store as the server.
//!
//! The agent's words go to standard output, everything else to standard error. Where a person must look, they are asked
//! right here; where nobody can be asked, the pause is printed as JSON and left open for somebody else.

mod decide;
mod follow;
mod show;

use std::io::{IsTerminal as _, Read as _};

use anyhow::{Context as _, Result, bail};
use holdpoint_core::event::RunEnd;
use holdpoint_core::ids::{ActorId, RunId, SessionId};
use holdpoint_core::message::Content;
use holdpoint_core::run::Run;
use holdpoint_core::text::visible;
use holdpoint_runtime::use_cases::{StartRun, WatchSession};
use holdpoint_runtime::{DriveOptions, Runtime};

use crate::args::{RunArgs, Settings};
use crate::asked::Asked;
use crate::exit::Exit;
use crate::render;
use crate::world::{Which, World};

use decide::{Answered, Mode};
use follow::Stopped;
use show::Show;

/// Runs an agent until it is done, or until nobody is there to answer it.
///
/// # Errors
/// The agent or the run is not known, or the world failed.
pub async fn run(args: &RunArgs, settings: &Settings) -> Result<Exit> {
    let which = if args.demo { Which::Demo } else { Which::Configured };
    let world = World::open(settings, which).await?;
    let mode = Mode::of(args);
    let mut talk = match args.resume {
        Some(run) => Talk::with(&world, run).await?,
        None => Talk::about(&world, args).await?,
    };
    talk.hold(&world, mode).await
}

/// One run on one screen.
struct Talk {
    run: RunId,
    start: Option<StartRun>,
    watch: WatchSession,
    show: Show,
}

impl Talk {
    /// A new run.
    async fn about(world: &World, args: &RunArgs) -> Result<Self> {
        let name = args.agent.as_deref().context("an agent is expected: holdpoint run AGENT MESSAGE")?;
        let agent = world.agents.find(name).with_context(|| {
            let known: Vec<String> = world.agents.list().iter().map(|agent| agent.name.clone()).collect();
            format!("there is no agent {name:?}; there are: {}", known.join(", "))
        })?;
        let message = message(args)?;
        let run = world.runtime.name_run();
        let session = match &args.session {
            Some(session) => SessionId::new(session).context("--session")?,
            None => Runtime::own_session(run),
        };
        let start = StartRun {
            graph: agent.graph.clone(),
            content: Content::Text(message),
            session: Some(session.clone()),
            turns_max: agent.turns_max.or(world.runtime.settings().turns_max),
            by: ActorId::local(),
            options: DriveOptions { commit_first: true, ..DriveOptions::default() },
            run: Some(run),
            only_owner: false,
        };
        let watch = world.runtime.watch_run(&session, run);
        Ok(Self { run, start: Some(start), watch, show: Show::new(Run::new(run)) })
    }

    /// A run that was left earlier.
    async fn with(world: &World, run: RunId) -> Result<Self> {
        let stands = world.runtime.read_run(run).await?;
        let watch = follow::watch_from_now(&world.runtime, &stands).await?;
        Ok(Self { run, start: None, watch, show: Show::new(stands) })
    }

    /// Goes on until the run is over, or nobody is there to answer.
    async fn hold(&mut self, world: &World, mode: Mode) -> Result<Exit> {
        loop {
            self.show.wait("the agent is at work");
            let stopped = match self.start.take() {
                Some(start) => follow::start(world, start, &mut self.watch, &mut self.show).await,
                None => follow::go_on(world, self.run, &mut self.watch, &mut self.show).await,
            };
            self.show.rest();
            let run = match stopped {
                Ok(Stopped::At(run)) => run,
                Ok(Stopped::Interrupted) => {
                    self.say_how_to_go_on();
                    return Ok(Exit::Interrupted);
                }
                Err(error) => {
                    if world.runtime.read_run(self.run).await.is_ok() {
                        self.say_how_to_go_on();
                    }
                    return Err(error);
                }
            };
            if let Some(end) = run.end() {
                return Ok(self.finish(end));
            }
            let pauses: Vec<Asked> = run.open_pauses().iter().map(Asked::of).collect();
            match decide::answer(world, &run, &pauses, mode).await? {
                Answered::Something => {}
                Answered::Nothing => {
                    self.say_how_to_go_on();
                    return Ok(Exit::Paused);
                }
                Answered::Stop => {
                    self.say_how_to_go_on();
                    return Ok(Exit::Interrupted);
                }
            }
        }
    }

    fn finish(&self, end: &RunEnd) -> Exit {
        match end {
            RunEnd::Done(output) => {
                let output = output.to_text();
                // What the agent said last stands there already, as a rule.
                if self.show.last_said() != Some(output.as_str()) && !output.is_empty() {
                    out!("{}", visible(&output));
                }
                Exit::Done
            }
            RunEnd::Failed { code, message } => {
                render::complain(&format!("the run failed ({code}): {message}"));
                Exit::RunFailed
            }
            RunEnd::Cancelled { by, reason, .. } => {
                render::complain(&format!("the run was cancelled by {by}: {reason}"));
                Exit::RunFailed
            }
        }
    }

    fn say_how_to_go_on(&self) {
        render::note(&format!("The run is kept. Go on with:  holdpoint run --resume {}", self.run));
    }
}

fn message(args: &RunArgs) -> Result<String> {
    let message = match args.message.as_deref() {
        Some("-") => {
            let mut text = String::new();
            std::io::stdin()
                .take(1 << 20)
                .read_to_string(&mut text)
                .context("reading the message from standard input")?;
            text
        }
        Some(message) => message.to_owned(),
        None if std::io::stdin().is_terminal() => inquire::Text::new("What do you ask?").prompt()?,
        None => bail!("a message is expected: holdpoint run AGENT MESSAGE, or - to read it from standard input"),
    };
    if message.trim().is_empty() {
        bail!("the message is empty");
    }
    Ok(message)
}
