//! MySQL, MariaDB and Percona Server: one process with a thread for each connection.

pub mod conf;
mod files;
mod large_pages;
mod product;
mod socket;

use crate::database_view::{ByKey, DatabaseView, Description};
use crate::engine::{Asking, Engine, Identity};
use crate::memory::default_huge_page;
use crate::process_table::{Candidate, Role, Table, base};
use crate::settings::bytes_of;
use crate::thp::heap_page;
use product::product;
use socket::COUNTER;
use untax_core::Reading::{self, Absent, Present};
use untax_core::database::{HugePageUse, Model, PoolUse, ProcessRole, Segment, ThpWish, Traits};
use untax_core::io::Role as FileRole;
use untax_core::{Bytes, Interval};

/// Prefix of the names of InnoDB's own threads (MySQL 8.0.27 and later). These threads flush the log and read ahead
/// for the threads that serve clients.
const OF_INNODB: &str = "ib_";

/// The entry for MySQL and its relatives.
pub(crate) const ENGINE: Engine = Engine {
    id: "mysql",
    summary: "MySQL, MariaDB and Percona Server",
    privilege: "root, or the OS user that runs the server",
    minimum_kernel: "5.6",
    cost: "one connection; `schedstat` of each thread; `maps`, and up to 50 ms of `smaps_rollup`",
    connection_model: "a thread for each connection, in one process",
    usual_bottleneck: "CPU time per query, then the redo and binary logs at commit",
    reads: "settings, status counters, row-lock waits, temporary tables; log and data files apart",
    unproven: "MySQL 5.7 and 8, Percona Server",
    programs: &["mysqld", "mariadbd"],
    traits: || Traits {
        pool: PoolUse::Setting("large_pages = ON".to_owned()),
        requests_counter: Some("Questions".to_owned()),
        connections_counter: Some("Connections".to_owned()),
        memory_setting: Some("innodb_buffer_pool_size".to_owned()),
        has_temporary_tables: true,
        thp: ThpWish::of_all("madvise", false),
        ..Traits::default()
    },
    exports: &["_Z11mysqld_mainiPPc"],
    role,
    process_role: |name| name.starts_with(OF_INNODB).then_some(ProcessRole::Helper),
    members: Table::descendants,
    settings: files::settings,
    places: files::places,
    file_names: FILE_NAMES,
    describe,
    single_process: true,
    asking: Some(Asking {
        identities: &[Identity::Server, Identity::Root],
        // The other one speaks another protocol.
        is_socket: |path| !base(path).contains("mysqlx"),
        looks_so: |path| ["mysql.sock", "mysqld.sock", "mariadb.sock"].contains(&base(path)),
        // Only the Unix socket lets an OS user in without a password.
        over_tcp: false,
        ask: socket::ask,
    }),
};

/// Names of what it makes while it runs.
const FILE_NAMES: &[(&str, FileRole)] = &[
    // InnoDB: `ib_logfile0`, `#innodb_redo/#ib_redo7`, `ibtmp1`.
    ("ib_logfi", FileRole::Log),
    ("#ib_redo", FileRole::Log),
    ("ibtmp", FileRole::Temp),
    // Internal temporary tables (not `#sql-ib…` and `#sql-alter-…`, which ALTER TABLE builds), binary
    // logs, Aria's log.
    ("#sql_", FileRole::Temp),
    ("#sql-tem", FileRole::Temp),
    ("binlog.", FileRole::Log),
    ("mysql-bi", FileRole::Log),
    ("mariadb-", FileRole::Log),
    ("aria_log", FileRole::Log),
];

/// How many different cold base pages one read request of the buffer pool touches.
///
/// A request finds the page's descriptor through a cell of the page hash (2 pages), and reads the
/// frame of 16 KiB: its header on the first of four base pages, the directory of slots at the end
/// of the last, and the records that the binary search and the walk between two slots meet:
/// about 3 of the 4. That is 5 for a page that nobody touched lately, 6 with an overflow. A
/// lookup by primary key makes one request for each level of the tree, of which the root and the
/// upper level are hot, and an adaptive hash skips them: the mean over three levels is about 2.
/// A scan makes one request for hundreds of rows of a page that it then reads in order, hence the
/// low end.
const PAGES_EACH: (f64, f64, f64) = (0.5, 2.0, 6.0);

/// A row that is asked for by a key: one block, the leaf of the index, of one page at least and of 6 as
/// above at most. Rows that are read one after the other, or written with rising keys, go where the row
/// before went, and are not counted here.
const BY_KEY: ByKey = ByKey {
    count: "Handler_read_key",
    counter: "Handler_read_key",
    blocks_each: 1.0,
    pages_each: Interval { low: 1.0, mid: 5.0, high: 6.0 },
};

/// Arguments that make the program something else than a server.
const ONE_SHOT: [&str; 10] = [
    "--bootstrap",
    "--initialize",
    "--initialize-insecure",
    "--help",
    "-?",
    "--version",
    "-V",
    "--wsrep-recover",
    "--wsrep_recover",
    "--print-defaults",
];

fn role(candidate: &Candidate) -> Role {
    if candidate.arguments().is_empty() {
        return Role::Unclear;
    }
    if candidate.has(&ONE_SHOT) { Role::Other } else { Role::Server }
}

