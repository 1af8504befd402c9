//! A filled table and the readers at it, as the bench sees them.

use super::control::{Control, Work};
use super::error::BenchError;
use super::job::{Job, Place, READ_PAGES};
use super::options::Model;
use crate::memory::FROZEN;
use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use untax_changes::Program;
use untax_core::Bytes;
use untax_host::{Host, process};
use untax_trials::Interrupt;

/// How often the bench looks at children that are not in a trial.
const LOOK: Duration = Duration::from_millis(2);

/// Share of a trial's length that the readers run before it counts: they come from rest, with
/// caches and TLBs that another table used.
const SETTLE: f64 = 0.1;

/// A table that is filled and sealed.
pub struct Filled {
    place: Place,
    file: OwnedFd,
    /// `KernelPageSize` of the table as the filler saw it; zero when it could not be read.
    pub page: Bytes,
    /// Memory of the table in transparent huge pages.
    pub transparent: Bytes,
}

impl Filled {
    /// Makes and fills a table. `progress` hears how many bytes are filled.
    pub fn make(
        program: &Program,
        place: Place,
        interrupt: &Interrupt,
        mut progress: impl FnMut(Bytes),
    ) -> Result<Self, BenchError> {
        let making = |source| BenchError::Table { page: place.page, source };
        let file = create(place).map_err(making)?;
        let (control, control_fd) = Control::create(0).map_err(making)?;
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let job = Job::Fill { table: place, threads };
        let handed = file.try_clone().map_err(making)?;
        let child = start(program, &job, handed.into(), control_fd.into());
        let mut filler = Offspring(vec![child.map_err(BenchError::Start)?]);
        loop {
            if let Some(status) = filler.0[0].try_wait().map_err(BenchError::Start)? {
                if !status.success() {
                    return Err(BenchError::Filler { page: place.page, status });
                }
                break;
            }
            progress(Bytes(control.filled_bytes().load(Relaxed)));
            interrupt.sleep(LOOK)?;
        }
        Ok(Self {
            place,
            file: seal(&file).map_err(making)?,
            page: Bytes(control.obtained_page_bytes().load(Relaxed)),
            transparent: Bytes(control.transparent_bytes().load(Relaxed)),
        })
    }
}

fn create(place: Place) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create("untax-table", place.page.memfd_flags())?;
    rustix::fs::ftruncate(&file, place.file_bytes().0)?;
    Ok(file)
}

/// Makes the table constant for good, and opens it anew for reading: kernels before 6.7 map a
/// sealed file as shared only when it was opened so.
fn seal(file: &OwnedFd) -> io::Result<OwnedFd> {
    rustix::fs::fcntl_add_seals(file, FROZEN)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Starts a child that works on a table; it gets the files that [`Job`] needs.
fn start(program: &Program, job: &Job, table: Stdio, control: Stdio) -> io::Result<Child> {
    READ_PAGES.command(program, job)?.stdin(table).stdout(control).spawn()
}

/// Children that end with this value.
struct Offspring(Vec<Child>);

impl Drop for Offspring {
    fn drop(&mut self) {
        // A child that ended by itself is fine, too; waiting frees the memory it held.
        self.0.iter_mut().for_each(|child| drop(child.kill()));
        self.0.iter_mut().for_each(|child| drop(child.wait()));
    }
}

/// Readers at one table, resting between trials.
pub struct Readers {
    place: Place,
    model: Model,
    children: Offspring,
    control: Control,
    count: u32,
}

impl Readers {
    /// Starts the readers. They touch all of the table before they are ready.
    pub fn start(
        program: &Program,
        table: &Filled,
        model: Model,
        readers: u32,
        seed: u64,
    ) -> Result<Self, BenchError> {
        let making = |source| BenchError::Table { page: table.place.page, source };
        let (control, control_fd) = Control::create(readers).map_err(making)?;
        let per_process = if model == Model::Process { 1 } else { readers };
        let mut children = Offspring(Vec::new());
        for first in (0..readers).step_by(per_process as usize) {
            let job = Job::Read { table: table.place, first, readers: per_process, seed };
            let file = |fd: &OwnedFd| fd.try_clone().map(Stdio::from).map_err(making);
            let child = start(program, &job, file(&table.file)?, file(&control_fd)?);
            children.0.push(child.map_err(BenchError::Start)?);
        }
        Ok(Self { place: table.place, model, children, control, count: readers })
    }

    /// Waits until all readers rest; `progress` hears how many do.
    pub fn ready(
        &mut self,
        interrupt: &Interrupt,
        mut progress: impl FnMut(u32),
    ) -> Result<(), BenchError> {
        loop {
            let resting = self.resting(self.count);
            progress(resting);
            if resting == self.count {
                return Ok(());
            }
            self.all_alive()?;
            interrupt.sleep(LOOK)?;
        }
    }

    /// How many of the first `readers` rest in this generation.
    fn resting(&self, readers: u32) -> u32 {
        let seen = self.control.generation();
        let rests = |r: &u32| self.control.line(*r).is_some_and(|line| line.is_resting(seen));
        (0..readers).filter(rests).count() as u32
    }

    /// One trial: reads per second of the first `readers` together.
    pub fn trial(
        &mut self,
        readers: u32,
        work: Work,
        length: Duration,
        interrupt: &Interrupt,
    ) -> Result<f64, BenchError> {
        self.control.start(readers, work);
        let measured = self.measure(readers, length, interrupt);
        self.control.stop();
        while self.resting(readers) < readers {
            self.all_alive()?;
            std::thread::sleep(LOOK);
        }
        let corrupt = (0..readers).find_map(|reader| self.control.line(reader)?.corrupt());
        match corrupt {
            Some(row) => Err(BenchError::Corrupt { page: self.place.page, row }),
            None => measured,
        }
    }

    fn measure(
        &self,
        readers: u32,
        length: Duration,
        interrupt: &Interrupt,
    ) -> Result<f64, BenchError> {
        interrupt.sleep(length.mul_f64(SETTLE))?;
        let (began, before) = (Instant::now(), self.reads(readers));
        interrupt.sleep(length)?;
        let (took, after) = (began.elapsed(), self.reads(readers));
        Ok(after.wrapping_sub(before) as f64 / took.as_secs_f64())
    }

    fn reads(&self, readers: u32) -> u64 {
        let lines = (0..readers).filter_map(|reader| self.control.line(reader));
        lines.map(|line| line.reads().load(Relaxed)).sum()
    }

    /// Page tables of the first `readers`, who all live.
    pub fn page_table_bytes(&self, readers: u32) -> Result<Bytes, BenchError> {
        let processes = if self.model == Model::Process { readers } else { 1 };
        let host = Host::live();
        let tables = self.children.0.iter().take(processes as usize).map(|child| {
            let status = process::status(&host, child.id()).into_value();
            status.and_then(|s| s.page_tables).ok_or(BenchError::PageTables { pid: child.id() })
        });
        tables.sum()
    }

    fn all_alive(&mut self) -> Result<(), BenchError> {
        for child in &mut self.children.0 {
            if let Some(status) = child.try_wait().map_err(BenchError::Start)? {
                return Err(BenchError::Reader { page: self.place.page, status });
            }
        }
        Ok(())
    }

    /// Pids of the readers' processes.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.children.0.iter().map(Child::id)
    }
}
