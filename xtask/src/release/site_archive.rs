//! The site as one archive, to be unpacked and opened offline.

use super::build::Build;
use super::compress::gzip;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use tar::{Builder, Header};

/// Packs the site, and returns where the archive is.
pub fn make(build: &Build, site: &Path) -> Result<PathBuf> {
    let mut files = Vec::new();
    list(site, &mut files)?;
    files.sort();
    let name = format!("untax-{}-site", build.version);
    let mut archive = Builder::new(Vec::new());
    for file in files {
        let bytes = fs::read(&file).with_context(|| file.display().to_string())?;
        let mut header = Header::new_ustar();
        header.set_mode(0o644);
        header.set_size(bytes.len() as u64);
        header.set_mtime(build.time_s.unsigned_abs());
        let place = Path::new(&name).join(file.strip_prefix(site)?);
        archive.append_data(&mut header, &place, &bytes[..])?;
    }
    let file = build.made.join(format!("{name}.tar.gz"));
    fs::write(&file, gzip(&archive.into_inner()?)?).with_context(|| file.display().to_string())?;
    Ok(file)
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { list(&path, files)? } else { files.push(path) }
    }
    Ok(())
}
