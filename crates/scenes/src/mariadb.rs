//! A scratch MariaDB or MySQL server.

use crate::account::Account;
use crate::load::{Benchmark, Load, SYSBENCH, Sysbench};
use crate::program::{DIRECTORIES, words};
use crate::release::{MARIADB, Release};
use crate::scratch::free_port;
use crate::server::{Kind, Server, lines};
use crate::setup::{Runtime, Settings, Setup};
use crate::work::{self, Database, Stop, Work};
use crate::workload::Watched;
use crate::{SceneError, program};

const KIND: Kind = Kind { user: "mysql", signal: "TERM" };
const PACKAGE: &str = "mariadb-server";

/// Without flushing: the data may be lost in a crash.
const NOT_DURABLE: Settings =
    &[("innodb_flush_log_at_trx_commit", "0"), ("innodb_doublewrite", "0")];

const SCRATCH: Settings = &[
    ("bind-address", "127.0.0.1"),
    ("skip-log-bin", "1"),
    ("skip-name-resolve", "1"),
    ("max_connections", "400"),
    // Caches of storage engines that have no table here; they would take huge pages before InnoDB does.
    ("key_buffer_size", "1M"),
    ("loose-aria_pagecache_buffer_size", "1M"),
];

/// What MySQL needs besides: the plugin by which OS users connect without a password, and a directory
/// of its package less.
const MYSQL: Settings = &[
    ("plugin-load-add", "auth_socket.so"),
    ("secure-file-priv", ""),
    // A second port, with a protocol of its own.
    ("mysqlx", "0"),
];

/// The user of loads that connect without a password: see below.
pub(crate) const VISITOR: &str = "visitor";

/// The user of loads that connect over TCP without a password, where the server has a network of its
/// own: no other process can connect there.
const CREATE_TCP_USER: &str =
    "CREATE USER visitor@127.0.0.1; GRANT ALL ON sbtest.* TO visitor@127.0.0.1";

/// The user of loads that connect over MySQL's socket without a password: the directory of that socket lets
/// in the server's user and root alone. Such a load cannot be a user that `auth_socket` knows. MySQL offers
/// `caching_sha2_password` first; where two threads of a client load the plugin for it at once, MariaDB's
/// library (3.3) answers one of them with another, `dummy_fallback_auth`. A server that knows the user by the
/// socket takes that for the login and the next packet for one out of order (error 1156); for a user with a
/// password of that kind it asks again.
const CREATE_SOCKET_USER: &str = "CREATE USER IF NOT EXISTS visitor@localhost;\n\
                                  GRANT ALL ON sbtest.* TO visitor@localhost;\n";

/// The file of the statements with which MySQL lets OS users in.
const USERS: &str = "users.sql";

/// A running MariaDB or MySQL; stopped and removed when dropped. The user that runs this program connects over
/// the socket without a password. No other user can connect, except loads in a network of its own, and root
/// as the user of loads.
pub struct MariaDb {
    server: Server,
    port: u16,
    client: Account,
    release: Release,
}

impl MariaDb {
    /// Makes the system tables and starts the server.
    pub fn start(runtime: Runtime, settings: Settings) -> Result<Self, SceneError> {
        Self::start_as(&Setup { runtime, settings, ..Setup::default() })
    }

    /// The same, set up in every way there is.
    pub fn start_as(setup: &Setup) -> Result<Self, SceneError> {
        let release = setup.release.unwrap_or(MARIADB);
        let server = Server::new(setup, &KIND, &release)?;
        let mut mariadb = Self { server, port: free_port()?, client: Account::own()?, release };
        mariadb.configure(setup.settings)?;
        let install = if release.is_mysql { Self::initialise } else { Self::install };
        install(&mariadb)?;
        mariadb.launch()?;
        if mariadb.server.has_network() {
            mariadb.sql(CREATE_TCP_USER)?;
        }
        Ok(mariadb)
    }

