//! Runs worth keeping: each state in which a process may have left one, and every shape that an event can have.

use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::ids::PauseId;
use holdpoint_core::input::Input;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::{Content, Part, Source};
use holdpoint_core::policy::{Constraint, Lifetime, NewRule, Test};
use holdpoint_core::tool::Outcome;

use crate::common::{World, actor, play, play_on};

pub fn all() -> Vec<(&'static str, World)> {
    let mut runs: Vec<(&'static str, World)> = SCRIPTS.iter().map(|(name, script)| (*name, play(script))).collect();
    runs.push(("rules-and-staged-input", rules_and_staged_input()));
    runs.push(("every-content", every_content()));
    for (name, world) in &runs {
        let refused: Vec<String> = world.report().into_iter().filter(|line| line.starts_with("refused")).collect();
        assert_eq!(refused, Vec::<String>::new(), "{name}");
    }
    runs
}

const SCRIPTS: &[(&str, &str)] = &[
    (
        "on-terms",
        r#"given tool ask: question
           user: go
           model: pay {"amount": 1} & sell & drop & ask {"questions": [{"question": "Which?"}]}
           policy: hold until +10m for finance for ana quorum 3 rule big because "money moves" & hold until +10m then approve & hold for ana & hold for ana
           ana: approve #1 request r1
           bo: approve #1 as finance"#,
    ),
    (
        "voted",
        r#"user: go
           model: pay {"amount": 1} & sell & drop & wait
           policy: hold quorum 2 & hold until +10m then approve rule slow & hold for ana & hold quorum 2
           ana: approve #1 request r1
           bo: approve #1 request r2
           ana: always approve #3 request r3
           cy: approve #4
           ana: deny #4 "no"
           clock +10m
           deadline #2"#,
    ),
    (
        "several-at-once",
        r#"user: go
           model thinks hm: pay {"amount": 1} & sell & drop
           policy: hold
           ana: approve #1 note quickly & approve #2 implied & deny #3 "no" implied
           tool 1.0: "paid"
           tool 1.1: "sold"
           model thinks well: pay {"amount": 2} & wait
           policy: hold & allow
           tool 2.1: "waited"
           ana instead: stop here"#,
    ),
    (
        "note-inside",
        r#"given tool helper: agent
           user: go
           model: helper
           policy: allow
           model 1.0: pay {"amount": 1}
           policy: hold
           ana: approve #1 note quickly"#,
    ),
    ("begun", "given agent: turns 5, checks input, checks output, after submit\n user: go"),
    (
        "paused",
        r#"given tool sh: shell
           given tool ask: question
           user: clean up
           model: fetch {"url": "https://example.com/ä?q=1"} & pay {"amount": 12.50, "to": "bo"} & sh {"command": ["ls", "-l"]} & ask {"questions": [{"question": "Which?", "options": [{"label": "old"}, {"label": "all"}]}]}
           policy: allow & hold until +10m because "money moves" & hold guarded & hold until +60m
           tool 1.0: {"status": 200}"#,
    ),
    (
        "nested",
        r#"given tool helper: agent, turns 4
           given tool searcher: agent, checks input, checks output, first
           user: go
           model: helper {"input": "first"} & helper {"input": "second"}
           policy: allow
           model 1.0: pay#same {"amount": 1} & searcher#s {"deep": true}
           model 1.1: pay#same {"amount": 2}
           policy: hold & allow & hold
           input check 1.0/1.1: pass
           model 1.0/1.1: look {"at": "x"}
           policy: hold"#,
    ),
    (
        "decided-not-started",
        r#"user: go
           model: pay {"amount": 1} & pay {"amount": 2} & sell & drop & wait
           policy: hold & hold & hold & hold & approve by small-payments
           ana: approve #1
           ana: approve #2 edited {"amount": 3}
           bo: deny #3
           ana: deny #4 "keep it""#,
    ),
    (
        "in-doubt",
        r#"given tool fetch: read_only
           given tool put: idempotent
           user: go
           model: pay {"amount": 1} & fetch & put & sell
           policy: hold & allow & allow & allow
           ana: approve #1
           start
           crash"#,
    ),
    (
        "doubt-resolved",
        r#"user: go
           model: pay & sell & drop
           policy: allow
           start
           crash
           ana: happened #1 "receipt 7"
           ana: run again #2
           ana: abandon #3"#,
    ),
    (
        "done",
        r#"user: go
           model: pay
           policy: hold
           ana: approve #1
           tool 1.0: "paid"
           model says: All paid."#,
    ),
    (
        "answered",
        r#"given tool ask: question
           user: go
           model: ask {"questions": [{"question": "Which?", "options": [{"label": "old", "description": "older than a year"}, {"label": "Other", "input": true}], "multiSelect": true}]} & pay & sell & drop & look
           policy: hold & hold & deny & invalid "sell needs a price" & allow
           words: "not today"
           ana: answer #1 {"Which?": ["old", "mine too"]}
           ana: respond #2 "paid by hand"
           tool 1.4 fails: "no lamp""#,
    ),
    (
        "confirming",
        r#"given agent: checks output
           user: clean up
           model asks until +10m: Shall I remove all of it?"#,
    ),
    (
        "confirmed",
        r#"user: clean up
           model asks: Shall I?
           ana: approve #1
           model asks until +1m: Really?
           clock +1m
           deadline #2"#,
    ),
    (
        "handed-off",
        r#"given tool sales: handoff
           given tool billing: handoff, first, checks output
           user: go
           model: pay#a & sales#b & billing#c
           policy: hold & allow & hold
           ana: approve #1
           tool 1.0: "paid"
           ana: approve #2
           model: pay#a {"amount": 2}
           policy: hold"#,
    ),
    (
        "repeated",
        r#"user: go
           model: pay#a {"amount": 1}
           policy: hold
           ana: deny #1 ""
           model: pay#a {"amount": 1} & look#b !"{"
           model: pay#a {"amount": 2}"#,
    ),
    (
        "failed",
        r#"user: go
           model: pay#
           model: pay#
           model: pay#"#,
    ),
    (
        "tripped",
        r#"user: go
           model: pay & sell
           policy: hold & skip
           policy: halt "fraud" guarded"#,
    ),
    (
        "cancelled",
        r#"given tool helper: agent
           user: go
           model: pay & sell & helper
           policy: hold & allow & allow
           model 1.2: drop
           policy: allow
           start
           ana: cancel "changed my mind"
           tool 1.1: "sold"
           tool 1.2/1.0 invalid: "nothing to drop""#,
    ),
    (
        "expired",
        r#"user: go
           model: pay & sell
           policy: hold until +10m & hold
           clock +10m
           deadline #1"#,
    ),
    (
        "held-again",
        r#"user: go
           model: pay {"amount": 1} & sell & look
           policy: hold & allow & allow
           ana: approve #1
           drift 1.0 1.1: "the tool changed" until +5m
           blocked 1.2: "not at night""#,
    ),
    (
        "agent-set",
        r#"user: go
           context: {"tenant": "blue", "limit": 1e3}
           set agent: Sales
           context: nothing
           model: act & act & act
           policy: hold
           context: {"tenant": "green"}"#,
    ),
    (
        "families",
        r#"given tool sh: shell
           given tool patch: patch
           given tool computer: computer
           given tool files: mcp drive
           user: go
           model: sh & patch & computer & files
           policy: hold
           ana: deny #1 "no"
           ana: always deny #3 "no screens" any agent
           ana: always approve #4 for session"#,
    ),
];

fn rules_and_staged_input() -> World {
    let mut world = play(
        r#"user: go
           model: pay {"amount": 1, "to": "bo"} & pay {"amount": 2, "to": "bo"} & sell & drop & pay {"amount": 9}
           policy: hold"#,
    );
    let json = |text: &str| CanonicalJson::parse(text).unwrap();
    let constraints = vec![
        Constraint::at_most("/amount", 5),
        Constraint::starts_with("/to", "b"),
        Constraint { at: "/to".to_owned(), test: Test::OneOf(vec![json(r#""bo""#), json(r#""bea""#)]) },
    ];
    let until = Lifetime::Until(world.now.after(std::time::Duration::from_secs(3600)));
    decide(
        &mut world,
        1,
        Decision::Approve,
        NewRule { constraints, lifetime: until, uses_max: Some(3), apply_to_open: true, ..NewRule::default() },
    );
    decide(
        &mut world,
        3,
        Decision::deny("not here"),
        NewRule { any_agent: true, lifetime: Lifetime::Session, ..NewRule::default() },
    );
    decide(
        &mut world,
        4,
        Decision::Deny { message: None },
        NewRule { constraints: vec![Constraint::equals("", json("{}"))], ..NewRule::default() },
    );
    play_on(
        &mut world,
        r#"ana adds: be quick
           bo: revoke rule 3
           words: "no"
           ana: deny #5 "too much"
           tool 1.0: "paid"
           tool 1.1: "paid"
           model: pay {"amount": 3, "to": "bea"} & sell & wait
           policy: rule or hold
           bo adds: and careful"#,
    );
    world
}

fn every_content() -> World {
    let mut world = play(
        r#"user: look at this
           model: photo & scan & read
           policy: allow
           start"#,
    );
    let image = |source| Part::Image { media_type: "image/png".to_owned(), source };
    let file = Part::File {
        media_type: "application/pdf".to_owned(),
        name: "scan.pdf".to_owned(),
        source: Source::Base64("JVBERi0=".to_owned()),
    };
    let parts =
        vec![Part::Text("two \"lines\"\nof täxt".to_owned()), image(Source::Url("https://x.test/1".to_owned()))];
    for (at, parts) in [("1.0", parts), ("1.1", vec![file])] {
        let outcome = Outcome::Result(Content::Parts(parts));
        world.give(Input::CallEnded { call: at.parse().unwrap(), outcome }).unwrap();
    }
    let exact = CanonicalJson::parse(r#"{"n":12345678901234567890.1234567890,"\u0041":"\u00e9\u0007"}"#).unwrap();
    let outcome = Outcome::Result(Content::Json(exact));
    world.give(Input::CallEnded { call: "1.2".parse().unwrap(), outcome }).unwrap();
    let parts = Content::Parts(vec![Part::Text("more".to_owned())]);
    world.give(Input::Stage { content: parts, by: actor("bo@example.com"), request: None }).unwrap();
    world
}

fn decide(world: &mut World, number: u32, decision: Decision, rule: NewRule) {
    let pause = PauseId { run: world.run.id(), number };
    let mut input = DecisionInput::new(pause, decision, actor("ana"));
    input.via = Some("native".to_owned());
    input.rule = Some(rule);
    world.give(Input::Decision(input)).unwrap();
}

/// Names of events, variants and fields as the stored form spells them.
pub const SHAPES: &[&str] = &[
    // Events.
    "\"run.started\"",
    "\"guardrails.ran\"",
    "\"model.replied\"",
    "\"reply.refused\"",
    "\"call.allowed\"",
    "\"call.denied\"",
    "\"pause.opened\"",
    "\"pause.decided\"",
    "\"pause.expired\"",
    "\"pause.withdrawn\"",
    "\"call.started\"",
    "\"call.released\"",
    "\"call.answered\"",
    "\"agent.handed_off\"",
    "\"input.staged\"",
    "\"by\":\"ana\",\"frame\":\"1.0\"",
    "\"rule.made\"",
    "\"rule.revoked\"",
    "\"context.set\"",
    "\"agent.set\"",
    "\"run.finished\"",
    // Pauses and decisions.
    "\"kind\":\"approval\"",
    "\"kind\":\"question\"",
    "\"kind\":\"confirmation\"",
    "\"kind\":\"in_doubt\"",
    "\"decision\":\"approve\"",
    "\"approve_edited\"",
    "\"deny\":{\"message\"",
    "\"decision\":{\"deny\":{}}",
    "\"respond\"",
    "\"answer\"",
    "\"happened\"",
    "\"decision\":\"run_again\"",
    "\"decision\":\"abandon\"",
    "\"via\"",
    "\"manner\":\"implied\"",
    "\"manner\":\"superseded\"",
    "\"thinking\"",
    "\"pause.voted\"",
    "\"request\"",
    "\"approvers\":[\"finance\",\"ana\"]",
    "\"quorum\":3",
    "\"on_timeout\":\"approve\"",
    "\"rule\":\"big\"",
    "\"by\":\"timeout\"",
    "\"rule\":",
    "\"expires_at\"",
    "\"reason\"",
    "\"sha256\"",
    // Outcomes and contents.
    "\"outcome\":{\"result\"",
    "\"outcome\":{\"failure\"",
    "\"outcome\":{\"invalid\"",
    "\"outcome\":{\"denied\"",
    "\"outcome\":{\"responded\"",
    "\"outcome\":\"expired\"",
    "\"outcome\":\"withdrawn\"",
    "\"outcome\":\"abandoned\"",
    "\"text\"",
    "\"json\"",
    "\"parts\"",
    "\"image\"",
    "\"file\"",
    "\"url\"",
    "\"base64\"",
    // Tools and agents.
    "\"kind\":{\"agent\"",
    "\"kind\":{\"handoff\"",
    "\"kind\":\"shell\"",
    "\"kind\":\"apply_patch\"",
    "\"kind\":\"computer\"",
    "\"kind\":{\"mcp\"",
    "\"effect\":\"read_only\"",
    "\"effect\":\"idempotent\"",
    "\"problem\"",
    "\"repeats\"",
    "\"first_tool_result\"",
    "\"after_tools\"",
    "\"checks_input\"",
    "\"checks_output\"",
    "\"turns_max\":5",
    "\"turns_max\":null",
    "\"admitted\"",
    "\"frame\"",
    "\"by\":\"policy\"",
    "\"by\":{\"rule\"",
    "\"by\":{\"decider\"",
    // Rules.
    "\"equals\"",
    "\"one_of\"",
    "\"at_most\"",
    "\"starts_with\"",
    "\"lifetime\":\"run\"",
    "\"lifetime\":\"session\"",
    "\"lifetime\":{\"until\"",
    "\"uses_max\"",
    "\"agent\":\"any\"",
    "\"agent\":{\"only\"",
    "\"class\":\"computer\"",
    "\"class\":{\"mcp\"",
    // Ends and guardrails.
    "\"done\"",
    "\"failed\"",
    "\"cancelled\"",
    "\"objection\"",
    "\"before_pause\"",
    "\"before_run\"",
];
