//! A road between a client and a server that can be cut, also at the very message that a test is about.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// When the road is cut, seen from the message that a test is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Before the server has seen it.
    Before,
    /// After the server has answered with this text, and before the client knows.
    After(&'static [u8]),
}

/// Passes bytes on to a server on loopback until it is told to cut.
pub struct Proxy {
    /// Where clients connect to.
    pub address: SocketAddr,
    plan: Arc<Plan>,
    accepting: JoinHandle<()>,
}

struct Plan {
    state: Mutex<State>,
    /// Counts cuts; who passes bytes on stops when it changes.
    cuts: watch::Sender<u32>,
    /// Counts those who came while the road was closed.
    turned_away: AtomicU32,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    /// The text in a message at which to cut, how many of them to let pass first, and whether the road stays closed.
    trap: Option<(&'static [u8], u32, When, bool)>,
}

impl Proxy {
    /// A road to this server.
    ///
    /// # Panics
    /// There is no free port.
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let plan =
            Arc::new(Plan { state: Mutex::default(), cuts: watch::Sender::new(0), turned_away: AtomicU32::new(0) });
        let accepting = tokio::spawn(accept(listener, server, Arc::clone(&plan)));
        Self { address, plan, accepting }
    }

    /// Cuts every connection, and lets nobody through until [`Proxy::mend`].
    pub fn cut(&self) {
        self.plan.cut(true);
    }

    /// Lets everybody through again.
    pub fn mend(&self) {
        self.plan.state().is_closed = false;
    }

    /// Cuts every connection when a client sends a message with this text, after as many others with it. The road is
    /// open again at once, unless it is to stay closed.
    pub fn cut_at(&self, text: &'static [u8], after: u32, when: When, stays_closed: bool) {
        self.plan.state().trap = Some((text, after, when, stays_closed));
    }

    /// Forgets where it was to cut.
    pub fn forget(&self) {
        self.plan.state().trap = None;
    }

    /// How many came while the road was closed.
    pub fn turned_away(&self) -> u32 {
        self.plan.turned_away.load(Ordering::SeqCst)
    }

    /// How many cuts there were.
    pub fn cuts(&self) -> u32 {
        *self.plan.cuts.borrow()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.plan.cut(true);
    }
}

impl Plan {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cut(&self, stays_closed: bool) {
        self.state().is_closed |= stays_closed;
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Whether this message is the one to cut at; each counts once.
    fn springs(&self, message: &[u8]) -> Option<(When, bool)> {
        let mut state = self.state();
        let (text, after, when, stays_closed) = state.trap?;
        if !has(message, text) {
            return None;
        }
        state.trap = (after > 0).then(|| (text, after - 1, when, stays_closed));
        (after == 0).then_some((when, stays_closed))
    }
}

fn has(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

async fn accept(listener: TcpListener, server: SocketAddr, plan: Arc<Plan>) {
    while let Ok((client, _)) = listener.accept().await {
        if plan.state().is_closed {
            plan.turned_away.fetch_add(1, Ordering::SeqCst);
            continue;
        }
        let plan = Arc::clone(&plan);
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(server).await else { return };
            // The road adds no waiting of its own.
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let mut cuts = plan.cuts.subscribe();
            tokio::select! {
                () = pass(client, server, &plan) => {}
                _ = cuts.changed() => {}
            }
        });
    }
}

/// Passes bytes both ways until one side ends or the trap springs.
async fn pass(mut client: TcpStream, mut server: TcpStream, plan: &Plan) {
    let (mut up, mut down) = (vec![0; 64 * 1_024], vec![0; 64 * 1_024]);
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let Ok(length @ 1..) = read else { return };
                let sprung = plan.springs(&up[..length]);
                if let Some((When::Before, stays_closed)) = sprung {
                    return plan.cut(stays_closed);
                }
                if server.write_all(&up[..length]).await.is_err() {
                    return;
                }
                if let Some((When::After(answer), stays_closed)) = sprung {
                    while let Ok(length @ 1..) = server.read(&mut down).await {
                        if has(&down[..length], answer) {
                            break;
                        }
                    }
                    return plan.cut(stays_closed);
                }
            }
            read = server.read(&mut down) => {
                let Ok(length @ 1..) = read else { return };
                if client.write_all(&down[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}
