//! The page through which the bench directs its readers and hears from them.
//!
//! The head is a generation: even while the readers rest, odd while a trial runs. Every number is
//! an atomic in shared memory, so that nothing but memory traffic happens during a trial.

use crate::memory::ControlPage;
use rustix::fs::MemfdFlags;
use rustix::thread::futex;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Words before those of the readers.
const COMMON_WORDS: usize = 8;

/// Words of one reader: a cache line, so that no reader slows another by counting.
const READER_WORDS: usize = 8;

/// What the readers of a trial do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Independent reads of whole rows.
    Read,
    /// Dependent touches: see [`super::table::Table::chase`].
    Chase,
}

/// The page as both sides see it.
pub struct Control(ControlPage);

/// One reader's own line.
pub struct Line<'a>(&'a [AtomicU64]);

impl Control {
    /// A new page for this many readers, with the file to hand to them.
    pub fn create(readers: u32) -> io::Result<(Self, OwnedFd)> {
        let fd = rustix::fs::memfd_create("untax-control", MemfdFlags::CLOEXEC)?;
        let words = COMMON_WORDS + readers as usize * READER_WORDS;
        rustix::fs::ftruncate(&fd, (64 + words * 8).next_multiple_of(4096) as u64)?;
        Ok((Self::open(fd.as_fd())?, fd))
    }

    /// The page in a file that was handed to us.
    pub fn open(fd: BorrowedFd<'_>) -> io::Result<Self> {
        ControlPage::map(fd).map(Self)
    }

    fn common(&self, index: usize) -> &AtomicU64 {
        &self.0.words()[index]
    }

    /// Readers that take part in the trial.
    fn active(&self) -> &AtomicU64 {
        self.common(0)
    }

    fn chasing(&self) -> &AtomicU64 {
        self.common(1)
    }

    /// Bytes of the table that were filled so far.
    pub fn filled_bytes(&self) -> &AtomicU64 {
        self.common(2)
    }

    /// `KernelPageSize` that the filler found, in bytes.
    pub fn obtained_page_bytes(&self) -> &AtomicU64 {
        self.common(3)
    }

    /// Memory of the table mapped by transparent huge pages, in bytes.
    pub fn transparent_bytes(&self) -> &AtomicU64 {
        self.common(4)
    }

    /// The line of a reader; `None` when there is no such reader.
    pub fn line(&self, reader: u32) -> Option<Line<'_>> {
        let start = COMMON_WORDS + reader as usize * READER_WORDS;
        self.0.words().get(start..start + READER_WORDS).map(Line)
    }

    /// The generation now.
    pub fn generation(&self) -> u32 {
        self.0.head().load(Acquire)
    }

    /// Whether the generation is still `seen`; cheap enough to ask between batches of reads.
    #[inline]
    pub fn still(&self, seen: u32) -> bool {
        self.0.head().load(Relaxed) == seen
    }

    /// Sends the first `readers` to work.
    pub fn start(&self, readers: u32, work: Work) {
        self.active().store(u64::from(readers), Relaxed);
        self.chasing().store(u64::from(work == Work::Chase), Relaxed);
        self.next_generation();
    }

    /// Ends the trial.
    pub fn stop(&self) {
        self.next_generation();
    }

    fn next_generation(&self) {
        self.0.head().fetch_add(1, Release);
        // Failing to wake is not possible on memory of our own.
        let _ = futex::wake(self.0.head(), futex::Flags::empty(), i32::MAX as u32);
    }

    /// What this reader has to do in generation `seen`; `None`: rest.
    pub fn work(&self, seen: u32, reader: u32) -> Option<Work> {
        if seen.is_multiple_of(2) || u64::from(reader) >= self.active().load(Relaxed) {
            return None;
        }
        Some(if self.chasing().load(Relaxed) == 0 { Work::Read } else { Work::Chase })
    }

    /// Sleeps until the generation is another than `seen`.
    pub fn rest(&self, seen: u32) {
        // Woken early or interrupted: the caller looks again either way.
        let _ = futex::wait(self.0.head(), futex::Flags::empty(), seen, None);
    }
}

impl Line<'_> {
    /// Reads done since the reader began.
    pub fn reads(&self) -> &AtomicU64 {
        &self.0[0]
    }

    /// Notes a row that failed verification.
    pub fn report_corrupt(&self, row: u64) {
        self.0[1].store(row + 1, Relaxed);
    }

    /// The row that failed verification, if one did.
    pub fn corrupt(&self) -> Option<u64> {
        self.0[1].load(Relaxed).checked_sub(1)
    }

    /// Tells that the reader rests in generation `seen`, all its work done.
    pub fn rests(&self, seen: u32) {
        self.0[2].store(u64::from(seen) + 1, Release);
    }

    /// Whether the reader rests in generation `seen`.
    pub fn is_resting(&self, seen: u32) -> bool {
        self.0[2].load(Acquire) == u64::from(seen) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_active_readers_work_and_only_in_odd_generations() {
        let (bench, fd) = Control::create(3).unwrap();
        let reader = Control::open(fd.as_fd()).unwrap();
        assert_eq!(reader.work(reader.generation(), 0), None);
        bench.start(2, Work::Chase);
        let seen = reader.generation();
        assert_eq!(reader.work(seen, 1), Some(Work::Chase));
        assert_eq!(reader.work(seen, 2), None);
        bench.stop();
        assert!(!reader.still(seen));
        reader.rest(seen);
        let seen = reader.generation();
        assert_eq!(reader.work(seen, 0), None);
        let line = reader.line(1).unwrap();
        assert!(!bench.line(1).unwrap().is_resting(seen));
        line.rests(seen);
        line.report_corrupt(0);
        assert!(bench.line(1).unwrap().is_resting(seen));
        assert_eq!(bench.line(1).unwrap().corrupt(), Some(0));
        assert_eq!(bench.line(0).unwrap().corrupt(), None);
    }

    #[test]
    fn a_reader_that_does_not_exist_has_no_line() {
        let (bench, _fd) = Control::create(1).unwrap();
        assert!(bench.line(0).is_some());
        assert!(bench.line(4096).is_none());
    }
}
