//! What a cause is: a problem that the lab can put on a scratch database.

use crate::dose::Dose;
use crate::environment::Environment;
use crate::error::LabError;
use crate::testbed::Testbed;
use std::any::Any;
use untax_scenes::{Disk, Engine, Release, Runtime, find_program, is_root};

/// A problem that the lab can make, and the server and load that suffer from it.
#[derive(Debug)]
pub struct Cause {
    /// The id of the rule that is to find it; `none` and `none-idle` are no problem.
    pub id: &'static str,
    /// One line: what is done to the database.
    pub summary: &'static str,
    /// The same of its mild dose, which takes about as much as platforms do; `None` when there is one
    /// dose alone.
    pub mild: Option<&'static str>,
    /// The engines that it is put on.
    pub engines: &'static [Engine],
    /// Why not on each of the others: they do not suffer from it, or the lab does not do it to them.
    pub left_out: &'static [(Engine, &'static str)],
    /// What it needs of the machine.
    pub needs: &'static [Need],
    /// What it takes when that is no time of the database's: then its finding has no tax.
    pub takes: Option<&'static str>,
    /// The server and the load.
    pub environment: fn(Engine, Dose) -> Environment,
    /// Makes the problem until what it returns is dropped.
    pub inject: fn(&Testbed) -> Result<Guards, LabError>,
}

impl Cause {
    /// Whether nothing is to be found.
    pub fn is_none(&self) -> bool {
        self.id.starts_with("none")
    }

    /// Whether there is such a dose of it; of nothing there are all.
    pub fn has(&self, dose: Dose) -> bool {
        dose == Dose::Strong || self.mild.is_some() || self.is_none()
    }

    /// Why this machine cannot do it to that server in that dose; `None` if it can, as far as can be
    /// told beforehand.
    pub fn impossible(&self, release: Release, dose: Dose) -> Option<String> {
        let engine = release.engine;
        if !self.has(dose) {
            return Some("it has one dose alone; leave out --dose".to_owned());
        }
        if let Some((_, why)) = self.left_out.iter().find(|(other, _)| *other == engine) {
            let others: Vec<&str> = self.engines.iter().map(|engine| engine.id()).collect();
            return Some(format!("{why}; try {}", others.join(", ")));
        }
        if release.is_unpacked && self.needs_container(engine, dose) {
            return Some(format!(
                "it needs a container, and {} is unpacked and runs in none; try {}",
                release.id,
                engine.id()
            ));
        }
        self.needs.iter().find_map(|need| need.unmet())
    }

    fn needs_container(&self, engine: Engine, dose: Dose) -> bool {
        let environment = (self.environment)(engine, dose);
        let runtimes = [Some(environment.runtime), environment.cause_runtime];
        runtimes.into_iter().flatten().any(|runtime| runtime != Runtime::Host)
    }
}

/// What a cause needs of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// To be root.
    Root,
    /// A program, and the Debian package that has it.
    Tool(&'static str, &'static str),
    /// Loop devices.
    LoopDevice,
}

impl Need {
    /// Why the machine does not have it; `None` if it has, as far as can be told beforehand.
    fn unmet(self) -> Option<String> {
        match self {
            Self::Root if is_root() => None,
            Self::Root => Some("it needs root; run it with sudo".to_owned()),
            Self::Tool(name, package) => find_program(name, package).err().map(|e| e.to_string()),
            Self::LoopDevice if Disk::is_possible() => None,
            Self::LoopDevice => Some("it needs loop devices; this kernel has none".to_owned()),
        }
    }
}

/// What undoes a cause when dropped, in this order.
#[derive(Default)]
pub struct Guards(Vec<Box<dyn Any>>);

impl Guards {
    /// Nothing to undo.
    pub fn none() -> Self {
        Self::default()
    }

    /// Undone by dropping this.
    pub fn of(guard: impl Any) -> Self {
        Self(vec![Box::new(guard)])
    }

    /// Then by dropping this.
    #[must_use]
    pub fn and(mut self, guard: impl Any) -> Self {
        self.0.push(Box::new(guard));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_are_dropped_in_order() {
        use std::sync::{Arc, Mutex};
        struct Guard(u8, Arc<Mutex<Vec<u8>>>);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.1.lock().unwrap().push(self.0);
            }
        }
        let dropped = Arc::default();
        drop(Guards::of(Guard(1, Arc::clone(&dropped))).and(Guard(2, Arc::clone(&dropped))));
        assert_eq!(*dropped.lock().unwrap(), [1, 2]);
    }
}
