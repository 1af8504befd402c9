//! All probes of a window together.

use crate::frequencies::Sampling;
use crate::group_memory::group_growth;
use crate::io::Watch;
use crate::other_cpu_users::{busiest, kernel_workers_s};
use crate::send_rates::Sending;
use crate::{Threads, sample_faults};
use std::time::{Duration, Instant};
use untax_core::window::{FaultSample, Frequencies, Loads, Sent, seconds_between};
use untax_core::{Activity, Calibration, Database, Io, Reading, Seconds, Snapshot, Window};
use untax_host::Host;

/// How often faults are sampled inside a window: for 300 backends some 10 ms each time.
const SAMPLES: u32 = 5;

/// The probes: they see one window after the other, until this value is dropped.
pub struct Probes {
    host: Host,
    databases: Vec<Database>,
    threads: Reading<Threads>,
    io: Watch,
    sending: Sending,
    frequencies: Sampling,
    samples: Vec<FaultSample>,
    sampled: u32,
    begun: Instant,
    window: Duration,
}

/// What they saw.
pub struct Observations {
    /// Faults of server processes, at moments inside the window.
    pub samples: Vec<FaultSample>,
    /// What the threads of the databases did.
    pub activity: Reading<Vec<Activity>>,
    /// What the disks did.
    pub io: Reading<Io>,
    /// What was sent, from moment to moment.
    pub sent: Vec<Sent>,
    /// At which frequency CPUs ran.
    pub frequencies: Vec<Frequencies>,
    /// Processor time that tracing took in the kernel.
    pub tracing_s: Reading<Seconds>,
}

impl Probes {
    /// Opens a window of about this length over some databases.
    pub fn begin(databases: &[Database], window: Duration) -> Self {
        let host = Host::live();
        let io = Watch::begin(&host, databases);
        let threads = Threads::watch(databases, window);
        let sending = Sending::begin(&host, databases, window);
        let frequencies = Sampling::begin(&host);
        let begun = Instant::now();
        let databases = databases.to_vec();
        Self {
            host,
            databases,
            threads,
            io,
            sending,
            frequencies,
            samples: Vec::new(),
            sampled: 0,
            begun,
            window,
        }
    }

    /// Opens the next window, over the databases that there are now. Programs in the kernel stay:
    /// loading them costs more than all else in a window.
    #[must_use]
    pub fn next(self, databases: &[Database]) -> Self {
        let window = self.window;
        let io = self.io.next(&self.host, databases);
        let threads = self.threads.and_then(|mut threads| {
            let fits = threads.has_room_for(databases);
            if fits && threads.open(databases).is_ok() {
                return Reading::Present(threads);
            }
            // Two at once would trace each event twice.
            drop(threads);
            Threads::watch(databases, window)
        });
        let sending = Sending::begin(&self.host, databases, window);
        let frequencies = Sampling::begin(&self.host);
        let begun = Instant::now();
        let databases = databases.to_vec();
        let samples = Vec::new();
        Self { databases, threads, io, sending, frequencies, samples, sampled: 0, begun, ..self }
    }

    /// The databases that are watched.
    pub fn databases(&self) -> &[Database] {
        &self.databases
    }

    /// Does what is due; to be called every 50 to 100 ms.
    pub fn tick(&mut self) {
        if let Reading::Present(threads) = &mut self.threads {
            threads.tick();
        }
        self.sending.tick();
        self.io.tick();
        // At the middle of each of equal parts of the window.
        let due = self.window * (2 * self.sampled + 1) / (2 * SAMPLES);
        if self.sampled < SAMPLES && self.begun.elapsed() >= due {
            self.samples.extend(sample_faults(&self.host, &self.databases));
            self.io.sample(&self.host);
            self.frequencies.sample(&self.host);
            self.sampled += 1;
        }
    }

    /// Traces no thread's switches and wakeups while `sleep` sleeps, for as long as it says. The window is to be
    /// so much longer.
    pub fn suspend(&mut self, sleep: impl FnOnce() -> Duration) -> Duration {
        if let Reading::Present(threads) = &mut self.threads {
            threads.suspend();
        }
        let slept = sleep();
        if let Reading::Present(threads) = &mut self.threads {
            threads.resume_after(slept);
        }
        self.begun += slept;
        slept
    }

    /// Closes the window; another one may follow.
    pub fn finish(&mut self) -> Observations {
        self.close(false)
    }

    /// Closes the last window: waits that go on when it ends may end a little later.
    pub fn finish_last(mut self) -> Observations {
        self.close(true)
    }

    fn close(&mut self, is_last: bool) -> Observations {
        let traced = self.threads.as_mut().and_then(|threads| threads.finish(is_last));
        let tracing_s = traced.as_ref().and_then(|(_, cost)| cost.clone());
        let activity = traced.map(|(activity, _)| activity);
        let (io, disks_s) = self.io.end(&self.host);
        let tracing_s = match (tracing_s, disks_s) {
            (Reading::Present(threads), Reading::Present(disks)) => {
                Reading::Present(threads + disks)
            }
            (threads, disks) => threads.or_else(|| disks),
        };
        let samples = std::mem::take(&mut self.samples);
        let (sent, frequencies) = (self.sending.end(), self.frequencies.end());
        let io = Reading::Present(io);
        Observations { samples, activity, io, sent, frequencies, tracing_s }
    }
}

impl Observations {
    /// The window between two snapshots in which this was seen. `host` is that of the later one: it
    /// records what was seen, and one that was captured tells what was seen then.
    pub fn into_window(
        mut self,
        start: Snapshot,
        end: Snapshot,
        host: &Host,
        loads: Vec<Loads>,
        calibrated: impl FnOnce(&Snapshot) -> Reading<Calibration>,
    ) -> Window {
        // What was traced stands for the whole window, which is a little longer: snapshots take their time.
        for activity in self.activity.as_mut().into_value().into_iter().flatten() {
            activity.window_s = Seconds(seconds_between(&start, &end, &activity.database));
        }
        let samples = host.observe("samples", || Reading::Present(self.samples));
        let activity = host.observe("activity", || self.activity);
        let io = host.observe("io", || self.io);
        let sent = host.observe("sent", || Reading::Present(self.sent));
        let frequencies = host.observe("frequencies", || Reading::Present(self.frequencies));
        let calibration = host.observe("calibration", || calibrated(&end));
        let all = activity.value().into_iter().flatten();
        let clients: Vec<u32> = all.flat_map(|activity| activity.clients.clone()).collect();
        let window = Window {
            // Captures made by hand may have no samples; the snapshots stand for themselves.
            samples: samples.into_value().unwrap_or_default(),
            activity,
            io,
            others: busiest(host, &start, &end, &clients),
            kernel_workers_s: kernel_workers_s(&start, &end),
            groups: group_growth(&start, &end),
            sent: sent.into_value().unwrap_or_default(),
            frequencies: frequencies.into_value().unwrap_or_default(),
            loads,
            calibration,
            path_costs: Reading::absent("not asked"),
            start,
            end,
        };
        window.weighed()
    }

    /// What is seen in a window without length.
    pub fn empty() -> Self {
        let why = "the check had no window; use --window 10s";
        Self {
            samples: Vec::new(),
            activity: Reading::Absent(why.to_owned()),
            io: Reading::Absent(why.to_owned()),
            sent: Vec::new(),
            frequencies: Vec::new(),
            tracing_s: Reading::Absent(why.to_owned()),
        }
    }
}
