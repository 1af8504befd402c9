//! Page faults on the shared memory of a database: what mapping it costs each new server process.

use crate::evidence;
use crate::model::accounting::Demand;
use crate::model::cpu_cost::CpuCost;
use crate::model::warm_up::{self, WarmUp};
use untax_core::reading::Gap;
use untax_core::window::Pair;
use untax_core::{Bytes, Evidence, Interval, Reading, Window};

/// `fault_around_bytes` of mm/memory.c: a read fault on shared memory maps this much at once.
const FAULT_AROUND: Bytes = Bytes(64 << 10);

/// How far the estimate of the shared part of the faults may be off, down and up: `RssShmem`
/// counts 64 KiB for a read fault, but 4 KiB for a write fault.
const SHARED_FAULTS_OFF: (f64, f64) = (0.8, 1.25);

/// What page faults on the shared memory took: sampled where stacks can be, otherwise calculated;
/// and what unmapping it again took when processes ended.
pub fn cost(window: &Window, pair: &Pair) -> Reading<CpuCost> {
    let part = || {
        let faults = pair
            .growth("minor faults", |d| d.counters.minor_faults.clone().map(|n| n as f64))
            .into_result()?;
        let shared = shared_share(window, pair).into_result()?;
        let demand = Demand::of(window, pair).into_value();
        let share = pair.activity.value().and_then(|activity| activity.share_faulting_on_data());
        let sampled = share.zip(demand.as_ref().map(|demand| demand.on_cpu_s));
        let counted = fault_evidence(pair, faults, shared.mid);
        let (faulting_s, method, evidence) = if let Some((share, on_cpu_s)) = sampled {
            (share.scale(on_cpu_s), SAMPLED, [sampled_evidence(share), counted].concat())
        } else {
            let (faulting_s, penalty) = calculated_time(window, pair, faults, shared)?;
            (faulting_s, CALCULATED, [counted, penalty].concat())
        };
        let warm_up = WarmUp::of(window, pair);
        let ends_s = faulting_s.mid * (1.0 - warm_up.stays.mid);
        let evidence = [evidence, warm_up_evidence(&warm_up, ends_s / pair.seconds)].concat();
        let is_much = demand.is_some_and(|demand| ends_s >= WORTH_SAYING * demand.on_cpu_s);
        let faulting_s = faulting_s.times(warm_up.stays);
        // What a process mapped is unmapped again when it ends: connections that stay never pay.
        let unmap_ns = window.calibration.value().and_then(|calibration| calibration.unmap_ns);
        let ended = pair
            .growth("faults of ended processes", warm_up::ended_faults)
            .into_value()
            .unwrap_or_default();
        let unmapping_s = unmap_ns.unwrap_or(Interval::exact(0.0)).times(shared).scale(ended / 1e9);
        Ok(CpuCost {
            taken_s: faulting_s.plus(unmapping_s),
            method: method.to_owned(),
            modelled: method == CALCULATED || unmapping_s.high > 0.0 || is_much,
            evidence,
            warm_up: is_much.then(|| warm_up.words()),
        })
    };
    part().into()
}

/// A warm-up that takes this share of the time on CPU is worth a sentence, as a tax of it is worth a finding.
const WORTH_SAYING: f64 = 0.01;

const SAMPLED: &str = "sampled time in page faults on shared memory";
const CALCULATED: &str = "minor faults on shared memory x calibrated penalty";

/// Without samples: the faults, each at the penalty that was calibrated.
fn calculated_time(
    window: &Window,
    pair: &Pair,
    faults: f64,
    shared: Interval,
) -> Result<(Interval, Vec<Evidence>), Gap> {
    let penalty = window.calibration.as_ref().map(|c| c.minor_fault_ns).into_result()?;
    let system_s =
        pair.growth("system time", |d| d.counters.system_s.clone().map(|s| s.0)).into_result()?;
    // Faults are served in the kernel: they cannot have taken more than the system time.
    let taken_s = shared.times(penalty).scale(faults / 1e9).clamp(0.0, system_s);
    let evidence = Evidence::new(&evidence::FAULT_PENALTY, penalty.mid / 1e9, "calibrated here");
    Ok((taken_s, vec![evidence]))
}

fn sampled_evidence(share: Interval) -> Vec<Evidence> {
    vec![Evidence::new(&evidence::FAULTING_SHARE, share.mid, "stacks, sampled")]
}

/// What is not charged, because it ends by itself; nothing where nothing does.
fn warm_up_evidence(warm_up: &WarmUp, cpus: f64) -> Vec<Evidence> {
    if cpus <= 0.0 {
        return Vec::new();
    }
    let paces = warm_up.fell.into_iter().flat_map(|(early, late)| {
        let source = "/proc/PID/stat of living processes";
        [(&evidence::FAULTS_EARLY, early), (&evidence::FAULTS_LATE, late)]
            .map(|(kind, per_s)| Evidence::new(kind, per_s, source))
    });
    let uncharged = Evidence::new(&evidence::WARM_UP, cpus, "faults of processes that live on");
    paces.chain([uncharged]).collect()
}

fn fault_evidence(pair: &Pair, faults: f64, shared: f64) -> Vec<Evidence> {
    let per_second = faults / pair.seconds;
    vec![
        Evidence::new(&evidence::MINOR_FAULTS, per_second, "/proc/PID/stat, ended ones included"),
        Evidence::new(&evidence::SHARED_FAULTS, shared, "RssShmem of the processes"),
    ]
}

/// The share of a database's minor faults that mapping the shared memory caused. All samples of its processes
/// count, because the samples inside the window also hold clients that came and went.
fn shared_share(window: &Window, pair: &Pair) -> Reading<Interval> {
    let database = pair.end;
    let at_end = || {
        let mapped = database.memory.mapped_shared_bytes.clone().into_result()?;
        Ok((mapped, database.counters.minor_faults_living.clone().into_result()?))
    };
    Reading::from(at_end()).and_then(|at_end| {
        let inside = window.samples.iter().filter(|sample| sample.database == database.id);
        let inside = inside.map(|sample| (sample.mapped_shared_bytes, sample.minor_faults));
        let (mapped, faults) = inside
            .chain([at_end])
            .fold((0.0, 0.0), |(mapped, faults), (m, f)| (mapped + m.0 as f64, faults + f as f64));
        if faults == 0.0 {
            return Reading::Absent("its living processes had no minor faults".to_owned());
        }
        let shared = mapped / FAULT_AROUND.0 as f64 / faults;
        let (down, up) = SHARED_FAULTS_OFF;
        Reading::Present(Interval::new(shared * down, shared, shared * up).clamp(0.0, 1.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::postgres;

    #[test]
    fn clients_that_came_and_went_are_known_from_samples() {
        let mut window = postgres();
        // At the end only processes without shared memory are left.
        window.end.databases[0].memory.mapped_shared_bytes = Reading::Present(Bytes(0));
        let share = |window: &Window| {
            let pair = window.databases().next().unwrap();
            shared_share(window, &pair).into_value().unwrap().mid
        };
        assert!(share(&window) < 1e-9);
        window.samples = vec![untax_core::window::FaultSample {
            database: "postgres:7".to_owned(),
            mapped_shared_bytes: Bytes(3 << 36),
            page_table_bytes: None,
            minor_faults: 3 << 20,
        }];
        assert!((share(&window) - 0.75).abs() < 1e-9);
    }
}
