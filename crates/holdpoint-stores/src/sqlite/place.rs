//! Where the file lies. SQLite's locks and flushes are promises of the file system; some do not keep them.

use std::path::Path;

use holdpoint_runtime::ports::store::{StoreFault, StoreFaultKind};

/// What a file system is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Locks and flushes mean what they say, as far as is known.
    Sound,
    /// What is written may be gone after a restart of the machine or the container.
    Fleeting(&'static str),
    /// Locks or flushes may mean nothing: runs could be lost, or move twice.
    Unsound(&'static str),
}

/// Refuses a place on a network or in user space, and warns of one that does not last.
///
/// # Errors
/// The file system is one of those that cannot be trusted.
#[cfg(target_os = "linux")]
pub(super) fn check(path: &Path) -> Result<(), StoreFault> {
    // The file may not be there yet. A folder that is not there either is for opening the file to report.
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let found = rustix::fs::statfs(path).or_else(|_| rustix::fs::statfs(folder));
    match found.map_or(Verdict::Sound, |found| judge(found.f_type as u64)) {
        Verdict::Sound => Ok(()),
        Verdict::Fleeting(name) => {
            tracing::warn!(file_system = name, "what is stored here may not survive a restart of the machine");
            Ok(())
        }
        Verdict::Unsound(name) => {
            let why = format!("the file lies on {name}, where locks and flushes cannot be trusted; use a local disk");
            Err(StoreFault::because("open the file", StoreFaultKind::Unavailable, why))
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn check(_: &Path) -> Result<(), StoreFault> {
    Ok(())
}

/// What is known of file systems, by the number that `statfs` gives them.
#[cfg(target_os = "linux")]
fn judge(file_system: u64) -> Verdict {
    // Some platforms give a signed number of 32 bits.
    match file_system & 0xffff_ffff {
        0x6969 => Verdict::Unsound("NFS"),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => Verdict::Unsound("SMB"),
        0x0102_1997 => Verdict::Unsound("9P"),
        0x5346_414f => Verdict::Unsound("AFS"),
        0x00c3_6400 => Verdict::Unsound("Ceph"),
        0x6573_5546 => Verdict::Unsound("FUSE"),
        0x0102_1994 => Verdict::Fleeting("tmpfs"),
        0x8584_58f6 => Verdict::Fleeting("ramfs"),
        0x794c_7630 => Verdict::Fleeting("overlay"),
        _ => Verdict::Sound,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn networks_and_user_space_are_refused_and_local_disks_are_not() {
        for unsound in [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x6573_5546, 0xffff_ffff_ff53_4d42] {
            assert!(matches!(judge(unsound), Verdict::Unsound(_)), "{unsound:x}");
        }
        for sound in [0xef53, 0x5846_5342, 0x9123_683e, 0x2fc1_2fc1] {
            assert_eq!(judge(sound), Verdict::Sound, "{sound:x}");
        }
        assert_eq!(judge(0x0102_1994), Verdict::Fleeting("tmpfs"));
    }

    #[test]
    fn a_real_folder_is_judged_and_a_missing_one_is_left_to_who_opens_the_file() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check(&folder.path().join("new.db")).is_ok());
        assert!(check(Path::new("/nowhere/at/all/new.db")).is_ok());
        assert!(check(Path::new("new.db")).is_ok());
    }
}
