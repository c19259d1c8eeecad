//! Restarts, deaths, clients that hang up and models that fail, as they were captured with a store and without one. Here
//! there always is one.

use serde_json::json;

use super::player::Player;
use crate::world::{Answer, Reading};

#[tokio::test]
async fn what_waits_survives_a_restart_also_where_it_was_lost_there() {
    for [pause, list, approve] in [
        ["libsql-restart-1-pause", "libsql-restart-2-list-after-restart", "libsql-restart-3-approve-after-restart"],
        ["nostore-restart-1-pause", "nostore-restart-2-list-after-restart", "nostore-restart-3-approve-after-restart"],
    ] {
        let mut player = Player::new().await;
        player.stream(pause).await;
        player.world.restart().await;
        let listed = player.answered(list, &["runs", "total"]).await;
        assert_eq!(
            (&listed["total"], &listed["runs"][0]["toolCalls"][0]["requiresApproval"]),
            (&json!(1), &json!(true))
        );
        let (captured, resumed) = player.play(approve).await;
        match captured.status {
            200 => player.check(&captured, &resumed),
            lost => assert_eq!((lost, resumed.types().last().unwrap().as_str()), (500, "finish"), "{approve}"),
        }
        assert_eq!(player.world.tools.calls().len(), 1, "{approve}");
    }
}

#[tokio::test]
async fn a_death_during_the_tool_is_asked_about_and_the_tool_does_not_run_again() {
    for [pause, approve, list, again] in [
        [
            "libsql-crash-1-pause",
            "libsql-crash-2-approve-killed-midway",
            "libsql-crash-3-list",
            "libsql-crash-4-approve-again",
        ],
        [
            "nostore-crash-1-pause",
            "nostore-crash-2-approve-killed-midway",
            "nostore-crash-3-list",
            "nostore-crash-4-approve-again",
        ],
    ] {
        let mut player = Player::new().await;
        player.stream(pause).await;
        player.world.tools.close();
        let _killed = Reading::begin(player.request(approve).1).await;
        player.world.tools.wait_for_calls(1).await;
        player.world.kill_and_start().await;
        player.world.tools.open();
        // Whether the new server has looked at the run already is not said; that it waits for another approval never is.
        let listed = player.answered(list, &["runs", "total"]).await;
        for run in listed["runs"].as_array().unwrap() {
            assert_eq!(run["toolCalls"][0]["requiresApproval"], json!(false), "{list}: {run}");
        }
        let (_, resumed) = player.play(again).await;
        assert_eq!(resumed.types(), ["tool-call", "tool-call-suspended"], "{again}");
        assert_eq!(player.world.tools.calls().len(), 1, "{again}: there it ran twice, or was lost");
    }
}

#[tokio::test]
async fn a_client_that_hangs_up_during_the_tool_does_not_end_the_run() {
    for [pause, approve, list, again] in [
        [
            "libsql-disc-1-pause",
            "libsql-disc-2-approve-client-disconnect",
            "libsql-disc-3-list",
            "libsql-disc-4-approve-again",
        ],
        [
            "nostore-disc-1-pause",
            "nostore-disc-2-approve-client-disconnect",
            "nostore-disc-3-list",
            "nostore-disc-4-approve-again",
        ],
    ] {
        let mut player = Player::new().await;
        player.stream(pause).await;
        player.world.tools.close();
        let gone = Reading::begin(player.request(approve).1).await;
        player.world.tools.wait_for_calls(1).await;
        drop(gone);
        assert_eq!(player.answered(list, &["runs", "total"]).await["total"], json!(0));
        player.world.tools.open();
        let (captured, resumed) = player.play(again).await;
        assert_eq!((captured.status, resumed.types().last().unwrap().as_str()), (500, "finish"), "{again}");
        assert_eq!(resumed.payloads("tool-result").len(), 1, "{again}");
        assert_eq!(player.world.tools.calls().len(), 1, "{again}");
    }
}

#[tokio::test]
async fn a_model_that_fails_after_the_tool_is_told_and_what_happened_can_be_read_again() {
    use holdpoint_testkit::model_server::Answer as Reply;
    let mut player = Player::new().await;
    player.stream("modelfail-1-pause").await;
    player.world.model.push(Reply::error(401, "a-key-for-tests is wrong"));
    let (captured, failed) = player.play("modelfail-2-approve").await;
    player.check(&captured, &failed);
    assert!(!failed.body.contains("a-key-for-tests"), "{}", failed.body);
    assert_eq!(player.answered("modelfail-3-list", &["runs", "total"]).await["total"], json!(0));
    let (captured, again) = player.play("modelfail-4-approve-again").await;
    assert_eq!((captured.status, again.payloads("tool-error").len()), (500, 1));
    assert_eq!(again.types().last().unwrap(), "finish");
    assert_eq!(player.world.tools.calls().len(), 1);
}

#[tokio::test]
async fn what_durable_agents_do_there_every_agent_does_here() {
    let mut player = Player::new().await;
    let (captured, pause) = player.play("durable-1-stream").await;
    let until_pause = captured.types.iter().position(|kind| kind == "tool-call-approval").unwrap();
    let mut theirs: Vec<&String> =
        captured.types[..=until_pause].iter().filter(|kind| *kind != "response-metadata").collect();
    let ours = pause.types();
    let mut ours: Vec<&String> = ours.iter().collect();
    theirs.sort();
    ours.sort();
    assert_eq!(ours, theirs, "it ends where a person must look");
    let listed = player.answered("durable-3-list", &["runs", "total"]).await;
    assert_eq!(listed["total"], json!(1));
    player.stream("durable-4-approve").await;
    let (captured, again) = player.play("durable-5-approve-again").await;
    assert_eq!((captured.status, again.types().last().unwrap().as_str()), (403, "finish"));

    player.play("durable-6-stream").await;
    let racing = ["durable-7-concurrent", "durable-7-concurrent_2", "durable-7-concurrent_3"];
    for answer in futures_util::future::join_all(racing.map(|name| Answer::to(player.request(name).1))).await {
        assert_eq!(answer.types().last().unwrap(), "finish", "nobody who says the same is turned away");
    }
    let (_, both) = player.play("durable-8-parallel").await;
    assert_eq!(both.waiting().len(), 2);
    assert_eq!(player.world.tools.calls().len(), 2);
}

#[tokio::test]
async fn a_stream_that_is_held_open_shows_what_an_open_stream_showed() {
    let mut player = Player::new().await;
    let (captured, _) = player.request("durable-9-open-stream");
    let mut body = captured.body.clone().unwrap();
    body["holdOpen"] = json!(true);
    let mut open = Reading::begin(player.world.request("POST", &captured.path).json(&body)).await;
    let mut chunks = Vec::new();
    while chunks.last().is_none_or(|last: &serde_json::Value| last["type"] != "tool-call-approval") {
        chunks.push(open.next().await.unwrap());
    }
    player.names.learn(&captured, &chunks);
    player.stream("durable-10-approve-while-first-open").await;
    while let Some(chunk) = open.next().await {
        chunks.push(chunk);
    }
    let kinds = |chunks: &[serde_json::Value]| {
        let mut kinds: Vec<String> = chunks.iter().map(|chunk| chunk["type"].as_str().unwrap().to_owned()).collect();
        kinds.retain(|kind| kind != "response-metadata");
        kinds.sort();
        kinds.dedup();
        kinds
    };
    assert_eq!(kinds(&chunks), kinds(&captured.chunks));
    assert_eq!(chunks.last().unwrap()["type"], json!("finish"));
}
