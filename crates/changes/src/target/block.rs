//! Lines between marks at the end of a file that others write.

use super::kind::Kind;
use crate::tree::Tree;
use std::io;
use untax_core::plan::Target;

/// The marks around lines that a step added. The line feed before the first mark is part of the
/// block, so that removing the block leaves every byte as it was.
const BEGIN: &str = "\n# untax: begin; removed by untax undo\n";
const END: &str = "# untax: end\n";

/// The path of the file.
pub struct Block<'a>(pub &'a str);

impl Kind for Block<'_> {
    fn file(&self) -> Option<String> {
        Some(self.0.to_owned())
    }

    fn read(&self, tree: &Tree) -> io::Result<Option<String>> {
        let whole = tree.whole(self.0)?;
        Ok(whole.as_deref().and_then(block).map(|(_, inner, _)| inner.to_owned()))
    }

    fn write(&self, tree: &Tree, value: Option<&str>) -> io::Result<()> {
        let whole = tree.whole(self.0)?.ok_or(io::ErrorKind::NotFound)?;
        tree.replace(self.0, &with_block(&whole, value))
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

/// Lines of a step that remain in a file after somebody changed or removed the marks around them, and what remains
/// of the marks. `None` where that is nothing, where the marks are whole, and of every other kind of target.
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
}
