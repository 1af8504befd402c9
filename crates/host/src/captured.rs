//! One moment of a captured host.

use crate::files;
use crate::record::{Kind, Record, climbing_gap, climbs};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tempfile::TempDir;
use untax_core::Reading::{self, Absent, Present};
use untax_core::reading::Gap;

/// What was read at one moment: in memory, or in the folder of a capture.
pub(crate) struct CapturedHost {
    /// Gaps, answers and links; files too, when there is no folder.
    pub(crate) record: Record,
    /// The files.
    pub(crate) folder: Option<Folder>,
}

/// The folder with the files of a moment. A capture may come from anyone: nothing outside is
/// read, and no link in it is followed.
pub(crate) struct Folder {
    pub(crate) root: OwnedFd,
    /// Where an archive was unpacked, held until nobody reads from it any more.
    pub(crate) _unpacked: Option<Arc<TempDir>>,
}

impl CapturedHost {
    pub(crate) fn text(&self, path: &str) -> Reading<String> {
        self.record
            .reading(path, Kind::File)
            .unwrap_or_else(|| self.look(path, |folder| files::text_below(folder, path)))
    }

    pub(crate) fn link(&self, path: &str) -> Reading<String> {
        self.record
            .reading(path, Kind::Link)
            .unwrap_or_else(|| self.look(path, |folder| files::link_below(folder, path)))
    }

    /// The names of what was read below a directory.
    pub(crate) fn names(&self, path: &str) -> Reading<Vec<String>> {
        if let Some(gap) = self.record.gaps.get(path).cloned() {
            return Err(gap).into();
        }
        if climbs(path) {
            return Err(climbing_gap(path)).into();
        }
        let mut names = self.record.names_below(path);
        let folder = self.look(path, |folder| files::names_below(folder, path));
        match folder.into_result() {
            Ok(there) => names.extend(there),
            // Nothing was read below it, but it was listed.
            Err(_) if !names.is_empty() || self.record.directories.contains(path) => {}
            Err(gap) => return Err(gap).into(),
        }
        Present(names.into_iter().collect())
    }

    /// Whether something is at a path; for captures made by hand, which hold files alone.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.text(path).is_present()
            || self.link(path).is_present()
            || self.names(path).is_present()
    }

    fn look<T>(&self, path: &str, look: impl FnOnce(&OwnedFd) -> Reading<T>) -> Reading<T> {
        if climbs(path) {
            return Err::<T, Gap>(climbing_gap(path)).into();
        }
        match &self.folder {
            Some(folder) => look(&folder.root),
            None => Absent(format!("{path} is not in the capture")),
        }
    }
}
