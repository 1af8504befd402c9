//! Windows without an end: what watches for long is a loop over this.

use crate::calibration::PageCosts;
use crate::error::PipelineError;
use crate::options::Options;
use crate::session::{Observed, Session, Step};
use std::time::Duration;
use untax_core::Check;
use untax_host::Host;

/// What comes out of a stream.
#[derive(Debug)]
pub enum Event {
    /// The first window is open, over these databases, of which nothing is judged yet.
    Opened(Option<Box<Check>>),
    /// A window ended.
    Window(Box<Observed>),
    /// There is nothing of one window, for this reason; the stream goes on.
    Gap(PipelineError),
}

/// Watches one window after the other for as long as `step` says and `give` takes what comes. Fails only
/// where the first window cannot be opened, or `give` fails.
pub fn stream<E: From<PipelineError>>(
    options: Options,
    costs: &dyn PageCosts,
    mut step: impl FnMut(Duration) -> Step,
    mut give: impl FnMut(Event) -> Result<bool, E>,
) -> Result<(), E> {
    let mut session = Session::open(options, costs, &Host::live())?;
    let mut goes_on = give(Event::Opened(session.opened().map(Box::new)))?;
    while goes_on && session.pass(&mut step) {
        let ended = session.next(&Host::live());
        goes_on = give(ended.map_or_else(Event::Gap, |seen| Event::Window(Box::new(seen))))?;
    }
    Ok(())
}
