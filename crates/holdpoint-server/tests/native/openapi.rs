//! The description: whole, consistent, and true of what is served.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::world::{Answer, World};

async fn described(world: &World) -> Value {
    world.get("/openapi.json").await.expect(200)
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, inner) in members {
                match (name.as_str(), inner) {
                    ("$ref", Value::String(target)) => _ = found.insert(target.clone()),
                    _ => references(inner, found),
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| references(element, found)),
        _ => {}
    }
}

#[tokio::test]
async fn every_route_of_the_specification_is_described() {
    let world = World::solo().await;
    let api = described(&world).await;
    assert_eq!(api["openapi"], "3.1.0");
    let mut found = BTreeSet::new();
    for (path, item) in api["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            found.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    for route in [
        "GET /healthz",
        "GET /readyz",
        "GET /metrics",
        "GET /api/v1/agents",
        "GET /api/v1/agents/{name}",
        "GET /api/v1/runs",
        "POST /api/v1/runs",
        "GET /api/v1/runs/{id}",
        "POST /api/v1/runs/{id}/cancel",
        "GET /api/v1/sessions",
        "GET /api/v1/sessions/{id}",
        "GET /api/v1/sessions/{id}/history",
        "GET /api/v1/sessions/{id}/messages",
        "GET /api/v1/sessions/{id}/events",
        "GET /api/v1/sessions/{id}/blocks",
        "POST /api/v1/sessions/{id}/commands",
        "GET /api/v1/pauses",
        "GET /api/v1/pauses/{id}",
        "GET /api/v1/pauses/stream",
        "POST /api/v1/pauses/{id}/decide",
        "GET /api/v1/rules",
        "DELETE /api/v1/rules/{id}",
        "GET /api/v1/audit",
        "GET /api/v1/audit/verify",
        "POST /api/v1/requests",
        "GET /api/v1/requests/{id}",
    ] {
        assert!(found.remove(route), "{route} is not described");
    }
    assert_eq!(found, BTreeSet::new(), "described and not in the specification");
}

#[tokio::test]
async fn every_shape_that_is_referred_to_is_there_and_every_operation_says_what_can_go_wrong() {
    let world = World::solo().await;
    let api = described(&world).await;
    let mut used = BTreeSet::new();
    references(&api, &mut used);
    for target in used {
        let name = target.strip_prefix("#/components/schemas/").unwrap_or_else(|| panic!("{target}"));
        assert!(api["components"]["schemas"].get(name).is_some(), "{name}");
    }
    let mut names = BTreeSet::new();
    for (path, item) in api["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()));
            let responses = operation["responses"].as_object().unwrap();
            for status in ["400", "401", "403", "404", "414", "421", "429", "500", "503"] {
                assert!(responses.contains_key(status), "{method} {path} {status}");
            }
            for (status, response) in responses.iter().filter(|(status, _)| status.as_str() >= "400") {
                let shape = &response["content"]["application/problem+json"]["schema"]["$ref"];
                assert_eq!(shape, "#/components/schemas/Problem", "{method} {path} {status}");
            }
        }
    }
}

#[tokio::test]
async fn every_described_route_is_served() {
    let world = World::solo().await;
    let api = described(&world).await;
    for (path, item) in api["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let path = path.replace("{id}", "x").replace("{name}", "x");
            if path.ends_with("/stream") {
                continue;
            }
            let answer = Answer::to(world.request(&method.to_uppercase(), &path)).await;
            assert!(
                answer.status != 405 && !answer.body.contains("route_not_found"),
                "{method} {path}: {}",
                answer.body
            );
        }
    }
}
