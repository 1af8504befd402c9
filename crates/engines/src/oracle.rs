//! Oracle Database: background processes and a server process for each session, around shared
//! segments. They do not descend from one another; their names carry the instance's (`SID`).
//!
//! Without a session nothing inside can be asked, and the parameter file is binary.

use crate::database_view::{DatabaseView, Description};
use crate::engine::Engine;
use crate::memory::default_huge_page;
use crate::process_table::{Candidate, Process, Role, Table};
use crate::settings::Values;
use untax_core::Bytes;
use untax_core::Reading::{self, Absent, Present};
use untax_core::database::{HugePageUse, Model, PoolUse, Segment, ThpWish, Traits};

/// The entry for Oracle Database.
pub(crate) const ENGINE: Engine = Engine {
    id: "oracle",
    summary: "Oracle Database",
    privilege: "root, or the OS user that runs the instance",
    minimum_kernel: "5.0",
    cost: "`status` and `schedstat` of each process, `maps` of one background process",
    connection_model: "a process for each connection (dedicated servers)",
    usual_bottleneck: "CPU time per query, then the redo log at commit",
    reads: "memory mappings and huge pages; the server is not asked",
    unproven: "all of it: read from host trees of our own making, no server was run",
    programs: &["oracle"],
    traits: || Traits {
        pool: PoolUse::Setting(SWITCH.to_owned()),
        thp: ThpWish::of_all("never", true),
        ..Traits::default()
    },
    exports: &[],
    role,
    process_role: |_| None,
    members,
    settings: |_| Values::none(UNASKED),
    places: |_| Vec::new(),
    file_names: &[],
    describe,
    single_process: false,
    asking: None,
};

/// How it is told to use huge pages. It takes none with automatic memory management, and none that its user
/// may not lock.
const SWITCH: &str =
    "USE_LARGE_PAGES = ONLY, without AMM (memory_target), and memlock for its user";

/// Why most of it is not known.
const UNASKED: &str = "Oracle tells its parameters in a session only, and untax opens none";

/// The process monitor, which every instance has exactly once.
const MONITOR: &str = "ora_pmon_";

fn role(candidate: &Candidate) -> Role {
    let first = candidate.arguments().first().map_or(candidate.name, String::as_str);
    match instance_name(first) {
        Some(name) => Role::Named { leads: first.starts_with(MONITOR), name: name.to_owned() },
        None => Role::Other,
    }
}

/// The instance in a name such as `ora_dbw0_ORCL`, or in a server process's command line such as
/// `oracleORCL (LOCAL=NO)`.
pub(crate) fn instance_name(title: &str) -> Option<&str> {
    let word = title.split([' ', '(']).next()?;
    let name = match word.strip_prefix("ora_") {
        Some(background) => background.split_once('_')?.1,
        None => word.strip_prefix("oracle")?,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "_$#".contains(c);
    (!name.is_empty() && name.chars().all(plain)).then_some(name)
}

/// All processes of the instance.
fn members(table: &Table, main: u32) -> Vec<u32> {
    let name = table.named_members(ENGINE.id).find_map(|(pid, name)| (pid == main).then_some(name));
    let same = table.named_members(ENGINE.id).filter(|(_, other)| Some(*other) == name);
    same.map(|(pid, _)| pid).collect()
}

fn describe(view: &DatabaseView) -> Description {
    let (data_bytes, page_size_bytes) = view.memory.of(may_be_sga);
    let unasked = || UNASKED.to_owned();
    Description {
        product: "Oracle Database".to_owned(),
        version: version(view),
        model: Model::Process,
        connections: Present(connections(view)),
        data_directory: Absent(unasked()),
        data_bytes,
        page_size_bytes,
        huge_pages: huge_pages(view),
        accesses: Absent(unasked()),
    }
}

/// What its segments need. `USE_LARGE_PAGES` is TRUE unless somebody set it: the instance takes huge
/// pages if it gets them, and runs on small ones without a word on the screen if it does not. With
/// automatic memory management, whose memory is files, it takes none.
fn huge_pages(view: &DatabaseView) -> Reading<HugePageUse> {
    view.memory.segments.as_ref().and_then(|segments| {
        let sga: Vec<&Segment> = segments.iter().filter(|s| may_be_sga(s)).collect();
        let files = sga.iter().any(|segment| segment.name.starts_with("/dev/shm/"));
        if sga.is_empty() || files {
            let why = if files { "automatic memory management takes none" } else { UNASKED };
            return Absent(why.to_owned());
        }
        let lengths: Vec<Bytes> = sga.iter().map(|segment| segment.bytes).collect();
        let size_bytes = default_huge_page(view.host);
        let needed_pages = size_bytes.as_ref().and_then(|size| match pages(&lengths, *size) {
            Some(pages) => Present(pages),
            None => Absent("the size of a huge page is not known".to_owned()),
        });
        Present(HugePageUse {
            asked: "try".to_owned(),
            size_bytes,
            needed_pages,
            lengths_bytes: lengths,
            source: "length of each segment / page size, and one page more for each".to_owned(),
        })
    })
}

/// As Oracle's own script counts them (`hugepages_settings.sh`, Doc ID 401749.1): one page more for
/// each segment.
fn pages(lengths: &[Bytes], size: Bytes) -> Option<u64> {
    let each = |length: &Bytes| Some(length.pages_of(size)?.saturating_add(1));
    lengths.iter().map(each).try_fold(0, |sum: u64, pages| Some(sum.saturating_add(pages?)))
}

/// System V segments, or files in `/dev/shm` with automatic memory management.
fn may_be_sga(segment: &Segment) -> bool {
    segment.shared
        && ["/SYSV", "/dev/shm/ora_", "/dev/hugepages"].iter().any(|p| segment.name.starts_with(p))
}

/// Server processes of sessions, by their command lines.
fn connections(view: &DatabaseView) -> u32 {
    let first = |p: &Process| p.arguments.value().and_then(|a| a.first().cloned());
    let titles = view.processes().filter_map(first);
    titles.filter(|title| title.starts_with("oracle") && title.contains("(LOCAL=")).count() as u32
}

/// The release in a path such as `/u01/app/oracle/product/19.3.0/dbhome_1/bin/oracle`.
fn version(view: &DatabaseView) -> Reading<String> {
    view.main.executable.as_ref().and_then(|path| {
        let mut parts = path.split('/').skip_while(|part| *part != "product").skip(1);
        match parts.next().filter(|part| part.starts_with(|c: char| c.is_ascii_digit())) {
            Some(version) => Present(version.to_owned()),
            None => Absent(format!("{path} does not name the version")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_segment_needs_a_page_more() {
        let lengths = [Bytes(6 << 30), Bytes::from_mib(3)];
        assert_eq!(pages(&lengths, Bytes::MIB_2), Some(3072 + 1 + 2 + 1));
        assert_eq!(pages(&lengths, Bytes(0)), None);
    }

    #[test]
    fn names_carry_the_instance() {
        assert_eq!(instance_name("ora_pmon_ORCL"), Some("ORCL"));
        assert_eq!(instance_name("ora_dbw0_DB_1"), Some("DB_1"));
        assert_eq!(instance_name("oracleORCL (LOCAL=NO)"), Some("ORCL"));
        assert_eq!(
            instance_name("oracleORCL (DESCRIPTION=(LOCAL=YES)(ADDRESS=(PROTOCOL=beq)))"),
            Some("ORCL")
        );
        for other in ["oracle", "ora_pmon", "asm_pmon_+ASM", "sqlplus", "", "oracle-exporter"] {
            assert_eq!(instance_name(other), None, "{other}");
        }
    }
}
