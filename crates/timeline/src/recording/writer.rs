//! Writes a recording, a frame each minute.

use super::error::RecordingError;
use super::file::{HEAD, Head, Packer, SCHEMA, checksum};
use super::frame::{Frame, Written};
use crate::moment::Moment;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use untax_core::format;

/// So many seconds of windows are kept in memory before they are written.
const FRAME_S: f64 = 60.0;

/// The stream begins anew, with all facts, after so many frames.
const FRAMES_UNTIL_ANEW: u32 = 60;

/// A recording that is being written. Dropped, it writes what it has.
pub struct Recorder {
    path: PathBuf,
    file: File,
    /// Bytes of both files together at most.
    limit: u64,
    /// Up to here the file is whole.
    length: u64,
    packer: Packer,
    frames: u32,
    written: Written,
    pending: Vec<Moment>,
}

impl Recorder {
    /// Opens a recording, or goes on with one: behind its last whole frame. The file and the one before it, whose
    /// name ends with `.1`, have `limit` bytes together at most.
    pub fn open(path: &Path, limit: u64) -> Result<Self, RecordingError> {
        let failed = |error| RecordingError::File(path.to_owned(), "written", error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        // Some filesystems have no locks.
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(RecordingError::Busy(path.to_owned()));
        }
        let length = whole_length(&mut file, path)?;
        let mut recorder = Self {
            path: path.to_owned(),
            file,
            limit,
            length,
            packer: Packer::new(),
            frames: 0,
            written: Written::default(),
            pending: Vec::new(),
        };
        if length == 0 {
            recorder.append(format!("{SCHEMA}\n").as_bytes())?;
        }
        Ok(recorder)
    }

    /// Adds a window. What is in memory is lost when this process is killed: a minute at most.
    pub fn add(&mut self, moment: Moment) -> Result<(), RecordingError> {
        let window_s = moment.window_s;
        self.pending.push(moment);
        let covered_s: f64 = self.pending.iter().map(|moment| moment.window_s).sum();
        if covered_s + window_s > FRAME_S { self.write() } else { Ok(()) }
    }

    /// Writes what is in memory.
    pub fn write(&mut self) -> Result<(), RecordingError> {
        let moments = std::mem::take(&mut self.pending);
        if moments.is_empty() {
            return Ok(());
        }
        if self.frames == FRAMES_UNTIL_ANEW {
            self.begin_anew();
        }
        let written = self.frame(&moments).and_then(|frame| {
            if self.length + frame.len() as u64 > self.limit / 2 && self.frames > 0 {
                self.rotate()?;
                let frame = self.frame(&moments)?;
                return self.append(&frame);
            }
            self.append(&frame)
        });
        match written {
            Ok(()) => self.frames += 1,
            // What the stream refers back to is not in the file.
            Err(_) => self.begin_anew(),
        }
        written
    }

    fn begin_anew(&mut self) {
        (self.packer, self.frames, self.written) = (Packer::new(), 0, Written::default());
    }

    fn frame(&mut self, moments: &[Moment]) -> Result<Vec<u8>, RecordingError> {
        let frame = Frame::of(moments, &mut self.written);
        let text = serde_json::to_vec(&frame).map_err(std::io::Error::other);
        text.and_then(|text| self.packer.frame(&text)).map_err(|error| self.failed(error))
    }

    /// Appends all of it, or nothing.
    fn append(&mut self, bytes: &[u8]) -> Result<(), RecordingError> {
        let mut write = || -> std::io::Result<()> {
            // What a full disk left of an earlier frame goes first.
            self.file.set_len(self.length)?;
            self.file.seek(SeekFrom::Start(self.length))?;
            self.file.write_all(bytes)
        };
        write().map_err(|error| self.failed(error))?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Keeps the file as the one before, and begins another.
    fn rotate(&mut self) -> Result<(), RecordingError> {
        let begin = || -> std::io::Result<File> {
            std::fs::rename(&self.path, earlier(&self.path))?;
            let file =
                OpenOptions::new().read(true).write(true).create_new(true).open(&self.path)?;
            // A lock that cannot be had is none that another holds: the file is new.
            let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
            Ok(file)
        };
        self.file = begin().map_err(|error| self.failed(error))?;
        self.length = 0;
        self.begin_anew();
        self.append(format!("{SCHEMA}\n").as_bytes())
    }

    fn failed(&self, error: std::io::Error) -> RecordingError {
        RecordingError::File(self.path.clone(), "written", error)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.write();
    }
}

/// The file in which a recording began before it became too long.
pub(super) fn earlier(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

/// Up to where a file holds whole frames; 0 for an empty one. Refuses what is no recording of this version.
fn whole_length(file: &mut File, path: &Path) -> Result<u64, RecordingError> {
    let failed = |error| RecordingError::File(path.to_owned(), "read", error);
    let end = file.metadata().map_err(failed)?.len();
    let Some(mut at) = first_frame(file, path)? else { return Ok(0) };
    let mut head = [0; HEAD];
    while at + HEAD as u64 <= end {
        file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut head)).map_err(failed)?;
        let Some(head) = Head::of(head).filter(|head| at + (HEAD + head.length) as u64 <= end)
        else {
            break;
        };
        let mut packed = vec![0; head.length];
        file.read_exact(&mut packed).map_err(failed)?;
        if checksum(head.kind, &packed) != head.checksum {
            break;
        }
        at += (HEAD + head.length) as u64;
    }
    Ok(at)
}

/// Where the first frame of a file begins; `None` for an empty one.
pub(super) fn first_frame(file: &mut File, path: &Path) -> Result<Option<u64>, RecordingError> {
    /// No format has a longer name.
    const LONGEST_NAME: usize = 64;
    let mut begin = Vec::new();
    let read = file
        .seek(SeekFrom::Start(0))
        .and_then(|_| Read::by_ref(file).take(LONGEST_NAME as u64).read_to_end(&mut begin));
    match read {
        Ok(0) => return Ok(None),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::IsADirectory => {
            return Err(RecordingError::Other(path.to_owned()));
        }
        Err(error) => return Err(RecordingError::File(path.to_owned(), "read", error)),
    }
    let name = begin.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let name = std::str::from_utf8(name).unwrap_or_default();
    if format!("{SCHEMA}\n").as_bytes().starts_with(&begin) && name.len() == begin.len() {
        // Whoever began it was killed at once.
        return Ok(None);
    }
    let is_recording = name.len() < begin.len() && name.starts_with("untax.recording/");
    if !is_recording {
        return Err(RecordingError::Other(path.to_owned()));
    }
    format::is_readable(name).map_err(|newer| RecordingError::Newer(path.to_owned(), newer))?;
    Ok(Some(name.len() as u64 + 1))
}
