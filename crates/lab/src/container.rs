//! A container of runc around a server: an OCI bundle without an image.
//!
//! Its root is an empty directory onto which this machine's programs are mounted read-only, and
//! the server's own directory writable, all inside the container's mount namespace.

use crate::account::Account;
use crate::scratch::Scratch;
use crate::server::words;
use crate::shell::Shell;
use crate::{LabError, error::at, program};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What an installed program needs of the machine.
const MOUNTED: [&str; 5] = ["/usr", "/bin", "/lib", "/lib64", "/etc"];

/// Deletes container `$2` with runc `$1`, which may still be making it.
const DELETE: &str = r#"
ticks=100
while "$1" state "$2" >/dev/null 2>&1 && [ "$ticks" -gt 0 ]; do
    "$1" delete --force "$2" 2>/dev/null || sleep 0.1
    ticks=$((ticks - 1))
done
"#;

/// A container, deleted with this value.
pub(crate) struct Container {
    _guard: Shell,
    id: String,
    runc: PathBuf,
    bundle: PathBuf,
}

impl Container {
    /// Writes the bundle; nothing runs yet.
    pub(crate) fn new(
        scratch: &Scratch,
        account: &Account,
        words: &[String],
    ) -> Result<Self, LabError> {
        let runc = program::find("runc", "runc")?;
        let (id, bundle) = (scratch.name().to_owned(), scratch.join("bundle"));
        let root = bundle.join("root");
        std::fs::create_dir_all(&root).map_err(at(&root))?;
        let config = bundle.join("config.json");
        let text = configuration(scratch, account, words).to_string();
        std::fs::write(&config, text).map_err(at(&config))?;
        let program = runc.to_string_lossy().into_owned();
        let guard = Shell::guard("echo", DELETE, &[program, id.clone()])?;
        Ok(Self { _guard: guard, id, runc, bundle })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The command that runs the container.
    pub(crate) fn command(&self) -> Vec<String> {
        let word = |path: &Path| path.to_string_lossy().into_owned();
        words([&word(&self.runc), "run", "--bundle", &word(&self.bundle), &self.id])
    }

    /// Its first process, as this machine numbers it. Not from runc's pid file, which is written
    /// some time after the process starts.
    pub(crate) fn pid(&self) -> Result<u32, LabError> {
        let program = "runc state".to_owned();
        let output = match Command::new(&self.runc).args(["state", &self.id]).output() {
            Ok(output) => output,
            Err(source) => return Err(LabError::Start { program, source }),
        };
        let state: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        state["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).ok_or_else(|| {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            LabError::Failed { program, status: output.status.to_string(), said }
        })
    }
}

/// `config.json` of the OCI runtime specification.
fn configuration(scratch: &Scratch, account: &Account, words: &[String]) -> Value {
    let plain = [
        ("/proc", "proc"),
        ("/dev", "tmpfs"),
        ("/dev/shm", "tmpfs"),
        ("/sys", "sysfs"),
        ("/tmp", "tmpfs"),
    ];
    let mounts = plain.map(|(at, kind)| json!({"destination": at, "type": kind, "source": kind}));
    let bound = MOUNTED.map(|path| bind(path, "ro"));
    let own = bind(&scratch.word(""), "rw");
    let mounts: Vec<Value> = mounts.into_iter().chain(bound).chain([own]).collect();
    let namespaces = ["pid", "mount", "ipc", "uts"].map(|kind| json!({"type": kind}));
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": account.uid, "gid": account.gid},
            "args": words,
            "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"],
            "cwd": scratch.path(),
        },
        "root": {"path": "root"},
        "mounts": mounts,
        // The network is the machine's, so that the server's loopback port is ours too.
        "linux": {"namespaces": namespaces},
    })
}

fn bind(path: &str, access: &str) -> Value {
    json!({
        "destination": path, "source": path, "type": "bind", "options": ["rbind", "nosuid", access],
    })
}
