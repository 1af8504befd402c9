//! What it means to wait in a system call.

use libc as sys;
use untax_core::activity::{Call, Doing};
use untax_host::Host;

/// `SYSCALLS` of threads.h.
const SYSCALLS: usize = 512;

/// One kind of system call: `struct syscall` of threads.h without its numbers.
struct Kind {
    /// What a thread does that sleeps in it, ready for a signal.
    sleeps: Doing,
    /// What it does when no signal can wake it, and no block device is waited for either.
    waits: Doing,
    /// Whether threads use it to wake others of their database.
    wakes_peers: bool,
    numbers: &'static [sys::c_long],
}

const KINDS: &[Kind] = &[
    Kind {
        sleeps: Doing::Futex,
        waits: Doing::Fault,
        wakes_peers: false,
        numbers: &[sys::SYS_futex, sys::SYS_futex_waitv, sys::SYS_semop, sys::SYS_semtimedop],
    },
    Kind {
        sleeps: Doing::Receive,
        waits: Doing::Filesystem,
        wakes_peers: false,
        numbers: &[
            sys::SYS_recvfrom,
            sys::SYS_recvmsg,
            sys::SYS_recvmmsg,
            sys::SYS_accept,
            sys::SYS_accept4,
            sys::SYS_read,
            sys::SYS_readv,
        ],
    },
    Kind {
        sleeps: Doing::Send,
        waits: Doing::Filesystem,
        wakes_peers: false,
        numbers: &[
            sys::SYS_sendto,
            sys::SYS_sendmsg,
            sys::SYS_sendmmsg,
            sys::SYS_write,
            sys::SYS_writev,
        ],
    },
    Kind {
        sleeps: Doing::Filesystem,
        waits: Doing::Filesystem,
        wakes_peers: false,
        numbers: &[
            sys::SYS_pread64,
            sys::SYS_preadv,
            sys::SYS_preadv2,
            sys::SYS_pwrite64,
            sys::SYS_pwritev,
            sys::SYS_pwritev2,
            sys::SYS_fsync,
            sys::SYS_fdatasync,
            sys::SYS_sync_file_range,
            sys::SYS_msync,
            sys::SYS_syncfs,
            sys::SYS_fallocate,
            sys::SYS_ftruncate,
            sys::SYS_openat,
            sys::SYS_unlinkat,
            sys::SYS_renameat,
            sys::SYS_renameat2,
            sys::SYS_close,
            sys::SYS_copy_file_range,
            sys::SYS_io_submit,
        ],
    },
    Kind {
        sleeps: Doing::AsyncIo,
        waits: Doing::Filesystem,
        wakes_peers: false,
        numbers: &[sys::SYS_io_getevents, sys::SYS_io_uring_enter],
    },
    Kind {
        sleeps: Doing::Sleep,
        waits: Doing::Other,
        wakes_peers: false,
        numbers: &[
            sys::SYS_nanosleep,
            sys::SYS_clock_nanosleep,
            sys::SYS_rt_sigtimedwait,
            sys::SYS_rt_sigsuspend,
            sys::SYS_wait4,
            sys::SYS_waitid,
            sys::SYS_restart_syscall,
        ],
    },
    Kind {
        sleeps: Doing::Fault,
        waits: Doing::Fault,
        wakes_peers: false,
        numbers: &[
            sys::SYS_mmap,
            sys::SYS_munmap,
            sys::SYS_mremap,
            sys::SYS_mprotect,
            sys::SYS_madvise,
            sys::SYS_brk,
        ],
    },
    Kind {
        sleeps: Doing::Other,
        waits: Doing::Other,
        wakes_peers: true,
        numbers: &[sys::SYS_kill, sys::SYS_tgkill, sys::SYS_rt_sigqueueinfo],
    },
];

