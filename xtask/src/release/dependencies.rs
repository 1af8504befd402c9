//! The crates that untax is built of, as `cargo metadata` tells them.

use crate::test::cargo;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The program's package.
const PROGRAM: &str = "untax";

/// A crate of somebody else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    pub name: String,
    pub version: String,
    /// An SPDX expression; `None` where its author states none.
    pub license: Option<String>,
    /// The registry or repository that it comes from; `None` for a directory.
    pub source: Option<String>,
    /// Where its files are.
    pub folder: PathBuf,
}

/// What `cargo metadata` says of the workspace, for one target.
pub fn metadata(root: &Path, triple: &str) -> Result<Value> {
    let mut command = cargo(&["metadata", "--format-version", "1", "--locked"]);
    command.args(["--filter-platform", triple]).current_dir(root);
    let output = command.output().context("cannot run cargo")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// All crates of others, those of tests and build scripts too.
pub fn all(metadata: &Value) -> BTreeSet<Dependency> {
    let own: BTreeSet<&str> = ids(&metadata["workspace_members"]).collect();
    packages(metadata).filter(|(id, _)| !own.contains(id)).map(|(_, package)| package).collect()
}

/// Those whose code is in the program: what it needs when it runs, and what these need.
pub fn linked(metadata: &Value) -> BTreeSet<Dependency> {
    let all: BTreeMap<&str, Dependency> = packages(metadata).collect();
    let own: BTreeSet<&str> = ids(&metadata["workspace_members"]).collect();
    let needs: BTreeMap<&str, &Value> = elements(&metadata["resolve"]["nodes"])
        .filter_map(|node| Some((node["id"].as_str()?, &node["deps"])))
        .collect();
    let is_program = |id: &&str| all.get(id).is_some_and(|package| package.name == PROGRAM);
    let mut open: Vec<&str> = own.iter().copied().filter(is_program).collect();
    let mut reached: BTreeSet<&str> = open.iter().copied().collect();
    while let Some(id) = open.pop() {
        let at_run_time = elements(needs.get(id).unwrap_or(&&Value::Null))
            .filter(|need| elements(&need["dep_kinds"]).any(|kind| kind["kind"].is_null()));
        for need in at_run_time.filter_map(|need| need["pkg"].as_str()) {
            if reached.insert(need) {
                open.push(need);
            }
        }
    }
    reached.difference(&own).filter_map(|id| all.get(id).cloned()).collect()
}

fn packages(metadata: &Value) -> impl Iterator<Item = (&str, Dependency)> {
    elements(&metadata["packages"]).filter_map(|package| {
        let word = |key: &str| package[key].as_str().map(str::to_owned);
        let manifest = PathBuf::from(package["manifest_path"].as_str()?);
        let dependency = Dependency {
            name: word("name")?,
            version: word("version")?,
            license: word("license"),
            source: word("source"),
            folder: manifest.parent()?.to_owned(),
        };
        Some((package["id"].as_str()?, dependency))
    })
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn ids(value: &Value) -> impl Iterator<Item = &str> {
    elements(value).filter_map(Value::as_str)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::json;

    /// A program that needs `a`, which needs `b`; its tests need `c`, its build script `d`.
    pub fn made_up() -> Value {
        let package = |name: &str, license: &str| {
            json!({"id": name, "name": name, "version": "1.0.0", "license": license,
                "source": crate::release::policy::REGISTRY,
                "manifest_path": format!("/cargo/{name}/Cargo.toml")})
        };
        let need = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        json!({
            "workspace_members": ["untax"],
            "packages": [package("untax", "Apache-2.0"), package("a", "MIT/Apache-2.0"),
                package("b", "GPL-3.0-only"), package("c", "MIT"), package("d", "MIT")],
            "resolve": {"nodes": [
                {"id": "untax", "deps": [need("a", Value::Null), need("c", json!("dev")),
                    need("d", json!("build"))]},
                {"id": "a", "deps": [need("b", Value::Null)]},
            ]},
        })
    }

    #[test]
    fn what_only_tests_and_build_scripts_need_is_not_in_the_program() {
        let metadata = made_up();
        let names = |found: BTreeSet<Dependency>| -> Vec<String> {
            found.into_iter().map(|dependency| dependency.name).collect()
        };
        assert_eq!(names(all(&metadata)), ["a", "b", "c", "d"]);
        assert_eq!(names(linked(&metadata)), ["a", "b"]);
    }
}
