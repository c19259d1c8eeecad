//! A PostgreSQL server. It refuses to run as root, so that root runs it as the user `postgres`.

use std::path::PathBuf;

use super::{Kind, Place, Server, Start, is_root, program, run};

/// The PostgreSQL server that all tests share, by its address; its user may do everything.
///
/// # Errors
/// It is not installed, or does not start.
pub fn postgres() -> Result<Server, String> {
    KIND.shared()
}

pub(super) const KIND: Kind = Kind { name: "postgres", variable: "HOLDPOINT_TEST_POSTGRES", prepare };

/// Where distributions keep the server's programs, the newest version first.
fn folders() -> Vec<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.reverse();
    folders
}

fn prepare(place: &Place) -> Result<Start, String> {
    let found =
        |name| program(name, &folders()).ok_or(format!("{name} is not installed (on Debian: apt install postgresql)"));
    let (initdb, server, is_ready) = (found("initdb")?, found("postgres")?, found("pg_isready")?);
    let data = place.data.display().to_string();
    let as_user: Vec<String> = if is_root() {
        let words = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--"];
        words.map(str::to_owned).to_vec()
    } else {
        Vec::new()
    };
    let password = place.data.join("password");
    std::fs::write(&password, &place.password).map_err(|error| error.to_string())?;
    if is_root() {
        run(&["chown", "-R", "postgres", &data].map(str::to_owned))?;
    }
    let (cluster, password) = (format!("{data}/cluster"), format!("--pwfile={}", password.display()));
    let words =
        [&initdb, "-D", &cluster, "-U", "holdpoint", "-E", "UTF8", "--locale=C", "-A", "password", &password, "-N"];
    run(&as_user.iter().cloned().chain(words.map(str::to_owned)).collect::<Vec<_>>())?;
    let port = place.port.to_string();
    let settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200"];
    let settings = settings.into_iter().flat_map(|setting| ["-c", setting]);
    let words = [server.as_str(), "-D", &cluster, "-p", &port].into_iter().chain(settings).map(str::to_owned);
    Ok(Start {
        command: as_user.into_iter().chain(words).collect(),
        is_ready: [&is_ready, "-q", "-h", "127.0.0.1", "-p", &port].map(str::to_owned).to_vec(),
        address: format!("postgres://holdpoint:{}@127.0.0.1:{port}/postgres?sslmode=disable", place.password),
    })
}
