//! Why a kernel does not load a program, in one sentence that names what to do.
//!
//! A program is loaded or it is not: what a kernel can do is never inferred from its version, because
//! distributions carry newer features back to older versions.

use libbpf_rs::{ErrorKind, ProgramType};
use untax_core::Reading;
use untax_host::Host;

/// What all reasons begin with: a word of `reason::NO_BPF`.
const REFUSES: &str = "this kernel refuses tracing";

/// What libbpf says where the kernel does not describe its structures, or an empty description is there.
const NO_TYPES: [&str; 2] = ["failed to find valid kernel BTF", "failed to read kernel BTF"];

/// What the verifier says of a function of the kernel that programs may not call: older and newer kernels.
const NO_FUNCTION: [&str; 3] = ["unknown func ", "cannot use helper ", "invalid func "];

/// The kinds of program that are needed, but for those that older kernels have as well.
const KINDS: [(ProgramType, &str); 1] = [(ProgramType::Syscall, "BPF_PROG_TYPE_SYSCALL")];

/// The functions that a locked-down kernel withholds: libbpf takes the older one where the newer is not there.
const READS_KERNEL: [&str; 2] = ["bpf_probe_read_kernel", "bpf_probe_read"];

/// Why a program was not loaded: the error, and what libbpf said meanwhile.
pub(crate) fn reading<T>(host: &Host, error: &libbpf_rs::Error, said: &str) -> Reading<T> {
    explained(host, error, said, missing_kind)
}

fn explained<T>(
    host: &Host,
    error: &libbpf_rs::Error,
    said: &str,
    missing_kind: impl Fn() -> Option<&'static str>,
) -> Reading<T> {
    let refused = verifier_error(said);
    // The kernel answers a program that it cannot prove harmless as it does a user who may not load
    // any; but it says why.
    if error.kind() == ErrorKind::PermissionDenied && refused.is_none() {
        return Reading::Denied("tracing needs root (CAP_BPF and CAP_PERFMON)".to_owned());
    }
    if NO_TYPES.iter().any(|words| said.contains(words)) {
        let lacks = "no type information (BTF); boot one with CONFIG_DEBUG_INFO_BTF";
        return Reading::Absent(format!("{REFUSES}: {lacks}"));
    }
    let missing = match refused {
        Some(_) => missing_function(said),
        None => missing_kind(),
    };
    match (missing, lockdown(host)) {
        (Some(missing), Some(mode)) if READS_KERNEL.contains(&missing) => Reading::Absent(format!(
            "{REFUSES}: lockdown ({mode}); boot it with lockdown=integrity"
        )),
        (Some(missing), _) => Reading::Absent(format!(
            "{REFUSES}: it has no {missing}, as before 5.15; boot a newer one"
        )),
        (None, _) => {
            let said = refused.or(said.trim().lines().last()).unwrap_or_default();
            Reading::Failed(format!("{REFUSES}: {error} ({said})"))
        }
    }
}

/// A kind of program that this kernel does not have: it says no more of one than that it is invalid.
fn missing_kind() -> Option<&'static str> {
    let is_missing = |kind: &ProgramType| !kind.is_supported().unwrap_or(true);
    KINDS.iter().find(|(kind, _)| is_missing(kind)).map(|(_, name)| *name)
}

/// What the kernel's verifier found wrong with a program, if it looked at one: the line before the
/// last one of its log, which tells what it took to find it.
fn verifier_error(said: &str) -> Option<&str> {
    let (log, _) = said.split_once("-- END PROG LOAD LOG --")?;
    let mut lines = log.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    lines.find(|line| !line.starts_with("processed "))
}

/// The function that the verifier misses: what stands before the number in `bpf_task_pt_regs#175`. Newer
/// kernels have advice below that line.
fn missing_function(log: &str) -> Option<&str> {
    let rest = NO_FUNCTION.iter().find_map(|words| Some(log.rsplit_once(words)?.1))?;
    rest.split(['#', ' ', '\n']).next().filter(|name| !name.is_empty())
}

