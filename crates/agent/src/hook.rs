//! The program that an administrator names to be run when a database's memory runs out.

use crate::exhaustion::Alarm;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use untax_host::Host;

/// It must end within this.
const DEADLINE: Duration = Duration::from_secs(30);

/// How often it is looked whether it has.
const GLANCE: Duration = Duration::from_millis(50);

/// Hooks that run at once.
const AT_ONCE: usize = 8;

/// Where programs are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A program and the user that runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    program: PathBuf,
    uid: u32,
    gid: u32,
}

impl Hook {
    /// Sees that the program is root's and that nobody else can write it, and that the user is not root. The error
    /// says what to change.
    pub fn new(program: &Path, user: &str, host: &Host) -> Result<Self, String> {
        let name = program.display();
        let found = std::fs::metadata(program).map_err(|error| format!("{name}: {error}"))?;
        let is_safe = found.is_file() && found.uid() == 0 && found.mode() & 0o022 == 0;
        if !program.is_absolute() || !is_safe {
            return Err(format!(
                "{name}: give an absolute path to a file that root owns and nobody else can write"
            ));
        }
        let accounts = host.text("/etc/passwd").into_value().unwrap_or_default();
        let (uid, gid) = account(&accounts, user)
            .ok_or_else(|| format!("/etc/passwd has no user {user}; name one that it has"))?;
        if uid == 0 {
            return Err(
                "the hook does not run as root: name the database's own user, say".to_owned()
            );
        }
        Ok(Self { program: program.to_owned(), uid, gid })
    }

    fn command(&self, alarm: &Alarm) -> Command {
        let mut command = Command::new(&self.program);
        let seconds = alarm
            .seconds_left
            .map_or_else(|| "unknown".to_owned(), |seconds| format!("{seconds:.0}"));
        command.arg(&alarm.database).arg(seconds);
        command.env_clear().env("PATH", PATH).current_dir("/").uid(self.uid).gid(self.gid);
        // A group of its own, so that all of it can be ended.
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

fn account(passwd: &str, user: &str) -> Option<(u32, u32)> {
    let one = |line: &str| {
        let mut fields = line.split(':');
        let (name, _, uid, gid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        (name == user).then(|| Some((uid.parse().ok()?, gid.parse().ok()?)))?
    };
    passwd.lines().find_map(one)
}

/// The hooks that run, and how those ended that do not any more.
pub(crate) struct Hooks {
    hook: Option<Hook>,
    running: usize,
    sender: Sender<String>,
    ended: Receiver<String>,
}

impl Hooks {
    pub fn new(hook: Option<Hook>) -> Self {
        let (sender, ended) = channel();
        Self { hook, running: 0, sender, ended }
    }

    /// Starts it, without waiting for its end.
    pub fn start(&mut self, alarm: &Alarm, say: &impl Fn(&str)) {
        let Some(hook) = &self.hook else { return };
        if self.running >= AT_ONCE {
            say(&format!(
                "the hook is not run for {}: {AT_ONCE} of them run already",
                alarm.database
            ));
            return;
        }
        let (mut command, sender, database) =
            (hook.command(alarm), self.sender.clone(), alarm.database.clone());
        let watch = move || {
            let how = run(&mut command, DEADLINE);
            let _ = sender.send(format!("the hook for {database} {how}"));
        };
        if std::thread::Builder::new().name("untax-hook".to_owned()).spawn(watch).is_ok() {
            self.running += 1;
        }
    }

    /// Says of those that ended since.
    pub fn say_ended(&mut self, say: &impl Fn(&str)) {
        for how in self.ended.try_iter() {
            self.running -= 1;
            say(&how);
        }
    }
}

/// Runs a command to its end, or ends it at its deadline. Gives how it ended.
fn run(command: &mut Command, deadline: Duration) -> String {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return format!("cannot be started: {error}"),
    };
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return format!("ended: {status}"),
            Ok(None) if begun.elapsed() < deadline => std::thread::sleep(GLANCE),
            _ => {
                let group = rustix::process::Pid::from_child(&child);
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
                let _ = child.wait();
                return format!("was killed after {} s", deadline.as_secs());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_host::Record;

    #[test]
    fn a_hook_is_roots_program_and_another_users_process() {
        let accounts = "root:x:0:0::/:/bin/sh\ndb:x:7:8::/:/bin/sh\nbad\n";
        let host = Host::from_record(Record::default().with_file("/etc/passwd", accounts));
        let program = Path::new("/bin/sh").canonicalize().unwrap();
        let hook = Hook::new(&program, "db", &host).unwrap();
        assert_eq!((hook.uid, hook.gid), (7, 8));
        let refused = |program: &Path, user: &str| Hook::new(program, user, &host).unwrap_err();
        assert!(refused(&program, "root").contains("does not run as root"));
        assert!(refused(&program, "none").contains("no user none"));
        assert!(refused(Path::new("/none"), "db").contains("/none"));
        let open = tempfile::NamedTempFile::new().unwrap();
        std::fs::set_permissions(open.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777))
            .unwrap();
        assert!(refused(open.path(), "db").contains("nobody else can write"));
    }

    #[test]
    fn a_hook_that_does_not_end_is_ended_with_all_that_it_started() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & wait"]).process_group(0);
        assert!(run(&mut command, Duration::from_millis(100)).starts_with("was killed"));
        assert_eq!(
            run(Command::new("sh").args(["-c", "exit 3"]), DEADLINE),
            "ended: exit status: 3"
        );
        assert!(run(&mut Command::new("/none"), DEADLINE).starts_with("cannot be started"));
    }

    #[test]
    fn hooks_get_the_name_and_the_seconds_and_nothing_else() {
        let hook = Hook { program: "/bin/x".into(), uid: 1, gid: 1 };
        let alarm = |seconds_left| Alarm {
            database: "a b".to_owned(),
            seconds_left,
            summary: String::new(),
            is_event: true,
        };
        let arguments = |seconds| {
            let command = hook.command(&alarm(seconds));
            let all: Vec<String> =
                command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
            all
        };
        assert_eq!(arguments(Some(12.4)), ["a b", "12"]);
        assert_eq!(arguments(None), ["a b", "unknown"]);
    }
}
