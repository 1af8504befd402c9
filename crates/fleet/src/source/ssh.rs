//! One host over ssh, within a deadline, with bounds on what it may answer.

use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The longest answer, bytes: metrics of 50 databases take 2 MiB.
const LONGEST_ANSWER: u64 = 16 << 20;

/// The longest complaint, bytes.
const LONGEST_COMPLAINT: u64 = 16 << 10;

/// Beside the window: connecting, watching on a busy host, and answers of its servers.
const GRACE: Duration = Duration::from_secs(60);

/// Beside that, for a copy of some 20 MB over a slow line.
const COPYING: Duration = Duration::from_secs(120);

/// How often it is looked whether ssh has ended.
const GLANCE: Duration = Duration::from_millis(50);

/// What may neither ask, nor learn a key, nor forward anything, nor outlive the answer.
const OPTIONS: &[&str] = &[
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    "UpdateHostKeys=no",
    "ConnectTimeout=10",
    "ConnectionAttempts=1",
    "ServerAliveInterval=10",
    "ServerAliveCountMax=3",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "RequestTTY=no",
    "ControlMaster=no",
    "ControlPath=none",
    "LogLevel=ERROR",
];

/// How hosts are asked.
#[derive(Debug, Clone)]
pub struct Ssh {
    /// How long each is watched.
    pub window: Duration,
    /// A configuration of ssh in place of the user's own.
    pub configuration: Option<PathBuf>,
    /// Whether untax is run by `sudo -n`.
    pub sudo: bool,
    /// The program that is copied to each host, run there and removed; else its own is run.
    pub copy: Option<Copied>,
}

/// A program to copy.
#[derive(Debug, Clone)]
pub struct Copied {
    path: PathBuf,
    /// SHA-256 in hexadecimal digits.
    digest: String,
}

impl Copied {
    /// Reads the program once, for its digest.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut hasher = Sha256::new();
        io::copy(&mut File::open(path)?, &mut hasher)?;
        let digest = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { path: path.to_owned(), digest })
    }
}

/// Copies standard input into a directory that nobody else may enter, sees that it is whole, runs it, and removes
/// the directory however that ends.
const COPY: &str = "\
    [ \"$(uname -m)\" = ARCHITECTURE ] || { echo \"this program is for ARCHITECTURE, not $(uname -m)\" >&2; exit 2; }; \
    umask 077; d=$(mktemp -d \"${TMPDIR:-/tmp}/untax.XXXXXX\") || exit 2; \
    trap \"rm -rf \\\"$d\\\"\" EXIT; trap \"exit 2\" HUP INT TERM PIPE; cat >\"$d/untax\" || exit 2; \
    s=$(sha256sum \"$d/untax\"); \
    [ \"${s%% *}\" = DIGEST ] || { echo \"the copy differs from the program\" >&2; exit 2; }; \
    chmod 700 \"$d/untax\"; RUN \"$d/untax\" ARGUMENTS";

impl Ssh {
    /// What the host's shell runs. A host's name holds nothing that a shell would take for anything else.
    fn script(&self, host: &str) -> String {
        let run = if self.sudo { "sudo -n " } else { "" };
        let arguments =
            format!("agent --once --window {}ms --node \"{host}\"", self.window.as_millis());
        let Some(copied) = &self.copy else { return format!("{run}untax {arguments}") };
        let script = COPY.replace("ARCHITECTURE", std::env::consts::ARCH);
        let script = script.replace("DIGEST", &copied.digest).replace("RUN ", run);
        // Quoted, since the user's own shell may be of another kind.
        format!("exec sh -c '{}'", script.replace("ARGUMENTS", &arguments))
    }

    fn command(&self, host: &str) -> io::Result<Command> {
        let mut command = Command::new("ssh");
        if let Some(file) = &self.configuration {
            command.arg("-F").arg(file);
        }
        for option in OPTIONS {
            command.args(["-o", option]);
        }
        command.args(["--", host, &self.script(host)]);
        let input = self.copy.as_ref().map(|copied| File::open(&copied.path)).transpose()?;
        command.stdin(input.map_or_else(Stdio::null, Stdio::from));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }
}

/// The metrics of one host, or why there are none.
pub(super) fn answer(ssh: &Ssh, host: &str) -> Result<String, String> {
    let failed = |error: io::Error| format!("cannot be asked: ssh: {error}");
    let mut child = ssh.command(host).and_then(|mut command| command.spawn()).map_err(failed)?;
    let text = reader(child.stdout.take(), LONGEST_ANSWER);
    let complaint = reader(child.stderr.take(), LONGEST_COMPLAINT);
    let copying = if ssh.copy.is_some() { COPYING } else { Duration::ZERO };
    // A proxy of its own may hold the other ends after it was killed: nobody waits for that.
    let ended = wait(&mut child, Instant::now() + ssh.window + GRACE + copying)
        .ok_or_else(|| "did not answer in time".to_owned())?;
    let (text, complaint) = (text.join().unwrap_or_default(), complaint.join().unwrap_or_default());
    match ended.code() {
        Some(0) if text.len() as u64 == LONGEST_ANSWER => {
            Err("answers more than 16 MiB".to_owned())
        }
        Some(0) => Ok(String::from_utf8_lossy(&text).into_owned()),
        code => Err(reason(code, &String::from_utf8_lossy(&complaint), host)),
    }
}

