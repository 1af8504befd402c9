//! The files of a host that are changed, below a root that tests can move.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::process::Command;
use untax_host::Host;

/// Files that a step makes are for everyone to read, as all in `/etc` that holds no secret.
const MODE: u32 = 0o644;

/// `/`, or a directory that looks like it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree(PathBuf);

impl Tree {
    /// The running machine.
    pub fn live() -> Self {
        Self(PathBuf::from("/"))
    }

    /// A directory in place of `/`.
    pub fn at(root: &Path) -> Self {
        Self(root.to_owned())
    }

    /// Whether it is the running machine.
    pub fn is_live(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.0
    }

    /// Where a file of the host is.
    pub fn place(&self, file: &str) -> PathBuf {
        self.0.join(file.trim_start_matches('/'))
    }

    /// A file's text as it is; `None` when there is no such file.
    pub fn whole(&self, file: &str) -> io::Result<Option<String>> {
        let mut text = String::new();
        match File::open(self.place(file)) {
            Ok(mut open) => open.read_to_string(&mut text).map(|_| Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A file's text without the white space around it.
    pub fn text(&self, file: &str) -> io::Result<String> {
        let text = self.whole(file)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(text.trim().to_owned())
    }

    /// A file that holds one number.
    pub fn number(&self, file: &str) -> io::Result<u64> {
        self.text(file)?.parse().map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// A file that lists words and marks the valid one with brackets.
    pub fn word(&self, file: &str) -> io::Result<String> {
        let text = self.text(file)?;
        let marked = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        Ok(marked.map_or(text.clone(), |(word, _)| word.to_owned()))
    }

    /// The names in a directory; none when it cannot be listed.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let place = self.place(directory);
        Host::live().names(&place.to_string_lossy()).into_value().unwrap_or_default()
    }

    /// Overwrites a file of the kernel, which takes a value whole or not at all. So does a
    /// directory in place of `/`.
    pub fn write(&self, file: &str, text: &str) -> io::Result<()> {
        if !self.is_live() {
            fs::metadata(self.place(file))?;
            return self.replace(file, text);
        }
        let mut options = File::options();
        options.write(true).open(self.place(file))?.write_all(text.as_bytes())
    }

    /// Replaces a file on a disk: when this returns it is there, whole; a crash leaves the old
    /// one. It keeps its owner and mode.
    pub fn replace(&self, file: &str, text: &str) -> io::Result<()> {
        let place = followed(self.place(file))?;
        let folder = place.parent().ok_or(io::ErrorKind::InvalidInput)?;
        fs::create_dir_all(folder)?;
        let draft = draft_of(&place);
        let write = || -> io::Result<()> {
            // Others may write in its folder: what is there by that name may be a link of theirs.
            ignore_missing(fs::remove_file(&draft))?;
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(&draft)?;
            file.write_all(text.as_bytes())?;
            match fs::metadata(&place) {
                Ok(before) => {
                    fchown(&file, Some(before.uid()), Some(before.gid()))?;
                    file.set_permissions(before.permissions())?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    file.set_permissions(fs::Permissions::from_mode(MODE))?;
                }
                Err(error) => return Err(error),
            }
            file.sync_all()?;
            fs::rename(&draft, &place)?;
            File::open(folder)?.sync_all()
        };
        write().inspect_err(|_| {
            let _ = fs::remove_file(&draft);
        })
    }

    /// Removes what a killed process left of [`Tree::replace`].
    pub fn clear_draft(&self, file: &str) -> io::Result<()> {
        let place = self.place(file);
        let place = fs::canonicalize(&place).unwrap_or(place);
        ignore_missing(fs::remove_file(draft_of(&place)))
    }

    /// Removes a file; one that is not there is as good.
    pub fn remove(&self, file: &str) -> io::Result<()> {
        ignore_missing(fs::remove_file(self.place(file)))
    }

    /// The directories that would have to be made for a file, the outermost first.
    pub fn missing_folders(&self, file: &str) -> Vec<String> {
        let folders = Path::new(file).ancestors().skip(1);
        let missing = folders.take_while(|folder| !self.place(&folder.to_string_lossy()).exists());
        let mut missing: Vec<String> =
            missing.map(|folder| folder.to_string_lossy().into_owned()).collect();
        missing.reverse();
        missing
    }

    /// Removes directories that were made, the innermost first; one that others use by now stays.
    pub fn remove_folders(&self, folders: &[String]) {
        for folder in folders.iter().rev() {
            // Not empty, or gone already: either is fine.
            let _ = fs::remove_dir(self.place(folder));
        }
    }

    /// Runs a program of the host. One of a directory in place of `/` is looked for there, and
    /// finds the root in `UNTAX_ROOT`.
    pub fn run(&self, command: &[String]) -> io::Result<String> {
        let Some((program, arguments)) = command.split_first() else { return Ok(String::new()) };
        let mut run = if self.is_live() {
            Command::new(program)
        } else {
            let mut run = Command::new(self.place(&format!("/usr/sbin/{program}")));
            run.env("UNTAX_ROOT", &self.0);
            run
        };
        let output = run.args(arguments).stdin(std::process::Stdio::null()).output()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or_default();
        Err(io::Error::other(format!("{} ended with {}: {last}", command.join(" "), output.status)))
    }

    /// Whether a program of the host is there to run.
    pub fn has_program(&self, program: &str) -> bool {
        let folders =
            ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"];
        folders.iter().any(|folder| self.place(&format!("{folder}/{program}")).exists())
    }
}

/// Where a file is that may be a link, which is to stay one. One by which somebody would have us change
/// what is not theirs is refused.
fn followed(place: PathBuf) -> io::Result<PathBuf> {
    let file = match fs::canonicalize(&place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(place),
        found => found?,
    };
    let link = fs::symlink_metadata(&place)?;
    let theirs = link.uid() != 0 && link.uid() != fs::metadata(&file)?.uid();
    if link.is_symlink() && theirs {
        let why = format!("{} is a link to somebody else's file", place.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(file)
}

/// Where the new text of a file is written before it takes the file's place: always the same, so
/// that what a crash leaves is found.
fn draft_of(place: &Path) -> PathBuf {
    let mut name = place.file_name().unwrap_or_default().to_owned();
    name.push(".untax-new");
    place.with_file_name(name)
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{lchown, symlink};

    #[test]
    fn what_others_put_in_the_way_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree::at(root.path());
        let [file, theirs] = ["db.conf", "theirs"].map(|name| root.path().join(name));
        let text = |file| tree.whole(file).unwrap().unwrap();
        fs::write(&file, "a = 1\n").unwrap();
        fs::write(&theirs, "secret\n").unwrap();
        symlink(&theirs, draft_of(&file)).unwrap();
        tree.replace("/db.conf", "a = 2\n").unwrap();
        assert_eq!(text("/db.conf"), "a = 2\n");
        assert_eq!(text("/theirs"), "secret\n");
        let link = root.path().join("link.conf");
        symlink(&file, &link).unwrap();
        tree.replace("/link.conf", "a = 3\n").unwrap();
        assert!(link.is_symlink() && text("/db.conf") == "a = 3\n");
        // Only root can give a link away.
        if lchown(&link, Some(65534), Some(65534)).is_ok() {
            let refused = tree.replace("/link.conf", "a = 4\n").unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{refused}");
            assert_eq!(text("/db.conf"), "a = 3\n");
        }
    }
}
