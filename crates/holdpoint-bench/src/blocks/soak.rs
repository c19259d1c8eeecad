//! Readers that are dropped and come back at random: each must end with the same page.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::{SinkExt as _, StreamExt as _};
use holdpoint_testkit::model_server::{Answer, Asked, ModelServer};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::page::Page;
use super::server::{AGENT, Server};
use crate::chance::Chance;

/// How much is done.
pub(crate) struct Options {
    pub(crate) readers: usize,
    pub(crate) duration: Duration,
    pub(crate) seed: u64,
}

type Socket = WebSocketStream<TcpStream>;

const SESSION: &str = "soak";

/// Runs follow each other in one session, and every reader is dropped about once a second.
pub(crate) fn run(options: &Options) -> Result<()> {
    println!("{} readers for {:?}, seed {}", options.readers, options.duration, options.seed);
    let folder = tempfile::tempdir_in(".")?;
    let model = ModelServer::start();
    model.script(reply);
    let server = Server::start(folder.path(), &model.base_url())?;
    tokio::runtime::Runtime::new()?.block_on(play(options, server.address))
}

/// Looks something up, books it with a few words, and says what came of it, all at a pace that can be watched.
fn reply(asked: &Asked) -> Answer {
    let words = |count: usize| (0..count).map(|word| format!("word{word} "));
    let pace = Duration::from_millis(3);
    match asked.replies_since_user() {
        0 => Answer::empty().and_thinking("Where is it?").and_call("look_up", json!({"what": "lamp"})).pace(pace),
        1 => Answer::tokens(words(40)).and_call("book", json!({"what": "lamp", "amount": 12})).pace(pace),
        _ => Answer::tokens(words(80)).pace(pace),
    }
}

async fn play(options: &Options, address: SocketAddr) -> Result<()> {
    let (over, is_over) = watch::channel(None);
    // The session must be there before anybody can watch it.
    let mut clerk = connect(address).await?;
    say(&mut clerk, &json!({"type": "message", "agent_id": AGENT, "session_id": SESSION, "content": "Book it"}))
        .await?;
    while hear(&mut clerk).await?["type"] != "message_start" {}
    let progress = Arc::new(Progress::default());
    let readers: Vec<_> = (0..options.readers)
        .map(|number| tokio::spawn(read(address, Chance::new(options.seed, number), is_over.clone(), progress.clone())))
        .collect();
    let told = tokio::spawn(progress.clone().tell());
    let pages = tokio::spawn(work(clerk, options.duration, progress));
    let runs = pages.await??;
    told.abort();
    over.send(Some(runs)).ok();
    let mut first: Option<Page> = None;
    let mut drops = 0;
    for (number, reader) in readers.into_iter().enumerate() {
        let (page, times) = reader.await?.with_context(|| format!("reader {number}"))?;
        drops += times;
        match &first {
            None => first = Some(page),
            Some(first) => {
                let differs = first.difference(&page);
                ensure!(
                    differs.is_none(),
                    "reader {number} has another page than reader 0: {}",
                    differs.unwrap_or_default()
                );
            }
        }
    }
    let head = first.map_or(0, |page| page.head());
    println!("{runs} runs, {head} numbered events, {drops} reconnections: every page is the same");
    Ok(())
}

/// Starts runs one after the other and approves what they ask; says how many there were.
async fn work(mut socket: Socket, duration: Duration, progress: Arc<Progress>) -> Result<usize> {
    let began = Instant::now();
    let mut runs = 1;
    loop {
        let event = hear(&mut socket).await?;
        progress.head.fetch_max(event["seq"].as_u64().unwrap_or(0), Ordering::Relaxed);
        progress.runs.store(runs, Ordering::Relaxed);
        match event["type"].as_str() {
            Some("content_block_start") if event["content_block"]["type"] == "approval_request" => {
                let key = &event["content_block"]["approval_key"];
                let decision = json!({"type": "approval", "session_id": SESSION, "approval_key": key,
                                      "decisions": [{"type": "approve"}]});
                say(&mut socket, &decision).await?;
            }
            Some("message_stop") if began.elapsed() < duration => {
                runs += 1;
                let message = json!({"type": "message", "agent_id": AGENT, "session_id": SESSION, "content": "Again"});
                say(&mut socket, &message).await?;
            }
            Some("message_stop") => return Ok(runs),
            Some("error") if event["error"]["code"] != "already_decided" => bail!("the server said {event}"),
            _ => {}
        }
    }
}

/// One reader, to the end of the last run; also how often it came back.
async fn read(
    address: SocketAddr,
    mut chance: Chance,
    mut is_over: watch::Receiver<Option<usize>>,
    progress: Arc<Progress>,
) -> Result<(Page, usize)> {
    let (mut page, mut times) = (Page::default(), 0);
    loop {
        let mut socket = connect(address).await?;
        page.reconnect();
        say(&mut socket, &json!({"type": "subscribe", "session_id": SESSION, "after": page.head()})).await?;
        let leave = tokio::time::sleep(Duration::from_millis(200 + chance.below(1_600)));
        tokio::pin!(leave);
        loop {
            if is_over.borrow().is_some_and(|runs| page.is_over(runs)) {
                return Ok((page, times));
            }
            tokio::select! {
                event = hear(&mut socket) => {
                    let event = event?;
                    ensure!(event["type"] != "error", "after {times} reconnections, at {}: {event}", page.head());
                    page.take(&event)?;
                }
                () = &mut leave, if is_over.borrow().is_none() => break,
                changed = is_over.changed(), if is_over.borrow().is_none() => changed?,
            }
        }
        times += 1;
        progress.reconnections.fetch_add(1, Ordering::Relaxed);
    }
}

/// How far a soak is, for whoever waits for it.
#[derive(Default)]
struct Progress {
    runs: AtomicUsize,
    head: AtomicU64,
    reconnections: AtomicUsize,
}

impl Progress {
    /// Says every few seconds how far it is.
    async fn tell(self: Arc<Self>) {
        let began = Instant::now();
        let mut ticks = tokio::time::interval(Duration::from_secs(5));
        ticks.tick().await;
        loop {
            ticks.tick().await;
            let (seconds, runs) = (began.elapsed().as_secs(), self.runs.load(Ordering::Relaxed));
            let (head, times) = (self.head.load(Ordering::Relaxed), self.reconnections.load(Ordering::Relaxed));
            println!("after {seconds} s: {runs} runs, {head} numbered events, {times} reconnections");
        }
    }
}

async fn connect(address: SocketAddr) -> Result<Socket> {
    let stream = TcpStream::connect(address).await?;
    let (mut socket, _) = tokio_tungstenite::client_async(format!("ws://{address}/api/v1/ws"), stream).await?;
    let greeting = hear(&mut socket).await?;
    ensure!(greeting["type"] == "connected", "the server said {greeting}");
    Ok(socket)
}

async fn say(socket: &mut Socket, command: &Value) -> Result<()> {
    Ok(socket.send(Message::text(command.to_string())).await?)
}

async fn hear(socket: &mut Socket) -> Result<Value> {
    loop {
        match socket.next().await.context("the server closed the socket")?? {
            Message::Text(text) => return Ok(serde_json::from_str(&text)?),
            Message::Close(why) => bail!("the server closed the socket: {why:?}"),
            _ => {}
        }
    }
}
