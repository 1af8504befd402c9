//! One moment of a host: every file, link, listing and answer is read through here.

use crate::captured::CapturedHost;
use crate::record::{Kind, Record};
use crate::{files, node_files};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::path::Path;
use untax_core::Reading::{self, Present};

/// A host at one moment: the live machine, or one captured before.
pub struct Host {
    source: Source,
    record: Option<RefCell<Record>>,
}

enum Source {
    Live,
    Captured(Box<CapturedHost>),
}

/// What a filter keeps of one line of a file that may hold secrets: the line to keep, or nothing.
pub type KeptLine = Option<String>;

impl Host {
    /// The machine that this program runs on.
    pub fn live() -> Self {
        Self { source: Source::Live, record: None }
    }

    /// The machine that this program runs on, remembering all that is read for a capture. What
    /// was read once is not read again.
    pub fn recording() -> Self {
        Self { source: Source::Live, record: Some(RefCell::new(Record::default())) }
    }

    /// The host that a record remembers, without writing it down first.
    pub fn from_record(record: Record) -> Self {
        Self::from_capture(CapturedHost { record, folder: None })
    }

    pub(crate) fn from_capture(captured: CapturedHost) -> Self {
        Self { source: Source::Captured(Box::new(captured)), record: None }
    }

    /// Whether this is the running machine, where processes can be asked and waited for.
    pub fn is_live(&self) -> bool {
        matches!(self.source, Source::Live)
    }

    /// Whether what is read is remembered for a capture.
    pub fn is_recording(&self) -> bool {
        self.record.is_some()
    }

    /// What was read so far; empty unless the host is being recorded.
    pub fn into_record(self) -> Record {
        self.record.map(RefCell::into_inner).unwrap_or_default()
    }

    /// The text of a file, invalid UTF-8 replaced. Follows links; refuses anything but files.
    pub fn text(&self, path: &str) -> Reading<String> {
        self.map_text(path, |text| text)
    }

    /// The lines of a file that `keep` lets through. What it drops is neither returned nor
    /// captured: for files that may hold secrets.
    pub fn filter_lines(&self, path: &str, keep: impl Fn(&str) -> KeptLine) -> Reading<String> {
        self.map_text(path, |text| kept_lines(&text, keep))
    }

    /// As [`Host::filter_lines`], for a path as the process `pid` sees it: links are resolved inside its
    /// root directory, so that a container cannot point us at files of the host.
    pub fn filter_lines_inside(
        &self,
        pid: u32,
        path: &str,
        keep: impl Fn(&str) -> KeptLine,
    ) -> Reading<String> {
        let root = format!("/proc/{pid}/root");
        let name = format!("{root}{path}");
        match &self.source {
            Source::Live => self.remember(&name, Kind::File, || {
                files::text_inside(&root, path).map(|text| kept_lines(&text, keep))
            }),
            Source::Captured(captured) => captured.text(&name),
        }
    }

    /// Reads a file and passes the text through `f` before anyone else sees it.
    pub fn map_text(&self, path: &str, f: impl FnOnce(String) -> String) -> Reading<String> {
        match &self.source {
            Source::Live => {
                let text = |place: &str| match place.strip_prefix(node_files::ROOT) {
                    Some(inside) => files::text_inside(node_files::ROOT, inside),
                    None => files::text(place),
                };
                self.remember(path, Kind::File, || live(path, text).map(f))
            }
            Source::Captured(captured) => captured.text(path),
        }
    }

    /// The names in a directory, sorted.
    pub fn names(&self, path: &str) -> Reading<Vec<String>> {
        match &self.source {
            Source::Live => {
                let names = live(path, files::names);
                if let Some(record) = &self.record {
                    record.borrow_mut().insert_listing(path, names.as_ref().map(Vec::as_slice));
                }
                names
            }
            Source::Captured(captured) => captured.names(path),
        }
    }

    /// Where a link points, not followed.
    pub fn link(&self, path: &str) -> Reading<String> {
        match &self.source {
            Source::Live => self.remember(path, Kind::Link, || live(path, files::link)),
            Source::Captured(captured) => captured.link(path),
        }
    }

    /// Whether something is at a path, for files whose content does not matter.
    pub fn exists(&self, path: &str) -> bool {
        let key = format!("exists:{path}");
        match &self.source {
            Source::Live => {
                let look = |place: &str| Present(Path::new(place).exists());
                self.observe(&key, || live(path, look)).value() == Some(&true)
            }
            Source::Captured(captured) => match captured.record.answer(&key) {
                Some(answer) => answer.value() == Some(&true),
                None => captured.exists(path),
            },
        }
    }

    /// Anything that is not a file: an instruction, a system call, a server's answer. `live` is
    /// asked on the running machine; a captured one answers what it answered then.
    pub fn observe<T>(&self, key: &str, live: impl FnOnce() -> Reading<T>) -> Reading<T>
    where
        T: Serialize + DeserializeOwned,
    {
        match (&self.source, &self.record) {
            (Source::Live, None) => live(),
            (Source::Live, Some(record)) => {
                if let Some(known) = record.borrow().answer(key) {
                    return known;
                }
                // Not borrowed while it runs: it may read the host itself.
                let answer = live();
                record.borrow_mut().insert_answer(key, &answer);
                answer
            }
            (Source::Captured(captured), _) => captured
                .record
                .answer(key)
                .unwrap_or_else(|| Reading::Absent(format!("{key} is not in the capture"))),
        }
    }

    fn remember(
        &self,
        path: &str,
        kind: Kind,
        read: impl FnOnce() -> Reading<String>,
    ) -> Reading<String> {
        let Some(record) = &self.record else { return read() };
        if let Some(known) = record.borrow().reading(path, kind) {
            return known;
        }
        let reading = read();
        record.borrow_mut().insert_reading(path, kind, &reading);
        reading
    }
}

/// Reads a path of the running machine, wherever this program sees the machine's own file of that path.
fn live<T>(path: &str, read: impl FnOnce(&str) -> Reading<T>) -> Reading<T> {
    Reading::from(node_files::of_machine(path)).and_then(|place| read(&place))
}

fn kept_lines(text: &str, keep: impl Fn(&str) -> KeptLine) -> String {
    text.lines().filter_map(keep).map(|line| line + "\n").collect()
}
