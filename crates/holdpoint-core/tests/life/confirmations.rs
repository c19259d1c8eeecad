//! The model's own words ask for a confirmation.

use super::common::check;

const ASKED: &str = "user: clean up
    model asks until +10m: Shall I remove all of it?
    ---
";

#[track_caller]
fn check_asked(script: &str, expected: &str) {
    check(&format!("{ASKED}\n{script}"), expected);
}

#[test]
fn words_that_ask_open_a_confirmation() {
    check(
        "user: clean up
         ---
         model asks until +10m: Shall I?
         look: pauses",
        "model replied
         pause opened #1 confirmation root until +10m
         open         #1 confirmation of Support words
         next         await #1",
    );
}

#[test]
fn a_confirmation_goes_on_with_the_model() {
    check_asked(
        "ana: approve #1
         look: model",
        r#"pause decided  #1 approve by ana
           sees user      "clean up"
           sees assistant "Shall I remove all of it?"
           sees user      "Confirmed. Go on."
           next           call model root"#,
    );
}

#[test]
fn a_denied_confirmation_tells_the_model_so() {
    check_asked(
        r#"ana: deny #1 "only the logs"
           look: model"#,
        r#"pause decided  #1 deny "only the logs" by ana
           sees user      "clean up"
           sees assistant "Shall I remove all of it?"
           sees user      "Not confirmed: only the logs"
           next           call model root"#,
    );
    check_asked(
        "ana: deny #1
         look: model",
        r#"pause decided  #1 deny by ana
           sees user      "clean up"
           sees assistant "Shall I remove all of it?"
           sees user      "Not confirmed. Do not go on with it."
           next           call model root"#,
    );
}

#[test]
fn an_answer_in_words_goes_to_the_model_as_it_is() {
    check_asked(
        r#"ana: respond #1 "what is all?"
           look: model"#,
        r#"pause decided  #1 respond "what is all?" by ana
           sees user      "clean up"
           sees assistant "Shall I remove all of it?"
           sees user      "what is all?"
           next           call model root"#,
    );
}

#[test]
fn a_confirmation_that_nobody_gives_ends_the_run_with_the_models_words() {
    check_asked(
        "deadline #1
         clock +10m
         ana: approve #1
         deadline #1",
        r#"refused       out_of_turn
           refused       expired
           pause expired #1
           run finished  done "Shall I remove all of it?"
           next          finished done "Shall I remove all of it?""#,
    );
}

#[test]
fn a_confirmation_is_made_by_its_own_decisions_and_makes_no_rule() {
    check_asked(
        r#"ana: approve #1 edited {}
           ana: run again #1
           ana: always approve #1"#,
        "refused decision_not_allowed
         refused decision_not_allowed
         refused invalid_rule
         next    await #1",
    );
}

#[test]
fn an_inner_agent_asks_for_its_own_confirmation() {
    check(
        r#"given tool helper: agent
           user: go
           model: helper {"input": "do"}
           policy: allow
           ---
           model 1.0 asks: Shall I?
           look: pauses
           ana: approve #1
           model 1.0 says: did it"#,
        r#"model replied in 1.0
           pause opened  #1 confirmation 1.0
           open          #1 confirmation of Support/helper words
           pause decided #1 approve by ana
           model replied in 1.0
           call answered 1.0 result "did it"
           next          call model root"#,
    );
}

#[test]
fn words_still_ask_when_more_was_said_while_the_model_spoke() {
    check(
        "user: clean up
         ana adds: but keep my photos
         ---
         model saw 0 asks: Shall I?
         restart
         ana: approve #1
         look: model",
        r#"model replied
           pause opened   #1 confirmation root
           pause decided  #1 approve by ana
           sees user      "clean up"
           sees assistant "Shall I?"
           sees user      "Confirmed. Go on."
           sees user      "but keep my photos"
           next           call model root"#,
    );
}

#[test]
fn a_confirmation_is_looked_at_by_guardrails_only_when_it_becomes_the_output() {
    check(
        "given agent: checks output
         user: clean up
         ---
         model asks until +10m: Shall I?
         clock +10m
         deadline #1
         output check: pass",
        r#"model replied
           pause opened   #1 confirmation root until +10m
           pause expired  #1
           guardrails ran root g passed
           run finished   done "Shall I?"
           next           finished done "Shall I?""#,
    );
}
