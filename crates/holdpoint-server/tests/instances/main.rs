//! Several servers over one real database: what happens at one of them is seen at the others, and can be answered there.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // Clippy allows it in tests and not in what they call.

mod cluster;
mod database;

use serde_json::json;

use cluster::{Cluster, Reading, soon};
use database::Kind;

/// A test over each kind of database.
macro_rules! over_each_database {
    ($($(#[$doc:meta])* async fn $name:ident($cluster:ident: Cluster) $body:block)*) => {
        $(
            mod $name {
                use super::*;

                async fn play($cluster: Cluster) $body

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn over_postgres() {
                    play(Cluster::over(Kind::Postgres).await).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn over_redis() {
                    play(Cluster::over(Kind::Redis).await).await;
                }
            }
        )*
    };
}

over_each_database! {
    async fn a_client_of_one_server_sees_what_happens_at_another_as_its_own_clients_do(cluster: Cluster) {
        let [a, b, c] = &cluster.servers;
        cluster.reply("Good morning.");
        let first = json!({"agent_id": "desk", "input": "hello", "session_id": "s"});
        a.post("/api/v1/runs?wait=60", first.clone()).await;
        let mut readings = Vec::new();
        for server in [a, b, c] {
            let mut reading = Reading::begin(server.request("GET", "/api/v1/sessions/s/events")).await;
            reading.until("run.finished").await;
            readings.push(reading);
        }
        let run = a.post("/api/v1/runs", first).await;
        cluster.say("I will");
        for reading in &mut readings {
            reading.until_said("I will").await;
        }
        cluster.say(" pay.");
        cluster.call("pay");
        for reading in &mut readings {
            reading.until("pause.opened").await;
        }
        let path = format!("/api/v1/runs/{}?wait=60", run["run_id"].as_str().unwrap());
        let pause = b.get(&path).await["pauses"][0]["id"].as_str().unwrap().to_owned();
        cluster.reply("Paid.");
        let decided = c.post(&format!("/api/v1/pauses/{pause}/decide?wait=60"), json!({"decision": "approve"})).await;
        assert_eq!(decided["run"]["status"], "done", "{decided}");
        for reading in &mut readings {
            reading.until("run.finished").await;
        }
        let [here, there, elsewhere] = &readings[..] else { unreachable!() };
        assert_eq!(here.seen.iter().filter(|line| *line == "says: I will pay.").count(), 1, "{:?}", here.seen);
        assert_eq!(there.seen, here.seen);
        assert_eq!(elsewhere.seen, here.seen);
        assert_eq!(cluster.effects.paid.available_permits(), 1);
    }

    async fn the_inbox_at_one_server_shows_what_others_change(cluster: Cluster) {
        let [a, b, _] = &cluster.servers;
        let mut inbox = Reading::begin(b.request("GET", "/api/v1/pauses/stream")).await;
        inbox.until("ready").await;
        cluster.call("pay");
        let run = a.post("/api/v1/runs?wait=60", json!({"agent_id": "desk", "input": "pay"})).await;
        let pause = run["pauses"][0]["id"].as_str().unwrap();
        assert_eq!(inbox.until("pause.opened").await["id"], pause);
        cluster.reply("Not paid.");
        a.post(&format!("/api/v1/pauses/{pause}/decide?wait=60"), json!({"decision": "deny", "message": "no"})).await;
        assert_eq!(inbox.until("pause.decided").await["id"], pause);
    }

    async fn each_server_counts_the_others_that_it_hears(cluster: Cluster) {
        for server in &cluster.servers {
            let metrics = soon(server.request("GET", "/metrics").send()).await.unwrap().text().await.unwrap();
            for line in ["holdpoint_other_instances 2", "holdpoint_news_dropped_total 0"] {
                assert!(metrics.lines().any(|found| found == line), "{line} in\n{metrics}");
            }
        }
    }

    async fn a_run_that_is_in_motion_at_one_server_is_cancelled_at_another(cluster: Cluster) {
        let [a, b, c] = &cluster.servers;
        cluster.call("wait");
        let run = a.post("/api/v1/runs", json!({"agent_id": "desk", "input": "wait"})).await;
        soon(cluster.effects.waiting.acquire()).await.unwrap().forget();
        let path = format!("/api/v1/runs/{}", run["run_id"].as_str().unwrap());
        let waiting = tokio::spawn({
            let request = c.request("GET", &format!("{path}?wait=60"));
            async move { request.send().await.unwrap().json::<serde_json::Value>().await.unwrap() }
        });
        let cancelled = b.post(&format!("{path}/cancel"), json!({"reason": "enough"})).await;
        assert_eq!(cancelled["status"], "cancelled");
        // The tool is told by the server that runs it.
        soon(cluster.effects.cancelled.acquire()).await.unwrap().forget();
        assert_eq!(soon(waiting).await.unwrap()["status"], "cancelled");
    }
}
