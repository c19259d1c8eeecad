//! Who may do what, and what is not there for others.

use serde_json::{Value, json};

use crate::world::{Answer, Setup, World, credentials, deciding};

async fn post(world: &World, key: &str, path: &str, body: Value) -> Answer {
    Answer::to(world.request("POST", path).bearer_auth(key).json(&body)).await
}

#[tokio::test]
async fn a_program_starts_runs_and_only_a_person_approves() {
    let (credentials, [ana, ben, carla]) = credentials();
    let world = World::start_with(Some(credentials), Setup::default()).await;
    let held = post(&world, &ana, "/agents/file-agent/stream", json!({"messages": "delete a.txt"})).await;
    let (run, call) = (held.run(), held.waiting().pop().unwrap());
    let approve = "/agents/file-agent/approve-tool-call";

    let nobody = world.approve(&run, &call).await;
    assert_eq!(nobody.refusal(), (401, "unauthenticated".to_owned()));
    assert_eq!(post(&world, &ana, approve, deciding(&run, &call)).await.refusal(), (403, "forbidden".to_owned()));
    let unknown = post(&world, &ben, approve, deciding("no-such-run", &call)).await;
    let foreign = post(&world, &ben, approve, deciding(&run, &call)).await;
    assert_eq!((foreign.status, foreign.body), (unknown.status, unknown.body), "another's run is not there");
    let start = post(&world, &carla, "/agents/file-agent/stream", json!({"messages": "hi"})).await;
    assert_eq!(start.refusal(), (403, "forbidden".to_owned()));
    assert!(world.tools.calls().is_empty());

    let resumed = post(&world, &carla, approve, deciding(&run, &call)).await;
    assert_eq!(resumed.types().last().unwrap(), "finish");
    let late = post(&world, &ana, "/agents/file-agent/decline-tool-call", deciding(&run, &call)).await;
    assert_eq!(late.json()["decidedBy"], json!("carla"));
    assert_eq!(world.tools.calls().len(), 1);
}

#[tokio::test]
async fn what_is_anothers_is_neither_listed_nor_read() {
    let (credentials, [ana, ben, carla]) = credentials();
    let world = World::start_with(Some(credentials), Setup::default()).await;
    let body = json!({"messages": "delete a.txt", "memory": {"thread": "th", "resource": "u"}, "runId": "hers"});
    let held = post(&world, &ana, "/agents/file-agent/stream", body.clone()).await;
    let get = |key: &str, path: &str| {
        let request = world.request("GET", path).bearer_auth(key);
        async move { Answer::to(request).await }
    };
    let list = "/agents/file-agent/suspended-runs";
    assert_eq!(get(&ana, list).await.json()["total"], json!(1));
    assert_eq!(get(&ben, list).await.json(), json!({"runs": [], "total": 0}));
    assert_eq!(get(&carla, list).await.json()["total"], json!(1));
    let messages = "/memory/threads/th/messages";
    assert_eq!(get(&ana, messages).await.json()["total"], json!(2));
    assert_eq!(get(&ben, messages).await.refusal(), (404, "thread_not_found".to_owned()));
    let taken = post(&world, &ben, "/agents/file-agent/stream", body).await;
    assert_eq!(taken.refusal(), (409, "run_id_taken".to_owned()));
    let into = json!({"messages": "hi", "memory": {"thread": "th"}});
    let into = post(&world, &ben, "/agents/file-agent/stream", into).await;
    assert_eq!(into.refusal(), (404, "thread_not_found".to_owned()));
    let send = json!({"resourceId": "u", "threadId": "th", "toolCallId": held.waiting()[0], "approved": false});
    let send = post(&world, &ben, "/agents/file-agent/send-tool-approval", send).await;
    assert_eq!(send.refusal(), (404, "thread_not_found".to_owned()));
}

#[tokio::test]
async fn the_route_of_another_agent_decides_nothing() {
    let world = World::start().await;
    let (run, calls) = world.held("delete a.txt").await;
    let before = world.everything().await;
    for path in ["approve-tool-call", "decline-tool-call", "approve-tool-call-generate"] {
        let refused = world.post(&format!("/agents/mem-agent/{path}"), deciding(&run, &calls[0])).await;
        assert_eq!(refused.refusal(), (404, "run_not_found".to_owned()));
        let unknown = world.post(&format!("/agents/nope/{path}"), deciding(&run, &calls[0])).await;
        assert_eq!(unknown.refusal(), (404, "agent_not_found".to_owned()));
    }
    assert_eq!(world.everything().await, before);
    assert!(world.tools.calls().is_empty());
}

#[tokio::test]
async fn agents_are_shown_with_their_tools_and_without_what_they_are_told() {
    let world = World::start().await;
    let all = world.get("/agents?partial=true").await.json();
    let agent = &all["file-agent"];
    assert_eq!((&agent["id"], &agent["name"]), (&json!("file-agent"), &json!("file-agent")));
    assert_eq!(agent["tools"]["deleteFile"]["requireApproval"], json!(true));
    assert_eq!(agent["tools"]["getTime"]["requireApproval"], json!(false));
    let schema: Value = serde_json::from_str(agent["tools"]["deleteFile"]["inputSchema"].as_str().unwrap()).unwrap();
    assert_eq!(schema["json"]["required"], json!(["path"]));
    let one = world.get("/agents/file-agent").await.json();
    assert_eq!((&one["tools"], one.get("id")), (&agent["tools"], None));
    assert!(!world.get("/agents").await.body.contains("You manage files"));
    let unknown = world.get("/agents/nope").await;
    assert_eq!(unknown.refusal(), (404, "agent_not_found".to_owned()));
    assert_eq!(unknown.json()["error"], json!("Agent with id nope not found"));
}

#[tokio::test]
async fn the_routes_stand_where_the_operator_wants_them_and_the_others_stay() {
    for prefix in ["/mastra/v1", ""] {
        let world = World::start_with(None, Setup { prefix, ..Setup::default() }).await;
        let (run, calls) = world.held("delete a.txt").await;
        assert_eq!(world.approve(&run, &calls[0]).await.types().last().unwrap(), "finish");
        let url = format!("http://{}/api/v1/agents", world.running().address());
        let native = reqwest::Client::builder().no_proxy().build().unwrap().get(url).send().await.unwrap();
        assert!(native.json::<Value>().await.unwrap()["agents"].is_array());
    }
}
