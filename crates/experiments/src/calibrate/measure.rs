//! The measuring itself, in a process of its own.

use super::budget::Budget;
use crate::memory::{ALIGN, Huge, PrivateWords, SharedWords};
use crate::pages::keys::{mix, within};
use crate::smaps;
use rustix::fs::MemfdFlags;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use untax_changes::Tree;
use untax_core::Reading::{self, Absent, Failed, Present};
use untax_core::calibration::{MAPPED_BY_BYTE, TouchPenalty};
use untax_core::{Bytes, Interval, stats};
use untax_host::{Host, process};

/// Words of a base page.
const PAGE_WORDS: usize = 512;
/// Words of what one fault on a read maps at most (`fault_around_bytes`, 64 KiB by default).
/// Where it maps less, the rest of the pages fault uncounted later.
const AROUND_WORDS: usize = 16 * PAGE_WORDS;
const PART_BYTES: usize = AROUND_WORDS * 8;
/// Words of a cache line: the grain of random touches.
const LINE_WORDS: usize = 8;
/// Parts of one mapping that are timed by themselves; their means make the interval.
const CHUNKS: usize = 16;
/// Bytes that are worked on between faults: larger than a second-level cache.
const WORK_WORDS: usize = (8 << 20) / 8;
/// Lines read between faults: some microseconds, as a server works between two of its own. With
/// the kernel's path still in the caches, as in a loop of faults alone, a fault costs a third less.
const LINES_BETWEEN_FAULTS: u64 = 500;
/// How often the file is mapped anew for its faults.
const FAULT_ROUNDS: u32 = 4;
/// Lines read between two touches: by a server that has a CPU to itself, and by all that take turns
/// there. Page tables are in the caches or not as data is.
const LINES_BETWEEN_TOUCHES: [(bool, u64); 2] = [(false, 8), (true, 160)];
/// Touches of one trial: some milliseconds with the work between them.
const TOUCHES: u64 = 600;
/// The share of a trial's touches that counts: the longest were interrupted.
const COUNTED: f64 = 0.99;
/// Pairs of trials for each working set.
const PAIRS: u32 = 9;
/// Each working set is so many times the one before.
const GROWTH: usize = 8;
/// Parts that are mapped at most. Of larger working sets as many, all over it: as many pages of page
/// tables, in less time, with fewer entries in each. Where a cache holds those, this errs on the low
/// side.
const MOST_PARTS: usize = 1 << 18;

/// What the child measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) minor_fault_ns: Interval,
    pub(super) write_fault_ns: Option<Interval>,
    pub(super) unmap_ns: Option<Interval>,
    pub(super) touches: Vec<TouchPenalty>,
    pub(super) touches_missing: Option<String>,
}

/// Measures faults and touches; called in the child only.
pub(super) fn measure(budget: Budget) -> Reading<Measured> {
    let page = rustix::param::page_size();
    if page != PAGE_WORDS * 8 {
        return Absent(format!("the base page is {}, not 4 KiB", Bytes(page as u64)));
    }
    match Bench::new(budget.memory).and_then(|bench| bench.run(budget)) {
        Ok(measured) => Present(measured),
        Err(error) => Failed(format!("the calibration: {error}")),
    }
}

/// Processor time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The processor time that `f` takes, in nanoseconds.
fn cpu_ns(f: impl FnOnce()) -> f64 {
    let began = cpu_time();
    f();
    cpu_time().saturating_sub(began).as_nanos() as f64
}

/// Minor faults of this process so far.
fn minor_faults(host: &Host) -> io::Result<u64> {
    let stat = process::stat(host, std::process::id()).into_value();
    stat.map(|stat| stat.minor_faults).ok_or_else(|| io::Error::other("/proc/self/stat"))
}

struct Bench {
    host: Host,
    rng: fastrand::Rng,
    /// A quarter of the memory: the file that stands for a database's buffers.
    shared: OwnedFd,
    /// As much again on huge pages; why not, where there are none.
    huge: Result<PrivateWords, String>,
    bytes: usize,
    /// What is worked on between faults.
    work: Vec<u64>,
    faults: Vec<f64>,
    unmaps: Vec<f64>,
}

impl Bench {
    fn new(memory: Bytes) -> io::Result<Self> {
        let bytes = (memory.0 as usize / 4).next_multiple_of(ALIGN);
        let shared = rustix::fs::memfd_create("untax-calibration", MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&shared, bytes as u64)?;
        let host = Host::live();
        touch_all(SharedWords::map(shared.as_fd(), bytes, ALIGN, Huge::Refused)?.words());
        let huge = huge_words(&host, bytes);
        let rng = fastrand::Rng::with_seed(1);
        let work = vec![1; WORK_WORDS];
        Ok(Self { host, rng, shared, huge, bytes, work, faults: Vec::new(), unmaps: Vec::new() })
    }

