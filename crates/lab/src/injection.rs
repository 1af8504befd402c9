//! A cause on a scratch database, to be switched on and off.

use crate::cause::{Cause, Guards};
use crate::dose::Dose;
use crate::error::LabError;
use crate::testbed::Testbed;
use std::time::Duration;
use untax_scenes::{Load, Release, SceneError};

/// A server, prepared for one cause. Fields are dropped in this order: the cause is removed, then
/// the server ends.
pub struct Injection {
    active: Option<Guards>,
    testbed: Testbed,
    cause: &'static Cause,
}

impl Injection {
    /// Starts and fills the server; the cause is off.
    pub fn prepare(cause: &'static Cause, release: Release, dose: Dose) -> Result<Self, LabError> {
        if let Some(why) = cause.impossible(release, dose) {
            return Err(LabError::Impossible { cause: cause.id, why });
        }
        let testbed = Testbed::start((cause.environment)(release.engine, dose), release, dose)?;
        Ok(Self { active: None, testbed, cause })
    }

    /// Switches the cause on or off. Gives whether the server was restarted for that.
    pub fn switch(&mut self, on: bool) -> Result<bool, LabError> {
        if on == self.active.is_some() {
            return Ok(false);
        }
        // Before the restart: settings of the machine are to hold for all of the server's life.
        self.active = if on { Some((self.cause.inject)(&self.testbed)?) } else { None };
        Ok(self.testbed.restart(on)?)
    }

    /// Starts the load: that of the cause while it is on, when it has one of its own. `None` for an
    /// idle server.
    pub fn load(&self, seconds: u32) -> Result<Option<Load>, SceneError> {
        self.testbed.load(self.active.is_some(), seconds)
    }

    /// How long the load is to run before a check, and before a trial after a restart.
    pub fn settling(&self) -> Duration {
        Duration::from_secs(self.testbed.environment().settling_s)
    }

    /// Fails when the cause was too much for the server: what was measured then means nothing.
    pub fn survived(&self) -> Result<(), LabError> {
        // Hosts that do not limit memory kill nobody for it.
        match self.testbed.group().oom_kills() {
            Ok(killed) if killed > 0 => Err(LabError::Killed { cause: self.cause.id }),
            _ => Ok(()),
        }
    }

    /// The server's main process.
    pub fn pid(&self) -> Option<u32> {
        self.testbed.pid()
    }

    /// The server and what is around it.
    pub fn testbed(&self) -> &Testbed {
        &self.testbed
    }
}
