//! `untax plan --node-classes`.

use super::check::{self, Saved};
use crate::screen::{print, print_json, say, style};
use crate::state::State;
use crate::{Outcome, Usage};
use anyhow::Context;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use untax_core::node_classes::NodeClasses;
use untax_core::page_size;
use untax_remedies::Seen;
use untax_report::terminal;

/// The longest name of a node (RFC 1123, as Kubernetes takes it).
const LONGEST_NAME: usize = 253;

/// Endings of file names: the name of the node is the part before.
const ENDINGS: [&str; 3] = [".tar.gz", ".tgz", ".json"];

/// Plans the classes for the nodes of these checks.
pub fn run(
    from: &[String],
    page: Option<&str>,
    output: Option<&Path>,
    json: bool,
    state: &State,
) -> anyhow::Result<Outcome> {
    let unknown = |page: &str| Usage(format!("{page} is no size of huge page; write 2m or 1g"));
    let page =
        page.map(|page| page_size::from_token(page).ok_or_else(|| unknown(page))).transpose()?;
    if from.is_empty() {
        let why = "name a check of each node: --from node-1.tar.gz --from node-2.tar.gz (untax capture makes them)";
        return Err(Usage(why.to_owned()).into());
    }
    let mut nodes: Vec<(String, Saved)> = Vec::new();
    for from in from {
        let name = node_name(from)?;
        if nodes.iter().any(|(known, _)| *known == name) {
            return Err(Usage(format!("two checks are of node {name}; name each node once")).into());
        }
        nodes.push((name, check::load(from, state)?));
    }
    let seen: Vec<Seen> = nodes
        .iter()
        .map(|(node, Saved { check, window })| Seen { node, check, snapshot: &window.end })
        .collect();
    let plan = untax_remedies::node_classes(&seen, page)?;
    if let Some(folder) = output {
        hand_over(&plan, folder)?;
    }
    if json {
        print_json(&plan)?;
    } else {
        print(&terminal::node_classes(&plan, style()))?;
    }
    Ok(Outcome::Clean)
}

/// The name of a node: that of its file. It goes into commands, so nothing but a name will do.
fn node_name(from: &str) -> Result<String, Usage> {
    let file = Path::new(from).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = ENDINGS.iter().find_map(|ending| file.strip_suffix(ending)).unwrap_or(&file);
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let ends_well = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let is_name = name.len() <= LONGEST_NAME
        && name.chars().all(is_plain)
        && ends_well(name.chars().next())
        && ends_well(name.chars().last());
    if is_name {
        return Ok(name.to_owned());
    }
    Err(Usage(format!(
        "{from}: {name:?} is no name of a node; name the file after it, such as node-1.tar.gz"
    )))
}

fn hand_over(plan: &NodeClasses, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let files = [
        ("node-classes.json", serde_json::to_string_pretty(plan)? + "\n"),
        ("node-classes.sh", script(plan)),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    say(&format!("plan: {}", folder.join("node-classes.sh").display()));
    Ok(())
}

/// The commands that label and taint the nodes. Pools are made by the script that a plan of the node holds.
fn script(plan: &NodeClasses) -> String {
    let mut text = "#!/bin/sh\n# Made by untax plan --node-classes. Prepare the pools first: untax plan on each node has a \
                    script for it.\nset -eu\n"
        .to_owned();
    for node in &plan.nodes {
        let class = plan.classes.iter().find(|class| class.name == node.class);
        let Some(class) = class else { continue };
        let labels: Vec<String> =
            class.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        // Appending to a String cannot fail.
        let _ = writeln!(text, "kubectl label node {} --overwrite {}", node.node, labels.join(" "));
        for taint in &class.taints {
            let _ = writeln!(text, "kubectl taint node {} --overwrite {taint}", node.node);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_named_after_its_file_and_nothing_else_goes_into_a_command() {
        assert_eq!(node_name("/tmp/node-1.tar.gz").unwrap(), "node-1");
        assert_eq!(node_name("db.example.json").unwrap(), "db.example");
        for bad in ["a b.json", "-x.json", "$(x)", "", "a;b", "Node.json", &"a".repeat(254)] {
            assert!(node_name(bad).is_err(), "{bad}");
        }
    }
}
