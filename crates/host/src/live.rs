//! One moment of a host: every file, link, listing and answer is read through here.

use crate::record::{Kind, Record};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use untax_core::Reading::{self, Absent, Denied, Failed, Present};

/// The most that is read of one file. The largest file that a check needs is a `maps` of some
/// ten thousand mappings, about 1 MiB; anything beyond this is not a file meant for us.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// A host at one moment: the live machine, or one captured before.
pub struct Host {
    source: Source,
    record: Option<RefCell<Record>>,
}

enum Source {
    Live,
    Captured(Box<CapturedMoment>),
}

/// The files of one captured moment, and what was marked as unreadable.
pub(crate) struct CapturedMoment {
    pub(crate) root: PathBuf,
    pub(crate) record: Record,
}

/// What a filter keeps of one line of a file that may hold secrets: the line to keep, or nothing.
pub type Snooped = Option<String>;

impl Host {
    /// The machine that this program runs on.
    pub fn live() -> Self {
        Self { source: Source::Live, record: None }
    }

    /// The machine that this program runs on, remembering all that is read for a capture.
    pub fn recorded() -> Self {
        Self { source: Source::Live, record: Some(RefCell::new(Record::default())) }
    }

    pub(crate) fn captured(moment: CapturedMoment) -> Self {
        Self { source: Source::Captured(Box::new(moment)), record: None }
    }

    /// Whether this is the running machine, where processes can be asked and waited for.
    pub fn is_live(&self) -> bool {
        matches!(self.source, Source::Live)
    }

    /// What was read so far; empty unless the host is being recorded.
    pub fn into_record(self) -> Record {
        self.record.map(RefCell::into_inner).unwrap_or_default()
    }

    /// The text of a file, invalid UTF-8 replaced. Follows links; refuses anything but files.
    pub fn text(&self, path: &str) -> Reading<String> {
        self.filtered(path, |text| text)
    }

    /// The lines of a file that `keep` lets through. What it drops is neither returned nor
    /// captured: for files that may hold secrets.
    pub fn kept(&self, path: &str, keep: impl Fn(&str) -> Snooped) -> Reading<String> {
        self.filtered(path, |text| filter_lines(&text, keep))
    }

    /// As [`Host::kept`], for a path as the process `pid` sees it: links are resolved inside its
    /// root directory, so that a container cannot point us at files of the host.
    pub fn kept_inside(
        &self,
        pid: u32,
        path: &str,
        keep: impl Fn(&str) -> Snooped,
    ) -> Reading<String> {
        let name = format!("/proc/{pid}/root{path}");
        self.remember(&name, Kind::File, || match &self.source {
            Source::Live => open_inside(pid, path, OFlags::RDONLY | OFlags::NONBLOCK)
                .and_then(|fd| read_file(fd.into(), &name))
                .map(|text| filter_lines(&text, keep)),
            Source::Captured(moment) => moment.text(&name),
        })
    }

    /// Reads a file and passes the text through `f` before anyone else sees it.
    pub fn filtered(&self, path: &str, f: impl FnOnce(String) -> String) -> Reading<String> {
        self.remember(path, Kind::File, || match &self.source {
            Source::Live => read_path(Path::new(path), path).map(f),
            Source::Captured(moment) => moment.text(path),
        })
    }

    /// The names in a directory, sorted.
    pub fn names(&self, path: &str) -> Reading<Vec<String>> {
        match &self.source {
            Source::Live => {
                let names = list(Path::new(path), path);
                if let Some(record) = &self.record {
                    record.borrow_mut().listed(path, names.as_ref().map(Vec::as_slice));
                }
                names
            }
            Source::Captured(moment) => moment.names(path),
        }
    }

    /// Where a link points, not followed.
    pub fn link(&self, path: &str) -> Reading<String> {
        self.remember(path, Kind::Link, || match &self.source {
            Source::Live => read_link(Path::new(path), path),
            Source::Captured(moment) => moment.link(path),
        })
    }

    /// Whether something is at a path, for files whose content does not matter.
    pub fn exists(&self, path: &str) -> bool {
        self.observe(&format!("exists:{path}"), || Present(Path::new(path).exists()))
            .into_value()
            .unwrap_or(false)
    }

