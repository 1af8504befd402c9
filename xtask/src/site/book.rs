//! The pages of the site: the documents as they are, and a page for each rule.

// Names of documents are written in lower case.
#![allow(clippy::case_sensitive_file_extension_comparisons)]

use super::pictures::{self, Findings};
use crate::docs;
use crate::tidy::Tree;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Text of each page by its path.
pub type Pages = BTreeMap<String, String>;

/// What mdBook is told. Nothing is fetched when a page opens.
pub const CONFIGURATION: &str = r#"[book]
title = "untax"
description = "What does the platform take from my database, what do I change, and did it work?"
language = "en"
src = "src"

[output.html]
additional-css = ["untax.css"]
default-theme = "light"
preferred-dark-theme = "navy"

[output.html.search]
limit-results = 20
use-boolean-and = true
"#;

/// How findings look.
pub const STYLE: &str = r"
figure.finding { border: 1px solid var(--table-border-color); border-radius: 6px; margin: 1.5em 0; padding: 1em 1.2em; }
figure.finding .head { display: flex; gap: 1em; align-items: baseline; flex-wrap: wrap; }
figure.finding .severity { font-weight: bold; text-transform: uppercase; font-size: 0.8em; }
figure.finding .severity.high { color: #c0392b; }
figure.finding .severity.medium { color: #b9770e; }
figure.finding .tax { margin-left: auto; white-space: nowrap; }
figure.finding svg { display: block; margin: 0.6em 0; }
figure.finding svg .track { fill: var(--table-alternate-bg); }
figure.finding svg .fill { fill: #7f8c8d; }
figure.finding svg .fill.high { fill: #c0392b; }
figure.finding svg .fill.medium { fill: #d68910; }
figure.finding svg .whisker { stroke: var(--fg); stroke-width: 1.5; }
figure.finding table { margin: 0.8em 0; }
figure.finding figcaption { font-size: 0.85em; opacity: 0.8; margin-top: 0.8em; }
.content main { max-width: 60em; }
";

/// Folders of documents, and documents beside them.
fn is_page(path: &str) -> bool {
    let is_document = path.starts_with("docs/") && path.ends_with(".md") && path != "docs/rules.md";
    is_document
        || ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SPECIFICATION.md"]
            .contains(&path)
}

/// All pages.
pub fn pages(tree: &Tree, findings: &Findings) -> Result<Pages> {
    let mut pages = Pages::new();
    for (path, text) in tree.iter().filter(|(path, _)| is_page(path)) {
        pages.insert(path.clone(), text.clone());
    }
    let mut list = "# Rules\n\nWhat `untax check` looks for.\n\n".to_owned();
    for rule in untax_rules::RULES {
        let picture = pictures::picture(rule.id, findings)?;
        let page = docs::rule(rule).replacen("## `", "# `", 1);
        let (head, rest) = page.trim_start().split_once("\n\n").context("a rule without a text")?;
        pages
            .insert(format!("docs/rules/{}.md", rule.id), format!("{head}\n\n{picture}\n\n{rest}"));
        list += &format!("- [{0}](rules/{0}.md): {1}\n", rule.id, docs::escape(rule.summary));
    }
    pages.insert("docs/rules.md".to_owned(), list);
    let known: Vec<String> = pages.keys().cloned().collect();
    for (path, text) in &mut pages {
        *text = only_links_to(path, text, &known);
    }
    Ok(pages)
}

/// A page whose links to what is no page, such as source files, are plain text that names the file.
fn only_links_to(page: &str, text: &str, pages: &[String]) -> String {
    let mut parts = text.split("](");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let Some((target, rest)) = part.split_once(')') else {
            result = result + "](" + part;
            continue;
        };
        let file = target.split('#').next().unwrap_or_default();
        let path = docs_path(page, file);
        let is_elsewhere = file.is_empty() || target.contains(':');
        if is_elsewhere || pages.contains(&path) || is_beside(&path) {
            // mdBook makes index.html of README.md.
            result = result + "](" + &target.replace("README.md", "index.md") + ")" + rest;
        } else if let Some((before, name)) = result.rsplit_once('[') {
            result = format!("{before}{name} (`{path}`){rest}");
        }
    }
    result
}

/// Whether a file is copied beside the pages.
fn is_beside(path: &str) -> bool {
    path.starts_with("docs/") && [".svg", ".html", ".json"].iter().any(|end| path.ends_with(end))
}

/// The path of what a page links to.
fn docs_path(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Copies what pages show besides text: recordings, schemas, results.
pub fn copy_rest(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_rest(&path, &place)?;
        } else if path.extension().is_none_or(|extension| extension != "md") {
            fs::create_dir_all(to)?;
            fs::copy(&path, &place).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_outside_of_code_are_text() {
        assert_eq!(docs::escape("a <size> `<b>`"), "a &lt;size&gt; `<b>`");
    }

    #[test]
    fn links_to_source_files_become_text_and_others_stay() {
        let pages = ["docs/a.md".to_owned(), "README.md".to_owned()];
        let text = "[a](a.md#x), [top](../README.md), [code](../crates/x.rs) and [web](https://x.y) [n](#b)";
        assert_eq!(
            only_links_to("docs/b.md", text, &pages),
            "[a](a.md#x), [top](../index.md), code (`crates/x.rs`) and [web](https://x.y) [n](#b)"
        );
    }
}
