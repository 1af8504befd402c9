//! Work that times itself, run as a child in an arm: loops of one system call, of memory copies, of file reads.

use super::memory_copy;
use super::repeat::{Done, repeated};
use crate::child::HiddenCommand;
use rustix::fs::{Advice, Mode, OFlags};
use rustix::thread::futex;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};
use untax_core::Bytes;

/// The hidden subcommand.
pub(super) const WORK: HiddenCommand =
    HiddenCommand { name: "__platform-work", thread: c"untax-work", run };

/// One piece of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Work {
    pub(super) kind: WorkKind,
    pub(super) seconds: f64,
    /// A directory of its own.
    pub(super) directory: String,
    /// Of a file that is written and read.
    pub(super) file_bytes: u64,
}

/// What is done in a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum WorkKind {
    /// The cheapest system call there is; then mapping memory and touching each page once, two threads that
    /// wake each other in turn, and reading 8 KiB that are in the page cache, a quarter of the time each.
    Calls,
    /// `a[i] = b[i]` and the other three, of arrays that no cache holds.
    MemoryCopy,
    MemoryScale,
    MemoryAdd,
    MemoryTriad,
    /// Writing a file from its start to its end, 256 KiB or 2 MiB at a time, through the page cache or not.
    Write(Sequential),
    /// Reading it so.
    Read(Sequential),
    /// Reading and writing 4 KiB at random places of a file in memory.
    TmpfsRandom,
}

/// How a file is gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sequential {
    pub(super) record_bytes: usize,
    pub(super) direct: bool,
}

/// Loops look at the clock once in so many rounds: often enough for trials of 0.1 s even where a call takes
/// 20 us, seldom enough that a look of 50 ns does not count where it takes 60 ns.
const ROUNDS: u32 = 256;

/// One page that the kernel faults in.
const PAGE: usize = 4096;

/// Memory that is touched in one round. Above 32 MiB the C library always maps memory anew
/// (`M_MMAP_THRESHOLD` in mallopt(3)).
const TOUCHED: usize = 64 << 20;

fn run(spec: &str) -> io::Result<()> {
    let work: Work = serde_json::from_str(spec)?;
    let time = Duration::from_secs_f64(work.seconds);
    let done = match work.kind {
        WorkKind::Calls => calls(&work, time / 4),
        WorkKind::MemoryCopy => memory_copy::run(memory_copy::Kernel::Copy, time),
        WorkKind::MemoryScale => memory_copy::run(memory_copy::Kernel::Scale, time),
        WorkKind::MemoryAdd => memory_copy::run(memory_copy::Kernel::Add, time),
        WorkKind::MemoryTriad => memory_copy::run(memory_copy::Kernel::Triad, time),
        WorkKind::Write(how) => write(&work, how),
        WorkKind::Read(how) => {
            write(&work, Sequential { record_bytes: Bytes::MIB_2.0 as usize, direct: how.direct })?;
            read(&work, how)
        }
        WorkKind::TmpfsRandom => tmpfs_random(&work, time),
    }?;
    let mut line = serde_json::to_string(&done)?;
    line.push('\n');
    io::stdout().write_all(line.as_bytes())
}

/// All four, each for a time; the first is the value, and the others stand beside it in ns.
fn calls(work: &Work, time: Duration) -> io::Result<Done> {
    let getpid = repeated(time, f64::from(ROUNDS), || {
        for _ in 0..ROUNDS {
            std::hint::black_box(rustix::process::getpid());
        }
        Ok(())
    })?;
    let others = [
        ("first-touch", first_touch(time)?),
        ("futex-switch", futex_switch(time)?),
        ("file-read", file_read(work, time)?),
    ];
    let ns = |(id, done): (&str, Done)| (id.to_owned(), done.ns_each());
    Ok(Done { beside_ns: others.map(ns).to_vec(), ..getpid })
}

fn first_touch(time: Duration) -> io::Result<Done> {
    // One fault for each page, not for 512: a kernel that refuses does so in every arm alike.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    repeated(time, (TOUCHED / PAGE) as f64, || {
        let mut memory = vec![0_u8; TOUCHED];
        for page in memory.chunks_mut(PAGE) {
            page[0] = 1;
        }
        std::hint::black_box(&memory);
        Ok(())
    })
}

fn futex_switch(time: Duration) -> io::Result<Done> {
    const END: u32 = u32::MAX;
    let turn = Arc::new(AtomicU32::new(0));
    let pass = |turn: &AtomicU32, to: u32| {
        turn.store(to, SeqCst);
        let _ = futex::wake(turn, futex::Flags::PRIVATE, 1);
    };
    let wait = |turn: &AtomicU32, own: u32| loop {
        let now = turn.load(SeqCst);
        if now == own || now == END {
            return now;
        }
        let _ = futex::wait(turn, futex::Flags::PRIVATE, now, None);
    };
    let other = {
        let turn = Arc::clone(&turn);
        std::thread::spawn(move || {
            while wait(&turn, 1) != END {
                pass(&turn, 0);
            }
        })
    };
    let done = repeated(time, 2.0 * f64::from(ROUNDS / 16), || {
        for _ in 0..ROUNDS / 16 {
            pass(&turn, 1);
            wait(&turn, 0);
        }
        Ok(())
    });
    pass(&turn, END);
    other.join().map_err(|_| io::Error::other("the other thread panicked"))?;
    done
}

