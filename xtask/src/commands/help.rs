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

cargo xtask linear [--store postgres|redis] [--operations N] [--deadlines N] [--seed SEED] [--control]
    The long trials of three instances over one database of their own, in release, while instances are killed, held
    up and cut off and the database dies: whether what clients are told can have happened (100000 operations unless
    told), whether each deadline fires once (10000), whether runs go on elsewhere. --control runs only the store that
    must be found out.

cargo xtask soak [--readers N] [--seconds N] [--seed SEED]
    Readers of one session over WebSockets (1000 unless told) that are dropped and come back at random for some time
    (600 seconds unless told), in release: each must end with the same page. The seed is printed, and replays it.

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
