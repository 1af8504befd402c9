//! Starts and stops the servers of all engines, and waits until they answer.

use crate::account::{self, Account};
use crate::container::{Container, Place, bubblewrap_words, forwarding_words};
use crate::group::Group;
use crate::network::Network;
use crate::program;
use crate::release::Release;
use crate::root::Root;
use crate::scratch::Scratch;
use crate::setup::{Runtime, Settings, Setup};
use crate::shell::{Shell, TICK};
use crate::{SceneError, error::at};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The longest that a server may take to answer.
const READY: Duration = Duration::from_secs(120);

/// How one kind of server is started and stopped.
pub(crate) struct Kind {
    /// The OS user of the Debian package.
    pub(crate) user: &'static str,
    /// The signal after which it saves its data and ends, and leaves nothing in the kernel.
    pub(crate) signal: &'static str,
}

/// A scratch server. Fields are dropped in this order: the process, its container, its files.
pub(crate) struct Server {
    process: Option<Process>,
    pub(crate) scratch: Scratch,
    pub(crate) account: Account,
    pub(crate) runtime: Runtime,
    kind: &'static Kind,
    /// Where its programs are, when they are unpacked.
    root: Option<Root>,
    /// The words before its command that enter its group and network, and those before a client's.
    enter_command: Vec<String>,
    clients_enter_command: Vec<String>,
    has_network: bool,
    /// Where its container is put.
    container_place: Place,
    disk: Option<PathBuf>,
    pub(crate) durable: bool,
}

/// The running server, with the shell that stops it.
struct Process {
    shell: Shell,
    container: Option<Container>,
    pid: u32,
    log: PathBuf,
}

impl Server {
    /// Prepares the directories; nothing runs yet.
    pub(crate) fn new(
        setup: &Setup,
        kind: &'static Kind,
        release: &Release,
    ) -> Result<Self, SceneError> {
        let runtime = setup.runtime;
        let root = Root::of(release)?;
        if runtime != Runtime::Host && !account::is_root() {
            return Err(SceneError::NeedsRoot { what: "a server in a container" });
        }
        let account = Account::for_server(kind.user)?;
        let scratch = Scratch::new(&account)?;
        if let Some(disk) = setup.disk {
            std::os::unix::fs::chown(disk, Some(account.uid), Some(account.gid))
                .map_err(at(disk))?;
        }
        let disk = setup.disk.map(PathBuf::from);
        let mut server = Self {
            process: None,
            scratch,
            account,
            runtime,
            kind,
            root,
            enter_command: Vec::new(),
            clients_enter_command: Vec::new(),
            has_network: false,
            container_place: Place::default(),
            disk,
            durable: setup.durable,
        };
        server.place(setup);
        Ok(server)
    }

    /// Puts its next start into the runtime, the group, the network and onto the CPUs of this setup.
    pub(crate) fn place(&mut self, setup: &Setup) {
        let network = setup.network.map(Network::enter_command).unwrap_or_default();
        let group = setup.group.map(Group::enter_command).unwrap_or_default();
        self.runtime = setup.runtime;
        self.has_network = setup.network.is_some();
        self.enter_command = [&group[..], &network, setup.before_server].concat();
        self.clients_enter_command = [&network[..], setup.before_clients].concat();
        self.container_place =
            if setup.runtime.is_placed() { Place::of(setup) } else { Place::default() };
    }

    /// A data directory of its own, on another disk if it has one.
    pub(crate) fn data_directory(&self) -> String {
        let on_disk = |disk: &PathBuf| disk.join("data").to_string_lossy().into_owned();
        self.disk.as_ref().map_or_else(|| self.scratch.word("data"), on_disk)
    }

    /// Whether clients reach it over TCP only: a socket that a sandbox makes exists in the sandbox alone.
    pub(crate) fn is_tcp_only(&self) -> bool {
        self.has_network() || self.runtime.hides_sockets()
    }

    /// Whether even those that look after it must use TCP.
    pub(crate) fn hides_sockets(&self) -> bool {
        self.runtime.hides_sockets()
    }

    /// Whether it and its clients have a network of their own, which no other process uses.
    pub(crate) fn has_network(&self) -> bool {
        self.has_network
    }

    /// The command line of a client in the network that clients use.
    pub(crate) fn client_command(&self, words: &[String]) -> Vec<String> {
        [&self.clients_enter_command, words].concat()
    }

    /// Runs a program of the server's to its end, as the server's user.
    pub(crate) fn prepare(&self, words: &[String]) -> Result<String, SceneError> {
        let words = [self.enter_root(), self.account.prefix("KILL"), words.to_vec()].concat();
        program::run(&words, self.scratch.path(), &self.scratch.log(&words))
    }

