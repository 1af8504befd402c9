//! Receipts on disk: a line for each record, each flushed before what it announces happens.

use jiff::Timestamp;
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use untax_core::format::{self, NewerFormat};
use untax_core::plan::{Step, Target};
use untax_core::receipt::{Disturbance, Header, Record, SCHEMA, Status};

/// The extension of their files: lines of JSON.
const EXTENSION: &str = "jsonl";

/// A receipt and its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    path: PathBuf,
    header: Header,
    records: Vec<Record>,
    /// The bytes of the file that hold whole records.
    whole: u64,
}

/// What a receipt says of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed<'a> {
    /// The step.
    pub step: &'a Step,
    /// The value before.
    pub prior: Option<&'a str>,
    /// Directories that it made.
    pub folders: &'a [String],
    /// Of lines that it added to a file, how many the file held before.
    pub alike: usize,
    /// Whether it was done to its end.
    pub done: bool,
}

/// A target that is set again and again, until it is put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding<'a> {
    /// The target.
    pub target: &'a Target,
    /// The value before.
    pub prior: Option<&'a str>,
    /// Of a pool of huge pages: how many pages it had beyond those configured.
    pub surplus: u64,
    /// The boot for which the value holds.
    pub boot: &'a str,
}

/// The first record of a new receipt.
pub fn header(plan: &str, steps: Vec<Step>, temporary: bool) -> Header {
    let begun_at = Timestamp::now();
    let name = begun_at.strftime("%Y%m%dT%H%M%S%.3fZ").to_string().replace('.', "");
    Header {
        schema: SCHEMA.to_owned(),
        receipt: format!("receipt-{name}"),
        plan: plan.to_owned(),
        begun_at,
        temporary,
        steps,
    }
}

/// What the first line says of its format, also where the rest of it is of another one.
#[derive(Deserialize)]
struct Stamp {
    schema: String,
}

/// Why a receipt cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReceiptError {
    /// The file cannot be read or written.
    #[error("{}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// It is no receipt, or one that was damaged in its middle.
    #[error("{} is no receipt, or was damaged: line {line}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first line that makes no sense.
        line: usize,
    },
    /// A newer version of untax wrote it.
    #[error("{}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// What it is, and what this version reads.
        source: NewerFormat,
    },
}

impl Receipt {
    /// Begins a receipt in a folder; it is on disk when this returns.
    pub fn begin(folder: &Path, header: Header) -> Result<Self, ReceiptError> {
        let path = folder.join(format!("{}.{EXTENSION}", header.receipt));
        let begin = || -> io::Result<u64> {
            fs::create_dir_all(folder)?;
            let line = line(&header)?;
            let mut draft = tempfile::NamedTempFile::new_in(folder)?;
            draft.write_all(&line)?;
            draft.as_file().sync_all()?;
            // Never over another receipt: that one is needed to undo.
            draft.persist_noclobber(&path)?;
            File::open(folder)?.sync_all()?;
            Ok(line.len() as u64)
        };
        let whole = begin().map_err(at(&path))?;
        Ok(Self { path, header, records: Vec::new(), whole })
    }

    /// Reads a receipt. A last line that was cut off is left out: what it announced never began.
    pub fn open(path: &Path) -> Result<Self, ReceiptError> {
        #[expect(clippy::disallowed_methods, reason = "reads our own receipt, not the host")]
        let text = fs::read_to_string(path).map_err(at(path))?;
        let damaged = |line| ReceiptError::Damaged { path: path.to_owned(), line };
        let lines: Vec<&str> = text.split_inclusive('\n').filter(|l| l.ends_with('\n')).collect();
        let first = lines.first().ok_or_else(|| damaged(1))?;
        let stamp: Stamp = serde_json::from_str(first).map_err(|_| damaged(1))?;
        format::is_readable(&stamp.schema)
            .map_err(|source| ReceiptError::Newer { path: path.to_owned(), source })?;
        let header: Header = serde_json::from_str(first).map_err(|_| damaged(1))?;
        if header.schema != SCHEMA {
            return Err(damaged(1));
        }
        let mut records = Vec::new();
        let mut whole = first.len();
        for (number, line) in lines.iter().enumerate().skip(1) {
            match serde_json::from_str(line) {
                Ok(record) => records.push(record),
                Err(_) if number + 1 == lines.len() => break,
                Err(_) => return Err(damaged(number + 1)),
            }
            whole += line.len();
        }
        Ok(Self { path: path.to_owned(), header, records, whole: whole as u64 })
    }

