//! The native API as one client uses it, and what its answers say about a pause.

use std::time::Duration;

use holdpoint::Timestamp;
use holdpoint_testkit::linear::{Choice, PauseAnswer, PauseStands, Winner};
use serde_json::{Value, json};

use super::agents::Agent;
use super::child::{client_key, client_name};
use super::cluster::Cluster;
use super::http::{Http, Outcome, Request};

/// What a client learns from asking.
#[derive(Debug)]
pub(super) enum Reply<T> {
    Told(T),
    /// It was not done: nobody took it.
    NotDone,
    /// It may have been done.
    Unknown,
    /// Told something that must not be told.
    Wrong(String),
}

/// A run that was started.
#[derive(Debug, Clone)]
pub(super) enum Started {
    /// It waits for a person.
    Waiting(Waiting),
    /// It is over already.
    Over(String),
}

/// A run that waits for a person.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) run: String,
    pub(super) pause: String,
    pub(super) expires_at: Option<Timestamp>,
}

/// What a decider is told.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) answer: PauseAnswer,
    /// The pause as it was shown to the winner, where it is not the winner's.
    pub(super) shown: Option<PauseStands>,
}

/// One client.
pub(super) struct Client {
    pub(super) number: u32,
    http: Http,
}

impl Client {
    pub(super) fn new(number: u32) -> Self {
        Self { number, http: Http::new(client_key(number)) }
    }

    async fn ask(
        &mut self,
        cluster: &Cluster,
        instance: usize,
        request: Request<'_>,
        patience: Duration,
    ) -> Reply<(u16, Value)> {
        match self.http.ask((instance, cluster.address(instance)), &request, patience).await {
            Outcome::Answered { status: 429, .. } | Outcome::NotSent => Reply::NotDone,
            Outcome::Answered { status: 500, body } => {
                Reply::Wrong(format!("{} {}: {body}", request.method, request.path))
            }
            Outcome::Answered { status: 501.., .. } | Outcome::Unanswered => Reply::Unknown,
            Outcome::Answered { status, body } => Reply::Told((status, body)),
        }
    }

    /// Starts a run under a name, and waits for its pause; also where it was started under the name before.
    pub(super) async fn start(
        &mut self,
        cluster: &Cluster,
        instance: usize,
        agent: Agent,
        name: &str,
    ) -> Reply<Started> {
        let body = json!({"agent_id": agent.name, "input": "Book it."});
        let path = "/api/v1/runs?wait=20";
        let request = Request { method: "POST", path, name: Some(name), body: Some(&body) };
        match self.ask(cluster, instance, request, Duration::from_secs(30)).await {
            Reply::Told((200 | 201, run)) => match started(&run) {
                Some(started) => Reply::Told(started),
                // It is stored, and has not come to its pause yet.
                None => Reply::Unknown,
            },
            Reply::Told((status, body)) => Reply::Wrong(format!("a start was answered {status} {body}")),
            Reply::NotDone => Reply::NotDone,
            Reply::Unknown => Reply::Unknown,
            Reply::Wrong(why) => Reply::Wrong(why),
        }
    }

    /// Starts a run under a name and does not wait for it; gives its id.
    pub(super) async fn begin(&mut self, cluster: &Cluster, instance: usize, agent: Agent) -> Reply<String> {
        let body = json!({"agent_id": agent.name, "input": "Book it."});
        let request = Request { method: "POST", path: "/api/v1/runs", name: None, body: Some(&body) };
        match self.ask(cluster, instance, request, Duration::from_secs(30)).await {
            Reply::Told((201, run)) => Reply::Told(text(&run, "run_id")),
            Reply::Told((status, body)) => Reply::Wrong(format!("a start was answered {status} {body}")),
            Reply::NotDone => Reply::NotDone,
            Reply::Unknown => Reply::Unknown,
            Reply::Wrong(why) => Reply::Wrong(why),
        }
    }

    /// Decides a pause. The same decision may be sent again.
    pub(super) async fn decide(
        &mut self,
        cluster: &Cluster,
        instance: usize,
        pause: &str,
        choice: Choice,
        patience: Duration,
    ) -> Reply<Decided> {
        let winner = Winner { client: self.number, choice };
        let body = json!({"decision": word(choice)});
        let (path, name) =
            (format!("/api/v1/pauses/{pause}/decide"), format!("{pause} by {}", client_name(self.number)));
        let request = Request { method: "POST", path: &path, name: Some(&name), body: Some(&body) };
        match self.ask(cluster, instance, request, patience).await {
            Reply::Told((200, pause)) => match stands(&pause) {
                Some(shown) => {
                    let shown = Some(shown).filter(|shown| *shown != PauseStands::Decided(winner));
                    Reply::Told(Decided { answer: PauseAnswer::Won, shown })
                }
                None => Reply::Wrong(format!("a decision was answered 200 {pause}")),
            },
            Reply::Told((409, problem)) => match lost_to(&problem) {
                Some(stands) => Reply::Told(Decided { answer: PauseAnswer::Lost(stands), shown: None }),
                None => Reply::Wrong(format!("a decision was answered 409 {problem}")),
            },
            Reply::Told((status, body)) => Reply::Wrong(format!("a decision was answered {status} {body}")),
            Reply::NotDone => Reply::NotDone,
            Reply::Unknown => Reply::Unknown,
            Reply::Wrong(why) => Reply::Wrong(why),
        }
    }

