//! At which frequency the CPUs of a database ran while it did, and which they could have run at.

use std::collections::BTreeSet;
use untax_core::host::{HostFacts, cpus};
use untax_core::idle::{CpuFreq, FrequencyPolicy};
use untax_core::window::Pair;
use untax_core::{Interval, Reading, Window};

/// Frequencies that are closer than this are the same: the kernel measures within some percent.
const SAME: f64 = 0.97;

/// What holds the frequency of some CPUs down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holds {
    /// The governor, with the processor's preference where it has one.
    Governor(String),
    /// A limit below what the hardware can, kHz.
    Limit(u64),
}

/// How fast the CPUs of a database ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Speed {
    /// The frequency that they ran at, kHz; the bounds are those of what was counted or sampled.
    pub khz: Interval,
    /// What they hold without turbo.
    pub base_khz: f64,
    /// The most that the hardware can.
    pub most_khz: f64,
    /// What holds most of them down; `None` where nothing that could be set does.
    pub held_by: Option<Holds>,
    /// Where the frequency comes from.
    pub source: &'static str,
}

impl Speed {
    /// Sums the policies of a database's CPUs, each with the time for which its CPUs were busy; `None`
    /// inside where they were not.
    pub fn of(window: &Window, pair: &Pair) -> Reading<Option<Self>> {
        let [start, end] = [&window.start.host, &window.end.host].map(|host| host.cpufreq.as_ref());
        start.and_then(|start| {
            end.and_then(|end| {
                changed(start, end).map_or_else(|| over(window, pair, start, end), Reading::Absent)
            })
        })
    }

    /// The part (0..1) of the time on CPU that the frequency took: nothing, were all of it waits for memory;
    /// against the frequency without turbo; against the most that the hardware can.
    pub fn part(&self) -> Interval {
        let lost = |khz: f64, could: f64| (1.0 - khz / could).max(0.0);
        let mid = lost(self.khz.high, self.base_khz);
        Interval::new(0.0, mid, lost(self.khz.low, self.most_khz).max(mid))
    }
}

/// Why two looks at the same policies cannot be compared.
fn changed(start: &CpuFreq, end: &CpuFreq) -> Option<String> {
    let settings = |policy: &FrequencyPolicy| {
        let governor = policy.governor.value().cloned().unwrap_or_default();
        let limit = policy.max_khz.value().copied();
        (policy.name.clone(), governor, limit)
    };
    let [before, after] = [start, end].map(|freq| freq.policies.iter().map(settings));
    let (before, after): (Vec<_>, Vec<_>) = (before.collect(), after.collect());
    if before == after {
        return None;
    }
    let mut both = before.iter().zip(&after).filter(|(before, after)| before != after);
    let what = both.next().map_or_else(
        || "CPUs came or went".to_owned(),
        |((name, was, limit), (_, is, new))| {
            if was == is {
                let khz =
                    |limit: &Option<u64>| limit.map_or_else(|| "?".to_owned(), |k| k.to_string());
                format!("the limit of {name} changed from {} to {} kHz", khz(limit), khz(new))
            } else {
                format!("the governor of {name} changed from {was} to {is}")
            }
        },
    );
    Some(format!("{what} during the window; check again"))
}

/// One policy's part in a sum.
struct Share {
    busy_s: f64,
    khz: Interval,
    base_khz: f64,
    most_khz: f64,
    held_by: Option<Holds>,
    source: &'static str,
}

fn over(window: &Window, pair: &Pair, start: &CpuFreq, end: &CpuFreq) -> Reading<Option<Speed>> {
    let own = own(&window.end.host, pair);
    let mut shares = Vec::new();
    for policy in &end.policies {
        let Some([busy_s, seconds]) = busy(window, policy, own.as_ref()) else { continue };
        if busy_s <= 0.0 {
            continue;
        }
        let before = start.policies.iter().find(|known| known.name == policy.name);
        let khz = before.and_then(|before| counted(before, policy, busy_s / seconds));
        let khz = khz.or_else(|| sampled(window, policy));
        let Some((khz, source)) = khz else {
            let why = format!("{} tells no frequency of {}", end.driver, policy.name);
            return Reading::Absent(why);
        };
        let limits =
            policy.hardware_max_khz.as_ref().map(|most| (*most as f64, base(end, policy, *most)));
        let Some((most_khz, base)) = limits.into_value() else {
            return Reading::Absent(format!(
                "{}: the most that its CPUs can is not known",
                policy.name
            ));
        };
        let Some(base_khz) = base else {
            return Reading::Absent(format!(
                "neither {} nor the firmware tells the frequency without turbo",
                end.driver
            ));
        };
        let held_by = held_by(policy, khz);
        shares.push(Share { busy_s, khz, base_khz, most_khz, held_by, source });
    }
    Reading::Present(sum(&shares))
}

