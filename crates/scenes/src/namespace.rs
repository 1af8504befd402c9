//! A network namespace without a name.
//!
//! The kernel removes it, and each link, rule and program in it, when the last process and descriptor
//! that use it are gone. So nothing is left when this process is killed, and no shell has to clean up.

use crate::SceneError;
use crate::error::at;
use crate::program;
use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::thread;

/// The namespace of the thread that opens this.
const OWN: &str = "/proc/thread-self/ns/net";

/// What each namespace needs: its loopback interface; and no IPv6, whose neighbour discovery would send
/// packets beside those that are measured.
const OPEN: &str = "ip link set lo up
    echo 1 2>/dev/null >/proc/sys/net/ipv6/conf/all/disable_ipv6
    echo 1 2>/dev/null >/proc/sys/net/ipv6/conf/default/disable_ipv6
    true";

/// A network namespace, which lives as long as this or a process in it does.
pub(crate) struct Namespace(OwnedFd);

impl Namespace {
    /// Makes an empty one.
    pub(crate) fn make() -> Result<Self, SceneError> {
        if !crate::account::is_root() {
            return Err(SceneError::NeedsRoot { what: "a network of its own" });
        }
        program::find("ip", "iproute2")?;
        program::find("nsenter", "util-linux")?;
        let namespace = Self(alone(make)?.map_err(|e| at(OWN)(e.into()))?);
        namespace.sh(OPEN)?;
        Ok(namespace)
    }

    /// The same namespace once more.
    pub(crate) fn again(&self) -> Result<Self, SceneError> {
        self.0.try_clone().map(Self).map_err(at(OWN))
    }

    /// Where other programs of this machine find it.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// The words that go before a command so that it runs in it.
    pub(crate) fn enter_command(&self) -> Vec<String> {
        vec!["nsenter".to_owned(), format!("--net={}", self.path()), "--".to_owned()]
    }

    /// Calls a function in it, on a thread of its own.
    pub(crate) fn within<T: Send>(&self, call: impl FnOnce() -> T + Send) -> Result<T, SceneError> {
        alone(|| {
            move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
                .map(|()| call())
        })?
        .map_err(|e| at(self.path())(e.into()))
    }

    /// Runs a shell script in it.
    pub(crate) fn sh(&self, script: &str) -> Result<String, SceneError> {
        self.run(&["/bin/sh", "-ec", script], "")
    }

    /// Runs commands of `ip`, one a line, until one fails.
    pub(crate) fn ip(&self, commands: &str) -> Result<(), SceneError> {
        self.run(&["ip", "-batch", "-"], commands).map(drop)
    }

    /// Runs a program in it to its end, with this input, and gives its output.
    pub(crate) fn run(&self, words: &[&str], input: &str) -> Result<String, SceneError> {
        let name = words.first().copied().unwrap_or_default().to_owned();
        let start = |source| SceneError::Start { program: name.clone(), source };
        let enter = self.enter_command();
        let mut child = Command::new(&enter[0])
            .args(&enter[1..])
            .args(words)
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(start)?;
        let stdin = child.stdin.take();
        let output = thread::scope(|scope| {
            // A program that refuses its first line need not read the rest.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
            child.wait_with_output()
        })
        .map_err(start)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = said.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        let end = lines.iter().take(2).copied().collect::<Vec<_>>().join(" | ");
        Err(SceneError::Failed {
            program: name,
            status: output.status.to_string(),
            output_end: end,
        })
    }
}

/// A new namespace, of this thread alone.
#[expect(deprecated, reason = "only a table of descriptors of its own could harm other threads")]
fn make() -> rustix::io::Result<OwnedFd> {
    rustix::thread::unshare(UnshareFlags::NEWNET)?;
    rustix::fs::open(OWN, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Calls a function on a thread that ends with it, so that no other thread changes its namespace.
fn alone<T: Send>(call: impl FnOnce() -> T + Send) -> Result<T, SceneError> {
    let ended = || SceneError::Host { why: "a thread in a network of its own failed".to_owned() };
    thread::scope(|scope| scope.spawn(call).join()).map_err(|_| ended())
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_host::Host;

    fn own() -> String {
        Host::live().link(OWN).into_value().unwrap()
    }

    #[test]
    fn only_what_is_called_within_it_is_in_it() {
        if !crate::account::is_root() {
            return;
        }
        let before = own();
        let namespace = Namespace::make().unwrap();
        let inside = namespace.within(own).unwrap();
        assert_ne!(inside, before);
        assert_eq!(own(), before);
        assert_eq!(namespace.run(&["readlink", "/proc/self/ns/net"], "").unwrap().trim(), inside);
        assert_eq!(namespace.again().unwrap().within(own).unwrap(), inside);
    }

    #[test]
    fn a_command_that_fails_says_why() {
        if !crate::account::is_root() {
            return;
        }
        let error = Namespace::make().unwrap().ip("link set nothing up").unwrap_err();
        assert!(error.to_string().contains("nothing"), "{error}");
    }
}
