//! How the kernel schedules a thread, as `/proc/PID/task/TID/stat` says.

/// Scheduling of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduling {
    /// Its policy: [`Self::OTHER`] and so on.
    pub policy: u32,
    /// Its nice value.
    pub nice: i32,
    /// Whether it is one of the kernel's own threads.
    pub is_of_kernel: bool,
}

impl Scheduling {
    /// `SCHED_OTHER` of linux/sched.h: the default.
    pub const OTHER: u32 = 0;
    /// `SCHED_EXT`: by a loaded BPF program, and as `SCHED_OTHER` while none is loaded.
    pub const EXT: u32 = 7;

    /// Whether it comes before all others: `SCHED_FIFO`, `SCHED_RR` or `SCHED_DEADLINE`.
    pub fn is_real_time(self) -> bool {
        matches!(self.policy, 1 | 2 | 6)
    }
}

/// `PF_KTHREAD` of linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Parses a `stat` line.
pub fn parse(text: &str) -> Option<Scheduling> {
    let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    // Field N of proc(5) is at N - 3. The field behind the policy tells that it is whole.
    let field = |n: usize| fields.get(n - 3).copied();
    field(42)?;
    Some(Scheduling {
        policy: field(41)?.parse().ok()?,
        nice: field(19)?.parse().ok()?,
        is_of_kernel: field(9)?.parse::<u64>().ok()? & KERNEL_THREAD != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_told_apart() {
        let line = |flags: u64, nice: i32, policy: u32| {
            format!(
                "7 (a) b) S 1 7 7 0 -1 {flags} 0 0 0 0 1 1 0 0 20 {nice} 1 0 5 0 0 0 0 0 0 0 0 0 0 \
                 0 0 0 0 0 17 0 0 {policy} 0 0"
            )
        };
        let plain = parse(&line(0x40, -5, 0)).unwrap();
        assert_eq!((plain.policy, plain.nice, plain.is_of_kernel), (Scheduling::OTHER, -5, false));
        assert!(parse(&line(0x0020_8040, 0, 1)).unwrap().is_of_kernel);
        let real_time = |policy| parse(&line(0, 0, policy)).unwrap().is_real_time();
        assert!([1, 2, 6].into_iter().all(real_time) && ![0, 3, 5, 7].into_iter().any(real_time));
        assert_eq!(parse("7 (a) S 1 7 7 0"), None, "cut off");
    }
}
