//! What `untax --version` says: which program this is, to tell it in a report of a fault.

use std::sync::LazyLock;

/// The BPF programs that are part of this one.
const BPF_PROGRAMS: [&str; 4] = ["disks", "paths", "soft", "threads"];

/// The commit that it was built from; scripts/dist.sh says which.
const COMMIT: Option<&str> = option_env!("UNTAX_COMMIT");

static LONG: LazyLock<String> = LazyLock::new(|| {
    let linked = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
    format!(
        "{}\ncommit {}\n{}, {linked}\nBPF programs built in: {}; untax doctor says whether this \
         kernel lets them run",
        env!("CARGO_PKG_VERSION"),
        COMMIT.unwrap_or("unknown: not built by make dist"),
        std::env::consts::ARCH,
        BPF_PROGRAMS.join(", "),
    )
});

/// The version, the commit, how it was linked, and the BPF programs.
pub fn long() -> &'static str {
    &LONG
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn it_names_the_version_the_commit_and_every_bpf_program() {
        let text = long();
        assert!(text.starts_with(concat!(env!("CARGO_PKG_VERSION"), "\ncommit ")), "{text}");
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut sources = Vec::new();
        for folder in crates.read_dir().unwrap() {
            let Ok(files) = folder.unwrap().path().join("src/bpf").read_dir() else { continue };
            let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            sources.extend(names.filter_map(|name| Some(name.strip_suffix(".bpf.c")?.to_owned())));
        }
        sources.sort();
        assert_eq!(sources, BPF_PROGRAMS);
    }
}
