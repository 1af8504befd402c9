//! What a child does with the files of a volume: it fills them, or measures once.

use super::device::Moved;
use super::spec::{Job, Outcome, Work};
use super::{files, load};
use crate::child::HiddenCommand;
use std::io;
use std::time::Instant;
use untax_core::Bytes;
use untax_host::Host;

/// The hidden subcommand that does a [`Job`] and prints what it measured.
pub(crate) const STORAGE: HiddenCommand = HiddenCommand {
    name: "__storage",
    thread: c"untax-storage",
    run: |job| serde_json::from_str::<Job>(job)?.work(),
};

impl Job {
    /// Does the work; called in the child only.
    fn work(&self) -> io::Result<()> {
        // Until the bench has put this process where it belongs.
        io::copy(&mut io::stdin(), &mut io::sink())?;
        let outcome = match self.work {
            Work::Fill => {
                files::fill(&self.directory, self.data, self.seed)?;
                Outcome::default()
            }
            Work::Flood { threads } => load::flood(&self.directory, threads)?,
            _ => self.measure()?,
        };
        Ok(serde_json::to_writer(io::stdout(), &outcome)?)
    }

    fn measure(&self) -> io::Result<Outcome> {
        let host = Host::live();
        // Everything that is opened or allocated is there before the clock starts.
        let prepared = load::prepare(self)?;
        let count = || self.devices.iter().map(|device| device.moved(&host)).collect::<Vec<_>>();
        let (devices, own_read, since) = (count(), own_read(&host), Instant::now());
        let mut outcome = prepared.run(self.length)?;
        outcome.took_s = since.elapsed().as_secs_f64();
        let moved = |(now, before): (Option<Moved>, Option<Moved>)| Some(now?.since(before?));
        outcome.devices = count().into_iter().zip(devices).map(moved).collect();
        let less = |(now, before): (Bytes, Bytes)| Bytes(now.0.saturating_sub(before.0));
        outcome.own_read = self::own_read(&host).zip(own_read).map(less);
        Ok(outcome)
    }
}

/// What the kernel counted for this process so far as read from storage.
fn own_read(host: &Host) -> Option<Bytes> {
    let text = host.text("/proc/self/io").into_value()?;
    let value = text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?;
    value.trim().parse().ok().map(Bytes)
}
