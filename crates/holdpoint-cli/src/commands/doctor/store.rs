//! The store: whether it opens, what it promises, and whether it can be written to.

use holdpoint_config::{StoreAddress, StoreKind};
use holdpoint_runtime::ports::store::{Durability, PauseFilter};

use super::report::{Finding, Report};
use crate::store;

/// Looks at the store, and leaves nothing behind: no file and no table.
pub(super) async fn look(address: &StoreAddress, is_offline: bool, report: &mut Report) {
    match address.kind() {
        StoreKind::Postgres | StoreKind::Redis if is_offline => {
            report.add("store", Finding::fine(format!("{address} is not asked: nothing leaves this machine")));
        }
        StoreKind::Postgres | StoreKind::Redis => look_at_database(address, report).await,
        StoreKind::Memory | StoreKind::Sqlite => {
            if address.sqlite_path().is_none_or(|path| std::path::Path::new(path).exists()) {
                read(address, report).await;
            }
            // A new file is tried where it would be made.
            report.add("store", try_folder(address));
        }
    }
}

async fn look_at_database(address: &StoreAddress, report: &mut Report) {
    match store::look(address).await {
        Ok(Some(looked)) if looked.is_new => {
            report.add("store", promise(address, &looked.durability));
            report.add("store", Finding::fine("nothing is in it yet: the first start makes what is needed"));
        }
        Ok(_) => read(address, report).await,
        Err(fault) => {
            let what = format!("{address} cannot be used: {fault}{}", cause(&fault));
            report.add("store", Finding::failure(what, store::advice(address.kind(), &fault)));
        }
    }
}

/// What is behind a fault.
fn cause(fault: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(fault.source(), |cause| cause.source());
    causes.map(|cause| format!(": {cause}")).collect()
}

/// Opens a store that is there, and reads from it.
async fn read(address: &StoreAddress, report: &mut Report) {
    let store = match store::open(address).await {
        Ok(store) => store,
        Err(error) => {
            let advice = "see what it says, and that no newer version wrote to it";
            report.add("store", Finding::failure(format!("{error:#}"), advice));
            return;
        }
    };
    report.add("store", promise(address, &store.durability()));
    match store.list_pauses(&PauseFilter { limit: 100, ..PauseFilter::open() }).await {
        Ok(open) => report.add("store", Finding::fine(format!("it can be read; {} pauses wait", open.len()))),
        Err(error) => report.add("store", Finding::failure(error.to_string(), "see the log for its cause")),
    }
}

fn promise(address: &StoreAddress, promise: &Durability) -> Finding {
    let Durability { settings, .. } = promise;
    match (promise.survives_crash, address.kind()) {
        (true, _) => Finding::fine(format!("{address}: what is acknowledged survives a crash ({settings})")),
        (false, StoreKind::Redis) => Finding::caution(
            format!("{address}: what was acknowledged last may be lost in a crash ({settings})"),
            "set `appendonly yes` and `appendfsync always` on the server, also in its file; for more than Redis can \
             promise use postgres://",
        ),
        (false, _) => Finding::caution(
            format!("{address}: everything is lost when the process ends"),
            "use sqlite://holdpoint.db for anything that counts",
        ),
    }
}

/// Whether files can be written, flushed and removed beside the store's: SQLite keeps its log there.
fn try_folder(address: &StoreAddress) -> Finding {
    let Some(path) = address.sqlite_path().filter(|_| address.kind() == StoreKind::Sqlite) else {
        return Finding::fine("nothing is written to disk");
    };
    let path = std::path::Path::new(path);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(std::path::Path::new("."));
    let probe = folder.join(format!(".holdpoint-doctor-{}", std::process::id()));
    let tried = std::fs::OpenOptions::new().write(true).create_new(true).open(&probe).and_then(|mut file| {
        std::io::Write::write_all(&mut file, b"holdpoint")?;
        file.sync_all()
    });
    let removed = std::fs::remove_file(&probe);
    match tried.and(removed) {
        Ok(()) => Finding::fine(format!("{} can be written to", folder.display())),
        Err(error) => Finding::failure(
            format!("{} cannot be written to: {error}", folder.display()),
            "choose another place with --store sqlite://FILE",
        ),
    }
}
