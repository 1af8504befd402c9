//! Boot arguments where `grubby` keeps them: in an entry for each kernel.
//!
//! On RHEL 8 and newer, grub reads entries below /boot/loader/entries; from 9.3 on
//! `grub2-mkconfig` alone no longer changes them. `grubby` does on all of these, and for
//! `--update-kernel=ALL` it also keeps what entries of later kernels are made from.

use super::kind::Kind;
use crate::tree::Tree;
use std::io;
use untax_core::boot::{HUGE_PAGE_NAMES, huge_page_words};

/// Between the arguments of entries that differ: no word of a command line.
const UNLIKE: &str = "; other entries: ";

/// The arguments about huge pages of every entry.
pub struct Grubby;

impl Kind for Grubby {
    fn file(&self) -> Option<String> {
        None
    }

    /// `None` when no entry has any. Entries that do not agree give each kind once, which equals no
    /// value that a step sets.
    fn read(&self, tree: &Tree) -> io::Result<Option<String>> {
        let said = run(tree, &["--info=ALL".to_owned()])?;
        let mut kinds: Vec<String> = said.lines().filter_map(arguments).collect();
        if kinds.is_empty() {
            return Err(io::Error::other("grubby lists no kernel"));
        }
        kinds.sort();
        kinds.dedup();
        Ok(Some(kinds.join(UNLIKE)).filter(|all| !all.is_empty()))
    }

    /// Gives all entries these arguments in place of those about huge pages that they have.
    fn write(&self, tree: &Tree, value: Option<&str>) -> io::Result<()> {
        // By name: `grubby` removes every word of that name before it adds new ones.
        let names = HUGE_PAGE_NAMES.join(" ");
        let mut words = vec!["--update-kernel=ALL".to_owned(), format!("--remove-args={names}")];
        words.extend(value.map(|value| format!("--args={value}")));
        run(tree, &words).map(|_| ())
    }

    /// Part of the entries as before and part as a step makes them: `grubby` was ended while it
    /// went from one to the next.
    fn is_between(&self, from: Option<&str>, now: Option<&str>, to: Option<&str>) -> bool {
        let known = [from.unwrap_or_default(), to.unwrap_or_default()];
        now.unwrap_or_default().split(UNLIKE).all(|kind| known.contains(&kind))
    }
}

/// The arguments about huge pages in a line of `grubby --info` such as `args="ro quiet"`.
fn arguments(line: &str) -> Option<String> {
    let words = line.strip_prefix("args=")?.trim().trim_matches('"');
    Some(huge_page_words(words.split_ascii_whitespace()).join(" "))
}

fn run(tree: &Tree, words: &[String]) -> io::Result<String> {
    if !tree.has_program("grubby") {
        return Err(io::Error::other("grubby is not installed here"));
    }
    let mut command = vec!["grubby".to_owned()];
    command.extend_from_slice(words);
    tree.run(&command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_found_in_the_lines_of_grubby() {
        let line = "args=\"ro crashkernel=1G-4G:192M hugepagesz=1G hugepages=0:1,1:1 quiet\"";
        assert_eq!(arguments(line).as_deref(), Some("hugepagesz=1G hugepages=0:1,1:1"));
        assert_eq!(arguments("args=\"\"").as_deref(), Some(""));
        assert_eq!(arguments("kernel=\"/boot/vmlinuz\""), None);
    }

    #[test]
    fn half_way_is_between_before_and_after() {
        let (prior, to) = (Some("hugepages=1"), Some("hugepages=2"));
        assert!(Grubby.is_between(prior, Some("hugepages=1; other entries: hugepages=2"), to));
        assert!(Grubby.is_between(None, Some("; other entries: hugepages=2"), to));
        assert!(!Grubby.is_between(prior, Some("hugepages=1; other entries: hugepages=3"), to));
        assert!(!Grubby.is_between(prior, None, to));
    }
}
