//! A terminal that goes away: its window is closed, or the line to it is cut.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use std::fs::File;
use std::io::{IsTerminal, stdin};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use untax_trials::Interrupt;

/// What the view may take to end by itself.
const GRACE: Duration = Duration::from_secs(1);

/// Ends the program when its terminal goes away; nobody waits for this. The library that waits for keys
/// never comes back from a terminal that hung up, and takes a whole CPU.
pub fn watch(interrupt: &Interrupt) {
    if !keyboard().is_some_and(|terminal| hangs_up(&terminal)) {
        return;
    }
    interrupt.raise();
    std::thread::sleep(GRACE);
    // Nobody is there to be told of it, nothing of the host was changed, and what is traced ends with it.
    std::process::exit(0);
}

/// Where keys come from, as the library finds it.
fn keyboard() -> Option<OwnedFd> {
    if stdin().is_terminal() {
        return stdin().as_fd().try_clone_to_owned().ok();
    }
    File::open("/dev/tty").ok().map(OwnedFd::from)
}

/// Waits for it; false where that cannot be waited for. A terminal hangs up without being asked for that.
fn hangs_up(terminal: &OwnedFd) -> bool {
    let mut look = [PollFd::new(terminal, PollFlags::empty())];
    let heard = retry_on_intr(|| poll(&mut look, None)).is_ok();
    heard && look[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}
