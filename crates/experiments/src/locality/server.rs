//! The database of the experiment: three tables, each in a tablespace on either of two disks.

use super::error::LocalityError;
use super::limits::Unlimited;
use rustix::fs::{Advice, Mode, OFlags};
use std::path::Path;
use std::time::{Duration, Instant};
use untax_core::Bytes;
use untax_host::Host;
use untax_scenes::{Filesystem, Group, Load, Postgres, Setup, Volume};
use untax_trials::Interrupt;

/// Clients: more than CPUs, so that the disk always has requests.
pub(super) const CLIENTS: u32 = 8;

/// Tables, each read once by a request.
pub(super) const TABLES: u32 = 3;

/// Rows of a table, four to a block: 16 MiB, whose copy locks it for a second or two.
const ROWS: u32 = 8192;
const TABLE: Bytes = Bytes::from_mib(16);

/// The images of the disks: all tables with the server's own files, which are on the slow one, and all tables.
const SLOW_MIB: u64 = 256;
const FAST_MIB: u64 = 96;

/// Space that the bench takes.
pub(super) const DISK: Bytes = Bytes::from_mib(SLOW_MIB + FAST_MIB + 64);

/// One of so many blocks fits into the memory for files that the server gets beside its own.
const CACHED: u64 = 4;

const SETTINGS: [(&str, &str); 3] =
    [("shared_buffers", "16MB"), ("huge_pages", "off"), ("max_wal_size", "64MB")];

/// How long clients run before the memory that they take is read, and before their rate is.
const SETTLE: Duration = Duration::from_secs(3);

/// How long the rate without limits is counted.
const COUNT: Duration = Duration::from_secs(5);

/// A PostgreSQL with its load, without limits of time and disk.
pub(super) struct Server {
    // In this order: the load ends, then the server, then its group and its disks.
    pub(super) load: Load,
    pub(super) postgres: Postgres,
    pub(super) group: Group,
    pub(super) slow: Volume,
    pub(super) fast: Volume,
}

impl Server {
    /// Starts it with its tables on one disk, and its clients, which go on for so long.
    pub(super) fn start(base: &Path, load: Duration) -> Result<Self, LocalityError> {
        let group = Group::for_server()?;
        let slow = Volume::make(Filesystem::Ext4, base, SLOW_MIB)?;
        let fast = Volume::make(Filesystem::Ext4, base, FAST_MIB)?;
        let place = slow.path();
        let setup = Setup {
            group: Some(&group),
            disk: Some(&place),
            settings: &SETTINGS,
            ..Setup::default()
        };
        let postgres = Postgres::start_as(&setup)?;
        for table in 1..=TABLES {
            let [from, to] = spaces(table);
            postgres.make_tablespace(&from, &place)?;
            postgres.make_tablespace(&to, &fast.path())?;
            // In one transaction, so that no log is written of it.
            postgres.sql(&format!(
                "CREATE TABLE part_{table} (id int PRIMARY KEY USING INDEX TABLESPACE {from}, \
                 filler char(1900)) TABLESPACE {from}; \
                 INSERT INTO part_{table} SELECT n, 'x' FROM generate_series(1, {ROWS}) n"
            ))?;
            // Readers would change the blocks otherwise.
            postgres.sql(&format!("VACUUM (FREEZE, ANALYZE) part_{table}"))?;
        }
        postgres.sql("CHECKPOINT")?;
        flush(&place)?;
        let text = script();
        let load = postgres.scripts(&[("locality", &text, 1)], CLIENTS, load.as_secs() as u32)?;
        Ok(Self { load, postgres, group, slow, fast })
    }

    /// The memory that it needs for itself, and for a quarter of its tables.
    pub(super) fn memory(&self, interrupt: &Interrupt) -> Result<Bytes, LocalityError> {
        interrupt.sleep(SETTLE)?;
        Ok(Bytes(self.group.unreclaimable_bytes()? + data().0 / CACHED))
    }

