//! Who may decide: the same rules as everywhere, asked when somebody clicks.

use holdpoint_core::ids::ActorId;
use holdpoint_server::access::{ApiKey, ApiKeys, Credentials, Role};
use serde_json::json;

use crate::world::{Answer, Setup, World};

fn credentials() -> Credentials {
    let key = |name: &str, role: Role| {
        let digest = ApiKey::digest(&format!("hpk_key-of-{name}"));
        ApiKey::new(ActorId::new(name).unwrap(), &digest, [role]).unwrap()
    };
    let keys = vec![key("alice@example.com", Role::Admin), key("ci", Role::Admin)];
    Credentials { keys: ApiKeys::new(keys).unwrap(), jwt: None }
}

#[tokio::test]
async fn a_role_that_may_not_decide_decides_nothing() {
    let world = World::new().await;
    let asked = world.ask("mailer", "ana").await;
    for action in ["approve", "deny", "edit"] {
        world.click("UAUDREY", &asked.message, action).await.acknowledges();
    }
    for count in 1..=3 {
        let (user, told) = world.whisper(count).await;
        assert!(
            user == "UAUDREY" && told.contains("your role (auditor) may not") && told.contains("(forbidden)"),
            "{told}"
        );
    }
    assert!(world.slack.views().is_empty());
    assert_eq!(world.pause(&asked.pause).await["status"], "open");
}

#[tokio::test]
async fn several_must_approve_and_each_is_told_that_theirs_counts() {
    let world = World::new().await;
    let asked = world.ask("treasurer", "ana").await;
    assert_eq!(asked.message.actions(), ["approve", "deny", "open"], "nobody alone can change what several approve");
    assert!(asked.message.blocks.to_string().contains("2 different people must approve"), "{:#}", asked.message.blocks);
    world.click("UCEM", &asked.message, "approve").await.acknowledges();
    let (user, told) = world.whisper(1).await;
    assert!(user == "UCEM" && told.contains("(not_an_approver)"), "{told}");
    world.click("UALICE", &asked.message, "approve").await.acknowledges();
    assert_eq!(world.whisper(2).await, ("UALICE".to_owned(), "Your approval counts. 1 more needed.".to_owned()));
    // The same person again is one person.
    world.click("UALICE", &asked.message, "approve").await.acknowledges();
    assert_eq!(world.whisper(3).await.1, "Your approval counts. 1 more needed.");
    assert_eq!(world.pause(&asked.pause).await["status"], "open");
    world.click("UBEN", &asked.message, "approve").await.acknowledges();
    world.finished(&asked.run).await;
    assert_eq!(world.effects.sent().len(), 1);
    world.settled(&asked.message).await;
}

#[tokio::test]
async fn whoever_asked_cannot_approve_where_the_two_must_differ_and_can_deny() {
    let setup = Setup { credentials: Some(credentials), requester_may_not_approve: true, ..Setup::default() };
    let world = World::with(setup).await;
    let start = world
        .request("POST", "/api/v1/runs?wait=60")
        .bearer_auth("hpk_key-of-alice@example.com")
        .json(&json!({"agent_id": "mailer", "input": "ana"}));
    let run = Answer::to(start).await.expect(201);
    let message = world.message(run["pauses"][0]["id"].as_str().unwrap()).await;
    assert!(message.blocks.to_string().contains("asked by  alice@example.com"), "{:#}", message.blocks);
    world.click("UALICE", &message, "approve").await.acknowledges();
    let (_, told) = world.whisper(1).await;
    assert!(told.contains("(self_approval)"), "{told}");
    world.click("UALICE", &message, "edit").await.acknowledges();
    assert!(world.whisper(2).await.1.contains("(self_approval)"));
    let view = world.open("UALICE", &message, "deny").await;
    world.send_off("UALICE", &view, json!({})).await.acknowledges();
    let denied = world.settled(&message).await;
    assert_eq!(denied.text, "Denied: mailer wants to run send_mail");
    assert_eq!(world.effects.sent(), Vec::<String>::new());
    // No API key is asked for from Slack, and from everybody else it is.
    Answer::to(world.request("GET", "/api/v1/pauses")).await.refuses(401, "unauthenticated");
}
