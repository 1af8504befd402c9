//! The plugin of kubectl: its archive, and the manifest by which krew installs it.

use super::archive::archive;
use super::build::Build;
use super::manifest::digest;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Where a release is published: there is no such place yet. Whoever publishes one puts its address here, or into
/// the manifest.
const PLACE: &str = "https://untax.example/releases";

/// The files of the archive with their modes.
const FILES: [(&str, &str, u32); 2] =
    [("kubectl-untax", "deploy/kubectl/kubectl-untax", 0o755), ("LICENSE", "LICENSE", 0o644)];

/// Makes both, and returns where they are.
pub fn make(build: &Build) -> Result<Vec<PathBuf>> {
    let read = |(name, place, mode): (&'static str, &str, u32)| {
        let bytes = fs::read(build.root.join(place)).with_context(|| place.to_owned())?;
        Ok((name, mode, bytes))
    };
    let files = FILES.into_iter().map(read).collect::<Result<Vec<_>>>()?;
    let all = files.iter().map(|(name, mode, bytes)| (Path::new(*name), *mode, &bytes[..]));
    let bytes = archive(build, all)?;
    let name = format!("kubectl-untax-{}.tar.gz", build.version);
    let manifest =
        manifest(build.version, &format!("{PLACE}/v{}/{name}", build.version), &digest(&bytes));
    // JSON is YAML too.
    let made =
        [(name, bytes), ("krew-untax.yaml".to_owned(), (manifest.to_string() + "\n").into_bytes())];
    let write = |(name, bytes): (String, Vec<u8>)| {
        let file = build.made.join(name);
        fs::write(&file, bytes).with_context(|| file.display().to_string())?;
        Ok(file)
    };
    made.into_iter().map(write).collect()
}

fn manifest(version: &str, uri: &str, sha256: &str) -> Value {
    let files: Vec<Value> =
        FILES.iter().map(|(name, ..)| json!({"from": name, "to": "."})).collect();
    json!({
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "untax"},
        "spec": {
            "version": format!("v{version}"),
            "homepage": "https://untax.example",
            "shortDescription": "What the platform takes from databases in pods",
            "description": "Shows the last check of the databases of a pod, or those of the cluster that lose \
                            most, as the agents of untax on the nodes see them. It changes nothing.\n",
            "caveats": "The agent must run on the nodes: helm install untax.\n",
            "platforms": [{
                "selector": {"matchExpressions": [{"key": "os", "operator": "In", "values": ["linux", "darwin"]}]},
                "uri": uri,
                "sha256": sha256,
                "files": files,
                "bin": "kubectl-untax",
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_names_the_archive_and_its_digest() {
        let manifest = manifest("1.2.3", "https://a.example/b.tar.gz", "abc");
        let platform = &manifest["spec"]["platforms"][0];
        assert_eq!(manifest["spec"]["version"], "v1.2.3");
        assert_eq!(
            (&platform["uri"], &platform["sha256"]),
            (&json!("https://a.example/b.tar.gz"), &json!("abc"))
        );
        assert_eq!(platform["files"][0]["from"], platform["bin"]);
        let line = manifest["spec"]["shortDescription"].as_str().unwrap();
        assert!(line.len() < 50 && !line.ends_with('.'), "krew's rules of style");
    }
}
