//! What the buses of stores share: a bounded queue to the database and a listener to it, both of which connect again by
//! themselves. What is told by several at once goes together to the database, a line for each text: many short ones are one
//! message there, and for whoever hears it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_runtime::ports::bus::{Bus, Heard, Subscription};
use tokio::sync::{broadcast, mpsc};
use tokio::task::AbortHandle;

/// How many texts wait for the database at most.
const WAITING_MAX: usize = 1_024;

/// How many texts a listener may be behind.
const UNHEARD_MAX: usize = 4_096;

/// How many texts go to the database together.
const TOGETHER_MAX: usize = 128;

/// How often texts are sent whose connection was lost, before they are dropped.
const TRIES_MAX: u32 = 4;

/// How long it is waited before the first new try to connect, and before the last ones.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// The way to a database and back.
#[async_trait]
pub(crate) trait Road: Send + Sync + 'static {
    /// Listens until the connection is lost; says why it was.
    async fn listen(&self, ears: &Ears) -> String;

    /// Sends messages in this order, on a connection of its own.
    async fn send(&self, messages: &[String]) -> Result<(), String>;

    /// The longest message, and the longest text.
    fn text_bytes_max(&self) -> usize;
}

/// Passes on what a road brings.
#[derive(Clone)]
pub(crate) struct Ears {
    heard: broadcast::Sender<Heard>,
    is_open: Arc<Mutex<bool>>,
}

impl Ears {
    fn new() -> Self {
        Self { heard: broadcast::Sender::new(UNHEARD_MAX), is_open: Arc::default() }
    }

    /// From now on everything is heard.
    pub(crate) fn are_open(&self) {
        // Told under the lock: whoever subscribes is told either by this or because it was so before.
        let mut is_open = self.lock();
        *is_open = true;
        let _ = self.heard.send(Heard::Missed);
    }

    /// A message was brought: a text in each line.
    pub(crate) fn hear(&self, message: &str) {
        for text in message.lines().take(TOGETHER_MAX) {
            let _ = self.heard.send(Heard::Text(text.into()));
        }
    }

    fn are_closed(&self) {
        *self.lock() = false;
    }

