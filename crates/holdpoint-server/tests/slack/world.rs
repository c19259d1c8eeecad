//! A server that tells Slack, Slack, and people in it.

use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::ids::{ActorId, AgentId};
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::Runtime;
use holdpoint_runtime::ports::notifier::{Destination, NoticeKey, NoticeKind, Notifier, NotifyRule};
use holdpoint_runtime::ports::store::NoticeState;
use holdpoint_runtime::settings::Settings;
use holdpoint_server::ServerConfig;
use holdpoint_server::access::{Credentials, Role};
use holdpoint_server::notifiers::slack::{Person, Slack, SlackSettings};
use holdpoint_stores::sqlite::SqliteStore;
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::slack_server::{Click, Message, Signed, SlackServer};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agents::{self, Effects};
use crate::common::{Outbox, Served, everything};

pub const KEY: &str = "8f742231b10e8888abcd99yyyzzz85a5";
pub const TOKEN: &str = "xoxb-s3cret-token-of-the-app";
pub const CHANNEL: &str = "C0123456789";
pub const BEGINNING: &str = "2026-11-15T09:30:00.000Z";

/// How a server is set up.
#[derive(Default)]
pub struct Setup {
    pub credentials: Option<fn() -> Credentials>,
    pub requester_may_not_approve: bool,
    /// Whether nothing of Slack is configured.
    pub is_without_slack: bool,
}

pub struct World {
    pub slack: SlackServer,
    pub effects: Effects,
    pub clock: TestClock,
    folder: TempDir,
    setup: Setup,
    served: Option<Served>,
    http: reqwest::Client,
}

/// Alice and Ben approve for finance, Cem approves, Audrey audits, and Local is nobody's name.
fn people() -> Vec<Person> {
    let person = |user: &str, principal: &str, role: Role, groups: &[&str]| Person {
        team: "T012".to_owned(),
        user: user.to_owned(),
        principal: ActorId::new(principal).unwrap(),
        roles: vec![role],
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
    };
    vec![
        person("UALICE", "alice@example.com", Role::Approver, &["finance"]),
        person("UBEN", "ben@example.com", Role::Approver, &["finance"]),
        person("UCEM", "cem@example.com", Role::Approver, &[]),
        person("UAUDREY", "audrey@example.com", Role::Auditor, &[]),
    ]
}

impl World {
    pub async fn new() -> Self {
        Self::with(Setup::default()).await
    }

    pub async fn with(setup: Setup) -> Self {
        let mut world = Self {
            slack: SlackServer::start(),
            effects: Effects::default(),
            clock: TestClock::at(BEGINNING.parse::<Timestamp>().unwrap()),
            folder: tempfile::tempdir().unwrap(),
            setup,
            served: None,
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        };
        world.serve().await;
        world
    }

    /// Told of every agent but `private`.
    fn rule() -> NotifyRule {
        let agents = ["mailer", "brief", "treasurer", "doubter", "asker", "confirmer"];
        let agents = agents.iter().map(|name| AgentId::root(name).unwrap()).collect();
        NotifyRule { agents, ..NotifyRule::all(Destination::new("ops").unwrap()) }
    }

    async fn serve(&mut self) {
        let slack = Slack::new(SlackSettings {
            rule: Self::rule(),
            channel: CHANNEL.to_owned(),
            bot_token: TOKEN.to_owned().into(),
            signing_secret: KEY.to_owned().into(),
            app_id: Some("A0123".to_owned()),
            people: people(),
            base_url: self.slack.base_url(),
            public_url: Some("https://hold.example/".to_owned()),
        });
        let slack = Arc::new(slack.unwrap());
        let mut config = ServerConfig::solo("127.0.0.1:0".parse().unwrap());
        config.credentials = self.setup.credentials.map(|credentials| credentials());
        config.requester_may_approve = !self.setup.requester_may_not_approve;
        let mut settings = Settings::default();
        if !self.setup.is_without_slack {
            settings.notify = vec![slack.rule().clone()];
            config.notifiers = vec![(slack.rule().clone(), slack.clone() as Arc<dyn Notifier>)];
            config.slack = vec![slack];
        }
        let store = SqliteStore::open(self.folder.path().join("holdpoint.db"), self.clock.shared()).unwrap();
        let runtime = Runtime::builder(Arc::new(store)).settings(settings).build();
        self.served = Some(Served::start(config, runtime, agents::catalogue(&self.effects)).await);
    }

    /// Kills the server in the middle of whatever it does, and starts another one over what is stored. The dead one's
    /// leases and claims have run out.
    pub async fn kill_and_start(&mut self) {
        self.served.take().unwrap().kill().await;
        self.clock.advance(Duration::from_secs(90));
        self.serve().await;
    }

    pub async fn kill(&mut self) {
        self.served.take().unwrap().kill().await;
    }

    pub async fn start_again(&mut self) {
        self.clock.advance(Duration::from_secs(90));
        self.serve().await;
    }

    pub fn runtime(&self) -> &Runtime {
        self.served.as_ref().unwrap().running().app().runtime()
    }

