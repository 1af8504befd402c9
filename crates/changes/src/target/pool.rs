//! The number of huge pages configured in a pool.

use super::kind::{Kind, require};
use crate::pool;
use crate::tree::Tree;
use std::io;

/// The directory that holds `nr_hugepages`.
pub struct Pool<'a>(pub &'a str);

impl Kind for Pool<'_> {
    fn file(&self) -> Option<String> {
        Some(format!("{}/nr_hugepages", self.0))
    }

    fn read(&self, tree: &Tree) -> io::Result<Option<String>> {
        pool::configured(tree, self.0).map(|pages| Some(pages.to_string()))
    }

    fn write(&self, tree: &Tree, value: Option<&str>) -> io::Result<()> {
        let pages = require(value)?.parse().map_err(|_| io::ErrorKind::InvalidData)?;
        pool::resize(tree, self.0, pages)
    }

    /// The kernel finds pages one by one: it was growing or shrinking.
    fn is_between(&self, from: Option<&str>, now: Option<&str>, to: Option<&str>) -> bool {
        let pages = |value: Option<&str>| value.and_then(|pages| pages.parse::<u64>().ok());
        match (pages(from), pages(now), pages(to)) {
            (Some(from), Some(now), Some(to)) => (from.min(to)..=from.max(to)).contains(&now),
            _ => false,
        }
    }
}
