//! Memory that runs out: the seconds that are left, and when an episode of it begins.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use untax_core::Severity;
use untax_core::check::Checked;
use untax_core::evidence::Value;

/// The rules that see it come.
const NEAR: &str = "oom-near";
const STALL: &str = "reclaim-stall";

/// Windows one after the other in which reclaim takes much before that counts as running out.
const STALLS: u32 = 2;

/// An event is told no more often than this: one of a node is enough to look at it.
const EVENTS_APART: Duration = Duration::from_secs(600);

/// The seconds until a memory limit is met at the speed of the window; `None` where it is not near, or nothing
/// grows.
pub(crate) fn seconds_left(checked: &Checked) -> Option<f64> {
    let finding = checked.findings.iter().find(|finding| finding.rule == NEAR)?;
    let number = |id: &str| {
        let evidence = finding.evidence.iter().find(|evidence| evidence.id == id)?;
        match evidence.value {
            Value::Count(count) => Some(count as f64),
            Value::Number(number) => Some(number),
            _ => None,
        }
    };
    let (limit, fixed) = (number("memory-limit")?, number("memory-unreclaimable")?);
    let per_s = number("memory-growth").filter(|per_s| *per_s > 0.0)?;
    Some((limit - fixed).max(0.0) / per_s)
}

/// The beginning of an episode.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Alarm {
    /// The database's name.
    pub database: String,
    /// Seconds until its limit is met, where that is known.
    pub seconds_left: Option<f64>,
    /// The summary of the finding.
    pub summary: String,
    /// Whether a person should hear of it: not of each, where many begin.
    pub is_event: bool,
}

/// The databases whose memory runs out.
#[derive(Debug, Default)]
pub(crate) struct Episodes {
    open: BTreeSet<String>,
    stalls: BTreeMap<String, u32>,
    told_at: Option<Instant>,
}

impl Episodes {
    /// Takes a window in: the databases by their names. Gives those whose episode begins. It ends with a window
    /// in which nothing is near.
    pub fn window<'a>(
        &mut self,
        databases: impl Iterator<Item = (&'a str, &'a Checked)>,
        now: Instant,
    ) -> Vec<Alarm> {
        let before = std::mem::take(&mut self.open);
        let stalls = std::mem::take(&mut self.stalls);
        let mut alarms = Vec::new();
        for (name, checked) in databases {
            let of = |rule| severity(checked, rule);
            let stalled = match of(STALL) {
                Some((Severity::High, _)) => stalls.get(name).map_or(1, |count| count + 1),
                _ => 0,
            };
            if stalled > 0 {
                self.stalls.insert(name.to_owned(), stalled);
            }
            let near = of(NEAR).filter(|(severity, _)| *severity > Severity::Info);
            let begins = [
                near.filter(|(severity, _)| *severity == Severity::High),
                of(STALL).filter(|_| stalled >= STALLS),
            ];
            let begun = begins.into_iter().flatten().next();
            let was_open = before.contains(name);
            if begun.is_some() || (was_open && (near.is_some() || stalled > 0)) {
                self.open.insert(name.to_owned());
            }
            if let Some((_, summary)) = begun.filter(|_| !was_open) {
                let is_event =
                    self.told_at.is_none_or(|told| now.duration_since(told) >= EVENTS_APART);
                if is_event {
                    self.told_at = Some(now);
                }
                let (database, summary) = (name.to_owned(), summary.to_owned());
                alarms.push(Alarm {
                    database,
                    seconds_left: seconds_left(checked),
                    summary,
                    is_event,
                });
            }
        }
        alarms
    }
}

fn severity<'a>(checked: &'a Checked, rule: &str) -> Option<(Severity, &'a str)> {
    let finding = checked.findings.iter().find(|finding| finding.rule == rule)?;
    Some((finding.severity, &finding.summary))
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::{Database, Evidence, EvidenceKind, Finding};

    fn checked(findings: &[(&str, Severity)]) -> Checked {
        let mut checked = Checked::of(&Database::unknown("redis", 7, "a test"), "a test");
        let finding =
            |(rule, severity): &(&str, Severity)| Finding::new(rule, *severity, "near", "");
        checked.findings = findings.iter().map(finding).collect();
        checked
    }

    fn evidence(id: &'static str, value: Value) -> Evidence {
        Evidence::new(&EvidenceKind { id, name: "", unit: "", meaning: "" }, value, "a test")
    }

    #[test]
    fn the_seconds_left_follow_from_limit_use_and_growth() {
        let mut near = checked(&[(NEAR, Severity::High)]);
        assert_eq!(seconds_left(&near), None, "nothing is known");
        near.findings[0].evidence = vec![
            evidence("memory-limit", Value::Count(1000)),
            evidence("memory-unreclaimable", Value::Count(700)),
        ];
        assert_eq!(seconds_left(&near), None, "nothing grows");
        near.findings[0].evidence.push(evidence("memory-growth", Value::Number(10.0)));
        assert_eq!(seconds_left(&near), Some(30.0));
        near.findings[0].evidence[1].value = Value::Count(2000);
        assert_eq!(seconds_left(&near), Some(0.0));
        assert_eq!(seconds_left(&checked(&[])), None);
    }

    #[test]
    fn an_episode_begins_once_and_ends_with_a_window_in_which_nothing_is_near() {
        let mut episodes = Episodes::default();
        let now = Instant::now();
        let mut begins = |findings: &[(&str, Severity)]| {
            let checked = checked(findings);
            episodes.window([("a", &checked)].into_iter(), now).len()
        };
        assert_eq!(begins(&[(NEAR, Severity::Medium)]), 0, "not yet");
        assert_eq!(begins(&[(NEAR, Severity::High)]), 1);
        assert_eq!(begins(&[(NEAR, Severity::High)]), 0);
        assert_eq!(begins(&[(NEAR, Severity::Low)]), 0);
        assert_eq!(begins(&[(NEAR, Severity::High)]), 0, "the same episode");
        assert_eq!(begins(&[(NEAR, Severity::Info)]), 0, "kills of yesterday");
        assert_eq!(begins(&[(NEAR, Severity::High)]), 1, "the next one");
        assert_eq!(begins(&[]), 0);
        assert_eq!(begins(&[(STALL, Severity::High)]), 0, "once may be chance");
        assert_eq!(begins(&[(STALL, Severity::High)]), 1);
        assert_eq!(begins(&[(STALL, Severity::High)]), 0);
    }

    #[test]
    fn events_of_a_node_are_ten_minutes_apart() {
        let mut episodes = Episodes::default();
        let high = checked(&[(NEAR, Severity::High)]);
        let begun = Instant::now();
        let mut events = |names: &[&str], after_s: u64| {
            let all = names.iter().map(|name| (*name, &high));
            let alarms = episodes.window(all, begun + Duration::from_secs(after_s));
            alarms
                .into_iter()
                .filter(|alarm| alarm.is_event)
                .map(|alarm| alarm.database)
                .collect::<Vec<_>>()
        };
        assert_eq!(events(&["a", "b"], 0), ["a"]);
        assert_eq!(events(&["a", "b", "c"], 599), Vec::<String>::new());
        assert_eq!(events(&["a", "b", "c", "d"], 600), ["d"]);
    }
}
