//! A real server for a trial, with its demo agents and a store of its own. It is killed when it is dropped.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result};

use crate::{root, system};

/// Who may call it.
#[derive(Clone, Copy)]
pub(super) enum Access {
    /// Everybody on this machine.
    Solo,
    /// Who has one of the keys of `tests/api/holdpoint.yaml`.
    Keys,
}

pub(super) struct Server {
    child: Child,
    address: String,
    folder: PathBuf,
    /// Kept open: a server whose output nobody takes could not write any.
    _output: BufReader<ChildStdout>,
}

impl Server {
    pub(super) fn start(access: Access) -> Result<Self> {
        let folder = empty_folder(access)?;
        let mut command = Command::new(system::holdpoint());
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", "sqlite://trial.db"]);
        if let Access::Keys = access {
            command.arg("--config").arg(root::directory().join("tests/api/holdpoint.yaml"));
        }
        // One caller sends more here than any caller should.
        command.args(["--requests-per-second", "100000", "--requests-burst", "100000"]);
        let log = fs::File::create(folder.join("server.log")).context("making a log")?;
        command.current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().context("starting the server")?;
        let mut output = BufReader::new(child.stdout.take().context("the server's output")?);
        let mut greeting = String::new();
        output.read_line(&mut greeting).context("reading the server's greeting")?;
        let address = greeting.trim().split_once("http://").map(|(_, address)| address.to_owned());
        let mut server = Self { child, address: address.clone().unwrap_or_default(), folder, _output: output };
        if address.is_none() {
            server.child.wait().ok();
        }
        address.with_context(|| {
            format!("the server does not start; see {}", server.folder.join("server.log").display())
        })?;
        Ok(server)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn is_alive(&self) -> bool {
        TcpStream::connect(&self.address).is_ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The key of a role, whose digest is in `tests/api/holdpoint.yaml`.
pub(super) fn key(role: &str) -> String {
    format!("hpk_tests_only_{role}")
}

fn empty_folder(access: Access) -> Result<PathBuf> {
    let folder = system::target().join("api-trial").join(match access {
        Access::Solo => "solo",
        Access::Keys => "keys",
    });
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).context("emptying a folder"),
        _ => fs::create_dir_all(&folder).context("making a folder")?,
    }
    Ok(folder)
}
