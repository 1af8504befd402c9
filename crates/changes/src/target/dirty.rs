//! A limit on dirty pages, in bytes or percent of memory.

use super::kind::{Kind, require};
use crate::tree::Tree;
use std::io;

/// What the names of both files of the limit begin with.
pub struct Dirty<'a>(pub &'a str);

impl Kind for Dirty<'_> {
    fn file(&self) -> Option<String> {
        Some(format!("{}_bytes", self.0))
    }

    fn read(&self, tree: &Tree) -> io::Result<Option<String>> {
        match tree.number(&format!("{}_bytes", self.0))? {
            0 => Ok(Some(format!("{}%", tree.number(&format!("{}_ratio", self.0))?))),
            bytes => Ok(Some(bytes.to_string())),
        }
    }

    fn write(&self, tree: &Tree, value: Option<&str>) -> io::Result<()> {
        let value = require(value)?;
        // Setting the one clears the other.
        match value.strip_suffix('%') {
            Some(percent) => tree.write(&format!("{}_ratio", self.0), percent),
            None => tree.write(&format!("{}_bytes", self.0), value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dirty_limits_are_bytes_or_percent() {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree::at(root.path());
        for (file, text) in [("bytes", "0\n"), ("ratio", "10\n")] {
            tree.replace(&format!("/vm/dirty_{file}"), text).unwrap();
        }
        let limit = Dirty("/vm/dirty");
        assert_eq!(limit.read(&tree).unwrap().as_deref(), Some("10%"));
        limit.write(&tree, Some("4096")).unwrap();
        assert_eq!(limit.read(&tree).unwrap().as_deref(), Some("4096"));
        limit.write(&tree, Some("20%")).unwrap();
        assert_eq!(tree.text("/vm/dirty_ratio").unwrap(), "20");
    }
}