    /// Cancels a run.
    pub(super) async fn cancel(
        &mut self,
        cluster: &Cluster,
        instance: usize,
        run: &str,
        patience: Duration,
    ) -> Reply<PauseAnswer> {
        let path = format!("/api/v1/runs/{run}/cancel");
        let request = Request { method: "POST", path: &path, name: None, body: None };
        match self.ask(cluster, instance, request, patience).await {
            Reply::Told((200, _)) => Reply::Told(PauseAnswer::Over),
            Reply::Told((409, problem)) if problem["code"] == "run_finished" => Reply::Told(PauseAnswer::Over),
            Reply::Told((status, body)) => Reply::Wrong(format!("a cancellation was answered {status} {body}")),
            Reply::NotDone => Reply::NotDone,
            Reply::Unknown => Reply::Unknown,
            Reply::Wrong(why) => Reply::Wrong(why),
        }
    }

    /// Looks at a pause.
    pub(super) async fn read(
        &mut self,
        cluster: &Cluster,
        instance: usize,
        pause: &str,
        patience: Duration,
    ) -> Reply<PauseAnswer> {
        let path = format!("/api/v1/pauses/{pause}");
        let request = Request { method: "GET", path: &path, name: None, body: None };
        match self.ask(cluster, instance, request, patience).await {
            Reply::Told((200, pause)) => match stands(&pause) {
                Some(stands) => Reply::Told(PauseAnswer::Saw(stands)),
                None => Reply::Wrong(format!("a pause cannot be read: {pause}")),
            },
            Reply::Told((status, body)) => Reply::Wrong(format!("a look at a pause was answered {status} {body}")),
            Reply::NotDone => Reply::NotDone,
            Reply::Unknown => Reply::Unknown,
            Reply::Wrong(why) => Reply::Wrong(why),
        }
    }

    /// Looks at a run.
    pub(super) async fn read_run(&mut self, cluster: &Cluster, instance: usize, run: &str) -> Reply<Value> {
        let path = format!("/api/v1/runs/{run}");
        let request = Request { method: "GET", path: &path, name: None, body: None };
        match self.ask(cluster, instance, request, Duration::from_secs(10)).await {
            Reply::Told((200, run)) => Reply::Told(run),
            Reply::Told((status, body)) => Reply::Wrong(format!("a look at a run was answered {status} {body}")),
            Reply::NotDone => Reply::NotDone,
            Reply::Unknown => Reply::Unknown,
            Reply::Wrong(why) => Reply::Wrong(why),
        }
    }

    /// Says what became of a call in doubt, as somebody does who has looked at where its effects are counted.
    pub(super) async fn settle_doubt(
        &mut self,
        cluster: &Cluster,
        instance: usize,
        pause: &str,
        has_happened: bool,
    ) -> Reply<()> {
        let body = match has_happened {
            true => json!({"decision": "happened", "content": "booked"}),
            false => json!({"decision": "abandon"}),
        };
        let path = format!("/api/v1/pauses/{pause}/decide");
        let request = Request { method: "POST", path: &path, name: Some(pause), body: Some(&body) };
        match self.ask(cluster, instance, request, Duration::from_secs(10)).await {
            Reply::Told((200 | 409, _)) => Reply::Told(()),
            Reply::Told((status, body)) => Reply::Wrong(format!("a call in doubt was answered {status} {body}")),
            Reply::NotDone => Reply::NotDone,
            Reply::Unknown => Reply::Unknown,
            Reply::Wrong(why) => Reply::Wrong(why),
        }
    }
}

/// The run of an answer, once it has come to a stop.
fn started(run: &Value) -> Option<Started> {
    let id = text(run, "run_id");
    if is_over(run) {
        return Some(Started::Over(id));
    }
    let pause = run["pauses"].get(0)?;
    let expires_at = pause["expires_at"].as_str().and_then(|at| at.parse().ok());
    Some(Started::Waiting(Waiting { run: id, pause: text(pause, "id"), expires_at }))
}

/// Whether a run came to its end.
pub(super) fn is_over(run: &Value) -> bool {
    matches!(run["status"].as_str(), Some("done" | "failed" | "cancelled"))
}

pub(super) fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn word(choice: Choice) -> &'static str {
    match choice {
        Choice::Approve => "approve",
        Choice::Deny => "deny",
    }
}

/// How a pause that was sent stands.
fn stands(pause: &Value) -> Option<PauseStands> {
    match pause["status"].as_str()? {
        "open" => Some(PauseStands::Open),
        "expired" => Some(PauseStands::Expired),
        "withdrawn" => Some(PauseStands::Withdrawn),
        "decided" => winner(&pause["decision"]["by"], &pause["decision"]["type"]),
        _ => None,
    }
}

/// How a pause stands that was no longer open.
fn lost_to(problem: &Value) -> Option<PauseStands> {
    match problem["code"].as_str()? {
        "expired" => Some(PauseStands::Expired),
        "withdrawn" => Some(PauseStands::Withdrawn),
        "already_decided" => winner(&problem["decided_by"], &problem["outcome"]),
        _ => None,
    }
}

fn winner(by: &Value, choice: &Value) -> Option<PauseStands> {
    let choice = match choice.as_str()? {
        "approve" => Choice::Approve,
        "deny" => Choice::Deny,
        _ => return None,
    };
    Some(PauseStands::Decided(Winner { client: client_number(by.as_str()?)?, choice }))
}

/// Which client goes by this name.
pub(super) fn client_number(name: &str) -> Option<u32> {
    name.strip_prefix("client-")?.parse().ok()
}
