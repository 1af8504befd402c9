//! A whole file of the administrator's, made by one step alone.

use super::kind::Kind;
use crate::tree::Tree;
use std::io;

/// Its path.
pub struct File<'a>(pub &'a str);

impl Kind for File<'_> {
    fn file(&self) -> Option<String> {
        Some(self.0.to_owned())
    }

    fn read(&self, tree: &Tree) -> io::Result<Option<String>> {
        tree.whole(self.0)
    }

    fn write(&self, tree: &Tree, value: Option<&str>) -> io::Result<()> {
        match value {
            Some(text) => tree.replace(self.0, text),
            None => tree.remove(self.0),
        }
    }
}
