//! The command line. Settings of the server come from one table, so that every flag has an environment variable and a
//! key in the server's file; what is here is only what belongs to single commands.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use holdpoint_config::{SETTINGS, ServerFlags, SettingKind};
use holdpoint_core::ids::{PauseId, RunId};

/// Agents that stop where a person must look.
///
/// Without a command it serves: agents of ./agents, or demo agents where there are none, on http://127.0.0.1:8888.
#[derive(Debug, Parser)]
#[command(name = "holdpoint", version, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Task>,
    /// The server's settings.
    #[command(flatten)]
    pub settings: Settings,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done · 1 failed, or something is wrong · 2 wrong usage · 3 a run waits for a person · 4 a run ended \
without an output · 130 Ctrl-C

Every setting can also be an environment variable or a key of holdpoint.yaml: see `holdpoint serve --help`.";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Task {
    /// Serve agents over HTTP (what happens without a command)
    Serve,
    /// Serve the demo agents, whatever agents there are
    Demo,
    /// Write a folder to start from; never overwrites a file
    Init(InitArgs),
    /// Check agent, policy and server files, and show everything that is wrong
    Check(CheckArgs),
    /// Check store, models, clock and limits of this machine
    Doctor(DoctorArgs),
    /// Say whether a running server can do its work: 0 if it can
    Ready(ReadyArgs),
    /// Run an agent here in the terminal, and answer it here
    Run(RunArgs),
    /// What waits for a person on a running server; answer it here
    Inbox(InboxArgs),
    /// Approve a call on a running server
    Approve(ApproveArgs),
    /// Deny a call on a running server
    Deny(DenyArgs),
    /// Answer a question on a running server
    Answer(AnswerArgs),
    /// List the sessions of a running server, or remove old ones from the store
    Sessions(SessionsArgs),
    /// Look at the record of decisions of a running server
    Audit(AuditArgs),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// `holdpoint init`
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Where to write; made if it is not there
    #[arg(default_value = ".")]
    pub folder: PathBuf,
}

/// `holdpoint check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The agents folder, or a folder with `agents` in it; as configured otherwise
    pub folder: Option<PathBuf>,
    /// How problems are shown
    #[arg(long, value_enum, default_value_t)]
    pub format: CheckFormat,
}

/// How problems are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// With the lines they are about
    #[default]
    Full,
    /// One line each: file:line:column: what
    Short,
    /// As JSON, one object each line
    Json,
}

/// `holdpoint doctor`
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Ask no model and no other server: nothing leaves this machine
    #[arg(long)]
    pub offline: bool,
}

/// `holdpoint run`
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The agent
    #[arg(required_unless_present = "resume")]
    pub agent: Option<String>,
    /// What to ask of it; `-` reads it from standard input
    pub message: Option<String>,
    /// Go on with a run that was left
    #[arg(long, value_name = "RUN", conflicts_with_all = ["agent", "message", "session"])]
    pub resume: Option<RunId>,
    /// The conversation to go on with; a new one otherwise
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Approve every call and confirmation without asking; questions still wait
    #[arg(long)]
    pub yes: bool,
    /// Serve the demo agents, whatever agents there are
    #[arg(long)]
    pub demo: bool,
}

/// Where a running server is, and how to show who one is. Global, so that they may also stand behind a command's own
/// commands.
#[derive(Debug, Clone, Args)]
pub struct ServerArgs {
    /// The running server
    #[arg(long, global = true, env = "HOLDPOINT_URL", default_value = "http://127.0.0.1:8888", value_name = "URL")]
    pub url: String,
    /// Your API key or token
    #[arg(long, global = true, env = "HOLDPOINT_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub api_key: Option<String>,
}

