//! Records that were written once are readable for ever, and records that contradict themselves are refused.
//!
//! `fixtures/records/format-N/` has runs in every state worth keeping, in every format ever written. Nobody edits a file
//! there: `HOLDPOINT_WRITE_FIXTURES=1 cargo test -p holdpoint-core --test records` writes those that are missing, and
//! never touches one that exists. `MANIFEST.json` names each file's digest, and what a reader must make of it.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod manifest;
mod refused;
mod runs;
mod shelf;

use std::collections::BTreeSet;

use common::{assert_same, next_line};
use holdpoint_core::Run;
use holdpoint_core::json::Digest;
use holdpoint_core::record::{self, Entry};
use manifest::Manifest;
use shelf::Shelf;

#[test]
fn every_format_ever_written_has_records() {
    let formats: BTreeSet<u64> = Manifest::read().records.iter().map(|record| record.format).collect();
    assert_eq!(formats, (1..=record::FORMAT).collect());
}

#[test]
fn the_manifest_names_every_file_and_no_file_ever_changed() {
    let manifest = Manifest::read();
    let listed: BTreeSet<&str> = manifest.files().map(|(file, _)| file).collect();
    assert_eq!(listed, shelf::files().iter().map(String::as_str).collect());
    for (file, sha256) in manifest.files() {
        assert_eq!(Digest::of(&shelf::bytes(file)).to_string(), sha256, "{file} was changed: add a new file instead");
    }
}

#[test]
fn every_record_is_read_and_means_what_it_meant() {
    for record in &Manifest::read().records {
        let shelf = Shelf::read(&record.file).unwrap();
        let entries = shelf.entries().unwrap();
        let run = record::replay(shelf.run, &entries).unwrap_or_else(|refusal| panic!("{}: {refusal}", record.file));
        let folded = Run::fold(shelf.run, entries.iter().flat_map(Entry::timed));
        assert_same(&folded, &run, &record.file);
        assert_eq!(next_line(&run), record.next, "{}", record.file);
        assert_eq!(common::pauses(&run), record.pauses, "{}", record.file);
    }
}

#[test]
fn a_record_of_this_format_is_written_again_byte_for_byte() {
    for record in Manifest::read().records.iter().filter(|record| record.format == record::FORMAT) {
        let shelf = Shelf::read(&record.file).unwrap();
        let again = Shelf::of(shelf.run, &shelf.entries().unwrap()).to_text();
        assert_same(&again, &String::from_utf8(shelf::bytes(&record.file)).unwrap(), &record.file);
    }
}

#[test]
fn a_run_goes_on_from_every_record() {
    for record in &Manifest::read().records {
        let shelf = Shelf::read(&record.file).unwrap();
        let mut run = record::replay(shelf.run, &shelf.entries().unwrap()).unwrap();
        if run.end().is_none() {
            let cancel =
                holdpoint_core::input::Input::Cancel { by: common::actor("ana"), reason: String::new(), request: None };
            run.advance(cancel, run.started_at().unwrap()).unwrap();
        }
        assert!(next_line(&run).starts_with("next finished"), "{}", record.file);
    }
}

/// What a reader of this format must know; each must stand in some record, so that no shape is lost unseen.
#[test]
fn the_records_hold_every_shape() {
    let texts: Vec<String> = Manifest::read()
        .records
        .iter()
        .filter(|record| record.format == record::FORMAT)
        .map(|record| String::from_utf8(shelf::bytes(&record.file)).unwrap())
        .collect();
    let missing: Vec<&str> =
        runs::SHAPES.iter().filter(|shape| !texts.iter().any(|text| text.contains(**shape))).copied().collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn what_contradicts_itself_is_refused_for_the_right_reason() {
    let manifest = Manifest::read();
    assert!(manifest.refused.len() >= 40);
    for case in &manifest.refused {
        let shelf = Shelf::read(&case.file).unwrap();
        let read = shelf.entries().and_then(|entries| record::replay(shelf.run, &entries));
        let refusal = read.err().unwrap_or_else(|| panic!("{} is accepted", case.file));
        assert_eq!(refusal.code(), case.code, "{}: {refusal}", case.file);
        assert!(refusal.to_string().contains(&case.says), "{}: {refusal}", case.file);
    }
}

#[test]
fn no_beginning_of_a_record_is_taken_for_a_record() {
    for record in &Manifest::read().records {
        for body in Shelf::read(&record.file).unwrap().bodies() {
            for length in (0..body.len()).step_by(7) {
                assert!(record::decode(&body.as_bytes()[..length]).is_err(), "{}", &body[..length]);
            }
        }
    }
}

#[test]
fn an_argument_is_stored_once_however_deep_its_agent_and_however_often_it_is_shown() {
    let large = "\\\"".repeat(5_000);
    let script = format!(
        r#"given tool helper: agent
           user: go
           model: helper
           policy: allow
           model 1.0: helper
           policy: allow
           model 1.0/1.0: pay {{"note": "{large}"}}
           policy: hold
           ana: approve #1
           drift 1.0/1.0/1.0: "changed"
           ana: approve #2
           start
           crash"#
    );
    let entries = common::play(&script).entries;
    let bytes: usize = entries.iter().map(|entry| record::encode(&entry.events).len()).sum();
    assert!((10_000..13_000).contains(&bytes), "{bytes} bytes");
}
