//! Links of made pages: each must lead to a file of the site, and to a place in it.

use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The links below a folder that lead nowhere, with the page they are on.
pub fn broken(site: &Path) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    read(site, site, &mut pages)?;
    let names: BTreeMap<&Path, BTreeSet<&str>> =
        pages.iter().map(|(path, text)| (path.as_path(), values(text, "id").collect())).collect();
    let mut broken = Vec::new();
    for (page, text) in pages.iter().filter(|(page, _)| is_checked(page)) {
        for link in values(text, "href").chain(values(text, "src")) {
            if let Some(why) = wrong(site, page, link, &names) {
                broken.push(format!("{}: {link}: {why}", page.display()));
            }
        }
    }
    broken.sort();
    broken.dedup();
    Ok(broken)
}

/// The page for servers is made for their root, and the one to print joins all others.
fn is_checked(page: &Path) -> bool {
    !["404.html", "print.html", "toc.html"].iter().any(|name| page == Path::new(name))
}

fn wrong(
    site: &Path,
    page: &Path,
    link: &str,
    names: &BTreeMap<&Path, BTreeSet<&str>>,
) -> Option<&'static str> {
    if link.starts_with("http://") || link.starts_with("data:") || link.starts_with("mailto:") {
        return None;
    }
    if link.starts_with("https://") {
        return None;
    }
    let (file, place) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() { page.to_owned() } else { resolve(page, file) };
    let is_there = site.join(&target).is_file();
    let place_is_there = || names.get(target.as_path()).is_none_or(|names| names.contains(place));
    match (is_there, place.is_empty()) {
        (false, _) => Some("no such file"),
        (true, false) if !place_is_there() => Some("no such place in it"),
        (true, _) => None,
    }
}

/// The path, within the site, of what a page links to.
fn resolve(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(link.trim_start_matches('/')).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

/// The values of an attribute.
fn values<'a>(text: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let begin = format!(" {attribute}=\"");
    text.match_indices(&begin)
        .filter_map(|(at, begin)| text[at + begin.len()..].split('"').next())
        .collect::<Vec<_>>()
        .into_iter()
}

fn read(site: &Path, folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read(site, &path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            pages.insert(path.strip_prefix(site)?.to_owned(), fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_and_places_that_are_not_there_are_found() {
        let site = tempfile::tempdir().unwrap();
        fs::create_dir(site.path().join("a")).unwrap();
        let page = r##"<h1 id="one"></h1><a href="../b.html#two">x</a> <a href="../b.html#no">x</a>
            <a href="#one">x</a> <a href="none.html">x</a> <img src="../c.svg"> <a href="https://x.y">x</a>"##;
        fs::write(site.path().join("a/a.html"), page).unwrap();
        fs::write(site.path().join("b.html"), r#"<p id="two"></p>"#).unwrap();
        assert_eq!(
            broken(site.path()).unwrap(),
            [
                "a/a.html: ../b.html#no: no such place in it",
                "a/a.html: ../c.svg: no such file",
                "a/a.html: none.html: no such file",
            ]
        );
    }
}
