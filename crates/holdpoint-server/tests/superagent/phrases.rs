//! Which of a model's words ask a person.

use holdpoint_testkit::model_server::Answer;
use serde_json::json;

use crate::world::World;

/// The twelve phrases, each with the sentence that documents it.
const DOCUMENTED: [(&str, &str); 12] = [
    ("please confirm", "Please confirm you want to delete..."),
    ("do you confirm", "Do you confirm this action?"),
    ("are you sure", "Are you sure you want to proceed?"),
    ("shall i proceed", "Shall I proceed with the deployment?"),
    ("would you like me to proceed", "Would you like me to proceed?"),
    ("do you want to proceed", "Do you want to proceed with deletion?"),
    ("do you want me to", "Do you want me to send this email?"),
    ("should i go ahead", "Should I go ahead and reset the database?"),
    ("confirm before", "Please confirm before I execute this."),
    ("confirmation required", "Confirmation required for this action."),
    ("waiting for your confirmation", "Waiting for your confirmation..."),
    ("need your approval", "This action needs your approval."),
];

#[tokio::test]
async fn each_of_the_twelve_phrases_asks_by_its_documented_example() {
    let world = World::start().await;
    for (index, (phrase, example)) in DOCUMENTED.into_iter().enumerate() {
        let session = format!("documented-{index}");
        world.model.push(Answer::text(example));
        let answer = world.say("approval-agent", &session, "go").await;
        assert_eq!(answer.interrupt()["reason"], json!(example), "{phrase}");
        assert_eq!(answer.said(), example, "{phrase}: the words are streamed as well");
        assert_eq!(world.state("approval-agent", &session).await["interrupted"], json!(true), "{phrase}");
    }
}

#[tokio::test]
async fn each_phrase_asks_alone_in_any_case_and_over_line_breaks() {
    let world = World::start().await;
    for (index, (phrase, _)) in DOCUMENTED.into_iter().enumerate() {
        let spread = phrase.to_uppercase().replace(' ', " \r\n\t ");
        let reply = format!("Well: {spread}, then.");
        let session = format!("spread-{index}");
        world.model.push(Answer::tokens(reply.split_inclusive('\n')));
        world.say("approval-agent", &session, "go").await.interrupt();
    }
}

#[tokio::test]
async fn words_that_ask_nothing_do_not_stop_and_neither_does_an_agent_without_the_setting() {
    let world = World::start().await;
    world.model.push(Answer::text("The deployment is complete and was confirmed."));
    assert_eq!(world.say("approval-agent", "s", "go").await.frames().last().unwrap(), "[DONE]");
    assert_eq!(world.state("approval-agent", "s").await, json!({"interrupted": false}));
    world.model.push(Answer::text("Are you sure you want to proceed?"));
    let answer = world.say("plain-agent", "s", "go").await;
    assert_eq!(answer.said(), "Are you sure you want to proceed?");
    assert_eq!(world.state("plain-agent", "s").await, json!({"interrupted": false}));
}

#[tokio::test]
async fn an_agent_has_phrases_of_its_own_in_any_language() {
    let world = World::start().await;
    world.model.push(Answer::text("Sếp ơi, XIN XÁC NHẬN lệnh này."));
    world.say("form-agent", "s1", "mua").await.interrupt();
    world.model.push(Answer::text("Please confirm this order."));
    world.say("form-agent", "s2", "mua").await.interrupt();
}
