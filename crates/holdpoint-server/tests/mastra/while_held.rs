//! A message into a thread in which a run waits or is under way: `on_message_while_held` says what becomes of it.

use holdpoint_core::event::RunEvent;
use holdpoint_core::message::Content;
use serde_json::{Value, json};

use crate::world::{Answer, Reading, Setup, World, credentials, deciding};

fn saying(message: &str) -> Value {
    json!({"messages": message, "memory": {"thread": "th", "resource": "user-1"}})
}

async fn say(world: &World, agent: &str, message: &str) -> Answer {
    world.post(&format!("/agents/{agent}/stream"), saying(message)).await
}

async fn approve(world: &World, agent: &str, held: &Answer) -> Answer {
    world.post(&format!("/agents/{agent}/approve-tool-call"), deciding(&held.run(), &held.waiting()[0])).await
}

/// What was staged in all runs, oldest first.
async fn staged(world: &World) -> Vec<String> {
    let runtime = world.running().app().runtime();
    let mut staged = Vec::new();
    for row in runtime.list_runs(&Default::default()).await.unwrap().runs {
        let entries = runtime.read_journal(row.run).await.unwrap();
        staged.extend(entries.iter().flat_map(|entry| entry.events.iter()).filter_map(|event| match event {
            RunEvent::InputStaged(staged) => Some(Content::to_text(&staged.content)),
            _ => None,
        }));
    }
    staged
}

