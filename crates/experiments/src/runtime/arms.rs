//! The arms: the host, a process in a control group, and runtimes, with what of them cannot run here.

use super::probe;
use crate::platform::Arm;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use untax_host::{Host, facts};
use untax_scenes::{OciRuntime, Runtime, find_program};

/// An arm and what starts it.
pub(super) struct Vessel {
    pub(super) arm: Arm,
    /// None where it cannot run here.
    pub(super) runtime: Option<Runtime>,
    /// Whether it is in a control group of its own, where limits can be set.
    pub(super) is_grouped: bool,
}

/// What all runtimes share of the host that they run on, for the column of what is separated.
const SHARED_KERNEL: Isolation =
    Isolation("namespaces; the host's kernel serves every system call", Some(false));
const OWN_KERNEL: Isolation =
    Isolation("a kernel of its own in user space serves most system calls", Some(true));
const UNKNOWN: Isolation = Isolation("unknown", None);

/// What a runtime separates from the host, and whether that is the kernel.
#[derive(Clone, Copy)]
struct Isolation(&'static str, Option<bool>);

/// The id of the arm with which containers share everything but the runtime.
pub(super) const GROUPED: &str = "host-cgroup";

/// What the command line says of arms.
pub(super) struct Wanted<'a> {
    pub(super) runtimes: &'a [String],
    pub(super) runsc: Option<&'a Path>,
    pub(super) limit: Option<f64>,
    /// The ids of those that are compared; all if none.
    pub(super) asked: &'a [String],
}

/// All arms, the host first; every one that is asked for is tried.
pub(super) fn all(wanted: &Wanted) -> Vec<Vessel> {
    let plain = |id: &str, summary: &str, is_grouped| {
        let arm = Arm::new(id, summary);
        Vessel { arm, runtime: Some(Runtime::Host), is_grouped }
    };
    let mut vessels = vec![
        plain("host", "plain processes", false),
        plain(GROUPED, "plain processes in a control group like a container's", true),
        oci(
            "runc",
            "runc",
            "Docker's, containerd's and Podman's runtime in Go",
            &[],
            SHARED_KERNEL,
        ),
        crun(),
        bubblewrap(),
    ];
    for platform in ["systrap", "ptrace", "kvm"] {
        vessels.push(gvisor(platform, wanted.runsc));
    }
    vessels.extend(wanted.runtimes.iter().map(|words| other(words)));
    vessels.push(qemu());
    if let Some(cpus) = wanted.limit {
        for vessel in vessels.iter_mut().filter(|vessel| vessel.is_grouped) {
            let arm = std::mem::take(&mut vessel.arm);
            vessel.arm = arm.with("CPU limit", format!("{cpus}"));
        }
    }
    let is_asked =
        |vessel: &Vessel| wanted.asked.is_empty() || wanted.asked.contains(&vessel.arm.id);
    let each = vessels.into_iter();
    each.map(|vessel| if is_asked(&vessel) { tried(vessel) } else { vessel }).collect()
}

/// The same, tried once with a program that does nothing.
fn tried(vessel: Vessel) -> Vessel {
    let Some(runtime) = vessel.runtime.filter(|runtime| *runtime != Runtime::Host) else {
        return vessel;
    };
    match probe::works(runtime) {
        Ok(()) => vessel,
        Err(why) => Vessel { arm: vessel.arm.cannot(why), runtime: None, ..vessel },
    }
}

fn missing(id: &str, summary: &str, why: String) -> Vessel {
    Vessel { arm: Arm::new(id, summary).cannot(why), runtime: None, is_grouped: true }
}

/// A runtime by the words before its subcommand. They live as long as the program: there are a handful.
fn runtime(words: Vec<String>) -> Runtime {
    Runtime::Oci(OciRuntime { words: Vec::leak(words) })
}

fn oci(id: &str, program: &str, summary: &str, options: &[&str], isolation: Isolation) -> Vessel {
    match find_program(program, program) {
        Ok(path) => oci_at(id, &path, summary, options, isolation),
        Err(error) => missing(id, summary, error.to_string()),
    }
}

fn oci_at(
    id: &str,
    path: &Path,
    summary: &str,
    options: &[&str],
    Isolation(what, kernel): Isolation,
) -> Vessel {
    let arm = described(Arm::new(id, summary), path, options).isolating(what, kernel);
    let options = options.iter().map(|option| (*option).to_owned());
    let words = std::iter::once(path.to_string_lossy().into_owned()).chain(options);
    Vessel { arm, runtime: Some(runtime(words.collect())), is_grouped: true }
}

/// With the program's version and options, which are part of what is compared.
fn described(arm: Arm, path: &Path, options: &[&str]) -> Arm {
    let arm = arm.with("program", path.to_string_lossy());
    let arm = match version(path) {
        Some(version) => arm.with("version", version),
        None => arm,
    };
    if options.is_empty() { arm } else { arm.with("options", options.join(" ")) }
}

