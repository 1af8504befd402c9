//! A PgBouncer with a configuration file that it is given.

use crate::account::Account;
use crate::program::words;
use crate::scratch::Scratch;
use crate::shell::{Shell, TICK};
use crate::{SceneError, account, program};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The OS user of the Debian package.
const USER: &str = "postgres";

/// Where configurations keep the list of users, by the package's habit.
const USERS: &str = "/etc/pgbouncer/userlist.txt";

/// In namespaces of its own, which end with it: list of users `$1` in place of the machine's, and
/// a loopback interface where every port is free. Then the rest of the words.
const ENTER: &str = r#"
ip link set lo up
mount --bind "$1" "$2"
shift 2
exec "$@"
"#;

/// The longest that it may take to answer.
const READY: Duration = Duration::from_secs(30);

/// A running PgBouncer; stopped and removed when dropped.
///
/// It is reached over its Unix socket alone: it has a network of its own, so that a fixed port of
/// its configuration is free, whatever else runs here.
pub struct PgBouncer {
    shell: Shell,
    _scratch: Scratch,
    log: PathBuf,
}

impl PgBouncer {
    /// Starts it with exactly this file, and with a list of users that has one, whose password is
    /// given. Returns when `socket` is there.
    pub fn start(
        configuration: &Path,
        user: &str,
        password: &str,
        socket: &Path,
    ) -> Result<Self, SceneError> {
        if !account::is_root() {
            return Err(SceneError::NeedsRoot { what: "a network of its own" });
        }
        let pgbouncer = program::find("pgbouncer", "pgbouncer")?.to_string_lossy().into_owned();
        program::find("ip", "iproute2")?;
        let account = Account::for_server(USER)?;
        let scratch = Scratch::new(&account)?;
        scratch.write("users", &format!("\"{user}\" \"{password}\"\n"), &account)?;
        // As the packages have it: its own user reads it.
        let text = program::host_text(&configuration.to_string_lossy())?;
        scratch.write("pgbouncer.ini", &text, &account)?;
        let enter = words(["unshare", "--mount", "--net", "--", "/bin/sh", "-ec", ENTER, "enter"]);
        let arguments = words([&scratch.word("users"), USERS]);
        let start = words([&pgbouncer, &scratch.word("pgbouncer.ini")]);
        let line = [enter, arguments, account.prefix("TERM"), start].concat();
        let log = scratch.log(&words([&pgbouncer]));
        let shell = Shell::run(&line, "TERM", &log, scratch.path())?;
        let mut pooler = Self { shell, _scratch: scratch, log };
        pooler.wait_for(socket)?;
        Ok(pooler)
    }

    fn wait_for(&mut self, socket: &Path) -> Result<(), SceneError> {
        let since = Instant::now();
        while since.elapsed() < READY {
            if let Some(status) = self.shell.exit_status() {
                let (program, status) = ("pgbouncer".to_owned(), status.to_string());
                return Err(SceneError::Failed {
                    program,
                    status,
                    output_end: program::tail(&self.log),
                });
            }
            if socket.exists() {
                return Ok(());
            }
            std::thread::sleep(TICK);
        }
        Err(SceneError::Late {
            program: "pgbouncer".to_owned(),
            what: "ready",
            seconds: READY.as_secs(),
            output_end: program::tail(&self.log),
        })
    }

    /// What it has printed so far.
    pub fn output(&self) -> String {
        program::text(&self.log)
    }
}
