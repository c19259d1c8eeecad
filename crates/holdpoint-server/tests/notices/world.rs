//! A server that tells one destination, and the time that passes for both.

use std::sync::Arc;

use holdpoint_core::time::Timestamp;
use holdpoint_runtime::Runtime;
use holdpoint_runtime::ports::notifier::{Destination, NoticeKey, NoticeKind, Notifier, NotifyRule};
use holdpoint_runtime::ports::store::{NoticeRow, NoticeState};
use holdpoint_runtime::settings::Settings;
use holdpoint_server::ServerConfig;
use holdpoint_server::notifiers::email::{Email, EmailSettings};
use holdpoint_stores::sqlite::SqliteStore;
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::smtp_server::{Letter, SmtpServer};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agents;
use crate::common::{Outbox, Served, everything};

pub const BEGINNING: &str = "2026-11-15T09:30:00.000Z";

pub struct World {
    pub clock: TestClock,
    served: Served,
    http: reqwest::Client,
    _folder: TempDir,
}

impl World {
    /// A server whose pauses are told to `ops` by this notifier.
    pub async fn telling(notifier: impl Notifier) -> Self {
        let (clock, folder) = (TestClock::at(BEGINNING.parse::<Timestamp>().unwrap()), tempfile::tempdir().unwrap());
        let rule = NotifyRule::all(destination());
        let settings = Settings { notify: vec![rule.clone()], ..Settings::default() };
        let mut config = ServerConfig::solo("127.0.0.1:0".parse().unwrap());
        config.notifiers = vec![(rule, Arc::new(notifier) as Arc<dyn Notifier>)];
        let store = SqliteStore::open(folder.path().join("holdpoint.db"), clock.shared()).unwrap();
        let runtime = Runtime::builder(Arc::new(store)).settings(settings).build();
        let served = Served::start(config, runtime, agents::catalogue()).await;
        Self { clock, served, http: reqwest::Client::builder().no_proxy().build().unwrap(), _folder: folder }
    }

    /// A server that writes to two people through this mail server.
    pub async fn mailing(mail: &SmtpServer) -> Self {
        Self::telling(Email::new(letters_through(mail.url())).unwrap()).await
    }

    pub fn runtime(&self) -> &Runtime {
        self.served.running().app().runtime()
    }

    fn outbox(&self) -> Outbox<'_> {
        Outbox { runtime: self.runtime(), clock: &self.clock }
    }

    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method.parse().unwrap(), format!("http://{}{path}", self.served.running().address()))
    }

    pub async fn get(&self, path: &str) -> Value {
        answer(self.request("GET", path)).await
    }

    /// Starts a run that comes to a pause; gives back the pause.
    pub async fn open(&self, agent: &str, input: &str) -> String {
        let body = json!({"agent_id": agent, "input": input});
        let run = answer(self.request("POST", "/api/v1/runs?wait=60").json(&body)).await;
        run["pauses"][0]["id"].as_str().unwrap_or_else(|| panic!("a pause expected: {run}")).to_owned()
    }

    /// Starts a run that comes to a pause, and waits until it was told of.
    pub async fn ask(&self, agent: &str, input: &str) -> String {
        let pause = self.open(agent, input).await;
        self.delivered(&pause, NoticeKind::Opened).await;
        pause
    }

    pub async fn pause(&self, pause: &str) -> Value {
        self.get(&format!("/api/v1/pauses/{pause}")).await
    }

    pub async fn decide(&self, pause: &str, decision: Value) {
        answer(self.request("POST", &format!("/api/v1/pauses/{pause}/decide")).json(&decision)).await;
    }

    /// Decides, and waits until that was told.
    pub async fn settle(&self, pause: &str, decision: Value) {
        self.decide(pause, decision).await;
        self.delivered(pause, NoticeKind::Settled).await;
    }

    /// The notice as it stands.
    pub async fn notice(&self, pause: &str, kind: NoticeKind) -> Option<NoticeRow> {
        self.runtime().store().notice(&key(pause, kind)).await.unwrap()
    }

    /// The notice once it fits. Time passes as far as it must for what waits.
    pub async fn notice_when(&self, pause: &str, kind: NoticeKind, fits: impl Fn(&NoticeRow) -> bool) -> NoticeRow {
        self.outbox().notice_when(&key(pause, kind), fits).await
    }

    pub async fn delivered(&self, pause: &str, kind: NoticeKind) -> NoticeRow {
        self.notice_when(pause, kind, |notice| matches!(notice.state, NoticeState::Delivered { .. })).await
    }

    /// Why a notice was given up, once it was.
    pub async fn given_up(&self, pause: &str, kind: NoticeKind) -> String {
        let is_over = |notice: &NoticeRow| notice.state != NoticeState::Waiting;
        match self.notice_when(pause, kind, is_over).await.state {
            NoticeState::Failed { why } => why,
            other => panic!("{other:?}"),
        }
    }

    /// Everything that was ever written, with the outbox.
    pub async fn everything(&self) -> String {
        let notices = self.outbox().all().await;
        format!("{}\n{notices:?}", everything(self.runtime()).await)
    }
}

pub fn destination() -> Destination {
    Destination::new("ops").unwrap()
}

fn key(pause: &str, kind: NoticeKind) -> NoticeKey {
    NoticeKey { pause: pause.parse().unwrap(), kind, destination: destination() }
}

/// Two people, through a mail server at this address.
pub fn letters_through(server: String) -> EmailSettings {
    EmailSettings {
        server,
        password: None,
        from: "holdpoint <holdpoint@example.com>".to_owned(),
        to: vec!["ana@example.com".to_owned(), "Ben <ben@example.com>".to_owned()],
        public_url: Some("https://hold.example/".to_owned()),
    }
}

/// The page that a letter about a pause leads to.
pub fn page_of(pause: &str) -> String {
    format!("https://hold.example/pauses/{pause}")
}

/// What stands under a title in a letter's plain text.
#[track_caller]
pub fn under<'l>(letter: &'l Letter, title: &str) -> &'l str {
    let plain = letter.text("text/plain");
    let (_, rest) = plain.split_once(&format!("{title}:\n\n")).unwrap_or_else(|| panic!("no {title} in {plain}"));
    rest.split("\n\n").next().unwrap()
}

/// The names of a letter's headers, in alphabetical order.
pub fn header_names(letter: &Letter) -> Vec<&str> {
    let mut names: Vec<&str> = letter.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names
}

async fn answer(request: reqwest::RequestBuilder) -> Value {
    let response = request.send().await.unwrap();
    let (status, body) = (response.status(), response.text().await.unwrap());
    assert!(status.is_success(), "{status}: {body}");
    serde_json::from_str(&body).unwrap()
}
