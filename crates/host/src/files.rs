//! Opening, reading and listing, with every error sorted into absent, denied or failed.

use crate::deadline::with_deadline;
use rustix::fs::{Dir, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use untax_core::Reading::{self, Absent, Denied, Failed, Present};

/// The most that is read of one file. The largest file that a check needs is a `maps` of some
/// ten thousand mappings, about 1 MiB; anything beyond this is not a file meant for us.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// To read a file: a fifo or a device must not make us wait.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// To list a directory.
const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// To look below a directory.
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The text of a file, invalid UTF-8 replaced. Follows links; refuses anything but files.
pub(crate) fn text(path: &str) -> Reading<String> {
    to_reading(rustix::fs::open(path, READ, Mode::empty()), path).and_then(|fd| read(fd, path))
}

/// As [`text`], for a path below a directory that no link leads out of.
pub(crate) fn text_below(directory: impl AsFd, path: &str) -> Reading<String> {
    below(directory, path, READ).and_then(|fd| read(fd, path))
}

/// As [`text`], for a path as seen from a root directory: links in it start there again.
pub(crate) fn text_inside(root: &str, path: &str) -> Reading<String> {
    let (root, inside) = (root.to_owned(), path.to_owned());
    with_deadline(&format!("{root}{path}"), move |name| {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let opened = rustix::fs::open(root, DIRECTORY, Mode::empty())
            .and_then(|root| rustix::fs::openat2(root, inside, READ, Mode::empty(), resolve));
        to_reading(opened, name).and_then(|fd| read(fd, name))
    })
}

/// The names in a directory, sorted.
pub(crate) fn names(path: &str) -> Reading<Vec<String>> {
    with_deadline(path, |path| {
        to_reading(rustix::fs::open(path, LIST, Mode::empty()), path).and_then(|fd| list(fd, path))
    })
}

/// As [`names`], for a path below a directory that no link leads out of.
pub(crate) fn names_below(directory: impl AsFd, path: &str) -> Reading<Vec<String>> {
    below(directory, path, LIST).and_then(|fd| list(fd, path))
}

/// Where a link points, not followed.
pub(crate) fn link(path: &str) -> Reading<String> {
    with_deadline(path, |path| {
        let target = rustix::fs::readlink(path, Vec::new());
        to_reading(target, path).map(|target| target.to_string_lossy().into_owned())
    })
}

/// As [`link`], for a path below a directory that no link leads out of.
pub(crate) fn link_below(directory: impl AsFd, path: &str) -> Reading<String> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    below(directory, path, flags).and_then(|fd| {
        let target = rustix::fs::readlinkat(fd, "", Vec::new());
        to_reading(target, path).map(|target| target.to_string_lossy().into_owned())
    })
}

/// A directory to look below with the functions here.
pub(crate) fn open_directory(path: &std::path::Path) -> std::io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, DIRECTORY, Mode::empty())?)
}

fn below(directory: impl AsFd, path: &str, flags: OFlags) -> Reading<OwnedFd> {
    let relative = match path.trim_start_matches('/') {
        "" => ".",
        relative => relative,
    };
    // Even so, a link may be the last part of the path when it is itself to be read.
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    to_reading(rustix::fs::openat2(directory, relative, flags, Mode::empty(), resolve), path)
}

fn read(fd: OwnedFd, name: &str) -> Reading<String> {
    let file = File::from(fd);
    match file.metadata() {
        Ok(meta) if meta.is_file() => {}
        Ok(_) => return Failed(format!("{name} is not a regular file")),
        Err(error) => return gap(&error, name),
    }
    // Room for most files of /proc at once: without it a small one takes five reads.
    let mut bytes = Vec::with_capacity(4096);
    match file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 > MAX_FILE_BYTES => {
            Failed(format!("{name} is larger than {} MiB", MAX_FILE_BYTES >> 20))
        }
        Ok(_) => Present(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }),
        Err(error) => gap(&error, name),
    }
}

fn list(fd: OwnedFd, name: &str) -> Reading<Vec<String>> {
    let names = Dir::new(fd).and_then(|directory| {
        directory
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .filter(|name| !name.as_ref().is_ok_and(|name| name == "." || name == ".."))
            .collect::<rustix::io::Result<Vec<String>>>()
    });
    to_reading(names, name).map(|mut names| {
        names.sort_unstable();
        names
    })
}

fn to_reading<T>(result: rustix::io::Result<T>, name: &str) -> Reading<T> {
    match result {
        Ok(value) => Present(value),
        Err(errno) => gap(&errno.into(), name),
    }
}

/// Sorts an error into absent, denied or failed. A process that ended while it was read
/// (`ESRCH`) is absent, like its directory a moment later, and so is what the kernel has a file for but
/// was told not to do (`EOPNOTSUPP`: pressure, with `psi=0`).
fn gap<T>(error: &Error, name: &str) -> Reading<T> {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Absent(format!("{name} does not exist")),
        _ if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {
            Absent(format!("{name}: the process ended"))
        }
        _ if error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => {
            Absent(format!("{name} is switched off"))
        }
        ErrorKind::PermissionDenied => Denied(name.to_owned()),
        _ => Failed(format!("{name}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_switched_off_is_absent_and_no_failure() {
        let sort = |errno: Errno| gap::<String>(&errno.into(), "/proc/pressure/cpu");
        assert_eq!(sort(Errno::OPNOTSUPP), Absent("/proc/pressure/cpu is switched off".to_owned()));
        assert!(matches!(sort(Errno::SRCH), Absent(_)));
        assert!(matches!(sort(Errno::ACCESS), Denied(_)));
        assert!(matches!(sort(Errno::IO), Failed(_)));
    }
}
