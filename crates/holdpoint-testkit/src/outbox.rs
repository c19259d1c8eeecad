//! Who is told, in tests: a destination that writes down what it heard and answers as it is told to, and runs that have
//! something to tell.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::ids::{ActorId, PauseId, SessionId};
use holdpoint_core::message::Content;
use holdpoint_runtime::ports::notifier::{Delivery, Destination, Notice, NoticeKey, Notifier, NotifyRule};
use holdpoint_runtime::ports::store::Store;
use holdpoint_runtime::settings::Settings;
use holdpoint_runtime::use_cases::StartRun;
use holdpoint_runtime::{DriveOptions, Runtime, RuntimeBuilder};
use tokio::sync::Notify;

use crate::crash::{World, scenarios};

/// A destination by its name.
///
/// # Panics
/// It cannot be one.
pub fn destination(name: &str) -> Destination {
    Destination::new(name).expect("a destination's name")
}

type Answer = Box<dyn Fn(&Notice) -> Delivery + Send + Sync>;

/// A destination that writes down what it heard.
pub struct Recorder {
    heard: Mutex<Vec<Notice>>,
    more: Notify,
    answer: Answer,
}

impl Recorder {
    /// One that answers in this way.
    pub fn answering(answer: impl Fn(&Notice) -> Delivery + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { heard: Mutex::default(), more: Notify::new(), answer: Box::new(answer) })
    }

    /// One that always hears, and keeps the key as its receipt.
    pub fn hearing() -> Arc<Self> {
        Self::answering(|notice| Delivery::Delivered { receipt: Some(notice.key.to_string()) })
    }

    /// What it heard so far, in order, whatever it answered.
    pub fn heard(&self) -> Vec<Notice> {
        self.lock().clone()
    }

    /// The keys of what it heard so far, and the numbers of the attempts.
    pub fn keys(&self) -> Vec<(NoticeKey, u32)> {
        self.lock().iter().map(|notice| (notice.key.clone(), notice.attempt)).collect()
    }

    /// Ends when it has heard so many.
    pub async fn wait_for(&self, count: usize) {
        loop {
            let more = self.more.notified();
            if self.lock().len() >= count {
                return;
            }
            more.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Notice>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Notifier for Recorder {
    async fn deliver(&self, notice: &Notice) -> Delivery {
        self.lock().push(notice.clone());
        self.more.notify_waiters();
        (self.answer)(notice)
    }
}

/// A runtime whose runs each ask whether something may be paid, and that tells these destinations.
pub fn telling(store: Arc<dyn Store>, destinations: &[&str]) -> RuntimeBuilder {
    let notify = destinations.iter().map(|name| NotifyRule::all(destination(name))).collect();
    Runtime::builder(store).model(scenarios()[0].model()).settings(Settings { notify, ..Settings::default() })
}

/// Starts a run in a session of its own, up to its pause.
///
/// # Panics
/// It does not come to one.
pub async fn open_pause(runtime: &Runtime, session: &str) -> PauseId {
    let scenario = &scenarios()[0];
    let start = StartRun {
        graph: scenario.agent(&World::in_memory()).graph().expect("an agent"),
        content: Content::Text(scenario.input.to_owned()),
        session: Some(SessionId::new(session).expect("a session's name")),
        turns_max: Some(10),
        by: ActorId::local(),
        options: DriveOptions::default(),
        only_owner: false,
        run: None,
    };
    let run = runtime.start_run(start).await.expect("the run starts");
    run.open_pauses().first().expect("the run asks").id()
}

/// Denies a pause, which ends it.
///
/// # Panics
/// It cannot be decided.
pub async fn deny(runtime: &Runtime, pause: PauseId) {
    let input = DecisionInput::new(pause, Decision::Deny { message: None }, ActorId::local());
    runtime.decide_pause(input).await.expect("the pause can be decided");
}
