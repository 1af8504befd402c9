//! Compression that gives the same bytes for the same bytes.

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use std::fs;
use std::io::Write;
use std::path::Path;

/// Compresses a file so that the same bytes give the same bytes: no name and no time is kept.
pub fn compress(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| from.display().to_string())?;
    fs::write(to, gzip(&bytes)?).with_context(|| to.display().to_string())
}

/// The same bytes for the same bytes.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
