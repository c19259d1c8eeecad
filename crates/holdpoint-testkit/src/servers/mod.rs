//! Real database servers for tests: started when the first test asks, shared by all test processes, each on a free port of
//! loopback with data of its own, and stopped when nobody has used them for a while. Nothing is installed: what is missing
//! is said. A server that is there already can be named in the environment instead.
//!
//! Tests run in processes of their own. The first one starts the server with a watchman beside it; every one holds a
//! lock on a file for as long as it lives; the watchman stops the server when it can have that lock itself.

mod own;
mod postgres;
mod proxy;
mod redis;

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub use own::OwnServer;
pub use postgres::postgres;
pub use proxy::{Proxy, When};
pub use redis::redis;

/// How long a server may take to start.
const START_MAX: Duration = Duration::from_secs(60);

/// A server that runs at least as long as this lives.
pub struct Server {
    /// Its address, as its clients take it.
    pub address: String,
    // Locked for as long as it is open.
    _user: Option<File>,
}

/// A kind of server.
struct Kind {
    name: &'static str,
    /// Names one that is there already.
    variable: &'static str,
    /// Makes its data in a folder, and says how it is started there.
    prepare: fn(&Place) -> Result<Start, String>,
}

/// Where a server is to run.
struct Place {
    data: PathBuf,
    port: u16,
    password: String,
}

/// How a server is started.
struct Start {
    command: Vec<String>,
    /// Succeeds once it answers.
    is_ready: Vec<String>,
    address: String,
}

impl Kind {
    /// The server that all tests share.
    fn shared(&self) -> Result<Server, String> {
        if let Ok(address) = std::env::var(self.variable) {
            return Ok(Server { address, _user: None });
        }
        self.find_or_start().map_err(|why| {
            format!("{} for tests: {why}. One that is there already can be named by {}", self.name, self.variable)
        })
    }

    fn find_or_start(&self) -> Result<Server, String> {
        let user = fs::metadata("/proc/self").map_or(0, |process| process.uid());
        let folder = std::env::temp_dir().join(format!("holdpoint-tests-{}-{user}", self.name));
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let owner = fs::metadata(&folder).map_err(|error| error.to_string())?.uid();
        if owner != user {
            return Err(format!("{} is somebody else's", folder.display()));
        }
        // One process at a time; the watchman takes this lock too before it stops a server.
        let turn = open(&folder.join("turn"))?;
        turn.lock().map_err(|error| error.to_string())?;
        let users = open(&folder.join("users"))?;
        users.lock_shared().map_err(|error| error.to_string())?;
        let address = match running(&folder) {
            Some(address) => address,
            None => self.start(&folder)?,
        };
        Ok(Server { address, _user: Some(users) })
    }

    fn start(&self, folder: &Path) -> Result<String, String> {
        let data = folder.join("data");
        if data.exists() {
            fs::remove_dir_all(&data).map_err(|error| error.to_string())?;
        }
        fs::create_dir(&data).map_err(|error| error.to_string())?;
        let place = Place { data, port: free_port()?, password: password() };
        let start = (self.prepare)(&place)?;
        let log = open(&folder.join("log"))?;
        let mut watchman = Command::new("sh");
        watchman.args(["-c", WATCHMAN, "watchman"]).args(&start.command).current_dir(folder);
        // Apart from the test that starts it: in a group of its own, and without the test's output.
        watchman.stdin(Stdio::null()).stdout(log.try_clone().map_err(|error| error.to_string())?).stderr(log);
        let mut watchman = watchman.process_group(0).spawn().map_err(|error| format!("sh: {error}"))?;
        let begin = Instant::now();
        while run(&start.is_ready).is_err() {
            let is_gone = watchman.try_wait().is_ok_and(|ended| ended.is_some());
            if is_gone || begin.elapsed() > START_MAX {
                let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
                return Err(format!("it did not start: {}", log.trim()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let text = format!("{}\n{}", place.port, start.address);
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(folder.join("address"));
        let file = file.as_mut().map_err(|error| error.to_string())?;
        std::io::Write::write_all(file, text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(start.address)
    }
}

/// Starts the server, and stops it when it was nobody's for ten seconds.
const WATCHMAN: &str = r#"
"$@" &
server=$!
idle=0
while kill -0 $server 2>/dev/null; do
    sleep 1
    if flock -n users true; then idle=$((idle + 1)); else idle=0; fi
    if [ $idle -ge 10 ]; then
        exec 9>>turn
        flock 9
        if flock -n users true; then
            rm -f address
            kill -INT $server
            wait $server
            rm -rf data
            exit
        fi
        exec 9>&-
        idle=0
    fi
done
"#;

/// The address of the server that runs already.
fn running(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join("address")).ok()?;
    let (port, address) = text.split_once('\n')?;
    TcpStream::connect((Ipv4Addr::LOCALHOST, port.parse().ok()?)).ok()?;
    Some(address.to_owned())
}

fn open(path: &Path) -> Result<File, String> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    options.open(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    Ok(listener.local_addr().map_err(|error| error.to_string())?.port())
}

/// A password that nobody guesses.
fn password() -> String {
    format!("{:016x}", RandomState::new().hash_one("password"))
}

/// Runs a command to its end; what it says when it fails is the error.
fn run(words: &[String]) -> Result<(), String> {
    let [program, arguments @ ..] = words else { return Ok(()) };
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{program}: {} {}", output.status, said.trim())) }
}

/// The program of this name, in the search path or in one of the other folders.
fn program(name: &str, elsewhere: &[PathBuf]) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain(elsewhere.iter().cloned());
    folders.find_map(|folder| Some(folder.join(name)).filter(|file| file.is_file())?.to_str().map(str::to_owned))
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}
