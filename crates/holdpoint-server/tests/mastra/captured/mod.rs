//! Exchanges captured from Mastra itself, played again as requests: what we answer has the same shape, but for the
//! differences that are listed here. `fixtures/mastra/SCOPE.tsv` says of each whether it is played, and why not.

mod exchange;
mod player;

mod alike;
mod otherwise;
mod survives;

use std::collections::BTreeSet;
use std::path::Path;

/// The files that play exchanges.
const PLAYING: [(&str, &str); 3] = [
    ("alike", include_str!("alike.rs")),
    ("otherwise", include_str!("otherwise.rs")),
    ("survives", include_str!("survives.rs")),
];

#[test]
fn every_captured_exchange_is_played_or_is_out_of_scope_for_a_reason() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/mastra");
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let (index, scope) = (text("INDEX.tsv"), text("SCOPE.tsv"));
    let first = |line: &str| line.split('\t').next().unwrap().to_owned();
    let captured: BTreeSet<String> = index.lines().skip(1).map(first).collect();
    let named: Vec<String> = scope.lines().skip(1).map(first).collect();
    assert_eq!(named.iter().cloned().collect::<BTreeSet<_>>(), captured, "each is named");
    assert_eq!(named.len(), captured.len(), "and named once");

    let mut played = BTreeSet::new();
    for row in scope.lines().skip(1) {
        let [name, verdict, what] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("three columns: {row}") };
        match verdict {
            "replayed" => {
                let (_, test) = PLAYING.iter().find(|(file, _)| *file == what).unwrap_or_else(|| panic!("{row}"));
                assert!(test.contains(&format!("\"{name}\"")), "{what} does not play {name}");
                played.insert(format!("{name}.json"));
            }
            "out of scope" => assert!(what.len() > 20, "a reason: {row}"),
            _ => panic!("replayed or out of scope: {row}"),
        }
    }
    let kept = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let kept: BTreeSet<String> = kept.filter(|name| name.ends_with(".json")).collect();
    assert_eq!(kept, played, "what is kept is played, and what is played is kept");
}
