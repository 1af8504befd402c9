//! Programs that the dynamic loader runs: `ld.so --library-path DIR /srv/bin/postgres -D data`. The kernel
//! names the loader as their program.

use crate::process_table::base;
use crate::settings::has_extension;

/// Options of the loaders of glibc and musl that a word follows.
const OPTIONS_WITH_VALUE: [&str; 7] = [
    "--library-path",
    "--inhibit-rpath",
    "--audit",
    "--preload",
    "--argv0",
    "--glibc-hwcaps-prepend",
    "--glibc-hwcaps-mask",
];

/// Whether a path is that of a dynamic loader.
pub(crate) fn is_loader(path: &str) -> bool {
    let name = base(path);
    name.starts_with("ld-linux")
        || name.starts_with("ld-musl")
        || name == "ld.so"
        || name.strip_prefix("ld-2.").is_some_and(|rest| has_extension(rest, "so"))
}

/// The command line of the program among the words of a loader's, without the loader's own.
pub(crate) fn program_words<T: AsRef<str>>(words: &[T]) -> &[T] {
    let mut at = 1;
    while let Some(option) = words.get(at).map(AsRef::as_ref).filter(|w| w.starts_with("--")) {
        at += if OPTIONS_WITH_VALUE.contains(&option) { 2 } else { 1 };
    }
    words.get(at..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaders_are_known_by_their_names() {
        for path in [
            "/lib64/ld-linux-x86-64.so.2",
            "/lib/ld-linux-aarch64.so.1",
            "/lib/ld-musl-x86_64.so.1",
            "/usr/bin/ld.so",
            "/lib/ld-2.31.so",
        ] {
            assert!(is_loader(path), "{path}");
        }
        for path in ["/usr/bin/ld", "/usr/bin/ld.bfd", "/srv/ld-2.31", "/usr/bin/ldd"] {
            assert!(!is_loader(path), "{path}");
        }
    }

    #[test]
    fn the_words_of_the_program_follow_the_loaders_own() {
        let program = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            program_words(&words).join(" ")
        };
        assert_eq!(program("ld.so --library-path /x:/y --inhibit-cache /p -D d"), "/p -D d");
        assert_eq!(program("ld.so --library-path=/x /p --port 1"), "/p --port 1");
        assert_eq!(program("ld.so /p"), "/p");
        for alone in ["ld.so", "ld.so --list", "ld.so --argv0"] {
            assert_eq!(program(alone), "", "{alone}");
        }
    }
}
