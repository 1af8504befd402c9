//! Archives that are the same for the same files: in the order given, with the time of the commit.

use super::build::Build;
use super::compress::gzip;
use anyhow::Result;
use std::path::Path;
use tar::{Builder, Header};

/// A compressed archive of files: name, mode, content.
pub fn archive<'a>(
    build: &Build,
    files: impl Iterator<Item = (&'a Path, u32, &'a [u8])>,
) -> Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    for (name, mode, bytes) in files {
        let mut header = Header::new_ustar();
        header.set_mode(mode);
        header.set_size(bytes.len() as u64);
        header.set_mtime(build.time_s.unsigned_abs());
        archive.append_data(&mut header, name, bytes)?;
    }
    gzip(&archive.into_inner()?)
}