/// `holdpoint ready`
#[derive(Debug, Args)]
pub struct ReadyArgs {
    /// The server
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `holdpoint inbox`
#[derive(Debug, Args)]
pub struct InboxArgs {
    /// Only of this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Print what waits as JSON, one object each line, and ask nothing
    #[arg(long)]
    pub json: bool,
    /// The server
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `holdpoint approve`
#[derive(Debug, Args)]
pub struct ApproveArgs {
    /// The pause
    pub pause: PauseId,
    /// Run the call with these arguments instead, as JSON
    #[arg(long, value_name = "JSON")]
    pub args: Option<String>,
    /// The SHA-256 of the arguments that you saw: others are not approved
    #[arg(long, value_name = "SHA256")]
    pub sha256: Option<String>,
    /// The server
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `holdpoint deny`
#[derive(Debug, Args)]
pub struct DenyArgs {
    /// The pause
    pub pause: PauseId,
    /// What the model is told
    #[arg(long, short)]
    pub message: Option<String>,
    /// The server
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `holdpoint answer`
#[derive(Debug, Args)]
pub struct AnswerArgs {
    /// The pause
    pub pause: PauseId,
    /// The answers, in the order of the questions; several choices with commas between them
    #[arg(required = true)]
    pub answers: Vec<String>,
    /// The server
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `holdpoint sessions`
#[derive(Debug, Args)]
pub struct SessionsArgs {
    /// What to do; they are listed otherwise
    #[command(subcommand)]
    pub task: Option<SessionsTask>,
    /// How many, newest first
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub limit: u32,
    /// Print them as JSON, one object each line
    #[arg(long)]
    pub json: bool,
    /// The server
    #[command(flatten)]
    pub server: ServerArgs,
}

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub enum SessionsTask {
    /// Remove old sessions from the store that is configured, whole: those without an unfinished run. The record of
    /// decisions stays
    Prune(PruneArgs),
}

/// `holdpoint sessions prune`
#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Those in which nothing has happened for so long: a number with d (days) or h (hours)
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub older_than: Duration,
    /// Only say how many there are
    #[arg(long)]
    pub dry_run: bool,
}

/// How long ago: `90d`, `36h`.
fn age(text: &str) -> Result<Duration, String> {
    let wrong = || "write a number with d (days) or h (hours), such as 90d".to_owned();
    let (number, hours) = match (text.strip_suffix('d'), text.strip_suffix('h')) {
        (Some(days), _) => (days, 24),
        (None, Some(hours)) => (hours, 1),
        (None, None) => return Err(wrong()),
    };
    let number: u32 = number.parse().map_err(|_| wrong())?;
    match number {
        0 => Err("everything is older than that: write at least 1h".to_owned()),
        number => Ok(Duration::from_secs(u64::from(number) * hours * 3600)),
    }
}

/// `holdpoint audit`
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// What to do
    #[command(subcommand)]
    pub task: AuditTask,
    /// The server
    #[command(flatten)]
    pub server: ServerArgs,
}

/// What to do with the record.
#[derive(Debug, Subcommand)]
pub enum AuditTask {
    /// Check that no entry was changed, added or left out
    Verify,
}

/// The server's settings as flags; those that were given.
#[derive(Debug, Clone, Default)]
pub struct Settings(pub ServerFlags);

const HEADING: &str = "Settings";

impl Args for Settings {
    fn augment_args(command: Command) -> Command {
        SETTINGS.iter().fold(command, |command, setting| {
            let variable = match setting.other_variable {
                Some(other) => format!("{}, {other}", setting.variable),
                None => setting.variable.to_owned(),
            };
            let default =
                if setting.default.is_empty() { String::new() } else { format!(", default {}", setting.default) };
            let key = if setting.key.is_empty() { String::new() } else { format!(", key {}", setting.key) };
            let arg = Arg::new(setting.flag)
                .long(setting.flag)
                .global(true)
                .value_name(setting.kind.placeholder())
                .help_heading(HEADING)
                // The last one counts, and environment and file are read later: by the same table.
                .action(ArgAction::Set)
                .help(setting.help)
                .long_help(format!("{} [{variable}{key}{default}]", setting.help));
            let arg = match setting.kind {
                SettingKind::Boolean => arg.num_args(0..=1).require_equals(true).default_missing_value("true"),
                _ => arg,
            };
            let is_common = matches!(setting.flag, "config" | "listen" | "store" | "agents" | "strict" | "log");
            command.arg(arg.hide_short_help(!is_common))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut settings = Self::default();
        settings.update_from_arg_matches(matches)?;
        Ok(settings)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in SETTINGS {
            if let Some(value) = matches.get_one::<String>(setting.flag) {
                let unknown = |error: holdpoint_config::UnknownFlag| {
                    clap::Error::raw(clap::error::ErrorKind::UnknownArgument, error.to_string())
                };
                self.0.set(setting.flag, value).map_err(unknown)?;
            }
        }
        Ok(())
    }
}