    fn file(&self) -> BorrowedFd<'_> {
        self.shared.as_fd()
    }

    fn run(mut self, budget: Budget) -> io::Result<Measured> {
        for _ in 0..FAULT_ROUNDS {
            self.fault_in()?;
        }
        let writes = self.fault_writes()?;
        let mean = |samples: &[f64]| stats::mean_interval(samples);
        let no_faults = || io::Error::other("no minor fault was counted");
        let (touches, touches_missing) = match self.touches(budget) {
            Ok(touches) => (touches, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        Ok(Measured {
            minor_fault_ns: mean(&self.faults).ok_or_else(no_faults)?,
            write_fault_ns: mean(&writes),
            // The first unmapping also makes the pages known to reclaim: no backend pays that.
            unmap_ns: mean(self.unmaps.get(1..).unwrap_or_default()),
            touches,
            touches_missing,
        })
    }

    /// Penalties for ever larger working sets, as far as the budget goes.
    fn touches(&self, budget: Budget) -> Result<Vec<TouchPenalty>, String> {
        let huge = self.huge.as_ref().map_err(Clone::clone)?;
        let mut touches = Vec::new();
        let most = (budget.page_tables.0 * MAPPED_BY_BYTE) as usize / self.bytes;
        let (mut copies, mut next) = (1, Duration::ZERO);
        while copies <= most && cpu_time() + next <= budget.cpu {
            let began = cpu_time();
            match self.touch(huge, copies) {
                Ok(more) => touches.extend(more),
                Err(error) if touches.is_empty() => return Err(error.to_string()),
                // What was measured stays.
                Err(_) => break,
            }
            let larger = (copies * GROWTH).min(most).max(copies + 1);
            let parts = |copies: usize| (self.bytes / PART_BYTES * copies).min(MOST_PARTS) as f64;
            // Half as much again for larger page tables.
            let growth = 1.5 * parts(larger) / parts(copies);
            next = cpu_time().saturating_sub(began).mul_f64(growth);
            copies = larger;
        }
        if touches.is_empty() {
            return Err(format!("{} of page tables are not enough", budget.page_tables));
        }
        Ok(touches)
    }

    /// Maps the file anew and touches it in random order, once for the faults and once for what
    /// touching alone costs.
    fn fault_in(&mut self) -> io::Result<()> {
        let map = SharedWords::map(self.file(), self.bytes, ALIGN, Huge::Refused)?;
        let mut parts: Vec<usize> = (0..map.words().len() / AROUND_WORDS).collect();
        self.rng.shuffle(&mut parts);
        let before = minor_faults(&self.host)?;
        for chunk in parts.chunks(parts.len().div_ceil(CHUNKS)) {
            let (ns, faults) = self.faulting(chunk, |part| {
                std::hint::black_box(map.words()[part * AROUND_WORDS].load(Relaxed));
            })?;
            self.faults.extend((faults > 0).then(|| ns / faults as f64));
        }
        let faults = minor_faults(&self.host)? - before;
        let ns = cpu_ns(|| drop(map));
        self.unmaps.extend((faults > 0).then(|| ns / faults as f64));
        Ok(())
    }

    /// The same with writes, which fault page by page.
    fn fault_writes(&mut self) -> io::Result<Vec<f64>> {
        let map = SharedWords::map(self.file(), self.bytes, ALIGN, Huge::Refused)?;
        let mut pages: Vec<usize> = (0..map.words().len() / PAGE_WORDS).collect();
        self.rng.shuffle(&mut pages);
        let mut samples = Vec::new();
        for chunk in pages.chunks(pages.len().div_ceil(CHUNKS)) {
            let (ns, faults) =
                self.faulting(chunk, |page| map.words()[page * PAGE_WORDS].store(1, Relaxed))?;
            samples.extend((faults > 0).then(|| ns / faults as f64));
        }
        Ok(samples)
    }

    /// Nanoseconds that touching costs more for the first time than again, and the faults.
    fn faulting(&self, places: &[usize], touch: impl Fn(usize)) -> io::Result<(f64, u64)> {
        let all = || {
            for place in places {
                touch(*place);
                self.work(*place as u64, LINES_BETWEEN_FAULTS);
            }
        };
        let before = minor_faults(&self.host)?;
        let first = cpu_ns(all);
        let faults = minor_faults(&self.host)? - before;
        let again = cpu_ns(all);
        Ok(((first - again).max(0.0), faults))
    }

    /// Reads lines at random, the same ones for the same seed.
    fn work(&self, seed: u64, lines: u64) {
        let all = (self.work.len() / LINE_WORDS) as u64;
        let line = |step| within(mix(seed.wrapping_mul(lines) + step), all) as usize;
        let sum = (0..lines).fold(0, |sum: u64, step| sum ^ self.work[line(step) * LINE_WORDS]);
        std::hint::black_box(sum);
    }

    /// Nanoseconds of one random touch, each with other work before it.
    fn touch_ns(&self, parts: &Parts<'_>, start: u64, between: u64) -> f64 {
        let mut seen = start;
        let touch_ns = |step| {
            self.work(start ^ step, between);
            let began = Instant::now();
            // Where it goes depends on the touch before.
            seen = mix(start ^ step ^ parts.at(seen).load(Relaxed));
            std::hint::black_box(seen);
            began.elapsed().as_nanos() as f64
        };
        let mut each: Vec<f64> = (0..TOUCHES).map(touch_ns).collect();
        each.sort_by(f64::total_cmp);
        each.truncate((each.len() as f64 * COUNTED) as usize);
        stats::mean(&each).unwrap_or_default()
    }

    /// The penalties of small pages when the file is mapped `copies` times in a row.
    fn touch(&self, huge: &PrivateWords, copies: usize) -> io::Result<Vec<TouchPenalty>> {
        let small = SharedWords::map_again(self.file(), self.bytes, copies)?;
        let (small, huge) = (Parts::of(small.words()), Parts::of(huge.words()));
        small.read_all();
        let working_set_bytes = Bytes((self.bytes * copies) as u64);
        let penalty = |(taking_turns, between)| {
            let extra_ns = self.extra_ns(&small, &huge, between)?;
            Some(TouchPenalty { working_set_bytes, taking_turns, extra_ns })
        };
        Ok(LINES_BETWEEN_TOUCHES.into_iter().filter_map(penalty).collect())
    }

    /// What a touch costs more on small pages, from pairs of trials.
    fn extra_ns(&self, small: &Parts<'_>, huge: &Parts<'_>, between: u64) -> Option<Interval> {
        let extra = |pair| {
            let start = mix(u64::from(pair));
            if pair % 2 == 0 {
                let first = self.touch_ns(small, start, between);
                first - self.touch_ns(huge, start, between)
            } else {
                let first = self.touch_ns(huge, start, between);
                self.touch_ns(small, start, between) - first
            }
        };
        stats::median_interval(&(0..PAIRS).map(extra).collect::<Vec<f64>>())
    }
}

/// The parts of a mapping that are touched: all, or as many as may be, evenly far apart.
struct Parts<'a> {
    words: &'a [AtomicU64],
    count: usize,
    /// Parts from one that is touched to the next, those between included.
    apart: usize,
}

