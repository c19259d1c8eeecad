//! The demo agents do what they say of themselves.

use holdpoint_core::decision::Decision;
use holdpoint_core::pause::PauseKind;

use crate::bench::{Bench, output, pause};
use holdpoint_server::agents::demo::{FILES, TRY};
use holdpoint_server::agents::{Catalogue, CatalogueOptions};

fn demo() -> Catalogue {
    Catalogue::demo(CatalogueOptions::default()).unwrap()
}

fn message(agent: &str) -> &'static str {
    TRY.iter().find(|(name, ..)| *name == agent).unwrap().1
}

#[test]
fn there_is_one_for_each_kind_of_pause_and_each_says_that_it_is_a_demo() {
    let catalogue = demo();
    assert!(catalogue.is_demo() && catalogue.diagnostics().is_empty(), "{:#?}", catalogue.diagnostics());
    let mut shown: Vec<String> = catalogue.list().iter().map(|agent| agent.labels["demo"].clone()).collect();
    shown.sort();
    assert_eq!(shown, ["approval", "confirmation", "in_doubt", "question"]);
    assert!(catalogue.list().iter().all(|agent| agent.demo.is_some()));
}

#[test]
fn their_files_in_a_folder_are_the_same_agents() {
    let bench = Bench::new(FILES);
    let catalogue = bench.open_with(true).unwrap();
    let digests = |catalogue: &Catalogue| {
        catalogue.list().iter().map(|agent| agent.graph.digest(agent.graph.root())).collect::<Vec<_>>()
    };
    assert_eq!(digests(&catalogue), digests(&demo()));
}

#[tokio::test]
async fn a_refund_waits_and_goes_on_by_what_was_decided() {
    let (bench, catalogue) = (Bench::new(&[]), demo());
    let run = bench.start(&catalogue, "refund-desk", message("refund-desk")).await;
    let held = pause(&run);
    assert_eq!((held.kind(), held.tool().unwrap().as_str()), (PauseKind::Approval, "issue_refund"));
    assert_eq!(held.pause.reason.as_deref(), Some("Money leaves the company"));
    let done = output(&bench.decide(&catalogue, &held, Decision::Approve).await);
    assert!(done.starts_with("Done. The tool says: refund booked (a demo: no money moved): {"), "{done}");
    let held = pause(&bench.start(&catalogue, "refund-desk", message("refund-desk")).await);
    let denied = output(&bench.decide(&catalogue, &held, Decision::deny("Ask for a photo first.")).await);
    assert_eq!(denied, "I did not refund the order. I was told: Ask for a photo first.");
}

#[tokio::test]
async fn a_question_and_a_confirmation_wait_for_their_answers() {
    let (bench, catalogue) = (Bench::new(&[]), demo());
    let asked = pause(&bench.start(&catalogue, "trip-planner", message("trip-planner")).await);
    assert_eq!(asked.kind(), PauseKind::Question);
    let answers = [
        ("Where shall it go?".to_owned(), vec!["The sea".to_owned()]),
        ("What do you want to do there?".to_owned(), vec!["Walk".to_owned(), "Read".to_owned()]),
    ];
    let done = output(&bench.decide(&catalogue, &asked, Decision::Answer { answers: answers.into() }).await);
    assert!(done.contains("The sea") && done.contains("Walk"), "{done}");
    let asked = pause(&bench.start(&catalogue, "record-keeper", message("record-keeper")).await);
    assert_eq!(asked.kind(), PauseKind::Confirmation);
    let done = output(&bench.decide(&catalogue, &asked, Decision::Approve).await);
    assert!(done.contains("nothing was deleted"), "{done}");
}
