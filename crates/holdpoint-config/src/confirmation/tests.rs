use super::*;

#[test]
fn each_documented_example_asks_for_a_confirmation() {
    let phrases = Phrases::default();
    for (sentence, phrase) in [
        ("Please confirm you want to delete...", "please confirm"),
        ("Do you confirm this action?", "do you confirm"),
        ("Are you sure you want to proceed?", "are you sure"),
        ("Shall I proceed with the deployment?", "shall i proceed"),
        ("Would you like me to proceed?", "would you like me to proceed"),
        ("Do you want to proceed with deletion?", "do you want to proceed"),
        ("Do you want me to send this email?", "do you want me to"),
        ("Should I go ahead and reset the database?", "should i go ahead"),
        ("Please confirm before I execute this.", "please confirm"),
        ("You must confirm before I execute this.", "confirm before"),
        ("Confirmation required for this action.", "confirmation required"),
        ("Waiting for your confirmation...", "waiting for your confirmation"),
        ("This action needs your approval.", "need your approval"),
        ("I need your approval first.", "need your approval"),
    ] {
        assert_eq!(phrases.matches(sentence), Some(phrase), "{sentence}");
    }
    assert_eq!(phrases.iter().count(), 12);
}

#[test]
fn case_white_space_emphasis_and_hidden_characters_do_not_count() {
    let phrases = Phrases::default();
    for reply in [
        "PLEASE CONFIRM",
        "please\n\n   confirm",
        "Please\u{a0}confirm",
        "Please\tconfirm",
        "**Please** _confirm_ `now`",
        "Ple\u{200b}ase con\u{ad}firm",
        "…please\u{3000}confirm…",
    ] {
        assert_eq!(phrases.matches(reply), Some("please confirm"), "{reply:?}");
    }
}

#[test]
fn other_replies_do_not_ask() {
    let phrases = Phrases::default();
    for reply in ["", "Done.", "It is confirmed.", "please, confirm", "I am sure you need approval.", "pleaseconfirm"] {
        assert_eq!(phrases.matches(reply), None, "{reply:?}");
    }
}

#[test]
fn keywords_replace_the_default_ones_and_with_a_plus_extend_them() {
    let replaced = Phrases::from_keywords(["xin xác nhận", "確認してください"]);
    assert_eq!(replaced.matches("XIN XÁC NHẬN"), Some("xin xác nhận"));
    assert_eq!(replaced.matches("この操作を確認してください。"), Some("確認してください"));
    assert_eq!(replaced.matches("Please confirm"), None);

    let extended = Phrases::from_keywords(["+ xin xác nhận", "proceed now"]);
    assert_eq!(extended.matches("Xin xác nhận"), Some("xin xác nhận"));
    assert_eq!(extended.matches("Proceed now?"), Some("proceed now"));
    assert_eq!(extended.matches("Please confirm"), Some("please confirm"));
}

#[test]
fn an_accent_is_the_same_within_its_letter_and_after_it() {
    let phrases = Phrases::from_keywords(["xin xác nhận", "bestätigen", "потвърди"]);
    assert_eq!(phrases.matches("Xin xa\u{301}c nha\u{323}\u{302}n"), Some("xin xác nhận"));
    assert_eq!(phrases.matches("XIN XA\u{301}C NHA\u{302}\u{323}N"), Some("xin xác nhận"));
    assert_eq!(phrases.matches("Bitte besta\u{308}tigen"), Some("bestätigen"));
    assert_eq!(phrases.matches("ПОТВЪРДИ"), Some("потвърди"));
}

#[test]
fn keywords_without_anything_to_find_never_match() {
    let phrases = Phrases::from_keywords(["", "  ", "+", "**", "\u{200b}"]);
    assert_eq!(phrases.matches("anything **at all**"), None);
    for keyword in ["", " + ", "`_`", "+ \u{200b}"] {
        assert!(!Phrases::is_searchable(keyword), "{keyword:?}");
    }
    assert!(Phrases::is_searchable("+ ok"));
}

#[test]
fn phrases_are_stored_as_they_are_meant() {
    for phrases in [Phrases::default(), Phrases::from_keywords(["+ xin xác nhận"]), Phrases::from_keywords(["ok?"])]
    {
        let stored = serde_json::to_value(&phrases).unwrap();
        assert_eq!(serde_json::from_value::<Phrases>(stored).unwrap(), phrases);
    }
}