    fn subscribe(&self) -> Subscription {
        let is_open = self.lock();
        Subscription::new(self.heard.subscribe(), *is_open)
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bus of a store, which begins when somebody first asks for it.
pub(crate) struct BusSlot<R> {
    road: Arc<R>,
    bus: OnceLock<Arc<RoadBus>>,
}

impl<R: Road> BusSlot<R> {
    pub(crate) fn new(road: R) -> Self {
        Self { road: Arc::new(road), bus: OnceLock::new() }
    }

    /// The bus; `None` outside of a runtime for tasks.
    pub(crate) fn get(&self) -> Option<Arc<dyn Bus>> {
        tokio::runtime::Handle::try_current().ok()?;
        Some(self.bus.get_or_init(|| Arc::new(RoadBus::start(self.road.clone()))).clone())
    }
}

/// A bus over a road, as long as it lives.
pub(crate) struct RoadBus {
    outgoing: mpsc::Sender<String>,
    ears: Ears,
    dropped: Arc<AtomicU64>,
    text_bytes_max: usize,
    tasks: [AbortHandle; 2],
}

impl RoadBus {
    /// Begins to listen, in tasks of its own.
    fn start(road: Arc<impl Road>) -> Self {
        let (outgoing, waiting) = mpsc::channel(WAITING_MAX);
        let ears = Ears::new();
        let dropped = Arc::<AtomicU64>::default();
        let text_bytes_max = road.text_bytes_max();
        let listening = tokio::spawn(listen(road.clone(), ears.clone())).abort_handle();
        let sending = tokio::spawn(send(road, waiting, dropped.clone())).abort_handle();
        Self { outgoing, ears, dropped, text_bytes_max, tasks: [listening, sending] }
    }
}

impl Drop for RoadBus {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Bus for RoadBus {
    fn publish(&self, text: String) {
        let is_carried = text.len() <= self.text_bytes_max && !text.contains(['\n', '\r']);
        let is_sent = is_carried && self.outgoing.try_send(text).is_ok();
        if !is_sent {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn subscribe(&self) -> Subscription {
        self.ears.subscribe()
    }

    fn text_bytes_max(&self) -> usize {
        self.text_bytes_max
    }

    fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

async fn listen(road: Arc<impl Road>, ears: Ears) {
    let mut backoff = Backoff::default();
    loop {
        let began = tokio::time::Instant::now();
        let why = road.listen(&ears).await;
        ears.are_closed();
        if began.elapsed() > BACKOFF.1 {
            backoff = Backoff::default();
        }
        tracing::info!(why, "instances are not heard; what they do is found by looking");
        backoff.wait().await;
    }
}

async fn send(road: Arc<impl Road>, mut waiting: mpsc::Receiver<String>, dropped: Arc<AtomicU64>) {
    let mut texts = Vec::with_capacity(TOGETHER_MAX);
    while waiting.recv_many(&mut texts, TOGETHER_MAX).await > 0 {
        let mut backoff = Backoff::default();
        let messages = messages(&texts, road.text_bytes_max());
        for tried in 1..=TRIES_MAX {
            let Err(why) = road.send(&messages).await else { break };
            if tried == TRIES_MAX {
                dropped.fetch_add(texts.len() as u64, Ordering::Relaxed);
                tracing::info!(why, "instances cannot be told; they find out by looking");
            }
            backoff.wait().await;
        }
        texts.clear();
    }
}

/// Texts as the lines of as few messages as have room for them.
fn messages(texts: &[String], bytes_max: usize) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    for text in texts {
        match messages.last_mut() {
            Some(last) if last.len() + 1 + text.len() <= bytes_max => {
                last.push('\n');
                last.push_str(text);
            }
            _ => messages.push(text.clone()),
        }
    }
    messages
}

/// Waits twice as long each time, and not all for the same time.
struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(BACKOFF.0)
    }
}

impl Backoff {
    async fn wait(&mut self) {
        let share = u32::try_from(uuid::Uuid::now_v7().as_u128() % 512).unwrap_or_default();
        tokio::time::sleep(self.0 / 2 + self.0 * share / 1_024).await;
        self.0 = (self.0 * 2).min(BACKOFF.1);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    /// A road that lets nobody through until it is opened.
    struct Gate(Arc<Semaphore>, mpsc::UnboundedSender<Vec<String>>);

    #[async_trait]
    impl Road for Gate {
        async fn listen(&self, _: &Ears) -> String {
            std::future::pending().await
        }

        async fn send(&self, messages: &[String]) -> Result<(), String> {
            self.0.acquire().await.unwrap().forget();
            self.1.send(messages.to_vec()).map_err(|error| error.to_string())
        }

        fn text_bytes_max(&self) -> usize {
            10
        }
    }

    #[tokio::test]
    async fn telling_never_waits_and_what_does_not_fit_is_dropped_and_counted() {
        let gate = Arc::new(Semaphore::new(0));
        let (sent, mut passed) = mpsc::unbounded_channel();
        let bus = RoadBus::start(Arc::new(Gate(gate.clone(), sent)));
        bus.publish("far too long".to_owned());
        bus.publish("two\nlines".to_owned());
        assert_eq!(bus.dropped(), 2);
        for number in 0..WAITING_MAX + 9 {
            bus.publish(number.to_string());
        }
        // Nothing was taken out of the queue yet: no task has run.
        assert_eq!(bus.dropped(), 11);
        gate.add_permits(WAITING_MAX);
        let mut texts = Vec::new();
        while texts.len() < WAITING_MAX {
            let together = passed.recv().await.unwrap();
            assert!(together.iter().all(|message| message.len() <= 10));
            let lines: Vec<String> = together.iter().flat_map(|message| message.lines()).map(str::to_owned).collect();
            assert!(together.len() < lines.len() && lines.len() <= TOGETHER_MAX);
            texts.extend(lines);
        }
        let expected: Vec<String> = (0..WAITING_MAX).map(|number| number.to_string()).collect();
        assert_eq!(texts, expected);
    }

    #[tokio::test]
    async fn a_listener_that_is_too_slow_is_told_that_it_missed_something() {
        let (sent, _passed) = mpsc::unbounded_channel();
        let bus = RoadBus::start(Arc::new(Gate(Arc::new(Semaphore::new(0)), sent)));
        let mut slow = bus.subscribe();
        (0..=UNHEARD_MAX).for_each(|number| bus.ears.hear(&number.to_string()));
        assert_eq!(slow.next().await, Some(Heard::Missed));
        assert_eq!(slow.next().await, Some(Heard::Text("1".into())));
    }

    #[tokio::test]
    async fn whoever_comes_after_the_bus_was_connected_is_told_so_once() {
        let (sent, _passed) = mpsc::unbounded_channel();
        let bus = RoadBus::start(Arc::new(Gate(Arc::new(Semaphore::new(0)), sent)));
        let mut before = bus.subscribe();
        bus.ears.are_open();
        let mut after = bus.subscribe();
        bus.ears.hear("a\nb");
        for heard in [&mut before, &mut after] {
            assert_eq!(heard.next().await, Some(Heard::Missed));
            assert_eq!(heard.next().await, Some(Heard::Text("a".into())));
            assert_eq!(heard.next().await, Some(Heard::Text("b".into())));
        }
        bus.ears.are_closed();
        let mut too_early = bus.subscribe();
        bus.ears.are_open();
        bus.ears.hear("b");
        assert_eq!(too_early.next().await, Some(Heard::Missed));
        assert_eq!(too_early.next().await, Some(Heard::Text("b".into())));
    }
}
