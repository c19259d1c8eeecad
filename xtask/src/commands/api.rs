//! `cargo xtask api`: a stranger reads `/openapi.json` and tries everything that it promises, against a real server.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anyhow::{Context, Result, bail, ensure};

use super::unknown_argument;
use crate::cargo::Cargo;
use crate::root;
use crate::stage::{Stage, run_in_order};

/// The version whose answers are known.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// What must hold for every answer: no 5xx, no undocumented status or type, no body that breaks its schema.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,unsupported_method,\
                      allow_header_conformance";

const EXAMPLES_UNLESS_TOLD: u64 = 100;

pub(super) fn run(arguments: &[String]) -> Result<()> {
    let trial = Trial::from_arguments(arguments)?;
    run_in_order(
        "api",
        vec![
            Stage::cargo("server", Cargo::new("build -p holdpoint-cli")),
            Stage::new("schemathesis", install),
            Stage::new("trial", move || trial.run()),
        ],
    )
}

#[derive(Debug, PartialEq, Eq)]
struct Trial {
    examples: u64,
    seed: Option<u64>,
}

impl Trial {
    fn from_arguments(arguments: &[String]) -> Result<Self> {
        let mut trial = Self { examples: EXAMPLES_UNLESS_TOLD, seed: None };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut number = || -> Result<u64> {
                let value = arguments.next().with_context(|| format!("{argument} needs a number"))?;
                value.parse().with_context(|| format!("{argument} needs a number, not `{value}`"))
            };
            match argument.as_str() {
                "--examples" => trial.examples = number()?,
                "--seed" => trial.seed = Some(number()?),
                other => return Err(unknown_argument("api", other)),
            }
        }
        Ok(trial)
    }

    fn run(&self) -> Result<()> {
        let server = Server::start()?;
        let mut command = Command::new(tools().join("bin/st"));
        command.current_dir(server.folder.as_path()).arg("run").arg(server.url("/openapi.json"));
        command.args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing"]);
        command.args(["--max-examples", &self.examples.to_string(), "--request-timeout", "30", "--workers", "2"]);
        if let Some(seed) = self.seed {
            command.args(["--seed", &seed.to_string()]);
        }
        let status = command.status().context("starting schemathesis")?;
        ensure!(server.is_alive(), "the server did not survive");
        ensure!(status.success(), "schemathesis found failures, listed above; its seed replays them");
        Ok(())
    }
}

/// A server with its demo agents and a store of its own, killed when dropped.
struct Server {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Server {
    fn start() -> Result<Self> {
        let folder = target().join("api-trial");
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).context("emptying a folder");
            }
            _ => fs::create_dir_all(&folder).context("making a folder")?,
        }
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let log = fs::File::create(folder.join("server.log"))?;
        let child = Command::new(target().join("debug/holdpoint"))
            .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--store", "sqlite://trial.db"])
            .env("HOLDPOINT_RATE_LIMIT", "0")
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting the server")?;
        let server = Self { child, port, folder };
        let began = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if began.elapsed() > Duration::from_secs(20) {
                bail!("the server does not answer; see {}", server.folder.join("server.log").display());
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn is_alive(&self) -> bool {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Puts schemathesis into a folder of the build's own, if it is not there yet.
fn install() -> Result<()> {
    if tools().join("bin/st").exists() {
        return Ok(());
    }
    let step = |command: &mut Command| -> Result<()> {
        let status = command.status().with_context(|| format!("starting {command:?}"))?;
        ensure!(status.success(), "{command:?} ended with {status}; on Debian: apt-get install python3-venv");
        Ok(())
    };
    step(Command::new("python3").args(["-m", "venv"]).arg(tools()))?;
    step(Command::new(tools().join("bin/pip")).args(["install", "--quiet", SCHEMATHESIS]))
}

fn tools() -> PathBuf {
    target().join("schemathesis")
}

fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root::directory().join("target"), |folder| Path::new(&folder).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_replayed_by_its_seed() {
        let arguments: Vec<String> = ["--seed", "7", "--examples", "5"].map(str::to_owned).into();
        assert_eq!(Trial::from_arguments(&arguments).unwrap(), Trial { examples: 5, seed: Some(7) });
        assert_eq!(Trial::from_arguments(&[]).unwrap(), Trial { examples: EXAMPLES_UNLESS_TOLD, seed: None });
    }

    #[test]
    fn a_wrong_argument_is_refused() {
        let error = Trial::from_arguments(&["--sed".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "`--sed` is not an argument of `cargo xtask api`; see `cargo xtask help`");
        assert!(Trial::from_arguments(&["--seed".to_owned()]).is_err());
    }
}
