//! Other reasons to wait: questions, the agent's own words, agents below, a caller who wants to see every call.

use serde_json::{Value, json};

use crate::world::{Reading, World, deciding};

async fn asked(world: &World) -> (String, Value) {
    let answer = world.say("suspend please").await;
    assert_eq!(answer.types().last().unwrap(), "tool-call-suspended");
    (answer.run(), answer.payloads("tool-call-suspended").pop().unwrap())
}

#[tokio::test]
async fn a_question_suspends_the_call_and_is_answered_with_data() {
    let world = World::start().await;
    for data in [
        json!({"answers": {"Which env?": "prod"}}),
        json!({"answers": {"Which env?": ["prod"]}}),
        json!({"Which env?": "prod"}),
        json!({"answer": "prod"}),
        json!("prod"),
    ] {
        let (run, waiting) = asked(&world).await;
        assert_eq!(waiting["toolName"], json!("ask_user_question"));
        assert_eq!(waiting["suspendPayload"], waiting["args"]);
        let schema: Value = serde_json::from_str(waiting["resumeSchema"].as_str().unwrap()).unwrap();
        let question = &schema["properties"]["answers"]["properties"]["Which env?"];
        assert_eq!(question["enum"], json!(["prod", "test"]));
        let body = json!({"runId": run, "toolCallId": waiting["toolCallId"], "resumeData": data});
        let resumed = world.post("/agents/file-agent/resume-stream", body).await;
        assert_eq!(resumed.types()[..3], ["tool-call", "tool-result", "step-finish"]);
        assert_eq!(resumed.payloads("tool-result")[0]["result"], json!({"answers": {"Which env?": "prod"}}));
        assert_eq!(resumed.types().last().unwrap(), "finish");
    }
}

#[tokio::test]
async fn data_that_does_not_answer_is_refused_and_the_question_still_waits() {
    let world = World::start().await;
    let (run, waiting) = asked(&world).await;
    let before = world.everything().await;
    let with = |data: Value| json!({"runId": run, "toolCallId": waiting["toolCallId"], "resumeData": data});
    for data in [
        json!({"answer": "nowhere"}),
        json!({"answers": {"Another?": "prod"}}),
        json!({"answers": {}}),
        json!({"answers": {"Which env?": ["prod", "test"]}}),
        json!({"answer": 7}),
        json!({"approved": true}),
        json!(null),
        json!([]),
    ] {
        let refused = world.post("/agents/file-agent/resume-stream", with(data.clone())).await;
        assert_eq!(refused.refusal(), (400, "invalid_resume_data".to_owned()), "{data}");
        assert_eq!(refused.json()["issues"][0]["field"], json!("resumeData"));
    }
    let approved = world.approve(&run, waiting["toolCallId"].as_str().unwrap()).await;
    assert_eq!(approved.refusal(), (400, "invalid_resume_data".to_owned()));
    assert_eq!(world.everything().await, before, "it was not spent");
    let resumed = world.post("/agents/file-agent/resume-stream", with(json!({"answer": "test"}))).await;
    assert_eq!(resumed.types().last().unwrap(), "finish");
    let again = world.post("/agents/file-agent/resume-stream", with(json!({"answer": "test"}))).await;
    assert_eq!(again.types(), resumed.types());
    let other = world.post("/agents/file-agent/resume-stream", with(json!({"answer": "prod"}))).await;
    assert_eq!(other.refusal(), (409, "already_decided".to_owned()));
}

#[tokio::test]
async fn an_approval_can_be_given_as_data() {
    let world = World::start().await;
    let (run, calls) = world.held("delete a.txt").await;
    let with = |data: Value| json!({"runId": run, "toolCallId": calls[0], "resumeData": data});
    for bad in [
        json!({"approved": "yes"}),
        json!({}),
        json!({"approved": true, "args": {}}),
        json!({"approved": true, "reason": "x"}),
    ] {
        let refused = world.post("/agents/file-agent/resume-stream", with(bad)).await;
        assert_eq!(refused.refusal(), (400, "invalid_resume_data".to_owned()));
    }
    assert!(world.tools.calls().is_empty());
    let resumed = world.post("/agents/file-agent/resume-stream", with(json!({"approved": true}))).await;
    assert_eq!(resumed.payloads("tool-result").len(), 1);
    assert_eq!(world.tools.calls().len(), 1);
}

#[tokio::test]
async fn a_caller_may_want_to_see_every_call_of_a_run_also_after_a_restart() {
    let mut world = World::start().await;
    let free = world.say("what time").await;
    assert_eq!(free.types().last().unwrap(), "finish");
    assert_eq!(world.tools.calls().len(), 1);

    let body = json!({"messages": "what time", "requireToolApproval": true});
    let held = world.post("/agents/file-agent/stream", body).await;
    let (run, calls) = (held.run(), held.waiting());
    assert_eq!(calls.len(), 1);
    assert_eq!(world.tools.calls().len(), 1, "it waits");
    world.restart().await;
    let resumed = world.approve(&run, &calls[0]).await;
    assert_eq!(resumed.types().last().unwrap(), "finish");
    assert_eq!(world.tools.calls().len(), 2);

    let inner = json!({"messages": "pass it on", "requireToolApproval": true});
    let held = world.post("/agents/boss-agent/stream", inner).await;
    assert_eq!(held.payloads("tool-call-approval")[0]["toolName"], json!("file-agent"));
}

