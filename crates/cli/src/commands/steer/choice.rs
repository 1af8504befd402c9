//! Which databases are steered, and onto which CPUs.

use crate::Usage;
use anyhow::{Context, bail};
use std::time::Duration;
use untax_core::cpus::Cpus;
use untax_host::{Host, facts};
use untax_steer::Chosen;
use untax_steer::policy::{Rule, Tunables};
use untax_steer::resolve::{Candidate, by_name, candidates, process};
use untax_steer::{demands, preferred_cpus};

/// For how long demand is watched before CPUs are proposed.
const WATCHED: Duration = Duration::from_secs(3);

/// The wishes of a person.
pub struct Wanted<'a> {
    /// `NAME=CPUS` each; none for every database, on proposed CPUs.
    pub instances: &'a [String],
    pub hold: Duration,
    pub judge: Duration,
}

/// The instances that a person named, or all, with proposed CPUs.
pub fn choose(wanted: &Wanted, pass: impl FnOnce(Duration)) -> anyhow::Result<Vec<Chosen>> {
    let host = Host::live();
    let facts = facts::read_all(&host);
    let found = candidates(&host, &facts);
    let why = found.why();
    let found = found.into_value().context(why.unwrap_or_default())?;
    if !wanted.instances.is_empty() {
        let look = |pid| process(&host, &facts, pid);
        let named = wanted.instances.iter().map(|text| named(text, wanted, &found, look));
        return named.collect();
    }
    if found.is_empty() {
        bail!(
            "no database that untax knows runs here; start one, or name a process by --instance PID=CPUS"
        );
    }
    let demands = demands(&found, || pass(WATCHED));
    let proposed = preferred_cpus(&host, &facts, &demands)?;
    let tunables = tunables(wanted, Rule::Full);
    let chosen = found.into_iter().zip(proposed);
    let whole =
        |(candidate, preferred)| Chosen { candidate, along: Vec::new(), preferred, tunables };
    Ok(chosen.map(whole).collect())
}

fn tunables(wanted: &Wanted, rule: Rule) -> Tunables {
    Tunables { rule, hold: wanted.hold, judge: wanted.judge }
}

/// `NAME=CPUS`, `NAME+PID=CPUS`, `NAME=CPUS/5:4` or `NAME=CPUS/hard`.
fn named(
    text: &str,
    wanted: &Wanted,
    found: &[Candidate],
    look: impl Fn(u32) -> Option<Candidate>,
) -> anyhow::Result<Chosen> {
    let Parsed { name, along, preferred, rule } = parse(text)?;
    let mut candidate = by_name(found, name).map_err(|unknown| Usage(unknown.to_string()))?;
    if !found.iter().any(|known| known.pid == candidate.pid) {
        // No database that untax knows: where its memory lies is not read yet.
        candidate = look(candidate.pid).unwrap_or(candidate);
    }
    Ok(Chosen { candidate, along, preferred, tunables: tunables(wanted, rule) })
}

/// One `--instance`, taken apart.
#[derive(Debug)]
struct Parsed<'a> {
    name: &'a str,
    along: Vec<u32>,
    preferred: Cpus,
    rule: Rule,
}

fn parse(text: &str) -> Result<Parsed<'_>, Usage> {
    let wrong = |why: String| Usage(format!("--instance {text}: {why}"));
    let form = || wrong("write NAME=CPUS, such as postgres@5432=0-21".to_owned());
    let (name, rest) = text.rsplit_once('=').ok_or_else(form)?;
    let (list, rule) = rest.split_once('/').unwrap_or((rest, ""));
    let mut names = name.split('+');
    let name = names.next().unwrap_or_default();
    let along: Result<Vec<u32>, _> = names.map(str::parse).collect();
    let along = along.map_err(|_| wrong("write a process id after each +".to_owned()))?;
    let preferred: Cpus = list.parse().map_err(|error| wrong(format!("{error}")))?;
    if name.is_empty() || preferred.is_empty() {
        return Err(form());
    }
    let rule = match rule {
        "" => Rule::Full,
        "hard" => Rule::Never,
        ratio => Rule::Above(ratio.parse().map_err(|error| wrong(format!("{error}")))?),
    };
    Ok(Parsed { name, along, preferred, rule })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_has_a_name_cpus_and_a_rule() {
        let parsed = parse("postgres@5432=0-3,8").unwrap();
        assert_eq!((parsed.name, parsed.rule), ("postgres@5432", Rule::Full));
        assert_eq!(parsed.preferred.to_string(), "0-3,8");
        assert_eq!(parse("postgres@5432+70+8=0").unwrap().along, [70, 8]);
        assert_eq!(parse("7=0/hard").unwrap().rule, Rule::Never);
        assert!(
            matches!(parse("7=0/5:4").unwrap().rule, Rule::Above(ratio) if ratio.preferred == 5)
        );
        for wrong in ["", "a", "a=", "=0", "a=x", "a=0/soft", "a=0/5:0", "a+b=0", "+7=0"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