    /// Makes the system tables of MariaDB.
    fn install(&self) -> Result<(), SceneError> {
        let install = self.server.program(&DIRECTORIES, "mariadb-install-db", PACKAGE)?;
        let user = format!("--auth-root-socket-user={}", self.client.name);
        let auth = "--auth-root-authentication-method=socket";
        let command = words([&install, &self.defaults(), auth, &user, "--skip-test-db"]);
        self.server.prepare(&command).map(drop)
    }

    /// Makes the system tables of MySQL, and the statements that each start runs.
    fn initialise(&self) -> Result<(), SceneError> {
        let (server, data) = (self.program()?, format!("--datadir={}", self.data_directory()));
        let quick = words(["--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0"]);
        let command = words([&server, "--no-defaults", "--initialize-insecure", &data]);
        self.server.prepare(&[command, words(["--secure-file-priv="]), quick].concat())?;
        let client = &self.client.name;
        let mut users = "ALTER USER root@localhost IDENTIFIED WITH auth_socket;\n".to_owned();
        if client != "root" {
            users += &format!(
                "CREATE USER IF NOT EXISTS '{client}'@localhost IDENTIFIED WITH auth_socket;\n\
                 GRANT ALL ON *.* TO '{client}'@localhost WITH GRANT OPTION;\n"
            );
        }
        users += CREATE_SOCKET_USER;
        self.server.scratch.write(USERS, &users, &self.server.account)
    }

    fn program(&self) -> Result<String, SceneError> {
        let name = if self.release.is_mysql { "mysqld" } else { "mariadbd" };
        self.server.program(&DIRECTORIES, name, PACKAGE)
    }

    /// Stops the server in good order and starts it with `settings` instead of the earlier ones.
    /// The data stay.
    pub fn restart(&mut self, settings: Settings) -> Result<(), SceneError> {
        self.stop();
        self.configure(settings)?;
        self.launch()
    }

    /// The same, in the runtime, the group, the network and on the CPUs of this setup.
    pub fn restart_as(&mut self, setup: &Setup) -> Result<(), SceneError> {
        self.stop();
        self.server.place(setup);
        self.configure(setup.settings)?;
        self.launch()
    }

    /// Stops the server in good order; its files stay until this value is dropped.
    pub fn stop(&mut self) {
        self.server.stop();
    }

    fn configure(&self, settings: Settings) -> Result<(), SceneError> {
        let (data, socket) = (self.data_directory(), self.socket());
        let (port, pid_file) = (self.port.to_string(), self.server.scratch.word("pid"));
        let own = [
            ("datadir", data.as_str()),
            ("socket", &socket),
            ("port", &port),
            ("pid-file", &pid_file),
        ];
        let line = |name: &str, value: &str| format!("{name} = {value}");
        let not_durable = if self.server.durable { &[] } else { NOT_DURABLE };
        let users = self.server.scratch.word(USERS);
        let product = [MYSQL, &[("init-file", &users)]].concat();
        let product = if self.release.is_mysql { &product[..] } else { &[] };
        let text = "[mysqld]\n".to_owned()
            + &lines(&[SCRATCH, product, not_durable, &own, settings].concat(), line);
        self.server.scratch.write("my.cnf", &text, &self.server.account)
    }

    fn launch(&mut self) -> Result<(), SceneError> {
        let ready = if self.server.hides_sockets() {
            let port = self.port.to_string();
            let tcp =
                ["--no-defaults", "--host=127.0.0.1", "--user=visitor", "--port", &port, "ping"];
            let ready = [words([&find("mariadb-admin")?]), words(tcp)].concat();
            self.server.client_command(&ready)
        } else {
            [self.client("mariadb-admin")?, words(["ping"])].concat()
        };
        self.server.start(&words([&self.program()?, &self.defaults()]), &ready)
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
        self.server.data_directory()
    }

    /// The id of its container, when it runs in one.
    pub fn container_id(&self) -> Option<&str> {
        self.server.container_id()
    }

    /// Runs SQL and gives its rows, one a line, fields separated by tabs.
    pub fn sql(&self, sql: &str) -> Result<String, SceneError> {
        let client = self.client("mariadb")?;
        self.server.scratch.run(&[client, words(["-BN", "-e", sql])].concat())
    }

