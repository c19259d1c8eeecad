//! A mail server on loopback: it speaks as much SMTP as it takes to hand over a letter, keeps what was handed over,
//! misbehaves when a test tells it to, and may ask for a login. It lives on threads of its own, so it serves async tests,
//! plain ones and other processes alike.

mod letter;

use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::sync::watch;

pub use letter::{Letter, Part};

/// The longest line, and the longest letter.
const BYTES_MAX: usize = 4 << 20;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A mail server for tests.
///
/// Every letter is taken, unless a [`Trouble`] was [pushed](SmtpServer::push) for it.
pub struct SmtpServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What goes wrong with one letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The sender is answered with this code, before anything was read.
    AtSender(u16),
    /// The letter is read, and answered with this code.
    AtEnd(u16),
    /// The connection breaks in the middle of the letter.
    CutInData,
    /// The letter is taken, and the connection breaks before the answer.
    CutAfterData,
}

struct Shared {
    login: Option<(String, String)>,
    state: Mutex<State>,
    /// How often something changed.
    changed: watch::Sender<u64>,
    is_over: AtomicBool,
}

#[derive(Default)]
struct State {
    troubles: VecDeque<Trouble>,
    /// Whole letters, whatever was answered.
    attempts: Vec<Letter>,
    letters: Vec<Letter>,
    conversations: usize,
}

impl SmtpServer {
    /// Starts on a free port of 127.0.0.1, for everybody. Dropping it ends it.
    ///
    /// # Panics
    /// There is no free port.
    pub fn start() -> Self {
        Self::begin(None)
    }

    /// Starts one that takes letters only after a login with this name and password.
    ///
    /// # Panics
    /// There is no free port.
    pub fn with_login(user: &str, password: &str) -> Self {
        Self::begin(Some((user.to_owned(), password.to_owned())))
    }

    fn begin(login: Option<(String, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let (state, changed) = (Mutex::default(), watch::Sender::new(0));
        let shared = Arc::new(Shared { login, state, changed, is_over: AtomicBool::new(false) });
        let serving = shared.clone();
        let thread = std::thread::spawn(move || serve(&listener, &serving));
        Self { address, shared, thread: Some(thread) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address as settings have it.
    pub fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    /// Lets this happen to one letter, after those that were pushed before.
    pub fn push(&self, trouble: Trouble) {
        self.shared.state().troubles.push_back(trouble);
    }

    /// The letters that were taken, oldest first.
    pub fn letters(&self) -> Vec<Letter> {
        self.shared.state().letters.clone()
    }

    /// The letters that were read to their end, whatever was answered, oldest first.
    pub fn attempts(&self) -> Vec<Letter> {
        self.shared.state().attempts.clone()
    }

    /// How often somebody connected.
    pub fn conversations(&self) -> usize {
        self.shared.state().conversations
    }

    /// Ends when what is there fits.
    ///
    /// # Panics
    /// It does not within a minute.
    pub async fn until<T>(&self, what: &str, find: impl Fn(&Self) -> Option<T>) -> T {
        let mut changed = self.shared.changed.subscribe();
        let waiting = async {
            loop {
                if let Some(found) = find(self) {
                    return found;
                }
                // The sender lives as long as the server.
                changed.changed().await.ok();
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(found) => found,
            Err(_) => panic!("{what} never came: {:#?}", self.attempts()),
        }
    }
}

impl Drop for SmtpServer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes whoever waits for a connection.
        TcpStream::connect(self.address).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.send_modify(|count| *count += 1);
    }
}

fn serve(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.is_over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        shared.change(|state| state.conversations += 1);
        let shared = shared.clone();
        // A connection that breaks off ends its conversation, and nothing else.
        std::thread::spawn(move || Conversation::new(stream, shared).and_then(Conversation::hold).ok());
    }
}

/// One connection.
struct Conversation {
    reader: BufReader<TcpStream>,
    shared: Arc<Shared>,
    is_logged_in: bool,
    from: String,
    to: Vec<String>,
    trouble: Option<Trouble>,
}

impl Conversation {
    fn new(stream: TcpStream, shared: Arc<Shared>) -> io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (is_logged_in, reader) = (shared.login.is_none(), BufReader::new(stream));
        Ok(Self { reader, shared, is_logged_in, from: String::new(), to: Vec::new(), trouble: None })
    }

