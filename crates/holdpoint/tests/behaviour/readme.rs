//! The README names the tests behind each guarantee: they are there, under that name, in that file.
use std::fs;
use std::path::PathBuf;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The tests of a row, as (name, file).
fn tests(row: &str) -> Vec<(&str, &str)> {
    let links = row.split("[`").skip(1);
    links
        .filter_map(|link| link.split_once("`]("))
        .map(|(name, rest)| (name, rest.split(')').next().unwrap()))
        .collect()
}

#[test]
fn every_guarantee_has_tests_that_are_there() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let rows: Vec<&str> = readme.lines().filter(|line| line.starts_with("| ") && line.contains("[`")).collect();
    assert_eq!(rows.len(), 12);
    for (number, row) in (1..).zip(rows) {
        assert!(row.starts_with(&format!("| {number} | ")), "{row}");
        assert!(!tests(row).is_empty(), "{row}");
        for (name, file) in tests(row) {
            let source = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(source.contains(&format!("fn {name}(")), "{name} is not in {file}");
        }
    }
}
