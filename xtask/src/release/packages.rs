//! Packages of Linux distributions, by nfpm, from one description.

use super::build::Build;
use super::contents::{self, Installed};
use crate::tools;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The kinds of package. Of these, deb and rpm are tried: see SPECIFICATION.md.
const KINDS: [&str; 4] = ["deb", "rpm", "apk", "archlinux"];

const MAINTAINER: &str = "The untax maintainers <maintainers@untax.example>";

const DESCRIPTION: &str = "what the platform takes from a database, and what to change\n\
    untax attaches to a running PostgreSQL, MySQL, MariaDB, Redis, Valkey or\n\
    MongoDB and says what pages, CPU limits, neighbours, disks and the network\n\
    take from it, in percent of its own time, with an interval and the method of\n\
    every number. It plans what to change, does it, proves what it was worth, and\n\
    puts it back.";

/// Makes all packages, and returns where they are.
pub fn make(build: &Build) -> Result<Vec<PathBuf>> {
    let nfpm = tools::get("nfpm")?;
    let changelog = build.made.join("changelog.yaml");
    fs::write(&changelog, changelog_of(build).to_string())?;
    // JSON is YAML too.
    let description = build.made.join("nfpm.yaml");
    fs::write(&description, describe(build, &contents::of_packages(build)?).to_string())?;
    let out = build.made.join("packages");
    fs::create_dir_all(&out)?;
    for kind in KINDS {
        let mut command = Command::new(&nfpm);
        command.args(["package", "--packager", kind, "--config"]).arg(&description);
        command.arg("--target").arg(format!("{}/", out.display()));
        let output = command.output().context("cannot run nfpm")?;
        if !output.status.success() {
            bail!("nfpm makes no {kind}: {}", String::from_utf8_lossy(&output.stderr).trim_end());
        }
    }
    let made = fs::read_dir(&out)?.map(|entry| Ok(entry?.path()));
    made.collect()
}

fn changelog_of(build: &Build) -> Value {
    let note = format!("untax {}: see /usr/share/doc/untax/changelog.gz.", build.version);
    json!([{
        "semver": build.version,
        "date": build.time().to_string(),
        "packager": MAINTAINER,
        "deb": {"urgency": "medium", "distributions": ["unstable"]},
        "changes": [{"note": note}],
    }])
}

fn describe(build: &Build, files: &[Installed]) -> Value {
    let mut contents: Vec<Value> = files.iter().map(|file| content(build, file)).collect();
    // An rpm leaves directories that it does not own.
    contents.push(json!({"dst": "/usr/share/doc/untax", "type": "dir", "packager": "rpm",
        "file_info": {"mode": 0o755, "mtime": build.time().to_string()}}));
    let script = |name: &str| build.root.join("deploy/package").join(name);
    json!({
        "name": "untax",
        "arch": build.architecture.go,
        "platform": "linux",
        "version": build.version,
        "release": "1",
        "section": "admin",
        "priority": "optional",
        "maintainer": MAINTAINER,
        "description": DESCRIPTION,
        "license": "Apache-2.0",
        "mtime": build.time().to_string(),
        "changelog": build.made.join("changelog.yaml"),
        "contents": contents,
        "overrides": {
            "deb": {"scripts": {
                "postinstall": script("deb.postinst"),
                "preremove": script("deb.prerm"),
                "postremove": script("deb.postrm"),
            }},
            "rpm": {"scripts": {
                "postinstall": script("rpm.post"),
                "preremove": script("rpm.preun"),
                "postremove": script("rpm.postun"),
            }},
        },
        "deb": {"compression": "xz"},
        "rpm": {"buildhost": "untax", "group": "Applications/Databases",
            "summary": DESCRIPTION.lines().next().unwrap_or_default()},
    })
}

fn content(build: &Build, file: &Installed) -> Value {
    let mut content = json!({
        "src": file.from,
        "dst": file.to,
        "file_info": {"mode": file.mode, "mtime": build.time().to_string(), "owner": "root",
            "group": "root"},
    });
    if let Some(kind) = file.only {
        content["packager"] = kind.into();
    }
    content
}
