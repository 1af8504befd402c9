//! What it means to wait in a system call.

mod calls;
mod class;

use calls::{CALLS, NONE};
use class::Class;
use untax_core::activity::{self, Cause, Doing};
use untax_host::Host;

/// `SYSCALLS` of threads.h.
const SYSCALLS: usize = 512;

/// The length of the table of causes by doing in `struct meanings` of threads.h.
const CAUSES: usize = 32;

/// Calls that write to a file, or wait for what was written.
const WRITES: &[&str] = &[
    "write",
    "writev",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "fsync",
    "fdatasync",
    "sync_file_range",
];

/// What calls are for, as far as samples tell it.
const PURPOSES: &[(activity::Call, &[&str])] = &[
    (
        activity::Call::Connection,
        &[
            "accept",
            "accept4",
            "close",
            "shutdown",
            "setsockopt",
            "getsockopt",
            "getpeername",
            "getsockname",
            "fcntl",
            "epoll_ctl",
        ],
    ),
    (activity::Call::Receive, &["recvfrom", "recvmsg", "recvmmsg"]),
    // Some of them may be on sockets, which the program tells apart.
    (
        activity::Call::Pages,
        &[
            "lseek", "read", "readv", "pread64", "preadv", "preadv2", "write", "writev",
            "pwrite64", "pwritev", "pwritev2",
        ],
    ),
];

/// Calls that wait for events: the number of the argument that is the time-out, and whether it is
/// a pointer (none: no time-out) or milliseconds (negative: no time-out).
const TIMEOUTS: &[(&str, u8, bool)] = &[
    ("epoll_wait", 4, false),
    ("poll", 3, false),
    ("select", 5, true),
    ("epoll_pwait", 4, false),
    ("epoll_pwait2", 4, true),
    ("ppoll", 3, true),
    ("pselect6", 5, true),
];

/// `struct syscall` of threads.h.
fn bytes(class: Class, name: &str) -> [u8; 8] {
    let (sleeps, waits) = class.doings();
    let timeout = TIMEOUTS.iter().find(|(polls, ..)| *polls == name);
    let purpose = PURPOSES.iter().find(|(_, names)| names.contains(&name));
    let of_polls = (class == Class::Poll).then_some(activity::Call::Wait);
    let purpose = purpose.map(|(call, _)| *call).or(of_polls);
    [
        sleeps as u8,
        waits as u8,
        timeout.map_or(0, |(_, argument, _)| *argument),
        timeout.is_some_and(|(_, _, by_pointer)| *by_pointer).into(),
        (class == Class::Signal).into(),
        (class == Class::Send).into(),
        WRITES.contains(&name).into(),
        purpose.map_or(activity::Call::ALL.len() as u8, |call| call as u8),
    ]
}

/// The number of a call on the architecture that untax is built for.
fn number((_, _, x86_64, aarch64): &calls::Call) -> Option<usize> {
    let number = if cfg!(target_arch = "x86_64") { *x86_64 } else { *aarch64 };
    (number != NONE).then(|| usize::try_from(number).ok()).flatten()
}

