//! What is wrong with an approval or a refusal, row by row: each is refused by name and changes nothing, or is what it
//! says.

use std::time::Duration;

use holdpoint_core::ids::ActorId;
use serde_json::{Value, json};

use crate::world::{Answer, Setup, World, credentials, deciding};

/// The rows, and the test of each.
const ROWS: [(&str, &str); 20] = [
    ("an empty or malformed body", "row_1_a_body_that_is_no_json"),
    ("a run that is not named", "row_2_no_run"),
    ("a run's name of another type or shape", "row_3_a_name_that_no_run_can_have"),
    ("an unknown run", "row_4_a_run_that_is_not_there"),
    ("another user's run", "row_5_a_run_of_somebody_else_is_not_there"),
    ("a run of another agent", "row_6_a_run_of_another_agent_is_not_there"),
    ("a run that is at work, done or failed", "row_7_a_run_that_does_not_wait"),
    ("an unknown call", "row_8_a_call_that_is_not_there"),
    ("a call that was decided while a newer one waits", "row_9_a_call_of_before_does_not_touch_a_newer_one"),
    ("no call, where two wait", "row_10_no_call_where_two_wait"),
    ("no call, where one waits", "row_11_no_call_where_one_waits_is_that_one"),
    ("an empty call", "row_12_a_call_without_a_name"),
    ("an approval twice", "row_13_the_same_approval_again_replays"),
    ("an approval and then a refusal", "row_14_a_refusal_after_an_approval"),
    ("arguments with an approval", "row_15_arguments_with_a_decision"),
    ("info that is too long, no text or hides something", "row_16_info_that_cannot_be_told"),
    ("info with an approval", "row_17_info_with_an_approval"),
    ("a tool that was changed or removed", "an_approval_of_a_tool_that_cannot_be_had_as_it_was_shown_decides_nothing"),
    ("a large run that was just written", "row_19_a_large_run_is_approved_right_after_it_was_written"),
    ("a call that expired or whose run was ended", "row_20_too_late"),
];

#[test]
fn every_row_has_a_test() {
    let tests = [include_str!("rows.rs"), include_str!("changed.rs")];
    for (number, (what, test)) in (1..).zip(ROWS) {
        let declared = format!("#[tokio::test]\nasync fn {test}()");
        assert!(tests.iter().any(|file| file.contains(&declared)), "row {number}, {what}, has no test {test}");
    }
}

const APPROVING: [&str; 2] = ["approve-tool-call", "approve-tool-call-generate"];
const DECLINING: [&str; 2] = ["decline-tool-call", "decline-tool-call-generate"];

fn deciding_routes() -> impl Iterator<Item = &'static str> {
    APPROVING.into_iter().chain(DECLINING)
}

/// Sends a body to these routes; each refuses it in this way, and nothing is written.
async fn refused(world: &World, routes: impl IntoIterator<Item = &str>, body: &Value, expected: (u16, &str)) {
    let before = world.everything().await;
    let ran = world.tools.calls().len();
    for route in routes {
        let answer = world.post(&format!("/agents/file-agent/{route}"), body.clone()).await;
        assert_eq!(answer.refusal(), (expected.0, expected.1.to_owned()), "{route} {body}");
    }
    assert_eq!(world.everything().await, before, "{body} changed something");
    assert_eq!(world.tools.calls().len(), ran, "{body} ran something");
}

