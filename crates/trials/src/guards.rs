//! What is read before and after each trial, and what of it spoils the trial.
//!
//! The thresholds are far above what a quiet machine shows, so that a guard marks trials that mean
//! nothing, and does not choose among those that do.

use crate::others::Others;
use crate::{Resource, Watch};
use std::time::{Duration, Instant, SystemTime};
use untax_core::Reading::{self, Absent};
use untax_core::guards::{Guard, GuardId};
use untax_core::host::CpuTime;
use untax_core::sleeps::Sleeps;
use untax_host::{Host, facts};

/// CPU time in which steal is counted: with ticks of 10 ms one tick is 2.5 % of it.
const COUNTED_S: f64 = 0.4;

/// Throttled time over the trial's length. A quota of 95 % of two busy CPUs makes 55 of 64 periods
/// throttled and takes 3 to 4 % (measured with sysbench); less is hardly to be seen in a rate.
const MOST_THROTTLED: f64 = 0.05;

/// From here on waiting for a CPU grows faster than work; the margin is what the kernel's own threads take.
const MOST_CPU: f64 = 0.95;

/// Frames of 1,500 bytes carry 95 % of a link's bits as payload; a tenth is left for bursts.
const MOST_LINK: f64 = 0.90;

/// A disk that is idle for less than this has a queue nearly all of the time. Devices that serve many requests
/// at once may still have room: only arms for which the disk must not matter ask for this.
const MOST_DISK: f64 = 0.95;

/// The wall clock against the monotonic one. NTP slews by 0.05 % at most (`ntp_adjtime(2)`); a step, which
/// daemons make from 0.128 s on, is more than this in trials of up to 12 s.
const MOST_JUMP: f64 = 0.01;

/// The trial's length against what was asked, as a ratio. Loads take a while to connect and to end.
const MOST_LENGTH: f64 = 2.0;

/// Trials that are shorter than this are judged as if they took so long: what a sleep or a start takes is
/// no fault of theirs.
const LEAST_LENGTH_S: f64 = 1.0;

/// All that is read at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Readings {
    /// Seconds on a clock that nobody sets.
    pub(crate) monotonic_s: f64,
    /// Seconds of the wall clock.
    pub(crate) wall_s: f64,
    cpu: Reading<CpuTime>,
    /// How often CPUs were put to sleep, and went from one thread to another.
    sleeps: Reading<u64>,
    switches: Reading<u64>,
    /// What decides how they sleep.
    knob: String,
    /// Throttled seconds of each watched group.
    throttled_s: Vec<Reading<f64>>,
    /// Of each watched link, by direction: seconds that its bits so far take at its speed.
    /// Of each watched disk: seconds in which it had requests.
    used_s: Vec<Reading<[f64; 2]>>,
    /// What programs of others used so far, where that is watched.
    others: Option<Reading<Others>>,
}

