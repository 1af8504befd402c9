//! Threads that were given the scheduling class of a `sched_ext` program.

use super::kind::Kind;
use crate::class;
use crate::tree::Tree;
use std::io;
use untax_core::plan::Family;

/// The threads of a family in that class: the value is how many there are.
pub struct Class<'a>(pub &'a Family);

impl Kind for Class<'_> {
    fn file(&self) -> Option<String> {
        Some(format!("the scheduling class of /proc/{}/task", self.0.root))
    }

    fn read(&self, tree: &Tree) -> io::Result<Option<String>> {
        // A directory in place of `/` has no threads.
        let count = if tree.is_live() { class::count(self.0)? } else { 0 };
        Ok(Some(count.to_string()))
    }

    fn write(&self, tree: &Tree, value: Option<&str>) -> io::Result<()> {
        match value {
            Some("0") if tree.is_live() => class::leave(self.0),
            Some("0") => Ok(()),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}
