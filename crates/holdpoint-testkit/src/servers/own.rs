//! A server of one's own, which can be killed and started again over what it had written.
//!
//! A watchman stands beside it and takes it away, with its data, when the process that wanted it is gone.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::{Kind, Place, START_MAX, Start, free_port, password, postgres, redis, run};

/// A server that nobody else uses.
pub struct OwnServer {
    start: Start,
    /// The signal that it dies by.
    signal: &'static str,
    folder: PathBuf,
    port: u16,
    watchman: Option<Child>,
}

impl OwnServer {
    /// A PostgreSQL server of one's own.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub fn postgres() -> Result<Self, String> {
        // At once and without tidying up: what was written is made whole again at the next start. Its helpers go with it,
        // which those of one that is killed may do only after the next start.
        Self::new(&postgres::KIND, "QUIT")
    }

    /// A Redis server of one's own.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub fn redis() -> Result<Self, String> {
        Self::new(&redis::KIND, "KILL")
    }

    fn new(kind: &Kind, signal: &'static str) -> Result<Self, String> {
        let port = free_port()?;
        let folder = std::env::temp_dir().join(format!("holdpoint-own-{}-{}-{port}", kind.name, std::process::id()));
        let data = folder.join("data");
        fs::create_dir_all(&data).map_err(|error| error.to_string())?;
        let start = (kind.prepare)(&Place { data, port, password: password() });
        let start = start.inspect_err(|_| drop(fs::remove_dir_all(&folder)))?;
        let mut server = Self { start, signal, folder, port, watchman: None };
        server.start()?;
        Ok(server)
    }

    /// Its address, as its clients take it.
    pub fn address(&self) -> &str {
        &self.start.address
    }

    /// Where it listens.
    pub fn socket(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Its address by way of another socket.
    pub fn by_way_of(&self, socket: SocketAddr) -> String {
        self.start.address.replace(&self.socket().to_string(), &socket.to_string())
    }

    /// Lets it die, whatever it is doing.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn crash(&mut self) -> Result<(), String> {
        let Some(mut watchman) = self.watchman.take() else { return Ok(()) };
        if let Some(mut input) = watchman.stdin.take() {
            // One that is gone already has nothing to be told.
            let _ = input.write_all(b"crash\n");
        }
        watchman.wait().map(drop).map_err(|error| error.to_string())
    }

    /// Starts it over what it had written, and waits until it answers.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(&mut self) -> Result<(), String> {
        let log = self.folder.join("log");
        let mut watchman = Command::new("sh");
        watchman.args(["-c", WATCHMAN, "watchman", self.signal]).arg(&self.folder).args(&self.start.command);
        watchman.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // In a group of its own: what ends the process that wanted the server must not end the watchman with it.
        let mut watchman = watchman.process_group(0).spawn().map_err(|error| format!("sh: {error}"))?;
        if let Some(output) = watchman.stdout.take() {
            // The watchman is at its post before anything else happens.
            BufReader::new(output).read_line(&mut String::new()).map_err(|error| error.to_string())?;
        }
        let watchman = self.watchman.insert(watchman);
        let begin = Instant::now();
        while run(&self.start.is_ready).is_err() {
            let is_gone = watchman.try_wait().is_ok_and(|ended| ended.is_some());
            if is_gone || begin.elapsed() > START_MAX {
                let log = fs::read_to_string(log).unwrap_or_default();
                let last: Vec<&str> = log.lines().rev().take(9).collect();
                return Err(format!("it did not start: {}", last.into_iter().rev().collect::<Vec<_>>().join("; ")));
            }
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
        Ok(())
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        if let Some(mut watchman) = self.watchman.take() {
            drop(watchman.stdin.take());
            let _ = watchman.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Starts the server, and ends it when it is told to. When nobody is left who could, its data goes too.
const WATCHMAN: &str = r#"
signal=$1 folder=$2
shift 2
"$@" </dev/null >>"$folder/log" 2>&1 &
server=$!
echo "$server"
if read -r word; then
    kill -s "$signal" "$server"
    wait "$server"
else
    kill -s "$signal" "$server"
    wait "$server"
    rm -rf "$folder"
fi
"#;