    /// What is to be told, and the time that passes until it was.
    pub fn outbox(&self) -> Outbox<'_> {
        Outbox { runtime: self.runtime(), clock: &self.clock }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.served.as_ref().unwrap().running().address())
    }

    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method.parse().unwrap(), self.url(path))
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request("GET", path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        Answer::to(self.request("POST", path).json(&body)).await
    }

    /// Starts a run that comes to a pause; gives back the run.
    pub async fn run(&self, agent: &str, input: &str) -> Value {
        let answer = self.post("/api/v1/runs?wait=60", json!({"agent_id": agent, "input": input})).await;
        answer.expect(201)
    }

    /// Starts a run that comes to a pause, and waits for its message, and until it is written down that it was told.
    pub async fn ask(&self, agent: &str, input: &str) -> Asked {
        let run = self.run(agent, input).await;
        let pause = run["pauses"][0]["id"].as_str().unwrap_or_else(|| panic!("a pause expected: {run}")).to_owned();
        let message = self.message(&pause).await;
        let (kind, destination) = (NoticeKind::Opened, Self::rule().destination);
        let key = NoticeKey { pause: pause.parse().unwrap(), kind, destination };
        self.outbox().notice_when(&key, |notice| matches!(notice.state, NoticeState::Delivered { .. })).await;
        Asked { run: run["run_id"].as_str().unwrap().to_owned(), pause, message }
    }

    /// The first message with a button about a pause.
    pub async fn message(&self, pause: &str) -> Message {
        self.until("a message", |slack| find(slack, |message| is_about(message, pause))).await
    }

    /// The message once nothing can be clicked in it any more.
    pub async fn settled(&self, message: &Message) -> Message {
        let is_over = |found: &Message| found.ts == message.ts && found.actions().is_empty();
        self.until("the end", |slack| find(slack, is_over)).await
    }

    /// What is found in Slack at last. Time passes as far as it must for what waits.
    pub async fn until<T>(&self, what: &str, find: impl Fn(&SlackServer) -> Option<T>) -> T {
        self.outbox().until(what, || find(&self.slack)).await
    }

    /// The run once it is over.
    pub async fn finished(&self, run: &str) -> Value {
        let begin = std::time::Instant::now();
        loop {
            let answer = self.get(&format!("/api/v1/runs/{run}")).await.expect(200);
            if answer["status"] == "done" {
                return answer;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{answer}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn pause(&self, pause: &str) -> Value {
        self.get(&format!("/api/v1/pauses/{pause}")).await.expect(200)
    }

    /// Seconds, by the server's clock.
    pub fn now(&self) -> i64 {
        self.clock.now().as_millis() / 1_000
    }

    /// Sends what Slack would send.
    pub async fn send(&self, signed: &Signed) -> Answer {
        Answer::to(self.interaction(signed)).await
    }

    pub fn interaction(&self, signed: &Signed) -> reqwest::RequestBuilder {
        self.request("POST", "/api/v1/slack/ops/interactions")
            .header("content-type", "application/x-www-form-urlencoded")
            .header("x-slack-request-timestamp", &signed.timestamp)
            .header("x-slack-signature", &signed.signature)
            .body(signed.body.clone())
    }

    /// A payload, signed now.
    pub async fn deliver(&self, payload: &Value) -> Answer {
        self.send(&Signed::new(KEY, self.now(), payload)).await
    }

    /// Somebody clicks a button of a message.
    pub async fn click(&self, user: &str, message: &Message, action: &str) -> Answer {
        let value = message.button(action).unwrap_or_else(|| panic!("no {action} in {:#}", message.blocks));
        self.deliver(&on(user, message).button(action, &value)).await
    }

    /// Somebody clicks a button that opens a modal; gives back the modal.
    pub async fn open(&self, user: &str, message: &Message, action: &str) -> Value {
        let before = self.slack.views().len();
        let answer = self.click(user, message, action).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, ""));
        self.slack.until("a modal", |slack| slack.views().get(before).cloned()).await
    }

    /// Somebody sends a modal off.
    pub async fn send_off(&self, user: &str, view: &Value, values: Value) -> Answer {
        self.deliver(&Click::by("T012", user).submission(view, values)).await
    }

    /// What the last one of so many single people was told.
    pub async fn whisper(&self, count: usize) -> (String, String) {
        let posted = self.slack.until("a word", |slack| slack.ephemerals().get(count - 1).cloned()).await;
        assert_eq!(posted.channel, CHANNEL);
        (posted.user, posted.text)
    }

    /// Ends when nothing is left to be told.
    pub async fn all_told(&self) {
        self.outbox().all_told().await;
    }

    /// Everything that was ever written, to see that nothing was.
    pub async fn everything(&self) -> String {
        everything(self.runtime()).await
    }
}

/// A click on a message.
pub fn on(user: &str, message: &Message) -> Click {
    Click { channel: message.channel.clone(), ts: message.ts.clone(), ..Click::by("T012", user) }
}

fn find(slack: &SlackServer, fits: impl Fn(&Message) -> bool) -> Option<Message> {
    slack.messages().into_iter().find(fits)
}

fn is_about(message: &Message, pause: &str) -> bool {
    message.blocks.to_string().contains(pause)
}

/// A pause that Slack was told of.
pub struct Asked {
    pub run: String,
    pub pause: String,
    pub message: Message,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

impl Answer {
    pub async fn to(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        Self { status: response.status().as_u16(), body: response.text().await.unwrap() }
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.json()
    }

    #[track_caller]
    pub fn refuses(&self, status: u16, code: &str) -> Value {
        assert_eq!((self.status, self.json()["code"].as_str()), (status, Some(code)), "{}", self.body);
        self.json()
    }

    /// Slack gets nothing but an acknowledgement.
    #[track_caller]
    pub fn acknowledges(&self) {
        assert_eq!((self.status, self.body.as_str()), (200, ""));
    }
}
