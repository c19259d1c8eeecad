//! Who may do what: every role at every route, and what is somebody else's.

use serde_json::{Value, json};

use crate::world::{Answer, World, first_pause, key, text};

#[tokio::test]
async fn every_role_gets_through_where_its_table_says_so_and_nowhere_else() {
    let world = World::with_keys().await;
    let run = world.start_by("agnes", "mailer", "eve").await;
    let (id, pause) = (text(&run, "run_id").to_owned(), first_pause(&run));
    let session = text(&run, "session_id").to_owned();
    let start = json!({"agent_id": "talker", "input": "x"});
    let request = json!({"agent": "remote", "tool": "deploy", "args": {}});
    let asked = world.post_by("agnes", "/api/v1/requests", request.clone()).await.expect(201);
    let asked = text(&asked, "id").to_owned();
    // Who gets through, by route: the owner agnes, another agent otto, the approver ana, the auditor audrey, adam.
    let table: Vec<(&str, String, Value, [u16; 5])> = vec![
        ("GET", "/api/v1/agents".into(), Value::Null, [200, 200, 200, 200, 200]),
        ("GET", "/api/v1/agents/mailer".into(), Value::Null, [200, 200, 200, 200, 200]),
        ("POST", "/api/v1/runs".into(), start, [201, 201, 403, 403, 201]),
        ("GET", format!("/api/v1/runs/{id}"), Value::Null, [200, 404, 200, 200, 200]),
        ("GET", "/api/v1/sessions".into(), Value::Null, [200, 200, 200, 200, 200]),
        ("GET", format!("/api/v1/sessions/{session}"), Value::Null, [200, 404, 200, 200, 200]),
        ("GET", format!("/api/v1/sessions/{session}/history"), Value::Null, [200, 404, 200, 200, 200]),
        ("GET", "/api/v1/pauses".into(), Value::Null, [200, 200, 200, 200, 200]),
        ("GET", format!("/api/v1/pauses/{pause}"), Value::Null, [200, 404, 200, 200, 200]),
        ("GET", "/api/v1/rules".into(), Value::Null, [200, 200, 200, 200, 200]),
        ("GET", "/api/v1/audit".into(), Value::Null, [403, 403, 403, 200, 200]),
        ("GET", "/api/v1/audit/verify".into(), Value::Null, [403, 403, 403, 200, 200]),
        ("POST", "/api/v1/requests".into(), request, [201, 201, 403, 403, 201]),
        ("GET", format!("/api/v1/requests/{asked}"), Value::Null, [200, 404, 200, 200, 200]),
        ("GET", "/metrics".into(), Value::Null, [403, 403, 403, 200, 200]),
        // Turned down or nothing there: nobody of these changes anything.
        (
            "DELETE",
            "/api/v1/rules/rul_0198c0ffee007000800000000000beef_1".into(),
            Value::Null,
            [403, 403, 404, 403, 404],
        ),
        (
            "POST",
            format!("/api/v1/pauses/{pause}/decide"),
            json!({"decision": "happened", "content": "x"}),
            [403, 404, 422, 403, 422],
        ),
        ("POST", format!("/api/v1/runs/{id}/cancel"), json!({"odd": 1}), [400, 400, 400, 400, 400]),
    ];
    for (method, path, body, expected) in &table {
        for (who, status) in ["agnes", "otto", "ana", "audrey", "adam"].into_iter().zip(expected) {
            let mut request = world.request_by(who, method, path);
            if !body.is_null() {
                request = request.json(body);
            }
            let answer = Answer::to(request).await;
            assert_eq!(answer.status, *status, "{method} {path} by {who}: {}", answer.body);
        }
    }
    for (who, status) in [("otto", 404), ("ana", 403), ("audrey", 403), ("agnes", 200)] {
        let answer = Answer::to(world.request_by(who, "POST", &format!("/api/v1/runs/{id}/cancel"))).await;
        assert_eq!(answer.status, status, "cancel by {who}: {}", answer.body);
    }
}

