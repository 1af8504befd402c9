//! What this program itself cost the host.

use untax_core::check::OwnCost;
use untax_core::{Reading, Seconds};
use untax_host::{Host, process};

/// Processor time of this process and of the children it waited for, and the most memory it had
/// resident; with what its tracing took in the kernel.
pub fn read(tracing_s: Reading<Seconds>) -> Reading<OwnCost> {
    let host = Host::live();
    let pid = std::process::id();
    let cost = || {
        let own = process::sched_time(&host, pid, 2).into_result()?;
        let stat = process::stat(&host, pid).into_result()?;
        let ticks = process::ticks_per_second(&host).into_result()?;
        let children = (stat.children_user_ticks + stat.children_system_ticks) as f64;
        let status = process::status(&host, pid).into_result()?;
        let peak = status.peak_resident.ok_or(untax_core::reading::Gap::Absent(
            "the kernel does not tell the peak of resident memory".to_owned(),
        ))?;
        let cpu_s = own.on_cpu_s + Seconds(children / ticks as f64);
        Ok(OwnCost { cpu_s, tracing_s, rss_bytes: peak })
    };
    cost().into()
}

/// Reads the cost of one window after the other.
#[derive(Default)]
pub struct Meter {
    before: Seconds,
}

impl Meter {
    /// The cost since it was read last; at first since this process began.
    pub fn read(&mut self, tracing_s: Reading<Seconds>) -> Reading<OwnCost> {
        read(tracing_s).map(|cost| {
            let before = std::mem::replace(&mut self.before, cost.cpu_s);
            OwnCost { cpu_s: cost.cpu_s - before, ..cost }
        })
    }
}
