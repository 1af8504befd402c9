//! Checks, one after the other.

use crate::observe::{Observed, Watching};
use crate::own_cost::Meter;
use crate::session::Session;
use crate::state::State;
use untax_core::Check;
use untax_host::Host;

/// What comes of watching.
pub enum News {
    /// The first window is open: from now on there will be something to show.
    Opened,
    /// A window was checked; with what a person should know beside it.
    Checked(Box<Check>, Vec<String>),
}

/// Watches for as long as `go_on` says and `give` takes what comes.
pub fn run(
    watching: &Watching,
    state: &State,
    go_on: impl Fn() -> bool,
    mut give: impl FnMut(News) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let mut session = Session::open(watching, state, &Host::live())?;
    let mut meter = Meter::default();
    let mut wanted = give(News::Opened)?;
    while wanted && session.pass(|_| go_on()) {
        let Observed { window, tracing_s, notes } = session.next(&Host::live())?;
        let check = untax_rules::check(&window, State::new_run("watch"), meter.read(tracing_s));
        wanted = give(News::Checked(Box::new(check), notes))?;
    }
    Ok(())
}
