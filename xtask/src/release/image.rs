//! The image for containers: an archive of the layout that the Open Container Initiative defines, which
//! podman, skopeo, crane and Docker (25 and newer) read. It holds the program and nothing to start a shell
//! with.

use super::build::Build;
use super::compress::gzip;
use super::contents::{self, Installed};
use super::manifest::digest;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use tar::{Builder, EntryType, Header};

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Directories that the program writes to, for whichever user it runs as, and their modes.
const WRITABLE: [(&str, u32); 2] = [("tmp/", 0o1777), ("var/lib/untax/", 0o1777)];

/// A part of the image, by its digest.
struct Blob {
    kind: &'static str,
    bytes: Vec<u8>,
}

impl Blob {
    fn json(kind: &'static str, value: &Value) -> Result<Self> {
        Ok(Self { kind, bytes: serde_json::to_vec(value)? })
    }

    fn digest(&self) -> String {
        digest(&self.bytes)
    }

    fn descriptor(&self) -> Value {
        json!({"mediaType": self.kind, "digest": format!("sha256:{}", self.digest()),
            "size": self.bytes.len()})
    }
}

/// Makes the image, and returns where it is.
pub fn make(build: &Build) -> Result<PathBuf> {
    let tar = layer(build, &contents::of_image(build))?;
    let layer = Blob { kind: LAYER, bytes: gzip(&tar)? };
    let config = Blob::json(CONFIG, &configuration(build, &digest(&tar)))?;
    let manifest = Blob::json(
        MANIFEST,
        &json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config.descriptor(),
            "layers": [layer.descriptor()]}),
    )?;
    let mut listed = manifest.descriptor();
    listed["annotations"] = json!({"org.opencontainers.image.ref.name": build.version});
    listed["platform"] = json!({"architecture": build.architecture.go, "os": "linux"});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [listed]});

    let mut archive = Builder::new(Vec::new());
    add(&mut archive, build, "oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    add(&mut archive, build, "index.json", 0o644, &serde_json::to_vec(&index)?)?;
    for blob in [&layer, &config, &manifest] {
        add(&mut archive, build, &format!("blobs/sha256/{}", blob.digest()), 0o644, &blob.bytes)?;
    }
    let name = format!("untax-{}-image-{}.tar", build.version, build.architecture.name);
    let file = build.made.join(name);
    fs::write(&file, archive.into_inner()?).with_context(|| file.display().to_string())?;
    Ok(file)
}

/// How a container of it starts. As root unless it is told otherwise: without being told, a check there
/// sees what a check of root sees.
fn configuration(build: &Build, layer: &str) -> Value {
    json!({
        "created": build.time().to_string(),
        "architecture": build.architecture.go,
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/untax"],
            "Cmd": ["--help"],
            "Env": ["PATH=/usr/bin", "HOME=/tmp"],
            "WorkingDir": "/",
            "Labels": {
                "org.opencontainers.image.title": "untax",
                "org.opencontainers.image.version": build.version,
                "org.opencontainers.image.revision": build.commit,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
        "history": [{"created": build.time().to_string(), "created_by": "cargo xtask release"}],
    })
}

fn layer(build: &Build, files: &[Installed]) -> Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    for (folder, mode) in folders(files) {
        let mut header = header(build, mode, 0);
        header.set_entry_type(EntryType::Directory);
        archive.append_data(&mut header, &folder, &b""[..])?;
    }
    for file in files {
        let bytes = fs::read(&file.from).with_context(|| file.from.display().to_string())?;
        add(&mut archive, build, file.to.trim_start_matches('/'), file.mode, &bytes)?;
    }
    Ok(archive.into_inner()?)
}

/// The directories of files and those that are written to, the outer ones first.
fn folders(files: &[Installed]) -> Vec<(String, u32)> {
    let paths = files.iter().map(|file| file.to.trim_start_matches('/'));
    let paths = paths.chain(WRITABLE.iter().map(|(path, _)| *path));
    let inner = paths.flat_map(|path| path.match_indices('/').map(|(end, _)| &path[..=end]));
    let mut all: Vec<&str> = inner.collect();
    all.sort_unstable();
    all.dedup();
    let mode = |path: &str| WRITABLE.iter().find(|(writable, _)| *writable == path);
    all.into_iter()
        .map(|path| (path.to_owned(), mode(path).map_or(0o755, |(_, mode)| *mode)))
        .collect()
}

fn add(
    archive: &mut Builder<Vec<u8>>,
    build: &Build,
    path: &str,
    mode: u32,
    bytes: &[u8],
) -> Result<()> {
    let mut header = header(build, mode, bytes.len() as u64);
    archive.append_data(&mut header, path, bytes).with_context(|| path.to_owned())
}

/// Of a file that root owns, with the commit's time.
fn header(build: &Build, mode: u32, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(build.time_s.unsigned_abs());
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_folder_of_a_file_is_listed_once_before_it() {
        let file = |to: &str| Installed {
            from: Path::new("x").into(),
            to: to.into(),
            mode: 0,
            only: None,
        };
        let found = folders(&[file("/usr/bin/untax"), file("/usr/share/doc/x")]);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "tmp/",
            "usr/",
            "usr/bin/",
            "usr/share/",
            "usr/share/doc/",
            "var/",
            "var/lib/",
            "var/lib/untax/",
        ];
        assert_eq!(names, expected);
        assert_eq!(found[0].1, 0o1777);
    }
}
