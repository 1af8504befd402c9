//! First touches of shared memory: each process pays for a page once, so what they cost ends by itself.

use untax_core::window::{FaultSample, Pair};
use untax_core::{Database, Interval, Reading, Window};

/// A warm-up is judged by what is left of it, spread over the hour to come: what is over within minutes
/// is worth nothing to whoever plans a change, and what goes on for hours is worth the change.
const TO_COME_S: f64 = 3600.0;

/// Fewer samples than this show no course: two paces, early and late.
const FEWEST_SAMPLES: usize = 4;

/// Faults that are fewer than this part of those before have fallen: more than the load's own changes.
const FALLEN: f64 = 0.5;

/// What becomes of the page faults of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmUp {
    /// The part (0..1) of the time in faults that stays. The lower bound is that of processes that end, and
    /// whose followers touch all anew.
    pub stays: Interval,
    /// Page faults in a second, early and late in the window, where they fell.
    pub fell: Option<(f64, f64)>,
    /// How long it takes at most until all processes have touched all, at this pace, s.
    pub left_s: Option<f64>,
}

impl WarmUp {
    /// The warm-up that the page faults of a database are in; everything stays where its course is not
    /// known.
    pub fn of(window: &Window, pair: &Pair) -> Self {
        let course = Course::of(window, pair);
        let growth = pair.growth("mapped memory", mapped).into_value().filter(|grown| *grown > 0.0);
        let late = course.map_or(1.0, Course::late_part);
        let left = growth.and_then(|grown| Some((unmapped(pair.end)?, grown / pair.seconds)));
        // Of what living processes took: as much as late in the window, while there is memory left.
        let to_come = left.map_or(1.0, |(left, pace)| left / (pace * TO_COME_S)).min(late);
        let ended = ended_part(pair);
        let stays = ended + (1.0 - ended) * to_come;
        Self {
            stays: Interval::new(ended, stays, stays),
            fell: course.filter(|course| course.has_fallen()).map(|c| (c.early, c.late)),
            left_s: left.map(|(left, pace)| left / pace),
        }
    }

    /// What it is, in words.
    pub fn words(&self) -> String {
        match (self.fell, self.left_s) {
            (Some((early, late)), _) => {
                format!(
                    "warm-up: page faults fell from {early:.0} to {late:.0}/s within the window"
                )
            }
            (None, Some(left_s)) => format!(
                "warm-up: processes touch the data for the first time, for {left_s:.0} s at most"
            ),
            (None, None) => "warm-up: processes touch the data for the first time".to_owned(),
        }
    }
}

/// The part of the faults that ended processes took in all their lives. Where processes come and go evenly,
/// that is all of them; where all stay, it is none.
fn ended_part(pair: &Pair) -> f64 {
    let all = |d: &Database| d.counters.minor_faults.clone().map(|faults| faults as f64);
    let faults = pair.growth("minor faults", all).into_value();
    let ended = pair.growth("faults of ended processes", ended_faults).into_value();
    match faults.zip(ended) {
        Some((faults, ended)) if faults > 0.0 => (ended / faults).min(1.0),
        // Not known.
        _ => 1.0,
    }
}

/// Minor faults of processes that ended.
pub fn ended_faults(database: &Database) -> Reading<f64> {
    let counters = &database.counters;
    counters.minor_faults.as_ref().and_then(|all| {
        counters.minor_faults_living.clone().map(|living| all.saturating_sub(living) as f64)
    })
}

fn mapped(database: &Database) -> Reading<f64> {
    database.memory.mapped_shared_bytes.clone().map(|bytes| bytes.0 as f64)
}

/// What its processes may still map of the shared memory, bytes, as if each were to touch all of it.
fn unmapped(database: &Database) -> Option<f64> {
    let shared = database.memory.shared_bytes.value()?.0 as f64;
    let mapped = mapped(database).into_value()?;
    Some((shared * f64::from(database.processes()) - mapped).max(0.0))
}

/// Page faults of living processes in a second, at three times of a window.
#[derive(Debug, Clone, Copy)]
struct Course {
    early: f64,
    mean: f64,
    late: f64,
}

impl Course {
    /// By samples, which stand in the middle of equal parts of the window. `None` where there are too few, or
    /// processes ended meanwhile and took their counts with them.
    fn of(window: &Window, pair: &Pair) -> Option<Self> {
        let of_it = |sample: &&FaultSample| sample.database == pair.end.id;
        let faults: Vec<u64> =
            window.samples.iter().filter(of_it).map(|sample| sample.minor_faults).collect();
        let steps: Option<Vec<u64>> =
            faults.windows(2).map(|two| two[1].checked_sub(two[0])).collect();
        let (apart_s, steps) = (pair.seconds / faults.len() as f64, steps?);
        if faults.len() < FEWEST_SAMPLES || apart_s <= 0.0 {
            return None;
        }
        let per_s = |faults: u64| faults as f64 / apart_s;
        let mean = per_s(steps.iter().sum()) / steps.len() as f64;
        Some(Self { early: per_s(steps[0]), mean, late: per_s(*steps.last()?) })
    }

