//! Containers that are not what they seem, beside a real PostgreSQL: an agent reads no file of the host for
//! them, is not held up, and tells the PostgreSQL as ever.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test looks at the machine by other ways than the code that it tests"
)]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::Ran;
use untax_scenes::{Pgbench, Postgres, Runtime, SceneError};

const LOAD: Pgbench =
    Pgbench { clients: 2, seconds: 300, writes: true, without_hot_rows: false, reconnect: false };

/// A port that only a file of the host says.
const SECRET: &str = "port = 17777\n";

/// A line of an exposition, should a newline of a name ever begin one.
const FORGED: &str = "untax_forged_total 1";

/// The files of a PostgreSQL that are read.
const FILES: [&str; 4] =
    ["postgresql.conf", "postgresql.auto.conf", "postmaster.pid", "PG_VERSION"];

/// Longer than a window and all that follows it take on a busy machine, and far shorter than a read of a FIFO
/// that nobody writes would.
const HELD_UP: Duration = Duration::from_secs(120);

/// A program by the name of a server, in a root of its own that holds its data directory.
struct Impostor(Child);

/// A shell that waits.
const WAITS: &str = "while :; do /usr/bin/sleep 600; done";

/// A server, in Perl, that answers whoever connects with a word of 93 GiB.
const ENDLESS: &str = r#"
    use Socket; $SIG{CHLD} = "IGNORE";
    socket(S, PF_INET, SOCK_STREAM, 0); bind(S, sockaddr_in(0, INADDR_LOOPBACK)); listen(S, 9);
    while (accept(C, S)) {
        if (!fork) { sysread(C, $_, 100); syswrite(C, "\$99999999999\r\n");
                     1 while syswrite(C, "a" x 65536); exit }
        close(C)
    }"#;

impl Impostor {
    /// A PostgreSQL that never answers. Its data directory is `data`, and at `place` in its own root.
    fn start(data: &Path, place: &str) -> Result<Self, SceneError> {
        fs::copy("/bin/dash", data.join("postgres")).unwrap();
        let own = format!("{place}/postgres");
        Self::run(data, place, &[&own, "-c", WAITS, "-D", place])
    }

    /// A Redis that answers without end.
    fn endless(data: &Path) -> Result<Self, SceneError> {
        fs::copy("/usr/bin/perl", data.join("redis-server")).unwrap();
        Self::run(data, "/data", &["/data/redis-server", "-e", ENDLESS])
    }

    fn run(data: &Path, place: &str, words: &[&str]) -> Result<Self, SceneError> {
        let mut command = Command::new("bwrap");
        command.args(["--unshare-pid", "--die-with-parent", "--ro-bind", "/usr", "/usr"]);
        command.args(["--proc", "/proc", "--dev", "/dev", "--symlink", "usr/lib", "/lib"]);
        command.args(["--symlink", "usr/lib64", "/lib64", "--bind"]).arg(data).arg(place);
        let child = command.args(words).stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        let missing = |_| SceneError::Missing {
            program: "bwrap".to_owned(),
            package: "bubblewrap".to_owned(),
        };
        Ok(Self(child.map_err(missing)?))
    }

    fn runs(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn directory(folder: &Path, name: &str) -> PathBuf {
    let data = folder.join(name);
    fs::create_dir(&data).unwrap();
    data
}

#[test]
fn impostors_neither_hold_an_agent_up_nor_show_it_files_of_the_host() {
    support::real(|| {
        let folder = tempfile::tempdir().unwrap();
        let (pipes, links) = (directory(folder.path(), "pipes"), directory(folder.path(), "links"));
        let secret = folder.path().join("secret");
        fs::write(&secret, SECRET).unwrap();
        for file in FILES {
            assert!(Command::new("mkfifo").arg(pipes.join(file)).status().unwrap().success());
            symlink(&secret, links.join(file)).unwrap();
        }
        let named = directory(folder.path(), "named");
        fs::write(named.join("postgresql.conf"), format!("port = 1\n{FORGED}\n")).unwrap();
        let mut impostors = [
            Impostor::start(&pipes, "/data")?,
            Impostor::start(&links, "/data")?,
            Impostor::start(&named, &format!("/data\n{FORGED}\n"))?,
            Impostor::endless(&directory(folder.path(), "endless"))?,
        ];
        let postgres = Postgres::start(Runtime::Host, &[("shared_buffers", "32MB")])?;
        postgres.pgbench_fill(1, 100)?;
        let _load = postgres.pgbench(&LOAD)?;
        let begun = Instant::now();
        let mut command = Command::new(env!("CARGO_BIN_EXE_untax"));
        let ran = Ran::from(&command.args(["agent", "--once", "--window", "1s"]).output().unwrap());
        assert!(begun.elapsed() < HELD_UP && ran.code == 0, "{}", ran.stderr);
        assert!(impostors.iter_mut().all(Impostor::runs));
        let told = |name: &str| ran.stdout.lines().filter(|line| line.starts_with(name)).count();
        assert!(told("untax_database_info{") >= 5, "they are told like any other: {}", ran.stdout);
        assert!(
            told("untax_database_active_seconds_total{") >= 1,
            "and the PostgreSQL is: {}",
            ran.stdout
        );
        assert!(!ran.stdout.contains("17777"), "a file of the host was read: {}", ran.stdout);
        assert_eq!(told(FORGED), 0, "{}", ran.stdout);
        let is_series = |line: &str| line.starts_with("untax_") || line.starts_with("# ");
        assert_eq!(ran.stdout.lines().find(|line| !is_series(line)), None);
        // The same files within their own root are read.
        fs::write(links.join("own"), SECRET).unwrap();
        fs::remove_file(links.join("postgresql.conf")).unwrap();
        symlink("/data/own", links.join("postgresql.conf")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_untax"));
        let ran = Ran::from(&command.args(["check", "--window", "1s", "--json"]).output().unwrap());
        assert!(ran.stdout.contains("17777"), "the test sees what is read: {}", ran.stderr);
        let endless = "a server that answers without end";
        assert!(ran.stdout.contains(endless), "it fills no memory: {}", ran.stdout);
        Ok(())
    });
}
