//! Whether dependencies are what deny.toml allows: licences, bans and sources, by what cargo itself knows.
//! cargo-deny takes minutes to build; this takes less than a second, and so runs in `make test`.

use super::dependencies::{self, Dependency};
use super::spdx;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// The target that is looked at: dependencies of other systems are not built.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// Where crates come from: the registry of Rust crates, as `cargo metadata` names it whichever mirror is used.
pub const REGISTRY: &str = concat!("registry+https://github.com/rust-lang/crates", ".io-index");

/// What deny.toml allows and forbids.
struct Policy {
    licences: Vec<String>,
    banned: Vec<String>,
}

/// Fails where a dependency is not allowed.
pub fn check(root: &Path) -> Result<()> {
    let file = root.join("deny.toml");
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let metadata = dependencies::metadata(root, TRIPLE)?;
    let problems = Policy::parse(&text)?.problems(dependencies::all(&metadata).iter());
    if problems.is_empty() {
        return Ok(());
    }
    bail!("dependencies that deny.toml does not allow:\n{}", problems.join("\n"))
}

impl Policy {
    fn parse(text: &str) -> Result<Self> {
        let list = |section: &str, key: &str| {
            let words = quoted(text, section, key);
            if words.is_empty() {
                bail!("deny.toml has no list '{key}' in [{section}]")
            }
            Ok(words)
        };
        Ok(Self { licences: list("licenses", "allow")?, banned: list("bans", "deny")? })
    }

    fn problems<'a>(&self, all: impl Iterator<Item = &'a Dependency>) -> Vec<String> {
        all.filter_map(|one| {
            let why = self.refusal(one)?;
            Some(format!("{} {}: {why}", one.name, one.version))
        })
        .collect()
    }

    fn refusal(&self, one: &Dependency) -> Option<String> {
        if self.banned.contains(&one.name) {
            return Some("it is banned".to_owned());
        }
        if one.source.as_deref() != Some(REGISTRY) {
            let from = one.source.as_deref().unwrap_or("a directory");
            return Some(format!("it comes from {from}"));
        }
        let Some(licence) = &one.license else { return Some("it states no licence".to_owned()) };
        let allowed = |name: &str| self.licences.iter().any(|allowed| allowed == name);
        match spdx::is_met(licence, &allowed) {
            Some(true) => None,
            Some(false) => Some(format!("its licence is {licence}")),
            None => Some(format!("its licence '{licence}' is no SPDX expression")),
        }
    }
}

/// The quoted words of a list that stands in a section, one entry a line.
fn quoted(text: &str, section: &str, key: &str) -> Vec<String> {
    let head = format!("[{section}]");
    let opening = format!("{key} = [");
    text.lines()
        .map(str::trim)
        .skip_while(|line| *line != head)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .skip_while(|line| *line != opening)
        .skip(1)
        .take_while(|line| *line != "]")
        .filter_map(|line| line.split('"').nth(1).map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::dependencies::tests::made_up;

    const RULES: &str = "[licenses]\nallow = [\n    \"MIT\",\n]\n\n[bans]\ndeny = [\n    \
                         { crate = \"c\" },\n]\n";

    #[test]
    fn what_is_not_allowed_is_named_with_the_reason() {
        let mut metadata = made_up();
        metadata["packages"][4]["source"] = "git+https://example.org/d".into();
        let policy = Policy::parse(RULES).unwrap();
        let problems = policy.problems(dependencies::all(&metadata).iter());
        assert_eq!(
            problems,
            [
                "b 1.0.0: its licence is GPL-3.0-only",
                "c 1.0.0: it is banned",
                "d 1.0.0: it comes from git+https://example.org/d",
            ]
        );
    }

    #[test]
    fn a_policy_without_a_list_is_refused() {
        assert!(Policy::parse("[licenses]\nallow = [\n]\n").is_err());
    }

    #[test]
    fn this_projects_dependencies_are_allowed() {
        check(&crate::paths::root()).unwrap();
    }
}
