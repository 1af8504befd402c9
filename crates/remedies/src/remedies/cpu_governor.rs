//! `cpu-governor`: the databases' CPUs run as fast as they may. Sources: kernel.org, admin-guide/pm/cpufreq,
//! admin-guide/pm/intel_pstate and admin-guide/pm/amd-pstate.

use crate::case::Case;
use crate::own_cpus::{self, Setting};
use crate::remedy::{Draft, Remedy};
use untax_core::Reading::Present;
use untax_core::host::cpus;
use untax_core::idle::FrequencyPolicy;
use untax_core::plan::{Step, Warning};

pub const REMEDY: Remedy = Remedy {
    id: "cpu-governor",
    summary: "the governor, the preference and the limit of the frequency of the databases' CPUs",
    answers: &["cpu-governor"],
    plan,
};

/// The governor and the preference for frequency above all.
const FAST: &str = "performance";

fn plan(case: &Case) -> Draft {
    let host = &case.snapshot.host;
    let Some(freq) = host.cpufreq.value() else { return Draft::default() };
    let own = own_cpus::pinned(host, case.concerned());
    let is_own = |policy: &&FrequencyPolicy| {
        own.as_ref().is_none_or(|own| cpus(&policy.cpus).any(|cpu| own.contains(&cpu)))
    };
    let settings: Vec<Setting> = freq.policies.iter().filter(is_own).flat_map(settings).collect();
    if settings.is_empty() {
        return Draft::default();
    }
    let databases = case.databases();
    let mut steps: Vec<Step> = settings.iter().map(|s| s.step(REMEDY.id, &databases)).collect();
    steps.push(own_cpus::at_boot(&settings, REMEDY.id, &databases));
    let is_limit = |setting: &Setting| setting.file.ends_with("/scaling_max_freq");
    let mut warnings = vec![price()];
    warnings.extend(settings.iter().any(is_limit).then(decided));
    Draft { steps, warnings, ..Draft::default() }
}

/// What is to change of one policy. The preference comes first, as it cannot be written once the governor
/// is `performance`; so it is put back last.
fn settings(policy: &FrequencyPolicy) -> Vec<Setting> {
    let setting = |file: &str, what: &str, from: String, to: String| Setting {
        id: format!("{}-{}-{file}", REMEDY.id, policy.name).replace('_', "-"),
        what: format!("{what} of CPU {}", policy.cpus),
        file: format!("/sys/devices/system/cpu/cpufreq/{}/{file}", policy.name),
        from,
        to,
    };
    let mut settings = Vec::new();
    let governor = policy.governor.value().filter(|governor| *governor != FAST);
    if let (Some(_), Present(now)) = (governor, &policy.preference)
        && now != FAST
    {
        let file = "energy_performance_preference";
        settings.push(setting(file, "preference", now.clone(), FAST.to_owned()));
    }
    if let Some(now) = governor {
        settings.push(setting("scaling_governor", "governor", now.clone(), FAST.to_owned()));
    }
    if let (Present(now), Present(most)) = (&policy.max_khz, &policy.hardware_max_khz)
        && now < most
    {
        let what = "highest frequency, kHz,";
        settings.push(setting("scaling_max_freq", what, now.to_string(), most.to_string()));
    }
    settings
}

fn price() -> Warning {
    Warning {
        id: "cpu-governor-price".to_owned(),
        refuses: false,
        text: "these CPUs then keep a high frequency: they take more power and get warmer, and others of \
               the same package may lose turbo. A profile of tuned or a power daemon may set it again"
            .to_owned(),
    }
}

fn decided() -> Warning {
    Warning {
        id: "cpu-limit-decided".to_owned(),
        refuses: false,
        text: "somebody limited the frequency of these CPUs, for power, heat or noise: ask the owner of \
               the machine before you apply this plan"
            .to_owned(),
    }
}
