//! What was watched beside a trial, and what spoils one.

use crate::Reading;
use serde::{Deserialize, Serialize};

/// Something beside a trial that makes its result worthless.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum GuardId {
    /// The hypervisor ran other guests: share of this machine's CPU time.
    Steal,
    /// A control group was throttled: its throttled time over the trial's length. On several CPUs it may
    /// exceed 1, because the kernel counts each CPU's run queue.
    GroupThrottled,
    /// The CPUs were busy: share of their time, without what the hypervisor stole.
    CpuSaturated,
    /// A network link was full: bits a second over its speed, in the busier direction.
    LinkSaturated,
    /// A disk was busy: share of the time in which it had requests.
    DiskSaturated,
    /// The wall clock was set: its change against the monotonic clock over the trial's length.
    ClockJump,
    /// The trial lasted longer or shorter than asked: the longer of both over the shorter.
    TrialLength,
    /// Programs that have nothing to do with the trial ran: CPUs' worth of their time.
    OthersBusy,
    /// The result was far from those of the other trials of its cell: the larger of it and their median
    /// over the smaller.
    TrialApart,
    /// CPUs slept in this trial and not in the one that it would be paired with: the larger share of sleeps
    /// over the smaller.
    SleepRegime,
}

impl GuardId {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Steal,
        Self::GroupThrottled,
        Self::CpuSaturated,
        Self::LinkSaturated,
        Self::DiskSaturated,
        Self::ClockJump,
        Self::TrialLength,
        Self::OthersBusy,
        Self::TrialApart,
        Self::SleepRegime,
    ];

    /// Its name in results.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Steal => "steal",
            Self::GroupThrottled => "group-throttled",
            Self::CpuSaturated => "cpu-saturated",
            Self::LinkSaturated => "link-saturated",
            Self::DiskSaturated => "disk-saturated",
            Self::ClockJump => "clock-jump",
            Self::TrialLength => "trial-length",
            Self::OthersBusy => "others-busy",
            Self::TrialApart => "trial-apart",
            Self::SleepRegime => "sleep-regime",
        }
    }
}

/// What one guard measured beside one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Guard {
    /// Which guard.
    pub id: GuardId,
    /// The control group, link or disk, where it watches one of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What was measured, as its id says: a share or a ratio.
    pub value: Reading<f64>,
    /// A value above this spoils the trial.
    pub threshold: f64,
}

impl Guard {
    /// Whether the trial is spoiled. What could not be measured spoils nothing.
    pub fn is_exceeded(&self) -> bool {
        self.value.value().is_some_and(|value| *value > self.threshold)
    }
}

/// In one line, for a person.
impl std::fmt::Display for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id.id())?;
        if let Some(subject) = &self.subject {
            write!(f, " of {subject}")?;
        }
        match self.value.value() {
            Some(value) => write!(f, " {value:.2}, more than {}", self.threshold),
            None => write!(f, " unmeasured: {}", self.value.why().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_same_in_json_and_on_the_screen() {
        for id in GuardId::ALL {
            assert_eq!(serde_json::to_value(id).unwrap(), id.id());
        }
    }

    #[test]
    fn an_unmeasured_value_spoils_nothing() {
        let of = |value| Guard { id: GuardId::Steal, subject: None, value, threshold: 0.1 };
        assert!(of(Reading::Present(0.11)).is_exceeded());
        assert!(!of(Reading::Present(0.1)).is_exceeded());
        assert!(!of(Reading::Denied("/proc/stat".to_owned())).is_exceeded());
    }
}