    /// Anything that is not a file: an instruction, a system call, a server's answer. `live` is
    /// asked on the running machine; a captured one answers what it answered then.
    pub fn observe<T>(&self, key: &str, live: impl FnOnce() -> Reading<T>) -> Reading<T>
    where
        T: Serialize + DeserializeOwned,
    {
        match &self.source {
            Source::Live => {
                let answer = live();
                if let Some(record) = &self.record {
                    record.borrow_mut().answered(key, &answer);
                }
                answer
            }
            Source::Captured(moment) => moment.record.answer(key),
        }
    }

    fn remember(
        &self,
        path: &str,
        kind: Kind,
        read: impl FnOnce() -> Reading<String>,
    ) -> Reading<String> {
        let reading = read();
        if let Some(record) = &self.record {
            record.borrow_mut().read(path, kind, &reading);
        }
        reading
    }
}

impl CapturedMoment {
    /// Paths of a capture are ours, but a capture may come from anyone: nothing outside its
    /// folder is read.
    fn place(&self, path: &str) -> Reading<PathBuf> {
        if path.split('/').any(|part| part == "..") {
            return Failed(format!("{path} leaves the capture"));
        }
        Present(self.root.join(path.trim_start_matches('/')))
    }

    fn text(&self, path: &str) -> Reading<String> {
        self.look(path, read_path)
    }

    fn link(&self, path: &str) -> Reading<String> {
        self.look(path, read_link)
    }

    fn names(&self, path: &str) -> Reading<Vec<String>> {
        self.look(path, list)
    }

    fn look<T>(&self, path: &str, read: impl FnOnce(&Path, &str) -> Reading<T>) -> Reading<T> {
        match self.record.gap(path) {
            Some(gap) => Err(gap).into(),
            None => self.place(path).and_then(|place| read(&place, path)),
        }
    }
}

fn filter_lines(text: &str, keep: impl Fn(&str) -> Snooped) -> String {
    text.lines().filter_map(keep).map(|line| line + "\n").collect()
}

fn open_inside(pid: u32, path: &str, flags: OFlags) -> Reading<OwnedFd> {
    let root = format!("/proc/{pid}/root");
    let open = || {
        let root = rustix::fs::open(
            root.as_str(),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
    };
    match open() {
        Ok(fd) => Present(fd),
        Err(errno) => gap(&errno.into(), &format!("{root}{path}")),
    }
}

fn read_path(place: &Path, name: &str) -> Reading<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(place, flags, Mode::empty()) {
        Ok(fd) => read_file(fd.into(), name),
        Err(errno) => gap(&errno.into(), name),
    }
}

fn read_file(file: std::fs::File, name: &str) -> Reading<String> {
    match file.metadata() {
        Ok(meta) if meta.is_file() => {}
        Ok(_) => return Failed(format!("{name} is not a regular file")),
        Err(error) => return gap(&error, name),
    }
    let mut bytes = Vec::new();
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

#[expect(clippy::disallowed_methods, reason = "this is the one place that lists directories")]
fn list(place: &Path, name: &str) -> Reading<Vec<String>> {
    let entries = match std::fs::read_dir(place) {
        Ok(entries) => entries,
        Err(error) => return gap(&error, name),
    };
    // An entry that vanishes while the directory is read is simply not there.
    let mut names: Vec<String> =
        entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    Present(names)
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads links")]
fn read_link(place: &Path, name: &str) -> Reading<String> {
    match std::fs::read_link(place) {
        Ok(target) => Present(target.to_string_lossy().into_owned()),
        Err(error) => gap(&error, name),
    }
}

/// Sorts an error into absent, denied or failed. A process that ended while it was read
/// (`ESRCH`) is absent, like its directory a moment later.
fn gap<T>(error: &std::io::Error, name: &str) -> Reading<T> {
    let esrch = rustix::io::Errno::SRCH.raw_os_error();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Absent(format!("{name} does not exist")),
        _ if error.raw_os_error() == Some(esrch) => Absent(format!("{name}: the process ended")),
        ErrorKind::PermissionDenied => Denied(name.to_owned()),
        _ => Failed(format!("{name}: {error}")),
    }
}