    /// Reads it again: who changed the host until now may have written to it since. Of one that is
    /// gone, what was read before is all there is.
    pub fn read_again(&mut self) -> Result<(), ReceiptError> {
        match Self::open(&self.path) {
            Err(ReceiptError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(())
            }
            read => read.map(|now| *self = now),
        }
    }

    /// All receipts in a folder, the oldest first, and those that cannot be read.
    pub fn all(folder: &Path) -> (Vec<Self>, Vec<ReceiptError>) {
        #[expect(clippy::disallowed_methods, reason = "lists our own receipts, not the host")]
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let mut paths: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|e| e == EXTENSION)).collect();
        paths.sort();
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for path in paths {
            match Self::open(&path) {
                Ok(receipt) => good.push(receipt),
                Err(error) => bad.push(error),
            }
        }
        (good, bad)
    }

    /// Adds a record; it is on disk when this returns. When it fails the file is as before.
    pub fn add(&mut self, record: Record) -> Result<(), ReceiptError> {
        let add = || -> io::Result<u64> {
            let line = line(&record)?;
            let mut file = File::options().write(true).open(&self.path)?;
            // Whatever a crash left of a record is overwritten.
            file.set_len(self.whole)?;
            file.seek(io::SeekFrom::End(0))?;
            if let Err(error) = file.write_all(&line).and_then(|()| file.sync_all()) {
                let _ = file.set_len(self.whole);
                return Err(error);
            }
            Ok(line.len() as u64)
        };
        self.whole += add().map_err(at(&self.path))?;
        self.records.push(record);
        Ok(())
    }

    /// Removes it: nothing of it is left to be undone.
    pub fn remove(self) -> Result<(), ReceiptError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(at(&self.path)),
        }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.header.receipt
    }

    /// Its first record.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How far it got. One that holds nothing to be undone is as good as undone, whatever it says.
    pub fn status(&self) -> Status {
        let says = |wanted: &Record| self.records.contains(wanted);
        let is_empty = self.deeds().is_empty() && self.holdings().is_empty();
        if says(&Record::Reverted) || is_empty {
            Status::Reverted
        } else if says(&Record::Applied) && !self.header.temporary {
            Status::Applied
        } else {
            Status::Interrupted
        }
    }

    /// The steps that were begun and are not undone, in the order in which they were begun.
    pub fn deeds(&self) -> Vec<Deed<'_>> {
        let mut deeds: Vec<Deed> = Vec::new();
        for record in &self.records {
            match record {
                Record::Doing { step, prior, folders, alike } => {
                    let step = self.header.steps.iter().find(|known| known.id == *step);
                    deeds.extend(step.map(|step| Deed {
                        step,
                        prior: prior.as_deref(),
                        folders,
                        alike: *alike,
                        done: false,
                    }));
                }
                Record::Done { step } => {
                    for deed in deeds.iter_mut().filter(|deed| deed.step.id == *step) {
                        deed.done = true;
                    }
                }
                Record::Undone { step } => deeds.retain(|deed| deed.step.id != *step),
                Record::Applied
                | Record::Disturbed(_)
                | Record::Holding { .. }
                | Record::Reverted => {}
            }
        }
        deeds
    }

    /// The limits that a step's command changed although no step is about them.
    pub fn disturbances(&self) -> impl Iterator<Item = &Disturbance> {
        self.records.iter().filter_map(|record| match record {
            Record::Disturbed(disturbance) => Some(disturbance),
            _ => None,
        })
    }

    /// The targets that are set again and again, in the order in which that began.
    pub fn holdings(&self) -> Vec<Holding<'_>> {
        let holdings = self.records.iter().filter_map(|record| match record {
            Record::Holding { target, prior, surplus, boot } => {
                Some(Holding { target, prior: prior.as_deref(), surplus: *surplus, boot })
            }
            _ => None,
        });
        holdings.collect()
    }
}

fn line(record: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    Ok(line)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> ReceiptError {
    move |source| ReceiptError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_that_holds_nothing_is_not_applied() {
        let folder = tempfile::tempdir().unwrap();
        let header = Header {
            schema: SCHEMA.to_owned(),
            receipt: "a-receipt".to_owned(),
            plan: "a-plan".to_owned(),
            begun_at: Timestamp::UNIX_EPOCH,
            temporary: false,
            steps: Vec::new(),
        };
        let mut receipt = Receipt::begin(folder.path(), header).unwrap();
        receipt.add(Record::Applied).unwrap();
        assert_eq!(receipt.status(), Status::Reverted);
    }
}
