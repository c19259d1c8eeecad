//! Files that change while the server runs.

use std::sync::Arc;
use std::time::SystemTime;

use crate::bench::{Bench, agent, later};
use holdpoint_server::agents::Catalogue;

fn names(catalogue: &Catalogue) -> Vec<String> {
    catalogue.list().iter().map(|agent| agent.name.clone()).collect()
}

fn two() -> Bench {
    Bench::new(&[
        ("a.yaml", &agent("a", "")),
        ("a.json", r#"{"replies": ["x"]}"#),
        ("b.yaml", &agent("b", "")),
        ("b.json", r#"{"replies": ["x"]}"#),
    ])
}

fn described(name: &str, description: &str) -> String {
    agent(name, "").replace(&format!("the agent {name}"), description)
}

/// Describes agent `a` in other words of the same length, and sets the file's time back.
fn change_unseen(bench: &Bench, description: &str) {
    let before = std::fs::metadata(bench.path("a.yaml")).unwrap().modified().unwrap();
    bench.write("a.yaml", &described("a", description));
    let file = std::fs::File::options().write(true).open(bench.path("a.yaml")).unwrap();
    file.set_modified(before).unwrap();
}

#[test]
fn a_change_is_served_at_the_next_look_and_other_agents_stay_the_very_same() {
    let bench = two();
    let catalogue = bench.open().unwrap();
    let (a, b) = (catalogue.find("a").unwrap(), catalogue.find("b").unwrap());
    bench.write("a.yaml", &described("a", "something new"));
    catalogue.look(later());
    assert_eq!(catalogue.find("a").unwrap().description, "something new");
    assert!(!Arc::ptr_eq(&a, &catalogue.find("a").unwrap()));
    assert!(Arc::ptr_eq(&b, &catalogue.find("b").unwrap()));
}

#[test]
fn a_change_that_leaves_length_and_time_alone_shows_while_the_file_is_fresh() {
    let bench = two();
    bench.write("a.yaml", &described("a", "one"));
    let catalogue = bench.open().unwrap();
    change_unseen(&bench, "two");
    catalogue.look(SystemTime::now());
    assert_eq!(catalogue.find("a").unwrap().description, "two");
}

#[test]
fn a_bad_file_is_reported_and_its_agent_stays_as_it_was() {
    let bench = two();
    let catalogue = bench.open().unwrap();
    bench.write("a.yaml", "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: { name: a }\nspec: { type: no_such }\n");
    bench.write("b.yaml", &described("b", "changed"));
    catalogue.look(later());
    assert_eq!(names(&catalogue), ["a", "b"]);
    assert_eq!(catalogue.find("a").unwrap().description, "the agent a");
    assert_eq!(catalogue.find("b").unwrap().description, "changed");
    let told = catalogue.diagnostics().iter().map(ToString::to_string).collect::<String>();
    assert!(told.contains("a.yaml:4:"), "{told}");
    bench.write("a.yaml", &described("a", "mended"));
    catalogue.look(later());
    assert_eq!(catalogue.find("a").unwrap().description, "mended");
    assert!(catalogue.diagnostics().is_empty());
}

#[test]
fn an_agent_that_can_no_longer_be_built_stays_as_it_was() {
    let bench = two();
    let catalogue = bench.open().unwrap();
    bench.write("a.yaml", &agent("a", "  tools: [{ ref: mcp://files/write }]"));
    catalogue.look(later());
    assert_eq!(names(&catalogue), ["a", "b"]);
    assert!(catalogue.find("a").unwrap().tools.is_empty());
}

#[test]
fn a_file_that_is_removed_takes_its_agent_with_it_and_a_renamed_agent_leaves_no_shadow() {
    let bench = two();
    let catalogue = bench.open().unwrap();
    bench.remove("a.yaml");
    bench.write("b.yaml", &agent("c", "").replace("c.json", "b.json"));
    catalogue.look(later());
    assert_eq!(names(&catalogue), ["c"]);
}

#[test]
fn a_new_file_is_found_and_a_script_that_changes_is_a_new_version() {
    let bench = two();
    let catalogue = bench.open().unwrap();
    let a = catalogue.find("a").unwrap();
    bench.write("d.yml", &agent("d", "").replace("d.json", "a.json"));
    bench.write("a.json", r#"{"replies": ["something else"]}"#);
    catalogue.look(later());
    assert_eq!(names(&catalogue), ["a", "b", "d"]);
    assert_ne!(a.graph.digest(a.graph.root()), {
        let now = catalogue.find("a").unwrap();
        now.graph.digest(now.graph.root())
    });
}

#[test]
fn a_folder_that_shows_no_change_is_not_read_again() {
    let bench = two();
    bench.write("a.yaml", &described("a", "one"));
    let catalogue = bench.open().unwrap();
    catalogue.look(later());
    change_unseen(&bench, "two");
    // Only a reading could tell: length, time and place of the file are as they were, and it is not fresh any more.
    catalogue.look(later());
    assert_eq!(catalogue.find("a").unwrap().description, "one");
}

#[test]
fn a_bad_file_stops_a_strict_start_only() {
    let bench = two();
    bench.write("bad.yaml", "kind: Agent\n");
    assert_eq!(names(&bench.open().unwrap()), ["a", "b"]);
    let refused = bench.open_with(true).err().unwrap();
    assert!(refused.to_string().contains("bad.yaml:"), "{refused}");
}

#[test]
fn a_store_that_is_not_there_stops_the_start_and_memory_does_not() {
    let bench = two();
    let with = |backend: &str| agent("a", &format!("  interrupt: {{ enabled: true, checkpoint_backend: {backend} }}"));
    bench.write("a.yaml", &with("memory"));
    assert!(bench.open().is_ok());
    bench.write("a.yaml", &with("redis"));
    let refused = bench.open().err().unwrap();
    assert!(refused.to_string().contains("checkpoint_backend: redis"), "{refused}");
    assert!(refused.to_string().contains("--store redis://"), "it says what to do: {refused}");
    // Where Redis is the server's store it is what was asked for.
    assert!(bench.open_on_redis().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_watched_folder_is_looked_at_every_second() {
    let bench = two();
    let catalogue = bench.open().unwrap();
    let watching = catalogue.watch();
    bench.write("a.yaml", &described("a", "seen by itself"));
    // Time stands still but for this wait; the look itself runs on a thread of its own.
    while catalogue.find("a").unwrap().description != "seen by itself" {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    drop(watching);
}
