//! Bad answers.

use std::time::Duration;

use holdpoint_testkit::model_server::Answer as Reply;
use serde_json::{Value, json};

use super::{check_rows, row};
use crate::client::{Client, is, until_asked};
use crate::stage::{Stage, message};

/// A session of the planner that waits for answers: one choice, and several of which two read alike when joined.
async fn ask(stage: &Stage, client: &mut Client, session: &str) {
    let questions = json!({"questions": [
        {"question": "Kỳ hạn?", "multiSelect": false, "options": [{"label": "1 năm"}, {"label": "3 năm"}]},
        {"question": "Ngành nào?", "multiSelect": true,
         "options": [{"label": "Thép"}, {"label": "Điện"}, {"label": "Thép, Điện"}]},
    ]});
    stage.model.push(Reply::call("ask_user_question", questions));
    client.send(&message("planner", session, "Hỏi tôi")).await;
    until_asked(client).await;
}

fn give(answers: Value) -> Value {
    json!({"type": "approval", "session_id": "s", "approval_key": "s_1", "answers": answers})
}

#[tokio::test]
async fn bad_answers_are_refused_and_the_question_is_untouched() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    ask(&stage, &mut client, "s").await;
    let term = |answer: Value| give(json!({"Kỳ hạn?": answer}));
    let sectors = |answer: Value| give(json!({"Ngành nào?": answer}));
    let many: serde_json::Map<String, Value> = (0..300).map(|n| (format!("Q{n}"), json!("A"))).collect();
    let decisions = json!({"type": "approval", "session_id": "s", "approval_key": "s_1",
        "decisions": [{"type": "approve"}]});
    let rows = vec![
        row(1, give(json!(["1 năm"])), "bad_answers", "answers"),
        row(1, give(json!("1 năm")), "bad_answers", "answers"),
        row(2, give(json!({})), "bad_answers", "answers"),
        row(3, give(json!({"Giá nào?": "1 năm"})), "bad_answers", "Giá nào?"),
        row(3, give(json!({"Kỳ hạn?": "1 năm", "Giá nào?": "x"})), "bad_answers", "Giá nào?"),
        row(4, give(json!({"kỳ hạn?": "1 năm"})), "bad_answers", "kỳ hạn?"),
        row(6, term(Value::Null), "bad_answers", "Kỳ hạn?"),
        row(6, term(json!(1)), "bad_answers", "Kỳ hạn?"),
        row(6, term(json!(true)), "bad_answers", "Kỳ hạn?"),
        row(6, term(json!({"label": "1 năm"})), "bad_answers", "Kỳ hạn?"),
        row(6, sectors(json!(["Thép", 5])), "bad_answers", "Ngành nào?"),
        row(8, term(json!("")), "bad_answers", "Kỳ hạn?"),
        row(8, term(json!(" \t ")), "bad_answers", "Kỳ hạn?"),
        row(8, sectors(json!(["Thép", " "])), "bad_answers", "Ngành nào?"),
        row(9, term(json!(["1 năm", "3 năm"])), "bad_answers", "Kỳ hạn?"),
        row(9, term(json!("1 năm, 3 năm")), "bad_answers", "Kỳ hạn?"),
        row(10, sectors(json!("Thép, Điện")), "bad_answers", "Ngành nào?"),
        row(11, sectors(json!(["Thép", "Thép"])), "bad_answers", "Ngành nào?"),
        row(12, sectors(json!(["[No preference]", "Thép"])), "bad_answers", "Ngành nào?"),
        row(14, term(json!("[no preference]")), "bad_answers", "[No preference]"),
        row(15, decisions, "bad_answers", "answers"),
        row(17, term(json!("x".repeat(8_193))), "too_large", "8192"),
        row(17, give(Value::Object(many)), "bad_answers", ""),
        row(18, term(json!("a\u{0}b")), "bad_answers", "U+0000"),
        row(18, term(json!("a\u{1b}[31mb")), "bad_answers", "U+001B"),
        // Beside the twenty: the same question twice, in the same bytes or after they were brought into one form.
        row(
            21,
            give(json!({})).to_string().replace("{}", r#"{"Kỳ hạn?":"1 năm","Kỳ hạn?":"3 năm"}"#),
            "bad_json",
            "twice",
        ),
        row(21, give(json!({"Kỳ hạn?": "1 năm", " Kỳ hạn?": "3 năm"})), "bad_answers", ""),
    ];
    check_rows(&stage, &mut client, "s", rows).await;
    assert_eq!(stage.model.requests().len(), 1, "the model was not asked again");
    stage.model.push(Reply::text("Cảm ơn!"));
    client.send(&sectors(json!(["Thép, Điện"]))).await;
    client.until(is("message_stop")).await;
    let told = &stage.model.last_request().tool_results()[0].1;
    assert!(told.contains("Thép, Điện") && told.contains("[No preference]"), "row 5, a list is plain: {told}");
}

