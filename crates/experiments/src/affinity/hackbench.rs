//! Messages between groups of threads, as `hackbench` passes them: no memory is shared but the sockets'.

use crate::child::HiddenCommand;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use untax_changes::Program;

/// The hidden subcommand that passes messages.
pub(super) const HACKBENCH: HiddenCommand =
    HiddenCommand { name: "__hackbench", thread: c"untax-messages", run: main };

/// Senders of a group, and receivers: those of `hackbench`.
const PAIRS: usize = 20;
/// Bytes of a message: those of `hackbench`.
const MESSAGE: usize = 100;
/// How often the count is told.
const TELL: Duration = Duration::from_millis(50);

#[derive(Debug, Serialize, Deserialize)]
struct Spec {
    groups: u32,
}

/// A process that passes messages until it is dropped.
pub(super) struct Messages {
    child: Child,
    count: Arc<AtomicU64>,
}

impl Messages {
    /// Starts so many groups.
    pub(super) fn start(groups: u32) -> io::Result<Self> {
        let mut command = HACKBENCH.command(&Program::this(), &Spec { groups })?;
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let count = Arc::new(AtomicU64::new(0));
        let (output, told) = (child.stdout.take(), Arc::clone(&count));
        std::thread::spawn(move || {
            let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
            for number in lines.map_while(Result::ok).filter_map(|line| line.parse().ok()) {
                told.store(number, Relaxed);
            }
        });
        Ok(Self { child, count })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Messages that were received so far.
    pub(super) fn count(&self) -> f64 {
        self.count.load(Relaxed) as f64
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes messages until it is killed, and tells how many were received.
fn main(spec: &str) -> io::Result<()> {
    let spec: Spec = serde_json::from_str(spec)?;
    let received = Arc::new(AtomicU64::new(0));
    for _ in 0..spec.groups {
        group(&received)?;
    }
    let mut output = io::stdout().lock();
    loop {
        std::thread::sleep(TELL);
        writeln!(output, "{}", received.load(Relaxed))?;
        output.flush()?;
    }
}

/// Senders who each write to all receivers of their group by turns.
fn group(received: &Arc<AtomicU64>) -> io::Result<()> {
    let mut ends = Vec::new();
    for _ in 0..PAIRS {
        let (from, to) = UnixStream::pair()?;
        ends.push(from);
        let received = Arc::clone(received);
        std::thread::spawn(move || {
            let (mut to, mut message) = (to, [0; MESSAGE]);
            while to.read_exact(&mut message).is_ok() {
                received.fetch_add(1, Relaxed);
            }
        });
    }
    for _ in 0..PAIRS {
        let mut ends: Vec<UnixStream> =
            ends.iter().map(UnixStream::try_clone).collect::<io::Result<_>>()?;
        std::thread::spawn(move || {
            while ends.iter_mut().all(|end| end.write_all(&[0; MESSAGE]).is_ok()) {}
        });
    }
    Ok(())
}
