//! Threads that were narrowed to some CPUs.

use super::kind::Kind;
use crate::affinity;
use crate::tree::Tree;
use std::io;
use untax_core::cpus::Cpus;
use untax_core::plan::Family;

/// The threads of a family that are narrowed to these CPUs: the value is how many there are.
pub struct Affinity<'a> {
    /// Whose threads.
    pub family: &'a Family,
    /// The CPUs.
    pub cpus: &'a Cpus,
}

impl Kind for Affinity<'_> {
    fn file(&self) -> Option<String> {
        Some(format!("CPUs {} of /proc/{}/task", self.cpus, self.family.root))
    }

    fn read(&self, tree: &Tree) -> io::Result<Option<String>> {
        // A directory in place of `/` has no threads.
        let narrowed = if tree.is_live() { affinity::narrowed(self.family, self.cpus)? } else { 0 };
        Ok(Some(narrowed.to_string()))
    }

    fn write(&self, tree: &Tree, value: Option<&str>) -> io::Result<()> {
        match value {
            Some("0") if tree.is_live() => affinity::widen(self.family, self.cpus),
            Some("0") => Ok(()),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}