#[tokio::test]
async fn row_1_a_body_that_is_no_json() {
    let world = World::start().await;
    world.held("delete a.txt").await;
    let before = world.everything().await;
    for route in deciding_routes() {
        for body in ["", "{", "{\"runId\":}", "not json"] {
            let request = world.request("POST", &format!("/agents/file-agent/{route}"));
            let answer = Answer::to(request.header("content-type", "application/json").body(body)).await;
            assert_eq!(answer.refusal(), (400, "invalid_json".to_owned()), "{route} {body}");
        }
    }
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn row_2_no_run() {
    let world = World::start().await;
    let (_, calls) = world.held("delete a.txt").await;
    refused(&world, deciding_routes(), &json!({"toolCallId": calls[0]}), (400, "missing_field")).await;
}

#[tokio::test]
async fn row_3_a_name_that_no_run_can_have() {
    let world = World::start().await;
    let (_, calls) = world.held("delete a.txt").await;
    let long = "x".repeat(10_240);
    for name in
        [json!(5), json!(null), json!(["x"]), json!(""), json!("../x"), json!("a b"), json!("a\nb"), json!(long)]
    {
        let body = json!({"runId": name, "toolCallId": calls[0]});
        refused(&world, deciding_routes(), &body, (400, "invalid_run_id")).await;
    }
}

#[tokio::test]
async fn row_4_a_run_that_is_not_there() {
    let world = World::start().await;
    let (_, calls) = world.held("delete a.txt").await;
    for name in ["no-such-run", "run_0198c0ffee007000800000000000beef", "00000000-0000-0000-0000-000000000000"] {
        refused(&world, deciding_routes(), &deciding(name, &calls[0]), (404, "run_not_found")).await;
    }
}

#[tokio::test]
async fn row_5_a_run_of_somebody_else_is_not_there() {
    let (credentials, [ana, ben, _]) = credentials();
    let world = World::start_with(Some(credentials), Setup::default()).await;
    let post = |key: &str, route: &str, body: Value| {
        let request = world.request("POST", &format!("/agents/file-agent/{route}")).bearer_auth(key).json(&body);
        async move { Answer::to(request).await }
    };
    let held = post(&ana, "stream", json!({"messages": "delete a.txt"})).await;
    let (run, call) = (held.run(), held.waiting().pop().unwrap());
    let before = world.everything().await;
    for route in deciding_routes() {
        let foreign = post(&ben, route, deciding(&run, &call)).await;
        let unknown = post(&ben, route, deciding("no-such-run", &call)).await;
        assert_eq!(foreign.refusal(), (404, "run_not_found".to_owned()));
        assert_eq!((foreign.status, foreign.body), (unknown.status, unknown.body), "nobody learns that it is there");
    }
    assert_eq!(world.everything().await, before);
    assert!(world.tools.calls().is_empty());
}

#[tokio::test]
async fn row_6_a_run_of_another_agent_is_not_there() {
    let world = World::start().await;
    let held = world.post("/agents/mem-agent/stream", json!({"messages": "delete a.txt"})).await;
    let body = deciding(&held.run(), &held.waiting()[0]);
    refused(&world, deciding_routes(), &body, (404, "run_not_found")).await;
}

#[tokio::test]
async fn row_7_a_run_that_does_not_wait() {
    use crate::world::Reading;
    use holdpoint_testkit::model_server::Answer as Reply;
    let world = World::start().await;
    let done = world.say("hi").await.run();
    world.model.push(Reply::error(401, "no"));
    let failed = world.say("hi").await.run();
    for run in [done, failed] {
        refused(&world, deciding_routes(), &json!({ "runId": run }), (409, "run_not_suspended")).await;
        refused(&world, deciding_routes(), &deciding(&run, "c"), (409, "tool_call_not_suspended")).await;
    }
    world.tools.close();
    let request = world.request("POST", "/agents/file-agent/stream").json(&json!({"messages": "what time"}));
    let mut at_work = Reading::begin(request).await;
    let run = at_work.next().await.unwrap()["runId"].clone();
    world.tools.wait_for_calls(1).await;
    refused(&world, deciding_routes(), &json!({ "runId": run }), (409, "run_not_suspended")).await;
    world.tools.open();
    at_work.until("finish").await;
}

#[tokio::test]
async fn row_8_a_call_that_is_not_there() {
    let world = World::start().await;
    let (run, calls) = world.held("delete a.txt").await;
    refused(&world, deciding_routes(), &deciding(&run, "nope"), (409, "tool_call_not_suspended")).await;
    let told = world.approve(&run, "nope").await.json();
    assert_eq!(told["waiting"], json!(calls));
    assert!(told["error"].as_str().unwrap().contains(&calls[0]), "{told}");
}

/// A call that was decided is told so, with who and when, which says more than that it does not wait.
#[tokio::test]
async fn row_9_a_call_of_before_does_not_touch_a_newer_one() {
    let world = World::start().await;
    let (run, calls) = world.held("twostep").await;
    let second = world.approve(&run, &calls[0]).await.waiting();
    refused(&world, DECLINING, &deciding(&run, &calls[0]), (409, "already_decided")).await;
    let before = world.everything().await;
    let again = world.approve(&run, &calls[0]).await;
    assert_eq!(again.waiting(), second, "it joins, and shows what waits now");
    assert_eq!(world.everything().await, before);
    assert_eq!(world.tools.calls().len(), 1);

    let (run, calls) = world.held("twostep").await;
    world.decline(&run, &calls[0], "no").await.chunks();
    refused(&world, APPROVING, &deciding(&run, &calls[0]), (409, "already_decided")).await;
}

#[tokio::test]
async fn row_10_no_call_where_two_wait() {
    let world = World::start().await;
    let (run, calls) = world.held("parallel delete").await;
    refused(&world, deciding_routes(), &json!({ "runId": run }), (409, "ambiguous_target")).await;
    let told = world.post("/agents/file-agent/approve-tool-call", json!({ "runId": run })).await.json();
    assert_eq!(told["waiting"], json!(calls));
}

#[tokio::test]
async fn row_11_no_call_where_one_waits_is_that_one() {
    let world = World::start().await;
    for (route, ran) in [("approve-tool-call", 1), ("decline-tool-call", 1)] {
        let (run, _) = world.held("delete a.txt").await;
        let answer = world.post(&format!("/agents/file-agent/{route}"), json!({ "runId": run })).await;
        assert_eq!(answer.types().last().unwrap(), "finish", "{route}");
        assert_eq!(world.tools.calls().len(), ran, "{route}");
    }
}

#[tokio::test]
async fn row_12_a_call_without_a_name() {
    let world = World::start().await;
    let (run, _) = world.held("delete a.txt").await;
    for call in [json!(""), json!(null), json!(7), json!("x".repeat(1_025))] {
        let body = json!({"runId": run, "toolCallId": call});
        refused(&world, deciding_routes(), &body, (400, "invalid_type")).await;
    }
}

#[tokio::test]
async fn row_13_the_same_approval_again_replays() {
    let world = World::start().await;
    let (run, calls) = world.held("delete a.txt").await;
    let first = world.approve(&run, &calls[0]).await;
    let again = world.approve(&run, &calls[0]).await;
    assert_eq!((again.types(), again.text()), (first.types(), first.text()));
    assert_eq!(world.tools.calls().len(), 1);
}

#[tokio::test]
async fn row_14_a_refusal_after_an_approval() {
    let world = World::start().await;
    let (run, calls) = world.held("delete a.txt").await;
    world.approve(&run, &calls[0]).await.chunks();
    refused(&world, DECLINING, &deciding(&run, &calls[0]), (409, "already_decided")).await;
    let told = world.decline(&run, &calls[0], "no").await.json();
    assert_eq!((&told["outcome"], &told["decidedBy"]), (&json!("approve"), &json!("local")));
    assert!(told["decidedAt"].as_str().unwrap().starts_with("2026-"), "{told}");
}

#[tokio::test]
async fn row_15_arguments_with_a_decision() {
    let world = World::start().await;
    let (run, calls) = world.held("delete a.txt").await;
    for name in ["args", "arguments", "input", "editedArgs", "editedArguments"] {
        let mut body = deciding(&run, &calls[0]);
        body[name] = json!({"path": "b.txt"});
        refused(&world, deciding_routes(), &body, (400, "unexpected_field")).await;
    }
    assert_eq!(world.approve(&run, &calls[0]).await.types().last().unwrap(), "finish");
    assert_eq!(world.tools.calls_by_tool(), [r#"deleteFile {"path":"a.txt"}"#], "what was shown");
}

#[tokio::test]
async fn row_16_info_that_cannot_be_told() {
    let world = World::start().await;
    let (run, calls) = world.held("delete a.txt").await;
    for (info, code) in [
        (json!("x".repeat(8 * 1_024 + 1)), "too_long"),
        (json!(7), "invalid_type"),
        (json!({"a": 1}), "invalid_type"),
        (json!("a\u{0}b"), "control_character"),
        (json!("a\u{1b}[2Kb"), "control_character"),
    ] {
        for name in ["info", "reason"] {
            let mut body = deciding(&run, &calls[0]);
            body[name] = info.clone();
            refused(&world, DECLINING, &body, (400, code)).await;
        }
    }
    let most = "x".repeat(8 * 1_024);
    assert_eq!(world.decline(&run, &calls[0], &most).await.types().last().unwrap(), "finish");
}

#[tokio::test]
async fn row_17_info_with_an_approval() {
    let world = World::start().await;
    let (run, calls) = world.held("delete a.txt").await;
    for name in ["info", "reason", "resumeData"] {
        let mut body = deciding(&run, &calls[0]);
        body[name] = json!("because");
        refused(&world, APPROVING, &body, (400, "unexpected_field")).await;
    }
    let mut body = deciding(&run, &calls[0]);
    body["approved"] = json!(false);
    refused(&world, APPROVING, &body, (400, "unexpected_field")).await;
}

#[tokio::test]
async fn row_19_a_large_run_is_approved_right_after_it_was_written() {
    use holdpoint_testkit::model_server::Answer as Reply;
    let world = World::start().await;
    let long = "x".repeat(900 << 10);
    world.model.push(Reply::empty().and_call_as("c", "deleteFile", r#"{"path":"a.txt"}"#));
    let held = world.post("/agents/file-agent/stream", json!({"messages": [long, "delete a.txt"]})).await;
    let resumed = world.approve(&held.run(), "c").await;
    assert_eq!(resumed.types().last().unwrap(), "finish");
    assert!(resumed.body.len() < 64 << 10, "the conversation is not repeated");
    assert_eq!(world.tools.calls().len(), 1);
}

#[tokio::test]
async fn row_20_too_late() {
    let world = World::start().await;
    let (run, calls) = world.held("delete a.txt").await;
    let runtime = world.running().app().runtime();
    let id = runtime.list_runs(&Default::default()).await.unwrap().runs[0].run;
    runtime.cancel_run(id, ActorId::local(), "not needed").await.unwrap();
    refused(&world, deciding_routes(), &deciding(&run, &calls[0]), (409, "withdrawn")).await;

    let (run, calls) = world.held("delete a.txt").await;
    world.clock.advance(Duration::from_secs(300));
    for route in deciding_routes() {
        let late = world.post(&format!("/agents/file-agent/{route}"), deciding(&run, &calls[0])).await;
        assert_eq!(late.refusal(), (410, "expired".to_owned()), "{route}");
        assert!(late.json()["expiredAt"].is_string());
    }
    assert!(world.tools.calls().is_empty());
}