fn sum(shares: &[Share]) -> Option<Speed> {
    let first = shares.first()?;
    let all: f64 = shares.iter().map(|share| share.busy_s).sum();
    let mean = |of: &dyn Fn(&Share) -> f64| {
        shares.iter().map(|share| of(share) * share.busy_s).sum::<f64>() / all
    };
    // Not the mean of ratios: what ran at each frequency took its time at that frequency.
    let khz = Interval::new(
        mean(&|share| share.khz.low),
        mean(&|share| share.khz.mid),
        mean(&|share| share.khz.high),
    );
    let busiest = shares.iter().max_by(|a, b| a.busy_s.total_cmp(&b.busy_s));
    Some(Speed {
        khz,
        base_khz: mean(&|share| share.base_khz),
        most_khz: mean(&|share| share.most_khz),
        held_by: busiest.and_then(|share| share.held_by.clone()),
        source: first.source,
    })
}

/// The CPUs that the database may use, where that is known.
fn own(host: &HostFacts, pair: &Pair) -> Option<BTreeSet<u32>> {
    let all: BTreeSet<u32> = host.each_cpu_time.value()?.iter().map(|(cpu, _)| *cpu).collect();
    let list = pair.end.allowed_cpus.value()?;
    let named = cpus(list).take_while(|cpu| Some(cpu) <= all.last());
    Some(named.filter(|cpu| all.contains(cpu)).collect())
}

/// For how long the CPUs of a policy were busy that a database may use, and how long they were there.
fn busy(
    window: &Window,
    policy: &FrequencyPolicy,
    own: Option<&BTreeSet<u32>>,
) -> Option<[f64; 2]> {
    let [start, end] =
        [&window.start.host, &window.end.host].map(|host| host.each_cpu_time.value());
    let (start, end) = start.zip(end)?;
    let of: BTreeSet<u32> = cpus(&policy.cpus)
        .take_while(|cpu| end.iter().any(|(known, _)| known >= cpu))
        .filter(|cpu| own.is_none_or(|own| own.contains(cpu)))
        .collect();
    let mut sum = [0.0, 0.0];
    for (cpu, after) in end.iter().filter(|(cpu, _)| of.contains(cpu)) {
        let (_, before) = start.iter().find(|(known, _)| known == cpu)?;
        let busy_s = (after.busy_s - before.busy_s).0.max(0.0);
        sum[0] += busy_s;
        sum[1] += busy_s + (after.idle_s - before.idle_s).0.max(0.0);
    }
    (sum[1] > 0.0).then_some(sum)
}

/// The frequencies that a driver counted. They hold idle time too: what ran had the fastest part of that
/// time at best, and the slowest at worst.
fn counted(
    before: &FrequencyPolicy,
    after: &FrequencyPolicy,
    busy: f64,
) -> Option<(Interval, &'static str)> {
    let (before, after) = before.time_at.value().zip(after.time_at.value())?;
    let mut times = Vec::new();
    for (khz, time) in after {
        let (_, earlier) = before.iter().find(|(known, _)| known == khz)?;
        times.push((*khz as f64, time.checked_sub(*earlier)? as f64));
    }
    let all: f64 = times.iter().map(|(_, time)| time).sum();
    if all <= 0.0 {
        return None;
    }
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mean = |times: &mut dyn Iterator<Item = &(f64, f64)>, wanted: f64| {
        let (mut left, mut sum) = (wanted, 0.0);
        for (khz, time) in times {
            let taken = time.min(left);
            sum += khz * taken;
            left -= taken;
        }
        sum / wanted
    };
    let ran = all * busy.clamp(f64::MIN_POSITIVE, 1.0);
    let slowest = mean(&mut times.iter(), ran);
    let fastest = mean(&mut times.iter().rev(), ran);
    let middle = mean(&mut times.iter(), all).clamp(slowest, fastest);
    Some((Interval::new(slowest, middle, fastest), "time_in_state"))
}

/// The frequencies that were sampled.
fn sampled(window: &Window, policy: &FrequencyPolicy) -> Option<(Interval, &'static str)> {
    let samples = window.frequencies.iter().find(|known| known.policy == policy.name)?;
    let khz = || samples.khz.iter().map(|khz| *khz as f64);
    let (low, high) = (khz().reduce(f64::min)?, khz().reduce(f64::max)?);
    let middle = khz().sum::<f64>() / samples.khz.len() as f64;
    Some((Interval::new(low, middle, high), "scaling_cur_freq"))
}

/// The frequency without turbo. Drivers that choose within the processor's own range count turbo in its
/// maximum; others name the frequencies that can be chosen, and turbo is beyond these.
fn base(freq: &CpuFreq, policy: &FrequencyPolicy, most_khz: u64) -> Option<f64> {
    let known = policy.base_khz.value().map(|base| *base as f64);
    known.or_else(|| (!freq.driver.contains("pstate")).then_some(most_khz as f64))
}

fn held_by(policy: &FrequencyPolicy, khz: Interval) -> Option<Holds> {
    let limit = policy.max_khz.value().zip(policy.hardware_max_khz.value());
    let limit = limit.filter(|(limit, most)| limit < most);
    // It ran as fast as the limit lets it.
    if let Some((limit, _)) = limit.filter(|(limit, _)| khz.high >= SAME * **limit as f64) {
        return Some(Holds::Limit(*limit));
    }
    let governor = policy.governor.value().filter(|governor| *governor != "performance")?;
    let preference = policy.preference.value().map(|preference| format!(", {preference}"));
    Some(Holds::Governor(format!("{governor}{}", preference.unwrap_or_default())))
}
