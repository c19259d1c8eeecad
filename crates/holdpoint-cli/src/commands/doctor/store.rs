//! The store: whether it opens, what it promises, and whether it can be written to.

use holdpoint_config::{StoreAddress, StoreKind};
use holdpoint_runtime::ports::store::{PauseFilter, Store};

use super::report::{Finding, Report};
use crate::world;

pub(super) async fn look(address: &StoreAddress, report: &mut Report) {
    let is_new = address.sqlite_path().is_some_and(|path| !std::path::Path::new(path).exists());
    if is_new {
        // Looking must leave nothing behind: a store is tried where it would be made.
        report.add("store", try_folder(address));
        return;
    }
    let store = match world::store(address) {
        Ok(store) => store,
        Err(error) => {
            let advice = "see that the file is readable and writable, and that no newer version wrote it";
            report.add("store", Finding::failure(format!("{error:#}"), advice));
            return;
        }
    };
    promise(address, &*store, report);
    match store.list_pauses(&PauseFilter { limit: 100, ..PauseFilter::open() }).await {
        Ok(open) => report.add("store", Finding::fine(format!("it can be read; {} pauses wait", open.len()))),
        Err(error) => report.add("store", Finding::failure(error.to_string(), "see the log for its cause")),
    }
    report.add("store", try_folder(address));
}

fn promise(address: &StoreAddress, store: &dyn Store, report: &mut Report) {
    let promise = store.durability();
    report.add(
        "store",
        match promise.survives_crash {
            true => Finding::fine(format!("{address}: what is acknowledged survives a crash ({})", promise.settings)),
            false => Finding::caution(
                format!("{address}: everything is lost when the process ends"),
                "use sqlite://holdpoint.db for anything that counts",
            ),
        },
    );
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
