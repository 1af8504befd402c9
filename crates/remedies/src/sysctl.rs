//! A setting of the kernel, changed now and for every boot.

use untax_core::plan::{Effect, Step, Target};

/// A setting, and what changes it.
pub struct Sysctl {
    /// The remedy.
    pub remedy: &'static str,
    /// Its name, such as `kernel.numa_balancing`.
    pub name: &'static str,
    /// The file that sets it at boot.
    pub drop_in: &'static str,
}

impl Sysctl {
    /// The steps from one value to another.
    pub fn steps(&self, databases: &[String], from: &str, to: &str) -> Vec<Step> {
        let Self { remedy, name, drop_in } = self;
        let step = |id: String, summary: String, target, from, to: String, effect| Step {
            id,
            remedy: (*remedy).to_owned(),
            summary,
            databases: databases.to_vec(),
            target,
            from,
            to: Some(to),
            refresh: Vec::new(),
            effect,
        };
        vec![
            step(
                (*remedy).to_owned(),
                format!("{name}: {from} -> {to}"),
                Target::Value { file: format!("/proc/sys/{}", name.replace('.', "/")) },
                Some(from.to_owned()),
                to.to_owned(),
                Effect::Now,
            ),
            step(
                format!("{remedy}-boot"),
                format!("{drop_in}: the same after every boot"),
                Target::File { file: (*drop_in).to_owned() },
                None,
                format!("# Made by untax.\n{name} = {to}\n"),
                Effect::Reboot,
            ),
        ]
    }
}
