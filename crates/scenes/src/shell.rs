//! Shells that clean up when this process ends.
//!
//! A process that is killed with SIGKILL runs no destructor. The kernel's parent-death signal does not
//! help: a change of user clears it, and it belongs to a thread, not to a process. So a shell waits for
//! the end of a pipe, then cleans up: the kernel closes our end of the pipe however we end. Dropping
//! the value closes it too, so there is one way to clean up, not two.

use crate::SceneError;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The time between two looks at whether a program has ended.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// Runs `$3…` with its output in file `$2`, prints its pid, and ends with its exit status. When the pipe
/// closes, the program gets signal `$1` again and again, because a program that is just starting may
/// ignore it; after a minute it gets SIGKILL. The shell is the parent, so the pid cannot be reused.
/// The trap: the reader of the pid may have ended before the shell prints it. A shell lets what runs in the
/// background ignore SIGINT, and a `runsc` that was started so passes none on: `env` undoes that.
const RUN: &str = r#"
signal=$1 log=$2
shift 2
trap : PIPE
exec 3<&0
env --default-signal=INT,QUIT "$@" >>"$log" 2>&1 </dev/null 3<&- &
program=$!
echo "$program"
{
    read -r end <&3
    ticks=600
    while [ "$ticks" -gt 0 ] && kill -s "$signal" "$program"; do
        sleep 0.1
        ticks=$((ticks - 1))
    done
    kill -s KILL "$program"
} 2>/dev/null &
reader=$!
wait "$program" 2>/dev/null
status=$?
kill "$reader" 2>/dev/null
exit "$status"
"#;

/// A shell that acts when this value is dropped or this process ends.
pub(crate) struct Shell {
    child: Child,
    pipe: Option<ChildStdin>,
    /// The first line that the shell printed.
    pub(crate) first_line: String,
}

impl Shell {
    /// Runs the script `prepare`, which prints one line, and in the end the script `cleanup`. Both get
    /// `arguments` as `$1`, `$2` … A signal to the whole session or service, as when it is stopped,
    /// does not prevent the cleanup.
    pub(crate) fn guard<S: AsRef<OsStr>>(
        prepare: &str,
        cleanup: &str,
        arguments: &[S],
    ) -> Result<Self, SceneError> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &guard_script(prepare, cleanup), "untax-lab"]).args(arguments);
        Self::start(command)
    }

    /// Runs a program until it ends, or until this value is dropped: then it gets `signal`.
    pub(crate) fn run<S: AsRef<OsStr>>(
        program: &[S],
        signal: &str,
        log: &Path,
        directory: &Path,
    ) -> Result<Self, SceneError> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", RUN, "untax-lab", signal]).arg(log).args(program);
        command.current_dir(directory);
        Self::start(command)
    }

    fn start(mut command: Command) -> Result<Self, SceneError> {
        // A group of its own, so that Ctrl-C in a terminal does not stop the cleanup.
        command.process_group(0).env("LC_ALL", "C").stdin(Stdio::piped()).stdout(Stdio::piped());
        let failed = |source| SceneError::Start { program: "/bin/sh".to_owned(), source };
        let mut child = command.spawn().map_err(failed)?;
        let pipe = child.stdin.take();
        let mut shell = Self { child, pipe, first_line: String::new() };
        if let Some(output) = shell.child.stdout.take() {
            BufReader::new(output).read_line(&mut shell.first_line).map_err(failed)?;
        }
        shell.first_line.truncate(shell.first_line.trim_end().len());
        Ok(shell)
    }

    /// The exit status of the program; `None` while it runs.
    pub(crate) fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits until the program ends by itself.
    pub(crate) fn wait(&mut self, deadline: Duration) -> Option<ExitStatus> {
        let since = Instant::now();
        loop {
            if let Some(status) = self.exit_status() {
                return Some(status);
            }
            if since.elapsed() >= deadline {
                return None;
            }
            std::thread::sleep(TICK);
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.child.wait();
    }
}

/// The script of a guard. It ignores SIGPIPE: the reader of its line may have ended before it is printed.
/// `remove DIRECTORY…` waits until no process works in the first: a PostgreSQL that loses its files while it
/// starts or stops leaves its shared memory behind. A process that works elsewhere may still write there, so it
/// tries until nothing is left; and a program may have left something mounted, as gVisor does a network namespace.
const REMOVE: &str = r#"
remove() {
    ticks=600
    while [ "$ticks" -gt 0 ] && readlink /proc/[0-9]*/cwd | grep -qF "$1"; do
        sleep 0.1
        ticks=$((ticks - 1))
    done
    ticks=600
    while [ "$ticks" -gt 0 ]; do
        while read -r _ mounted _; do
            for path; do
                case $mounted in "$path"/*) umount "$mounted" ;; esac
            done
        done </proc/mounts
        rm -rf --one-file-system "$@" && break
        sleep 0.1
        ticks=$((ticks - 1))
    done
} 2>/dev/null
"#;

fn guard_script(prepare: &str, cleanup: &str) -> String {
    format!("trap '' HUP INT TERM PIPE\n{REMOVE}\n{prepare}\nread -r end\n{cleanup}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, Signal, kill_process};

    #[test]
    fn a_guard_cleans_up_though_all_are_told_to_end() {
        let file = std::env::temp_dir().join(format!("untax-guard-{}", std::process::id()));
        std::fs::write(&file, "changed").unwrap();
        let guard = Shell::guard("echo ready", r#"rm "$1""#, &[&file]).unwrap();
        assert_eq!(guard.first_line, "ready");
        for signal in [Signal::HUP, Signal::INT, Signal::TERM] {
            kill_process(Pid::from_child(&guard.child), signal).unwrap();
        }
        drop(guard);
        assert!(!file.exists());
    }

    #[test]
    fn a_program_that_ignores_its_first_signal_gets_another() {
        let starting = "trap '' TERM; sleep 1; trap - TERM; exec sleep 600";
        let status = status_without_starter(&["/bin/sh", "-c", starting], Stdio::null());
        assert_eq!(status.code(), Some(128 + Signal::TERM.as_raw()), "{status}");
    }

    #[test]
    fn a_program_ignores_no_signal_because_of_the_shell() {
        // Neither 2 nor 4, SIGINT and SIGQUIT, in the last digit.
        let program = ["/bin/grep", "-q", "SigIgn:.*[0189]$", "/proc/self/status"];
        let status = status_without_starter(&program, Stdio::null());
        assert_eq!(status.code(), Some(0), "{status}");
    }

    #[test]
    fn a_program_whose_starter_ended_meanwhile_is_ended() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = status_without_starter(&["/bin/sleep", "600"], writer.into());
        assert_eq!(status.code(), Some(128 + Signal::TERM.as_raw()), "{status}");
    }

    /// The exit status of a program whose starter ends soon.
    fn status_without_starter(program: &[&str], output: Stdio) -> ExitStatus {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", RUN, "untax-lab", "TERM", "/dev/null"]).args(program);
        let mut shell = command.stdin(Stdio::piped()).stdout(output).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        drop(shell.stdin.take());
        shell.wait().unwrap()
    }

    #[test]
    fn a_guard_whose_maker_ended_meanwhile_cleans_up() {
        let file = std::env::temp_dir().join(format!("untax-guard-late-{}", std::process::id()));
        std::fs::write(&file, "changed").unwrap();
        let script = guard_script("sleep 0.2\necho made", r#"rm "$1""#);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &script, "untax-lab"]).arg(&file);
        let mut guard = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        drop((guard.stdin.take(), guard.stdout.take()));
        guard.wait().unwrap();
        assert!(!file.exists());
    }
}
