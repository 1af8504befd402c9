//! The table of contents.

use super::book::Pages;
use anyhow::{Result, bail};
use std::fmt::Write;

/// Chapters: title, and the pages in it, or the beginning of their paths.
const CHAPTERS: &[(&str, &[&str])] = &[
    (
        "Use it",
        &[
            "docs/README.md",
            "docs/install.md",
            "docs/reading-a-check.md",
            "docs/proving-a-fix.md",
            "docs/slow-pod.md",
            "docs/timeline.md",
            "docs/postgresql.md",
            "docs/mysql.md",
            "docs/redis.md",
            "docs/control-groups.md",
            "docs/safety.md",
            "docs/agent.md",
            "docs/metrics.md",
            "docs/command-line.md",
            "docs/recordings.md",
            "docs/troubleshooting.md",
            "docs/compared.md",
            "docs/glossary.md",
            "docs/compatibility.md",
        ],
    ),
    (
        "What it looks for",
        &[
            "docs/rules.md",
            "docs/rules/",
            "docs/untraced.md",
            "docs/ids.md",
            "docs/facts.md",
            "docs/engines.md",
        ],
    ),
    ("Results", &["docs/experiments.md", "docs/results/README.md", "docs/results/"]),
    ("How it works", &["ARCHITECTURE.md", "docs/statistics.md", "docs/design/"]),
    (
        "The project",
        &[
            "CHANGELOG.md",
            "SPECIFICATION.md",
            "docs/testing.md",
            "CONTRIBUTING.md",
            "docs/release.md",
        ],
    ),
];

/// What mdBook calls SUMMARY.md. Every page is in it once; one that no chapter names is under "More".
pub fn text(pages: &Pages) -> Result<String> {
    let mut left: Vec<&str> =
        pages.keys().map(String::as_str).filter(|page| *page != "README.md").collect();
    let mut text = String::from("# Summary\n\n[untax](README.md)\n");
    let more: &[&str] = &["docs/", ""];
    for (title, names) in CHAPTERS.iter().chain(&[("More", more)]) {
        let mut lines = String::new();
        for name in *names {
            let is_inner = name.ends_with('/') && *title != "More";
            let fits = |page: &&str| {
                *page == *name || (name.ends_with('/') || name.is_empty()) && page.starts_with(name)
            };
            for page in left.extract_if(.., |page| fits(page)) {
                let indent = if is_inner { "  " } else { "" };
                let _ = writeln!(lines, "{indent}- [{}]({page})", headline(page, &pages[page])?);
            }
        }
        if !lines.is_empty() {
            let _ = write!(text, "\n# {title}\n\n{lines}");
        }
    }
    Ok(text)
}

/// The title of a page.
fn headline(path: &str, text: &str) -> Result<String> {
    match text.lines().find_map(|line| line.strip_prefix("# ")) {
        Some(title) => Ok(title.to_owned()),
        None => bail!("{path} has no title"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_listed_once() {
        let pages: Pages =
            ["README.md", "docs/new.md", "docs/rules.md", "docs/rules/a.md", "CHANGELOG.md"]
                .map(|path| (path.to_owned(), format!("# Title of {path}\n")))
                .into();
        let text = text(&pages).unwrap();
        for page in pages.keys() {
            assert_eq!(text.matches(&format!("]({page})")).count(), 1, "{page}\n{text}");
        }
        assert!(text.contains("\n  - [Title of docs/rules/a.md]"), "{text}");
    }
}
