//! Decisions: all eight, bound to what was seen, made once.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Answer, Setup, World, first_pause, text};

#[tokio::test]
async fn an_approved_call_runs_with_exactly_the_bytes_that_were_shown() {
    let world = World::solo().await;
    let run = world.start("mailer", "ana").await;
    let pause = first_pause(&run);
    let seen = run["pauses"][0]["args_sha256"].clone();
    let decided = world.decide(&pause, json!({"decision": "approve", "args_sha256": seen})).await.expect(200);
    assert_eq!(decided["status"], "decided");
    let decision = json!({"type": "approve", "by": "local", "at": crate::world::BEGINNING, "via": "native"});
    assert_eq!(decided["decision"], decision);
    assert_eq!(decided["allowed_decisions"], json!([]));
    assert_eq!((&decided["run"]["status"], &decided["run"]["output"]), (&json!("done"), &json!("outcome: sent")));
    assert_eq!(world.effects.sent(), [r#"{"to":"ana"}"#]);
    let read = world.get(&format!("/api/v1/pauses/{pause}")).await.expect(200);
    assert_eq!((&read["args"], &read["decision"]), (&json!({"to": "ana"}), &decision));
}

#[tokio::test]
async fn without_waiting_a_decision_is_answered_when_it_is_stored_and_the_run_goes_on_by_itself() {
    let world = World::solo().await;
    let run = world.start("mailer", "ana").await;
    let path = format!("/api/v1/pauses/{}/decide", first_pause(&run));
    let decided = world.post(&path, json!({"decision": "approve"})).await.expect(200);
    assert_eq!((&decided["status"], decided.get("run")), (&json!("decided"), None));
    let done = world.get(&format!("/api/v1/runs/{}?wait=30", text(&run, "run_id"))).await.expect(200);
    assert_eq!(done["output"], "outcome: sent");
}

#[tokio::test]
async fn edited_arguments_run_in_place_of_those_shown_and_must_fit_the_tool() {
    let world = World::solo().await;
    let pause = first_pause(&world.start("mailer", "ana").await);
    let edit = |args: Value| json!({"decision": "approve_edited", "args": args});
    world.decide(&pause, edit(json!({"copies": 2}))).await.refuses(422, "invalid_arguments");
    world.decide(&pause, edit(json!({"to": 7}))).await.refuses(422, "invalid_arguments");
    world.decide(&pause, edit(json!(["ana"]))).await.refuses(422, "invalid_arguments");
    assert_eq!(world.get(&format!("/api/v1/pauses/{pause}")).await.expect(200)["status"], "open");
    let decided = world.decide(&pause, edit(json!({"to": "ben", "copies": 2}))).await.expect(200);
    assert_eq!(decided["decision"]["args"], json!({"to": "ben", "copies": 2}));
    assert_eq!(decided["args"], json!({"to": "ana"}));
    assert_eq!(world.effects.sent(), [r#"{"copies":2,"to":"ben"}"#]);
}

#[tokio::test]
async fn a_denial_reaches_the_model_in_its_own_words_and_nothing_runs() {
    let world = World::solo().await;
    let pause = first_pause(&world.start("mailer", "ana").await);
    let decided = world.decide(&pause, json!({"decision": "deny", "message": "not on a Sunday"})).await.expect(200);
    assert_eq!(decided["run"]["output"], "outcome: not on a Sunday");
    assert_eq!(decided["decision"]["message"], "not on a Sunday");
    assert_eq!(world.effects.sent(), Vec::<String>::new());
}

#[tokio::test]
async fn a_response_stands_in_place_of_the_result() {
    let world = World::solo().await;
    let pause = first_pause(&world.start("mailer", "ana").await);
    let decided = world.decide(&pause, json!({"decision": "respond", "content": "I called her"})).await.expect(200);
    assert_eq!(decided["run"]["output"], "outcome: I called her");
    assert_eq!(decided["decision"]["content"], "I called her");
    assert_eq!(world.effects.sent(), Vec::<String>::new());
}

#[tokio::test]
async fn questions_are_answered_with_their_own_options() {
    let world = World::solo().await;
    let run = world.start("asker", "go").await;
    let pause = first_pause(&run);
    assert_eq!(run["pauses"][0]["kind"], "question");
    assert_eq!(run["pauses"][0]["questions"][0]["question"], "Which one?");
    assert_eq!(run["pauses"][0]["questions"][0]["options"][1]["label"], "blue");
    let answer = |answers: Value| json!({"decision": "answer", "answers": answers});
    world.decide(&pause, answer(json!({"Which one?": "green"}))).await.refuses(422, "invalid_answers");
    world.decide(&pause, answer(json!({}))).await.refuses(422, "invalid_answers");
    world.decide(&pause, json!({"decision": "approve"})).await.refuses(422, "decision_not_allowed");
    let decided = world.decide(&pause, answer(json!({"Which one?": ["blue"]}))).await.expect(200);
    assert_eq!(decided["decision"]["answers"], json!({"Which one?": ["blue"]}));
    assert_eq!(decided["run"]["status"], "done");
}

#[tokio::test]
async fn a_confirmation_shows_the_models_words_and_is_approved_or_denied() {
    let world = World::solo().await;
    for (decision, said) in [("approve", "as you say"), ("deny", "as you say")] {
        let run = world.start("confirmer", "delete").await;
        let shown = &run["pauses"][0];
        assert_eq!((&shown["kind"], &shown["reason"]), (&json!("confirmation"), &json!("Shall I proceed?")));
        assert_eq!((&shown["tool"], &shown["args"]), (&json!(null), &json!(null)));
        let decided = world.decide(&first_pause(&run), json!({"decision": decision})).await.expect(200);
        assert_eq!(decided["run"]["output"], said);
    }
}

#[tokio::test]
async fn other_arguments_than_were_seen_are_not_decided_about() {
    let world = World::solo().await;
    let run = world.start("mailer", "ana").await;
    let pause = first_pause(&run);
    let body = json!({"decision": "approve", "args_sha256": "0".repeat(64)});
    let problem = world.decide(&pause, body).await.refuses(409, "stale_view");
    assert_eq!(problem["args_sha256"], run["pauses"][0]["args_sha256"]);
    assert_eq!(world.effects.sent(), Vec::<String>::new());
}

#[tokio::test]
async fn deciding_one_of_several_decides_only_that_one() {
    let world = World::solo().await;
    let run = world.start("mailer", "ana and ben").await;
    let pauses: Vec<String> = (0..2).map(|index| text(&run["pauses"][index], "id").to_owned()).collect();
    assert_eq!(run["pauses"][0]["key"], run["pauses"][1]["key"]);
    let decided = world.decide(&pauses[1], json!({"decision": "approve"})).await.expect(200);
    assert_eq!(decided["run"]["status"], "paused");
    assert_eq!(decided["run"]["pauses"].as_array().unwrap().len(), 1);
    assert_eq!(world.effects.sent(), [r#"{"to":"ben"}"#]);
    world.decide(&pauses[0], json!({"decision": "deny"})).await.expect(200);
    assert_eq!(world.effects.sent(), [r#"{"to":"ben"}"#]);
}

#[tokio::test]
async fn a_later_decision_is_told_who_decided_when_and_how() {
    let world = World::with_keys().await;
    let pause = first_pause(&world.start_by("agnes", "mailer", "eve").await);
    world.decide_by("ana", &pause, json!({"decision": "deny"})).await.expect(200);
    world.clock.advance(Duration::from_secs(60));
    for late in [json!({"decision": "approve"}), json!({"decision": "deny"})] {
        let problem = world.decide_by("ben", &pause, late).await.refuses(409, "already_decided");
        assert_eq!(problem["decided_by"], "ana");
        assert_eq!(problem["decided_at"], crate::world::BEGINNING);
        assert_eq!(problem["outcome"], "deny");
    }
    assert_eq!(world.effects.sent(), Vec::<String>::new());
}

#[tokio::test]
async fn of_many_who_decide_at_once_one_wins_and_the_call_runs_once() {
    let world = World::with_keys().await;
    let pause = first_pause(&world.start_by("agnes", "mailer", "eve").await);
    let deciding = (0..20).map(|number| {
        let decision = if number % 2 == 0 { "approve" } else { "deny" };
        let who = ["ana", "ben", "cem", "adam"][number % 4];
        world.decide_by(who, &pause, json!({"decision": decision}))
    });
    let answers: Vec<Answer> = futures_util::future::join_all(deciding).await;
    let won: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 200).collect();
    assert_eq!(won.len(), 1, "{answers:?}");
    let winner = won[0].json()["decision"].clone();
    for lost in answers.iter().filter(|answer| answer.status != 200) {
        let problem = lost.refuses(409, "already_decided");
        assert_eq!((&problem["decided_by"], &problem["outcome"]), (&winner["by"], &winner["type"]));
    }
    assert_eq!(world.effects.sent().len(), usize::from(winner["type"] == "approve"));
}

#[tokio::test]
async fn an_expired_pause_takes_no_decision_and_its_call_never_runs() {
    let world = World::solo().await;
    let run = world.start("brief", "ana").await;
    let pause = first_pause(&run);
    assert_eq!(run["pauses"][0]["expires_at"], "2026-11-15T09:31:00.000Z");
    world.clock.advance(Duration::from_secs(60));
    let problem = world.decide(&pause, json!({"decision": "approve"})).await.refuses(409, "expired");
    assert_eq!((&problem["outcome"], &problem["decided_by"]), (&json!("expired"), &json!(null)));
    assert_eq!(problem["decided_at"], "2026-11-15T09:31:00.000Z");
    let ended = world.get(&format!("/api/v1/runs/{}?wait=30", text(&run, "run_id"))).await.expect(200);
    assert_eq!(ended["status"], "done");
    assert_eq!(world.effects.sent(), Vec::<String>::new());
}

#[tokio::test]
async fn where_two_must_approve_the_first_is_a_vote_and_the_second_decides() {
    let world = World::with_keys().await;
    let run = world.start_by("agnes", "treasurer", "eve").await;
    let pause = first_pause(&run);
    let shown = &run["pauses"][0];
    assert_eq!((&shown["approvals_needed"], &shown["approvers"]), (&json!(2), &json!(["treasury"])));
    assert_eq!((&shown["rule"], &shown["reason"]), (&json!("four-eyes"), &json!("large")));
    assert_eq!(shown["allowed_decisions"], json!(["approve", "deny", "respond"]));
    let approve = json!({"decision": "approve"});
    world.decide_by("cem", &pause, approve.clone()).await.refuses(403, "not_an_approver");
    world.decide_by("adam", &pause, approve.clone()).await.refuses(403, "not_an_approver");
    let voted = world.decide_by("ana", &pause, approve.clone()).await.expect(200);
    assert_eq!((&voted["status"], &voted["approvals"][0]["by"]), (&json!("open"), &json!("ana")));
    let again = world.decide_by("ana", &pause, approve.clone()).await.expect(200);
    assert_eq!((&again["status"], again["approvals"].as_array().unwrap().len()), (&json!("open"), 1));
    assert_eq!(world.effects.sent(), Vec::<String>::new());
    let decided = world.decide_by("ben", &pause, approve).await.expect(200);
    assert_eq!((&decided["status"], &decided["run"]["output"]), (&json!("decided"), &json!("outcome: sent")));
    assert_eq!(world.effects.sent().len(), 1);
}

#[tokio::test]
async fn the_person_at_the_machine_may_decide_what_others_are_named_for() {
    let world = World::solo().await;
    let pause = first_pause(&world.start("treasurer", "eve").await);
    world.decide(&pause, json!({"decision": "deny", "message": "no"})).await.expect(200);
}

#[tokio::test]
async fn whoever_started_a_run_may_be_told_not_to_approve_it() {
    let setup = Setup { has_keys: true, requester_may_not_approve: true, ..Setup::default() };
    let world = World::with(setup).await;
    let pause = first_pause(&world.start_by("zoe", "mailer", "eve").await);
    for body in [
        json!({"decision": "approve"}),
        json!({"decision": "approve_edited", "args": {"to": "x"}}),
        json!({"decision": "respond", "content": "sent"}),
    ] {
        world.decide_by("zoe", &pause, body).await.refuses(403, "self_approval");
    }
    assert_eq!(world.effects.sent(), Vec::<String>::new());
    world.decide_by("ana", &pause, json!({"decision": "approve"})).await.expect(200);
    let own = first_pause(&world.start_by("zoe", "mailer", "eve").await);
    world.decide_by("zoe", &own, json!({"decision": "deny"})).await.expect(200);
    assert_eq!(world.effects.sent().len(), 1);
}

#[tokio::test]
async fn what_does_not_decide_leaves_everything_as_it_was() {
    let world = World::solo().await;
    let pause = first_pause(&world.start("mailer", "ana").await);
    let before = world.everything().await;
    for body in [
        json!({}),
        json!({"decision": "yes"}),
        json!({"decision": "approve", "argz": {}}),
        json!({"decision": "approve", "args": {"to": "eve"}}),
        json!({"decision": "approve", "always": {"scope": "run", "unto": 1}}),
        json!(null),
        json!("approve"),
        json!([{"decision": "approve"}]),
    ] {
        world.decide(&pause, body).await.refuses(400, "invalid_request");
    }
    for text in [
        r#"{"decision":"deny","decision":"approve"}"#,
        r#"{"decision":"approve_edited","args":{"to":"ana","to":"eve"}}"#,
        r#"{"decision":"approve"} {}"#,
        r#"{"decision":"approve",}"#,
        "\u{feff}{\"decision\":\"approve\"}",
        "",
    ] {
        let request = world.request("POST", &format!("/api/v1/pauses/{pause}/decide"));
        let request = request.header("content-type", "application/json").body(text.to_owned());
        Answer::to(request).await.refuses(400, "invalid_json");
    }
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn a_call_in_doubt_is_settled_by_a_person() {
    for (decision, status, sent) in [
        (json!({"decision": "happened", "content": "it arrived"}), "done", 1),
        (json!({"decision": "abandon"}), "done", 1),
        (json!({"decision": "run_again"}), "done", 2),
    ] {
        let mut world = World::solo().await;
        let run = world.start_sending().await;
        world.kill_and_start().await;
        world.effects.open_gate();
        let read = format!("/api/v1/runs/{}?wait=30", text(&run, "run_id"));
        let doubted = world.get(&read).await.expect(200);
        assert_eq!((&doubted["status"], &doubted["pauses"][0]["kind"]), (&json!("paused"), &json!("in_doubt")));
        assert_eq!(doubted["pauses"][0]["allowed_decisions"], json!(["happened", "run_again", "abandon"]));
        let doubt = first_pause(&doubted);
        world.decide(&doubt, json!({"decision": "approve"})).await.refuses(422, "decision_not_allowed");
        let decided = world.decide(&doubt, decision).await.expect(200);
        assert_eq!(decided["run"]["status"], status);
        assert_eq!(world.effects.sent().len(), sent);
    }
}
