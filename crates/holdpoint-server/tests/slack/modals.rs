//! What is entered in modals: reasons, other arguments, answers; and what is told when it does not fit.

use serde_json::{Value, json};

use crate::world::World;

fn text(value: &str) -> Value {
    json!({"type": "plain_text_input", "value": value})
}

#[tokio::test]
async fn a_denial_carries_its_reason_to_the_model_or_none() {
    let world = World::new().await;
    let asked = world.ask("mailer", "ana").await;
    let view = world.open("UALICE", &asked.message, "deny").await;
    assert_eq!((&view["title"]["text"], &view["submit"]["text"]), (&json!("Do not run it"), &json!("Deny")));
    assert_eq!(view["blocks"][0]["optional"], true);
    assert_eq!(world.pause(&asked.pause).await["status"], "open", "nothing is decided before it is sent off");
    world.send_off("UALICE", &view, json!({"reason": {"text": text("ask me on Monday")}})).await.acknowledges();
    let decision = &world.pause(&asked.pause).await["decision"];
    assert_eq!((&decision["by"], &decision["via"]), (&json!("alice@example.com"), &json!("slack")));
    assert_eq!(world.finished(&asked.run).await["output"], "outcome: ask me on Monday");
    let other = world.ask("mailer", "ben").await;
    let view = world.open("UALICE", &other.message, "deny").await;
    world.send_off("UALICE", &view, json!({"reason": {"text": text("  ")}})).await.acknowledges();
    world.finished(&other.run).await;
    assert_eq!(world.effects.sent(), Vec::<String>::new());
}

