//! Captures: what a check read on one host, saved so that it replays elsewhere.
//!
//! A capture is a folder, or the same folder as `.tar.gz`: `capture.json` with the schema, and for
//! each moment (`start`, `end`) the files below `fs/`, and `observed.json` with what was denied or
//! absent, where links point, and what was answered other than by files.

use crate::captured::{CapturedHost, Folder};
use crate::record::Record;
use crate::{Host, files};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// The schema's name and version.
const SCHEMA: &str = "untax.capture/1";

/// The most that an unpacked capture may hold: a capture of 10,000 processes takes about 200 MiB.
const MAX_UNPACKED_BYTES: u64 = 1 << 30;

/// What an entry of an archive takes beside its content: a tar header.
const ENTRY_BYTES: u64 = 512;

/// Why a capture could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// A file of the capture could not be written or read.
    #[error("{}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// A file of the capture has an unexpected form.
    #[error("{} is not part of a capture; make one with 'untax capture FILE'", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What was unexpected.
        source: serde_json::Error,
    },
    /// The capture is of another version.
    #[error("the capture has schema {found}, this version of untax reads {SCHEMA}")]
    Schema {
        /// What it says of itself.
        found: String,
    },
    /// The archive unpacks to more than a capture ever holds.
    #[error("the archive unpacks to more than {} MiB: not a capture", MAX_UNPACKED_BYTES >> 20)]
    TooLarge,
    /// The archive holds what no capture holds: a link, a device, or a name that leads outside.
    #[error("the archive holds {}, which is no file of a capture", name.display())]
    Entry {
        /// Its name.
        name: PathBuf,
    },
    /// A capture is never written over something else.
    #[error("{} exists; choose another name or remove it", path.display())]
    Exists {
        /// What is there.
        path: PathBuf,
    },
}

/// A capture that was opened: a host at the start and at the end of a window.
pub struct Capture {
    /// The host when the window opened.
    pub start: Host,
    /// The host when the window closed.
    pub end: Host,
}

#[derive(Serialize, Deserialize)]
struct Manifest {
    schema: String,
}

impl Capture {
    /// Whether a path looks like a capture rather than a saved run.
    pub fn is_capture(path: &Path) -> bool {
        is_archive(path) || path.join("capture.json").is_file()
    }

    /// Opens a capture: a folder, or a `.tar.gz` of one.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        if is_archive(path) {
            let unpacked = Arc::new(unpack(path)?);
            return Self::open_folder(unpacked.path(), Some(&unpacked));
        }
        Self::open_folder(path, None)
    }

    /// `unpacked` is removed with the last of the hosts that read from it.
    fn open_folder(folder: &Path, unpacked: Option<&Arc<TempDir>>) -> Result<Self, CaptureError> {
        let manifest: Manifest = read_json(&folder.join("capture.json"))?;
        if manifest.schema != SCHEMA {
            return Err(CaptureError::Schema { found: manifest.schema });
        }
        let moment = |name: &str| -> Result<Host, CaptureError> {
            let folder = folder.join(name);
            let record = read_json(&folder.join("observed.json"))?;
            let root = folder.join("fs");
            let root = files::open_directory(&root).map_err(at(&root))?;
            let folder = Some(Folder { root, _unpacked: unpacked.cloned() });
            Ok(Host::from_capture(CapturedHost { record, folder }))
        };
        Ok(Self { start: moment("start")?, end: moment("end")? })
    }

    /// Writes a capture to `path`: a `.tar.gz` archive if it is named so, a folder otherwise.
    pub fn write(path: &Path, start: &Record, end: &Record) -> Result<(), CaptureError> {
        if path.exists() {
            return Err(CaptureError::Exists { path: path.to_owned() });
        }
        if !is_archive(path) {
            return write_folder(path, start, end);
        }
        let folder = tempfile::tempdir().map_err(at(path))?;
        write_folder(folder.path(), start, end)?;
        pack(folder.path(), path).map_err(at(path))
    }
}

fn is_archive(path: &Path) -> bool {
    let is = |path: &Path, kind| path.extension().is_some_and(|found| found == kind);
    let is_tar = || path.file_stem().is_some_and(|stem| is(Path::new(stem), "tar"));
    is(path, "tgz") || (is(path, "gz") && is_tar())
}

fn write_folder(folder: &Path, start: &Record, end: &Record) -> Result<(), CaptureError> {
    make_directory(folder)?;
    let manifest = Manifest { schema: SCHEMA.to_owned() };
    write_json(&folder.join("capture.json"), &manifest)?;
    write_moment(&folder.join("start"), start)?;
    write_moment(&folder.join("end"), end)
}

fn write_moment(folder: &Path, record: &Record) -> Result<(), CaptureError> {
    let root = folder.join("fs");
    make_directory(&root)?;
    write_json(&folder.join("observed.json"), record)?;
    for directory in &record.directories {
        make_directory(&below(&root, directory))?;
    }
    for (path, text) in &record.files {
        let place = below(&root, path);
        if let Some(parent) = place.parent() {
            make_directory(parent)?;
        }
        fs::write(&place, text).map_err(at(&place))?;
    }
    Ok(())
}

fn pack(folder: &Path, archive: &Path) -> io::Result<()> {
    let file = File::create_new(archive)?;
    let zipped = flate2::write::GzEncoder::new(file, flate2::Compression::default());
    let mut tar = tar::Builder::new(zipped);
    tar.follow_symlinks(false);
    tar.append_dir_all(".", folder)?;
    tar.into_inner()?.finish()?.sync_all()
}

fn unpack(archive: &Path) -> Result<TempDir, CaptureError> {
    let folder = tempfile::tempdir().map_err(at(archive))?;
    let file = File::open(archive).map_err(at(archive))?;
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let mut bytes = 0_u64;
    for entry in tar.entries().map_err(at(archive))? {
        let mut entry = entry.map_err(at(archive))?;
        bytes = bytes.saturating_add(entry.size()).saturating_add(ENTRY_BYTES);
        if bytes > MAX_UNPACKED_BYTES {
            return Err(CaptureError::TooLarge);
        }
        let kind = entry.header().entry_type();
        let is_plain = kind.is_file() || kind.is_dir();
        // `unpack_in` says false to a name that leads outside the folder.
        if !is_plain || !entry.unpack_in(folder.path()).map_err(at(archive))? {
            let name = entry.path().map_err(at(archive))?.into_owned();
            return Err(CaptureError::Entry { name });
        }
    }
    Ok(folder)
}

fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

fn make_directory(path: &Path) -> Result<(), CaptureError> {
    fs::create_dir_all(path).map_err(at(path))
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), CaptureError> {
    let form = |source| CaptureError::Form { path: path.to_owned(), source };
    let json = serde_json::to_string_pretty(value).map_err(form)?;
    fs::write(path, json + "\n").map_err(at(path))
}

#[expect(clippy::disallowed_methods, reason = "reads the capture, not the host")]
fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, CaptureError> {
    let json = fs::read_to_string(path).map_err(at(path))?;
    serde_json::from_str(&json)
        .map_err(|source| CaptureError::Form { path: path.to_owned(), source })
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> CaptureError {
    let path = path.to_owned();
    move |source| CaptureError::Io { path, source }
}
