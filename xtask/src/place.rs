//! Where things lie: the source tree and the cache.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The root of the source tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

/// Where fetched and built things are kept: `UNTAX_CACHE`, or `untax` in the user's cache.
pub fn cache() -> Result<PathBuf> {
    if let Some(cache) = std::env::var_os("UNTAX_CACHE") {
        return Ok(cache.into());
    }
    let home = std::env::home_dir().context("no home directory: set UNTAX_CACHE")?;
    Ok(home.join(".cache/untax"))
}