    /// Makes a table of `rows` rows, about 200 bytes each.
    pub fn sysbench_fill(&self, rows: u64) -> Result<(), SceneError> {
        self.sql("CREATE DATABASE IF NOT EXISTS sbtest")?;
        let load = Sysbench { threads: 1, seconds: 0, rows };
        let command = load.words("oltp_point_select", "prepare", self.address_options())?;
        self.server.scratch.run(&self.server.client_command(&command))?;
        // Writes all of it to the disk: or the log is full of it, and what comes next waits.
        self.sql("USE sbtest; FLUSH TABLES sbtest1 FOR EXPORT; UNLOCK TABLES").map(drop)
    }

    /// Starts sysbench on the table that [`MariaDb::sysbench_fill`] made.
    pub fn sysbench_run(&self, load: &Sysbench) -> Result<Load, SceneError> {
        self.sysbench_script(load, "oltp_point_select")
    }

    /// Starts sysbench on the same table, updating single rows by primary key.
    pub fn sysbench_update(&self, load: &Sysbench) -> Result<Load, SceneError> {
        self.sysbench_script(load, "oltp_update_non_index")
    }

    pub(crate) fn sysbench_script(
        &self,
        load: &Sysbench,
        script: &str,
    ) -> Result<Load, SceneError> {
        let command = load.words(script, "run", self.address_options())?;
        let command = self.server.client_command(&command);
        Load::start(&self.server.scratch, &command, load.seconds, SYSBENCH)
    }

    /// The options of sysbench for the server's address and the user.
    fn address_options(&self) -> Vec<String> {
        let mut options = words(["--db-driver=mysql", "--mysql-db=sbtest"]);
        options.extend(if self.server.has_network() {
            let port = format!("--mysql-port={}", self.port);
            words(["--mysql-host=127.0.0.1", &port, &format!("--mysql-user={VISITOR}")])
        } else {
            let user = if self.release.is_mysql { VISITOR } else { &self.client.name };
            let user = format!("--mysql-user={user}");
            words([&format!("--mysql-socket={}", self.socket()), &user])
        });
        options
    }

    /// Runs SQL again and again for so many seconds.
    pub(crate) fn repeat(&self, sql: &str, seconds: u32) -> Result<Load, SceneError> {
        let options = words(["--local-infile=1", "-BN", "-e", sql, "sbtest"]);
        let command = [self.client("mariadb")?, options].concat();
        Load::repeat(&self.server.scratch, &command, seconds)
    }

    /// Runs a client of another kind to its end in the network that clients use.
    pub(crate) fn run(&self, command: &[String]) -> Result<String, SceneError> {
        self.server.scratch.run(&self.server.client_command(command))
    }

    /// Starts a client of another kind in the network that clients use.
    pub(crate) fn load(
        &self,
        command: &[String],
        seconds: u32,
        parse: fn(&str) -> Option<f64>,
    ) -> Result<Load, SceneError> {
        let command = self.server.client_command(command);
        Load::start(&self.server.scratch, &command, seconds, Benchmark::silent(parse))
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

    fn client(&self, program: &str) -> Result<Vec<String>, SceneError> {
        let user = format!("--user={}", self.client.name);
        Ok(words([&find(program)?, "--no-defaults", &format!("--socket={}", self.socket()), &user]))
    }

    fn defaults(&self) -> String {
        format!("--defaults-file={}", self.server.scratch.word("my.cnf"))
    }
}

impl Stop for MariaDb {
    fn stop(&mut self) {
        Self::stop(self);
    }
}

impl Database for MariaDb {
    fn pid(&self) -> Option<u32> {
        Self::pid(self)
    }

    fn restart(&mut self, runtime: Runtime, settings: Settings) -> Result<(), SceneError> {
        self.server.runtime = runtime;
        Self::restart(self, settings)?;
        self.sql("SELECT sum(length(pad)) FROM sbtest.sbtest1").map(drop)
    }

