//! The tables of cases are true: every row of the list is there, and every test that they name exists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How many rows each group of the list has.
const ROWS: [(char, usize); 15] = [
    ('a', 16),
    ('b', 15),
    ('c', 15),
    ('d', 58),
    ('e', 22),
    ('f', 17),
    ('g', 69),
    ('h', 21),
    ('i', 34),
    ('j', 35),
    ('k', 69),
    ('l', 11),
    ('m', 30),
    ('n', 8),
    ('o', 7),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The cells of a group's rows.
fn rows(group: char) -> Vec<Vec<String>> {
    let path = root().join(format!("docs/cases/group-{group}.md"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().filter(|line| line.starts_with("| ") && line.contains(".ts:"));
    lines.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// The names of all functions in the tests and sources of the crates that tables speak of.
fn functions() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for folder in ["crates/holdpoint/tests", "crates/holdpoint-tools/src", "crates/holdpoint-core/tests"] {
        collect(&root().join(folder), &mut names);
    }
    names
}

fn collect(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let after_fn = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            names.extend(after_fn.map(str::to_owned));
        }
    }
}

#[test]
fn every_row_of_the_list_is_in_its_table() {
    for (group, expected) in ROWS {
        let rows = rows(group);
        assert_eq!(rows.len(), expected, "group {group}");
        let distinct: BTreeSet<&String> = rows.iter().map(|cells| &cells[0]).collect();
        assert_eq!(distinct.len(), expected, "group {group} has a row twice");
    }
}

#[test]
fn every_test_that_a_table_names_exists() {
    let functions = functions();
    let mut named = 0;
    for (group, _) in ROWS {
        for cells in rows(group) {
            for name in cells[2].split('`').filter(|part| part.contains("::")) {
                let last = name.rsplit("::").next().unwrap_or_default();
                // Several of one module stand in braces.
                for function in last.trim_matches(['{', '}']).split(", ") {
                    assert!(functions.contains(function), "group {group}, {}: there is no test {function}", cells[0]);
                    named += 1;
                }
            }
        }
    }
    assert!(named >= 350, "only {named} tests are named");
}

#[test]
fn a_row_without_a_test_says_why() {
    for (group, _) in ROWS {
        for cells in rows(group).iter().filter(|cells| !cells[2].contains("::")) {
            assert!(cells.get(3).is_some_and(|note| !note.is_empty()), "group {group}, {}: no reason", cells[0]);
        }
    }
}
