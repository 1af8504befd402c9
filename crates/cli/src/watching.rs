//! The arguments of every command that watches the live host, and a single watched window.

use crate::Usage;
use crate::duration::window;
use crate::job_control::Suspend;
use crate::page_costs::StatePageCosts;
use crate::progress::Bar;
use crate::screen::{say, say_all};
use crate::state::State;
use anyhow::Context;
use clap::Args;
use std::time::Duration;
use untax_host::Host;
use untax_pipeline::{Calibrating, Observed, Options, Session, Step, Target};
use untax_trials::Interrupt;

/// Which databases to look at, and for how long.
#[derive(Debug, Args)]
pub struct Watching {
    /// Look only at this process: at its database if it is part of one, else at the process itself
    #[arg(long, value_name = "N", group = "which")]
    pid: Option<u32>,
    /// Look only at the databases in this container (its id or the beginning of it)
    #[arg(long, value_name = "ID", group = "which")]
    container: Option<String>,
    /// Look only at the databases in this Kubernetes pod of this node
    #[arg(long, value_name = "NS/NAME", group = "which")]
    pod: Option<String>,
    /// Look at every database on this host (the default)
    #[arg(long, group = "which")]
    all: bool,
    /// How long to watch: 10s, 500ms, 2m; 0s takes one look and measures no rates
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = window)]
    pub window: Duration,
    /// Do not measure the cost of page faults and page walks here; taxes that need it are
    /// unmeasured
    #[arg(long)]
    no_calibration: bool,
}

impl Watching {
    /// What the pipeline is to look at.
    pub fn options(&self) -> anyhow::Result<Options> {
        let target = match (self.pid, &self.container, &self.pod) {
            (Some(pid), ..) => Target::Pid(pid),
            (_, Some(id), _) => Target::Container(id.clone()),
            (.., Some(pod)) => {
                let wrong = || Usage(format!("--pod wants NAMESPACE/NAME, not {pod}"));
                let (namespace, name) = pod.split_once('/').ok_or_else(wrong)?;
                Target::Pod { namespace: namespace.to_owned(), name: name.to_owned() }
            }
            (None, None, None) => Target::All,
        };
        let calibrating =
            if self.no_calibration { Calibrating::Never } else { Calibrating::Measure };
        Ok(Options { target, window: self.window, calibrating })
    }
}

/// Watches the host for one window, with a bar on a terminal. There is a `Host` for each end of the
/// window, so that a capture can record both. Where `interrupt` is raised, the window ends there, and what was
/// seen so far counts.
pub fn observe(
    options: Options,
    state: &State,
    start: &Host,
    end: &Host,
    interrupt: &Interrupt,
) -> anyhow::Result<Observed> {
    let suspend = Suspend::by_signal().context("cannot listen for signals")?;
    let bar = Bar::over(options.window);
    let costs = StatePageCosts(state);
    let mut session = Session::open(options, &costs, start)?;
    let mut seen = Duration::ZERO;
    let is_whole = session.pass(|passed| {
        bar.show(passed);
        seen = passed;
        if interrupt.check().is_ok() { suspend.step() } else { Step::End }
    });
    drop(bar);
    if !is_whole {
        say(&format!("untax: interrupted; this is what was seen in the first {seen:.1?}"));
    }
    let observed = session.close(end)?;
    say_all(&observed.notes);
    Ok(observed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        watching: Watching,
    }

    fn target(line: &str) -> anyhow::Result<Target> {
        let words = std::iter::once("check").chain(line.split_whitespace());
        Ok(Line::try_parse_from(words)?.watching.options()?.target)
    }

    #[test]
    fn each_way_to_name_a_database_is_its_own_target() {
        assert_eq!(target("").unwrap(), Target::All);
        assert_eq!(target("--all").unwrap(), Target::All);
        assert_eq!(target("--pid 7").unwrap(), Target::Pid(7));
        assert_eq!(target("--container ab").unwrap(), Target::Container("ab".to_owned()));
        let pod = Target::Pod { namespace: "db".to_owned(), name: "pg-0".to_owned() };
        assert_eq!(target("--pod db/pg-0").unwrap(), pod);
        assert!(target("--pod pg-0").unwrap_err().is::<Usage>());
    }
}
