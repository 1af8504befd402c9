//! At which frequency CPUs run, by samples. On x86 the kernel computes `scaling_cur_freq` from the counters
//! APERF and MPERF, which stand still while a CPU sleeps: it is the frequency of what ran.

use std::time::{Duration, Instant};
use untax_core::window::Frequencies;
use untax_host::Host;

const DIRECTORY: &str = "/sys/devices/system/cpu/cpufreq";

/// One round of samples takes no longer. Kernels before 5.18 ask each CPU by an interrupt and wait 10 ms for
/// it (`arch_freq_get_on_cpu`): then a round reaches few, and the next one goes on with others.
const ROUND: Duration = Duration::from_millis(10);

/// Samples the policies of this host, until it is dropped.
pub struct Sampling {
    policies: Vec<Frequencies>,
    next: usize,
}

impl Sampling {
    /// Finds the policies; most guests have none.
    pub fn begin(host: &Host) -> Self {
        let names = host.names(DIRECTORY).into_value().unwrap_or_default();
        let policies = names.into_iter().filter(|name| name.starts_with("policy"));
        let policies = policies.map(|policy| Frequencies { policy, khz: Vec::new() });
        Self { policies: policies.collect(), next: 0 }
    }

    /// Takes one sample of each policy, or of as many as there is time for.
    pub fn sample(&mut self, host: &Host) {
        let begun = Instant::now();
        for _ in 0..self.policies.len() {
            let Frequencies { policy, khz } = &mut self.policies[self.next];
            let file = format!("{DIRECTORY}/{policy}/scaling_cur_freq");
            let text = host.text(&file).into_value();
            let now = text.and_then(|text| text.trim().parse::<u64>().ok());
            // A CPU that is off tells 0.
            khz.extend(now.filter(|khz| *khz > 0));
            self.next = (self.next + 1) % self.policies.len();
            if begun.elapsed() > ROUND {
                break;
            }
        }
    }

    /// What was sampled.
    pub fn end(&mut self) -> Vec<Frequencies> {
        let mut policies = std::mem::take(&mut self.policies);
        policies.retain(|policy| !policy.khz.is_empty());
        policies
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_host::Record;

    #[test]
    fn each_policy_is_sampled_and_what_is_no_frequency_is_left_out() {
        let file = |name: &str| format!("{DIRECTORY}/{name}/scaling_cur_freq");
        let record = Record::default()
            .with_file(&file("policy0"), "1200000\n")
            .with_file(&file("policy1"), "0\n")
            .with_file(&file("policy2"), "<unknown>\n");
        let host = Host::from_record(record);
        let mut sampling = Sampling::begin(&host);
        sampling.sample(&host);
        sampling.sample(&host);
        let expected =
            Frequencies { policy: "policy0".to_owned(), khz: vec![1_200_000, 1_200_000] };
        assert_eq!(sampling.end(), [expected]);
        let none = Host::from_record(Record::default());
        let mut guest = Sampling::begin(&none);
        guest.sample(&none);
        assert!(guest.end().is_empty());
    }
}
