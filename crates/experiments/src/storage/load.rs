//! The work itself, in the child: threads that write, read and flush until the time is over.

use super::files;
use super::latency::{FOR_P99, Latencies};
use super::spec::{Beside, Burst, Job, Outcome, Work};
use rustix::fs::{Mode, OFlags};
use rustix::thread::CpuSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use untax_core::Bytes;

/// What direct I/O may ask of the address of a buffer, on every disk that is sold.
const ALIGN: usize = 4096;

/// Pages of a burst, as PostgreSQL writes them.
const PAGE: usize = 8192;

/// Bytes of each file that a flood makes.
const FLOOD_FILE: usize = 4096;

/// Work whose files are open and whose buffers are there.
pub(crate) struct Prepared {
    log: Option<Log>,
    readers: Vec<Reader>,
    bursts: Option<Bursts>,
    cpus: [Vec<u32>; 2],
    /// Whether reads are what is timed, so that they get the first CPUs.
    is_read: bool,
    /// Records of the log before which it does not end: none, or as many as tell a 99th percentile.
    least: u64,
}

/// How long a trial may take until there are records enough: on a disk that flushes ten times a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// Opens the files of a job.
pub(crate) fn prepare(job: &Job) -> io::Result<Prepared> {
    let directory = job.directory.as_path();
    let mut rng = fastrand::Rng::with_seed(job.seed);
    let mut prepared = Prepared {
        log: None,
        readers: Vec::new(),
        bursts: None,
        cpus: job.cpus.clone(),
        is_read: false,
        least: 0,
    };
    match job.work {
        Work::Log { record, beside } => {
            prepared.log = Some(Log::over(directory, record, &mut rng)?);
            match beside {
                Beside::Nothing => {}
                Beside::Checkpoints { burst } => {
                    prepared.least = FOR_P99 as u64;
                    prepared.bursts = Some(Bursts::new(directory, job.data, burst, &mut rng)?);
                }
                Beside::Reads { block, depth } => {
                    prepared.readers = readers(directory, job.data, block, depth, &mut rng)?;
                }
            }
        }
        Work::Append { record } => {
            prepared.log = Some(Log::growing(directory, record, &mut rng)?);
        }
        Work::Read { block, depth } => {
            prepared.is_read = true;
            prepared.readers = readers(directory, job.data, block, depth, &mut rng)?;
        }
        Work::Fill | Work::Flood { .. } => {}
    }
    Ok(prepared)
}

impl Prepared {
    /// Works for so long. The first error of a thread ends all.
    pub(crate) fn run(mut self, length: Duration) -> io::Result<Outcome> {
        let (stop, records) = (AtomicBool::new(false), AtomicU64::new(0));
        let [first, second] = &self.cpus;
        let of_readers = if self.is_read { first } else { second };
        std::thread::scope(|scope| {
            let (stop, records) = (&stop, &records);
            let log = self.log.take();
            let log = log.map(|log| scope.spawn(move || on(first, || log.run(stop, records))));
            let bursts = self.bursts.take();
            let bursts = bursts.map(|all| scope.spawn(move || on(second, || all.run(stop))));
            let readers = std::mem::take(&mut self.readers);
            let start = |reader: Reader| scope.spawn(move || on(of_readers, || reader.run(stop)));
            let readers: Vec<_> = readers.into_iter().map(start).collect();
            let (since, longest) = (Instant::now(), length.max(PATIENCE));
            let is_over = || {
                let took = since.elapsed();
                took >= length && (records.load(Relaxed) >= self.least || took >= longest)
            };
            // A thread that failed has set it as well.
            while !stop.load(Relaxed) && !is_over() {
                let left = length.saturating_sub(since.elapsed()).max(Duration::from_millis(1));
                std::thread::sleep(left.min(Duration::from_millis(20)));
            }
            stop.store(true, Relaxed);
            let mut outcome = Outcome::default();
            if let Some(log) = log {
                let Done { each, bytes } = joined(log.join())?;
                outcome.log = Latencies::of(each);
                outcome.asked.written = bytes;
            }
            let mut reads = Vec::new();
            for reader in readers {
                let Done { each, bytes } = joined(reader.join())?;
                reads.extend(each);
                outcome.asked.read = outcome.asked.read + bytes;
            }
            outcome.reads = Latencies::of(reads);
            if let Some(bursts) = bursts {
                let (all, bytes) = joined(bursts.join())?;
                outcome.bursts = all;
                outcome.asked.written = outcome.asked.written + bytes;
            }
            Ok(outcome)
        })
    }
}

fn joined<T>(ended: std::thread::Result<io::Result<T>>) -> io::Result<T> {
    ended.unwrap_or_else(|_| Err(io::Error::other("a thread of the load panicked")))
}

/// Runs a thread on these CPUs; none: on all.
fn on<T>(cpus: &[u32], work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if !cpus.is_empty() {
        let mut set = CpuSet::new();
        for cpu in cpus {
            set.set(*cpu as usize);
        }
        rustix::thread::sched_setaffinity(None, &set)?;
    }
    work()
}

