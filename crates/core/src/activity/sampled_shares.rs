//! The shares of time on a CPU that samples show.

use super::{Activity, Call, Sampled};
use crate::{Interval, Reading, stats};

/// With fewer samples, none in a page fault could still mean more than 3 % of the time (the rule of
/// three: 3 / n is the 95 % bound).
const FEWEST_SAMPLES: u64 = 100;

/// From so many samples on none of a kind is nothing worth a number: less than 0.3 %, by the same rule.
const NONE_OF: u64 = 1000;

/// What was seen so often is known to a third, of however few samples.
const FEWEST_SEEN: u64 = 10;

impl Activity {
    /// The share of their time on a CPU that the threads spent in page faults of any kind, in the
    /// same way as below; or why that is not known.
    pub fn share_faulting(&self) -> Reading<Interval> {
        let mut sampled = self.slices.iter().filter_map(|slice| slice.sampled).peekable();
        if sampled.peek().is_none() {
            return Reading::Absent("stacks on the CPUs cannot be sampled here".to_owned());
        }
        if sampled.clone().any(|sampled| sampled.faulting.is_none()) {
            let why = "where the kernel serves page faults is not known, or was not captured";
            return Reading::Absent(why.to_owned());
        }
        let all: u64 = sampled.map(|sampled| sampled.on_cpu).sum();
        let too_few =
            || Reading::Absent(format!("{all} samples of stacks on the CPUs are too few"));
        match self.share_of_samples(|sampled| sampled.faulting) {
            Some(share) if share.high > 0.0 || all >= NONE_OF => Reading::Present(share),
            _ => too_few(),
        }
    }

    /// The share of their time on a CPU that the threads spent in page faults on the memory that
    /// holds the data, with the interval that the differences between slices give. `None` when too
    /// little was sampled.
    pub fn share_faulting_on_data(&self) -> Option<Interval> {
        self.share_of_samples(|sampled| sampled.faulting_on_data)
    }

    /// The share of their time on a CPU that the threads spent getting pages of files that are not in
    /// the page cache, in the same way.
    pub fn share_reading(&self) -> Option<Interval> {
        self.share_of_samples(|sampled| sampled.reading)
    }

    /// The share of their time on a CPU that the threads were interrupted as requests to block devices
    /// were done, in the same way.
    pub fn share_completing(&self) -> Option<Interval> {
        self.share_of_samples(|sampled| sampled.completing)
    }

    /// The share of their time on a CPU that the threads spent waking others, interrupts to other CPUs
    /// included, in the same way.
    pub fn share_waking(&self) -> Option<Interval> {
        self.share_of_samples(|sampled| sampled.waking)
    }

    /// The share of their time on a CPU that the threads spent in system calls of this kind, in the
    /// same way.
    pub fn share_calling(&self, call: Call) -> Option<Interval> {
        self.share_of_samples(|sampled| sampled.calling.map(|calling| calling[call as usize]))
    }

    fn share_of_samples(&self, counts: impl Fn(&Sampled) -> Option<u64>) -> Option<Interval> {
        let sampled = || self.slices.iter().filter_map(|slice| Some((slice, slice.sampled?)));
        let pairs = sampled()
            .map(|(slice, s)| {
                let each = slice.weight() * s.each();
                Some((each * counts(&s)? as f64, each * s.on_cpu as f64))
            })
            .collect::<Option<Vec<(f64, f64)>>>()?;
        let all: u64 = sampled().map(|(_, sampled)| sampled.on_cpu).sum();
        let seen: u64 = sampled().filter_map(|(_, sampled)| counts(&sampled)).sum();
        let enough = all >= FEWEST_SAMPLES || seen >= FEWEST_SEEN;
        enough.then(|| stats::bootstrap_ratio(&pairs))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::window::tests::activity;

    const NONE: Sampled = Sampled::unknown(0);

    fn set(activity: &mut Activity, each: &[Sampled; 2]) {
        for (slice, sampled) in activity.slices.iter_mut().zip(each) {
            slice.sampled = Some(*sampled);
        }
    }

    #[test]
    fn samples_of_all_slices_count_together() {
        let mut activity = activity();
        assert_eq!(activity.share_faulting_on_data(), None);
        let calling = Some([20, 0, 0, 0]);
        let of =
            |faulting| Sampled { on_cpu: 100, faulting_on_data: Some(faulting), calling, ..NONE };
        set(&mut activity, &[of(10), of(30)]);
        let share = activity.share_faulting_on_data().unwrap();
        assert_eq!((share.low, share.mid, share.high), (0.1, 0.2, 0.3));
        assert_eq!(activity.share_calling(Call::Connection), Some(Interval::exact(0.2)));
        assert_eq!(activity.share_calling(Call::Pages), Some(Interval::exact(0.0)));
    }

    #[test]
    fn too_few_samples_tell_nothing() {
        let mut activity = activity();
        let mut share = |on_cpu, faulting_on_data| {
            set(&mut activity, &[Sampled { on_cpu, faulting_on_data, ..NONE }; 2]);
            assert_eq!(activity.share_calling(Call::Pages), None, "not counted");
            activity.share_faulting_on_data()
        };
        assert_eq!(share(40, Some(0)), None, "too few to say zero");
        assert_eq!(share(40, Some(4)), None, "too few that saw it");
        assert_eq!(share(40, Some(5)), Some(Interval::exact(0.125)));
        assert_eq!(share(400, None), None, "not known");
    }

    #[test]
    fn why_the_share_of_page_faults_is_not_known_is_said() {
        let mut activity = activity();
        let says = |reading: Reading<Interval>, word: &str| {
            assert!(reading.why().is_some_and(|why| why.contains(word)), "{word}: {reading:?}");
        };
        says(activity.share_faulting(), "cannot be sampled");
        let of = |on_cpu, faulting| Sampled { on_cpu, faulting, ..NONE };
        set(&mut activity, &[of(400, Some(40)), of(400, None)]);
        says(activity.share_faulting(), "is not known");
        set(&mut activity, &[of(40, Some(0)); 2]);
        says(activity.share_faulting(), "80 samples");
        set(&mut activity, &[of(400, Some(0)); 2]);
        says(activity.share_faulting(), "800 samples");
        set(&mut activity, &[of(500, Some(0)); 2]);
        assert_eq!(activity.share_faulting(), Reading::Present(Interval::exact(0.0)));
        set(&mut activity, &[of(400, Some(100)); 2]);
        assert_eq!(activity.share_faulting(), Reading::Present(Interval::exact(0.25)));
    }

    #[test]
    fn a_slice_that_is_sampled_more_often_says_no_more() {
        let mut activity = activity();
        let of = |per_s, on_cpu, faulting| Sampled {
            per_s: Some(per_s),
            on_cpu,
            faulting_on_data: Some(faulting),
            ..NONE
        };
        set(&mut activity, &[of(199, 100, 10), of(1990, 1000, 300)]);
        assert!((activity.share_faulting_on_data().unwrap().mid - 0.2).abs() < 1e-12);
    }

    #[test]
    fn older_captures_have_no_rate_and_no_calls() {
        let older: Sampled =
            serde_json::from_str(r#"{"on_cpu":4,"faulting":2,"faulting_on_data":1}"#).unwrap();
        assert_eq!((older.per_s, older.calling), (None, None));
    }
}
