//! The site as one archive, to be unpacked and opened offline.

use super::archive::archive;
use super::build::Build;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Packs the site, and returns where the archive is.
pub fn make(build: &Build, site: &Path) -> Result<PathBuf> {
    let mut files = Vec::new();
    list(site, &mut files)?;
    files.sort();
    let name = format!("untax-{}-site", build.version);
    let read = |file: PathBuf| {
        let bytes = fs::read(&file).with_context(|| file.display().to_string())?;
        Ok((Path::new(&name).join(file.strip_prefix(site)?), bytes))
    };
    let files = files.into_iter().map(read).collect::<Result<Vec<_>>>()?;
    let bytes =
        archive(build, files.iter().map(|(name, bytes)| (name.as_path(), 0o644, &bytes[..])))?;
    let file = build.made.join(format!("{name}.tar.gz"));
    fs::write(&file, bytes).with_context(|| file.display().to_string())?;
    Ok(file)
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { list(&path, files)? } else { files.push(path) }
    }
    Ok(())
}