#[tokio::test]
async fn what_is_not_held_runs_beside_what_is() {
    let world = World::start().await;
    let held = world.say("mixed").await;
    assert_eq!(held.payloads("tool-result")[0]["toolName"], json!("getTime"), "at once, and not after the decision");
    let resumed = world.approve(&held.run(), &held.waiting()[0]).await;
    assert_eq!(resumed.payloads("tool-result").len(), 1);
    assert_eq!(world.tools.calls().len(), 2);
}

#[tokio::test]
async fn a_stream_that_is_held_open_goes_on_after_the_decision() {
    let world = World::start().await;
    let body = json!({"messages": "parallel delete", "holdOpen": true});
    let mut open = Reading::begin(world.request("POST", "/agents/file-agent/stream").json(&body)).await;
    let first = open.until("tool-call-approval").await;
    let second = open.next().await.unwrap();
    assert_eq!(second["type"], json!("tool-call-approval"));
    let run = first["runId"].as_str().unwrap();
    for waiting in [&second, &first] {
        world.approve(run, waiting["payload"]["toolCallId"].as_str().unwrap()).await.chunks();
        let result = open.until("tool-result").await;
        assert_eq!(result["payload"]["toolCallId"], waiting["payload"]["toolCallId"]);
    }
    open.until("finish").await;
    assert_eq!(open.next().await, None);
    assert_eq!(world.tools.calls().len(), 2);
}

#[tokio::test]
async fn the_agents_own_words_are_confirmed_like_a_call() {
    let world = World::start().await;
    let asks = || world.post("/agents/careful-agent/stream", json!({"messages": "be careful"}));
    let held = asks().await;
    let waiting = &held.payloads("tool-call-approval")[0];
    assert_eq!(waiting["toolName"], json!("confirmation"));
    assert_eq!(waiting["args"], json!({"message": "Please confirm: all of it goes."}));
    let id = waiting["toolCallId"].as_str().unwrap();
    let resumed = world.post("/agents/careful-agent/approve-tool-call", deciding(&held.run(), id)).await;
    assert_eq!(resumed.types().last().unwrap(), "finish", "{:?}", resumed.types());
    assert_eq!(world.model.last_request().last_user(), "Confirmed. Go on.");
    let held = asks().await;
    let body = json!({"runId": held.run(), "reason": "no way"});
    world.post("/agents/careful-agent/decline-tool-call", body).await.chunks();
    assert_eq!(world.model.last_request().last_user(), "Not confirmed: no way");
}

#[tokio::test]
async fn a_call_of_an_agent_below_is_shown_and_decided_where_it_is_held() {
    let world = World::start().await;
    let held = world.post("/agents/boss-agent/stream", json!({"messages": "pass it on"})).await;
    let waiting = &held.payloads("tool-call-approval")[0];
    assert_eq!((&waiting["toolName"], &waiting["args"]), (&json!("deleteFile"), &json!({"path": "a.txt"})));
    let id = waiting["toolCallId"].as_str().unwrap();
    assert!(held.payloads("tool-call").iter().any(|call| call["toolCallId"] == *id), "it is shown before");
    let resumed = world.post("/agents/boss-agent/approve-tool-call", deciding(&held.run(), id)).await;
    assert!(resumed.payloads("tool-result").iter().any(|result| result["toolCallId"] == *id));
    assert_eq!(resumed.types().last().unwrap(), "finish");
    assert_eq!(world.tools.calls().len(), 1);
}

#[tokio::test]
async fn a_hand_off_is_a_call_with_a_result_and_the_other_agent_goes_on() {
    let world = World::start().await;
    let answer = world.post("/agents/boss-agent/stream", json!({"messages": "hand it over"})).await;
    let (calls, results) = (answer.payloads("tool-call"), answer.payloads("tool-result"));
    assert_eq!((calls.len(), results.len()), (1, 1), "{:?}", answer.types());
    assert_eq!(calls[0]["toolCallId"], results[0]["toolCallId"]);
    assert_eq!((answer.text().as_str(), answer.types().last().unwrap().as_str()), ("I took over.", "finish"));
}

#[tokio::test]
async fn what_the_model_says_is_told_while_it_speaks() {
    use holdpoint_testkit::model_server::{Answer, Gate};
    let world = World::start().await;
    let gate = Gate::closed();
    world.model.push(Answer::tokens(["Hel"]).and_gate(&gate).and_tokens(["lo."]));
    let request = world.request("POST", "/agents/file-agent/stream").json(&json!({"messages": "hi"}));
    let mut reading = Reading::begin(request).await;
    assert_eq!(reading.until("text-delta").await["payload"]["text"], json!("Hel"));
    gate.open();
    assert_eq!(reading.until("text-delta").await["payload"]["text"], json!("lo."));
    assert_eq!(reading.next().await.unwrap()["type"], json!("text-end"));
}

#[tokio::test]
async fn a_model_that_gives_no_reply_ends_the_run_and_tells_nothing_of_itself() {
    use holdpoint_testkit::model_server::Answer;
    let world = World::start().await;
    world.model.push(Answer::error(401, "a-key-for-tests is wrong"));
    let failed = world.say("hi").await;
    let types = failed.types();
    assert_eq!(types[types.len() - 3..], ["error", "step-finish", "finish"]);
    assert_eq!(failed.payloads("finish")[0]["stepResult"]["reason"], json!("error"));
    assert!(!failed.body.contains("a-key-for-tests"), "{}", failed.body);
    assert_eq!(world.suspended().await["total"], json!(0));
}