/// Names that only older architectures have a number for.
#[cfg(target_arch = "x86_64")]
const OLD: &[(Doing, sys::c_long)] = &[
    (Doing::Filesystem, sys::SYS_open),
    (Doing::Filesystem, sys::SYS_unlink),
    (Doing::Filesystem, sys::SYS_rename),
    (Doing::Filesystem, sys::SYS_creat),
    (Doing::Sleep, sys::SYS_pause),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[(Doing, sys::c_long)] = &[];

/// Calls that write to a file, or wait for what was written.
const WRITES: &[sys::c_long] = &[
    sys::SYS_write,
    sys::SYS_writev,
    sys::SYS_pwrite64,
    sys::SYS_pwritev,
    sys::SYS_pwritev2,
    sys::SYS_fsync,
    sys::SYS_fdatasync,
    sys::SYS_sync_file_range,
];

/// What calls are for, as far as samples tell it.
const CALLS: &[(Call, &[sys::c_long])] = &[
    (
        Call::Connection,
        &[
            sys::SYS_accept,
            sys::SYS_accept4,
            sys::SYS_close,
            sys::SYS_shutdown,
            sys::SYS_setsockopt,
            sys::SYS_getsockopt,
            sys::SYS_getpeername,
            sys::SYS_getsockname,
            sys::SYS_fcntl,
            sys::SYS_epoll_ctl,
        ],
    ),
    (Call::Receive, &[sys::SYS_recvfrom, sys::SYS_recvmsg, sys::SYS_recvmmsg]),
    // Some of them may be on sockets, which the program tells apart.
    (
        Call::Pages,
        &[
            sys::SYS_lseek,
            sys::SYS_read,
            sys::SYS_readv,
            sys::SYS_pread64,
            sys::SYS_preadv,
            sys::SYS_preadv2,
            sys::SYS_write,
            sys::SYS_writev,
            sys::SYS_pwrite64,
            sys::SYS_pwritev,
            sys::SYS_pwritev2,
        ],
    ),
];

/// Calls that wait for events: the number of the argument that is the time-out, and whether it is
/// a pointer (none: no time-out) or milliseconds (negative: no time-out).
const POLLS: &[(sys::c_long, u8, bool)] = &[
    #[cfg(target_arch = "x86_64")]
    (sys::SYS_epoll_wait, 4, false),
    #[cfg(target_arch = "x86_64")]
    (sys::SYS_poll, 3, false),
    #[cfg(target_arch = "x86_64")]
    (sys::SYS_select, 5, true),
    (sys::SYS_epoll_pwait, 4, false),
    (sys::SYS_epoll_pwait2, 4, true),
    (sys::SYS_ppoll, 3, true),
    (sys::SYS_pselect6, 5, true),
];

/// `struct syscall` of threads.h.
#[derive(Clone, Copy)]
struct Entry {
    sleeps: Doing,
    waits: Doing,
    timeout: u8,
    timeout_by_pointer: bool,
    wakes_peers: bool,
    sends: bool,
}

impl Entry {
    const UNKNOWN: Self = Self {
        sleeps: Doing::Other,
        waits: Doing::Other,
        timeout: 0,
        timeout_by_pointer: false,
        wakes_peers: false,
        sends: false,
    };

    /// The entry of that number.
    fn bytes(self, number: sys::c_long) -> [u8; 8] {
        let call = CALLS.iter().find(|(_, numbers)| numbers.contains(&number));
        let call = call.map(|(call, _)| *call).or((self.timeout > 0).then_some(Call::Wait));
        [
            self.sleeps as u8,
            self.waits as u8,
            self.timeout,
            self.timeout_by_pointer.into(),
            self.wakes_peers.into(),
            self.sends.into(),
            WRITES.contains(&number).into(),
            call.map_or(Call::ALL.len() as u8, |call| call as u8),
        ]
    }
}

fn entries() -> [Entry; SYSCALLS] {
    let mut entries = [Entry::UNKNOWN; SYSCALLS];
    let mut set = |number: sys::c_long, entry: Entry| {
        if let Some(place) = usize::try_from(number).ok().and_then(|n| entries.get_mut(n)) {
            *place = entry;
        }
    };
    for Kind { sleeps, waits, wakes_peers, numbers } in KINDS {
        let entry = Entry {
            sleeps: *sleeps,
            waits: *waits,
            wakes_peers: *wakes_peers,
            sends: *sleeps == Doing::Send,
            ..Entry::UNKNOWN
        };
        numbers.iter().for_each(|number| set(*number, entry));
    }
    for (doing, number) in OLD {
        set(*number, Entry { sleeps: *doing, waits: *doing, ..Entry::UNKNOWN });
    }
    for (number, timeout, by_pointer) in POLLS {
        let (timeout, timeout_by_pointer) = (*timeout, *by_pointer);
        set(*number, Entry { sleeps: Doing::Poll, timeout, timeout_by_pointer, ..Entry::UNKNOWN });
    }
    entries
}

/// The table that the program is given.
pub(super) fn table() -> Vec<u8> {
    (0..).zip(entries()).flat_map(|(number, entry)| entry.bytes(number)).collect()
}

/// What a thread is doing now, going by the system call that it waits in; `None` when it does not
/// wait, or nothing tells.
pub(super) fn current_doing(host: &Host, pid: u32, tid: u32) -> Option<Doing> {
    let text = host.text(&format!("/proc/{pid}/task/{tid}/syscall")).into_value()?;
    let number: usize = text.split_ascii_whitespace().next()?.parse().ok()?;
    entries().get(number).map(|entry| entry.sleeps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_as_long_as_the_program_expects() {
        let header = include_str!("../bpf/threads.h");
        assert!(header.contains(&format!("#define SYSCALLS {SYSCALLS}\n")));
        assert_eq!(table().len(), SYSCALLS * 8);
    }

    #[test]
    fn no_call_is_of_two_kinds() {
        let of_kinds = KINDS.iter().flat_map(|kind| kind.numbers).copied();
        let all = of_kinds.chain(OLD.iter().map(|(_, n)| *n)).chain(POLLS.iter().map(|p| p.0));
        let calls = CALLS.iter().flat_map(|(_, numbers)| *numbers).copied();
        for mut all in [all.collect::<Vec<_>>(), calls.collect()] {
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), count);
        }
    }

    #[test]
    fn the_kernel_finds_what_a_call_is_for() {
        let (places, bytes) = super::super::kernel_types::tests::places("syscall");
        let call = |number: sys::c_long| table()[number as usize * bytes + places["call"]];
        assert_eq!(call(sys::SYS_accept4), Call::Connection as u8);
        assert_eq!(call(sys::SYS_pread64), Call::Pages as u8);
        assert_eq!(usize::from(call(sys::SYS_getpid)), Call::ALL.len());
    }
}
