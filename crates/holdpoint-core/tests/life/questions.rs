//! Questions that a tool asks a person.

use super::common::check;

const ASKED: &str = r#"given tool ask: question
    user: plan a trip
    model: ask {"questions": [{"question": "Where?", "options": [{"label": "sea"}, {"label": "hills"}]}, {"question": "With whom?", "options": [{"label": "ana"}, {"label": "bo"}], "multiSelect": true}, {"question": "Anything else?"}]}
    policy: allow
    ---
"#;

#[track_caller]
fn check_asked(script: &str, expected: &str) {
    check(&format!("{ASKED}\n{script}"), expected);
}

#[test]
fn a_question_is_held_whatever_policy_says() {
    for verdict in ["allow", "approve by bot", "hold"] {
        check(
            &format!(
                r#"given tool ask: question
                   user: go
                   model: ask {{"questions": [{{"question": "Where?"}}]}}
                   ---
                   policy: {verdict}"#
            ),
            r#"pause opened #1 question 1.0 ask {"questions":[{"question":"Where?"}]}
               next         await #1"#,
        );
    }
}

#[test]
fn an_answer_to_every_question_is_the_tools_result() {
    check_asked(
        r#"ana: answer #1 {"Where?": ["sea"], "With whom?": ["ana", "bo"], "Anything else?": ["a boat"]}"#,
        r#"pause decided #1 answer by ana
           call answered 1.0 result {"answers":{"Anything else?":"a boat","Where?":"sea","With whom?":["ana","bo"]}}
           next          call model root"#,
    );
}

#[test]
fn an_answer_that_does_not_fit_is_refused_and_the_question_stays() {
    for answers in [
        r#"{}"#,
        r#"{"Where?": ["sea"], "With whom?": ["ana"]}"#,
        r#"{"Where?": ["moon"], "With whom?": ["ana"], "Anything else?": ["no"]}"#,
        r#"{"Where?": ["sea", "hills"], "With whom?": ["ana"], "Anything else?": ["no"]}"#,
        r#"{"Where?": ["sea"], "With whom?": [], "Anything else?": ["no"]}"#,
        r#"{"Where?": ["sea"], "With whom?": ["ana"], "Anything else?": ["no"], "Who?": ["me"]}"#,
    ] {
        check_asked(&format!("ana: answer #1 {answers}"), "refused invalid_answers\n next await #1");
    }
}

#[test]
fn an_option_that_takes_text_accepts_any() {
    check(
        r#"given tool ask: question
           user: go
           model: ask {"questions": [{"question": "Where?", "options": [{"label": "sea"}, {"label": "Other", "input": true}]}]}
           policy: hold
           ---
           ana: answer #1 {"Where?": ["the moon"]}"#,
        r#"pause decided #1 answer by ana
           call answered 1.0 result {"answers":{"Where?":"the moon"}}
           next          call model root"#,
    );
}

#[test]
fn a_question_can_be_denied_or_answered_in_free_words() {
    check_asked(
        r#"ana: deny #1 "not now""#,
        r#"pause decided #1 deny "not now" by ana
           call answered 1.0 denied "not now"
           next          call model root"#,
    );
    check_asked(
        r#"ana: respond #1 "surprise me""#,
        r#"pause decided #1 respond "surprise me" by ana
           call answered 1.0 responded "surprise me"
           next          call model root"#,
    );
}

#[test]
fn a_question_is_neither_approved_nor_made_a_rule() {
    check_asked(
        r#"ana: approve #1
           ana: approve #1 edited {}
           ana: always deny #1 "never ask""#,
        "refused decision_not_allowed
         refused decision_not_allowed
         refused invalid_rule
         next    await #1",
    );
}

#[test]
fn questions_that_cannot_be_asked_are_told_to_the_model() {
    for (arguments, problem) in [
        (r#"{"questions": []}"#, "1 to 16 questions with distinct texts expected"),
        (
            r#"{"questions": [{"question": "A?"}, {"question": "A?"}]}"#,
            "1 to 16 questions with distinct texts expected",
        ),
        (
            r#"{"questions": [{"question": "A?", "options": [{"label": "x"}, {"label": "x"}]}]}"#,
            "at most 32 options with distinct labels expected in each question",
        ),
        // The same texts, once composed and once each letter followed by its mark; and space around a text.
        (
            r#"{"questions": [{"question": "Caf\u00e9?"}, {"question": " Cafe\u0301? "}]}"#,
            "question 2 reads like one before it: give each a text of its own",
        ),
        (
            r#"{"questions": [{"question": "A?", "options": [{"label": "caf\u00e9"}, {"label": "cafe\u0301"}]}]}"#,
            "option 2 of question 1 reads like one before it",
        ),
    ] {
        check(
            &format!("given tool ask: question\n user: go\n model: ask {arguments}\n ---\n policy: hold"),
            &format!("call answered 1.0 invalid {problem:?}\n next call model root"),
        );
    }
}

#[test]
fn a_rule_for_a_tool_of_the_same_name_does_not_answer_a_question() {
    check(
        r#"given tool helper: agent
           user: go
           model: ask & helper
           policy: hold & allow
           given tool ask: question
           ana: always approve #1 any agent
           model 1.1: ask {"questions": [{"question": "Where?"}]}
           ---
           policy: rule or hold"#,
        r#"pause opened #2 question 1.1/1.0 ask {"questions":[{"question":"Where?"}]}
           next         run 1.0"#,
    );
}
