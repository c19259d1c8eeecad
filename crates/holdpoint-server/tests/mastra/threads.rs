//! Threads: remembered conversations, and what waits in them.

use serde_json::{Value, json};

use crate::world::{Answer, World, deciding};

async fn say(world: &World, thread: &str, resource: &str, message: &str) -> Answer {
    let body = json!({"messages": message, "memory": {"thread": thread, "resource": resource}});
    world.post("/agents/mem-agent/stream", body).await
}

#[tokio::test]
async fn what_waits_is_listed_by_thread_and_resource() {
    let world = &World::start().await;
    let one = say(world, "th-1", "user-1", "delete a.txt").await;
    let two = say(world, "th-2", "user-2", "parallel delete").await;
    let list = |query: &str| {
        let path = format!("/agents/mem-agent/suspended-runs{query}");
        async move { world.get(&path).await.json() }
    };
    let by_thread = list("?threadId=th-1&resourceId=user-1").await;
    assert_eq!(by_thread["total"], json!(1));
    let run = &by_thread["runs"][0];
    assert_eq!(
        (&run["runId"], &run["status"], &run["threadId"], &run["resourceId"]),
        (&json!(one.run()), &json!("suspended"), &json!("th-1"), &json!("user-1"))
    );
    let call = &run["toolCalls"][0];
    assert_eq!(
        (&call["toolCallId"], &call["toolName"], &call["args"], &call["requiresApproval"]),
        (&json!(one.waiting()[0]), &json!("deleteFile"), &json!({"path": "a.txt"}), &json!(true))
    );
    assert_eq!(list("?resourceId=user-2").await["runs"][0]["toolCalls"].as_array().unwrap().len(), 2);
    assert_eq!(list("?threadId=th-1&resourceId=user-2").await, json!({"runs": [], "total": 0}));
    assert_eq!(list("?threadId=nowhere").await, json!({"runs": [], "total": 0}));
    let all = list("?requestContext=e30%3D").await;
    assert_eq!(all["total"], json!(2));
    let page = list("?perPage=1&page=1").await;
    assert_eq!((page["runs"].as_array().unwrap().len(), &page["total"]), (1, &json!(2)));
    assert_ne!(page["runs"][0], list("?perPage=1&page=0").await["runs"][0]);
    assert_eq!(list("?fromDate=2026-11-15T00:00:00Z&toDate=2026-11-16T00:00:00.000Z").await["total"], json!(2));
    assert_eq!(list("?fromDate=2027-01-01T00:00:00Z").await["total"], json!(0));
    for bad in ["?page=x", "?perPage=-1", "?fromDate=yesterday"] {
        let refused = world.get(&format!("/agents/mem-agent/suspended-runs{bad}")).await;
        assert_eq!(refused.status, 400, "{bad}");
        assert!(refused.json()["issues"].is_array());
    }
    assert_eq!(world.suspended().await["total"], json!(0), "of another agent nothing waits");
    drop(two);
}

#[tokio::test]
async fn a_page_that_is_loaded_again_finds_what_was_said_and_what_waits() {
    let world = &World::start().await;
    let held = say(world, "th-1", "user-1", "delete a.txt").await;
    let (run, call) = (held.run(), held.waiting().pop().unwrap());
    let messages = |more: &str| {
        let path = format!("/memory/threads/th-1/messages?agentId=mem-agent{more}");
        async move { world.get(&path).await.json() }
    };
    let before = messages("").await;
    assert_eq!((&before["total"], &before["hasMore"], &before["uiMessages"]), (&json!(2), &json!(false), &Value::Null));
    let (user, assistant) = (&before["messages"][0], &before["messages"][1]);
    assert_eq!((&user["role"], &user["content"]["content"]), (&json!("user"), &json!("delete a.txt")));
    assert_eq!((&user["threadId"], &user["resourceId"]), (&json!("th-1"), &json!("user-1")));
    let parts = assistant["content"]["parts"].as_array().unwrap();
    assert_eq!(parts[0]["text"], json!("I will delete it. "));
    assert_eq!(parts[1]["toolInvocation"]["state"], json!("call"));
    let pending = &assistant["content"]["metadata"]["pendingToolApprovals"][&call];
    assert_eq!(
        (&pending["type"], &pending["runId"], &pending["toolCallId"]),
        (&json!("approval"), &json!(run), &json!(call))
    );

    world.post("/agents/mem-agent/approve-tool-call", deciding(&run, &call)).await.chunks();
    let after = messages("").await;
    assert_eq!(after["total"], json!(3));
    let invocation = &after["messages"][1]["content"]["parts"][1]["toolInvocation"];
    assert_eq!(
        (&invocation["state"], &invocation["approval"]),
        (&json!("result"), &json!({"id": call, "approved": true}))
    );
    assert_eq!(after["messages"][1]["content"]["metadata"], json!({}));
    assert_eq!(messages("&perPage=1&page=2").await["messages"][0], after["messages"][2]);
    assert_eq!(messages("&perPage=2").await["hasMore"], json!(true));
    assert_eq!(messages("&perPage=false").await["messages"], after["messages"]);

    let held = say(world, "th-1", "user-1", "delete a.txt").await;
    let body = json!({"runId": held.run(), "toolCallId": held.waiting()[0], "reason": "nope"});
    world.post("/agents/mem-agent/decline-tool-call", body).await.chunks();
    let declined = messages("").await;
    let invocation = &declined["messages"][4]["content"]["parts"][1]["toolInvocation"];
    assert_eq!(invocation["state"], json!("output-denied"));
    assert_eq!(invocation["approval"]["reason"], json!("nope"));
    let unknown = world.get("/memory/threads/nowhere/messages?agentId=mem-agent").await;
    assert_eq!(unknown.refusal(), (404, "thread_not_found".to_owned()));
}

