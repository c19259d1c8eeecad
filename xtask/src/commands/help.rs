//! `cargo xtask help`: what there is.

use anyhow::Result;

const TEXT: &str = "\
The project's own commands.

cargo xtask test [--quick]
    Everything that must pass before a merge, in order, up to the first failure: machine, format, clippy, tests, doctests,
    examples, docs, features, dependencies, links, api (in short), pages, clients. --quick stops after the tests. What
    is missing on the machine is installed with apt: curl, python3-venv, postgresql, redis-server, nodejs, npm, chromium.

cargo xtask walk [--seeds N] [--from SEED]
    The long random walks through the core: N seeds (100000 unless told), from SEED on. A failing walk prints its
    seed; `--from SEED --seeds 1` replays it.

cargo xtask crash
    The long crash matrix: every scenario cut at every write of every store, with real kills.

cargo xtask api [--examples N] [--seed SEED]
    Schemathesis over the /openapi.json of a real server: N examples (100 unless told) for each operation, without
    credentials and with a key of each role. It is installed with pip into the build folder when it is missing.

cargo xtask pages
    The server's pages in Chromium. Pictures go to the build folder.

cargo xtask clients
    Clients of other projects, as they are published, against the real program.

cargo xtask bench [--quick] [--json FILE]
    The benchmarks, in release; arguments go to holdpoint-bench as they are.

cargo xtask help
    This text.

cargo-nextest runs the tests when it is installed, cargo test otherwise.";

pub(super) fn run() -> Result<()> {
    println!("{TEXT}");
    Ok(())
}
