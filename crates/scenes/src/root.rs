//! The root of a server that is unpacked beside this machine's own programs.
//!
//! The server runs in a mount namespace of its own, in which directories of this machine are mounted
//! into that root. They are gone with the last process of the namespace, so nothing has to be undone.

use crate::SceneError;
use crate::account::is_root;
use crate::program::words;
use crate::release::Release;
use std::path::{Path, PathBuf};

/// What a server needs of this machine. It looks up the user that it runs as, and the machine's name.
const MACHINE_PATHS: [&str; 7] =
    ["/proc", "/sys", "/dev", "/tmp", "/etc/passwd", "/etc/group", "/etc/hosts"];

/// Mounts the paths `$2…`, up to `--`, into the root `$1`, and runs what follows there.
const ENTER: &str = r#"
root=$1
shift
while [ "$1" != -- ]; do
    if [ -d "$1" ]; then mkdir -p "$root$1"; else touch "$root$1"; fi || exit 126
    mount --rbind "$1" "$root$1" || exit 126
    shift
done
shift
exec chroot "$root" "$@"
"#;

/// A directory with the programs and libraries of a server.
pub(crate) struct Root(PathBuf);

impl Root {
    /// That of a server which is unpacked; `None` for an installed one.
    pub(crate) fn of(release: &Release) -> Result<Option<Self>, SceneError> {
        if !release.is_unpacked {
            return Ok(None);
        }
        if !is_root() {
            return Err(SceneError::NeedsRoot { what: "a server in a root of its own" });
        }
        let cache = cache()?;
        let root = cache.join("engines").join(release.id);
        if root.is_dir() {
            return Ok(Some(Self(root)));
        }
        let (server, cache) = (release.id, cache.display().to_string());
        Err(SceneError::NotUnpacked { server, cache })
    }

    /// The words that go before a command so that it runs in this root, with these directories of the
    /// machine besides the usual ones.
    pub(crate) fn enter_command(&self, directories: &[&Path]) -> Vec<String> {
        let mut line = words(["unshare", "--mount", "/bin/sh", "-c", ENTER, "untax-lab"]);
        line.push(self.0.to_string_lossy().into_owned());
        line.extend(MACHINE_PATHS.map(str::to_owned));
        let mounted = |directory: &&&Path| !directory.starts_with("/tmp");
        let others = directories.iter().filter(mounted);
        line.extend(others.map(|directory| directory.to_string_lossy().into_owned()));
        line.push("--".to_owned());
        line
    }

    /// A path in it, as this machine sees it.
    pub(crate) fn join(&self, inside: &str) -> PathBuf {
        self.0.join(inside.trim_start_matches('/'))
    }
}

/// Where fetched things are kept: `UNTAX_CACHE`, or `untax` in the user's cache.
pub(crate) fn cache() -> Result<PathBuf, SceneError> {
    if let Some(cache) = std::env::var_os("UNTAX_CACHE") {
        return Ok(PathBuf::from(cache));
    }
    let why = "no home directory: set UNTAX_CACHE".to_owned();
    let home = std::env::home_dir().ok_or(SceneError::Host { why })?;
    Ok(home.join(".cache/untax"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_enters_the_root_with_the_directories_that_it_needs() {
        let root = Root(PathBuf::from("/srv/roots/a"));
        let near = Path::new("/tmp/untax-lab.x");
        let line = root.enter_command(&[near, Path::new("/mnt/disk")]);
        let mounted: Vec<&str> = line.iter().skip(7).map(String::as_str).collect();
        let expected = [&MACHINE_PATHS[..], &["/mnt/disk", "--"]].concat();
        assert_eq!((line[6].as_str(), mounted), ("/srv/roots/a", expected));
        assert_eq!(root.join("/usr/bin"), Path::new("/srv/roots/a/usr/bin"));
    }
}
