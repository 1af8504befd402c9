//! A scratch PostgreSQL cluster.

use crate::error::at;
use crate::load::{Load, PGBENCH, Pgbench, SYSBENCH, Sysbench};
use crate::program::words;
use crate::release::POSTGRES;
use crate::scratch::free_port_or;
use crate::server::{Kind, Server, lines};
use crate::setup::{Runtime, Settings, Setup};
use crate::work::{self, Database, Stop, Work};
use crate::workload::Watched;
use crate::{SceneError, program};
use std::path::{Path, PathBuf};
use untax_host::Host;

/// SIGINT, not SIGQUIT: a process that gets SIGQUIT while it makes shared memory leaves it behind.
const KIND: Kind = Kind { user: "postgres", signal: "INT" };
const PACKAGE: &str = "postgresql";

/// Where Debian and its derivatives keep the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// No vacuuming in the middle of a measurement.
const SCRATCH: Settings =
    &[("listen_addresses", "127.0.0.1"), ("autovacuum", "off"), ("max_connections", "400")];

/// For clients elsewhere, which only a network of its own has.
const OPEN: Settings = &[("listen_addresses", "*")];
const OPEN_ACCESS: &str = "local all all trust\nhost all all 0.0.0.0/0 trust\n";

/// Without flushing and checkpoints: the data may be lost in a crash.
const NOT_DURABLE: Settings = &[
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("synchronous_commit", "off"),
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("max_wal_size", "16GB"),
    ("checkpoint_timeout", "1d"),
];

/// A running PostgreSQL; stopped and removed when dropped.
///
/// Clients connect over the socket only, which only root and the server's user reach; the server
/// listens on a port of the loopback interface too, but rejects connections there.
pub struct Postgres {
    server: Server,
    port: u16,
    /// Of clients, which may be of another version than the server.
    programs: Vec<PathBuf>,
}

impl Postgres {
    /// The installed server's program.
    pub fn find() -> Result<PathBuf, SceneError> {
        let directories = program_directories(VERSIONS.as_ref());
        program::find_in(directories.into_iter(), "postgres", PACKAGE)
    }

    /// Makes a cluster and starts it.
    pub fn start(runtime: Runtime, settings: Settings) -> Result<Self, SceneError> {
        Self::start_as(&Setup { runtime, settings, ..Setup::default() })
    }

    /// The same, set up in every way there is.
    pub fn start_as(setup: &Setup) -> Result<Self, SceneError> {
        let mut postgres = Self::new(setup)?;
        let initdb = postgres.server_program("initdb")?;
        let data = postgres.data_directory();
        let user = format!("--username={}", postgres.user());
        // No other process can connect in a network of its own.
        let host = if postgres.server.has_network() { "trust" } else { "reject" };
        let access = words(["--auth-local=trust", &format!("--auth-host={host}")]);
        let command = words([&initdb, "-D", &data, &user, "-N", "--locale=C", "-E", "UTF8"]);
        postgres.server.prepare(&[command, access].concat())?;
        if setup.port.is_some() {
            let file = format!("{}/pg_hba.conf", postgres.data_directory());
            postgres.server.scratch.write(&file, OPEN_ACCESS, &postgres.server.account)?;
        }
        postgres.launch(&[Self::open_settings(setup), setup.settings].concat())?;
        Ok(postgres)
    }

