//! Several decide at the same moment, through Slack and beside it: one wins, and the tool runs once or not at all.

use holdpoint_testkit::slack_server::Signed;
use serde_json::json;

use crate::world::{KEY, World, on};

#[tokio::test]
async fn of_two_clicks_and_a_decision_over_http_one_wins_and_the_others_are_told() {
    let world = World::new().await;
    let mut told = 0;
    for round in 0..15 {
        let asked = world.ask("mailer", &format!("round {round}")).await;
        let value = asked.message.button("approve").unwrap();
        let click = |user: &str| Signed::new(KEY, world.now(), &on(user, &asked.message).button("approve", &value));
        let (alice, ben) = (click("UALICE"), click("UBEN"));
        let path = format!("/api/v1/pauses/{}/decide", asked.pause);
        let before = world.effects.sent().len();
        let (first, second, http) = tokio::join!(
            world.send(&alice),
            world.send(&ben),
            world.post(&path, json!({"decision": "deny", "message": "no"})),
        );
        first.acknowledges();
        second.acknowledges();
        let decision = world.pause(&asked.pause).await["decision"].clone();
        let by = decision["by"].as_str().unwrap().to_owned();
        assert!(["alice@example.com", "ben@example.com", "local"].contains(&by.as_str()), "{decision}");
        assert_eq!(http.status, if by == "local" { 200 } else { 409 }, "{}", http.body);
        world.finished(&asked.run).await;
        let runs = world.effects.sent().len() - before;
        assert_eq!(runs, usize::from(by != "local"), "{decision}");
        told += if by == "local" { 2 } else { 1 };
        let losers =
            world.slack.until("the losers", |slack| slack.ephemerals().get(told - 1).map(|_| slack.ephemerals()));
        let losers = losers.await;
        assert_eq!(losers.len(), told);
        assert!(losers[told - 1].text.contains(&format!("by {by} at ")), "{losers:?}");
        let message = world.settled(&asked.message).await;
        assert!(message.blocks.to_string().contains(&format!("by {by} (")), "{:#}", message.blocks);
    }
}