#[tokio::test]
async fn other_arguments_are_checked_and_what_is_wrong_is_told_beside_the_field() {
    let world = World::new().await;
    let asked = world.ask("mailer", "<!channel> & ana").await;
    let view = world.open("UALICE", &asked.message, "edit").await;
    let held = view["blocks"][1]["element"]["initial_value"].as_str().unwrap();
    assert_eq!(held, "{\n  \"to\": \"\\u003c!channel\\u003e \\u0026 ana\"\n}");
    let send = async |value: &str| world.send_off("UALICE", &view, json!({"arguments": {"text": text(value)}})).await;
    for (value, told) in [
        ("", "arguments are missing"),
        ("{", "expected a key"),
        ("{\"to\":\"a\",\"to\":\"b\"}", "duplicate"),
        ("[]", "not of type"),
        ("{\"to\":7}", "to"),
        ("{\"copies\":1}", "to"),
    ] {
        let answer = send(value).await.expect(200);
        assert_eq!(answer["response_action"], "errors", "{answer}");
        assert!(answer["errors"]["arguments"].as_str().unwrap().contains(told), "{value}: {answer}");
    }
    assert_eq!(world.pause(&asked.pause).await["status"], "open");
    send("{\"to\": \"eve\", \"copies\": 2}").await.acknowledges();
    world.finished(&asked.run).await;
    assert_eq!(world.effects.sent(), [r#"{"copies":2,"to":"eve"}"#]);
    // What was sent off once more is told who was first.
    let late = send("{\"to\": \"mallory\"}").await.expect(200);
    assert_eq!(late["response_action"], "update");
    assert!(
        late["view"]["blocks"].to_string().contains("already decided: approve_edited by alice@example.com"),
        "{late}"
    );
    assert_eq!(world.effects.sent().len(), 1);
}

#[tokio::test]
async fn what_is_held_can_be_sent_off_as_it_stands_and_runs_unchanged() {
    let world = World::new().await;
    let hostile = "a\u{202e}b <@U1> & \"quoted\" \u{200b}";
    let asked = world.ask("mailer", hostile).await;
    let view = world.open("UALICE", &asked.message, "edit").await;
    let held = view["blocks"][1]["element"]["initial_value"].clone();
    world.send_off("UALICE", &view, json!({"arguments": {"text": text(held.as_str().unwrap())}})).await.acknowledges();
    world.finished(&asked.run).await;
    let sent: Value = serde_json::from_str(&world.effects.sent()[0]).unwrap();
    assert_eq!(sent["to"], hostile);
}

fn survey() -> String {
    let many: Vec<Value> = (1..=12).map(|number| json!({"label": format!("option {number}")})).collect();
    json!({"questions": [
        {"question": "Which colour?", "header": "Colour", "options": [
            {"label": "red", "description": "as a <!here> rose"}, {"label": "blue"}]},
        {"question": "Which sizes?", "multiSelect": true, "options": [{"label": "S"}, {"label": "M"}, {"label": "L"}]},
        {"question": "Which of many?", "options": many},
        {"question": "Anything else?"},
        {"question": "Who pays?", "options": [{"label": "me"}, {"label": "somebody", "input": true}]},
    ]})
    .to_string()
}

fn one(index: usize) -> Value {
    json!({"choice": {"selected_option": {"value": index.to_string()}}})
}

#[tokio::test]
async fn all_questions_stand_in_one_modal_and_are_answered_together() {
    let world = World::new().await;
    let asked = world.ask("asker", &survey()).await;
    assert_eq!(asked.message.actions(), ["answer", "deny", "open"]);
    let view = world.open("UALICE", &asked.message, "answer").await;
    let blocks = view["blocks"].as_array().unwrap();
    let kinds: Vec<&str> = blocks.iter().filter_map(|block| block["element"]["type"].as_str()).collect();
    let expected =
        ["radio_buttons", "checkboxes", "static_select", "plain_text_input", "radio_buttons", "plain_text_input"];
    assert_eq!(kinds, expected);
    assert!(blocks[0].to_string().contains("red: as a &lt;!here&gt; rose"), "{:#}", blocks[0]);
    let mut values = json!({
        "choice_0": one(1),
        "choice_1": {"choice": {"selected_options": [{"value": "0"}, {"value": "2"}]}},
        "choice_2": one(11),
        "text_3": {"text": text("nothing <at> all")},
        "choice_4": one(1),
    });
    // The option that takes words has none.
    let answer = world.send_off("UALICE", &view, values.clone()).await.expect(200);
    assert_eq!(answer["errors"], json!({"text_4": "this option asks for your own words"}));
    let answer =
        world.send_off("UALICE", &view, json!({"choice_0": one(7), "choice_4": one(0), "text_4": {"text": text("x")}}));
    let answer = answer.await.expect(200);
    let fields: Vec<&str> = answer["errors"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, ["choice_0", "choice_1", "choice_2", "text_3", "text_4"]);
    assert_eq!(world.pause(&asked.pause).await["status"], "open");
    values["text_4"] = json!({"text": text("the firm")});
    world.send_off("UALICE", &view, values).await.acknowledges();
    let output = world.finished(&asked.run).await["output"].as_str().unwrap().to_owned();
    for part in [
        r#""Which colour?":"blue""#,
        r#""Which sizes?":["S","L"]"#,
        r#""Which of many?":"option 12""#,
        r#""Anything else?":"nothing <at> all""#,
        r#""Who pays?":"the firm""#,
    ] {
        assert!(output.contains(part), "{part} is not in {output}");
    }
    assert_eq!(world.settled(&asked.message).await.text, "Answered: asker has a question");
}

#[tokio::test]
async fn questions_that_slack_cannot_show_whole_are_not_answered_there() {
    let world = World::new().await;
    let long = json!({"questions": [{"question": "Which?", "options": [{"label": "x".repeat(76)}, {"label": "y"}]}]});
    let asked = world.ask("asker", &long.to_string()).await;
    assert_eq!(asked.message.actions(), ["deny", "open"]);
    let value = asked.message.button("deny").unwrap();
    let forged = crate::world::on("UALICE", &asked.message).button("answer", &value);
    world.deliver(&forged).await.refuses(409, "not_fully_displayed");
    assert_eq!(world.pause(&asked.pause).await["status"], "open");
}

#[tokio::test]
async fn a_modal_of_another_app_or_without_what_it_is_about_does_nothing() {
    let world = World::new().await;
    let asked = world.ask("mailer", "ana").await;
    let before = world.everything().await;
    let value = asked.message.button("deny").unwrap();
    for view in [
        json!({"id": "V1", "callback_id": "other.modal", "private_metadata": value, "blocks": []}),
        json!({"id": "V1", "callback_id": "holdpoint.deny", "private_metadata": "", "blocks": []}),
        json!({"id": "V1", "callback_id": "holdpoint.deny", "private_metadata": "x y", "blocks": []}),
    ] {
        world.send_off("UALICE", &view, json!({})).await.acknowledges();
    }
    assert_eq!(world.everything().await, before);
}
