//! What owners need of their own CPUs, and so do not lend.

use super::sample::Sample;
use untax_core::cpus::Cpus;

/// CPU time, in CPUs, from which on an owner counts as awake: as for busy databases beside a bench. Idle servers
/// of PostgreSQL, MariaDB and Redis take less than 0.01.
pub const AWAKE_CPUS: f64 = 0.05;

/// An owner gets as many of its CPUs as it uses, times this: it may just have begun, and beside others it got
/// a part of what it wants.
const HEADROOM: f64 = 2.0;

/// What each owner needs.
#[derive(Debug, Clone)]
pub struct Owners {
    needs: Vec<Need>,
}

#[derive(Debug, Clone, Default)]
struct Need {
    cpus: usize,
    seen_s: f64,
    reserved: Cpus,
}

impl Owners {
    /// So many owners, who need nothing yet.
    pub fn of(count: usize) -> Self {
        Self { needs: vec![Need::default(); count] }
    }

    /// Looks at what each needs: what it used, and for its `hold` the most of what it used. `given` are the
    /// CPUs that each instance has now.
    pub fn look(&mut self, sample: &Sample, homes: &[Cpus], holds: &[f64], given: &[Cpus]) {
        for (place, need) in self.needs.iter_mut().enumerate() {
            let (home, seen) = (&homes[place], &sample.instances[place]);
            let used = seen.used_cpus;
            let now = if used > AWAKE_CPUS { (used * HEADROOM).ceil() as usize } else { 0 };
            if now >= need.cpus || sample.now_s - need.seen_s >= holds[place] {
                need.cpus = now.min(home.len());
                need.seen_s = sample.now_s;
            }
            // Those that nobody borrowed first.
            let borrowed = |cpu: u32| {
                let mut others = given.iter().enumerate().filter(|(other, _)| *other != place);
                others.any(|(other, cpus)| cpus.has(cpu) && !homes[other].has(cpu))
            };
            let mut own: Vec<u32> = home.iter().collect();
            own.sort_by_key(|cpu| borrowed(*cpu));
            need.reserved = own.into_iter().take(need.cpus).collect();
        }
    }

    /// The CPUs that all but one instance need themselves.
    pub fn reserved_by_others(&self, place: usize) -> Cpus {
        let others = self.needs.iter().enumerate().filter(|(other, _)| *other != place);
        others.fold(Cpus::default(), |all, (_, need)| all.or(&need.reserved))
    }
}
