//! Records the windows of one database, as `untax watch --record` does.

use super::error::LocalityError;
use std::path::Path;
use std::time::Duration;
use untax_core::host::HostFacts;
use untax_core::{Calibration, Reading};
use untax_pipeline::{Calibrating, Event, Options, PageCosts, Step, Target, stream};
use untax_timeline::{Recorder, moment};
use untax_trials::Interrupt;

/// Far more than minutes of windows take.
const LIMIT_BYTES: u64 = 64 << 20;

/// What is watched, and where it is recorded.
pub(super) struct Watched<'a> {
    pub(super) path: &'a Path,
    /// A process of the database.
    pub(super) pid: u32,
    /// Its stable name.
    pub(super) name: String,
    pub(super) window: Duration,
}

impl Watched<'_> {
    /// Records until told to stop; gives why windows are missing.
    pub(super) fn record(&self, end: &Interrupt) -> Result<Vec<String>, LocalityError> {
        let mut recorder = Recorder::open(self.path, LIMIT_BYTES)?;
        let options = Options {
            target: Target::Pid(self.pid),
            window: self.window,
            calibrating: Calibrating::Never,
        };
        let mut missing = Vec::new();
        let step = |_| if end.check().is_ok() { Step::Continue } else { Step::End };
        stream(options, &NoCosts, step, |event| {
            match event {
                Event::Opened(_) => {}
                Event::Window(seen) => {
                    let check = seen.check(String::new());
                    let names = vec![self.name.clone(); check.databases.len()];
                    recorder.add(moment(&seen.window, &check, &names))?;
                }
                Event::Gap(why) => missing.push(why.to_string()),
            }
            Ok::<bool, LocalityError>(true)
        })?;
        recorder.write()?;
        Ok(missing)
    }
}

/// What pages cost does not matter to a timeline.
struct NoCosts;

impl PageCosts for NoCosts {
    fn kept(&self) -> Option<Calibration> {
        None
    }

    fn measure(&self, _: &HostFacts) -> Reading<Calibration> {
        Reading::absent("not measured by this bench")
    }

    fn keep(&self, _: &Calibration) -> Result<(), String> {
        Ok(())
    }
}
