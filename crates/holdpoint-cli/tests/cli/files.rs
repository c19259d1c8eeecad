//! `init`, and what the program says of itself.

use crate::world::{Place, complained, printed};

#[test]
fn init_writes_a_folder_that_is_right_and_never_overwrites() {
    let place = Place::new();
    let first = place.run(&["init"]);
    assert!(first.status.success() && printed(&first).contains("+ agents/refund-desk.yaml"), "{}", printed(&first));
    place.write("agents/refund-desk.yaml", "# mine\n");
    let second = place.run(&["init"]);
    assert!(printed(&second).contains("= agents/refund-desk.yaml (was there, left as it is)"), "{}", printed(&second));
    assert_eq!(std::fs::read_to_string(place.join("agents/refund-desk.yaml")).unwrap(), "# mine\n");
    let other = Place::new();
    other.run(&["init", "inner/folder"]);
    let checked = other.run(&["check", "inner/folder"]);
    assert!(checked.status.success(), "{}{}", printed(&checked), complained(&checked));
    assert!(complained(&checked).contains("4 agents can be served"), "{}", complained(&checked));
}

#[test]
fn init_says_what_cannot_be_written() {
    let place = Place::new();
    place.write("taken", "a file, not a folder");
    let refused = place.run(&["init", "taken"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(complained(&refused).contains("taken"), "{}", complained(&refused));
}

#[test]
fn every_setting_is_in_the_help_and_completions_are_printed() {
    let place = Place::new();
    let help = printed(&place.run(&["serve", "--help"]));
    for name in ["--listen", "HOLDPOINT_LISTEN", "--store", "AGENT_CONFIG_DIR", "key access.mode", "Exit codes"] {
        let all = if name == "Exit codes" { printed(&place.run(&["--help"])) } else { help.clone() };
        assert!(all.contains(name), "{name} is not in {all}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(printed(&place.run(&["completions", shell])).contains("holdpoint"));
    }
}

#[test]
fn a_command_line_that_cannot_be_read_has_a_number_of_its_own() {
    let place = Place::new();
    assert_eq!(place.run(&["serve", "--no-such-flag"]).status.code(), Some(2));
    assert_eq!(place.run(&["run"]).status.code(), Some(2));
    let wrong = place.run(&["run", "--demo", "no-such-agent", "hello", "--store", "memory:"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(complained(&wrong).contains("there are: record-keeper"), "{}", complained(&wrong));
}