fn describe(view: &DatabaseView) -> Description {
    let mut version = view.answer.as_ref().and_then(|answer| match &answer.version {
        Some(version) => Present(version.clone()),
        None => Absent("the server did not tell its version".to_owned()),
    });
    version = version.or_else(|| files::version(view));
    let (mapped_bytes, page_size_bytes) = view.memory.of(may_be_buffer_pool);
    let (low, mid, high) = PAGES_EACH;
    Description {
        product: product(view),
        version,
        model: Model::Thread,
        connections: view.answer.as_ref().and_then(|answer| match answer.connections {
            Some(connections) => Present(connections),
            None => Absent("the server did not tell its connections".to_owned()),
        }),
        data_directory: files::data_directory(view),
        data_bytes: buffer_pool(view).map_or(mapped_bytes, Present),
        page_size_bytes: page_size(view, page_size_bytes),
        huge_pages: huge_pages(view),
        accesses: view.accesses(COUNTER, Interval::new(low, mid, high), Some(&BY_KEY)),
    }
}

/// The buffer pool is private anonymous memory, or pages of a pool that were mapped or attached.
fn may_be_buffer_pool(segment: &Segment) -> bool {
    segment.name.is_empty()
        || segment.name.starts_with("/anon_hugepage")
        || segment.name.starts_with("/SYSV")
}

/// The size of the buffer pool as the running server says; files may have changed since.
fn buffer_pool(view: &DatabaseView) -> Option<Bytes> {
    let settings = view.settings.value().filter(|settings| settings.source == "socket")?;
    bytes_of(settings.values.get("innodb_buffer_pool_size")?, Bytes(1))
}

/// Whether the buffer pool is in pages of a pool: MySQL maps nothing else from one. Other private memory of
/// MySQL 9 is some 250 MiB large in one piece, and so larger than many a buffer pool.
fn is_pooled(view: &DatabaseView) -> bool {
    let settings = view.settings.value();
    let size = settings.and_then(|settings| settings.values.get("innodb_buffer_pool_size"));
    let size = size.and_then(|size| bytes_of(size, Bytes(1)));
    let pooled: Bytes = view.memory.pooled.iter().copied().sum();
    product(view) != "MariaDB" && size.is_some_and(|size| size.0 > 0 && pooled >= size)
}

/// What the mappings say, but base pages may be transparent huge ones in truth. A process that
/// has no page of a pool needs no mapping to be looked at.
fn page_size(view: &DatabaseView, mapped: Reading<Bytes>) -> Reading<Bytes> {
    if is_pooled(view) {
        return default_huge_page(view.host);
    }
    let pooled = view.status.value().and_then(|s| s.hugetlb).is_none_or(|pooled| pooled.0 > 0);
    let huge = mapped.is_present() && mapped != view.facts.base_page_bytes;
    if huge || (pooled && !mapped.is_present()) {
        return mapped;
    }
    let resident = view.status("RssAnon", |s| s.resident_anonymous);
    heap_page(view, &resident)
}

/// `large_pages` falls back to base pages with no more than a line in the log.
fn huge_pages(view: &DatabaseView) -> Reading<HugePageUse> {
    view.settings.as_ref().and_then(|settings| {
        let on = match settings.values.get("large_pages").map(|v| v.to_uppercase()) {
            Some(value) => ["ON", "1", "TRUE"].contains(&value.as_str()),
            None => return Absent(format!("large_pages is not known ({})", settings.instead_of)),
        };
        let size_bytes = default_huge_page(view.host);
        let (lengths, source) = lengths(view, size_bytes.value().copied());
        let needed_pages = size_bytes.as_ref().and_then(|size| pages(&lengths, *size));
        Present(HugePageUse {
            asked: if on { "try" } else { "off" }.to_owned(),
            size_bytes,
            needed_pages,
            lengths_bytes: lengths.into_value().unwrap_or_default(),
            source: source.to_owned(),
        })
    })
}

/// The mappings that are, or would be, on pages of a pool. MariaDB asks for huge pages for its
/// log buffer and the caches of its other engines too, so what it has mapped from a pool is the
/// whole need; a server on base pages is asked for the settings that decide it, and of one that
/// cannot be asked only the larger mappings are known.
fn lengths(view: &DatabaseView, page: Option<Bytes>) -> (Reading<Vec<Bytes>>, &'static str) {
    if !view.memory.pooled.is_empty() {
        let lengths = view.memory.pooled.clone();
        return (Present(lengths), "length of each mapping from the pool / page size");
    }
    let settings = view.settings.value().filter(|settings| settings.source == "socket");
    let by_settings = settings.zip(page).and_then(|(settings, page)| {
        if product(view) == "MariaDB" {
            large_pages::lengths(&settings.values, page)
        } else {
            large_pages::of_mysql(&settings.values)
        }
    });
    if let Some(lengths) = by_settings {
        return (Present(lengths), "its settings, as the server rounds them / page size");
    }
    let lengths = view.memory.segments.as_ref().map(|segments| {
        segments.iter().filter(|s| may_be_buffer_pool(s)).map(|s| s.bytes).collect()
    });
    (lengths, "length of each large private mapping / page size")
}

/// Each mapping is rounded up to whole pages by itself.
fn pages(lengths: &Reading<Vec<Bytes>>, size: Bytes) -> Reading<u64> {
    lengths.as_ref().and_then(|lengths| {
        let pages: Vec<u64> = lengths.iter().filter_map(|bytes| bytes.pages_of(size)).collect();
        if pages.is_empty() {
            return Absent("no mapping is large enough to be the buffer pool".to_owned());
        }
        Present(pages.into_iter().fold(0, u64::saturating_add))
    })
}
