//! `cargo xtask api`: a stranger reads `/openapi.json` and tries everything that it promises, against a real server,
//! without credentials and with the key of each role.

mod server;

use std::process::{self, Command};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};

use super::unknown_argument;
use crate::cargo::Cargo;
use crate::root;
use crate::stage::{Stage, run_in_order};
use crate::system;
use server::{Access, Server};

/// The version whose answers are known.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// What must hold for every answer: no 5xx, no undocumented status or type, no body that breaks its schema.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,unsupported_method,\
                      allow_header_conformance";

/// The names of operations whose streams end only when their reader does. The tests of the server read those.
const ENDLESS: &str = "^watch_";

const EXAMPLES_UNLESS_TOLD: u64 = 100;

/// What makes a run of all trials take about a minute.
const EXAMPLES_IN_SHORT: u64 = 5;

pub(super) fn run(arguments: &[String]) -> Result<()> {
    let trial = Trial::from_arguments(arguments)?;
    let build = Stage::cargo("server", Cargo::new("build -p holdpoint-cli"));
    run_in_order("api", vec![build, Stage::new("trial", move || trial.run())])
}

/// The stage of `cargo xtask test`: few examples, the same ones each time, of the server that was built before.
pub(super) fn in_short() -> Result<()> {
    Trial { examples: EXAMPLES_IN_SHORT, seed: 1 }.run()
}

#[derive(Debug, PartialEq, Eq)]
struct Trial {
    examples: u64,
    seed: u64,
}

impl Trial {
    fn from_arguments(arguments: &[String]) -> Result<Self> {
        let mut trial = Self { examples: EXAMPLES_UNLESS_TOLD, seed: any_seed() };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut number = || -> Result<u64> {
                let value = arguments.next().with_context(|| format!("{argument} needs a number"))?;
                value.parse().with_context(|| format!("{argument} needs a number, not `{value}`"))
            };
            match argument.as_str() {
                "--examples" => trial.examples = number()?,
                "--seed" => trial.seed = number()?,
                other => return Err(unknown_argument("api", other)),
            }
        }
        Ok(trial)
    }

    fn run(&self) -> Result<()> {
        install()?;
        println!("    replay with: cargo xtask api --examples {} --seed {}", self.examples, self.seed);
        let solo = Server::start(Access::Solo)?;
        self.call(&solo, None).context("without credentials")?;
        drop(solo);
        // In this order: who decides and who reads finds what the agent began.
        let guarded = Server::start(Access::Keys)?;
        for role in ["agent", "approver", "auditor", "admin"] {
            self.call(&guarded, Some(role)).with_context(|| format!("with a key for the role {role}"))?;
        }
        Ok(())
    }

    fn call(&self, server: &Server, role: Option<&str>) -> Result<()> {
        println!("\n    {}", role.map_or("without credentials".to_owned(), |role| format!("as {role}")));
        let mut command = Command::new(tools().join("bin/st"));
        command.current_dir(server.folder()).arg("run").arg(server.url("/openapi.json"));
        command.args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing,stateful", "--workers", "1"]);
        command.args(["--max-examples", &self.examples.to_string(), "--seed", &self.seed.to_string()]);
        // A request may wait for a minute. How long it takes to make one up says nothing about the server.
        command.args(["--request-timeout", "70", "--suppress-health-check", "all", "--generation-database", "none"]);
        command.args(["--exclude-operation-id-regex", ENDLESS]);
        command.env("SCHEMATHESIS_HOOKS", "hooks").env("PYTHONPATH", root::directory().join("tests/api"));
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("HOLDPOINT_API_SEED", self.seed.to_string());
        if let Some(role) = role {
            command.arg("--header").arg(format!("Authorization: Bearer {}", server::key(role)));
        }
        let status = command.status().context("starting schemathesis")?;
        ensure!(server.is_alive(), "the server did not survive");
        ensure!(status.success(), "schemathesis found failures, listed above; seed {} replays them", self.seed);
        Ok(())
    }
}

/// A seed that was not there before. It is printed, so that a run can be repeated.
fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_secs() ^ u64::from(process::id())) & 0xffff_ffff
}

/// Puts schemathesis into a folder of the build's own, if it is not there yet.
fn install() -> Result<()> {
    let st = tools().join("bin/st");
    let is_there = Command::new(&st).arg("--version").output().is_ok_and(|output| output.status.success());
    if is_there {
        return Ok(());
    }
    system::PYTHON.meet()?;
    system::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(tools()))?;
    system::run(Command::new(tools().join("bin/pip")).args(["install", "--quiet", SCHEMATHESIS]))
}

/// One folder for each version, so that a new one is installed.
fn tools() -> std::path::PathBuf {
    system::target().join(SCHEMATHESIS.replace("==", "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_replayed_by_its_seed() {
        let arguments: Vec<String> = ["--seed", "7", "--examples", "5"].map(str::to_owned).into();
        assert_eq!(Trial::from_arguments(&arguments).unwrap(), Trial { examples: 5, seed: 7 });
        assert_eq!(Trial::from_arguments(&[]).unwrap().examples, EXAMPLES_UNLESS_TOLD);
    }

    #[test]
    fn a_wrong_argument_is_refused() {
        let error = Trial::from_arguments(&["--sed".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "`--sed` is not an argument of `cargo xtask api`; see `cargo xtask help`");
        assert!(Trial::from_arguments(&["--seed".to_owned()]).is_err());
    }
}