    /// The path of a program of the server's as the server sees it, in one of these directories.
    pub(crate) fn program(
        &self,
        directories: &[&str],
        name: &str,
        package: &str,
    ) -> Result<String, SceneError> {
        let seen = |path: PathBuf| path.to_string_lossy().into_owned();
        let Some(root) = &self.root else {
            return program::find_in(directories.iter().map(PathBuf::from), name, package)
                .map(seen);
        };
        let is_there = |path: &PathBuf| root.join(&path.to_string_lossy()).is_file();
        let paths = directories.iter().map(|directory| Path::new(directory).join(name));
        paths.into_iter().find(is_there).map(seen).ok_or_else(|| SceneError::Missing {
            program: name.to_owned(),
            package: package.to_owned(),
        })
    }

    /// A path that the server sees, as this machine sees it.
    pub(crate) fn outside(&self, inside: &str) -> PathBuf {
        self.root.as_ref().map_or_else(|| PathBuf::from(inside), |root| root.join(inside))
    }

    /// The words before a command of the server's that enter its root.
    fn enter_root(&self) -> Vec<String> {
        let directories: Vec<&Path> =
            self.disk.as_deref().into_iter().chain([self.scratch.path()]).collect();
        self.root.as_ref().map(|root| root.enter_command(&directories)).unwrap_or_default()
    }

    /// Starts the server and waits until the `ready` program succeeds.
    pub(crate) fn start(&mut self, words: &[String], ready: &[String]) -> Result<(), SceneError> {
        self.process = None;
        let log = self.scratch.log(words);
        if self.runtime != Runtime::Host && self.root.is_some() {
            let why = "a server that is unpacked runs in no container".to_owned();
            return Err(SceneError::Host { why });
        }
        let (container, inner) = self.vessel(words)?;
        let enter = if self.runtime.is_placed() { &self.enter_command[..] } else { &[] };
        let whole = [enter, &inner].concat();
        let shell = Shell::run(&whole, self.kind.signal, &log, self.scratch.path())?;
        let mut process = Process { shell, container, pid: 0, log };
        process.wait_until_ready(ready, &program::name(words))?;
        self.process = Some(process);
        Ok(())
    }

    /// The words that run a command in its runtime, and the container, where there is one.
    fn vessel(&self, words: &[String]) -> Result<(Option<Container>, Vec<String>), SceneError> {
        let prefix = self.account.prefix(self.kind.signal);
        match self.runtime {
            Runtime::Host => Ok((None, [self.enter_root(), prefix, words.to_vec()].concat())),
            Runtime::Bubblewrap => {
                let enter = bubblewrap_words(&self.scratch, &self.container_place.shown)?;
                let forward = forwarding_words(self.kind.signal);
                Ok((None, [forward, enter, prefix, words.to_vec()].concat()))
            }
            runtime => {
                let (scratch, account) = (&self.scratch, &self.account);
                let place = &self.container_place;
                let container = Container::new(runtime, scratch, account, place, words)?;
                let command = container.command();
                Ok((Some(container), command))
            }
        }
    }

    /// The main process; `None` when it was stopped.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.pid)
    }

    /// The id of its container, when it runs in one.
    pub(crate) fn container_id(&self) -> Option<&str> {
        self.process.as_ref()?.container.as_ref().map(Container::id)
    }

    /// Stops the server in good order; its files stay until it is dropped.
    pub(crate) fn stop(&mut self) {
        self.process = None;
    }
}

impl Process {
    fn wait_until_ready(&mut self, ready: &[String], program: &str) -> Result<(), SceneError> {
        let since = Instant::now();
        while since.elapsed() < READY {
            if let Some(status) = self.shell.exit_status() {
                let (program, status) = (program.to_owned(), status.to_string());
                return Err(SceneError::Failed {
                    program,
                    status,
                    output_end: program::tail(&self.log),
                });
            }
            if answers(ready)? {
                return self.find_pid();
            }
            std::thread::sleep(TICK);
        }
        Err(SceneError::Late {
            program: program.to_owned(),
            what: "ready",
            seconds: READY.as_secs(),
            output_end: program::tail(&self.log),
        })
    }

    fn find_pid(&mut self) -> Result<(), SceneError> {
        let pid = &self.shell.first_line;
        let unexpected = |_| SceneError::Host { why: format!("'{pid}' is no process id") };
        self.pid = match &self.container {
            None => pid.parse().map_err(unexpected)?,
            Some(container) => container.pid()?,
        };
        Ok(())
    }
}

fn answers(ready: &[String]) -> Result<bool, SceneError> {
    let Some((program, arguments)) = ready.split_first() else { return Ok(true) };
    let status = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|source| SceneError::Start { program: program.clone(), source })?;
    Ok(status.success())
}

/// The lines of a configuration file, one for each setting, as `line` writes it.
pub(crate) fn lines(settings: Settings, line: impl Fn(&str, &str) -> String) -> String {
    settings.iter().map(|(name, value)| line(name, value) + "\n").collect()
}
