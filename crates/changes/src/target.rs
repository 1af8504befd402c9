//! Reading and setting what a step changes.

use crate::tree::Tree;
use std::io;
use std::time::{Duration, Instant};
use untax_core::plan::Target;

/// The marks around lines that a step added to a file that others write. The line feed before the
/// first one is part of the block, so that removing it leaves every byte as it was.
const BEGIN: &str = "\n# untax: begin; removed by untax undo\n";
const END: &str = "# untax: end\n";

/// How long the kernel is asked again for huge pages: it moves and compacts meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it is asked again without a single page more.
const PATIENCE_IN_VAIN: Duration = Duration::from_secs(10);
/// Between two askings.
const PAUSE: Duration = Duration::from_millis(500);

/// The file that is read to know a target's value, for messages and checks of permissions.
pub fn file(target: &Target) -> Option<String> {
    match target {
        Target::Pool { directory } => Some(format!("{directory}/nr_hugepages")),
        Target::Word { file }
        | Target::Value { file }
        | Target::File { file }
        | Target::Block { file } => Some(file.clone()),
        Target::Dirty { what } => Some(format!("{what}_bytes")),
        Target::Grubby => None,
    }
}

/// Its value now; `None` when it is not there.
pub fn read(tree: &Tree, target: &Target) -> io::Result<Option<String>> {
    let value = match target {
        Target::Pool { directory } => configured(tree, directory).map(|pages| pages.to_string()),
        Target::Word { file } => tree.word(file),
        Target::Value { file } => tree.text(file),
        Target::Dirty { what } => dirty(tree, what),
        Target::File { file } => return tree.whole(file),
        Target::Block { file } => {
            let whole = tree.whole(file)?;
            return Ok(whole.as_deref().and_then(block).map(|(_, inner, _)| inner.to_owned()));
        }
        Target::Grubby => return crate::grubby::read(tree),
    };
    match value {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sets it; `None` removes it. Setting the value that it has is harmless.
pub fn write(tree: &Tree, target: &Target, value: Option<&str>) -> io::Result<()> {
    match (target, value) {
        (Target::Pool { directory }, Some(value)) => {
            let pages = value.parse().map_err(|_| io::ErrorKind::InvalidData)?;
            set_pool(tree, directory, pages)
        }
        (Target::Word { file } | Target::Value { file }, Some(value)) => tree.write(file, value),
        (Target::Dirty { what }, Some(value)) => match value.strip_suffix('%') {
            // Setting the one clears the other.
            Some(percent) => tree.write(&format!("{what}_ratio"), percent),
            None => tree.write(&format!("{what}_bytes"), value),
        },
        (Target::File { file }, Some(value)) => tree.replace(file, value),
        (Target::File { file }, None) => tree.remove(file),
        (Target::Block { file }, value) => {
            let whole = tree.whole(file)?.ok_or(io::ErrorKind::NotFound)?;
            tree.replace(file, &with_block(&whole, value))
        }
        (Target::Grubby, value) => crate::grubby::write(tree, value),
        // The kernel's files cannot be removed.
        (
            Target::Pool { .. } | Target::Word { .. } | Target::Value { .. } | Target::Dirty { .. },
            None,
        ) => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Lines that a step added to a file.
#[derive(Clone, Copy)]
pub struct Added<'a> {
    /// The lines, each with its end.
    pub lines: &'a str,
    /// How many such lines the file held before.
    pub alike: usize,
}

/// How many lines of a file are like those that a step adds to it.
pub fn alike(tree: &Tree, target: &Target, lines: Option<&str>) -> io::Result<usize> {
    let Target::Block { file } = target else { return Ok(0) };
    let text = tree.whole(file)?.unwrap_or_default();
    let lines = lines.unwrap_or_default();
    Ok(text.lines().filter(|line| is_one_of(line, lines)).count())
}

fn is_one_of(line: &str, lines: &str) -> bool {
    !line.trim().is_empty() && lines.lines().any(|own| own.trim() == line.trim())
}

/// What a file still has of lines that a step added to it, where somebody removed or changed the
/// marks around them: those of the lines that are there, and what is left of the marks. `None` where
/// that is nothing, where the marks are whole, and of every other kind of target.
pub fn loose(tree: &Tree, target: &Target, added: Added) -> io::Result<Option<String>> {
    let Target::Block { file } = target else { return Ok(None) };
    let text = tree.whole(file)?.unwrap_or_default();
    let (loose, _) = parted(&text, added);
    Ok(Some(loose.trim_end().to_owned()).filter(|loose| !loose.is_empty()))
}

/// Removes that, so that the block is as if it had never been.
pub fn remove_loose(tree: &Tree, target: &Target, added: Added) -> io::Result<()> {
    let Target::Block { file } = target else { return Ok(()) };
    let text = tree.whole(file)?.ok_or(io::ErrorKind::NotFound)?;
    let (_, rest) = parted(&text, added);
    tree.replace(file, &rest)
}

/// Pages of a pool that were configured: `nr_hugepages` counts surplus ones, too.
pub fn configured(tree: &Tree, directory: &str) -> io::Result<u64> {
    let total = tree.number(&format!("{directory}/nr_hugepages"))?;
    let surplus = tree.number(&format!("{directory}/surplus_hugepages"))?;
    Ok(total.saturating_sub(surplus))
}

/// Asks the kernel until it has found so many pages, or finds no more.
fn set_pool(tree: &Tree, directory: &str, pages: u64) -> io::Result<()> {
    let began = Instant::now();
    let (mut grew, mut most) = (began, 0);
    loop {
        tree.write(&format!("{directory}/nr_hugepages"), &pages.to_string())?;
        let now = configured(tree, directory)?;
        if now == pages {
            return Ok(());
        }
        if now > most {
            (grew, most) = (Instant::now(), now);
        }
        if began.elapsed() > PATIENCE || grew.elapsed() > PATIENCE_IN_VAIN {
            return Err(io::Error::other(format!(
                "asked for {pages} huge pages, got {now}: memory is too fragmented or in use; \
                 reserve them at boot, or free memory and try again"
            )));
        }
        // Without this file (kernels without compaction) asking again must do.
        let _ = tree.write("/proc/sys/vm/compact_memory", "1");
        std::thread::sleep(PAUSE);
    }
}

fn dirty(tree: &Tree, what: &str) -> io::Result<String> {
    match tree.number(&format!("{what}_bytes"))? {
        0 => Ok(format!("{}%", tree.number(&format!("{what}_ratio"))?)),
        bytes => Ok(bytes.to_string()),
    }
}

/// What is before the block of a text, the lines in it, and what is after it.
fn block(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (inner, after) = rest.split_once(END)?;
    Some((before, inner, after))
}

fn with_block(text: &str, lines: Option<&str>) -> String {
    let (before, after) = block(text).map_or((text, ""), |(before, _, after)| (before, after));
    match lines {
        Some(lines) => format!("{before}{BEGIN}{lines}{END}{after}"),
        None => format!("{before}{after}"),
    }
}

/// What is loose in a text of the lines of a block and of its marks, and the rest of the text: as many
/// of such lines as were there before stay, those that come first.
fn parted(text: &str, added: Added) -> (String, String) {
    if block(text).is_some() {
        return (String::new(), text.to_owned());
    }
    let mut stay = added.alike;
    let is_loose = |line: &&str| {
        let is_mark = [BEGIN, END].map(str::trim).contains(&line.trim());
        let is_alike = is_one_of(line, added.lines);
        let stays = is_alike && stay > 0;
        stay -= usize::from(stays);
        is_mark || (is_alike && !stays)
    };
    text.split_inclusive('\n').partition(is_loose)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_leaves_every_byte_as_it_was() {
        for text in ["", "a = 1", "a = 1\n", "a = 1\n\n\n"] {
            let with = with_block(text, Some("b = 2\n"));
            assert_eq!(block(&with).map(|(_, inner, _)| inner), Some("b = 2\n"));
            assert_eq!(with_block(&with, None), text);
            let more = with.clone() + "c = 3\n";
            assert_eq!(with_block(&more, None), format!("{text}c = 3\n"));
            assert_eq!(with_block(&with, Some("d = 4\n")), with_block(text, Some("d = 4\n")));
        }
    }

    #[test]
    fn dirty_limits_are_bytes_or_percent() {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree::at(root.path());
        for (file, text) in [("bytes", "0\n"), ("ratio", "10\n")] {
            tree.replace(&format!("/vm/dirty_{file}"), text).unwrap();
        }
        let target = Target::Dirty { what: "/vm/dirty".to_owned() };
        assert_eq!(read(&tree, &target).unwrap().as_deref(), Some("10%"));
        write(&tree, &target, Some("4096")).unwrap();
        assert_eq!(read(&tree, &target).unwrap().as_deref(), Some("4096"));
        write(&tree, &target, Some("20%")).unwrap();
        assert_eq!(tree.text("/vm/dirty_ratio").unwrap(), "20");
    }
}
