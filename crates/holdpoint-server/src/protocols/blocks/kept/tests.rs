//! What is kept says the same as what is read anew, costs only what is new, and stays within its bounds.

use holdpoint_models::scripted::{Reply, ScriptedModel};
use holdpoint_runtime::Runtime;
use holdpoint_runtime::agent::Agent;
use holdpoint_runtime::memory::MemoryStore;
use holdpoint_runtime::ports::clock::SystemClock;
use holdpoint_runtime::ports::model::ModelRequest;
use holdpoint_runtime::ports::tool::Tool;
use serde_json::json;

use super::*;
use crate::access::{Access, Caller, Door};
use crate::agents::{Catalogue, ServedAgent};
use crate::protocols::blocks::commands::{self, Answer, Order};
use crate::protocols::blocks::from_wire;
use crate::protocols::blocks::projection::{Request, Status};

/// A server whose agent books two things and asks before each, until it was told what came of it.
fn app() -> App {
    let model = ScriptedModel::by(|request: &ModelRequest| match request.turn {
        1 => Reply::call("book", json!({"what": "lamp"})).and_call("book", json!({"what": "chair"})),
        2 => Reply::text("One more.").and_call("book", json!({"what": "desk"})),
        _ => Reply::text("Done."),
    });
    let book = Tool::builder("book").schema(json!({"type": "object"})).needs_approval(true);
    let book = book.function(|_, _: serde_json::Value| async { "booked" }).unwrap();
    let agent = Agent::builder("clerk").model(Arc::new(model)).tool(book).build().unwrap();
    let agents = Catalogue::of([ServedAgent::new("clerk", agent.graph().unwrap())]);
    let runtime = Runtime::builder(Arc::new(MemoryStore::new(SystemClock::shared()))).build();
    App::builder(runtime, agents, Access::solo(Door::of_loopback("127.0.0.1:1".parse().unwrap(), &[]))).build()
}

fn id(session: &str) -> SessionId {
    SessionId::new(session).unwrap()
}

/// Carries out a command, and says what it was answered with: an event's type, or an error's code.
async fn send(app: &App, command: serde_json::Value) -> String {
    let asked = from_wire::command(&command.to_string(), None);
    let (caller, name) = (Caller::solo(), asked.request_id.as_deref());
    let order = Order::of(app, &caller, name, asked.command.unwrap()).unwrap();
    let answered = match commands::carry_out(app, &caller, name, order).await {
        Ok(done) => done.answer(app, None).await,
        Err(refused) => Err(refused),
    };
    match answered {
        Ok(Answer::Event(event)) => serde_json::to_value(&*event).unwrap()["type"].as_str().unwrap().to_owned(),
        Ok(Answer::Control(control)) => serde_json::to_value(&control).unwrap()["type"].as_str().unwrap().to_owned(),
        Err(refused) => refused.code.name().to_owned(),
    }
}

async fn say(app: &App, session: &str) -> String {
    send(app, json!({"type": "message", "agent_id": "clerk", "session_id": session, "content": "go"})).await
}

async fn decide(app: &App, session: &str, key: &str, decision: &str) -> String {
    let decisions = json!([{"type": decision}]);
    send(app, json!({"type": "approval", "session_id": session, "approval_key": key, "decisions": decisions})).await
}

/// Waits until nothing goes on in a session before somebody decides; says which requests are open.
async fn rest(app: &App, session: &SessionId) -> Vec<String> {
    let mut watch = app.runtime().watch_session(session, 1);
    let mut truth = Projection::new(session.clone());
    loop {
        let item = watch.next().await.unwrap();
        truth.take(&item);
        let WatchItem::Event { seq, .. } = item else { continue };
        let stored = app.runtime().session(session).await.unwrap().events;
        if seq == stored && truth.status() != Status::Running {
            return truth.open().map(|request| request.key.clone()).collect();
        }
    }
}

/// What can be known of a session.
#[derive(Debug, PartialEq)]
struct Seen {
    events: u64,
    head: u64,
    status: Status,
    requests: Vec<Arc<Request>>,
}

impl Seen {
    fn of(truth: &Projection, events: u64) -> Self {
        Self { events, head: truth.head_seq(), status: truth.status(), requests: truth.requests().to_vec() }
    }
}

async fn read_anew(app: &App, session: &SessionId, events: u64) -> Seen {
    let mut truth = Projection::new(session.clone());
    fold(app, session, 0, events, |agent, item| {
        if let Some((run, agent)) = agent {
            truth.learn(run, agent);
        }
        truth.take(item);
    })
    .await
    .unwrap();
    Seen::of(&truth, events)
}

/// Small numbers that come again from the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }
}

