//! Folders, processes and requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder of one's own.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn join(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The program, here, without what the machine's environment would tell it.
    pub(crate) fn holdpoint(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdpoint"));
        command.current_dir(self.path()).args(args).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.holdpoint(args).stdin(Stdio::null()).output().unwrap()
    }

    /// Serves on a free port.
    pub(crate) fn serve(&self, more: &[&str]) -> Server {
        self.serve_with(more, &[])
    }

    /// Serves on a free port, with these variables. What the server logs is kept: see [`Place::log`].
    pub(crate) fn serve_with(&self, more: &[&str], variables: &[(&str, &str)]) -> Server {
        let args: Vec<&str> = ["serve", "--listen", "127.0.0.1:0"].iter().chain(more).copied().collect();
        let log = std::fs::File::options().create(true).append(true).open(self.join(LOG)).unwrap();
        let mut command = self.holdpoint(&args);
        command.envs(variables.iter().copied());
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        out.read_line(&mut first).unwrap();
        let Some((_, address)) = first.trim().split_once("http://") else {
            panic!("the server did not start: {first}{}", self.log())
        };
        Server { address: address.to_owned(), child, out }
    }
}

impl Place {
    /// What servers here have logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.join(LOG)).unwrap()
    }

    /// Waits until a server here has logged this.
    pub(crate) fn await_log(&self, text: &str) {
        let begin = Instant::now();
        while !self.log().contains(text) {
            assert!(begin.elapsed() < PATIENCE, "{text} is never in {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Where servers log to.
const LOG: &str = "server.log";

/// What a program printed.
pub(crate) fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a program complained of.
pub(crate) fn complained(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A server that is killed when it is dropped.
pub(crate) struct Server {
    pub(crate) address: String,
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Server {
    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.ask("POST", path, Some(body))
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        self.ask_with(None, method, path, body)
    }

    /// Asks with a token.
    pub(crate) fn ask_with(&self, token: Option<&str>, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = body.map(Value::to_string).unwrap_or_default();
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\n{token}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::String(body.to_owned())))
    }

    /// Asks again and again until the answer is as wanted.
    pub(crate) fn until(&self, path: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let (status, answer) = self.get(path);
            if status == 200 && is_wanted(&answer) {
                return answer;
            }
            assert!(begin.elapsed() < PATIENCE, "{path} is still {answer}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as an operator would; gives back how it ended and what it printed after its first line.
    pub(crate) fn terminate(mut self) -> (Option<i32>, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = self.child.wait().unwrap();
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        (status.code(), rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks a server that may be about to end; `None` where it does not answer.
pub(crate) fn try_post(address: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
    try_ask(address, "POST", path, &body.to_string())
}

/// Asks a server that may be about to end; `None` where it does not answer.
pub(crate) fn try_get(address: &str, path: &str) -> Option<(u16, Value)> {
    try_ask(address, "GET", path, "")
}

fn try_ask(address: &str, method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).ok()?))
}

/// An address that nobody listens on.
pub(crate) fn free_address() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// The answer of a server that may still be starting.
pub(crate) fn await_answer(address: &str, path: &str) -> String {
    let begin = Instant::now();
    loop {
        let asked = TcpStream::connect(address).and_then(|mut stream| {
            stream.set_read_timeout(Some(PATIENCE))?;
            write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        });
        match asked {
            Ok(answer) => return answer,
            Err(error) => assert!(begin.elapsed() < PATIENCE, "{address} does not answer: {error}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits for a file that another process makes.
pub(crate) fn await_file(path: &Path) {
    let begin = Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < PATIENCE, "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}
