//! Reads a recording: all that is whole, and what is not is said.

use super::error::RecordingError;
use super::file::{HEAD, Head, Unpacker, checksum};
use super::frame::Frame;
use super::writer::{earlier, first_frame};
use crate::history::{History, Remark};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Reads a recording, with what it held before its file became too long.
pub fn read(path: &Path) -> Result<History, RecordingError> {
    let mut history = History::default();
    let before = earlier(path);
    if before.exists() {
        read_file(&before, &mut history)?;
    }
    read_file(path, &mut history)?;
    if history.at_s.is_empty() {
        return Err(RecordingError::Empty(path.to_owned()));
    }
    Ok(history)
}

fn read_file(path: &Path, history: &mut History) -> Result<(), RecordingError> {
    let failed = |error| RecordingError::File(path.to_owned(), "read", error);
    let mut file = File::open(path).map_err(failed)?;
    let Some(begin) = first_frame(&mut file, path)? else { return Ok(()) };
    file.seek(SeekFrom::Start(begin)).map_err(failed)?;
    let mut file = std::io::BufReader::new(file);
    let mut unpacker = Unpacker::new();
    loop {
        match frame(&mut file).map_err(failed)? {
            Piece::End => return Ok(()),
            Piece::Torn => {
                history.remark(Remark::TornEnd);
                return Ok(());
            }
            Piece::Whole(kind, packed) => {
                let text = unpacker.text(kind, &packed);
                let frame = text.and_then(|text| serde_json::from_slice::<Frame>(&text).ok());
                match frame.filter(|frame| frame.windows().is_some()) {
                    Some(frame) => history.extend(&frame),
                    None => history.remark(Remark::Damaged),
                }
            }
            Piece::Damaged => {
                unpacker.lose();
                history.remark(Remark::Damaged);
            }
        }
    }
}

enum Piece {
    Whole(u8, Vec<u8>),
    /// Its bytes are there, and are not those that were written.
    Damaged,
    /// The file ends within it.
    Torn,
    End,
}

fn frame(file: &mut impl Read) -> std::io::Result<Piece> {
    let mut head = [0; HEAD];
    match fill(file, &mut head)? {
        0 => return Ok(Piece::End),
        HEAD => {}
        _ => return Ok(Piece::Torn),
    }
    // Without a length it is not known where the next one begins.
    let Some(head) = Head::of(head) else { return Ok(Piece::Torn) };
    let mut packed = vec![0; head.length];
    if fill(file, &mut packed)? < head.length {
        return Ok(Piece::Torn);
    }
    if checksum(head.kind, &packed) != head.checksum {
        return Ok(Piece::Damaged);
    }
    Ok(Piece::Whole(head.kind, packed))
}

/// Reads until full or at the end; gives how much was read.
fn fill(file: &mut impl Read, bytes: &mut [u8]) -> std::io::Result<usize> {
    let mut read = 0;
    while read < bytes.len() {
        match file.read(&mut bytes[read..]) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
