//! A container of runc, or a sandbox of gVisor, around a server: an OCI bundle without an image.
//!
//! Its root is an empty directory onto which this machine's programs are mounted read-only, and
//! the server's own directory writable, all inside the container's mount namespace.

use crate::account::Account;
use crate::network::Network;
use crate::program::words;
use crate::scratch::Scratch;
use crate::setup::{Runtime, Setup};
use crate::shell::Shell;
use crate::{SceneError, error::at, program};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directories of this machine that an installed program needs.
const MACHINE_PATHS: [&str; 5] = ["/usr", "/bin", "/lib", "/lib64", "/etc"];

const MACHINE_ID: &str = "/etc/machine-id";

/// Deletes container `$1` with the runtime `$2…`, which may still be making it.
const DELETE: &str = r#"
id=$1
shift
ticks=100
while "$@" state "$id" >/dev/null 2>&1 && [ "$ticks" -gt 0 ]; do
    "$@" delete --force "$id" 2>/dev/null || sleep 0.1
    ticks=$((ticks - 1))
done
"#;

/// Where a container is put, and what it sees besides the usual.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// The group below which its own one is made; where the runtime likes if there is none.
    pub(crate) group: Option<String>,
    /// Files and directories of this machine.
    pub(crate) shown: Vec<PathBuf>,
    /// The words that enter its network: gVisor is asked over a socket that exists in there alone.
    pub(crate) enter_network: Vec<String>,
}

impl Place {
    pub(crate) fn of(setup: &Setup) -> Self {
        Self {
            group: setup.group.map(|group| group.path().to_owned()),
            shown: setup.shown.iter().map(|path| path.to_path_buf()).collect(),
            enter_network: setup.network.map(Network::enter_command).unwrap_or_default(),
        }
    }

    fn cgroups_path(&self, id: &str) -> Option<String> {
        self.group.as_ref().map(|group| format!("{group}/{id}"))
    }
}

/// A container, deleted with this value.
pub(crate) struct Container {
    _guard: Shell,
    id: String,
    runtime_command: Vec<String>,
    bundle: PathBuf,
}

impl Container {
    /// Writes the bundle; nothing runs yet.
    pub(crate) fn new(
        runtime: Runtime,
        scratch: &Scratch,
        account: &Account,
        place: &Place,
        words: &[String],
    ) -> Result<Self, SceneError> {
        let command = [&place.enter_network[..], &runtime_command(runtime, scratch)?].concat();
        let (id, bundle) = (scratch.name().to_owned(), scratch.private("bundle"));
        let root = bundle.join("root");
        // What is mounted there gets the mode of this one: any user may put files there.
        let temporary = root.join("tmp");
        std::fs::create_dir_all(&temporary).map_err(at(&temporary))?;
        let anybody = Permissions::from_mode(0o1777);
        std::fs::set_permissions(&temporary, anybody).map_err(at(&temporary))?;
        let mut config = configuration(scratch, account, place, words);
        if runtime != Runtime::Clone {
            mount_own_machine_id(&bundle, &mut config)?;
        }
        let file = bundle.join("config.json");
        std::fs::write(&file, config.to_string()).map_err(at(&file))?;
        let guard =
            Shell::guard("echo", DELETE, &[std::slice::from_ref(&id), &command[..]].concat())?;
        Ok(Self { _guard: guard, id, runtime_command: command, bundle })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The command that runs the container.
    pub(crate) fn command(&self) -> Vec<String> {
        let bundle = self.bundle.to_string_lossy();
        [&self.runtime_command, &words(["run", "--bundle", &bundle, &self.id])[..]].concat()
    }

    /// Its first process, as this machine numbers it; of a sandbox the sandbox itself. Not from the
    /// runtime's pid file, which is written some time after the process starts.
    pub(crate) fn pid(&self) -> Result<u32, SceneError> {
        let program = format!("{} state", program::name(&self.runtime_command));
        let (first, options) = self
            .runtime_command
            .split_first()
            .ok_or_else(|| SceneError::Host { why: "a container without a runtime".to_owned() })?;
        let output = match Command::new(first).args(options).args(["state", &self.id]).output() {
            Ok(output) => output,
            Err(source) => return Err(SceneError::Start { program, source }),
        };
        let state: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        state["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).ok_or_else(|| {
            let output_end = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            SceneError::Failed { program, status: output.status.to_string(), output_end }
        })
    }
}

