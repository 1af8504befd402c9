//! Where an engine's name may be compared: what is known of an engine stands in its file, and the
//! snapshot carries it.

use super::problem::{Problem, numbered};

/// The products of engines that have several.
const PRODUCTS: [&str; 8] = [
    "PostgreSQL",
    "MySQL",
    "MariaDB",
    "Percona Server",
    "Redis",
    "Valkey",
    "MongoDB",
    "Oracle Database",
];

/// The crates that know engines, what starts servers, and remedies, which write the settings of each.
const KNOWING: [&str; 6] = [
    "crates/engines/",
    "crates/scenes/",
    "crates/lab/",
    "crates/remedies/src/remedies/",
    "crates/remedies/src/workloads/",
    "xtask/",
];

pub fn check(path: &str, text: &str) -> Vec<Problem> {
    let is_source = path.ends_with(".rs") && path.contains("/src/");
    // Files of tests alone are named so.
    let file = path.rsplit('/').next().unwrap_or_default();
    let is_test = file.starts_with("test_") || file == "tests.rs";
    if !is_source || is_test || KNOWING.iter().any(|place| path.starts_with(place)) {
        return Vec::new();
    }
    let ids = untax_engines::ENGINES.iter().map(|engine| engine.id);
    let names: Vec<String> = ids.chain(PRODUCTS).map(|name| format!("\"{name}\"")).collect();
    let code = numbered(text).take_while(|(_, line)| line.trim() != "#[cfg(test)]");
    let compared = |line: &str| names.iter().find(|name| compares(line, name)).cloned();
    code.filter_map(|(number, line)| Some((number, compared(line)?)))
        .map(|(number, name)| {
            let what = format!("compares with {name}: ask the engine's file, by database.traits");
            Problem::new(path, number, what)
        })
        .collect()
}

/// Whether a line compares with a literal, matches it, or looks it up in a table.
fn compares(line: &str, literal: &str) -> bool {
    line.match_indices(literal).any(|(at, _)| {
        let (before, after) = (line[..at].trim_end(), line[at + literal.len()..].trim_start());
        let is_compared = ["==", "!=", "|", "starts_with(", "contains(", "matches!("]
            .iter()
            .any(|end| before.ends_with(end));
        let is_matched =
            ["==", "!=", "=>", "|", "if "].iter().any(|start| after.starts_with(start));
        let is_looked_up = before.ends_with('(') && after.starts_with(',') && {
            let called = before.trim_end_matches('(');
            !called.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '!')
        };
        is_compared || is_matched || is_looked_up || (before.is_empty() && after.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_found_where_they_may_not_be() {
        for line in [
            "if database.engine == \"mysql\" {",
            "if \"redis\" != pair.end.engine {",
            "        \"postgres\" | \"mysql\" => 1,",
            "        \"mysql\" if database.product == other => {",
            "    (\"postgres\", \"transactions\"),",
            "    !matches!(engine, \"redis\" | \"mongodb\")",
            "database.product == \"MariaDB\"",
            "engine.starts_with(\"oracle\")",
        ] {
            assert_eq!(check("crates/rules/src/a.rs", line).len(), 1, "{line}");
            for place in ["crates/engines/src/a.rs", "crates/rules/src/test_a.rs", "docs/a.md"] {
                assert!(check(place, line).is_empty(), "{place}: {line}");
            }
        }
    }

    #[test]
    fn a_name_that_is_only_said_or_tested_is_none() {
        for line in [
            "#[arg(long, default_value = \"postgres\")]",
            "Database::unknown(\"postgres\", 7, WHY)",
            "pgbench.args([\"-f\", \"-\", \"postgres\"]);",
            "let mysqld = \"mysqld\" == name;",
            "#[cfg(test)]\nassert!(engine == \"mysql\");",
        ] {
            assert!(check("crates/cli/src/a.rs", line).is_empty(), "{line}");
        }
    }
}
