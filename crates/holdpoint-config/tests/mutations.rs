//! Random damage to files that are right: reading them never panics, never hangs, and every problem lies within the file.
//! The seed of a failing case is in its message; `HOLDPOINT_SEED` runs that one alone, `HOLDPOINT_SEEDS` runs so many.

use std::time::{Duration, Instant};

use holdpoint_config::*;

const AGENT: &str = include_str!("fixtures/good/agents/trader.yaml");
const POLICY: &str = include_str!("fixtures/good/policies/desk.yaml");
const SERVER: &str = "listen: 127.0.0.1:8888\nstore: sqlite://x.db\naccess: { api_keys: [{ name: a, role: admin, sha256: \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\" }] }\nlimits: { streams_max: 5 }\nmcp_servers: { files: { command: npx, args: [a] } }\n";

/// Numbers that look random, always the same for a seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or(0)
    }
}

const PIECES: [&str; 40] = [
    "\t",
    "\n",
    "  ",
    ": ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "|",
    ">",
    "&a ",
    "*a",
    "!!str ",
    "#",
    "${X}",
    "$${",
    "${",
    "null",
    "true",
    "-1",
    "1e999",
    "99999999999999999999",
    "é",
    "日本",
    "\u{202e}",
    "\0",
    "\u{feff}",
    "---\n",
    "<<: ",
    "? ",
    "args.x >",
    "((((((((",
    "\\",
    "@",
    "%",
    "\r",
    "агент",
];

/// The text with some pieces put in, taken out, doubled or swapped.
fn damaged(text: &str, dice: &mut Dice) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..=dice.below(4) {
        let at = dice.below(characters.len() + 1);
        let end = (at + dice.below(30)).min(characters.len());
        match dice.below(5) {
            0 => {
                let piece = PIECES[dice.below(PIECES.len())];
                characters.splice(at..at, piece.chars());
            }
            1 => {
                characters.drain(at..end);
            }
            2 => {
                let part: Vec<char> = characters[at..end].to_vec();
                characters.splice(at..at, part);
            }
            3 => {
                let piece = PIECES[dice.below(PIECES.len())];
                characters.splice(at..end, piece.chars());
            }
            _ => {
                // Lines in another order.
                let text: String = characters.iter().collect();
                let mut lines: Vec<&str> = text.lines().collect();
                if lines.len() > 1 {
                    let (one, other) = (dice.below(lines.len()), dice.below(lines.len()));
                    lines.swap(one, other);
                }
                characters = lines.join("\n").chars().collect();
            }
        }
    }
    characters.into_iter().collect()
}

fn seeds(count: u64) -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("HOLDPOINT_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("HOLDPOINT_SEEDS").unwrap_or(count)).collect(),
    }
}

/// Reads damaged texts, and checks each problem that is found.
fn check(text: &str, count: u64, read: impl Fn(Source) -> (bool, Vec<Diagnostic>) + std::panic::RefUnwindSafe) {
    for seed in seeds(count) {
        let damaged = damaged(text, &mut Dice(seed));
        let started = Instant::now();
        let source = Source::new("a.yaml", damaged.clone());
        let outcome = std::panic::catch_unwind(|| {
            let (is_usable, problems) = read(source);
            let has_error = problems.iter().any(Diagnostic::is_error);
            assert_eq!(is_usable, !has_error, "seed {seed}: a file is used exactly when it has no error");
            for problem in &problems {
                let lines = damaged.split('\n').flat_map(|line| line.split('\r')).count().max(1);
                assert!(problem.line <= lines + 1, "seed {seed}: {problem}");
                assert!((problem.line == 0) == (problem.column == 0), "seed {seed}: {problem}");
                assert!(
                    (problem.end.line, problem.end.column) >= (problem.line, problem.column),
                    "seed {seed}: {problem}"
                );
                let shown = problem.render(Style::Plain);
                assert!(!shown.contains(['\0', '\u{202e}']), "seed {seed}: {shown:?}");
                assert!(!problem.to_string().contains('\n'), "seed {seed}: {problem}");
            }
        });
        assert!(outcome.is_ok(), "seed {seed} panicked on:\n{damaged}");
        assert!(started.elapsed() < Duration::from_secs(20), "seed {seed} took {:?}", started.elapsed());
    }
}

fn environment() -> FixedEnvironment {
    FixedEnvironment::empty().with("BROKER_TOKEN", "tok")
}

#[test]
fn damaged_agent_files_never_panic_or_hang() {
    check(AGENT, 1_500, |source| {
        let read = read_agent(source, &environment());
        if let Some(agent) = &read.agent {
            let stored = serde_json::to_value(&agent.file).expect("an agent can be stored");
            assert_eq!(serde_json::from_value::<AgentFile>(stored).expect("and read back"), agent.file);
        }
        (read.agent.is_some(), read.diagnostics)
    });
}

#[test]
fn damaged_policy_files_never_panic_or_hang() {
    check(POLICY, 1_500, |source| {
        let folder = FolderReader::new("x").check(Vec::new(), vec![source], &environment());
        (folder.policies.is_some(), folder.diagnostics)
    });
}

#[test]
fn damaged_server_files_never_panic_or_hang() {
    check(SERVER, 1_500, |source| {
        let read = read_server(Some(source), &environment(), &ServerFlags::none());
        (read.config.is_some(), read.diagnostics)
    });
}

#[test]
fn damaged_expressions_never_panic_or_hang() {
    let args =
        holdpoint_core::json::CanonicalJson::parse(r#"{"quantity": 5, "price": 2.5, "items": [1, 2, {"a": "b"}]}"#)
            .expect("json");
    let facts = Facts { agent: "a", tool: "t", args: &args, session: "s", actor: "b" };
    let texts = [
        "double(args.quantity) * double(args.price) > 1000000.0 && args.items.exists(x, x == 2)",
        "args.?price.orValue(0.0) > 1.0 ? actor in ['a', \"b\"] : tool.matches('^t+$') || !has(args.x)",
    ];
    for text in texts {
        for seed in seeds(1_500) {
            let damaged = damaged(text, &mut Dice(seed));
            let started = Instant::now();
            let outcome = std::panic::catch_unwind(|| damaged.parse::<Expression>().map(|read| read.holds_for(&facts)));
            assert!(outcome.is_ok(), "seed {seed} panicked on: {damaged}");
            assert!(started.elapsed() < Duration::from_secs(20), "seed {seed} took {:?}: {damaged}", started.elapsed());
        }
    }
}