/// What a thread did.
struct Done {
    each: Vec<Duration>,
    bytes: Bytes,
}

/// Ends all threads when one ends early.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Times operations until the end; each gives its bytes.
fn timed(stop: &AtomicBool, mut operation: impl FnMut() -> io::Result<usize>) -> io::Result<Done> {
    let _stopping = Stopping(stop);
    let (mut each, mut bytes) = (Vec::with_capacity(1 << 16), 0);
    while !stop.load(Relaxed) {
        let since = Instant::now();
        bytes += operation()? as u64;
        each.push(since.elapsed());
    }
    Ok(Done { each, bytes: Bytes(bytes) })
}

/// A log: each record is written and flushed.
struct Log {
    file: File,
    record: Vec<u8>,
    /// The size after which it begins anew; none for a file that grows.
    size: Option<u64>,
}

impl Log {
    /// One that was written before.
    fn over(directory: &Path, record: u32, rng: &mut fastrand::Rng) -> io::Result<Self> {
        let file = files::open_to_write(&files::log_path(directory))?;
        Ok(Self { file, record: content(record as usize, rng), size: Some(files::LOG.0) })
    }

    /// One that begins empty.
    fn growing(directory: &Path, record: u32, rng: &mut fastrand::Rng) -> io::Result<Self> {
        let path = files::growing_path(directory);
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path);
        let file = file.map_err(|error| files::at(&path, &error))?;
        file.sync_all()?;
        Ok(Self { file, record: content(record as usize, rng), size: None })
    }

    fn run(self, stop: &AtomicBool, records: &AtomicU64) -> io::Result<Done> {
        let length = self.record.len() as u64;
        let mut at = 0;
        timed(stop, || {
            self.file.write_all_at(&self.record, at)?;
            self.file.sync_data()?;
            records.fetch_add(1, Relaxed);
            at += length;
            if self.size.is_some_and(|size| at + length > size) {
                at = 0;
            }
            Ok(self.record.len())
        })
    }
}

fn content(bytes: usize, rng: &mut fastrand::Rng) -> Vec<u8> {
    let mut content = vec![0; bytes];
    files::random(&mut content, rng);
    content
}

/// Reads blocks at random past the page cache.
struct Reader {
    file: File,
    block: usize,
    blocks: u64,
    rng: fastrand::Rng,
}

fn readers(
    directory: &Path,
    data: Bytes,
    block: u32,
    depth: u32,
    rng: &mut fastrand::Rng,
) -> io::Result<Vec<Reader>> {
    let path = files::data_path(directory);
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let open = || {
        rustix::fs::open(&path, flags, Mode::empty()).map(File::from).map_err(|errno| {
            let why = format!(
                "{}: {}; without direct I/O a read may come from the page cache, so it is not measured",
                path.display(),
                io::Error::from(errno)
            );
            io::Error::other(why)
        })
    };
    let blocks = data.0 / u64::from(block);
    let reader = |_| Ok(Reader { file: open()?, block: block as usize, blocks, rng: rng.fork() });
    (0..depth).map(reader).collect()
}

impl Reader {
    fn run(mut self, stop: &AtomicBool) -> io::Result<Done> {
        let mut space = vec![0; self.block + ALIGN];
        let start = space.as_ptr().align_offset(ALIGN);
        let buffer = &mut space[start..start + self.block];
        timed(stop, || {
            let at = self.rng.u64(..self.blocks) * self.block as u64;
            self.file.read_exact_at(buffer, at)?;
            // The files hold no zero: a block of zeros did not come from them.
            if buffer.first() == Some(&0) {
                return Err(io::Error::other("a block that was written came back as zeros"));
            }
            Ok(self.block)
        })
    }
}

/// Bursts of pages through the page cache, each flushed.
struct Bursts {
    file: File,
    page: Vec<u8>,
    pages: u64,
    in_burst: u64,
    rng: fastrand::Rng,
}

impl Bursts {
    fn new(
        directory: &Path,
        data: Bytes,
        burst: Bytes,
        rng: &mut fastrand::Rng,
    ) -> io::Result<Self> {
        let file = files::open_to_write(&files::data_path(directory))?;
        let (pages, in_burst) = (data.0 / PAGE as u64, burst.0 / PAGE as u64);
        Ok(Self { file, page: content(PAGE, rng), pages, in_burst, rng: rng.fork() })
    }

    /// Bursts until the end; the last one is finished, and counts when it was.
    fn run(mut self, stop: &AtomicBool) -> io::Result<(Vec<Burst>, Bytes)> {
        let _stopping = Stopping(stop);
        let (mut all, mut bytes) = (Vec::new(), 0);
        while !stop.load(Relaxed) {
            let since = Instant::now();
            for page in burst_pages(self.pages, self.in_burst, &mut self.rng) {
                self.file.write_all_at(&self.page, page * PAGE as u64)?;
            }
            let write_s = since.elapsed().as_secs_f64();
            self.file.sync_all()?;
            let flush_s = since.elapsed().as_secs_f64() - write_s;
            all.push(Burst { write_s, flush_s });
            bytes += self.in_burst * PAGE as u64;
        }
        Ok((all, Bytes(bytes)))
    }
}

