//! A scratch MariaDB server.

use crate::account::Account;
use crate::load::{Load, Sysbench, sysbench_tps};
use crate::scratch::free_port;
use crate::server::{Kind, Place, Server, lines, words};
use crate::{LabError, Settings, program};

const KIND: Kind = Kind { user: "mysql", abrupt: "TERM", orderly: "TERM" };
const PACKAGE: &str = "mariadb-server";

/// For data that nobody will miss.
const SCRATCH: Settings = &[
    ("bind-address", "127.0.0.1"),
    ("innodb_flush_log_at_trx_commit", "0"),
    ("innodb_doublewrite", "0"),
    ("skip-log-bin", "1"),
    ("skip-name-resolve", "1"),
    ("max_connections", "400"),
];

/// A running MariaDB; stopped and removed when dropped. Its `root` (or the user of that name who
/// runs this program) comes in over the socket without a password, and nobody else does.
pub struct MariaDb {
    server: Server,
    port: u16,
    client: Account,
}

impl MariaDb {
    /// Makes the system tables and starts the server.
    pub fn start(place: Place, settings: Settings) -> Result<Self, LabError> {
        let server = Server::new(place, &KIND)?;
        let mut mariadb = Self { server, port: free_port()?, client: Account::own()? };
        mariadb.configure(settings)?;
        let install = find("mariadb-install-db")?;
        let user = format!("--auth-root-socket-user={}", mariadb.client.name);
        let auth = "--auth-root-authentication-method=socket";
        let defaults = mariadb.defaults();
        mariadb.server.prepare(&words([&install, &defaults, auth, &user, "--skip-test-db"]))?;
        mariadb.launch()?;
        Ok(mariadb)
    }

    /// Stops the server in good order and starts it with `settings` instead of the earlier ones.
    /// The data stay.
    pub fn restart(&mut self, settings: Settings) -> Result<(), LabError> {
        self.stop();
        self.configure(settings)?;
        self.launch()
    }

    /// Stops the server in good order; its files stay until this value is dropped.
    pub fn stop(&mut self) {
        self.server.stop();
    }

    fn configure(&self, settings: Settings) -> Result<(), LabError> {
        let (data, socket) = (self.data_directory(), self.socket());
        let (port, pid_file) = (self.port.to_string(), self.server.scratch.word("pid"));
        let own = [
            ("datadir", data.as_str()),
            ("socket", &socket),
            ("port", &port),
            ("pid-file", &pid_file),
        ];
        let line = |name: &str, value: &str| format!("{name} = {value}");
        let text = "[mysqld]\n".to_owned() + &lines(&[SCRATCH, &own, settings].concat(), line);
        self.server.scratch.write("my.cnf", &text, &self.server.account)
    }

    fn launch(&mut self) -> Result<(), LabError> {
        let ready = [self.client("mariadb-admin")?, words(["ping"])].concat();
        self.server.start(&words([&find("mariadbd")?, &self.defaults()]), &ready)
    }

    /// The server's process; `None` when it was stopped.
    pub fn pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The socket.
    pub fn socket(&self) -> String {
        self.server.scratch.word("socket")
    }

    /// The data directory.
    pub fn data_directory(&self) -> String {
        self.server.scratch.word("data")
    }

    /// The id of its container, when it runs in one.
    pub fn container_id(&self) -> Option<&str> {
        self.server.container_id()
    }

    /// Runs SQL and gives its rows, one a line, fields separated by tabs.
    pub fn sql(&self, sql: &str) -> Result<String, LabError> {
        let client = self.client("mariadb")?;
        self.server.scratch.run(&[client, words(["-BN", "-e", sql])].concat())
    }

    /// Makes a table of `rows` rows, about 200 bytes each.
    pub fn sysbench_fill(&self, rows: u64) -> Result<(), LabError> {
        self.sql("CREATE DATABASE IF NOT EXISTS sbtest")?;
        let command = self.sysbench(&Sysbench { threads: 1, seconds: 0, rows }, "prepare")?;
        self.server.scratch.run(&command).map(drop)
    }

    /// Starts sysbench on the table that [`MariaDb::sysbench_fill`] made.
    pub fn sysbench_run(&self, load: &Sysbench) -> Result<Load, LabError> {
        let command = self.sysbench(load, "run")?;
        Load::start(&self.server.scratch, &command, load.seconds, sysbench_tps)
    }

    fn sysbench(&self, load: &Sysbench, what: &str) -> Result<Vec<String>, LabError> {
        let sysbench = program::find("sysbench", "sysbench")?;
        Ok(vec![
            sysbench.to_string_lossy().into_owned(),
            "oltp_point_select".to_owned(),
            "--db-driver=mysql".to_owned(),
            format!("--mysql-socket={}", self.socket()),
            format!("--mysql-user={}", self.client.name),
            "--mysql-db=sbtest".to_owned(),
            format!("--table-size={}", load.rows),
            format!("--threads={}", load.threads),
            format!("--time={}", load.seconds),
            "--rand-type=uniform".to_owned(),
            what.to_owned(),
        ])
    }

    fn client(&self, program: &str) -> Result<Vec<String>, LabError> {
        let user = format!("--user={}", self.client.name);
        Ok(words([&find(program)?, "--no-defaults", &format!("--socket={}", self.socket()), &user]))
    }

    fn defaults(&self) -> String {
        format!("--defaults-file={}", self.server.scratch.word("my.cnf"))
    }
}

fn find(name: &str) -> Result<String, LabError> {
    program::find(name, PACKAGE).map(|path| path.to_string_lossy().into_owned())
}
