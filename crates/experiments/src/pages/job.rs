//! The work of a child process: to fill a table, or to read it.
//!
//! A child gets the table's file as standard input and the control page as standard output: two
//! files, handed over by the means every process has, and nothing else is inherited.

use super::control::{Control, Work};
use super::keys::Keys;
use super::options::Page;
use super::table::{Corrupt, Layout, Table};
use crate::child::HiddenCommand;
use crate::memory::{SealedWords, SharedWords};
use crate::smaps;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use untax_core::Bytes;
use untax_host::Host;

/// Reads between two looks at the control page: far less than a trial even for rows of 64 KiB.
const BATCH: u32 = 64;

/// Words of a base page.
const PAGE_WORDS: usize = 512;

/// The hidden subcommand that does a [`Job`].
pub(crate) const READ_PAGES: HiddenCommand = HiddenCommand {
    name: "__read-pages",
    thread: c"untax-pages",
    run: |job| serde_json::from_str::<Job>(job)?.work(),
};

/// What a child is started for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Job {
    /// Write all rows.
    Fill {
        /// The table.
        table: Place,
        /// Fillers at once.
        threads: u32,
    },
    /// Read rows whenever the control page says so.
    Read {
        /// The table.
        table: Place,
        /// Number of the first reader in this process.
        first: u32,
        /// Readers in this process.
        readers: u32,
        /// What keys are drawn from.
        seed: u64,
    },
}

/// Where a table lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its form.
    pub layout: Layout,
    /// Its pages.
    pub page: Page,
}

impl Place {
    /// The size of the file: whole pages.
    pub fn file_bytes(&self) -> Bytes {
        let page = self.page.bytes();
        Bytes(self.layout.bytes().0.div_ceil(page.0) * page.0)
    }

    fn mapping(&self) -> (usize, usize) {
        (self.file_bytes().0 as usize, self.page.bytes().0 as usize)
    }
}

impl Job {
    /// Does the work; called in the child only.
    pub fn work(&self) -> io::Result<()> {
        let control = Control::open(rustix::stdio::stdout())?;
        match *self {
            Self::Fill { table, threads } => fill(&control, table, threads),
            Self::Read { table, first, readers, seed } => {
                read(&control, table, first..first + readers, seed)
            }
        }
    }
}

fn fill(control: &Control, place: Place, threads: u32) -> io::Result<()> {
    let (bytes, align) = place.mapping();
    let map = SharedWords::map(rustix::stdio::stdin(), bytes, align, place.page.advice())?;
    let layout = place.layout;
    // Slices of about 1 MiB, so that progress shows and threads end together.
    let slice = ((1 << 20) / (layout.row_words() * 8)).max(1);
    let next = AtomicU64::new(0);
    let fill_slices = || {
        loop {
            let from = next.fetch_add(slice, Relaxed);
            if from >= layout.rows {
                return;
            }
            layout.fill(map.words(), from, from + slice);
            let rows = slice.min(layout.rows - from);
            control.filled_bytes().fetch_add(rows * layout.row_words() * 8, Relaxed);
        }
    };
    std::thread::scope(|scope| {
        (0..threads).for_each(|_| drop(scope.spawn(fill_slices)));
    });
    report_pages(control, map.address());
    Ok(())
}

/// Tells what pages the kernel really gave. What cannot be read stays zero, which is no page
/// size, and the bench then says that it does not know.
fn report_pages(control: &Control, address: usize) {
    if let Some(found) = smaps::mapping_at(&Host::live(), address).into_value() {
        control.obtained_page_bytes().store(found.kernel_page.0, Relaxed);
        control.transparent_bytes().store(found.shared_transparent.0, Relaxed);
    }
}

fn read(
    control: &Control,
    place: Place,
    readers: std::ops::Range<u32>,
    seed: u64,
) -> io::Result<()> {
    let (bytes, align) = place.mapping();
    let map = SealedWords::map(rustix::stdio::stdin(), bytes, align, place.page.advice())?;
    let words = map.words();
    // Every page once: the bench is about warm data, so that no trial pays for minor faults.
    std::hint::black_box(words.iter().step_by(PAGE_WORDS).fold(0, |sum, word| sum ^ word));
    let too_few = || io::Error::from(io::ErrorKind::InvalidInput);
    let table = Table::new(place.layout, words).ok_or_else(too_few)?;
    let serve = |reader| {
        serve(control, &table, reader, Keys::new(seed, u64::from(reader), place.layout.rows));
    };
    std::thread::scope(|scope| {
        let (first, others) = (readers.start, readers.start + 1..readers.end);
        others.for_each(|reader| drop(scope.spawn(move || serve(reader))));
        serve(first);
    });
    Ok(())
}

/// Works in every trial that asks for this reader, and rests between. Ends with the bench: it is
/// killed.
fn serve(control: &Control, table: &Table<'_>, reader: u32, mut keys: Keys) {
    let Some(line) = control.line(reader) else { return };
    loop {
        let seen = control.generation();
        if let Some(work) = control.work(seen, reader) {
            while control.still(seen) {
                if let Err(Corrupt { row }) = batch(table, work, &mut keys) {
                    line.report_corrupt(row);
                    break;
                }
                // Ours alone to write: a load and a store, no locked instruction.
                line.reads().store(line.reads().load(Relaxed) + u64::from(BATCH), Relaxed);
            }
            while control.still(seen) {
                control.rest(seen);
            }
        } else {
            line.rests(seen);
            control.rest(seen);
        }
    }
}

fn batch(table: &Table<'_>, work: Work, keys: &mut Keys) -> Result<(), Corrupt> {
    match work {
        Work::Read => table.read(keys, BATCH),
        Work::Chase => table.chase(keys, BATCH),
    }
}
