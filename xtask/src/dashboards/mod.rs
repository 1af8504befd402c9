//! Dashboards and rules for the agent's metrics, written from the panels and alerts listed here.

mod grafana;
mod panels;
mod rules;

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Writes every file.
pub fn write(root: &Path) -> Result<()> {
    for (path, text) in files() {
        let path = root.join(path);
        let folder = path.parent().unwrap_or(root);
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Each file, by its path in the source tree.
fn files() -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = panels::DASHBOARDS
        .iter()
        .map(|board| (format!("deploy/dashboards/{}.json", board.id), grafana::json(board)))
        .collect();
    files.push(("deploy/chart/untax/rules.yaml".to_owned(), rules::yaml()));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_fresh() {
        for (path, text) in files() {
            let now = fs::read_to_string(crate::paths::root().join(&path)).unwrap_or_default();
            assert!(now == text, "{path} is stale; run 'cargo xtask dashboards'");
        }
    }

    /// Every name in a query is one of the catalogue, or one that a rule records.
    #[test]
    fn queries_use_metrics_that_are_there() {
        let names: Vec<String> = untax_agent::METRICS.iter().map(|metric| metric.name()).collect();
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let panels = panels::DASHBOARDS.iter().flat_map(|board| board.panels);
        let queries = panels.map(|panel| panel.query).chain(rules::queries());
        for query in queries {
            for word in query.split(|c| !is_word(c)).filter(|word| word.starts_with("untax")) {
                let recorded = rules::RECORDED.iter().any(|rule| rule.name == word);
                assert!(recorded || names.iter().any(|name| name == word), "{word} in {query}");
            }
        }
    }
}