    fn open_settings(setup: &Setup) -> Settings<'static> {
        if setup.port.is_some() { OPEN } else { &[] }
    }

    fn new(setup: &Setup) -> Result<Self, SceneError> {
        let server = Server::new(setup, &KIND, &setup.release.unwrap_or(POSTGRES))?;
        let programs = program_directories(VERSIONS.as_ref());
        Ok(Self { server, port: free_port_or(setup.port)?, programs })
    }

    /// Starts a standby of this server, which is set up alike and applies this one's log. Both must be
    /// durable: otherwise nothing is logged that a standby could apply.
    pub fn standby(&self, setup: &Setup) -> Result<Self, SceneError> {
        let mut standby = Self::new(&Setup { port: None, ..*setup })?;
        let copy = standby.server_program("pg_basebackup")?;
        let (data, from) = (standby.data_directory(), format!("--dbname={}", self.address()));
        let options = words(["--checkpoint=fast", "--write-recovery-conf", "-D", &data, &from]);
        standby.server.prepare(&[vec![copy], options].concat())?;
        standby.launch(setup.settings)?;
        Ok(standby)
    }

    /// Where other servers and poolers of this machine connect to it.
    pub(crate) fn address(&self) -> String {
        let (socket, port, user) = (self.socket_directory(), self.port, self.user());
        format!("host={socket} port={port} user={user} dbname=postgres")
    }

    /// Stops the server in good order and starts it with `settings` instead of the earlier ones.
    /// The data stay.
    pub fn restart(&mut self, settings: Settings) -> Result<(), SceneError> {
        self.stop();
        self.launch(settings)
    }

    /// The same, in the runtime, the group, the network and on the CPUs of this setup.
    pub fn restart_as(&mut self, setup: &Setup) -> Result<(), SceneError> {
        self.stop();
        self.server.place(setup);
        self.launch(&[Self::open_settings(setup), setup.settings].concat())
    }

    /// Reads the tables of pgbench into memory.
    pub fn prewarm(&self) -> Result<(), SceneError> {
        self.sql("SELECT pg_prewarm('pgbench_accounts'), pg_prewarm('pgbench_accounts_pkey')")?;
        Ok(())
    }

    /// Stops the server in good order; its files stay until this value is dropped.
    pub fn stop(&mut self) {
        self.server.stop();
    }

    /// Stops the server in good order and starts it with its configuration file as it is now.
    pub fn restart_keeping_configuration(&mut self) -> Result<(), SceneError> {
        self.stop();
        self.open()
    }

    fn launch(&mut self, settings: Settings) -> Result<(), SceneError> {
        let (data, socket) = (self.data_directory(), self.socket_directory());
        let port = self.port.to_string();
        let own = [("port", port.as_str()), ("unix_socket_directories", socket.as_str())];
        let line = |name: &str, value: &str| format!("{name} = '{}'", value.replace('\'', "''"));
        let not_durable = if self.server.durable { &[] } else { NOT_DURABLE };
        let text = lines(&[SCRATCH, not_durable, &own, settings].concat(), line);
        let file = format!("{data}/postgresql.conf");
        self.server.scratch.write(&file, &text, &self.server.account)?;
        self.open()
    }

    fn open(&mut self) -> Result<(), SceneError> {
        let (data, socket, port) =
            (self.data_directory(), self.socket_directory(), self.port.to_string());
        let ready = if self.server.hides_sockets() {
            let ready =
                words([&self.client_program("pg_isready")?, "-q", "-h", "127.0.0.1", "-p", &port]);
            self.server.client_command(&ready)
        } else {
            words([&self.client_program("pg_isready")?, "-q", "-h", &socket, "-p", &port])
        };
        self.server.start(&words([&self.server_program("postgres")?, "-D", &data]), &ready)
    }

    /// The main process (the postmaster); `None` when it was stopped.
    pub fn pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// The port on 127.0.0.1, also part of the socket's name.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory of the socket.
    pub fn socket_directory(&self) -> String {
        self.server.scratch.word("")
    }

    /// The data directory.
    pub fn data_directory(&self) -> String {
        self.server.data_directory()
    }

    /// The id of its container, when it runs in one.
    pub fn container_id(&self) -> Option<&str> {
        self.server.container_id()
    }

    /// The name of the superuser.
    pub fn user(&self) -> &str {
        &self.server.account.name
    }

    /// Runs SQL as the superuser and gives its rows, one a line, fields separated by `|`.
    pub fn sql(&self, sql: &str) -> Result<String, SceneError> {
        let options = words(["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql]);
        self.server.scratch.run(&self.client("psql", options)?)
    }

    /// Runs a script of psql to its end.
    pub(crate) fn script(&self, script: &str) -> Result<(), SceneError> {
        let file = self.keep("script.sql", script)?;
        let options = words(["-XAtq", "-v", "ON_ERROR_STOP=1", "-f", &file]);
        self.server.scratch.run(&self.client("psql", options)?).map(drop)
    }

    /// Makes a tablespace in a directory of its name below this one.
    pub fn make_tablespace(&self, name: &str, below: &Path) -> Result<(), SceneError> {
        let (directory, account) = (below.join(name), &self.server.account);
        let owned = std::fs::create_dir(&directory).and_then(|()| {
            std::os::unix::fs::chown(&directory, Some(account.uid), Some(account.gid))
        });
        owned.map_err(at(&directory))?;
        let place = directory.to_string_lossy().replace('\'', "''");
        self.sql(&format!("CREATE TABLESPACE {name} LOCATION '{place}'")).map(drop)
    }

    /// Makes the tables of pgbench: 100,000 rows for each `scale`, packed to `fillfactor` percent
    /// of each block. 100 gives 15 MB for each scale; a lower one spreads the same rows over more
    /// memory, which takes less time to make.
    pub fn pgbench_fill(&self, scale: u32, fillfactor: u32) -> Result<(), SceneError> {
        let more: &[&str] = if self.server.durable { &[] } else { &["--unlogged-tables"] };
        self.fill_with(scale, fillfactor, more)
    }

    /// The same, full blocks of rows that outlive a server that is killed, though nothing is flushed.
    pub fn pgbench_fill_logged(&self, scale: u32) -> Result<(), SceneError> {
        self.fill_with(scale, 100, &[])
    }

    fn fill_with(&self, scale: u32, fillfactor: u32, more: &[&str]) -> Result<(), SceneError> {
        let (scale, fill) = (format!("--scale={scale}"), format!("--fillfactor={fillfactor}"));
        let mut options = words(["-i", "-q", &scale, &fill]);
        options.extend(more.iter().map(|option| (*option).to_owned()));
        self.server.scratch.run(&self.client("pgbench", options)?).map(drop)
    }

    /// Starts pgbench.
    pub fn pgbench(&self, load: &Pgbench) -> Result<Load, SceneError> {
        let command = self.client("pgbench", load.words())?;
        Load::start(&self.server.scratch, &command, load.seconds, PGBENCH)
    }

    /// Makes a table of `rows` rows, about 200 bytes each, for a script of sysbench.
    pub(crate) fn sysbench_fill(&self, script: &str, rows: u64) -> Result<(), SceneError> {
        let load = Sysbench { threads: 1, seconds: 0, rows };
        let command = load.words(script, "prepare", self.sysbench_options())?;
        self.server.scratch.run(&command).map(drop)
    }

    /// Starts sysbench on that table.
    pub(crate) fn sysbench(&self, load: &Sysbench, script: &str) -> Result<Load, SceneError> {
        let command = load.words(script, "run", self.sysbench_options())?;
        Load::start(&self.server.scratch, &command, load.seconds, SYSBENCH)
    }

    fn sysbench_options(&self) -> Vec<String> {
        let (host, port) = (self.socket_directory(), self.port);
        words([
            "--db-driver=pgsql",
            "--pgsql-db=postgres",
            &format!("--pgsql-host={host}"),
            &format!("--pgsql-port={port}"),
            &format!("--pgsql-user={}", self.user()),
        ])
    }

    /// Runs a script of psql again and again for so many seconds.
    pub(crate) fn repeat(&self, script: &str, seconds: u32) -> Result<Load, SceneError> {
        let file = self.keep("repeated.sql", script)?;
        let options = words(["-XAtq", "-v", "ON_ERROR_STOP=1", "-f", &file]);
        Load::repeat(&self.server.scratch, &self.client("psql", options)?, seconds)
    }

    /// Starts pgbench with scripts of our own: name, text, and how often each is drawn. Deadlocks are
    /// tried again, as applications do.
    pub fn scripts(
        &self,
        scripts: &[(&str, &str, u32)],
        clients: u32,
        seconds: u32,
    ) -> Result<Load, SceneError> {
        let command = self.client("pgbench", self.script_options(scripts, clients, seconds)?)?;
        Load::start(&self.server.scratch, &command, seconds, PGBENCH)
    }

    /// The same by way of a pooler on another port of the same directory of sockets.
    pub(crate) fn scripts_through(
        &self,
        port: u16,
        scripts: &[(&str, &str, u32)],
        clients: u32,
        seconds: u32,
    ) -> Result<Load, SceneError> {
        let mut options = self.script_options(scripts, clients, seconds)?;
        options.extend(words(["--protocol=simple", "-p", &port.to_string()]));
        Load::start(&self.server.scratch, &self.client("pgbench", options)?, seconds, PGBENCH)
    }

    fn script_options(
        &self,
        scripts: &[(&str, &str, u32)],
        clients: u32,
        seconds: u32,
    ) -> Result<Vec<String>, SceneError> {
        let load = Pgbench { clients, seconds, writes: true, ..Pgbench::default() };
        let mut options = load.words();
        options.push("--max-tries=10".to_owned());
        for (name, text, weight) in scripts {
            let file = self.keep(&format!("{name}.sql"), text)?;
            options.push(format!("--file={file}@{weight}"));
        }
        Ok(options)
    }

    /// Writes a file for its clients, and gives its path.
    pub(crate) fn keep(&self, name: &str, text: &str) -> Result<String, SceneError> {
        self.server.scratch.keep(name, text)
    }

    /// What tells it apart among the databases of a machine.
    pub(crate) fn watched(&self, role: &'static str) -> Watched {
        let pid = self.pid().unwrap_or_default();
        Watched { role, pid, data_directory: self.data_directory() }
    }

    fn client(&self, program: &str, options: Vec<String>) -> Result<Vec<String>, SceneError> {
        let (program, port) = (self.client_program(program)?, self.port.to_string());
        let host = if self.server.has_network() {
            "127.0.0.1".to_owned()
        } else {
            self.socket_directory()
        };
        let server = words([&program, "-h", &host, "-p", &port, "-U", self.user()]);
        Ok(self.server.client_command(&[server, options, words(["postgres"])].concat()))
    }

    fn server_program(&self, name: &str) -> Result<String, SceneError> {
        let directories = program_directories(&self.server.outside(VERSIONS));
        let directories: Vec<String> =
            directories.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let directories: Vec<&str> = directories.iter().map(String::as_str).collect();
        self.server.program(&directories, name, PACKAGE)
    }

    /// The path of a client's program, such as `pgbench`.
    pub fn client_program(&self, name: &str) -> Result<String, SceneError> {
        let directories = self.programs.iter().cloned();
        program::find_in(directories, name, PACKAGE).map(|path| path.to_string_lossy().into_owned())
    }
}

impl Stop for Postgres {
    fn stop(&mut self) {
        Self::stop(self);
    }
}

impl Database for Postgres {
    fn pid(&self) -> Option<u32> {
        Self::pid(self)
    }

    fn restart(&mut self, runtime: Runtime, settings: Settings) -> Result<(), SceneError> {
        self.server.runtime = runtime;
        Self::restart(self, settings)?;
        self.prewarm()
    }

    fn fill(&self, mebibytes: u64) -> Result<(), SceneError> {
        self.sql("CREATE EXTENSION IF NOT EXISTS pg_prewarm")?;
        self.pgbench_fill(scale(mebibytes), 100)
    }

    fn work(&self, work: Work, mebibytes: u64, seconds: u32) -> Result<Load, SceneError> {
        let plain = Pgbench { clients: work.clients, seconds, ..Pgbench::default() };
        let script = match work.kind {
            work::Kind::Reads | work::Kind::Pipelined(_) => return self.pgbench(&plain),
            work::Kind::Reconnect => return self.pgbench(&Pgbench { reconnect: true, ..plain }),
            // The standard script, without the branches: those are few, and so hot rows.
            work::Kind::Writes => WRITES.replace("ROWS", &(scale(mebibytes) * 100_000).to_string()),
            work::Kind::WithThinkTime => {
                let rows = (scale(mebibytes) * 100_000).to_string();
                THINK_TIME.replace("ROW", &format!("random(1, {rows})"))
            }
            work::Kind::HotRow => THINK_TIME.replace("ROW", "1"),
            work::Kind::Thinks => format!("{READS}\\sleep 20 ms\n"),
            work::Kind::Paced(per_s) => {
                let mut options = plain.words();
                options.push(format!("--rate={per_s}"));
                let command = self.client("pgbench", options)?;
                return Load::start(&self.server.scratch, &command, seconds, PGBENCH);
            }
            work::Kind::Batches | work::Kind::Sessions => READS.repeat(200),
            work::Kind::Scans => SCANS.to_owned(),
            work::Kind::Sorts => SORTS.to_owned(),
            work::Kind::Reports => READS.repeat(800) + SORTS,
            work::Kind::Spills => SPILLS.to_owned(),
            work::Kind::Fetches => FETCHES.to_owned(),
            work::Kind::Grows => GROWS.to_owned(),
        };
        let file = self.server.scratch.keep(&format!("work-{:?}.sql", work.kind), &script)?;
        let reconnect = work.kind == work::Kind::Sessions;
        let mut options = Pgbench { writes: true, reconnect, ..plain }.words();
        // Prepared statements would be prepared anew for each session.
        if matches!(work.kind, work::Kind::Batches | work::Kind::Sessions) {
            options.push("--protocol=simple".to_owned());
        }
        options.push(format!("--file={file}"));
        let command = self.client("pgbench", options)?;
        Load::start(&self.server.scratch, &command, seconds, PGBENCH)
    }
}

const READS: &str = "\\set aid random(1, 100000)\n\
    SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n";
const WRITES: &str = "\\set aid random(1, ROWS)\n\
    UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n";
/// With pauses, as a program has that computes between its requests.
const THINK_TIME: &str = "\\set aid ROW\n\
    BEGIN;\n\
    UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n\
    \\sleep 2 ms\n\
    COMMIT;\n\
    \\sleep 3 ms\n";
/// Through the page cache and no further, which takes little time on a CPU.
const SCANS: &str = "SELECT pg_prewarm('pgbench_accounts', 'read');\n";
const SORTS: &str = "SELECT aid FROM pgbench_accounts ORDER BY filler, -aid OFFSET 10000000;\n";

const SPILLS: &str = "SET work_mem = '1MB';\n\
    SELECT count(*) FROM \
    (SELECT random() r FROM generate_series(1, 1000000) ORDER BY r OFFSET 1) s;\n";
const FETCHES: &str = "SELECT * FROM pgbench_accounts LIMIT 2000;\n";
const GROWS: &str = "INSERT INTO pgbench_history (tid, bid, aid) VALUES (1, 1, 1);\n";

/// How many times 100,000 rows, with their index, are so many MiB.
fn scale(mebibytes: u64) -> u32 {
    u32::try_from(mebibytes / 15).unwrap_or(u32::MAX).max(1)
}

/// Where the programs may be: the newest of the versions that are there first, then where other
/// distributions have them.
fn program_directories(versions: &Path) -> Vec<PathBuf> {
    let mut versions: Vec<u32> = Host::live()
        .names(&versions.to_string_lossy())
        .into_value()
        .unwrap_or_default()
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    versions.sort_unstable();
    let newest_first = versions.iter().rev().map(|v| PathBuf::from(format!("{VERSIONS}/{v}/bin")));
    newest_first.chain(["/usr/local/bin", "/usr/bin"].map(PathBuf::from)).collect()
}
