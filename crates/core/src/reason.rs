//! The kinds of reason for which something was not measured, each with an id for scripts.
//!
//! Readers say in a text why a value is missing, and the text travels with the value, through captures
//! too. The kind follows from the words of the text, so that every text has one, also in captures made
//! before there were ids.

/// One kind of reason.
#[derive(Debug, PartialEq, Eq)]
pub struct Reason {
    /// What scripts switch on, kebab-case.
    pub id: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What makes the value measurable.
    pub action: &'static str,
    /// A text with any of these words is of this kind.
    pub words: &'static [&'static str],
}

/// The kind of a reason, as a person reads it: that of the first in [`REASONS`] whose words it holds.
/// Any other text says that this host or database has no such thing.
pub fn of(why: &str) -> &'static Reason {
    let holds = |reason: &&Reason| reason.words.iter().any(|words| why.contains(words));
    REASONS.iter().find(holds).unwrap_or(&NOT_HERE)
}

/// Whether a value is missing because untax could not look, and not because there is nothing to see or too
/// little of it. A check with such a gap saw only a part.
pub fn is_of_part(id: &str) -> bool {
    let kinds = [
        PID_NAMESPACE,
        NEEDS_ROOT,
        NO_BPF,
        TOO_MANY,
        TRACE_INCOMPLETE,
        NOT_SAMPLED,
        PASSWORD,
        SERVER_REFUSED,
        NO_ANSWER,
        CGROUP_HIDDEN,
        FORM,
        DENIED,
        FAILED,
    ];
    kinds.iter().any(|kind| kind.id == id)
}

macro_rules! reasons {
    ($($name:ident: $id:literal, $meaning:literal, $action:literal, [$($words:literal),*];)*) => {
        $(#[doc = $meaning] pub const $name: Reason =
            Reason { id: $id, meaning: $meaning, action: $action, words: &[$($words),*] };)*
        /// All kinds, the special before the general.
        pub static REASONS: &[Reason] = &[$($name),*];
    };
}