/// Bytes that are neither zero nor alike, so that nothing on the way can leave them out.
fn filling(bytes: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(bytes as u64);
    let mut filling = vec![0; bytes];
    rng.fill(&mut filling);
    filling
}

fn open(work: &Work, direct: bool) -> io::Result<OwnedFd> {
    let path = format!("{}/data", work.directory);
    let direct = if direct { OFlags::DIRECT } else { OFlags::empty() };
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | direct;
    Ok(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?)
}

fn file_read(work: &Work, time: Duration) -> io::Result<Done> {
    const RECORD: usize = 8192;
    const RECORDS: u64 = 128;
    let file = open(work, false)?;
    let filling = filling(RECORD);
    for record in 0..RECORDS {
        rustix::io::pwrite(&file, &filling, record * RECORD as u64)?;
    }
    let mut buffer = vec![0; RECORD];
    repeated(time, f64::from(ROUNDS), || {
        for round in 0..u64::from(ROUNDS) {
            rustix::io::pread(&file, &mut buffer, round % RECORDS * RECORD as u64)?;
        }
        Ok(())
    })
}

/// A buffer at an address that direct reads and writes may use.
struct Aligned {
    memory: Vec<u8>,
    start: usize,
    bytes: usize,
}

impl Aligned {
    fn of(filling: &[u8]) -> Self {
        let mut memory = vec![0; filling.len() + PAGE];
        let start = memory.as_ptr().align_offset(PAGE).min(PAGE);
        memory[start..start + filling.len()].copy_from_slice(filling);
        Self { memory, start, bytes: filling.len() }
    }

    fn get(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.bytes]
    }
}

fn write(work: &Work, how: Sequential) -> io::Result<Done> {
    let file = open(work, how.direct)?;
    let mut buffer = Aligned::of(&filling(how.record_bytes));
    let begun = Instant::now();
    for place in (0..work.file_bytes).step_by(how.record_bytes) {
        rustix::io::pwrite(&file, buffer.get(), place)?;
    }
    rustix::fs::fsync(&file)?;
    Ok(Done::of(work.file_bytes as f64, begun.elapsed()))
}

fn read(work: &Work, how: Sequential) -> io::Result<Done> {
    let file = open(work, how.direct)?;
    // What of it is cached would not come from the disk; where this is refused the memory limit sees to it.
    let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
    let mut buffer = Aligned::of(&vec![0; how.record_bytes]);
    let begun = Instant::now();
    for place in (0..work.file_bytes).step_by(how.record_bytes) {
        if rustix::io::pread(&file, buffer.get(), place)? == 0 {
            return Err(io::Error::other("the file is shorter than what was written"));
        }
    }
    Ok(Done::of(work.file_bytes as f64, begun.elapsed()))
}

fn tmpfs_random(work: &Work, time: Duration) -> io::Result<Done> {
    let path = format!("/dev/shm/untax-work-{}", std::process::id());
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::open(path.as_str(), flags, Mode::RUSR | Mode::WUSR)?;
    // Gone from the directory at once, so that nothing is left when this is killed.
    rustix::fs::unlink(path.as_str())?;
    let pages = (work.file_bytes / PAGE as u64).max(1);
    let mut buffer = filling(PAGE);
    for page in 0..pages {
        rustix::io::pwrite(&file, &buffer, page * PAGE as u64)?;
    }
    let mut rng = fastrand::Rng::with_seed(1);
    repeated(time, f64::from(ROUNDS) * 2.0 * PAGE as f64, || {
        for _ in 0..ROUNDS {
            rustix::io::pread(&file, &mut buffer, rng.u64(..pages) * PAGE as u64)?;
            rustix::io::pwrite(&file, &buffer, rng.u64(..pages) * PAGE as u64)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(kind: WorkKind, directory: &str) -> Work {
        Work { kind, seconds: 0.01, directory: directory.to_owned(), file_bytes: 8 << 20 }
    }

    #[test]
    fn every_kind_of_work_does_something() {
        let folder = tempfile::tempdir().unwrap();
        let time = Duration::from_millis(10);
        let work = work(WorkKind::Calls, &folder.path().to_string_lossy());
        let how = Sequential { record_bytes: 256 << 10, direct: false };
        let each = [
            calls(&work, time),
            write(&work, how),
            read(&work, how),
            tmpfs_random(&work, time),
            memory_copy::run(memory_copy::Kernel::Triad, time),
        ];
        for (place, done) in each.into_iter().enumerate() {
            let done = done.unwrap();
            assert!(done.units > 0.0 && done.seconds > 0.0, "{place}: {done:?}");
        }
        assert_eq!(std::fs::metadata(folder.path().join("data")).unwrap().len(), 8 << 20);
    }

    #[test]
    fn work_is_handed_over_as_json() {
        let kind = WorkKind::Read(Sequential { record_bytes: 1, direct: true });
        let work = work(kind, "/x");
        let json = serde_json::to_string(&work).unwrap();
        assert_eq!(serde_json::from_str::<Work>(&json).unwrap(), work);
    }

    #[test]
    fn a_buffer_for_direct_reads_begins_at_a_page() {
        let mut buffer = Aligned::of(&filling(PAGE));
        assert_eq!(buffer.get().as_ptr().align_offset(PAGE), 0);
        assert_eq!(buffer.get(), filling(PAGE));
    }
}