#[tokio::test]
async fn an_approval_can_be_sent_by_thread_and_what_follows_is_read_there() {
    let world = &World::start().await;
    let held = say(world, "th", "user-1", "delete a.txt").await;
    let (run, call) = (held.run(), held.waiting().pop().unwrap());
    let send = |resource: &str, call: &str, approved: bool| {
        let body = json!({"resourceId": resource, "threadId": "th", "toolCallId": call, "approved": approved});
        async move { world.post("/agents/mem-agent/send-tool-approval", body).await }
    };
    assert_eq!(send("user-2", &call, true).await.refusal(), (404, "thread_not_found".to_owned()));
    assert_eq!(send("user-1", "nothing", true).await.refusal(), (409, "tool_call_not_suspended".to_owned()));
    assert!(world.tools.calls().is_empty());
    let accepted = json!({"accepted": true, "runId": run, "toolCallId": call});
    assert_eq!(send("user-1", &call, true).await.json(), accepted);
    assert_eq!(send("user-1", &call, true).await.json(), accepted, "the same once more");
    assert_eq!(send("user-1", &call, false).await.refusal(), (409, "already_decided".to_owned()));
    // The same decision joins what follows, so the end is awaited here.
    let joined = world.post("/agents/mem-agent/approve-tool-call", deciding(&run, &call)).await;
    assert_eq!(joined.types().last().unwrap(), "finish");
    assert_eq!(world.tools.calls().len(), 1);
    let unknown = json!({"resourceId": "u", "threadId": "nowhere", "toolCallId": "c", "approved": true});
    let refused = world.post("/agents/mem-agent/send-tool-approval", unknown).await;
    assert_eq!(refused.refusal(), (404, "thread_not_found".to_owned()));
}

#[tokio::test]
async fn a_thread_is_remembered_and_kept_for_one() {
    let world = World::start().await;
    say(&world, "th", "user-1", "hi").await.chunks();
    say(&world, "th", "user-1", "hi again").await.chunks();
    let roles: Vec<Value> =
        world.model.last_request().messages().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    let foreign = say(&world, "th", "user-2", "what did they say?").await;
    assert_eq!(foreign.refusal(), (404, "thread_not_found".to_owned()));
}

#[tokio::test]
async fn a_message_into_a_thread_that_waits_is_refused_and_says_what_waits() {
    let world = World::start().await;
    let held = say(&world, "th", "user-1", "delete a.txt").await;
    let refused = say(&world, "th", "user-1", "hi").await;
    assert_eq!(refused.refusal(), (409, "thread_busy".to_owned()));
    let body = refused.json();
    assert_eq!((&body["runId"], &body["waiting"]), (&json!(held.run()), &json!(held.waiting())));
    let resumed = world.post("/agents/mem-agent/approve-tool-call", deciding(&held.run(), &held.waiting()[0])).await;
    assert_eq!(resumed.types().last().unwrap(), "finish");
    assert_eq!(say(&world, "th", "user-1", "hi").await.types().last().unwrap(), "finish");
}
