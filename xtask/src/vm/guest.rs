//! A running guest: the emulator, the server of its root, and the lines between us and it.

use super::options::{Kernel, Run};
use crate::child::mortal;
use anyhow::{Context, Result, bail};
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, ExitCode, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How much of the console is shown when the guest failed.
const CONSOLE_LINES: usize = 40;

/// A guest. The kernel ends the emulator when this process ends, and the server of the root ends
/// with the emulator.
pub struct Guest {
    emulator: Child,
    server: Child,
    lines: Lines,
    directory: TempDir,
    deadline: Instant,
}

/// What comes out of the guest's three ports.
struct Lines {
    out: JoinHandle<io::Result<()>>,
    err: JoinHandle<io::Result<()>>,
    status: JoinHandle<io::Result<String>>,
}

/// The three ports, emulator's ends.
struct Ports([(&'static str, UnixStream); 3]);

impl Guest {
    /// Boots a guest that runs `run.command`.
    pub fn start(run: &Run, kernel: &Kernel) -> Result<Self> {
        let directory = directory_of_run(run)?;
        let socket = directory.path().join("root.socket");
        let server = serve_root(directory.path(), &socket)?;
        let (lines, ports) = connect()?;
        let emulator = emulate(run, kernel, directory.path(), &socket, &ports);
        // Our copies of the emulator's ends must close, or the lines would never end.
        drop(ports);
        let deadline = Instant::now() + Duration::from_secs(run.timeout);
        match emulator {
            Ok(emulator) => Ok(Self { emulator, server, lines, directory, deadline }),
            Err(e) => {
                end(server);
                Err(e)
            }
        }
    }

    /// Waits for the command's end and gives its status.
    pub fn finish(mut self, console: bool) -> Result<ExitCode> {
        let in_time = self.wait()?;
        end(self.emulator);
        end(self.server);
        self.lines.out.join().map_err(|_| anyhow::anyhow!("lost the guest's output"))??;
        self.lines.err.join().map_err(|_| anyhow::anyhow!("lost the guest's messages"))??;
        let status = self.lines.status.join().map_err(|_| anyhow::anyhow!("lost the status"))??;
        let status = status.trim().parse::<u8>();
        if console || status.is_err() {
            show(self.directory.path(), if console { usize::MAX } else { CONSOLE_LINES });
        }
        match status {
            Ok(status) => Ok(ExitCode::from(status)),
            Err(_) if in_time => bail!("the guest stopped before its command ended"),
            Err(_) => bail!("the command took longer than --timeout allows"),
        }
    }

    /// Whether the emulator ended by itself in time.
    fn wait(&mut self) -> io::Result<bool> {
        while Instant::now() < self.deadline {
            if self.emulator.try_wait()?.is_some() {
                return Ok(true);
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(false)
    }
}

/// A directory in the cache, because the guest must see it and has a `/tmp` of its own.
fn directory_of_run(run: &Run) -> Result<TempDir> {
    let runs = crate::paths::cache()?.join("guests");
    fs::create_dir_all(&runs)?;
    remove_stale(&runs)?;
    let prefix = format!("{}.", std::process::id());
    let directory = tempfile::Builder::new().prefix(&prefix).tempdir_in(&runs)?;
    let init = directory.path().join("init");
    fs::write(&init, include_str!("init.sh"))?;
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755))?;

    let mut words = std::env::current_dir()?.into_os_string().into_encoded_bytes();
    for word in &run.command {
        words.push(0);
        words.extend_from_slice(word.as_encoded_bytes());
    }
    fs::write(directory.path().join("command"), words)?;
    Ok(directory)
}

/// Removes the directories of runs whose process was killed before it could do so.
fn remove_stale(runs: &Path) -> Result<()> {
    for entry in fs::read_dir(runs)? {
        let (name, path) = entry.map(|entry| (entry.file_name(), entry.path()))?;
        let pid = name.to_string_lossy().split('.').next().unwrap_or_default().to_owned();
        if !Path::new("/proc").join(pid).exists() {
            fs::remove_dir_all(path)?;
        }
    }
    Ok(())
}

fn serve_root(directory: &Path, socket: &Path) -> Result<Child> {
    let listener = UnixListener::bind(socket)?;
    fcntl_setfd(&listener, FdFlags::empty())?;
    let said = fs::File::create(directory.join("server"))?;
    mortal("unshare")
        .args(["--mount", "--propagation", "slave", "sh", "-c", include_str!("share.sh"), "share"])
        .arg(listener.as_raw_fd().to_string())
        .stdout(said.try_clone()?)
        .stderr(said)
        .spawn()
        .context("cannot start the server of the guest's root")
}

fn connect() -> Result<(Lines, Ports)> {
    let (out, out_end) = UnixStream::pair()?;
    let (err, err_end) = UnixStream::pair()?;
    let (status, status_end) = UnixStream::pair()?;
    let lines = Lines {
        out: thread::spawn(move || copy(out, io::stdout())),
        err: thread::spawn(move || copy(err, io::stderr())),
        status: thread::spawn(move || io::read_to_string(status)),
    };
    Ok((lines, Ports([("out", out_end), ("err", err_end), ("status", status_end)])))
}

/// Copies as it comes, so that a command's progress is seen.
fn copy(mut from: UnixStream, mut to: impl Write) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            n => to.write_all(&buffer[..n])?,
        }
        to.flush()?;
    }
}

fn emulate(
    run: &Run,
    kernel: &Kernel,
    directory: &Path,
    socket: &Path,
    ports: &Ports,
) -> Result<Child> {
    let words = run.kernel_words(kernel, &directory.to_string_lossy());
    let mut command = mortal("qemu-system-x86_64");
    command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
    // One thread for all processors: with more, kernels die now and then while they change their
    // own code.
    command.args(["-machine", "q35", "-accel", "tcg,thread=single", "-cpu", "max,la57=off"]);
    command.args(run.machine_words().iter().flat_map(|w| w.split(' ')));
    command.arg("-kernel").arg(&kernel.image).arg("-append").arg(words);
    if let Some(initramfs) = &kernel.initramfs {
        command.arg("-initrd").arg(initramfs);
    }
    command.arg("-serial").arg(format!("file:{}", directory.join("console").display()));
    command.arg("-chardev").arg(format!("socket,id=root,path={}", socket.display()));
    command.args(["-device", "vhost-user-fs-pci,chardev=root,tag=untax"]);
    command.args(["-device", "virtio-serial-pci"]);
    for (name, end) in &ports.0 {
        fcntl_setfd(end, FdFlags::empty())?;
        command.arg("-chardev").arg(format!("socket,id={name},fd={}", end.as_raw_fd()));
        command.arg("-device").arg(format!("virtserialport,chardev={name},name={name}"));
    }
    command.stdout(Stdio::null()).spawn().context("cannot start setpriv")
}

/// Shows the last lines of what the server of the root and the guest's kernel said.
fn show(directory: &Path, lines: usize) {
    for name in ["server", "console"] {
        let said = fs::read(directory.join(name)).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let said: Vec<&str> = said.lines().collect();
        eprintln!("{}", said[said.len().saturating_sub(lines)..].join("\n"));
    }
}

/// Ends a child that may have ended already.
fn end(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}