    fn hold(mut self) -> io::Result<()> {
        self.say("220 mail.test ESMTP")?;
        while let Some(line) = self.line()? {
            let verb = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
            match verb.as_str() {
                "EHLO" if self.shared.login.is_some() => {
                    self.say("250-mail.test\r\n250-AUTH PLAIN\r\n250 8BITMIME")?;
                }
                "EHLO" => self.say("250-mail.test\r\n250 8BITMIME")?,
                "AUTH" => self.log_in(&line)?,
                "MAIL" if !self.is_logged_in => self.say("530 5.7.0 log in first")?,
                "MAIL" => self.begin_letter(&line)?,
                "RCPT" => {
                    self.to.push(address(&line));
                    self.say("250 ok")?;
                }
                "DATA" => {
                    if !self.take_letter()? {
                        return Ok(());
                    }
                }
                "QUIT" => return self.say("221 bye"),
                "HELO" | "NOOP" | "RSET" => self.say("250 ok")?,
                _ => self.say("502 5.5.2 what?")?,
            }
        }
        Ok(())
    }

    /// Repeats what it was told when it refuses, as some servers do.
    fn log_in(&mut self, line: &str) -> io::Result<()> {
        let given = line.rsplit(' ').next().and_then(|word| STANDARD.decode(word).ok()).unwrap_or_default();
        let given = String::from_utf8_lossy(&given).into_owned();
        let wanted = self.shared.login.as_ref().map(|(user, password)| format!("\0{user}\0{password}"));
        self.is_logged_in = wanted.as_deref() == Some(given.as_str());
        match self.is_logged_in {
            true => self.say("235 2.7.0 welcome"),
            false => self.say(&format!("535 5.7.8 not with {}", given.replace('\0', " "))),
        }
    }

    fn begin_letter(&mut self, line: &str) -> io::Result<()> {
        (self.from, self.to) = (address(line), Vec::new());
        self.trouble = self.shared.state().troubles.pop_front();
        match self.trouble {
            Some(Trouble::AtSender(code)) => self.say(&format!("{code} not from you")),
            _ => self.say("250 ok"),
        }
    }

    /// Whether the conversation goes on.
    fn take_letter(&mut self) -> io::Result<bool> {
        self.say("354 go on")?;
        let (mut raw, mut lines) = (String::new(), 0);
        loop {
            let Some(line) = self.line()? else { return Ok(false) };
            lines += 1;
            if self.trouble == Some(Trouble::CutInData) && lines == 5 {
                return Ok(false);
            }
            if line == "." {
                break;
            }
            // A line that begins with a dot was sent with another one before it.
            raw.push_str(line.strip_prefix('.').unwrap_or(&line));
            raw.push_str("\r\n");
            if raw.len() > BYTES_MAX {
                return Ok(false);
            }
        }
        let letter = Letter::read(self.from.clone(), self.to.clone(), raw);
        let is_taken = !matches!(self.trouble, Some(Trouble::AtEnd(_)));
        self.shared.change(|state| {
            state.attempts.push(letter.clone());
            if is_taken {
                state.letters.push(letter);
            }
        });
        match self.trouble.take() {
            Some(Trouble::CutAfterData) => return Ok(false),
            Some(Trouble::AtEnd(code)) => self.say(&format!("{code} not this one"))?,
            _ => self.say("250 taken")?,
        }
        Ok(true)
    }

    fn say(&mut self, words: &str) -> io::Result<()> {
        self.reader.get_mut().write_all(format!("{words}\r\n").as_bytes())
    }

    /// The next line without its end; `None` where there is none.
    fn line(&mut self) -> io::Result<Option<String>> {
        let mut bytes = Vec::new();
        let read = self.reader.by_ref().take(BYTES_MAX as u64).read_until(b'\n', &mut bytes)?;
        let line = String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned();
        Ok((read > 0).then_some(line))
    }
}

/// What stands between angle brackets.
fn address(line: &str) -> String {
    let inner = line.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    inner.map(|(address, _)| address.to_owned()).unwrap_or_default()
}
