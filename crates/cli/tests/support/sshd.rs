//! An sshd on loopback with keys of its own, and a configuration of ssh that knows it by several names.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use untax_scenes::SceneError;

const PROGRAM: &str = "/usr/sbin/sshd";

/// Longer than it takes to start on a busy machine.
const STARTED: Duration = Duration::from_secs(60);

/// Where sshd locks its unprivileged part in.
const CAGE: &str = "/run/sshd";

/// One that runs until this is dropped.
pub struct Sshd {
    child: Child,
    folder: TempDir,
    made_cage: bool,
}

impl Sshd {
    /// Starts one. Its users' programs are looked for in `programs` first, by the name `own`.
    pub fn start(programs: &Path) -> Result<Self, SceneError> {
        if !Path::new(PROGRAM).exists() {
            let (program, package) = (PROGRAM.to_owned(), "openssh-server".to_owned());
            return Err(SceneError::Missing { program, package });
        }
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("tmp")).unwrap();
        let keys = ["server", "user", "own", "stranger"].map(|name| key(&path(name)));
        let [server, user, own, _] = keys;
        let place = format!("PATH={}:/usr/bin:/bin", programs.display());
        fs::write(path("authorized"), format!("{user}environment=\"{place}\" {own}")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        fs::write(path("known"), format!("[127.0.0.1]:{port} {server}")).unwrap();
        let made_cage = !Path::new(CAGE).exists() && fs::create_dir(CAGE).is_ok();
        let directory = folder.path().display();
        let configuration = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {directory}/server\nPidFile none\nUsePAM no\n\
             AuthorizedKeysFile {directory}/authorized\nStrictModes no\nPermitRootLogin prohibit-password\n\
             PermitUserEnvironment yes\nSetEnv TMPDIR={directory}/tmp\nMaxStartups 100\n"
        );
        fs::write(path("sshd_config"), configuration).unwrap();
        fs::write(path("ssh_config"), client(folder.path(), port)).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["-D", "-e", "-f"]).arg(path("sshd_config"));
        command.stderr(fs::File::create(path("log")).unwrap()).stdin(Stdio::null());
        let child = command.spawn().unwrap();
        let sshd = Self { child, folder, made_cage };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < STARTED, "{}", sshd.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(sshd)
    }

    /// The configuration for ssh.
    pub fn configuration(&self) -> PathBuf {
        self.folder.path().join("ssh_config")
    }

    /// What is in the directory in which its users make temporary files.
    pub fn temporary_files(&self) -> Vec<String> {
        let files = fs::read_dir(self.folder.path().join("tmp")).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// What it said.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

/// Makes a key, and gives its public half with the end of a line.
fn key(path: &Path) -> String {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path)
        .status()
        .unwrap();
    assert!(made.success());
    fs::read_to_string(path.with_extension("pub")).unwrap()
}

/// `user` and `own` are accepted, the key of `stranger` is not, the host's of `unknown` is in no file, and
/// nothing listens at `gone`.
fn client(folder: &Path, port: u16) -> String {
    let known = folder.join("known");
    let host = |name: &str, key: &str, known: &Path, port: u16| {
        format!(
            "Host {name}\n  HostName 127.0.0.1\n  Port {port}\n  User root\n  IdentitiesOnly yes\n  \
             IdentityFile {}/{key}\n  GlobalKnownHostsFile /dev/null\n  UserKnownHostsFile {}\n",
            folder.display(),
            known.display()
        )
    };
    let none = Path::new("/dev/null");
    [
        host("user", "user", &known, port),
        host("own", "own", &known, port),
        host("stranger", "stranger", &known, port),
        host("unknown", "user", none, port),
        host("gone", "user", &known, 1),
    ]
    .concat()
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if self.made_cage {
            let _ = fs::remove_dir(CAGE);
        }
    }
}
