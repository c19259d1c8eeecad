//! A Redis server that writes down and flushes what it acknowledges.

use super::{Kind, Place, Server, Start, program};

/// The Redis server that all tests share, by its address.
///
/// # Errors
/// It is not installed, or does not start.
pub fn redis() -> Result<Server, String> {
    KIND.shared()
}

pub(super) const KIND: Kind = Kind { name: "redis", variable: "HOLDPOINT_TEST_REDIS", prepare };

fn prepare(place: &Place) -> Result<Start, String> {
    let found = |names: [&str; 2]| {
        let missing = || format!("{} is not installed (on Debian: apt install redis-server)", names[0]);
        names.iter().find_map(|name| program(name, &[])).ok_or_else(missing)
    };
    let server = found(["redis-server", "valkey-server"])?;
    let client = found(["redis-cli", "valkey-cli"])?;
    let (data, port) = (place.data.display().to_string(), place.port.to_string());
    let words = [
        &server,
        "--bind",
        "127.0.0.1",
        "--port",
        &port,
        "--dir",
        &data,
        "--requirepass",
        &place.password,
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
        "--save",
        "",
        "--databases",
        "16",
    ];
    let is_ready = [&client, "-h", "127.0.0.1", "-p", &port, "--no-auth-warning", "-e", "-a", &place.password, "ping"];
    Ok(Start {
        command: words.map(str::to_owned).to_vec(),
        is_ready: is_ready.map(str::to_owned).to_vec(),
        address: format!("redis://:{}@127.0.0.1:{port}/", place.password),
    })
}
