//! The files of a volume: written in full with bytes that are not zero.
//!
//! In a sparse or preallocated file a read gives zeros without asking the disk, and a write allocates.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use untax_core::Bytes;

/// The log: four segments of PostgreSQL's usual size.
pub(crate) const LOG: Bytes = Bytes(64 << 20);

/// What is written at once.
const PIECE: usize = 1 << 20;

/// A file of 512-byte sectors has as many as its size, where none is missing or compressed.
const SECTOR: u64 = 512;
const ENOUGH: f64 = 0.95;

pub(crate) fn data_path(directory: &Path) -> PathBuf {
    directory.join("data")
}

pub(crate) fn log_path(directory: &Path) -> PathBuf {
    directory.join("log")
}

pub(crate) fn growing_path(directory: &Path) -> PathBuf {
    directory.join("growing")
}

/// Writes the data file and the log, and waits until the disk has them.
pub(crate) fn fill(directory: &Path, data: Bytes, seed: u64) -> io::Result<()> {
    for (path, bytes) in [(data_path(directory), data), (log_path(directory), LOG)] {
        fill_one(&path, bytes, seed).map_err(|error| at(&path, &error))?;
    }
    Ok(())
}

fn fill_one(path: &Path, bytes: Bytes, seed: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut left = bytes.0 as usize;
    let mut piece = vec![0; PIECE];
    while left > 0 {
        random(&mut piece, &mut rng);
        let now = left.min(PIECE);
        file.write_all(&piece[..now])?;
        left -= now;
    }
    file.sync_all()?;
    let stored = file.metadata()?.blocks() * SECTOR;
    if (stored as f64) < bytes.0 as f64 * ENOUGH {
        let why = format!(
            "the filesystem stores {} of {bytes} random bytes: reads of the rest would not come from the disk; \
             name a directory that is neither compressed nor deduplicated",
            Bytes(stored)
        );
        return Err(io::Error::other(why));
    }
    Ok(())
}

/// Random bytes, none of which is zero: neither a hole nor a compressed block.
pub(crate) fn random(buffer: &mut [u8], rng: &mut fastrand::Rng) {
    rng.fill(buffer);
    for byte in buffer {
        *byte |= u8::from(*byte == 0);
    }
}

/// An error that names its file.
pub(crate) fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Opens a file for writing.
pub(crate) fn open_to_write(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path).map_err(|error| at(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn files_are_full_and_hold_no_zero() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("some");
        let bytes = Bytes(3 * (PIECE as u64) / 2);
        fill_one(&path, bytes, 7).unwrap();
        let mut text = Vec::new();
        File::open(&path).unwrap().read_to_end(&mut text).unwrap();
        assert_eq!(text.len() as u64, bytes.0);
        assert!(text.iter().all(|byte| *byte != 0));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let error = fill(Path::new("/no/such/place"), Bytes(1), 1).unwrap_err();
        assert!(error.to_string().starts_with("/no/such/place/data: "), "{error}");
    }
}