reasons! {
    ENDED: "ended-during-check",
        "The database or process ended, or was restarted, during the check.",
        "Start the database, then check again.",
        ["ended or was restarted during the check", "the process ended"];
    STARTED: "started-during-check",
        "The database, or the limit that is asked about, is younger than the window.",
        "Check again.",
        ["was started during the window", "the limit is new"];
    NO_WINDOW: "no-window",
        "The check had no window, and a rate needs one.",
        "Use `--window 10s`.",
        ["the check had no window"];
    IDLE: "database-idle",
        "The database was hardly active during the window.",
        "Check it under load.",
        ["idle: all its threads", "used no CPU during the window", "never active in the window",
         "had no minor faults"];
    NOT_CAPTURED: "not-captured",
        "The capture or saved run does not hold it, or its version did not read it.",
        "Capture again with this version, under the same user.",
        ["is not in the capture", "not captured", "not part of a saved run",
         "the version that made this run"];
    PID_NAMESPACE: "other-pid-namespace",
        "untax runs in a pid namespace in which processes have other numbers than in the kernel.",
        "Start it in the host's pid namespace (`docker run --pid=host`, `hostPID: true`).",
        ["numbers processes otherwise than the kernel"];
    NEEDS_ROOT: "needs-root",
        "Only root, or a process with these capabilities, may look at it.",
        "Run untax as root, or with `CAP_BPF` and `CAP_PERFMON`.",
        ["tracing needs root", "is known to root alone", "is counted for CAP_SYS_ADMIN alone"];
    NO_BPF: "no-bpf",
        "The kernel refuses the BPF program, or lost it during the window.",
        "Read the kernel's error in the text.",
        ["this kernel refuses tracing", "its threads cannot be watched", "the disks cannot be watched"];
    SANDBOX: "in-sandbox",
        "The database runs in a sandbox with a kernel of its own, which hides its threads.",
        "Run untax inside the sandbox.",
        ["are its sandbox's"];
    TOO_MANY: "too-many-databases",
        "There are more databases than can be traced at once.",
        "Choose one with `--pid`, `--container` or `--pod`.",
        ["too many databases to trace them all"];
    TRACE_INCOMPLETE: "trace-incomplete",
        "Tracing saw too little of the window to stand for it.",
        "Take a longer `--window`, or check again.",
        ["does not stand for the whole", "threads were overlooked", "there was no room for",
         "tracing saw nothing of it"];
    CLIENTS_LEFT: "clients-came-and-went",
        "Clients connected or left during the window, so that not all of their round trips are known.",
        "Check it under a load of lasting connections.",
        ["clients connected or left during the window"];
    FEW_SAMPLES: "too-few-samples",
        "Too few samples were taken to tell a share.",
        "Take a longer `--window`, or check it under load.",
        ["samples of stacks on the CPUs are too few", "or too few of them",
         "too little of it was sampled"];
    NOT_SAMPLED: "not-sampled",
        "Stacks on the CPUs cannot be sampled here, or the kernel's functions are not known.",
        "Run untax as root on a kernel with perf events and `/proc/kallsyms`.",
        ["stacks on the CPUs cannot be sampled", "where the kernel serves page faults is not known"];
    FEW_LOADS: "too-few-loads",
        "The database was not seen under enough different loads to tell how it scales.",
        "Let `untax watch` run while the load changes.",
        ["loads or more are needed", "the loads are too alike", "the loads determine no curve",
         "% off the law", "% of contention open"];
    NOT_CALIBRATED: "not-calibrated",
        "The cost of a page fault or a page walk was not measured on this machine.",
        "Run `untax bench pages`.",
        ["run untax bench pages"];
    COUNTER_RESET: "counter-reset",
        "A counter went backwards: its processes left, or it began anew.",
        "Check again.",
        ["went backwards"];
    PASSWORD: "password-needed",
        "The server wants a password from the user that untax asks it as.",
        "Let the server's own OS user in through the local socket (peer authentication).",
        ["the server wants a password", "NOAUTH"];
    SERVER_REFUSED: "server-refused",
        "The server refused the question or the connection.",
        "Read the server's answer in the text; grant what it asks for.",
        ["the server says", "connecting to the server", "becoming the server's user"];
    NO_ANSWER: "server-silent",
        "The server gave no answer in time, or one that makes no sense.",
        "See whether the server takes connections, then check again.",
        ["the server gave no answer", "asking the server", "the process that asks the server",
         "what the server answered", "waiting for the server"];
    NOT_ASKED: "not-asked",
        "untax does not ask this server, or was told not to.",
        "Nothing: only what the kernel knows is measured of this engine.",
        ["is not asked over its socket", "the server was not asked", "not asked yet",
         "listens on no local socket", "PostgreSQL alone times"];
    NOT_COUNTED: "not-counted-by-server",
        "This server or version does not count it, or does not tell it.",
        "Upgrade the server, or switch the statistics on that the text names.",
        ["the server told no", "the server did not tell", "the server does not say",
         "does not count its requests", "the server has no", "INFO has no"];
    SETTING: "setting-unknown",
        "A setting of the database is not known.",
        "Let untax ask the server, or read its configuration.",
        ["is not among the settings read", "is not known (", "its version is not known"];
    TOO_COSTLY: "too-costly-to-read",
        "Reading it would stop the database for too long.",
        "Nothing: untax does not read it here.",
        ["would hold the memory lock", "it would be read of each"];
    CGROUP_V1: "cgroup-v1",
        "Control groups of version 1 do not count it.",
        "Boot with control groups of version 2.",
        ["control groups of version 1"];
    CGROUP_HIDDEN: "cgroup-not-seen",
        "The database's control group, or the controller, cannot be seen from here.",
        "Run untax on the host, with the host's `/sys/fs/cgroup`.",
        ["is not to be seen below", "controller is mounted here", "controller is on for none"];
    KERNEL: "kernel-without-it",
        "This kernel is too old for it, or was built without it.",
        "Use the kernel that the text names.",
        ["kernels since", "kernels before", "this kernel does not", "this kernel tracks no",
         "this kernel has no", "this kernel cannot tell", "this kernel tells"];
    HIDDEN_DEVICE: "device-hides-owner",
        "The filesystem or the device hides whose requests reach the disk.",
        "Put the data on a filesystem directly on a block device.",
        ["hides whose they are", "has no block device whose requests"];
    MIXED: "counted-together",
        "It is counted together with something else, and cannot be told apart.",
        "Nothing: the kernel counts no finer.",
        ["is counted for all together", "holds other processes too", "cannot be told from waits"];
    NO_COUNTERS: "no-hardware-counters",
        "It takes hardware counters, or a calibration, that this machine does not give.",
        "Measure on bare metal, or where the hypervisor exposes the counters.",
        ["needs hardware counters", "no hardware counters"];
    SMALL: "below-threshold",
        "It was measured, and is too small to be worth a finding.",
        "Nothing.",
        ["less than 2 % of its time", "took no longer after others"];
    TIME_NOT_COUNTED: "time-not-counted",
        "The cause is there; nothing counts the time that it takes from the database.",
        "Compare the same load with and without the cause: `untax verify`.",
        ["takes no time", "not their time", "for nobody; compare", "only the same load outside",
         "the client waits for what is dropped", "it is a price in latency", "it takes memory, and no time"];
    FILESYSTEM: "filesystem-silent",
        "The filesystem did not answer in time.",
        "See whether it hangs: `stat` the path of the text.",
        ["its filesystem does not answer"];
    FORM: "unexpected-form",
        "It was read, and does not have the form that untax knows.",
        "Send a capture: `untax capture FILE`.",
        ["has an unexpected form", "have an unexpected form"];
    DENIED: "denied",
        "It is there, and this user may not read it.",
        "Run untax as root, or as the user of the text.",
        ["permission denied"];
    FAILED: "failed",
        "It is there, and reading it went wrong.",
        "Read the error in the text; check again.",
        ["could not be read"];
    NOT_HERE: "not-on-this-host",
        "This host or database has no such thing.",
        "Nothing, or what the text says.",
        [];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reading;
    use std::collections::BTreeSet;

    #[test]
    fn every_kind_has_an_id_of_its_own() {
        let ids: BTreeSet<&str> = REASONS.iter().map(|reason| reason.id).collect();
        assert_eq!(ids.len(), REASONS.len());
        assert!(ids.iter().all(|id| crate::evidence::is_kebab(id)), "{ids:?}");
        assert!(REASONS.len() <= 40, "a script is to know all of them");
    }

    #[test]
    fn words_of_a_kind_are_of_no_other() {
        for reason in REASONS {
            for words in reason.words {
                assert_eq!(of(words).id, reason.id, "{words}");
            }
        }
    }

    #[test]
    fn the_kind_of_a_gap_is_known_where_no_word_is() {
        let kind = |reading: Reading<u8>| of(&reading.why().unwrap()).id;
        assert_eq!(kind(Reading::Denied("/proc/1/maps".to_owned())), "denied");
        assert_eq!(kind(Reading::Failed("I/O error".to_owned())), "failed");
        assert_eq!(kind(Reading::absent("no such pool")), "not-on-this-host");
        assert_eq!(kind(Reading::Denied("the server wants a password".to_owned())), PASSWORD.id);
        assert_eq!(of("tax: minor faults: permission denied: x").id, "denied");
    }
}
