//! The directories that a user names: refused before anything is written, each with the next action.

use crate::platform::PlatformError;
use rustix::fs::StatVfsMountFlags;
use std::path::{Path, PathBuf};
use untax_core::Bytes;

/// What stays free beside what the bench writes, so that the disk is not filled to its last block.
const SPARE: Bytes = Bytes(64 << 20);

/// A directory that may be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    /// The id of its arm.
    pub(crate) id: String,
    /// Without links.
    pub(crate) path: PathBuf,
}

/// What is known of a directory before anything is written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    is_directory: bool,
    is_read_only: bool,
    is_writable: bool,
    available: Bytes,
    free_files: Option<u64>,
}

/// Checks all of them, which `option` named; `need` is what is written to each.
pub(crate) fn check(
    option: &str,
    given: &[PathBuf],
    need: Bytes,
) -> Result<Vec<Given>, PlatformError> {
    let mut checked: Vec<Given> = Vec::new();
    for path in given {
        let refused =
            |why: String| PlatformError::Refused(format!("{option} {}: {why}", path.display()));
        let path = text(path).map_err(refused)?;
        let real = std::fs::canonicalize(path).map_err(|error| refused(opening(&error)))?;
        let text = text(&real).map_err(refused)?.to_owned();
        if checked.iter().any(|other| other.path == real) {
            return Err(refused(
                "named twice; the first --path is measured twice anyway".to_owned(),
            ));
        }
        let seen = Seen::of(&real).map_err(|error| refused(opening(&error)))?;
        seen.check(need).map_err(refused)?;
        let id = id(&text, &checked);
        checked.push(Given { id, path: real });
    }
    Ok(checked)
}

fn opening(error: &std::io::Error) -> String {
    format!("{error}; name a directory that is there and may be entered")
}

/// The path as text that a line holds.
fn text(path: &Path) -> Result<&str, String> {
    let text = path.to_str().filter(|text| !text.chars().any(char::is_control));
    text.ok_or_else(|| {
        "its name has control characters or is no UTF-8; make a link with a plain name".to_owned()
    })
}

impl Seen {
    fn of(path: &Path) -> std::io::Result<Self> {
        let filesystem = rustix::fs::statvfs(path)?;
        let access =
            rustix::fs::access(path, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK);
        Ok(Self {
            is_directory: path.is_dir(),
            is_read_only: filesystem.f_flag.contains(StatVfsMountFlags::RDONLY),
            is_writable: access.is_ok(),
            available: Bytes(filesystem.f_bavail.saturating_mul(filesystem.f_frsize)),
            // Filesystems that make them as needed say 0 of 0.
            free_files: (filesystem.f_files > 0).then_some(filesystem.f_favail),
        })
    }

    fn check(&self, need: Bytes) -> Result<(), String> {
        if !self.is_directory {
            return Err(
                "it is no directory; name the directory that the database would use".to_owned()
            );
        }
        if self.is_read_only {
            return Err(
                "its filesystem is mounted read-only; mount it with rw or name another".to_owned()
            );
        }
        if !self.is_writable {
            return Err(
                "this user may not write there; run it with sudo or name another".to_owned()
            );
        }
        if self.free_files.is_some_and(|free| free < 100) {
            return Err(
                "its filesystem has no inodes left; remove files or name another".to_owned()
            );
        }
        let need = need + SPARE;
        if self.available < need {
            let available = self.available;
            return Err(format!(
                "{available} are free and {need} are needed; free some, pass a smaller --size, or name another"
            ));
        }
        Ok(())
    }
}

/// A name for a path, unlike those of the others and of scratch arms: `/srv/pg data` is `srv-pg-data`.
fn id(path: &str, others: &[Given]) -> String {
    let parts = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let name = parts.collect::<Vec<_>>().join("-").to_lowercase();
    let name = if name.is_empty() { "root".to_owned() } else { name };
    let is_used = |name: &str| others.iter().any(|other| other.id == name);
    let mut numbered = (2..).map(|number| format!("{name}-{number}"));
    if is_used(&name) { numbered.find(|name| !is_used(name)).unwrap_or(name) } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    const NEED: Bytes = Bytes(1 << 20);

    fn why(path: &Path) -> String {
        check("--path", &[path.to_owned()], NEED).unwrap_err().to_string()
    }

    fn fine() -> Seen {
        Seen {
            is_directory: true,
            is_read_only: false,
            is_writable: true,
            available: Bytes(1 << 40),
            free_files: None,
        }
    }

    #[test]
    fn what_is_no_directory_is_refused_with_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert!(why(&file).contains("it is no directory"));
        let missing = directory.path().join("missing");
        let text = why(&missing);
        assert!(
            text.contains("missing: No such file") && text.contains("name a directory"),
            "{text}"
        );
        let odd = directory.path().join("two\nlines");
        std::fs::create_dir(&odd).unwrap();
        assert!(why(&odd).contains("control characters"));
        let odd = directory.path().join(std::ffi::OsStr::from_bytes(b"latin-\xe9"));
        std::fs::create_dir(&odd).unwrap();
        assert!(why(&odd).contains("no UTF-8"));
    }

    #[test]
    fn a_link_to_a_directory_is_that_directory() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(directory.path(), &link).unwrap();
        let twice =
            check("--path", &[directory.path().to_owned(), link.clone()], NEED).unwrap_err();
        assert!(twice.to_string().contains("named twice"));
        let given = check("--path", &[link], NEED).unwrap();
        assert_eq!(given[0].path, directory.path().canonicalize().unwrap());
    }

    #[test]
    fn full_and_closed_filesystems_are_refused_with_the_next_action() {
        let check = |seen: Seen| seen.check(NEED).unwrap_err();
        assert_eq!(fine().check(NEED), Ok(()));
        assert!(check(Seen { is_read_only: true, ..fine() }).contains("mounted read-only"));
        assert!(check(Seen { is_writable: false, ..fine() }).contains("may not write"));
        assert!(check(Seen { free_files: Some(3), ..fine() }).contains("no inodes left"));
        let full = check(Seen { available: SPARE, ..fine() });
        assert!(full.contains("64 MiB are free and 65 MiB are needed"), "{full}");
    }

    #[test]
    fn ids_are_plain_and_unlike() {
        let given = |id: &str| Given { id: id.to_owned(), path: PathBuf::new() };
        assert_eq!(id("/srv/PG data", &[]), "srv-pg-data");
        assert_eq!(id("/", &[]), "root");
        assert_eq!(id("/a/b", &[given("a-b"), given("a-b-2")]), "a-b-3");
    }
}
