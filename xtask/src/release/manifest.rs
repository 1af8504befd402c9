//! What a release consists of: manifest.json, and SHA256SUMS for `sha256sum --check`.

use super::build::Build;
use anyhow::{Context, Result};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

/// The manifest's name and version.
const SCHEMA: &str = "untax.release/1";

/// Puts all artefacts into the directory of the release, and lists them.
pub fn write(build: &Build, artefacts: &[PathBuf]) -> Result<()> {
    let mut rows = Vec::new();
    let mut sums = String::new();
    let mut artefacts = artefacts.to_vec();
    artefacts.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    for artefact in artefacts {
        let name = artefact.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = fs::read(&artefact).with_context(|| artefact.display().to_string())?;
        let place = build.out.join(&name);
        if place != artefact {
            fs::write(&place, &bytes).with_context(|| place.display().to_string())?;
        }
        let sha256 = digest(&bytes);
        println!("{sha256}  {:>9}  {name}", bytes.len());
        let _ = writeln!(sums, "{sha256}  {name}");
        rows.push(json!({"name": name, "size_bytes": bytes.len(), "sha256": sha256}));
    }
    let manifest = json!({
        "schema": SCHEMA,
        "version": build.version,
        "commit": build.commit,
        "committed_at": build.time().to_string(),
        "architecture": build.architecture.name,
        "artefacts": rows,
    });
    let text = format!("{}\n", serde_json::to_string_pretty(&manifest)?);
    fs::write(build.out.join("manifest.json"), text)?;
    fs::write(build.out.join("SHA256SUMS"), sums)?;
    Ok(())
}

/// The SHA-256 of bytes, in hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