/// The command of a runtime. A sandbox has the machine's network, so that the server's
/// loopback port is ours too, and no control groups: it would want those of version 2.
fn runtime_command(runtime: Runtime, scratch: &Scratch) -> Result<Vec<String>, SceneError> {
    let find =
        |name: &str| program::find(name, name).map(|path| path.to_string_lossy().into_owned());
    match runtime {
        Runtime::Gvisor => {
            let state = format!("--root={}", scratch.private("runsc").display());
            Ok(words([&find("runsc")?, &state, "--network=host", "--ignore-cgroups"]))
        }
        Runtime::Oci(oci) => {
            let state = format!("--root={}", scratch.private("state").display());
            Ok([oci.words, &[state]].concat())
        }
        Runtime::Host | Runtime::Runc | Runtime::Clone | Runtime::Bubblewrap => {
            Ok(vec![find("runc")?])
        }
    }
}

/// Mounts a machine id of its own into a container, as a good image has one.
fn mount_own_machine_id(bundle: &Path, config: &mut Value) -> Result<(), SceneError> {
    let own = bundle.join("machine-id");
    // The kernel makes one that is unique.
    let id = program::host_text("/proc/sys/kernel/random/uuid")?.replace('-', "");
    std::fs::write(&own, id).map_err(at(&own))?;
    // On a machine without such a file there is no place to put one.
    if Path::new(MACHINE_ID).exists() {
        let source = own.to_string_lossy();
        let mount = json!({
            "destination": MACHINE_ID, "source": source, "type": "bind", "options": ["bind", "ro"],
        });
        config["mounts"].as_array_mut().into_iter().for_each(|mounts| mounts.push(mount.clone()));
    }
    Ok(())
}

/// Passes the signals that this shell gets on to the program that `$2…` runs, as signal `$1`: bubblewrap would
/// end without it, and the program be killed. The list of children ends without a line break, so `read` fails.
const FORWARD: &str = r#"
signal=$1
shift
"$@" &
outer=$!
trap 'read -r inner <"/proc/$outer/task/$outer/children"; kill -s "$signal" $inner' INT TERM
while :; do
    wait "$outer"
    status=$?
    kill -0 "$outer" 2>/dev/null || exit "$status"
done
"#;

/// The words before bubblewrap with which its program gets this signal when it is told to end.
pub(crate) fn forwarding_words(signal: &str) -> Vec<String> {
    words(["/bin/sh", "-c", FORWARD, "untax-lab", signal])
}

/// The words that run a program in namespaces of its own, which end with it; it sees what a container sees.
/// It may become the server's user, as a container's first process does.
pub(crate) fn bubblewrap_words(
    scratch: &Scratch,
    shown: &[PathBuf],
) -> Result<Vec<String>, SceneError> {
    let program = program::find("bwrap", "bubblewrap")?;
    let mut line = vec![program.to_string_lossy().into_owned()];
    line.extend(words([
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--die-with-parent",
        "--as-pid-1",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--perms",
        "1777",
        "--tmpfs",
        "/dev/shm",
        "--perms",
        "1777",
        "--tmpfs",
        "/tmp",
    ]));
    line.extend(["CAP_SETUID", "CAP_SETGID"].iter().flat_map(|cap| words(["--cap-add", cap])));
    let own = scratch.path().to_path_buf();
    let machine = MACHINE_PATHS.iter().map(PathBuf::from).chain(shown.iter().cloned());
    for path in machine {
        let path = path.to_string_lossy();
        line.extend(words(["--ro-bind", &path, &path]));
    }
    let own = own.to_string_lossy();
    line.extend(words(["--bind", &own, &own, "--chdir", &own, "--"]));
    Ok(line)
}

/// `config.json` of the OCI runtime specification.
fn configuration(scratch: &Scratch, account: &Account, place: &Place, words: &[String]) -> Value {
    let plain = [
        ("/proc", "proc"),
        ("/dev", "tmpfs"),
        ("/dev/shm", "tmpfs"),
        ("/sys", "sysfs"),
        ("/tmp", "tmpfs"),
    ];
    let mounts = plain.map(|(at, kind)| json!({"destination": at, "type": kind, "source": kind}));
    let bound = MACHINE_PATHS.map(|path| bind(path, "ro"));
    let own = bind(&scratch.word(""), "rw");
    let shown = place.shown.iter().map(|path| bind(&path.to_string_lossy(), "ro"));
    let mounts: Vec<Value> = mounts.into_iter().chain(bound).chain(shown).chain([own]).collect();
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
        "linux": {"namespaces": namespaces, "cgroupsPath": place.cgroups_path(scratch.name())},
    })
}

fn bind(path: &str, access: &str) -> Value {
    json!({
        "destination": path, "source": path, "type": "bind", "options": ["rbind", "nosuid", access],
    })
}
