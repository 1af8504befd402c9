//! Limits of systemd's units. What the control group of a unit is told holds until systemd writes
//! the unit's own setting again, so the unit is told, too.
//!
//! Sources: systemd.resource-control(5) for the settings, systemd.unit(5) for drop-ins; the control
//! group of a unit is named as the unit.

use untax_core::plan::{Effect, Step, Target};

/// Where an administrator's drop-ins are.
const UNITS: &str = "/etc/systemd/system";

/// A limit, in the words of a unit.
pub struct Setting<'a> {
    /// The control group.
    pub cgroup: &'a str,
    /// The name of the setting, such as `CPUQuota`.
    pub name: &'static str,
    /// Its value; empty for no limit.
    pub value: String,
}

/// The step that gives a unit the limit that its control group was given; `None` when the group is
/// no unit's, or one whose settings are no file's: a scope, or a unit of a user's own manager.
pub fn step(databases: &[String], remedy: &str, setting: &Setting) -> Option<Step> {
    let (unit, section) = unit(setting.cgroup)?;
    let Setting { name, value, .. } = setting;
    let file = format!("{UNITS}/{unit}.d/90-untax-{name}.conf");
    Some(Step {
        id: format!("{remedy}-{unit}"),
        remedy: remedy.to_owned(),
        summary: format!("{file}: {name}={value}, the same whenever systemd starts or reloads it"),
        databases: databases.to_vec(),
        target: Target::File { file },
        from: None,
        to: Some(format!("# Made by untax.\n[{section}]\n{name}={value}\n")),
        refresh: ["systemctl", "daemon-reload"].map(str::to_owned).to_vec(),
        effect: Effect::Now,
    })
}

/// The unit of a control group, and the section of its file that limits are in.
pub fn unit(cgroup: &str) -> Option<(&str, &'static str)> {
    let (above, unit) = cgroup.rsplit_once('/')?;
    let section = match unit.rsplit_once('.')?.1 {
        "service" => "Service",
        "slice" => "Slice",
        _ => return None,
    };
    let of_user = above.split('/').any(|part| part.starts_with("user@"));
    (!of_user).then_some((unit, section))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_named_by_their_groups() {
        let of = |cgroup| unit(cgroup).map(|(unit, _)| unit);
        let instance = "/system.slice/system-postgresql.slice/postgresql@15-main.service";
        assert_eq!(of(instance), Some("postgresql@15-main.service"));
        assert_eq!(of("/databases.slice"), Some("databases.slice"));
        assert_eq!(of("/system.slice/docker-1234.scope"), None);
        assert_eq!(of("/user.slice/user-7.slice/user@7.service/app.slice/db.service"), None);
        assert_eq!(of("/databases/one"), None);
    }
}
