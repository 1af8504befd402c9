//! MongoDB: one process with a thread for each connection.

pub mod conf;
mod socket;
mod version;
mod wire;

use crate::database_view::{DatabaseView, Description};
use crate::engine::{Asking, Engine, Identity};
use crate::process_table::{Candidate, Role, Table, base};
use crate::settings::{Map, Values};
use crate::thp::heap_page;
use untax_core::Reading::{self, Absent, Present};
use untax_core::database::{DataPlace, Model, PoolUse, ThpWish, Traits};
use untax_core::io::Role as FileRole;

/// The entry for MongoDB. The router `mongos` holds no data and is left out.
pub(crate) const ENGINE: Engine = Engine {
    id: "mongodb",
    summary: "MongoDB",
    privilege: "root, or the OS user that runs the server",
    minimum_kernel: "5.6",
    cost: "one connection; `schedstat` of each thread; `maps`, and up to 50 ms of `smaps_rollup`",
    connection_model: "a thread for each connection, in one process",
    usual_bottleneck: "the cache of WiredTiger, then its journal",
    reads: "version, settings in its file; journal and data files apart",
    unproven: "all of it: read from host trees of our own making, no server was run",
    programs: &["mongod"],
    traits: || Traits {
        pool: PoolUse::Never,
        thp: vec![
            ThpWish::since((0, 0), "never", true),
            // mongodb.com: tcmalloc performance.
            ThpWish {
                defrag: Some("defer+madvise".to_owned()),
                max_ptes_none: Some(0),
                ..ThpWish::since((8, 0), "always", false)
            },
        ],
        ..Traits::default()
    },
    exports: &[],
    role,
    process_role: |_| None,
    members: Table::descendants,
    settings,
    places: |_| vec![DataPlace::own("journal", FileRole::Log)],
    file_names: &[],
    describe,
    single_process: true,
    asking: Some(Asking {
        identities: &[Identity::Server],
        is_socket: |_| true,
        looks_so: |path| base(path).starts_with("mongodb-"),
        over_tcp: true,
        ask: socket::ask,
    }),
};

/// Where packages put the file when the command line does not name it.
const DEFAULT_FILE: &str = "/etc/mongod.conf";

/// The data directory of a server that is not told another.
const DEFAULT_DIRECTORY: &str = "/data/db";

/// Options and the settings they stand for.
const OPTIONS: [(&str, &str); 7] = [
    ("dbpath", "storage.dbPath"),
    ("port", "net.port"),
    ("bind_ip", "net.bindIp"),
    ("wiredTigerCacheSizeGB", "storage.wiredTiger.engineConfig.cacheSizeGB"),
    ("storageEngine", "storage.engine"),
    ("maxConns", "net.maxIncomingConnections"),
    ("replSet", "replication.replSetName"),
];

fn role(candidate: &Candidate) -> Role {
    if candidate.arguments().is_empty() {
        return Role::Unclear;
    }
    let one_shot = candidate.has(&["--version", "--help", "-h", "--sysinfo", "--shutdown"]);
    if one_shot { Role::Other } else { Role::Server }
}

fn describe(view: &DatabaseView) -> Description {
    let resident = view.status("RssAnon", |s| s.resident_anonymous);
    // All else that a server counts it tells those alone that have a password.
    let unasked = "MongoDB tells it only to users that log in";
    let directory = data_directory(view);
    Description {
        product: "MongoDB".to_owned(),
        version: version::of(view, &directory),
        model: Model::Thread,
        connections: Absent(unasked.to_owned()),
        data_directory: directory,
        page_size_bytes: heap_page(view, &resident),
        data_bytes: resident,
        huge_pages: Absent("MongoDB uses no huge pages from a pool".to_owned()),
        accesses: Absent(unasked.to_owned()),
    }
}

fn data_directory(view: &DatabaseView) -> Reading<String> {
    match view.setting("storage.dbPath") {
        Some(path) => Present(path.to_owned()),
        None => view.settings.as_ref().and_then(|settings| match settings.source.as_str() {
            "files" => Present(DEFAULT_DIRECTORY.to_owned()),
            _ => Absent("neither file nor command line names it".to_owned()),
        }),
    }
}

fn settings(view: &DatabaseView) -> Values {
    let arguments = view.arguments();
    let given = option(arguments, &["--config", "-f"]);
    let path = given.clone().unwrap_or_else(|| DEFAULT_FILE.to_owned());
    let mut values = Values::default();
    match view.host.filter_lines_inside(view.pid(), &path, conf::keep) {
        Present(text) => {
            values.from_files = true;
            values.settings = conf::parse(&text);
        }
        gap => values.note_gap(gap),
    }
    values.settings.extend(from_arguments(arguments));
    if let gap @ (Reading::Denied(_) | Reading::Failed(_)) = &view.main.arguments {
        values.note_gap(gap.clone());
    }
    values
}

fn from_arguments(arguments: &[String]) -> Map {
    let named = |(name, setting): &(&str, &str)| {
        Some(((*setting).to_owned(), option(arguments, &[&format!("--{name}")])?))
    };
    OPTIONS.iter().filter_map(named).collect()
}

/// The value of `--name value` or `--name=value`.
fn option(arguments: &[String], names: &[&str]) -> Option<String> {
    let mut rest = arguments.iter().skip(1);
    while let Some(argument) = rest.next() {
        for name in names {
            match argument.strip_prefix(name) {
                Some("") => return rest.next().cloned(),
                Some(value) if value.starts_with('=') => return Some(value[1..].to_owned()),
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_command_line() {
        let line = "mongod --port=27018 --dbpath /srv/db --wiredTigerCacheSizeGB 4 --auth";
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let expected = [
            ("net.port", "27018"),
            ("storage.dbPath", "/srv/db"),
            ("storage.wiredTiger.engineConfig.cacheSizeGB", "4"),
        ];
        let expected = expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(from_arguments(&arguments), expected);
    }
}