#[tokio::test]
async fn what_is_kept_and_what_is_read_anew_agree_whatever_happens_and_whatever_is_put_away() {
    for seed in 0..6 {
        println!("seed {seed}");
        let (app, mut dice) = (app(), Dice(seed));
        // Room for two of four sessions, so that some are put away and read again.
        let kept = Kept::within(Bounds { sessions_max: 2, ..Bounds::default() });
        let sessions = ["a", "b", "c", "d"];
        let mut settled = 0;
        for _ in 0..24 {
            let name = sessions[dice.below(sessions.len())];
            let session = id(name);
            if app.runtime().session(&session).await.is_err() {
                assert_eq!(say(&app, name).await, "message_start");
            }
            match rest(&app, &session).await.first() {
                None => assert_eq!(say(&app, name).await, "message_start"),
                Some(_) if dice.below(8) == 0 => {
                    send(&app, json!({"type": "cancel", "session_id": name})).await;
                }
                Some(key) => {
                    let decision = ["approve", "reject"][dice.below(2)];
                    assert_eq!(decide(&app, name, key, decision).await, "approval_resolved");
                    settled += 1;
                }
            }
            // In the middle of whatever follows.
            let other = id(sessions[dice.below(sessions.len())]);
            for session in [session, other] {
                let Ok(row) = app.runtime().session(&session).await else { continue };
                let look = |told: &Told| Seen::of(&told.truth, told.events);
                let seen = kept.look(&app, &session, row.events, look).await.unwrap();
                assert!(seen.events >= row.events);
                assert_eq!(seen, read_anew(&app, &session, seen.events).await);
                assert!(kept.size().0 <= 2);
            }
        }
        assert!(settled > 3, "a walk that settles nothing proves nothing");
    }
}

#[tokio::test]
async fn an_approval_reads_what_is_new_and_nothing_again() {
    let app = app();
    let session = id("s");
    let mut costs = Vec::new();
    for _ in 0..12 {
        assert_eq!(say(&app, "s").await, "message_start");
        let open = rest(&app, &session).await;
        let before = (app.blocks().kept().events_read(), app.runtime().session(&session).await.unwrap().events);
        assert_eq!(decide(&app, "s", &open[0], "approve").await, "approval_resolved");
        costs.push(app.blocks().kept().events_read() - before.0);
        let open = rest(&app, &session).await;
        decide(&app, "s", &open[0], "reject").await;
        assert_eq!(rest(&app, &session).await, Vec::<String>::new());
    }
    let stored = app.runtime().session(&session).await.unwrap().events;
    assert!(stored > 150, "{stored}");
    // What a run adds between two looks is far less than the session has.
    assert!(costs.iter().all(|cost| *cost < 40), "{costs:?} of {stored}");
    // Looking once more reads nothing at all.
    let kept = app.blocks().kept();
    kept.look(&app, &session, stored, |_| ()).await.unwrap();
    let before = kept.events_read();
    assert_eq!(kept.look(&app, &session, stored, |told| told.events).await.unwrap(), stored);
    assert_eq!(kept.events_read(), before);
}

#[tokio::test]
async fn many_who_look_at_once_read_a_session_once() {
    let app = app();
    say(&app, "s").await;
    let session = id("s");
    rest(&app, &session).await;
    let events = app.runtime().session(&session).await.unwrap().events;
    let kept = Arc::new(Kept::default());
    let before = app.blocks().kept().events_read();
    let mut looking = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (app, session, kept) = (app.clone(), session.clone(), kept.clone());
        looking.spawn(async move { kept.look(&app, &session, events, |told| told.events).await.unwrap() });
    }
    assert!(looking.join_all().await.into_iter().all(|seen| seen == events));
    assert_eq!(app.blocks().kept().events_read() - before, events);
}

#[tokio::test]
async fn so_many_bytes_are_kept_and_no_more() {
    let app = app();
    let kept = Kept::within(Bounds { bytes_max: 20_000, ..Bounds::default() });
    for name in ["a", "b", "c", "d", "e"] {
        say(&app, name).await;
        rest(&app, &id(name)).await;
        let events = app.runtime().session(&id(name)).await.unwrap().events;
        kept.look(&app, &id(name), events, |_| ()).await.unwrap();
        assert!(kept.size().1 <= 20_000, "{:?}", kept.size());
    }
    assert!((1..5).contains(&kept.size().0), "{:?}", kept.size());
    // A session that would leave little room for others is looked at all the same, and not kept.
    let small = Kept::within(Bounds { bytes_max: 10, ..Bounds::default() });
    let events = app.runtime().session(&id("a")).await.unwrap().events;
    assert_eq!(small.look(&app, &id("a"), events, |told| told.events).await.unwrap(), events);
    assert_eq!(small.size(), (0, 0));
}
