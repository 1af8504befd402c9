//! What mount tables of the kernel have in common (proc(5)).

/// Undoes the kernel's escapes: a space is `\040`.
pub fn unescape(text: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(text.to_owned(), |text, (code, letter)| text.replace(code, letter))
}
