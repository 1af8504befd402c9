//! How CPUs sleep, at what frequency they run, and what keeps them from either, as types.

use crate::Reading;
use serde::{Deserialize, Serialize};

/// For how long idle CPUs of a guest are to look for work: the default of the kernel's haltpoll governor
/// (kernel.org: virt/guest-halt-polling). One that does hardly ever halts between two requests of a client.
pub const HALT_POLL_NS: u64 = 200_000;

/// What sets it at boot, on the kernel's command line.
pub const HALT_POLL_WORD: &str = "haltpoll.guest_halt_poll_ns";

/// States that are left within this time cost a request about as much as any switch of threads.
pub const SHALLOW_US: u64 = 10;

/// Why there is no limit on the latency of all CPUs where there could be one.
pub const NO_LIMIT: &str = "no process limits the latency of all CPUs";

/// How idle CPUs are put to sleep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpuIdle {
    /// The driver, such as `intel_idle`, `acpi_idle` or `haltpoll`.
    pub driver: String,
    /// What chooses a state, such as `menu`, `teo` or `haltpoll`.
    pub governor: Reading<String>,
    /// The states of the first CPU, the lightest first, with what all CPUs did in them.
    pub states: Reading<Vec<IdleState>>,
}

/// One state that an idle CPU may be put into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct IdleState {
    /// Its name, such as `POLL`, `C1E` or `C6`.
    pub name: String,
    /// What it takes to leave it, by its driver.
    pub latency_us: u64,
    /// How often CPUs were put into it since boot, all together.
    pub usage: Reading<u64>,
    /// For how long, all together.
    pub time_us: Reading<u64>,
    /// The CPUs on which it is forbidden.
    pub disabled_on: Vec<u32>,
}

/// For how long a guest looks for work before it halts an idle virtual CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HaltPoll {
    /// At most; 0: it halts at once.
    pub poll_ns: u64,
    /// At first, once it grows from nothing.
    pub grow_start_ns: Reading<u64>,
    /// Whether it becomes shorter again where nothing comes.
    pub allow_shrink: Reading<bool>,
}

/// How the frequency of CPUs is chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpuFreq {
    /// The driver, such as `intel_pstate`, `amd-pstate-epp` or `acpi-cpufreq`.
    pub driver: String,
    /// CPUs whose frequency is chosen together.
    pub policies: Vec<FrequencyPolicy>,
    /// Whether CPUs may run above their nominal frequency.
    pub turbo: Reading<bool>,
}

/// CPUs whose frequency is chosen together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FrequencyPolicy {
    /// Its directory's name, such as `policy0`.
    pub name: String,
    /// The CPUs, such as `0-1`.
    pub cpus: String,
    /// What chooses the frequency, such as `powersave`, `schedutil` or `performance`.
    pub governor: Reading<String>,
    /// What the processor prefers within it, such as `balance_performance`.
    pub preference: Reading<String>,
    /// The limits that are set.
    pub min_khz: Reading<u64>,
    /// The same.
    pub max_khz: Reading<u64>,
    /// The most that the hardware can.
    pub hardware_max_khz: Reading<u64>,
    /// The frequency that the processor holds without turbo; not known of older captures.
    #[serde(default = "unknown_base")]
    pub base_khz: Reading<u64>,
    /// For how long since boot each frequency was chosen: kHz, and hundredths of a second. Few drivers
    /// count it.
    pub time_at: Reading<Vec<(u64, u64)>>,
}

fn unknown_base() -> Reading<u64> {
    Reading::absent("the version that made this capture did not read it")
}

/// What forbids CPUs to sleep deeply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PowerLimits {
    /// The longest latency that all CPUs may have, us; absent where nobody asked for one.
    pub latency_us: Reading<u64>,
    /// The processes that ask for it.
    pub holders: Vec<String>,
    /// The CPUs that have a limit of their own, and that limit: us, or `n/a` for none at all.
    pub of_cpus: Reading<Vec<(u32, String)>>,
}

impl PowerLimits {
    /// Whether a process can limit the latency of all CPUs: the kernel has the device for it.
    pub fn is_limitable(&self) -> bool {
        match &self.latency_us {
            Reading::Present(_) => true,
            Reading::Absent(why) => why == NO_LIMIT,
            Reading::Denied(_) | Reading::Failed(_) => false,
        }
    }

    /// The limit of one CPU, as its file says it; `None` where that was not read.
    pub fn of_cpu(&self, cpu: u32) -> Option<&str> {
        let limits = self.of_cpus.value()?;
        let own = limits.iter().find(|(known, _)| *known == cpu);
        Some(own.map_or("0", |(_, limit)| limit))
    }
}