impl<'a> Parts<'a> {
    fn of(words: &'a [AtomicU64]) -> Self {
        let all = words.len() / AROUND_WORDS;
        let count = all.min(MOST_PARTS);
        Self { words, count, apart: all / count }
    }

    /// The words of one part. Not at the same place in every page table: those would share the
    /// same few sets of a cache.
    fn part(&self, number: usize) -> &'a [AtomicU64] {
        let place = number * self.apart + within(mix(number as u64), self.apart as u64) as usize;
        &self.words[place * AROUND_WORDS..][..AROUND_WORDS]
    }

    /// A line at random.
    fn at(&self, random: u64) -> &'a AtomicU64 {
        let part = self.part(within(random, self.count as u64) as usize);
        let lines = (AROUND_WORDS / LINE_WORDS) as u64;
        &part[within(mix(random), lines) as usize * LINE_WORDS]
    }

    /// Reads from every page, so that each is mapped.
    fn read_all(&self) {
        for part in (0..self.count).map(|number| self.part(number)) {
            part.iter().step_by(PAGE_WORDS).for_each(|word| {
                std::hint::black_box(word.load(Relaxed));
            });
        }
    }
}

/// Writes to every page, so that each is memory of its own.
fn touch_all(words: &[AtomicU64]) {
    words.iter().step_by(PAGE_WORDS).for_each(|word| word.store(1, Relaxed));
}

/// Private memory on transparent huge pages, or why there is none.
fn huge_words(host: &Host, bytes: usize) -> Result<PrivateWords, String> {
    const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let mode = Tree::live().word(ENABLED).map_err(|e| format!("{ENABLED}: {e}"))?;
    if mode == "never" {
        return Err(
            "transparent huge pages are 'never' here, so nothing to compare with".to_owned()
        );
    }
    let words = PrivateWords::map(bytes, Huge::Wanted).map_err(|e| e.to_string())?;
    touch_all(words.words());
    let got = smaps::mapping_at(host, words.address());
    let unknown = || got.why().unwrap_or_default();
    let got = got.value().ok_or_else(unknown)?;
    if got.private_transparent.0 < bytes as u64 / 10 * 9 {
        return Err(format!(
            "the kernel made huge pages for {} of {} only: memory is fragmented",
            got.private_transparent,
            Bytes(bytes as u64)
        ));
    }
    Ok(words)
}
