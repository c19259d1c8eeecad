//! Every kind of pause can be seen and answered here: a held call, a question, a call in doubt, also all at once.

use holdpoint_runtime::use_cases::WatchItem;
use holdpoint_testkit::model_server::Answer;
use serde_json::{Value, json};

use crate::world::{Reading, World, saying};

fn names(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(name, _)| name.as_str()).collect()
}

#[tokio::test]
async fn a_held_call_is_shown_and_runs_after_a_yes_with_exactly_what_was_shown() {
    let world = World::start().await;
    world.model.push(Answer::tokens(["I deploy."]).and_call_as("c1", "deploy", r#"{"version": "2.0"}"#));
    let events = world.say_a2ui("tool-agent", "s", "deploy v2.0").await.events();
    assert_eq!(names(&events), ["text", "interrupt", "done"]);
    let interrupt = &events[1].1;
    assert_eq!(interrupt["reason"], json!(r#"deploy {"version":"2.0"}"#));
    assert_eq!(interrupt["approval_key"], json!("s_1"));
    assert_eq!(
        interrupt["fields"],
        json!([{"name": "confirm", "type": "confirm", "label": "Approve deploy", "required": true}])
    );
    assert_eq!(world.state("tool-agent", "s").await["state"]["reason"], interrupt["reason"]);
    assert!(world.tools.calls().is_empty());

    world.model.push(Answer::text("It is live."));
    let events = world.resume_a2ui("tool-agent", "s", json!({"confirm": true})).await.events();
    assert_eq!(names(&events), ["tool_call", "tool_result", "text", "text", "text", "done"]);
    let call = json!({"id": "c1", "name": "deploy", "arguments": {"version": "2.0"}, "status": "calling"});
    assert_eq!(events[0].1, call);
    assert_eq!((&events[1].1["id"], &events[1].1["is_error"]), (&json!("c1"), &json!(false)));
    assert_eq!(world.tools.calls(), [r#"{"version":"2.0"}"#]);
}

#[tokio::test]
async fn a_call_that_was_refused_never_runs_and_the_model_is_told() {
    let world = World::start().await;
    world.model.push(Answer::empty().and_call_as("c1", "deploy", r#"{"version": "2.0"}"#));
    world.say("tool-agent", "s", "deploy v2.0").await.interrupt();
    world.model.push(Answer::text("Not deployed."));
    let events = world.resume_a2ui("tool-agent", "s", json!({"confirm": false})).await.events();
    assert_eq!(names(&events)[..2], ["tool_call", "tool_result"]);
    assert_eq!((&events[0].1["status"], &events[1].1["is_error"]), (&json!("error"), &json!(true)));
    let told = world.model.last_request().tool_results();
    assert_eq!(told, [("c1".to_owned(), "Tool execution was not approved.".to_owned())]);
    assert!(world.tools.calls().is_empty());
}

#[tokio::test]
async fn several_calls_are_decided_one_by_one_in_one_form_or_not_at_all() {
    let world = World::start().await;
    let both = Answer::empty()
        .and_call_as("c1", "deploy", r#"{"version": "1"}"#)
        .and_call_as("c2", "deploy", r#"{"version": "2"}"#)
        .and_call_as("c3", "look", r#"{"at": "logs"}"#);
    world.model.push(both);
    let events = world.say_a2ui("tool-agent", "s", "deploy both").await.events();
    assert_eq!(names(&events), ["tool_call", "tool_result", "interrupt", "done"], "what is not held runs at once");
    let fields = events[2].1["fields"].as_array().unwrap();
    let field_names: Vec<&Value> = fields.iter().map(|field| &field["name"]).collect();
    assert_eq!(field_names, ["confirm_1", "confirm_2"]);

    let before = world.everything().await;
    let partly = world.resume("tool-agent", "s", json!({"confirm_1": true})).await;
    assert_eq!((partly.status, partly.code().as_str()), (400, "missing_input"));
    assert_eq!(world.everything().await, before, "nothing was decided");

    world.model.push(Answer::text("One of them."));
    world.resume("tool-agent", "s", json!({"confirm_1": false, "confirm_2": true})).await.frames();
    assert_eq!(world.tools.calls(), [r#"{"at":"logs"}"#, r#"{"version":"2"}"#]);
}

#[tokio::test]
async fn what_is_held_can_be_decided_while_a_sibling_still_runs() {
    let world = World::start().await;
    world.tools.close();
    let both = Answer::empty().and_call_as("c1", "deploy", r#"{"version": "1"}"#).and_call_as(
        "c2",
        "look",
        r#"{"at": "logs"}"#,
    );
    world.model.push(both);
    let first = Reading::begin(world.request("POST", "/api/v1/chat/stream?a2ui=true").json(&saying(
        "tool-agent",
        "s",
        "deploy",
    )));
    let mut first = first.await;
    assert!(first.next().await.unwrap().contains("\"id\":\"c2\""));
    world.tools.wait_for_calls(1).await;
    assert_eq!(world.state("tool-agent", "s").await["interrupted"], json!(true));
    let body = json!({"agent_id": "tool-agent", "session_id": "s", "input": {"confirm": true}});
    let mut second = Reading::begin(world.request("POST", "/api/v1/chat/resume?a2ui=true").json(&body)).await;
    assert!(second.next().await.unwrap().contains("\"id\":\"c1\""));
    world.tools.wait_for_calls(2).await;
    world.model.push(Answer::tokens(["Both are done."]));
    world.tools.open();
    for reading in [&mut first, &mut second] {
        let mut last = Vec::new();
        while let Some(frame) = reading.next().await {
            last.push(frame);
        }
        let [.., said, done] = &last[..] else { panic!("{last:?}") };
        assert!(said.contains("Both are done.") && done.contains("\"type\":\"done\""), "{last:?}");
    }
    assert_eq!(world.tools.calls().len(), 2);
}

#[tokio::test]
async fn a_question_is_answered_by_choice_and_in_words() {
    let world = World::start().await;
    let asked = json!({"questions": [
        {"question": "Which region?", "options": [{"label": "eu"}, {"label": "us"}]},
        {"question": "Why?"},
    ]});
    world.model.push(Answer::empty().and_call_as("c1", "ask_user_question", asked.to_string()));
    let state = world.say("tool-agent", "s", "deploy").await.interrupt();
    assert_eq!(state["reason"], json!("Which region?\nWhy?"));
    assert_eq!(
        state["fields"],
        json!([
            {"name": "answer_1", "type": "select", "label": "Which region?", "required": true, "options": ["eu", "us"]},
            {"name": "answer_2", "type": "text", "label": "Why?", "required": true},
        ])
    );
    let wrong = world.resume("tool-agent", "s", json!({"answer_1": "mars", "answer_2": "x"})).await;
    assert_eq!((wrong.status, wrong.code().as_str()), (400, "invalid_option"));
    world.model.push(Answer::text("Noted."));
    let events = world.resume_a2ui("tool-agent", "s", json!({"answer_1": "us", "answer_2": "cheaper"})).await.events();
    assert_eq!(names(&events).last(), Some(&"done"));
    let told = world.model.last_request().tool_results();
    assert_eq!(told, [("c1".to_owned(), r#"{"answers":{"Which region?":"us","Why?":"cheaper"}}"#.to_owned())]);
}

#[tokio::test]
async fn a_call_in_doubt_after_a_crash_is_shown_and_settled_by_a_person() {
    let mut world = World::start().await;
    world.tools.close();
    world.model.push(Answer::empty().and_call_as("c1", "deploy", r#"{"version": "2.0"}"#));
    world.say("tool-agent", "s", "deploy").await.interrupt();
    let body = json!({"agent_id": "tool-agent", "session_id": "s", "input": {"confirm": true}});
    let resuming = tokio::spawn(world.request("POST", "/api/v1/chat/resume").json(&body).send());
    world.tools.wait_for_calls(1).await;
    world.kill_and_start().await;
    resuming.abort();
    world.tools.open();

    let mut watch = world.running().app().runtime().watch_session(&"s".parse().unwrap(), 1);
    let mut opened = 0;
    while opened < 2 {
        if let WatchItem::Event { event, .. } = watch.next().await.unwrap() {
            opened += usize::from(event.name() == "pause.opened");
        }
    }
    let state = world.state("tool-agent", "s").await["state"].clone();
    let fields: Vec<&Value> = state["fields"].as_array().unwrap().iter().map(|field| &field["name"]).collect();
    assert_eq!(fields, ["outcome", "result"]);
    world.model.push(Answer::text("Good."));
    let input = json!({"outcome": "happened", "result": "v2.0 is live"});
    assert_eq!(world.resume("tool-agent", "s", input).await.said(), "Good.");
    assert_eq!(world.model.last_request().tool_results(), [("c1".to_owned(), "v2.0 is live".to_owned())]);
    assert_eq!(world.tools.calls().len(), 1, "it ran once");
}

#[tokio::test]
async fn an_agent_without_an_interrupt_section_can_still_be_resumed_where_a_call_of_it_is_held() {
    let world = World::start().await;
    let nothing = world.resume("tool-agent", "s", json!({"confirm": true})).await;
    assert_eq!((nothing.status, nothing.code().as_str()), (404, "interrupt_not_supported"));
    world.model.push(Answer::empty().and_call_as("c1", "deploy", r#"{"version": "2.0"}"#));
    world.say("tool-agent", "s", "deploy").await.interrupt();
    world.model.push(Answer::text("Done."));
    assert_eq!(world.resume("tool-agent", "s", json!({"confirm": true})).await.said(), "Done.");
    let again = world.resume("tool-agent", "s", json!({"confirm": true})).await;
    assert_eq!((again.status, again.code().as_str()), (409, "no_pending_interrupt"));
}

#[tokio::test]
async fn a_pause_that_was_decided_through_another_door_is_no_longer_held_here() {
    let world = World::start().await;
    world.model.push(Answer::empty().and_call_as("c1", "deploy", r#"{"version": "2.0"}"#));
    world.say("tool-agent", "s", "deploy").await.interrupt();
    let listed = world.get("/api/v1/pauses?session=s&status=open").await.json();
    let id = listed["pauses"][0]["id"].as_str().unwrap().to_owned();
    world.model.push(Answer::text("Done."));
    let decided = world.post(&format!("/api/v1/pauses/{id}/decide"), json!({"decision": "deny"})).await;
    assert_eq!(decided.status, 200, "{}", decided.body);
    let late = world.resume("tool-agent", "s", json!({"confirm": true})).await;
    assert_eq!((late.status, late.code().as_str()), (409, "no_pending_interrupt"));
    assert!(world.tools.calls().is_empty());
}
