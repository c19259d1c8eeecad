//! What an idle socket costs the server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use holdpoint_testkit::model_server::{Answer, ModelServer};
use serde_json::Value;

use super::server::{AGENT, Server};

/// The server's memory, in MiB.
pub(crate) struct Idle {
    pub(crate) sockets: usize,
    pub(crate) before_mib: f64,
    /// All are open.
    pub(crate) open_mib: f64,
    /// Each watches a session.
    pub(crate) watching_mib: f64,
}

/// How many idle sockets a server must bear, and in how much memory: 300 MB.
const SOCKETS: f64 = 15_000.0;
const MIB_MAX: f64 = 286.0;

/// Opens so many sockets, and says whether as many as a server must bear would fit.
pub(crate) fn check(sockets: usize) -> Result<()> {
    let Idle { before_mib, open_mib, watching_mib, .. } = measure(sockets)?;
    let all = |mib: f64| before_mib + (mib - before_mib) * SOCKETS / sockets as f64;
    println!(
        "{sockets} idle sockets: {before_mib:.1} MiB before, {open_mib:.1} with all open, {watching_mib:.1} with all \
         watching a session; {SOCKETS} would take {:.0} and {:.0} MiB",
        all(open_mib),
        all(watching_mib)
    );
    ensure!(all(open_mib) < MIB_MAX, "{SOCKETS} sockets would take {:.0} MiB of {MIB_MAX}", all(open_mib));
    Ok(())
}

/// Opens so many sockets and leaves them alone.
pub(crate) fn measure(sockets: usize) -> Result<Idle> {
    let folder = tempfile::tempdir_in(".")?;
    let model = ModelServer::start();
    model.script(|_| Answer::text("All is well."));
    let server = Server::start(folder.path(), &model.base_url())?;
    have_a_session(&mut open(server.address)?)?;
    // The first connections bring in code and tables that no later one needs again.
    drop((0..8).map(|_| open(server.address)).collect::<Result<Vec<_>>>()?);
    let before_mib = server.resident_mib()?;
    let mut open = (0..sockets).map(|_| open(server.address)).collect::<Result<Vec<_>>>()?;
    let open_mib = server.resident_mib()?;
    for socket in &mut open {
        say(socket, r#"{"type":"subscribe","session_id":"idle"}"#)?;
        hear(socket, "subscribed")?;
        hear(socket, "message_stop")?;
    }
    Ok(Idle { sockets, before_mib, open_mib, watching_mib: server.resident_mib()? })
}

/// One run, to its end.
fn have_a_session(socket: &mut BufReader<TcpStream>) -> Result<()> {
    say(socket, &format!(r#"{{"type":"message","agent_id":"{AGENT}","session_id":"idle","content":"Well?"}}"#))?;
    hear(socket, "message_stop")
}

/// A WebSocket by hand: thousands of clients must not weigh on the machine that is measured.
fn open(address: SocketAddr) -> Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut socket = BufReader::with_capacity(512, stream);
    write!(
        socket.get_mut(),
        "GET /api/v1/ws HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: holdpoint.blocks.v1\r\n\r\n"
    )?;
    let mut line = String::new();
    socket.read_line(&mut line)?;
    ensure!(line.starts_with("HTTP/1.1 101"), "the server said {line:?}");
    while line.trim() != "" {
        line.clear();
        socket.read_line(&mut line)?;
    }
    hear(&mut socket, "connected")?;
    Ok(socket)
}

/// Reads on to the first event of this type.
fn hear(socket: &mut BufReader<TcpStream>, wanted: &str) -> Result<()> {
    loop {
        let event: Value = serde_json::from_str(&read_text(socket)?)?;
        ensure!(event["type"] != "error", "the server said {event}");
        if event["type"] == wanted {
            return Ok(());
        }
    }
}

/// Sends a short text as clients do. The mask is all zeros, which is as good as any here.
fn say(socket: &mut BufReader<TcpStream>, text: &str) -> Result<()> {
    let length = u8::try_from(text.len()).ok().filter(|length| *length < 126).context("the text is too long")?;
    Ok(socket.get_mut().write_all(&[&[0x81, length | 0x80, 0, 0, 0, 0], text.as_bytes()].concat())?)
}

/// The next text frame, of at most 64 KiB.
fn read_text(socket: &mut BufReader<TcpStream>) -> Result<String> {
    let mut head = [0; 2];
    socket.read_exact(&mut head).context("no frame came")?;
    ensure!(head[0] & 0x0f == 1, "a frame of kind {} came", head[0] & 0x0f);
    let length = match head[1] & 0x7f {
        126 => {
            let mut more = [0; 2];
            socket.read_exact(&mut more)?;
            usize::from(u16::from_be_bytes(more))
        }
        length => usize::from(length),
    };
    let mut text = vec![0; length];
    socket.read_exact(&mut text)?;
    Ok(String::from_utf8(text)?)
}