#[tokio::test]
async fn a_question_is_known_by_its_words_however_they_are_spelt_in_unicode() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    ask(&stage, &mut client, "s").await;
    stage.model.push(Reply::text("Cảm ơn!"));
    // Row 4: the same words with their marks apart, and with spaces around them.
    client.send(&give(json!({" Ky\u{300} ha\u{323}n? ": "1 na\u{306}m "}))).await;
    let told = client.until(|event| event["type"] == "message_stop" || event["type"] == "error").await;
    assert_eq!(told.last().unwrap()["type"], "message_stop", "{told:?}");
    let told = &stage.model.last_request().tool_results()[0].1;
    assert!(told.contains("1 năm"), "{told}");
}

#[tokio::test]
async fn answers_to_what_is_no_question_are_refused() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    stage.model.push(Reply::call("execute_trade", json!({"symbol": "VNM", "quantity": 1})));
    client.send(&message("trader", "s", "Mua")).await;
    until_asked(&mut client).await;
    let rows = vec![row(16, give(json!({"execute_trade": "approve"})), "bad_decisions", "decisions")];
    check_rows(&stage, &mut client, "s", rows).await;
    assert_eq!(stage.tools.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn an_answer_after_the_first_or_after_its_time_is_told_so() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    ask(&stage, &mut client, "s").await;
    stage.model.push(Reply::text("Cảm ơn!"));
    client.send(&give(json!({"Kỳ hạn?": "1 năm"}))).await;
    client.until(is("message_stop")).await;
    let rows = vec![
        row(19, give(json!({"Kỳ hạn?": "3 năm"})), "already_decided", "local"),
        row(19, give(json!({"Kỳ hạn?": "1 năm"})), "already_decided", "local"),
    ];
    check_rows(&stage, &mut client, "s", rows).await;
    ask(&stage, &mut client, "late").await;
    stage.model.push(Reply::text("Muộn."));
    stage.clock.advance(Duration::from_secs(600));
    client.until(is("message_stop")).await;
    let late = json!({"type": "approval", "session_id": "late", "approval_key": "late_1",
        "answers": {"Kỳ hạn?": "1 năm"}});
    check_rows(&stage, &mut client, "late", vec![row(20, late, "expired", "")]).await;
}

#[tokio::test]
async fn what_cannot_be_asked_is_told_to_the_model_and_nobody_is_asked() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    let same = json!({"question": "Kỳ hạn?", "options": [{"label": "1 năm"}]});
    let twice = json!({"question": "Ngành?", "options": [{"label": "Thép"}, {"label": "Thép"}]});
    for questions in [json!([same, same]), json!([twice]), json!([{"question": ""}]), json!([]), json!("Kỳ hạn?")] {
        stage.model.push(Reply::call("ask_user_question", json!({"questions": questions})));
        stage.model.push(Reply::text("Thôi."));
        client.send(&message("planner", "s", "Hỏi tôi")).await;
        let told = client.until(is("message_stop")).await;
        assert!(!told.iter().any(|event| crate::client::is_block(event, "approval_request")), "{questions}: {told:?}");
        assert_eq!(told.last().unwrap()["stop_reason"], "end_turn", "{told:?}");
        assert_eq!(stage.model.last_request().tool_results().len(), 1, "{questions}");
    }
}
