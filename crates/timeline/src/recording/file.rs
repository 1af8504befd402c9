//! The file of a recording, byte by byte.
//!
//! A line with the format's name, then frames: length (4 bytes), checksum (4), kind (1), then so many bytes of a
//! deflate stream that was flushed there. Numbers are little-endian; the checksum is the CRC-32 of kind and bytes.
//! The stream goes on from frame to frame, as windows resemble each other, and begins anew with each frame of kind
//! 1: what is damaged costs an hour at most, and a torn end the last minute.

use flate2::{Compress, Compression, Crc, Decompress, FlushCompress, FlushDecompress, Status};

/// The format's name and version.
pub const SCHEMA: &str = "untax.recording/1";

/// Bytes before the deflate stream of a frame.
pub(super) const HEAD: usize = 9;

/// A frame whose stream goes on, and one whose stream begins.
pub(super) const GOES_ON: u8 = 0;
pub(super) const BEGINS: u8 = 1;

/// A frame is never so long: a minute of 50 databases is some 100 KiB.
pub(super) const LONGEST: usize = 16 << 20;

/// And never holds so much.
const MOST_INFLATED: usize = 256 << 20;

/// Makes frames.
pub(super) struct Packer {
    stream: Compress,
    begins: bool,
}

impl Packer {
    pub fn new() -> Self {
        Self { stream: Compress::new(Compression::best(), false), begins: true }
    }

    /// The frame that holds this, or why there is none.
    pub fn frame(&mut self, text: &[u8]) -> std::io::Result<Vec<u8>> {
        let kind = if self.begins { BEGINS } else { GOES_ON };
        let mut packed = Vec::with_capacity(text.len() / 2 + 64);
        let begun = self.stream.total_in();
        loop {
            let read = (self.stream.total_in() - begun) as usize;
            packed.reserve(text.len() / 2 + 64);
            self.stream.compress_vec(&text[read..], &mut packed, FlushCompress::Sync)?;
            let read = (self.stream.total_in() - begun) as usize;
            if read == text.len() && packed.len() < packed.capacity() {
                break;
            }
        }
        self.begins = false;
        let mut frame = Vec::with_capacity(HEAD + packed.len());
        frame.extend((packed.len() as u32).to_le_bytes());
        frame.extend(checksum(kind, &packed).to_le_bytes());
        frame.push(kind);
        frame.extend(packed);
        Ok(frame)
    }
}

pub(super) fn checksum(kind: u8, packed: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(&[kind]);
    crc.update(packed);
    crc.sum()
}

/// What the beginning of a frame says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub length: usize,
    pub checksum: u32,
    pub kind: u8,
}

impl Head {
    /// `None` where this is no beginning of a frame.
    pub fn of(bytes: [u8; HEAD]) -> Option<Self> {
        let number = |at: usize| {
            bytes[at..at + 4].iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
        };
        let (length, checksum, kind) = (number(0) as usize, number(4), bytes[8]);
        (kind <= BEGINS && length <= LONGEST).then_some(Self { length, checksum, kind })
    }
}

/// Reads frames.
pub(super) struct Unpacker {
    stream: Option<Decompress>,
}

impl Unpacker {
    pub fn new() -> Self {
        Self { stream: None }
    }

    /// Forgets the stream: frames cannot be read until one begins anew.
    pub fn lose(&mut self) {
        self.stream = None;
    }

    /// What a frame holds; `None` where its stream's beginning was lost, or it is damaged.
    pub fn text(&mut self, kind: u8, packed: &[u8]) -> Option<Vec<u8>> {
        if kind == BEGINS {
            self.stream = Some(Decompress::new(false));
        }
        let stream = self.stream.as_mut()?;
        let mut text = Vec::with_capacity(packed.len() * 8 + 64);
        let begun = stream.total_in();
        loop {
            let read = (stream.total_in() - begun) as usize;
            text.reserve(packed.len() * 4 + 64);
            let inflated = stream.decompress_vec(&packed[read..], &mut text, FlushDecompress::Sync);
            let before = read;
            let read = (stream.total_in() - begun) as usize;
            // A frame never ends its stream, and what neither reads nor gives anything is none of ours.
            let ends = !matches!(inflated, Ok(Status::Ok | Status::BufError));
            let is_stuck = read == before && text.len() < text.capacity() && read < packed.len();
            if ends || is_stuck || text.len() > MOST_INFLATED {
                self.stream = None;
                return None;
            }
            if read == packed.len() && text.len() < text.capacity() {
                return Some(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_are_read_as_they_were_written(
            texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3000), 1..8)
        ) {
            let (mut packer, mut unpacker) = (Packer::new(), Unpacker::new());
            for text in &texts {
                let frame = packer.frame(text).unwrap();
                let head = Head::of(frame[..HEAD].try_into().unwrap()).unwrap();
                let packed = &frame[HEAD..];
                prop_assert_eq!(head.length, packed.len());
                prop_assert_eq!(head.checksum, checksum(head.kind, packed));
                prop_assert_eq!(&unpacker.text(head.kind, packed).unwrap(), text);
            }
        }

        #[test]
        fn garbage_is_no_frame_and_no_panic(
            kind in 0..2_u8, packed in prop::collection::vec(any::<u8>(), 0..500)
        ) {
            let mut unpacker = Unpacker::new();
            let _ = unpacker.text(kind, &packed);
            let _ = unpacker.text(GOES_ON, &packed);
        }
    }
}