/// Reads so much in a thread of its own, and lets the rest go: a writer that is not read would wait.
fn reader(stream: Option<impl Read + Send + 'static>, most: u64) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.by_ref().take(most).read_to_end(&mut bytes);
            let _ = io::copy(&mut stream, &mut io::sink());
        }
        bytes
    })
}

/// How it ended; `None` where it had to be killed.
fn wait(child: &mut Child, until: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => thread::sleep(GLANCE),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// Why there is no answer, with the next action.
fn reason(code: Option<i32>, complaint: &str, host: &str) -> String {
    let last = complaint.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    let last: String = last.chars().take(300).collect();
    let says = |words: &str| complaint.contains(words);
    match code {
        Some(255) if says("Host key verification failed") => format!(
            "has a key that known_hosts does not hold, or another one; compare it, then connect once by \"ssh {host}\""
        ),
        Some(255) if says("Permission denied") => {
            format!(
                "accepts no key of this user; see that \"ssh -o BatchMode=yes {host} true\" works"
            )
        }
        Some(255) => format!("is not reached: {last}"),
        Some(127) => "has no untax; install it there, or copy this one with --copy".to_owned(),
        Some(3) => {
            "has an untax without agent --once; upgrade it, or copy this one with --copy".to_owned()
        }
        _ => format!("could not do it: {last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh(copy: Option<Copied>) -> Ssh {
        Ssh { window: Duration::from_millis(1500), configuration: None, sudo: false, copy }
    }

    /// Runs a script here, as a host would, with the program as its input.
    fn run(script: &str, program: &Path, folder: &Path) -> (Option<i32>, String) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("TMPDIR", folder).stdin(File::open(program).unwrap());
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    }

    #[test]
    fn a_copy_runs_and_is_gone_afterwards_however_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let (program, place) = (folder.path().join("program"), folder.path().join("tmp"));
        std::fs::create_dir(&place).unwrap();
        for code in [0, 1] {
            std::fs::write(&program, format!("#!/bin/sh\necho \"$@\"\nexit {code}\n")).unwrap();
            let script = ssh(Some(Copied::of(&program).unwrap())).script("db-1");
            let ran = run(&script, &program, &place);
            assert_eq!(ran, (Some(code), "agent --once --window 1500ms --node db-1\n".to_owned()));
            let other = folder.path().join("other");
            std::fs::write(&other, "#!/bin/sh\necho wrong\n").unwrap();
            let (code, said) = run(&script, &other, &place);
            assert!(code == Some(2) && said.contains("differs"), "{said}");
            assert_eq!(place.read_dir().unwrap().count(), 0);
        }
        let script = ssh(Some(Copied::of(&program).unwrap())).script("db-1");
        let script = script.replace(std::env::consts::ARCH, "vax");
        let (code, said) = run(&script, &program, &place);
        assert!(code == Some(2) && said.contains("is for vax, not"), "{said}");
    }

    #[test]
    fn a_program_that_is_there_runs_as_root_where_that_is_asked_for() {
        let own = ssh(None);
        assert_eq!(own.script("a"), "untax agent --once --window 1500ms --node \"a\"");
        let with = Ssh { sudo: true, ..own };
        assert_eq!(with.script("a"), "sudo -n untax agent --once --window 1500ms --node \"a\"");
        let copied = Copied { path: PathBuf::new(), digest: "x".to_owned() };
        let script = Ssh { copy: Some(copied), ..with }.script("a");
        assert!(script.contains("; sudo -n \"$d/untax\" agent --once"), "{script}");
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let say = |code, complaint| reason(Some(code), complaint, "db");
        assert!(say(255, "x\nHost key verification failed.\r\n").contains("known_hosts"));
        assert!(say(255, "root@db: Permission denied (publickey).").contains("BatchMode"));
        assert_eq!(say(255, "ssh: no route\n\n"), "is not reached: ssh: no route");
        assert!(say(127, "sh: untax: not found").contains("--copy"));
        assert!(say(3, "error: unexpected argument '--once'").contains("upgrade"));
        assert_eq!(say(2, "untax: no clock"), "could not do it: untax: no clock");
        assert_eq!(reason(None, "", "db"), "could not do it: ");
    }

    #[test]
    fn what_never_ends_is_ended() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        assert_eq!(wait(&mut child, Instant::now()), None);
        assert!(child.try_wait().unwrap().is_some());
    }
}