#[tokio::test]
async fn a_message_that_is_queued_shows_what_waits_and_reaches_the_model_after_the_decision() {
    let world = World::start().await;
    let held = say(&world, "queue-agent", "delete a.txt").await;
    let queued = say(&world, "queue-agent", "and be quick").await;
    assert_eq!(queued.types(), ["tool-call-approval"], "what waits is announced once more");
    assert_eq!((queued.run(), queued.waiting()), (held.run(), held.waiting()));
    assert_eq!(world.model.requests().len(), 1, "nobody is answered before the decision");

    let resumed = approve(&world, "queue-agent", &held).await;
    assert_eq!(resumed.types().last().unwrap(), "finish");
    assert_eq!(world.tools.calls().len(), 1);
    let asked = world.model.last_request();
    let roles: Vec<&str> = asked.messages().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
    assert_eq!(asked.last_user(), "and be quick");
    let path = "/memory/threads/th/messages?agentId=queue-agent";
    let said = world.get(path).await.json();
    let said: Vec<&str> = said["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(said, ["user", "assistant", "user", "assistant"]);
}

#[tokio::test]
async fn a_message_that_is_queued_while_the_tool_runs_is_followed_to_the_end() {
    let world = World::start().await;
    let held = say(&world, "queue-agent", "delete a.txt").await;
    world.tools.close();
    let request = world.request("POST", "/agents/queue-agent/approve-tool-call");
    let mut first = Reading::begin(request.json(&deciding(&held.run(), &held.waiting()[0]))).await;
    world.tools.wait_for_calls(1).await;
    let request = world.request("POST", "/agents/queue-agent/stream").json(&saying("and be quick"));
    let mut queued = Reading::begin(request).await;
    world.tools.open();
    for reading in [&mut first, &mut queued] {
        assert_eq!(reading.until("tool-result").await["runId"], json!(held.run()));
        reading.until("finish").await;
        assert_eq!(reading.next().await, None);
    }
    assert_eq!(world.model.last_request().last_user(), "and be quick");
    assert_eq!(world.tools.calls().len(), 1);
}

#[tokio::test]
async fn a_message_that_supersedes_closes_what_waits_and_is_answered() {
    let world = World::start().await;
    let held = say(&world, "supersede-agent", "parallel delete").await;
    let answered = say(&world, "supersede-agent", "leave them alone").await;
    assert_eq!(answered.run(), held.run());
    let denied = answered.payloads("tool-output-denied");
    assert_eq!(denied.len(), 2);
    assert!(denied[0]["approval"]["reason"].as_str().unwrap().contains("sent a new message instead"));
    assert_eq!(answered.types().last().unwrap(), "finish");
    assert_eq!(world.model.last_request().last_user(), "leave them alone");
    let late = approve(&world, "supersede-agent", &held).await;
    assert_eq!(late.refusal(), (409, "already_decided".to_owned()));
    assert_eq!(world.get("/agents/supersede-agent/suspended-runs").await.json()["total"], json!(0));
    assert!(world.tools.calls().is_empty(), "nothing ran");
}

#[tokio::test]
async fn generate_queues_and_supersedes_as_streams_do() {
    let world = World::start().await;
    for agent in ["queue-agent", "supersede-agent"] {
        let path = format!("/agents/{agent}/generate");
        let held = world.post(&path, saying("delete a.txt")).await.json();
        let answer = world.post(&path, saying("and be quick")).await.json();
        assert_eq!(answer["runId"], held["runId"]);
        match agent {
            "queue-agent" => assert_eq!(answer["finishReason"], json!("suspended")),
            _ => assert_eq!(answer["finishReason"], json!("stop")),
        }
    }
    assert!(world.tools.calls().is_empty());
}

#[tokio::test]
async fn a_message_that_is_sent_again_under_its_name_is_handed_over_once() {
    for agent in ["queue-agent", "supersede-agent"] {
        let mut world = World::start().await;
        let held = say(&world, agent, "delete a.txt").await;
        let path = &format!("/agents/{agent}/stream");
        let mut named = saying("and be quick");
        named["runId"] = json!("message-1");
        let (one, other) = tokio::join!(world.post(path, named.clone()), world.post(path, named.clone()));
        world.restart().await;
        let third = world.post(path, named.clone()).await;
        for answer in [&one, &other, &third] {
            assert_eq!(answer.run(), held.run());
            let last = if agent == "queue-agent" { "tool-call-approval" } else { "finish" };
            assert_eq!(answer.types().last().unwrap(), last);
        }
        assert_eq!(staged(&world).await, ["and be quick"]);
        let mut other = saying("something else");
        other["runId"] = json!("message-1");
        if agent == "queue-agent" {
            assert_eq!(world.post(path, other).await.refusal(), (409, "run_id_taken".to_owned()));
            assert_eq!(staged(&world).await, ["and be quick"]);
        }
    }
}

#[tokio::test]
async fn a_message_that_wants_every_call_held_is_not_handed_to_a_run_that_cannot_promise_it() {
    let world = World::start().await;
    for agent in ["queue-agent", "supersede-agent"] {
        let held = say(&world, agent, "delete a.txt").await;
        let before = world.everything().await;
        let mut strict = saying("what time");
        strict["requireToolApproval"] = json!(true);
        let refused = world.post(&format!("/agents/{agent}/stream"), strict.clone()).await;
        assert_eq!(refused.refusal(), (409, "thread_busy".to_owned()));
        assert_eq!(refused.json()["runId"], json!(held.run()));
        assert_eq!(world.everything().await, before);
    }
    // A run that was begun with it takes such messages.
    let strict = json!({"messages": "what time", "requireToolApproval": true, "memory": {"thread": "strict"}});
    let held = world.post("/agents/queue-agent/stream", strict.clone()).await;
    let queued = world.post("/agents/queue-agent/stream", strict).await;
    assert_eq!((queued.run(), queued.waiting()), (held.run(), held.waiting()));
    assert!(world.tools.calls().is_empty());
}

#[tokio::test]
async fn nobody_closes_or_adds_to_what_is_anothers() {
    let (credentials, [ana, ben, _]) = credentials();
    let world = World::start_with(Some(credentials), Setup::default()).await;
    let post = |key: &str, agent: &str, body: Value| {
        let request = world.request("POST", &format!("/agents/{agent}/stream")).bearer_auth(key).json(&body);
        async move { Answer::to(request).await }
    };
    for agent in ["queue-agent", "supersede-agent"] {
        let body = |message: &str, resource: &str| json!({"messages": message, "memory": {"thread": agent, "resource": resource}});
        let held = post(&ana, agent, body("delete a.txt", "user-1")).await;
        assert_eq!(held.waiting().len(), 1);
        let before = world.everything().await;
        for (key, resource) in [(&ben, "user-1"), (&ana, "user-2")] {
            let refused = post(key, agent, body("hi", resource)).await;
            assert_eq!(refused.refusal(), (404, "thread_not_found".to_owned()));
        }
        assert_eq!(world.everything().await, before);
    }
}

#[tokio::test]
async fn a_question_whose_time_is_up_is_not_in_the_way_as_one_that_waits() {
    let world = World::start().await;
    let held = say(&world, "mem-agent", "delete a.txt").await;
    world.clock.advance(std::time::Duration::from_secs(300));
    let answer = say(&world, "mem-agent", "hi").await;
    match answer.status {
        // The run goes on without the call, and is not over yet.
        409 => assert_eq!((&answer.json()["code"], &answer.json()["waiting"]), (&json!("thread_busy"), &json!([]))),
        _ => assert_eq!(answer.types().last().unwrap(), "finish"),
    }
    assert_eq!(approve(&world, "mem-agent", &held).await.refusal(), (410, "expired".to_owned()));
    assert!(world.tools.calls().is_empty());
}

#[tokio::test]
async fn an_approval_and_a_message_that_supersedes_race_and_the_tool_runs_only_if_the_approval_was_first() {
    let world = World::start().await;
    let mut ran = 0;
    for round in 0..20 {
        let saying = |message: &str| json!({"messages": message, "memory": {"thread": format!("th-{round}")}});
        let held = world.post("/agents/supersede-agent/stream", saying("delete a.txt")).await;
        let message = world.post("/agents/supersede-agent/stream", saying("hi"));
        let (approved, answered) = tokio::join!(approve(&world, "supersede-agent", &held), message);
        match approved.status {
            200 => ran += 1,
            _ => assert_eq!(approved.refusal(), (409, "already_decided".to_owned()), "round {round}"),
        }
        assert_eq!(answered.types().last().unwrap(), "finish", "round {round}: the message is answered either way");
        assert_eq!(world.tools.calls().len(), ran, "round {round}");
    }
}
