//! A run that is paused goes on with the definition that it was paused with, over edits, removals and restarts.

use holdpoint_config::FixedEnvironment;
use holdpoint_core::decision::Decision;
use holdpoint_core::ids::AgentId;
use holdpoint_core::refusal::Refusal;
use holdpoint_runtime::RunError;

use crate::bench::{Bench, agent, calls, echo, later, output, pause};

fn file(says: &str) -> String {
    agent("a", &format!("  tools:\n{}", echo("act", says, "")))
}

fn bench() -> Bench {
    Bench::new(&[("a.yaml", &file("old")), ("a.json", &calls("act", "{}"))])
}

#[tokio::test]
async fn an_edit_changes_new_runs_and_leaves_a_paused_one_as_it_was() {
    let bench = bench();
    let catalogue = bench.open().unwrap();
    let old = pause(&bench.start(&catalogue, "a", "go").await);
    bench.write("a.yaml", &file("new"));
    catalogue.look(later());
    assert_eq!(output(&bench.decide(&catalogue, &old, Decision::Approve).await), "old {}");
    let new = pause(&bench.start(&catalogue, "a", "go").await);
    assert_eq!(output(&bench.decide(&catalogue, &new, Decision::Approve).await), "new {}");
}

#[tokio::test]
async fn a_restart_after_an_edit_rebuilds_what_the_run_was_paused_with() {
    let bench = bench();
    let old = pause(&bench.start(&bench.open().unwrap(), "a", "go").await);
    bench.write("a.yaml", &file("new"));
    bench.write("a.json", r#"{"replies": ["a script that nobody follows"]}"#);
    let fresh = bench.open().unwrap();
    assert_eq!(output(&bench.decide(&fresh, &old, Decision::Approve).await), "old {}");
}

#[tokio::test]
async fn an_agent_whose_file_is_gone_still_finishes_what_it_began() {
    let bench = bench();
    let old = pause(&bench.start(&bench.open().unwrap(), "a", "go").await);
    bench.remove("a.yaml");
    let fresh = bench.open().unwrap();
    assert!(fresh.find("a").is_none());
    assert_eq!(output(&bench.decide(&fresh, &old, Decision::Approve).await), "old {}");
}

#[tokio::test]
async fn a_change_of_an_agent_that_is_called_is_a_new_version_of_the_caller() {
    let bench = Bench::new(&[
        ("boss.yaml", &agent("boss", "  tools: [{ ref: agent://a }]")),
        ("boss.json", &calls("a", r#"{"input": "go"}"#)),
        ("a.yaml", &file("old")),
        ("a.json", &calls("act", "{}")),
    ]);
    let catalogue = bench.open().unwrap();
    let old = pause(&bench.start(&catalogue, "boss", "go").await);
    bench.write("a.yaml", &file("new"));
    catalogue.look(later());
    assert_eq!(output(&bench.decide(&catalogue, &old, Decision::Approve).await), "old {}");
    let new = pause(&bench.start(&catalogue, "boss", "go").await);
    assert_eq!(output(&bench.decide(&catalogue, &new, Decision::Approve).await), "new {}");
}

#[tokio::test]
async fn secrets_are_not_stored_and_a_rebuilt_agent_gets_those_of_the_day() {
    let tool = "    - name: act\n      description: x\n      parameters: { type: object }\n      \
                command: { argv: [\"/bin/sh\", \"-c\", \"printf %s \\\"$TOKEN\\\" | wc -c | tr -d ' '\"], env: { TOKEN: \"${SECRET}\" } }\n";
    let mut bench =
        Bench::new(&[("a.yaml", &agent("a", &format!("  tools:\n{tool}"))), ("a.json", &calls("act", "{}"))]);
    bench.environment = FixedEnvironment::empty().with("SECRET", "s3cret-of-yesterday");
    let run = bench.start(&bench.open().unwrap(), "a", "go").await;
    let digest = run.agent().unwrap().digest;
    let stored = bench.runtime.store().definition(&digest).await.unwrap().unwrap();
    let stored = String::from_utf8(stored.to_vec()).unwrap();
    assert!(stored.contains("${SECRET}") && !stored.contains("s3cret"), "{stored}");
    bench.environment = FixedEnvironment::empty().with("SECRET", "four");
    bench.remove("a.yaml");
    let run = bench.decide(&bench.open().unwrap(), &pause(&run), Decision::Approve).await;
    assert_eq!(output(&run), "4");
}

#[tokio::test]
async fn a_version_that_cannot_be_rebuilt_leaves_the_run_waiting() {
    let mut bench = bench();
    bench.write("a.yaml", &file("${WORD}").replace("printf '${WORD} '; cat", "printf ${WORD}"));
    bench.environment = FixedEnvironment::empty().with("WORD", "spoken");
    let run = bench.start(&bench.open().unwrap(), "a", "go").await;
    bench.record(&pause(&run), Decision::Approve).await;
    bench.environment = FixedEnvironment::empty();
    bench.remove("a.yaml");
    let refused = bench.go_on(&bench.open().unwrap(), run.id()).await.unwrap_err();
    let missing = Refusal::AgentMissing(AgentId::root("a").unwrap());
    assert!(matches!(&refused, RunError::Refused(refusal) if *refusal == missing), "{refused}");
    bench.environment = FixedEnvironment::empty().with("WORD", "heard");
    assert_eq!(output(&bench.go_on(&bench.open().unwrap(), run.id()).await.unwrap()), "heard");
}
