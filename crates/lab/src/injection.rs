//! A cause on a scratch database, to be switched on and off.

use crate::cause::{Cause, Guards};
use crate::dose::Dose;
use crate::error::LabError;
use crate::testbed::Testbed;
use crate::variant::Variant;
use std::time::Duration;
use untax_scenes::{Load, Release, SceneError};

/// A server, prepared for one cause. Fields are dropped in this order: the cause is removed, then
/// the server ends.
pub struct Injection {
    active: Option<Guards>,
    _beside: Option<Guards>,
    testbed: Testbed,
    cause: &'static Cause,
}

impl Injection {
    /// Starts and fills the server; the cause is off.
    pub fn prepare(cause: &'static Cause, release: Release, dose: Dose) -> Result<Self, LabError> {
        Self::prepare_as(cause, release, dose, Variant::default())
    }

    /// The same, under another load or beside another cause.
    pub fn prepare_as(
        cause: &'static Cause,
        release: Release,
        dose: Dose,
        variant: Variant,
    ) -> Result<Self, LabError> {
        let beside = variant.beside;
        let why = cause.impossible(release, dose);
        let why = why.or_else(|| beside.and_then(|other| other.impossible(release, dose)));
        if let Some(why) = why.or_else(|| variant.impossible(release.engine)) {
            return Err(LabError::Impossible { cause: cause.id, why });
        }
        let environment = |cause: &Cause| (cause.environment)(release.engine, dose);
        let environment = variant.environment(environment(cause), beside.map(environment));
        let testbed = Testbed::start(environment, release, dose)?;
        let beside = beside.map(|other| (other.inject)(&testbed)).transpose()?;
        Ok(Self { active: None, _beside: beside, testbed, cause })
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
