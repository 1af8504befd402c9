//! What this program itself costs the host.

use untax_core::check::OwnCost;
use untax_core::reading::Gap;
use untax_core::{Reading, Seconds};
use untax_host::{Host, process};

/// Reads the cost of one window after the other.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    before: Seconds,
}

impl Meter {
    /// Processor time of this process, and of the children that it waited for, since the last reading
    /// (at first since the process began); the most memory that it ever had resident; `tracing_s`, what
    /// tracing took in the kernel, is passed through.
    pub(crate) fn read(&mut self, tracing_s: Reading<Seconds>) -> Reading<OwnCost> {
        since_start(tracing_s).map(|cost| {
            let before = std::mem::replace(&mut self.before, cost.cpu_s);
            OwnCost { cpu_s: cost.cpu_s - before, ..cost }
        })
    }
}

fn since_start(tracing_s: Reading<Seconds>) -> Reading<OwnCost> {
    let host = Host::live();
    let pid = std::process::id();
    let cost = || {
        let own = process::sched_time(&host, pid, 2).into_result()?;
        let stat = process::stat(&host, pid).into_result()?;
        let ticks = process::ticks_per_second(&host).into_result()?;
        let children = (stat.children_user_ticks + stat.children_system_ticks) as f64;
        let status = process::status(&host, pid).into_result()?;
        let peak = status.peak_resident.ok_or(Gap::Absent(
            "the kernel does not tell the peak of resident memory".to_owned(),
        ))?;
        let cpu_s = own.on_cpu_s + Seconds(children / ticks as f64);
        Ok(OwnCost { cpu_s, tracing_s, rss_bytes: peak })
    };
    cost().into()
}