    /// What it does now.
    pub(super) fn count(&mut self, interrupt: &Interrupt) -> Result<Unlimited, LocalityError> {
        interrupt.sleep(SETTLE)?;
        let (begun, seconds) = (Instant::now(), self.seconds());
        let (cpu_s, reads) = (self.group.cpu_s()?, self.reads()?);
        interrupt.sleep(COUNT)?;
        self.load.check()?;
        let (cpu_s, reads) = (self.group.cpu_s()? - cpu_s, self.reads()?.saturating_sub(reads));
        let length_s = begun.elapsed().as_secs_f64();
        let each = self.load.each_second();
        let counted = each.get(seconds..).unwrap_or_default();
        let per_s = untax_core::stats::mean(counted).unwrap_or(f64::NAN);
        let requests = per_s * length_s;
        Ok(Unlimited {
            per_s,
            cpu_s_of_request: cpu_s / requests,
            reads_of_request: reads as f64 / requests,
        })
    }

    /// Seconds of its load that are counted by now.
    pub(super) fn seconds(&self) -> usize {
        self.load.each_second().len()
    }

    /// Reads that the slow disk did so far.
    fn reads(&self) -> Result<u64, LocalityError> {
        let file = format!("/sys/dev/block/{}/stat", self.slow.number()?);
        let text = Host::live().text(&file);
        let first = |text: &String| text.split_whitespace().next()?.parse().ok();
        text.value().and_then(first).ok_or_else(|| {
            LocalityError::Refused(format!("{file} has no count of reads: {:?}", text.why()))
        })
    }

    /// Moves a table and its index to the fast disk, until all of it is there.
    pub(super) fn move_table(&self, table: u32) -> Result<(), LocalityError> {
        let [from, to] = spaces(table);
        self.forget(table)?;
        for kind in ["TABLE", "INDEX"] {
            self.postgres
                .sql(&format!("ALTER {kind} ALL IN TABLESPACE {from} SET TABLESPACE {to}"))?;
        }
        self.postgres.sql("CHECKPOINT")?;
        flush(&self.fast.path())
    }

    /// Takes a table and its index out of the memory for files. Its copy then reads them in few large requests, and
    /// locks the table for a moment: blocks that are in memory here and there would cut each read short, and some
    /// seconds without any request would be a change of their own.
    fn forget(&self, table: u32) -> Result<(), LocalityError> {
        for relation in [format!("part_{table}"), format!("part_{table}_pkey")] {
            let file = self.postgres.sql(&format!("SELECT pg_relation_filepath('{relation}')"))?;
            let path = Path::new(&self.postgres.data_directory()).join(file.trim());
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let forgotten = rustix::fs::open(&path, flags, Mode::empty())
                .and_then(|file| rustix::fs::fadvise(file, 0, None, Advice::DontNeed));
            forgotten.map_err(|errno| {
                LocalityError::File(path.clone(), "dropped from memory", errno.into())
            })?;
        }
        Ok(())
    }
}

/// The tables, without their indexes.
pub(super) fn data() -> Bytes {
    Bytes(u64::from(TABLES) * TABLE.0)
}

/// The tablespaces of a table on the slow disk and on the fast one.
fn spaces(table: u32) -> [String; 2] {
    [format!("slow_{table}"), format!("fast_{table}")]
}

/// What each client does: a row of each table, by a transaction of one statement.
fn script() -> String {
    let each = |form: &dyn Fn(u32) -> String, between: &str| {
        (1..=TABLES).map(form).collect::<Vec<_>>().join(between)
    };
    let draws = each(&|table| format!("\\set row_{table} random(1, {ROWS})\n"), "");
    let values = each(&|table| format!("length(part_{table}.filler)"), " + ");
    let tables = each(&|table| format!("part_{table}"), ", ");
    let rows = each(&|table| format!("part_{table}.id = :row_{table}"), " AND ");
    format!("{draws}SELECT {values} FROM {tables} WHERE {rows};\n")
}

/// Writes what a filesystem has in memory to its disk.
fn flush(directory: &Path) -> Result<(), LocalityError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let flushed = rustix::fs::open(directory, flags, Mode::empty()).and_then(rustix::fs::syncfs);
    flushed.map_err(|errno| {
        LocalityError::File(directory.to_owned(), "written to its disk", errno.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_statement_that_reads_a_row_of_each_table() {
        let script = script();
        assert_eq!(script.matches(';').count(), 1, "{script}");
        assert_eq!(script.matches("\\set").count(), TABLES as usize);
        assert!(script.contains("part_1.id = :row_1 AND part_2.id = :row_2 AND part_3.id"));
    }
}