/// The class and the name of each number.
fn by_number() -> [(Class, &'static str); SYSCALLS] {
    let mut calls = [(Class::Unknown, ""); SYSCALLS];
    for call in CALLS {
        if let Some(place) = number(call).and_then(|number| calls.get_mut(number)) {
            *place = (call.0, call.1);
        }
    }
    calls
}

/// `struct meanings` of threads.h, where so many threads may have a history.
pub(super) fn meanings(histories: u32) -> Vec<u8> {
    let causes = Doing::ALL.map(|doing| doing.cause() as u8);
    let unused = [Cause::Unresolved as u8; CAUSES - Doing::ALL.len()];
    let histories = u64::from(histories).to_ne_bytes();
    table().into_iter().chain(causes).chain(unused).chain(histories).collect()
}

/// The calls.
fn table() -> Vec<u8> {
    by_number().into_iter().flat_map(|(class, name)| bytes(class, name)).collect()
}

/// The system call that a thread waits in, and what it is doing, going by that; `None` when it does not
/// wait, or nothing tells.
pub(super) fn current_wait(host: &Host, pid: u32, tid: u32) -> Option<(u32, Doing)> {
    let text = host.text(&format!("/proc/{pid}/task/{tid}/syscall")).into_value()?;
    let number: u32 = text.split_ascii_whitespace().next()?.parse().ok()?;
    let (class, _) = by_number().get(usize::try_from(number).ok()?).copied()?;
    Some((number, class.doings().0))
}

/// What a call of that number is named.
pub(super) fn name(of: usize) -> String {
    let call = CALLS.iter().find(|call| number(call) == Some(of));
    call.map_or_else(|| format!("system call {of}"), |call| call.1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn the_table_is_as_long_as_the_program_expects() {
        let header = include_str!("../bpf/threads.h");
        assert!(header.contains(&format!("#define SYSCALLS {SYSCALLS}\n")));
        assert!(header.contains(&format!("#define MAX_DOINGS {CAUSES}\n")));
        assert_eq!(table().len(), SYSCALLS * 8);
        assert_eq!(meanings(1).len(), SYSCALLS * 8 + CAUSES + 8);
    }

    /// The numbers of one architecture, by name.
    fn numbers(of: fn(&calls::Call) -> i16) -> BTreeMap<&'static str, i16> {
        CALLS.iter().map(|call| (call.1, of(call))).filter(|(_, number)| *number != NONE).collect()
    }

    #[test]
    fn every_call_of_the_kernels_tables_has_one_class() {
        // rseq_slice_yield of Linux 7.0 is the newest; both architectures number alike from 424 on.
        let newest = 471;
        let common = || 424..=newest;
        // 244 to 259 are left to architectures, and aarch64 has none of its own.
        let aarch64 = (0..=243).chain(260..=294).chain(common()).collect();
        let x86_64 = (0..=336).chain(common()).collect();
        let tables: [(_, BTreeSet<i16>); 2] =
            [(numbers(|call| call.2), x86_64), (numbers(|call| call.3), aarch64)];
        for (numbers, expected) in tables {
            let listed: Vec<i16> = numbers.values().copied().collect();
            assert_eq!(listed.iter().copied().collect::<BTreeSet<i16>>(), expected);
            assert_eq!(listed.len(), expected.len(), "a number is listed twice");
        }
        let names: BTreeSet<&str> = CALLS.iter().map(|call| call.1).collect();
        assert_eq!(names.len(), CALLS.len(), "a name is listed twice");
    }

    /// The definitions of a header of the kernel.
    fn defined(header: &str) -> Vec<(String, i16)> {
        let text = Host::live().text(header).into_value().expect("the kernel's headers");
        let definition = |line: &str| {
            let rest = line.strip_prefix("#define __NR")?;
            let (name, number) = rest.split_once(char::is_whitespace)?;
            let name = name.strip_prefix("3264_").or_else(|| name.strip_prefix('_'))?;
            Some((name.to_owned(), number.trim().parse().ok()?))
        };
        text.lines().filter_map(definition).collect()
    }

    #[test]
    fn numbers_are_those_of_the_kernels_headers() {
        // Other names of the same, of 32-bit architectures, and of one that has another order of arguments.
        let others = ["syscalls", "arch_specific_syscall", "fstatat", "sync_file_range2"];
        let is_time64 = |number: i16| (403..=423).contains(&number);
        let aarch64 = numbers(|call| call.3);
        let generic = defined("/usr/include/asm-generic/unistd.h");
        let mut compared = 0;
        for (name, number) in generic {
            if !others.contains(&name.as_str()) && !is_time64(number) {
                assert_eq!(aarch64.get(name.as_str()), Some(&number), "{name}");
                compared += 1;
            }
        }
        assert!(compared > 300, "{compared}");
        if cfg!(target_arch = "x86_64") {
            let x86_64 = numbers(|call| call.2);
            for (name, number) in defined("/usr/include/x86_64-linux-gnu/asm/unistd_64.h") {
                assert_eq!(x86_64.get(name.as_str()), Some(&number), "{name}");
            }
        }
    }

    #[test]
    fn lists_of_names_hold_calls_of_the_table() {
        let known: BTreeSet<&str> = CALLS.iter().map(|call| call.1).collect();
        let of_purposes = PURPOSES.iter().flat_map(|(_, names)| *names).copied();
        let purposes: Vec<&str> = of_purposes.collect();
        let polls: BTreeSet<&str> = TIMEOUTS.iter().map(|(name, ..)| *name).collect();
        for name in WRITES.iter().chain(&purposes).chain(&polls) {
            assert!(known.contains(name), "{name}");
        }
        assert_eq!(purposes.iter().collect::<BTreeSet<_>>().len(), purposes.len());
        let of_class = CALLS.iter().filter(|call| call.0 == Class::Poll).map(|call| call.1);
        assert_eq!(of_class.collect::<BTreeSet<_>>(), polls, "each says which argument ends it");
    }

    fn class(name: &str) -> Class {
        let call = CALLS.iter().find(|call| call.1 == name).unwrap();
        by_number()[number(call).unwrap()].0
    }

    #[test]
    fn what_a_wait_means_is_known_of_newer_calls_too() {
        assert_eq!(class("io_pgetevents").doings().0, Doing::AsyncIo, "idle threads of MySQL 9");
        assert_eq!(class("io_uring_enter").doings().0, Doing::AsyncIo);
        assert_eq!(class("epoll_pwait2").doings().0, Doing::Poll);
        assert_eq!(class("futex_waitv").doings().0, Doing::Futex);
        assert_eq!(class("futex_wait").doings().0, Doing::Futex);
        assert_eq!(class("preadv2").doings().1, Doing::Filesystem);
        assert_eq!(class("process_madvise").doings().1, Doing::Fault);
        assert_eq!([class("tkill"), class("pidfd_send_signal")], [Class::Signal; 2]);
    }

    #[test]
    fn a_call_of_unknown_meaning_is_listed_as_unknown() {
        // The last one is no call yet.
        for class in [class("ioctl"), class("splice"), class("clone3"), by_number()[500].0] {
            assert_eq!(class.doings(), (Doing::Other, Doing::Other));
        }
        let splice = CALLS.iter().find(|call| call.1 == "splice").and_then(number).unwrap();
        assert_eq!([name(splice), name(500)], ["splice", "system call 500"]);
    }

    #[test]
    fn the_kernel_finds_what_a_call_is_for() {
        let (places, bytes) = super::super::kernel_types::tests::places("syscall");
        let byte = |name: &str, of: &str| {
            let call = CALLS.iter().find(|call| call.1 == name).unwrap();
            table()[number(call).unwrap() * bytes + places[of]]
        };
        let call = |name| byte(name, "call");
        assert_eq!([byte("sendto", "sends"), byte("connect", "sends")], [1, 0]);
        assert_eq!([byte("ppoll", "timeout"), byte("ppoll", "timeout_by_pointer")], [3, 1]);
        assert_eq!([byte("kill", "wakes_peers"), byte("fsync", "writes")], [1, 1]);
        assert_eq!(call("accept4"), activity::Call::Connection as u8);
        assert_eq!(call("pread64"), activity::Call::Pages as u8);
        assert_eq!(call("ppoll"), activity::Call::Wait as u8);
        assert_eq!(usize::from(call("getpid")), activity::Call::ALL.len());
    }
}
