//! Where things lie: the source tree and the cache.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The root of the source tree. `cargo run` says which, as one built by another clone may be run; a
/// copy of this program knows where it was built.
pub fn root() -> PathBuf {
    let said = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let manifest = said.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    manifest.parent().map(Path::to_owned).unwrap_or_default()
}

/// Where fetched and built things are kept: `UNTAX_CACHE`, or `untax` in the user's cache.
pub fn cache() -> Result<PathBuf> {
    if let Some(cache) = std::env::var_os("UNTAX_CACHE") {
        return Ok(cache.into());
    }
    let home = std::env::home_dir().context("no home directory: set UNTAX_CACHE")?;
    Ok(home.join(".cache/untax"))
}
