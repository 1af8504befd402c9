//! The order of things: levels and steps while windows are recorded, then what the timeline says of them.

use super::action::Action;
use super::error::LocalityError;
use super::judge::{Made, client_levels, judge};
use super::record::Watched;
use super::scene::Scene;
use super::schema::{Levels, Seen, Step};
use crate::experiment::Listener;
use crate::progress::Progress;
use jiff::Timestamp;
use std::path::Path;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};
use untax_core::timeline::Timeline;
use untax_timeline::{RecordingError, read, timeline};
use untax_trials::Interrupt;

/// What a run is asked for.
pub(super) struct Request<'a> {
    /// The time to spend.
    pub(super) budget: Duration,
    /// Below which disks are made.
    pub(super) base: &'a Path,
    /// Where windows are recorded; what is there is overwritten.
    pub(super) recording: &'a Path,
}

/// What a run gives.
pub(super) struct Outcome {
    pub(super) scene: super::schema::Scene,
    pub(super) schedule: Schedule,
    pub(super) steps: Vec<Step>,
    pub(super) others: Vec<Seen>,
    pub(super) timeline: Timeline,
    /// Why windows are missing.
    pub(super) missing: Vec<String>,
    pub(super) complete: bool,
}

/// How long levels and windows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Schedule {
    pub(super) window: Duration,
    pub(super) level: Duration,
}

/// Windows of a level, where there is time for so many.
const WINDOWS: u32 = 14;

/// Windows, seconds: in shorter ones the seconds that copying a table takes would be a level of their own.
const WINDOW_S: [u64; 2] = [3, 10];

/// A level has to be seen in some windows, of which the first and the last are of two levels.
const SHORTEST: Duration = Duration::from_secs(18);

/// The load outlives the run by this much.
const LOAD_BEHIND: Duration = Duration::from_secs(600);

/// How long the wish to stop, or the end of the load, may go unheard.
const HEARING: Duration = Duration::from_millis(250);

impl Schedule {
    /// For so many levels in the time that is left.
    fn of(left: Duration, levels: u32) -> Self {
        let level = (left / levels).max(SHORTEST);
        let window_s = (level / WINDOWS).as_secs().clamp(WINDOW_S[0], WINDOW_S[1]);
        Self { window: Duration::from_secs(window_s), level }
    }
}

/// Runs the experiment.
pub(super) fn run(
    request: &Request,
    interrupt: &Interrupt,
    listener: &mut dyn Listener,
) -> Result<Outcome, LocalityError> {
    let begun = Instant::now();
    let actions = Action::all();
    let total = actions.len() as u32 + 2;
    let say = |doing: &str| {
        let left = request.budget.saturating_sub(begun.elapsed());
        listener.progress(&Progress { done: 0, total, doing: doing.to_owned(), left });
    };
    let mut scene = Scene::start(request.base, request.budget + LOAD_BEHIND, interrupt, say)?;
    let left = request.budget.saturating_sub(begun.elapsed());
    let schedule = Schedule::of(left, actions.len() as u32 + 1);
    remove(request.recording)?;
    let watched = Watched {
        path: request.recording,
        pid: scene.server.postgres.pid().unwrap_or_default(),
        name: format!("postgres@{}", scene.server.postgres.port()),
        window: schedule.window,
    };
    let (stop, first) = (Interrupt::default(), scene.server.seconds());
    let (acted, recorded) = thread::scope(|scope| {
        let recorder = scope.spawn(|| watched.record(&stop));
        let stage =
            Stage { scene: &mut scene, schedule, interrupt, listener, recorder: &recorder, total };
        let acted = stage.acts(&actions);
        stop.raise();
        (acted, recorder.join())
    });
    let missing = recorded.map_err(|_| LocalityError::Fault)??;
    let (done, complete) = acted?;
    let history = match read(request.recording) {
        Err(RecordingError::Empty(_)) if !complete => return Err(untax_trials::Interrupted.into()),
        read => read?,
    };
    if history.is_empty() {
        return Err(untax_trials::Interrupted.into());
    }
    let timeline = timeline(&history, &request.recording.display().to_string());
    let figures = scene.figures();
    let seconds: Vec<[usize; 2]> = done.iter().map(|done| done.seconds).collect();
    let clients = client_levels(&seconds, first, &scene.server.load.each_second());
    let made = done.iter().zip(clients).map(|(done, client)| done.made(&figures, client));
    let (steps, others) = judge(made.collect(), &timeline, schedule.window);
    Ok(Outcome { scene: figures, schedule, steps, others, timeline, missing, complete })
}

/// Takes an earlier recording away: a recorder would go on with it.
fn remove(path: &Path) -> Result<(), LocalityError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(RecordingError::File(path.to_owned(), "removed", error).into())
        }
        _ => Ok(()),
    }
}

/// A step that was made.
struct Done {
    action: Action,
    from: Timestamp,
    to: Timestamp,
    /// Seconds of the load that were counted when it was begun and done.
    seconds: [usize; 2],
}

impl Done {
    fn made(&self, scene: &super::schema::Scene, client: Option<Levels>) -> Made {
        Made {
            id: self.action.id(),
            text: self.action.text(scene),
            from: self.from,
            to: self.to,
            expected: self.action.expected().iter().map(|id| (*id).to_owned()).collect(),
            client,
        }
    }
}

type Recorder<'s> = ScopedJoinHandle<'s, Result<Vec<String>, LocalityError>>;

/// What steps are made on.
struct Stage<'a, 's> {
    scene: &'a mut Scene,
    schedule: Schedule,
    interrupt: &'a Interrupt,
    listener: &'a mut dyn Listener,
    recorder: &'a Recorder<'s>,
    total: u32,
}

impl Stage<'_, '_> {
    /// Levels with a step after each but the last; false where it was interrupted.
    fn acts(mut self, actions: &[Action]) -> Result<(Vec<Done>, bool), LocalityError> {
        let mut done = Vec::new();
        for action in actions {
            if !self.level(done.len(), actions.len())? {
                return Ok((done, false));
            }
            let (from, begun) = (Timestamp::now(), self.scene.server.seconds());
            self.scene.act(*action)?;
            let seconds = [begun, self.scene.server.seconds()];
            done.push(Done { action: *action, from, to: Timestamp::now(), seconds });
        }
        let complete = self.level(done.len(), actions.len())?;
        Ok((done, complete))
    }

    /// Changes nothing for a while; false where it was interrupted, or nothing is recorded any more.
    fn level(&mut self, steps: usize, all: usize) -> Result<bool, LocalityError> {
        let begun = Instant::now();
        let behind = self.schedule.level * (all - steps) as u32;
        let doing = match steps {
            0 => "recording before the first step".to_owned(),
            _ => format!("recording after step {steps} of {all}"),
        };
        loop {
            let left = self.schedule.level.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(true);
            }
            let done = steps as u32 + 1;
            let (total, doing, left_of_all) = (self.total, doing.clone(), left + behind);
            self.listener.progress(&Progress { done, total, doing, left: left_of_all });
            self.scene.server.load.check()?;
            if self.recorder.is_finished() || self.interrupt.sleep(left.min(HEARING)).is_err() {
                return Ok(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_as_long_as_the_time_allows() {
        let of = |left_s| Schedule::of(Duration::from_secs(left_s), 5);
        let both = |left_s| (of(left_s).window.as_secs(), of(left_s).level.as_secs());
        assert_eq!(both(440), (6, 88));
        assert_eq!(both(95), (3, 19));
        // Preparing took longer than the whole budget.
        assert_eq!(both(0), (3, 18));
        assert_eq!(both(3600), (10, 720));
    }
}
