//! Hosts whose settings are kept by an API or a build, and not by files in `/etc` that somebody writes:
//! there a step that writes one fails, or is undone by the next boot. The setting is handed over in the
//! words of what keeps it.

use crate::remedy::Draft;
use untax_core::Snapshot;
use untax_core::plan::{Step, Target, Task};

/// What keeps the settings of such a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Managed {
    /// Its API, by `apiclient` or user data.
    Bottlerocket,
    /// Its machine configuration, by `talosctl`. There is no shell, and no ssh.
    Talos,
    /// The configuration that the system is built from.
    NixOs,
    /// The cloud's configuration of nodes: `/etc` is made anew at each boot.
    ContainerOptimizedOs,
}

impl Managed {
    /// What a person calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Bottlerocket => "Bottlerocket, by its API",
            Self::Talos => "Talos, by its machine configuration",
            Self::NixOs => "NixOS, by its configuration",
            Self::ContainerOptimizedOs => {
                "Container-Optimized OS, by the configuration of its nodes"
            }
        }
    }
}

/// By the `ID` of os-release.
pub fn of(snapshot: &Snapshot) -> Option<Managed> {
    match snapshot.host.distribution.value()?.id.as_str() {
        "bottlerocket" => Some(Managed::Bottlerocket),
        "talos" => Some(Managed::Talos),
        "nixos" => Some(Managed::NixOs),
        "cos" => Some(Managed::ContainerOptimizedOs),
        _ => None,
    }
}

/// The draft, with a task in place of each step that writes a file of the administrator's.
pub fn handed_over(draft: Draft, snapshot: &Snapshot) -> Draft {
    let Some(managed) = of(snapshot) else { return draft };
    let is_file = |step: &Step| {
        matches!(step.target, Target::File { .. } | Target::Block { .. } | Target::Grubby)
    };
    let (files, steps): (Vec<Step>, Vec<Step>) = draft.steps.into_iter().partition(is_file);
    let mut tasks: Vec<Task> = files.iter().map(|step| task(managed, step)).collect();
    tasks.extend(draft.tasks);
    Draft { steps, tasks, warnings: draft.warnings }
}

fn task(managed: Managed, step: &Step) -> Task {
    let text = step.to.as_deref().unwrap_or_default();
    let settings = settings(text);
    let shown = settings.iter().map(|(name, value)| format!("{name} = {value}"));
    let shown = shown.collect::<Vec<_>>().join(", ");
    let (ending, text) =
        if settings.is_empty() { ("txt", text.to_owned()) } else { written(managed, &settings) };
    let what = if shown.is_empty() { step.summary.clone() } else { shown };
    Task {
        remedy: step.remedy.clone(),
        summary: format!("{}: {what}", managed.name()),
        databases: step.databases.clone(),
        file: Some((format!("{}.{ending}", step.id), text)),
    }
}

/// Settings of the kernel in the lines of sysctl.d(5) and tmpfiles.d(5); those of sysfs by their path.
fn settings(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let setting = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [name, "=", value] => Some((name.to_owned(), value.to_owned())),
            ["w", path, "-", "-", "-", "-", value] => Some((path.to_owned(), value.to_owned())),
            _ => None,
        }
    };
    lines.filter_map(setting).collect()
}

/// The ending of a file, and its text, in the words of what keeps the settings.
fn written(managed: Managed, settings: &[(String, String)]) -> (&'static str, String) {
    let in_sysfs = |name: &str| name.strip_prefix("/sys/").map(|path| path.replace('/', "."));
    let lines = |line: &dyn Fn(&str, &str) -> String| -> String {
        settings.iter().map(|(name, value)| line(name, value)).collect()
    };
    match managed {
        Managed::Talos => {
            let of = |wanted: bool, head: &str| {
                let chosen = settings.iter().filter(|(name, _)| in_sysfs(name).is_some() == wanted);
                let lines: String = chosen
                    .map(|(name, value)| {
                        let name = in_sysfs(name).unwrap_or_else(|| name.clone());
                        format!("    {name}: \"{value}\"\n")
                    })
                    .collect();
                if lines.is_empty() { lines } else { format!("  {head}:\n{lines}") }
            };
            let text = format!(
                "# Made by untax: talosctl -n NODE patch machineconfig --patch @THIS-FILE\n\
                 machine:\n{}{}",
                of(false, "sysctls"),
                of(true, "sysfs")
            );
            ("yaml", text)
        }
        Managed::Bottlerocket => {
            let line = |name: &str, value: &str| match in_sysfs(name) {
                Some(_) => format!("# by a bootstrap container: echo {value} > {name}\n"),
                None => format!("\"{name}\" = \"{value}\"\n"),
            };
            let text = format!("# Made by untax.\n[settings.kernel.sysctl]\n{}", lines(&line));
            ("toml", text)
        }
        Managed::NixOs => {
            let line = |name: &str, value: &str| match in_sysfs(name) {
                Some(_) => {
                    format!("  systemd.tmpfiles.rules = [ \"w {name} - - - - {value}\" ];\n")
                }
                None => format!("  boot.kernel.sysctl.\"{name}\" = \"{value}\";\n"),
            };
            (
                "nix",
                format!("# Made by untax: then nixos-rebuild switch.\n{{\n{}}}\n", lines(&line)),
            )
        }
        Managed::ContainerOptimizedOs => {
            let line = |name: &str, value: &str| match in_sysfs(name) {
                Some(_) => format!("# by a privileged DaemonSet: echo {value} > {name}\n"),
                None => format!("    {name}: \"{value}\"\n"),
            };
            let text = format!(
                "# Made by untax: gcloud container node-pools update --system-config-from-file=THIS-FILE\n\
                 # (a number of huge pages: linuxConfig.hugepageConfig)\n\
                 linuxConfig:\n  sysctl:\n{}",
                lines(&line)
            );
            ("yaml", text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_from_what_a_step_would_write() {
        let text = "# Made by untax.\nvm.nr_hugepages = 8392\nw /sys/kernel/mm/x - - - - madvise\n";
        let read = settings(text);
        let read: Vec<_> =
            read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(read, [("vm.nr_hugepages", "8392"), ("/sys/kernel/mm/x", "madvise")]);
    }

    #[test]
    fn talos_is_told_by_a_patch() {
        let (_, text) = written(
            Managed::Talos,
            &[
                ("vm.nr_hugepages".to_owned(), "8392".to_owned()),
                ("/sys/kernel/mm/transparent_hugepage/enabled".to_owned(), "madvise".to_owned()),
            ],
        );
        let expected = "machine:\n  sysctls:\n    vm.nr_hugepages: \"8392\"\n  sysfs:\n    \
                        kernel.mm.transparent_hugepage.enabled: \"madvise\"\n";
        assert!(text.ends_with(expected), "{text}");
    }
}
