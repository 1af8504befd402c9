//! The parts list of the program, as `CycloneDX` JSON: every crate that is linked into it, and the C libraries
//! too, which tools that read Cargo.lock alone leave out.

use super::build::Build;
use super::dependencies::{self, Dependency};
use super::notices::C_LIBRARIES;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// Makes the list, and returns where it is.
pub fn make(build: &Build) -> Result<PathBuf> {
    let triple = format!("{}-unknown-linux-gnu", build.architecture.name);
    let metadata = dependencies::metadata(&build.root, &triple)?;
    let lock = fs::read_to_string(build.root.join("Cargo.lock")).context("Cargo.lock")?;
    let mut components: Vec<Value> =
        dependencies::linked(&metadata).iter().map(|one| component(one, &lock)).collect();
    components.extend(C_LIBRARIES.map(|(name, licence, what)| {
        json!({"type": "library", "name": name, "description": what,
            "licenses": [{"expression": licence}]})
    }));
    let list = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": build.time().to_string(),
            "component": {"type": "application", "bom-ref": "untax", "name": "untax",
                "version": build.version, "licenses": [{"expression": "Apache-2.0"}]},
        },
        "components": components,
    });
    let file =
        build.made.join(format!("untax-{}-{}.cdx.json", build.version, build.architecture.name));
    fs::write(&file, format!("{}\n", serde_json::to_string_pretty(&list)?))?;
    Ok(file)
}

fn component(one: &Dependency, lock: &str) -> Value {
    let purl = format!("pkg:cargo/{}@{}", one.name, one.version);
    let mut component = json!({"type": "library", "bom-ref": purl, "name": one.name,
        "version": one.version, "purl": purl});
    if let Some(licence) = &one.license {
        component["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
    }
    if let Some(sum) = checksum(lock, one) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    component
}

/// The SHA-256 of a crate's archive, as Cargo.lock has it.
fn checksum<'a>(lock: &'a str, one: &Dependency) -> Option<&'a str> {
    let head = format!("name = \"{}\"\nversion = \"{}\"\n", one.name, one.version);
    let entry = lock.split("[[package]]\n").find(|entry| entry.starts_with(&head))?;
    let line = entry.lines().find_map(|line| line.strip_prefix("checksum = \""))?;
    line.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::dependencies::tests::made_up;

    #[test]
    fn a_component_has_the_licence_and_the_digest_of_its_crate() {
        let one = dependencies::linked(&made_up()).into_iter().next().unwrap();
        let lock =
            "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"x\"\nchecksum = \"c0\"\n";
        let component = component(&one, lock);
        assert_eq!(component["purl"], "pkg:cargo/a@1.0.0");
        assert_eq!(component["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(component["hashes"][0]["content"], "c0");
    }

    #[test]
    fn every_crate_of_a_registry_in_the_program_has_a_digest() {
        let root = crate::paths::root();
        let metadata = dependencies::metadata(&root, "x86_64-unknown-linux-gnu").unwrap();
        let lock = fs::read_to_string(root.join("Cargo.lock")).unwrap();
        let linked = dependencies::linked(&metadata);
        assert!(linked.iter().any(|one| one.name == "libbpf-sys"));
        for one in linked {
            assert!(checksum(&lock, &one).is_some(), "{} {}", one.name, one.version);
        }
    }
}