/// How the kernel is locked down, where it says so: the word in brackets, but for `none`.
fn lockdown(host: &Host) -> Option<String> {
    let text = host.text("/sys/kernel/security/lockdown").into_value()?;
    let mode = text.split_once('[')?.1.split_once(']')?.0;
    (mode != "none").then(|| mode.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_host::Record;

    fn log(line: &str) -> String {
        format!(
            "libbpf: prog 'on_switch': -- BEGIN PROG LOAD LOG --\n1694: (0f) r7 += r2\n{line}\n\
             processed 519 insns (limit 1000000) max_states_per_insn 1\n\
             -- END PROG LOAD LOG --\nlibbpf: failed to load object 'threads'"
        )
    }
    fn why(error: i32, said: &str, lockdown: &str) -> Reading<()> {
        let record = Record::default().with_file("/sys/kernel/security/lockdown", lockdown);
        let error = libbpf_rs::Error::from_raw_os_error(error);
        explained(&Host::from_record(record), &error, said, || None)
    }

    fn words(reading: Reading<()>) -> String {
        let Reading::Absent(why) = reading else { panic!("{reading:?}") };
        assert_eq!(untax_core::reason::of(&why).id, "no-bpf", "{why}");
        why
    }

    #[test]
    fn a_kernel_without_types_says_so() {
        let said = "libbpf: kernel BTF is missing at '/sys/kernel/btf/vmlinux', was \
                    CONFIG_DEBUG_INFO_BTF enabled?\nlibbpf: failed to find valid kernel BTF\n\
                    libbpf: Error loading vmlinux BTF: -3";
        let why = words(why(libc::ESRCH, said, "[none] integrity confidentiality\n"));
        assert!(why.contains("no type information (BTF)"), "{why}");
    }

    #[test]
    fn a_kernel_that_is_locked_down_says_so() {
        for refused in ["unknown func bpf_probe_read#4", HELPER_OF_NEWER_KERNELS] {
            let said = log(refused);
            let locked = words(why(libc::EINVAL, &said, "none integrity [confidentiality]\n"));
            assert!(locked.contains("lockdown (confidentiality)"), "{locked}");
            // Where the file is not mounted, the missing function remains.
            let unknown = words(why(libc::EINVAL, &said, ""));
            assert!(unknown.contains("has no bpf_probe_read,"), "{unknown}");
        }
    }

    const HELPER_OF_NEWER_KERNELS: &str = "program of this type cannot use helper bpf_probe_read#4\n\
         Use a helper allowed for this program type, or move the logic to a compatible program type.";

    #[test]
    fn a_kernel_that_lacks_a_function_or_a_kind_of_program_names_it() {
        for refused in ["unknown func bpf_task_pt_regs#175", "invalid func bpf_task_pt_regs#175"] {
            let why = words(why(libc::EINVAL, &log(refused), "[none] integrity\n"));
            assert!(why.contains("it has no bpf_task_pt_regs, "), "{why}");
        }
        let error = libbpf_rs::Error::from_raw_os_error(libc::EINVAL);
        let said = "libbpf: failed to load object 'threads'";
        let host = Host::from_record(Record::default());
        let kind = || Some("BPF_PROG_TYPE_SYSCALL");
        let why = words(explained(&host, &error, said, kind));
        assert!(why.contains("it has no BPF_PROG_TYPE_SYSCALL, "), "{why}");
    }

    #[test]
    fn a_refused_program_is_told_from_a_user_who_may_not() {
        let said = log("R7 max value is outside of the allowed memory range");
        let Reading::Failed(refused) = why(libc::EACCES, &said, "") else { panic!() };
        assert!(refused.ends_with("(R7 max value is outside of the allowed memory range)"));
        let said = "libbpf: failed to load object 'threads'";
        assert!(matches!(why(libc::EPERM, said, ""), Reading::Denied(why) if why.contains("root")));
    }
}