    fn fill(&self, mebibytes: u64) -> Result<(), SceneError> {
        self.sysbench_fill(rows(mebibytes))
    }

    fn work(&self, work: Work, mebibytes: u64, seconds: u32) -> Result<Load, SceneError> {
        let load = Sysbench { threads: work.clients, seconds, rows: rows(mebibytes) };
        let event = match work.kind {
            work::Kind::Reads | work::Kind::Pipelined(_) => return self.sysbench_run(&load),
            work::Kind::Writes => WRITE,
            work::Kind::WithThinkTime => {
                &THINK_TIME.replace("ROW", "sysbench.rand.uniform(1, ROWS)")
            }
            work::Kind::HotRow => &THINK_TIME.replace("ROW", "1"),
            work::Kind::Thinks => &format!("{READ}\nffi.C.usleep(20000)"),
            work::Kind::Paced(_) => {
                let why = "a paced load of MariaDB is not made; use PostgreSQL".to_owned();
                return Err(SceneError::Host { why });
            }
            work::Kind::Reconnect => &format!("{CONNECT}\n{READ}"),
            work::Kind::Batches => &BATCH.replace("READ", READ),
            work::Kind::Sessions => &format!("{CONNECT}\n{}", BATCH.replace("READ", READ)),
            work::Kind::Scans => SCAN,
            work::Kind::Sorts | work::Kind::Spills => SORT,
            work::Kind::Reports => &REPORT.replace("READ", READ),
            work::Kind::Fetches => FETCH,
            work::Kind::Grows => GROW,
        };
        let script = SCRIPT.replace("EVENT", event).replace("ROWS", &load.rows.to_string());
        let file = self.server.scratch.keep(&format!("work-{:?}.lua", work.kind), &script)?;
        self.sysbench_script(&load, &file)
    }
}

/// A script of sysbench for what its own scripts do not have.
const SCRIPT: &str = r#"
ffi = require("ffi")
ffi.cdef("int usleep(unsigned int)")
sysbench.cmdline.options = { table_size = {"rows", 1} }
function thread_init() driver = sysbench.sql.driver(); connection = driver:connect() end
function thread_done() connection:disconnect() end
function event() EVENT end
"#;
const WRITE: &str = r#"connection:query("UPDATE sbtest1 SET k = k + 1 WHERE id = " .. sysbench.rand.uniform(1, ROWS))"#;
/// With pauses, as a program has that computes between its requests.
const THINK_TIME: &str = r#"connection:query("BEGIN")
connection:query("UPDATE sbtest1 SET k = k + 1 WHERE id = " .. ROW)
ffi.C.usleep(2000)
connection:query("COMMIT")
ffi.C.usleep(3000)"#;
const CONNECT: &str = "connection:disconnect(); connection = driver:connect()";
const READ: &str =
    r#"connection:query("SELECT c FROM sbtest1 WHERE id = " .. sysbench.rand.uniform(1, ROWS))"#;
const BATCH: &str = "for i = 1, 8 do READ end";
const SCAN: &str = r#"connection:query("SELECT sum(length(pad)) FROM sbtest1")"#;
const SORT: &str =
    r#"connection:query("SELECT count(*) FROM (SELECT DISTINCT c, pad FROM sbtest1) AS whole")"#;
/// Of a twentieth of it, after other work.
const REPORT: &str = r#"for i = 1, 800 do READ end
connection:query("SELECT count(*) FROM (SELECT DISTINCT c, pad FROM sbtest1 WHERE id <= ROWS / 20) AS part")"#;

const FETCH: &str = r#"connection:query("SELECT * FROM sbtest1 LIMIT 1000")"#;
const GROW: &str = r#"connection:query("INSERT INTO sbtest1 (k, c, pad) VALUES (1, 'c', 'pad')")"#;

/// How many rows are so many MiB.
fn rows(mebibytes: u64) -> u64 {
    mebibytes * 4500
}

fn find(name: &str) -> Result<String, SceneError> {
    program::find(name, PACKAGE).map(|path| path.to_string_lossy().into_owned())
}