impl Readings {
    /// Reads what is watched.
    pub(crate) fn read(host: &Host, watch: &Watch, since: Instant) -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self::at(host, watch, since.elapsed(), wall)
    }

    pub(crate) fn at(host: &Host, watch: &Watch, monotonic: Duration, wall: Duration) -> Self {
        Self {
            monotonic_s: monotonic.as_secs_f64(),
            wall_s: wall.as_secs_f64(),
            cpu: facts::machine_cpu_time(host),
            sleeps: facts::cpu_sleeps(host),
            switches: facts::context_switches(host),
            knob: facts::idle_knob(host),
            throttled_s: watch.groups.iter().map(|group| throttled_s(host, group)).collect(),
            used_s: watch.spare.iter().map(|spare| used_s(host, spare)).collect(),
            others: watch.most_others.map(|_| Others::read(host)),
        }
    }

    /// How long it was from this moment to a later one.
    pub(crate) fn until(&self, later: &Self) -> Duration {
        Duration::try_from_secs_f64(later.monotonic_s - self.monotonic_s).unwrap_or_default()
    }

    /// How idle CPUs slept between this moment and a later one.
    pub(crate) fn sleeps(&self, later: &Self) -> Sleeps {
        let grown = |before: &Reading<u64>, after: &Reading<u64>| {
            both(before, after, |before, after| after.saturating_sub(*before) as f64)
        };
        let switches = grown(&self.switches, &later.switches);
        let per_switch = grown(&self.sleeps, &later.sleeps).and_then(|sleeps| {
            switches.and_then(|switches| {
                if switches > 0.0 {
                    Reading::Present(sleeps / switches)
                } else {
                    Absent("no CPU went from one thread to another".to_owned())
                }
            })
        });
        // Set meanwhile, it is that of neither.
        let knob = if self.knob == later.knob {
            self.knob.clone()
        } else {
            format!("{}, then {}", self.knob, later.knob)
        };
        Sleeps { per_switch, knob }
    }

    /// All guards of a trial between two moments that was asked to take `asked`.
    pub(crate) fn guards(
        &self,
        later: &Self,
        watch: &Watch,
        asked: Option<Duration>,
    ) -> Vec<Guard> {
        let took_s = later.monotonic_s - self.monotonic_s;
        let mut guards = Vec::new();
        let mut add = |id, subject: Option<&str>, value, threshold| {
            guards.push(Guard { id, subject: subject.map(str::to_owned), value, threshold });
        };
        let cpu = both(&self.cpu, &later.cpu, |before, after| {
            let of = |part: fn(&CpuTime) -> f64| (part(after) - part(before)).max(0.0);
            [of(|time| time.busy_s.0), of(|time| time.idle_s.0), of(|time| time.steal_s.0)]
        });
        add(GuardId::Steal, None, cpu.clone().and_then(stolen), watch.most_steal);
        for (group, (before, after)) in
            watch.groups.iter().zip(self.throttled_s.iter().zip(&later.throttled_s))
        {
            let share = both(before, after, |before, after| (after - before).max(0.0) / took_s);
            add(GuardId::GroupThrottled, Some(group), share, MOST_THROTTLED);
        }
        for (spare, (before, after)) in
            watch.spare.iter().zip(self.used_s.iter().zip(&later.used_s))
        {
            let share = both(before, after, |before, after| {
                let most = (after[0] - before[0]).max(after[1] - before[1]);
                most.max(0.0) / took_s
            });
            match spare {
                Resource::Cpu => {
                    let busy = cpu.clone().map(|[busy, idle, _]| busy / (busy + idle));
                    add(GuardId::CpuSaturated, None, busy, MOST_CPU);
                }
                Resource::Link(name) => add(GuardId::LinkSaturated, Some(name), share, MOST_LINK),
                Resource::Disk(name) => add(GuardId::DiskSaturated, Some(name), share, MOST_DISK),
            }
        }
        if let (Some(most), Some(before), Some(after)) =
            (watch.most_others, &self.others, &later.others)
        {
            let cpus = both(before, after, |before, after| after.since(before) / took_s);
            add(GuardId::OthersBusy, None, cpus, most);
        }
        let jump = (later.wall_s - self.wall_s - took_s).abs() / took_s.max(LEAST_LENGTH_S);
        add(GuardId::ClockJump, None, Reading::Present(jump), MOST_JUMP);
        if let Some(asked) = asked {
            let longer = took_s.max(LEAST_LENGTH_S) / asked.as_secs_f64().max(LEAST_LENGTH_S);
            let ratio = longer.max(longer.recip());
            add(GuardId::TrialLength, None, Reading::Present(ratio), MOST_LENGTH);
        }
        guards
    }
}

/// What two readings give, or the gap of the first that is one.
fn both<T, U>(before: &Reading<T>, after: &Reading<T>, of: impl FnOnce(&T, &T) -> U) -> Reading<U> {
    before.as_ref().and_then(|before| after.as_ref().map(|after| of(before, after)))
}

/// The share of busy, idle and stolen time that was stolen.
fn stolen([busy, idle, steal]: [f64; 3]) -> Reading<f64> {
    let all = busy + idle + steal;
    if all < COUNTED_S {
        return Absent(format!("{all:.2} s of CPU time are too few for ticks of 10 ms"));
    }
    Reading::Present(steal / all)
}

/// The throttled time of a control group so far: version 2 counts it in us, version 1 in ns.
fn throttled_s(host: &Host, group: &str) -> Reading<f64> {
    let path = format!("{group}/cpu.stat");
    host.text(&path).parse(&path, |text| {
        let field = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            value?.trim().parse::<f64>().ok()
        };
        let new = field("throttled_usec").map(|us| us / 1e6);
        new.or_else(|| field("throttled_time").map(|ns| ns / 1e9))
    })
}

/// How long a link or a disk was used so far, in both directions where they are apart. The CPUs' time is
/// read anyway.
fn used_s(host: &Host, spare: &Resource) -> Reading<[f64; 2]> {
    match spare {
        Resource::Cpu => Absent("read for the whole machine".to_owned()),
        Resource::Link(name) => {
            let number = |file: &str| {
                let path = format!("/sys/class/net/{name}/{file}");
                host.text(&path).parse(&path, |text| text.trim().parse::<f64>().ok())
            };
            let of_speed = |megabits: f64| {
                if megabits <= 0.0 {
                    return Absent(format!("{name} has no speed"));
                }
                let seconds = |bytes: f64| bytes * 8.0 / (megabits * 1e6);
                number("statistics/rx_bytes").and_then(|received| {
                    number("statistics/tx_bytes").map(|sent| [seconds(received), seconds(sent)])
                })
            };
            number("speed").and_then(of_speed)
        }
        Resource::Disk(name) => {
            let path = "/proc/diskstats";
            host.text(path).parse(path, |text| {
                let mut lines = text.lines().map(|line| line.split_ascii_whitespace());
                let mut fields = lines.find(|fields| fields.clone().nth(2) == Some(name))?;
                // `io_ticks`, the tenth counter behind the name (Documentation/admin-guide/iostats.rst).
                let busy_s = fields.nth(12)?.parse::<f64>().ok()? / 1e3;
                Some([busy_s, busy_s])
            })
        }
    }
}

#[cfg(test)]
#[path = "guards_tests.rs"]
mod tests;