#[tokio::test]
async fn an_agent_may_answer_and_deny_what_is_its_own_and_approve_nothing() {
    let world = World::with_keys().await;
    let held = first_pause(&world.start_by("agnes", "mailer", "eve").await);
    for body in [
        json!({"decision": "approve"}),
        json!({"decision": "approve_edited", "args": {"to": "x"}}),
        json!({"decision": "respond", "content": "x"}),
        json!({"decision": "deny", "always": {"scope": "session"}}),
    ] {
        world.decide_by("agnes", &held, body).await.refuses(403, "forbidden");
    }
    world.decide_by("otto", &held, json!({"decision": "deny"})).await.refuses(404, "not_found");
    world.decide_by("audrey", &held, json!({"decision": "deny"})).await.refuses(403, "forbidden");
    world.decide_by("agnes", &held, json!({"decision": "deny"})).await.expect(200);
    let question = first_pause(&world.start_by("agnes", "asker", "x").await);
    let answer = json!({"decision": "answer", "answers": {"Which one?": "red"}});
    world.decide_by("otto", &question, answer.clone()).await.refuses(404, "not_found");
    world.decide_by("agnes", &question, answer).await.expect(200);
    let confirmation = first_pause(&world.start_by("agnes", "confirmer", "delete").await);
    world.decide_by("agnes", &confirmation, json!({"decision": "approve"})).await.expect(200);
    assert_eq!(world.effects.sent(), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_somebody_elses_cannot_be_told_from_what_is_not_there() {
    let world = World::with_keys().await;
    let run = world.start_by("agnes", "mailer", "eve").await;
    let pause = first_pause(&run);
    let foreign = world.get_by("otto", &format!("/api/v1/pauses/{pause}")).await;
    let unknown = world.get_by("otto", "/api/v1/pauses/pau_0198c0ffee007000800000000000beef_1").await;
    assert_eq!((foreign.status, foreign.body), (unknown.status, unknown.body));
    let foreign = world.get_by("otto", &format!("/api/v1/runs/{}", text(&run, "run_id"))).await;
    let unknown = world.get_by("otto", "/api/v1/runs/run_0198c0ffee007000800000000000beef").await;
    assert_eq!((foreign.status, foreign.body), (unknown.status, unknown.body));
}

#[tokio::test]
async fn who_shows_no_credential_that_holds_gets_nothing() {
    let world = World::with_keys().await;
    let paths = ["/api/v1/agents", "/api/v1/pauses", "/api/v1/pauses/stream", "/api/v1/audit", "/metrics"];
    for path in paths {
        let answer = world.get(path).await;
        answer.refuses(401, "unauthenticated");
        assert_eq!(answer.header("www-authenticate"), Some(r#"Bearer realm="holdpoint""#));
    }
    let refused = async |request: reqwest::RequestBuilder| Answer::to(request).await.refuses(401, "unauthenticated");
    let get = || world.request("GET", "/api/v1/agents");
    refused(get().bearer_auth("hpk_wrong")).await;
    refused(get().bearer_auth("")).await;
    refused(get().bearer_auth("x".repeat(20_000))).await;
    refused(get().header("authorization", format!("Basic {}", key("adam")))).await;
    refused(get().header("authorization", key("adam"))).await;
    refused(get().header("authorization", "Bearer ")).await;
    refused(get().header("x-api-key", "nope")).await;
    refused(get().bearer_auth(key("adam")).header("x-api-key", key("adam"))).await;
    refused(get().bearer_auth("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGFtIn0.")).await;
    refused(world.request("GET", &format!("/api/v1/agents?access_token={}", key("adam")))).await;
    Answer::to(get().header("x-api-key", key("adam"))).await.expect(200);
    Answer::to(get().header("authorization", format!("bearer {}", key("adam")))).await.expect(200);
    let in_query = world.request("GET", &format!("/api/v1/agents?api_key={}", key("adam"))).bearer_auth(key("adam"));
    Answer::to(in_query).await.refuses(400, "invalid_parameter");
}

#[tokio::test]
async fn who_decided_is_recorded_with_the_door() {
    let world = World::with_keys().await;
    let pause = first_pause(&world.start_by("agnes", "mailer", "eve").await);
    let decided = world.decide_by("ana", &pause, json!({"decision": "approve"})).await.expect(200);
    assert_eq!((&decided["decision"]["by"], &decided["decision"]["via"]), (&json!("ana"), &json!("native")));
    let record = &world.get_by("audrey", "/api/v1/audit").await.expect(200)["records"][0];
    assert_eq!((&record["by"], &record["via"]), (&json!("ana"), &json!("native")));
}

#[tokio::test]
async fn no_key_is_kept_or_told_anywhere() {
    let world = World::with_keys().await;
    let pause = first_pause(&world.start_by("agnes", "mailer", "eve").await);
    world.decide_by("ana", &pause, json!({"decision": "approve"})).await.expect(200);
    let everything = world.everything().await;
    let told = world.get_by("adam", "/metrics").await.body + &world.get_by("adam", "/api/v1/audit").await.body;
    for who in ["agnes", "ana", "adam"] {
        assert!(!everything.contains(&key(who)) && !told.contains(&key(who)));
    }
}