/// The first line of what a program says of its version.
fn version(path: &Path) -> Option<String> {
    let output = Command::new(path).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned)
}

/// crun refuses a host that has version 2 of control groups beside version 1. In a mount namespace without the
/// former it works.
const WITHOUT_UNIFIED: &str = r#"umount "$1" && shift && exec "$@""#;

fn crun() -> Vessel {
    const SUMMARY: &str = "Podman's runtime in C";
    let path = match find_program("crun", "crun") {
        Ok(path) => path,
        Err(error) => return missing("crun", SUMMARY, error.to_string()),
    };
    let vessel = oci_at("crun", &path, SUMMARY, &[], SHARED_KERNEL);
    let Some(unified) = hybrid() else { return vessel };
    let enter = ["unshare", "--mount", "/bin/sh", "-c", WITHOUT_UNIFIED, "untax-lab", &unified];
    let mut words: Vec<String> = enter.map(str::to_owned).to_vec();
    words.push(path.to_string_lossy().into_owned());
    let note = "crun refuses hybrid control groups, so it runs where version 2 is unmounted";
    Vessel { arm: vessel.arm.with("note", note), runtime: Some(runtime(words)), ..vessel }
}

/// Where version 2 of control groups is mounted beside version 1.
fn hybrid() -> Option<String> {
    let layout = facts::read_all(&Host::live()).cgroup.into_value()?;
    let unified = |mount: &&untax_core::host::CgroupMount| mount.controllers == ["unified"];
    let has_first = layout.mounts.iter().any(|mount| mount.controllers != ["unified"]);
    let mount = layout.mounts.iter().find(unified)?;
    has_first.then(|| mount.path.clone())
}

fn bubblewrap() -> Vessel {
    const SUMMARY: &str = "plain namespaces, made by bubblewrap";
    match find_program("bwrap", "bubblewrap") {
        Ok(path) => {
            let Isolation(what, kernel) = SHARED_KERNEL;
            let arm = described(Arm::new("bubblewrap", SUMMARY), &path, &[]);
            let arm = arm.isolating(what, kernel);
            Vessel { arm, runtime: Some(Runtime::Bubblewrap), is_grouped: true }
        }
        Err(error) => missing("bubblewrap", SUMMARY, error.to_string()),
    }
}

/// gVisor on one of its platforms, in the network and the groups that it is started in.
fn gvisor(platform: &str, runsc: Option<&Path>) -> Vessel {
    let (id, summary) = (format!("gvisor-{platform}"), format!("gVisor, platform {platform}"));
    let path =
        match runsc.map_or_else(|| find_program("runsc", "runsc"), |path| Ok(path.to_owned())) {
            Ok(path) => path,
            Err(error) => return missing(&id, &summary, error.to_string()),
        };
    if platform == "kvm" && !Path::new("/dev/kvm").exists() {
        return missing(&id, &summary, "there is no /dev/kvm".to_owned());
    }
    let platform = format!("--platform={platform}");
    let options = [platform.as_str(), "--network=host", "--ignore-cgroups"];
    oci_at(&id, &path, &summary, &options, OWN_KERNEL)
}

/// A runtime of the command line: `[NAME=]PATH [OPTION…]`.
fn other(text: &str) -> Vessel {
    const SUMMARY: &str = "as --runtime says";
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    let (name, path) = match first.split_once('=') {
        Some((name, path)) => (Some(name), PathBuf::from(path)),
        None => (None, PathBuf::from(first)),
    };
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let id = name.map(str::to_owned).or(file).unwrap_or_else(|| "other".to_owned());
    if !path.is_file() {
        let why = format!("there is no program '{}'; name its whole path", path.display());
        return missing(&id, SUMMARY, why);
    }
    oci_at(&id, &path, SUMMARY, &words.collect::<Vec<_>>(), UNKNOWN)
}

fn qemu() -> Vessel {
    const WHY: &str = "needs a guest's kernel and disk, which this bench does not make; without nested KVM \
                       a guest is emulated, and its figures would tell of the emulation";
    let mut vessel = missing("qemu", "a virtual machine", WHY.to_owned());
    vessel.arm.is_emulated = true;
    vessel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_of_the_command_line_may_have_a_name_and_options() {
        let vessel = other("mine=/bin/true --debug --log=x");
        assert_eq!(vessel.arm.id, "mine");
        let Some(Runtime::Oci(oci)) = vessel.runtime else { panic!("{:?}", vessel.arm) };
        assert_eq!(oci.words, ["/bin/true", "--debug", "--log=x"]);
        assert_eq!(other("/bin/true").arm.id, "true");
    }

    #[test]
    fn a_program_that_is_missing_is_named_with_the_next_action() {
        let vessel = other("/nowhere/kata");
        assert!(vessel.runtime.is_none());
        assert!(vessel.arm.cannot.unwrap().contains("/nowhere/kata"));
        let runsc = gvisor("systrap", Some(Path::new("/nowhere/runsc")));
        assert_eq!(runsc.arm.id, "gvisor-systrap");
    }
}
