//! Files of the kernel that hold one value.

use super::kind::{Kind, require};
use crate::tree::Tree;
use std::io;

/// A file that lists words and marks the valid one with brackets.
pub struct Word<'a>(pub &'a str);

impl Kind for Word<'_> {
    fn file(&self) -> Option<String> {
        Some(self.0.to_owned())
    }

    fn read(&self, tree: &Tree) -> io::Result<Option<String>> {
        tree.word(self.0).map(Some)
    }

    fn write(&self, tree: &Tree, value: Option<&str>) -> io::Result<()> {
        tree.write(self.0, require(value)?)
    }
}

/// A sysctl, or a limit of a control group.
pub struct Value<'a>(pub &'a str);

impl Kind for Value<'_> {
    fn file(&self) -> Option<String> {
        Some(self.0.to_owned())
    }

    fn read(&self, tree: &Tree) -> io::Result<Option<String>> {
        tree.text(self.0).map(Some)
    }

    fn write(&self, tree: &Tree, value: Option<&str>) -> io::Result<()> {
        tree.write(self.0, require(value)?)
    }
}
