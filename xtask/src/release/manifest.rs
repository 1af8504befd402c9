//! What a release consists of: manifest.json, and SHA256SUMS for `sha256sum --check`.

use super::build::Build;
use anyhow::{Context, Result};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use untax::schemas::Format;

/// The manifest's name and version.
const SCHEMA: &str = "untax.release/1";

/// Its format.
pub const FORMAT: Format = Format {
    id: SCHEMA,
    summary: "manifest.json of a release",
    schema: untax::json_schema::of::<Manifest>,
};

/// The manifest.
#[derive(Debug, Serialize, JsonSchema)]
struct Manifest {
    /// `untax.release/1`.
    schema: &'static str,
    /// The version.
    version: &'static str,
    /// The commit that was built; it ends in `-changed` where the tree had changes.
    commit: String,
    /// When that was made.
    committed_at: String,
    /// The architecture of the program.
    architecture: &'static str,
    /// Every file, in the order of names.
    artefacts: Vec<Artefact>,
}

/// A file of the release.
#[derive(Debug, Serialize, JsonSchema)]
struct Artefact {
    /// Its name.
    name: String,
    /// Its size.
    size_bytes: usize,
    /// Its SHA-256, in hexadecimal digits.
    sha256: String,
}

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
        rows.push(Artefact { name, size_bytes: bytes.len(), sha256 });
    }
    let manifest = Manifest {
        schema: SCHEMA,
        version: build.version,
        commit: build.commit.clone(),
        committed_at: build.time().to_string(),
        architecture: build.architecture.name,
        artefacts: rows,
    };
    let text = format!("{}\n", serde_json::to_string_pretty(&manifest)?);
    fs::write(build.out.join("manifest.json"), text)?;
    fs::write(build.out.join("SHA256SUMS"), sums)?;
    Ok(())
}

/// The SHA-256 of bytes, in hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