    /// What is left late in the window, of the mean of all of it.
    fn late_part(self) -> f64 {
        if self.mean > 0.0 { (self.late / self.mean).min(1.0) } else { 1.0 }
    }

    fn has_fallen(self) -> bool {
        self.late < FALLEN * self.early
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window::postgres;
    use untax_core::Bytes;

    const GIB: u64 = 1 << 30;

    /// A window of ten seconds in which 70 processes took 2e6 faults, of which ended ones had this many in
    /// all their lives, and mapped so much more of 6 GiB each.
    fn window(ended: u64, mapped: [u64; 2], course: &[u64]) -> Window {
        let mut window = postgres();
        let [start, end] = [&mut window.start, &mut window.end].map(|s| &mut s.databases[0]);
        for (database, mapped) in [start, end].into_iter().zip(mapped) {
            database.memory.mapped_shared_bytes = Reading::Present(Bytes(mapped));
        }
        let living = [5_000_000, 7_000_000 - ended];
        let all = [5_000_000, 7_000_000];
        for (at, snapshot) in [&mut window.start, &mut window.end].into_iter().enumerate() {
            let counters = &mut snapshot.databases[0].counters;
            counters.minor_faults = Reading::Present(all[at]);
            counters.minor_faults_living = Reading::Present(living[at]);
        }
        let sample = |faults: &u64| FaultSample {
            database: "postgres:7".to_owned(),
            mapped_shared_bytes: Bytes(0),
            page_table_bytes: None,
            minor_faults: *faults,
        };
        window.samples = course.iter().map(sample).collect();
        window
    }

    fn warm_up(window: &Window) -> WarmUp {
        WarmUp::of(window, &window.databases().next().unwrap())
    }

    #[test]
    fn first_touches_of_processes_that_stay_end_by_themselves() {
        // 70 processes of 6 GiB have 20 GiB to go at 10 GiB/s: two seconds of an hour.
        let warming = warm_up(&window(0, [300 * GIB, 400 * GIB], &[]));
        assert!((warming.stays.mid - 20.0 / 10.0 / 3600.0).abs() < 1e-9, "{warming:?}");
        assert!(warming.stays.low < 1e-9);
        assert!(warming.words().ends_with("for 2 s at most"), "{}", warming.words());
    }

    #[test]
    fn a_fall_within_the_window_is_told_with_both_paces() {
        let faults = [1_000_000, 1_900_000, 2_200_000, 2_300_000, 2_318_000];
        let warming = warm_up(&window(0, [GIB, 2 * GIB], &faults));
        let words = "warm-up: page faults fell from 450000 to 9000/s within the window";
        assert_eq!(warming.words(), words);
        // Memory for a quarter of an hour at this pace, but no longer at this pace.
        assert!((warming.stays.mid - 9.0 / 164.75).abs() < 1e-9, "{warming:?}");
    }

    #[test]
    fn a_pace_that_holds_for_more_than_an_hour_stays() {
        let mut slow = window(0, [GIB, 2 * GIB], &[100, 200, 300, 400, 500]);
        for snapshot in [&mut slow.start, &mut slow.end] {
            snapshot.databases[0].memory.shared_bytes = Reading::Present(Bytes(512 * GIB));
        }
        assert_eq!(warm_up(&slow).stays, Interval::new(0.0, 1.0, 1.0));
        assert_eq!(warm_up(&slow).fell, None);
    }

    #[test]
    fn processes_that_come_and_go_never_warm_up() {
        let evenly =
            warm_up(&window(2_000_000, [300 * GIB, 300 * GIB], &[900, 100, 700, 300, 500]));
        assert_eq!(evenly, WarmUp { stays: Interval::exact(1.0), fell: None, left_s: None });
        // Of a tenth of the faults the processes ended.
        let few = warm_up(&window(200_000, [300 * GIB, 400 * GIB], &[]));
        assert!((few.stays.low - 0.1).abs() < 1e-9 && few.stays.mid < 0.11, "{few:?}");
    }

    #[test]
    fn faults_that_map_nothing_new_are_no_first_touches() {
        let taken_away = warm_up(&window(0, [GIB, GIB], &[])).stays;
        assert_eq!(taken_away, Interval::new(0.0, 1.0, 1.0));
        let mut unknown = window(0, [GIB, 2 * GIB], &[]);
        unknown.end.databases[0].counters.minor_faults_living = Reading::absent("not read");
        assert_eq!(warm_up(&unknown).stays, Interval::exact(1.0));
    }
}
