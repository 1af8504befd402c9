//! Checks, one after the other.

use crate::job_control::Suspend;
use crate::page_costs::StatePageCosts;
use crate::recording::Recording;
use crate::state::State;
use anyhow::Context;
use untax_core::{Check, Window};
use untax_host::Host;
use untax_pipeline::{Event, Options, Step, stream};

/// What a view or a stream hears.
pub enum News {
    /// The first window is open, over these databases.
    Opened(Option<Box<Check>>),
    /// A window was checked; with what the rules saw, and what a person should know beside it.
    Checked(Box<Check>, Box<Window>, Vec<String>),
    /// There is no result for one window, for this reason.
    Gap(String),
}

/// Watches for as long as `go_on` says and `give` takes what comes; records it, where a recording is given.
pub fn run(
    options: Options,
    state: &State,
    mut recording: Option<Recording>,
    go_on: impl Fn() -> bool,
    mut give: impl FnMut(News) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let suspend = Suspend::by_signal().context("cannot listen for signals")?;
    let step = |_| if go_on() { suspend.step() } else { Step::End };
    stream(options, &StatePageCosts(state), step, |event| {
        give(match event {
            Event::Opened(check) => News::Opened(check),
            Event::Window(mut seen) => {
                let check = Box::new(seen.check(State::new_run("watch")));
                if let Some(recording) = &mut recording {
                    let names = untax_agent::names(&seen.window.end.databases, &Host::live());
                    seen.notes.extend(recording.add(&seen.window, &check, &names));
                }
                News::Checked(check, Box::new(seen.window), seen.notes)
            }
            Event::Gap(why) => News::Gap(format!("no result for this window: {why}")),
        })
    })
}
