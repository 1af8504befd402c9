//! PostgreSQL: a postmaster and a process for each connection, around one shared mapping.

mod cold_caches;
pub mod conf;
mod files;
mod socket;
pub mod title;

use crate::database_view::{ByKey, DatabaseView, Description};
use crate::engine::{Asking, Engine, Identity};
use crate::memory::default_huge_page;
use crate::process_table::{Candidate, Role, Table, base};
use crate::settings::bytes_of;
use title::Kind;
use untax_core::Reading::{self, Absent, Present};
use untax_core::database::{DataPlace, HugePageUse, Model, PoolUse, ThpWish, Traits};
use untax_core::io::Role as FileRole;
use untax_core::{Bytes, Interval};

/// `PGSTAT_MIN_INTERVAL` of src/backend/utils/activity/pgstat.c: a busy process hands its counts over once a
/// second. Up to version 14 every half second (`PGSTAT_STAT_INTERVAL`), to a collector that wrote them as often.
const COUNTS_LATE_MS: u32 = 1000;

/// The entry for PostgreSQL.
pub(crate) const ENGINE: Engine = Engine {
    id: "postgres",
    summary: "PostgreSQL",
    privilege: "root, or the OS user that runs the server",
    minimum_kernel: "5.6",
    cost: "one connection; `status` and `schedstat` of each process, `maps` of the postmaster",
    connection_model: "a process for each connection",
    usual_bottleneck: "CPU time per query, then the log at commit; with hundreds of connections, queues for the CPUs",
    reads: "settings, wait events, transactions, its log; page tables of each process; log and data files apart",
    unproven: "versions other than 15, 17 and 18",
    programs: &["postgres", "postmaster", "edb-postgres"],
    traits: || Traits {
        pool: PoolUse::Setting("huge_pages = on".to_owned()),
        requests_counter: Some("transactions".to_owned()),
        counts_late_ms: COUNTS_LATE_MS,
        logs_whole_pages: true,
        thp: ThpWish::of_all("madvise", false),
        ..Traits::default()
    },
    exports: &["PostmasterMain"],
    role,
    process_role: title::role,
    members: Table::descendants,
    settings: files::settings,
    places: |_| {
        vec![
            DataPlace::own("pg_wal", FileRole::Log),
            // Up to version 9.
            DataPlace::own("pg_xlog", FileRole::Log),
            DataPlace::own("pg_tblspc/*", FileRole::Data),
            // The server's messages.
            DataPlace::own("log", FileRole::Other),
        ]
    },
    // `base/pgsql_tmp/pgsql_tmp4012.0`.
    file_names: &[("pgsql_tm", FileRole::Temp)],
    describe,
    single_process: false,
    asking: Some(Asking {
        identities: &[Identity::Server],
        is_socket,
        looks_so: is_socket,
        over_tcp: true,
        ask: socket::ask,
    }),
};

fn is_socket(path: &str) -> bool {
    base(path).starts_with(".s.PGSQL.")
}

/// How many different cold base pages one buffer access touches.
///
/// A hit looks up the buffer's tag in a shared hash table (one page of the bucket directory, one
/// of the entries), pins the buffer (its descriptor: 64 bytes among one for each 8 KiB buffer),
/// and reads the block: its line pointers are on the first of its two base pages, the tuple is
/// as likely on either, so 1.5 pages for a row and nearly 2 for a binary search in an index leaf.
/// That is 4.5 to 5 pages for an access to a block that nobody touched lately. A lookup by key
/// makes one such access to the leaf and one to the table, and one to each upper index page;
/// those and their descriptors are few and stay in the TLB. With the usual two hot accesses of
/// four the mean is 2.5. A scan that comes back to the same block for each row touches next to
/// nothing new, hence the low end.
const PAGES_EACH: (f64, f64, f64) = (0.5, 2.5, 5.0);

/// A row that an index leads to: the leaf and the row's block, whatever was touched before. The block is
/// one page at least; with the page of the bucket, of the entry and of the descriptor, and what the row
/// or the search takes of the block's two pages, 5 at most (see [`PAGES_EACH`]). Rows in the order of the
/// index share their blocks, which then count one access.
///
/// Rows that are written at the end of a table, or of an index whose keys rise, go where the row before
/// went; those read by a scan of the whole table come block by block. Neither is counted here.
const BY_KEY: ByKey = ByKey {
    count: "tup_fetched",
    counter: "pg_stat_database.tup_fetched",
    blocks_each: 2.0,
    pages_each: Interval { low: 1.0, mid: 4.75, high: 5.0 },
};

/// The counter. Each backend adds its share to it at most once per second, when it is idle.
const COUNTER: &str = "pg_stat_database.blks_hit";

