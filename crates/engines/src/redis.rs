//! Redis and Valkey: one process that serves all clients from one thread and keeps all data in
//! its heap.

pub mod conf;
mod files;
mod socket;

use crate::database_view::{DatabaseView, Description};
use crate::engine::{Asking, Engine, Identity};
use crate::process_table::{Candidate, Role, Table, base};
use crate::thp::heap_page;
use socket::COUNTER;
use untax_core::Interval;
use untax_core::Reading::{Absent, Present};
use untax_core::database::{Model, PoolUse, ThpWish, Traits};
use untax_core::io::Role as FileRole;

/// The entry for Redis and its relatives.
///
/// Some packages make one file of all their programs, so that a server's program may be called
/// `redis-check-rdb`: what it was started as decides.
pub(crate) const ENGINE: Engine = Engine {
    id: "redis",
    summary: "Redis and Valkey",
    privilege: "root, or the OS user that runs the server",
    minimum_kernel: "5.6",
    cost: "one connection; `maps`, and up to 50 ms of `smaps_rollup`",
    connection_model: "one thread runs the commands of all connections",
    usual_bottleneck: "that one thread: the network stack for small values",
    reads: "`INFO`, settings, commands, new connections; append-only file apart",
    unproven: "clusters, more than one I/O thread",
    programs: &[
        "redis-server",
        "valkey-server",
        "redis-check-rdb",
        "valkey-check-rdb",
        "redis-check-aof",
        "valkey-check-aof",
    ],
    traits: || Traits {
        pool: PoolUse::Never,
        requests_counter: Some("total_commands_processed".to_owned()),
        connections_counter: Some("total_connections_received".to_owned()),
        thp: ThpWish::of_all("madvise", true),
        thp_off: Some((6, 2, "disable-thp yes in redis.conf".to_owned())),
        ..Traits::default()
    },
    exports: &["serverCron", "loadServerConfig"],
    role,
    process_role: |_| None,
    members: Table::descendants,
    settings: files::settings,
    places: |_| Vec::new(),
    // `appendonly.aof`, `appendonlydir/`.
    file_names: &[("appendon", FileRole::Log)],
    describe,
    single_process: true,
    asking: Some(Asking {
        identities: &[Identity::Server],
        is_socket: |_| true,
        looks_so: |path| base(path).contains("redis") || base(path).contains("valkey"),
        over_tcp: true,
        ask: socket::ask,
    }),
};

/// How many different cold base pages one command touches.
///
/// A command on a key reads a bucket of the hash table (8 bytes of an array as long as there are
/// keys), the entry, the key's text, the value's object and its content: each an allocation of
/// its own, scattered over the heap, but small ones that were made together may share a page, and
/// newer versions store entry and key, or object and content, as one. Hence 3 to 5, 4 at best
/// guess. Commands without a key touch none, those with many keys count once: the low end is 1,
/// the high end 6.
const PAGES_EACH: (f64, f64, f64) = (1.0, 4.0, 6.0);

/// What children call themselves behind `redis-` or `valkey-`: those that save the data or send them to
/// a replica, or work for a module.
const CHILDREN: [&str; 6] = [
    "rdb-bgsave",
    "aof-rewrite",
    "rdb-to-slaves",
    "rdb-to-replicas",
    "slot-migration-to-target",
    "module-fork",
];

fn role(candidate: &Candidate) -> Role {
    let Some(first) = candidate.arguments().first() else { return Role::Unclear };
    // A title such as `redis-server *:6379 [cluster]`, or a path.
    let program = base(first.split(' ').next().unwrap_or_default());
    let sentinel = program.ends_with("-sentinel")
        || first.trim_end().ends_with("[sentinel]")
        || candidate.has(&["--sentinel"]);
    if sentinel || program.contains("-check-") || candidate.has(&["--version", "-v", "--help"]) {
        return Role::Other;
    }
    // A server may have any title: its own begins with the name that it was started by.
    let is_child = ["redis-", "valkey-"]
        .iter()
        .filter_map(|prefix| program.strip_prefix(prefix))
        .any(|name| CHILDREN.contains(&name));
    if is_child { Role::Worker } else { Role::Server }
}

fn describe(view: &DatabaseView) -> Description {
    let told = |what: &str| Absent(format!("the server did not tell its {what}"));
    let resident = view.status("RssAnon", |s| s.resident_anonymous);
    let (low, mid, high) = PAGES_EACH;
    Description {
        product: product(view),
        version: view.answer.as_ref().and_then(|answer| match &answer.version {
            Some(version) => Present(version.clone()),
            None => told("version"),
        }),
        model: Model::Loop,
        connections: view.answer.as_ref().and_then(|answer| match answer.connections {
            Some(connections) => Present(connections),
            None => Absent("the server did not tell its connections".to_owned()),
        }),
        data_directory: view.directory.clone(),
        page_size_bytes: heap_page(view, &resident),
        data_bytes: resident,
        huge_pages: Absent("Redis and Valkey use no huge pages from a pool".to_owned()),
        accesses: view.accesses(COUNTER, Interval::new(low, mid, high), None),
    }
}

fn product(view: &DatabaseView) -> String {
    let told = view.answer.value().and_then(|answer| answer.product.clone());
    let first = view.arguments().first().map(String::as_str);
    let path = view.main.executable.value().map(String::as_str);
    let valkey = [first, path].into_iter().flatten().any(|name| base(name).contains("valkey"));
    told.unwrap_or_else(|| if valkey { "Valkey" } else { "Redis" }.to_owned())
}
