//! The words that decide whether shared memory gets transparent huge pages.

use super::options::Page;
use std::io;
use untax_changes::{Tree, target};
use untax_core::page_size;
use untax_core::plan::Target;

/// The mode in which shared memory gets transparent huge pages where a program asks for them.
const ADVISE: &str = "advise";
const SHMEM: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

/// What must change for shared memory to get transparent huge pages on request; empty when it does
/// already; `None` when this kernel cannot.
pub fn changes(tree: &Tree) -> Option<Vec<Target>> {
    let is_off = |file: &str| tree.word(file).map(|word| matches!(word.as_str(), "never" | "deny"));
    let mut files = Vec::new();
    if is_off(SHMEM).ok()? {
        files.push(SHMEM.to_owned());
    }
    // Kernels before 6.8 have no setting per size.
    let size = page_size::directory(Page::Transparent.bytes());
    let of_size = format!("/sys/kernel/mm/transparent_hugepage/{size}/shmem_enabled");
    if is_off(&of_size).unwrap_or(false) {
        files.push(of_size);
    }
    Some(files.into_iter().map(|file| Target::Word { file }).collect())
}

/// Turns transparent huge pages for shared memory on where programs ask for them.
pub fn allow(tree: &Tree, changes: &[Target]) -> io::Result<()> {
    changes.iter().try_for_each(|word| target::write(tree, word, Some(ADVISE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transparent_pages_that_are_allowed_need_no_change() {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree::at(root.path());
        assert_eq!(changes(&tree), None);
        tree.replace(SHMEM, "always advise [never] deny force\n").unwrap();
        let change = changes(&tree).unwrap();
        assert_eq!(change, [Target::Word { file: SHMEM.to_owned() }]);
        allow(&tree, &change).unwrap();
        assert_eq!(tree.word(SHMEM).unwrap(), ADVISE);
        assert_eq!(changes(&tree), Some(Vec::new()));
    }
}