/// First arguments that make the program something else than a server.
const ONE_SHOT: [&str; 10] = [
    "--single",
    "--boot",
    "--check",
    "--describe-config",
    "--help",
    "-?",
    "--version",
    "-V",
    "--forkboot",
    "--show-bki",
];

fn role(candidate: &Candidate) -> Role {
    let arguments = candidate.arguments();
    let Some(first) = arguments.first() else { return Role::Unclear };
    if title::kind(first).is_some() {
        return Role::Worker;
    }
    let one_shot = arguments.get(1).is_some_and(|a| ONE_SHOT.contains(&a.as_str()));
    if one_shot || candidate.has(&["-C"]) { Role::Other } else { Role::Server }
}

fn describe(view: &DatabaseView) -> Description {
    let shared = view.memory.largest_shared.as_ref();
    let advanced = view.main.executable.value().is_some_and(|e| base(e) == "edb-postgres");
    let (low, mid, high) = PAGES_EACH;
    Description {
        product: if advanced { "EDB Postgres Advanced Server" } else { "PostgreSQL" }.to_owned(),
        version: version(view),
        model: Model::Process,
        connections: Present(connections(view)),
        data_directory: files::data_directory(view),
        data_bytes: shared.clone().map(|s| s.bytes),
        page_size_bytes: shared.and_then(|s| s.page_size_bytes.clone()),
        huge_pages: huge_pages(view),
        accesses: view.accesses(COUNTER, Interval::new(low, mid, high), Some(&BY_KEY)),
    }
}

/// Connections of clients by the titles of their processes; senders of replication are not
/// counted, as they come with standbys and not with load.
fn connections(view: &DatabaseView) -> u32 {
    let titles = view.processes().filter_map(|p| p.arguments.value()?.first());
    titles.filter(|title| title::kind(title) == Some(Kind::Client)).count() as u32
}

fn version(view: &DatabaseView) -> Reading<String> {
    let told = view.answer.as_ref().and_then(|answer| match &answer.version {
        Some(version) => Present(version.clone()),
        None => Absent("the server did not tell its version".to_owned()),
    });
    told.or_else(|| files::version(view)).or_else(|| version_in_path(view))
}

/// The major version in a path such as `/usr/lib/postgresql/15/bin/postgres` or
/// `/usr/pgsql-15/bin/postgres`.
fn version_in_path(view: &DatabaseView) -> Reading<String> {
    view.main.executable.as_ref().and_then(|path| {
        let directory = path.rsplit('/').nth(2).unwrap_or_default();
        let version = directory.trim_start_matches("pgsql-");
        if version.starts_with(|c: char| c.is_ascii_digit()) {
            Present(version.to_owned())
        } else {
            Absent(format!("{path} does not name the version"))
        }
    })
}

fn huge_pages(view: &DatabaseView) -> Reading<HugePageUse> {
    view.settings.as_ref().and_then(|settings| {
        let value = |name: &str| settings.values.get(name).map(String::as_str);
        let asked = match value("huge_pages") {
            Some(asked) => asked.to_lowercase(),
            None => return Absent(format!("huge_pages is not known ({})", settings.instead_of)),
        };
        let size_bytes = match value("huge_page_size").and_then(|v| bytes_of(v, Bytes(1024))) {
            Some(size) if size.0 > 0 => Present(size),
            _ => default_huge_page(view.host),
        };
        let told = value("shared_memory_size_in_huge_pages").and_then(|v| v.parse().ok());
        let (needed_pages, source) = match told {
            Some(pages) => (Present(pages), "shared_memory_size_in_huge_pages of the server"),
            None => (
                size_bytes.as_ref().and_then(|size| pages(view, *size)),
                "length of the shared mapping / page size",
            ),
        };
        let shared = view.memory.largest_shared.value();
        Present(HugePageUse {
            asked: asked_of(&asked),
            size_bytes,
            needed_pages,
            lengths_bytes: shared.map(|shared| shared.bytes).into_iter().collect(),
            source: source.to_owned(),
        })
    })
}

/// A file may spell the setting as any boolean.
fn asked_of(value: &str) -> String {
    match value {
        "true" | "yes" | "1" => "on".to_owned(),
        "false" | "no" | "0" => "off".to_owned(),
        other => other.to_owned(),
    }
}

fn pages(view: &DatabaseView, size: Bytes) -> Reading<u64> {
    view.memory.largest_shared.as_ref().and_then(|shared| match shared.bytes.pages_of(size) {
        Some(pages) => Present(pages),
        None => Absent("the size of a huge page is not known".to_owned()),
    })
}
