//! The licences of what is in the program besides its own code.

use super::build::Build;
use super::dependencies::{self, Dependency};
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;

/// C libraries in the program, which cargo knows nothing of: name, licence, and why it is there.
pub const C_LIBRARIES: [(&str, &str, &str); 4] = [
    ("glibc", "LGPL-2.1-or-later", "the C library, Debian's"),
    ("libbpf", "LGPL-2.1-only OR BSD-2-Clause", "loads BPF programs; its source is in libbpf-sys"),
    ("libelf", "LGPL-3.0-or-later OR GPL-2.0-or-later", "of elfutils, Debian's"),
    ("zlib", "Zlib", "Debian's"),
];

/// Names and licences of all that is in the program, and the texts that their authors ship.
pub fn text(build: &Build) -> Result<String> {
    let triple = format!("{}-unknown-linux-gnu", build.architecture.name);
    let metadata = dependencies::metadata(&build.root, &triple)?;
    let linked = dependencies::linked(&metadata);
    let mut text = String::from(
        "The untax program holds code of others, under these licences. Its own source, with which it \
         can be linked anew, is where you got it from.\n\n",
    );
    for (name, licence, what) in C_LIBRARIES {
        let _ = writeln!(text, "{name}: {licence} ({what})");
    }
    for one in &linked {
        let licence = one.license.as_deref().unwrap_or("no licence stated");
        let _ = writeln!(text, "{} {}: {licence}", one.name, one.version);
    }
    for one in &linked {
        for (name, licence) in texts(one)? {
            let _ =
                write!(text, "\n==== {} {}: {name}\n\n{}\n", one.name, one.version, licence.trim());
        }
    }
    Ok(text)
}

/// The licence files of a crate, by name.
fn texts(one: &Dependency) -> Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    let files = fs::read_dir(&one.folder).with_context(|| one.folder.display().to_string())?;
    for file in files {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        let begins = |word: &str| name.to_uppercase().starts_with(word);
        if ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"]
            .into_iter()
            .any(begins)
            && file.file_type()?.is_file()
        {
            texts.push((name, fs::read_to_string(file.path())?));
        }
    }
    texts.sort();
    Ok(texts)
}
