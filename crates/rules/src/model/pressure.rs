//! What the kernel counts of tasks that were held up, where nothing is traced: no tax follows from it,
//! because it tells of all tasks of a group or of the machine.

use untax_core::pressure::{GroupStalls, Pressure, Stalled, Stalls};
use untax_core::window::Pair;
use untax_core::{Reading, Seconds, Window};

/// The shares of a window in which tasks were held up: those of the database's group if it was in the
/// same one at both ends, otherwise those of the machine.
pub fn pressure(window: &Window, pair: &Pair) -> Reading<Pressure> {
    if pair.seconds <= 0.0 {
        return Reading::Absent("the check had no window; use --window 10s".to_owned());
    }
    if let Some((start, end)) = own_group(pair) {
        let scope = format!("group {}", end.cgroup);
        return Reading::Present(between(scope, &start.stalls, &end.stalls, pair.seconds));
    }
    let [start, end] = [&window.start, &window.end].map(|snapshot| snapshot.host.pressure.as_ref());
    end.and_then(|end| start.map(|start| between("machine".to_owned(), start, end, pair.seconds)))
}

fn own_group<'a>(pair: &Pair<'a>) -> Option<(&'a GroupStalls, &'a GroupStalls)> {
    let start = pair.start?.cgroup.value()?.pressure.value()?;
    let end = pair.end.cgroup.value()?.pressure.value()?;
    (start.cgroup == end.cgroup).then_some((start, end))
}

fn between(scope: String, start: &Stalls, end: &Stalls, seconds: f64) -> Pressure {
    let [cpu, io, memory] =
        [(&start.cpu, &end.cpu), (&start.io, &end.io), (&start.memory, &end.memory)];
    let some = |of| growth_share(of, seconds, |stalled| Reading::Present(stalled.some_s));
    let full = |of| growth_share(of, seconds, |stalled| stalled.full_s.clone());
    Pressure {
        scope,
        cpu_some: some(cpu),
        cpu_full: full(cpu),
        io_some: some(io),
        io_full: full(io),
        memory_some: some(memory),
        memory_full: full(memory),
    }
}

fn growth_share(
    (start, end): (&Reading<Stalled>, &Reading<Stalled>),
    seconds: f64,
    read: impl Fn(&Stalled) -> Reading<Seconds>,
) -> Reading<f64> {
    let start = start.as_ref().and_then(&read);
    end.as_ref().and_then(&read).and_then(|end| {
        start.and_then(|start| {
            if end < start {
                Reading::Failed("pressure went backwards during the window".to_owned())
            } else {
                // It is read a moment later than the clock.
                Reading::Present(((end - start).0 / seconds).min(1.0))
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window;
    use Reading::{Absent, Failed, Present};
    use untax_core::Bytes;
    use untax_core::database::Cgroup;

    /// All held up for so long so far, for each thing; `full` is not counted for CPUs.
    fn stalls(seconds: f64) -> Stalls {
        let stalled = |some: f64, full_s| Present(Stalled { some_s: Seconds(some), full_s });
        Stalls {
            cpu: stalled(seconds, Absent("no meaning".to_owned())),
            io: stalled(2.0 * seconds, Present(Seconds(seconds))),
            memory: Absent("not there".to_owned()),
        }
    }

    fn of(window: &Window) -> Reading<Pressure> {
        pressure(window, &window.databases().next().unwrap())
    }

    /// A window of ten seconds in which the machine's counters went on by two.
    fn window() -> Window {
        let mut window = test_window::postgres();
        window.start.host.pressure = Present(stalls(5.0));
        window.end.host.pressure = Present(stalls(7.0));
        window
    }

    fn enter(window: &mut Window, groups: [&str; 2]) {
        let ends = [(&mut window.start, groups[0], 1.0), (&mut window.end, groups[1], 4.0)];
        for (snapshot, cgroup, seconds) in ends {
            let found = GroupStalls { cgroup: cgroup.to_owned(), stalls: stalls(seconds) };
            let groups = test_window::cgroup(vec![test_window::limit("/a", Bytes(1), Bytes(0))])
                .into_value()
                .unwrap();
            let groups = Cgroup { pressure: Present(found), ..groups };
            snapshot.databases[0].cgroup = Present(groups);
        }
    }

    #[test]
    fn counters_of_the_machine_are_shares_of_the_window() {
        let window = window();
        assert!((window.seconds() - 10.0).abs() < 1e-9);
        let found = of(&window).into_value().unwrap();
        assert_eq!(found.scope, "machine");
        assert_eq!((found.cpu_some, found.io_some), (Present(0.2), Present(0.4)));
        assert_eq!(found.io_full, Present(0.2));
        assert!(matches!(found.cpu_full, Absent(why) if why == "no meaning"));
        assert!(matches!(found.memory_some, Absent(_)) && matches!(found.memory_full, Absent(_)));
    }

    #[test]
    fn a_group_goes_before_the_machine_if_it_is_the_same_at_both_ends() {
        let mut window = window();
        enter(&mut window, ["/a", "/a"]);
        let found = of(&window).into_value().unwrap();
        assert_eq!((found.scope.as_str(), found.cpu_some), ("group /a", Present(0.3)));
        enter(&mut window, ["/a", "/b"]);
        assert_eq!(of(&window).into_value().unwrap().scope, "machine");
    }

    #[test]
    fn where_it_is_off_or_went_backwards_it_is_not_zero() {
        let mut window = window();
        window.end.host.pressure = Present(stalls(4.0));
        assert!(matches!(of(&window).into_value().unwrap().cpu_some, Failed(_)));
        window.end.host.pressure = Absent("switched off".to_owned());
        assert_eq!(of(&window), Absent("switched off".to_owned()));
        window.end.uptime_s = window.start.uptime_s;
        assert!(matches!(of(&window), Absent(why) if why.contains("no window")));
    }
}