/// Pages of a burst: in order, as PostgreSQL sorts them, each once, at random distances.
fn burst_pages(pages: u64, in_burst: u64, rng: &mut fastrand::Rng) -> impl Iterator<Item = u64> {
    let distance = (pages / in_burst.max(1)).max(1);
    (0..in_burst.min(pages)).map(move |number| number * distance + rng.u64(..distance))
}

/// Makes, flushes, renames and removes small files until this process is killed. Ends when it cannot.
pub(crate) fn flood(directory: &Path, threads: u32) -> io::Result<Outcome> {
    let content = content(FLOOD_FILE, &mut fastrand::Rng::with_seed(1));
    let stop = AtomicBool::new(false);
    let one = |number: u32| -> io::Result<()> {
        let _stopping = Stopping(&stop);
        let path = |name: &str| directory.join(format!("{name}-{number}"));
        let (old, new) = (path("flood"), path("flooded"));
        while !stop.load(Relaxed) {
            let file = File::create(&old).map_err(|error| files::at(&old, &error))?;
            file.write_all_at(&content, 0)?;
            file.sync_all()?;
            std::fs::rename(&old, &new)?;
            std::fs::remove_file(&new)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let one = &one;
        let all: Vec<_> = (0..threads).map(|number| scope.spawn(move || one(number))).collect();
        all.into_iter().try_for_each(|thread| joined(thread.join()))
    })?;
    Ok(Outcome::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::device::Moved;

    const DATA: Bytes = Bytes(1 << 20);

    /// Beside the test program: on a disk, where temporary files may be in memory.
    fn directory() -> tempfile::TempDir {
        let program = std::env::current_exe().unwrap();
        tempfile::tempdir_in(program.parent().unwrap()).unwrap()
    }

    fn run(work: Work) -> Outcome {
        let directory = directory();
        files::fill(directory.path(), DATA, 3).unwrap();
        let job = Job {
            directory: directory.path().to_owned(),
            work,
            length: Duration::from_millis(60),
            data: DATA,
            seed: 5,
            devices: Vec::new(),
            cpus: [Vec::new(), Vec::new()],
        };
        prepare(&job).unwrap().run(job.length).unwrap()
    }

    #[test]
    fn a_log_writes_its_records_and_a_growing_one_grows() {
        let log = run(Work::Log { record: 8192, beside: Beside::Nothing });
        let count = log.log.unwrap().count;
        assert_eq!(log.asked, Moved { read: Bytes(0), written: Bytes(count * 8192) });
        let directory = directory();
        let log = Log::growing(directory.path(), 100, &mut fastrand::Rng::with_seed(1)).unwrap();
        let stop = AtomicBool::new(false);
        let done = std::thread::scope(|scope| {
            let log = scope.spawn(|| log.run(&stop, &AtomicU64::new(0)));
            std::thread::sleep(Duration::from_millis(50));
            stop.store(true, Relaxed);
            log.join().unwrap().unwrap()
        });
        let path = files::growing_path(directory.path());
        assert_eq!(path.metadata().unwrap().len(), done.bytes.0);
        assert_eq!(done.bytes.0, done.each.len() as u64 * 100);
    }

    #[test]
    fn a_log_beside_bursts_and_beside_reads() {
        let burst = Bytes(1 << 18);
        let beside = run(Work::Log { record: 8192, beside: Beside::Checkpoints { burst } });
        assert!(!beside.bursts.is_empty() && beside.log.is_some(), "{beside:?}");
        let beside = Beside::Reads { block: 8192, depth: 2 };
        let beside = run(Work::Log { record: 8192, beside });
        assert!(beside.log.is_some());
        assert_eq!(beside.asked.read.0, beside.reads.unwrap().count * 8192);
    }

    #[test]
    fn a_burst_writes_no_page_twice() {
        let mut rng = fastrand::Rng::with_seed(2);
        let mut pages: Vec<u64> = burst_pages(1000, 300, &mut rng).collect();
        assert!(pages.is_sorted() && pages.iter().all(|page| *page < 1000));
        pages.dedup();
        assert_eq!(pages.len(), 300);
    }

    #[test]
    fn a_file_that_is_not_what_was_written_is_no_figure() {
        let directory = directory();
        files::fill(directory.path(), DATA, 3).unwrap();
        File::create(files::data_path(directory.path())).unwrap().set_len(DATA.0).unwrap();
        let mut rng = fastrand::Rng::with_seed(1);
        let mut readers = readers(directory.path(), DATA, 8192, 1, &mut rng).unwrap();
        let read = readers.remove(0).run(&AtomicBool::new(false));
        assert!(read.is_err_and(|error| error.to_string().contains("zeros")));
    }
}
