//! A scratch PostgreSQL cluster.

use crate::load::{Load, Pgbench, pgbench_tps};
use crate::scratch::free_port;
use crate::server::{Kind, Place, Server, lines, words};
use crate::{LabError, Settings, program};
use std::path::PathBuf;
use untax_host::Host;

const KIND: Kind = Kind { user: "postgres", abrupt: "QUIT", orderly: "INT" };
const PACKAGE: &str = "postgresql";

/// Where Debian and its kin keep the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// For data that nobody will miss: no flushing, no checkpoints or vacuuming in the middle of a
/// measurement.
const SCRATCH: Settings = &[
    ("listen_addresses", "127.0.0.1"),
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("synchronous_commit", "off"),
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("max_wal_size", "16GB"),
    ("checkpoint_timeout", "1d"),
    ("autovacuum", "off"),
    ("max_connections", "400"),
];

/// A running PostgreSQL; stopped and removed when dropped.
///
/// Clients come in over the socket alone, which only root and the server's user reach; the port on
/// the loopback interface listens but lets nobody in.
pub struct Postgres {
    server: Server,
    port: u16,
    programs: Vec<PathBuf>,
}

impl Postgres {
    /// Makes a cluster and starts it.
    pub fn start(place: Place, settings: Settings) -> Result<Self, LabError> {
        let server = Server::new(place, &KIND)?;
        let mut postgres = Self { server, port: free_port()?, programs: program_directories() };
        let initdb = postgres.program("initdb")?;
        let data = postgres.data_directory();
        let user = format!("--username={}", postgres.user());
        let access = words(["--auth-local=trust", "--auth-host=reject"]);
        let command = words([&initdb, "-D", &data, &user, "-N", "--locale=C", "-E", "UTF8"]);
        postgres.server.prepare(&[command, access].concat())?;
        postgres.launch(settings)?;
        Ok(postgres)
    }

    /// Stops the server in good order and starts it with `settings` instead of the earlier ones.
    /// The data stay.
    pub fn restart(&mut self, settings: Settings) -> Result<(), LabError> {
        self.stop();
        self.launch(settings)
    }

    /// Stops the server in good order; its files stay until this value is dropped.
    pub fn stop(&mut self) {
        self.server.stop();
    }

    fn launch(&mut self, settings: Settings) -> Result<(), LabError> {
        let (data, socket) = (self.data_directory(), self.socket_directory());
        let port = self.port.to_string();
        let own = [("port", port.as_str()), ("unix_socket_directories", socket.as_str())];
        let line = |name: &str, value: &str| format!("{name} = '{}'", value.replace('\'', "''"));
        let text = lines(&[SCRATCH, &own, settings].concat(), line);
        self.server.scratch.write("data/postgresql.conf", &text, &self.server.account)?;
        let ready = words([&self.program("pg_isready")?, "-q", "-h", &socket, "-p", &port]);
        self.server.start(&words([&self.program("postgres")?, "-D", &data]), &ready)
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
        self.server.scratch.word("data")
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
    pub fn sql(&self, sql: &str) -> Result<String, LabError> {
        let options = words(["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql]);
        self.server.scratch.run(&self.client("psql", options)?)
    }

    /// Makes the tables of pgbench: 100,000 rows for each `scale`, packed to `fillfactor` percent
    /// of each block. 100 gives 15 MB for each scale; a lower one spreads the same rows over more
    /// memory, which takes less time to make.
    pub fn pgbench_fill(&self, scale: u32, fillfactor: u32) -> Result<(), LabError> {
        let (scale, fill) = (format!("--scale={scale}"), format!("--fillfactor={fillfactor}"));
        let options = words(["-i", "-q", "--unlogged-tables", &scale, &fill]);
        self.server.scratch.run(&self.client("pgbench", options)?).map(drop)
    }

    /// Starts pgbench.
    pub fn pgbench(&self, load: &Pgbench) -> Result<Load, LabError> {
        let command = self.client("pgbench", load.words())?;
        Load::start(&self.server.scratch, &command, load.seconds, pgbench_tps)
    }

    fn client(&self, program: &str, options: Vec<String>) -> Result<Vec<String>, LabError> {
        let (program, port) = (self.program(program)?, self.port.to_string());
        let socket = self.socket_directory();
        let server = words([&program, "-h", &socket, "-p", &port, "-U", self.user()]);
        Ok([server, options, words(["postgres"])].concat())
    }

    fn program(&self, name: &str) -> Result<String, LabError> {
        let directories = self.programs.iter().cloned();
        program::find_in(directories, name, PACKAGE).map(|path| path.to_string_lossy().into_owned())
    }
}

/// Where the programs may be: the newest version first, then where other distributions have them.
fn program_directories() -> Vec<PathBuf> {
    let mut versions: Vec<u32> = Host::live()
        .names(VERSIONS)
        .into_value()
        .unwrap_or_default()
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    versions.sort_unstable();
    let newest_first = versions.iter().rev().map(|v| PathBuf::from(format!("{VERSIONS}/{v}/bin")));
    newest_first.chain(["/usr/local/bin", "/usr/bin"].map(PathBuf::from)).collect()
}
