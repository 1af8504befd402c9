//! `/proc/PID/stat`.

/// The fields of `/proc/PID/stat` that untax uses; times are in clock ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// The process.
    pub pid: u32,
    /// Its name; may hold any character, parentheses and newlines included.
    pub comm: String,
    /// `R`, `S`, `D`, `Z`, …
    pub state: char,
    /// Its parent.
    pub parent: u32,
    /// Its process group; 0 where that is not of this process's pid namespace.
    pub group: Option<u32>,
    /// Its session; 0 likewise.
    pub session: Option<u32>,
    /// Minor faults of its own threads, ended ones included.
    pub minor_faults: u64,
    /// Minor faults of children it has waited for, and theirs.
    pub children_minor_faults: u64,
    /// Major faults of its own threads.
    pub major_faults: u64,
    /// Major faults of children it has waited for.
    pub children_major_faults: u64,
    /// User time.
    pub user_ticks: u64,
    /// System time.
    pub system_ticks: u64,
    /// User time of children it has waited for.
    pub children_user_ticks: u64,
    /// System time of children it has waited for.
    pub children_system_ticks: u64,
    /// Number of threads.
    pub threads: u32,
    /// When it started, ticks since boot.
    pub started_ticks: u64,
    /// The CPU that it is on, or was on last; what was cut off does not tell.
    pub cpu: Option<u32>,
}

impl Stat {
    /// Whether it is the parent of the kernel's own threads; a container has none.
    pub fn is_kthreadd(&self) -> bool {
        self.pid == 2 && self.comm == "kthreadd" && self.parent == 0
    }
}

/// Parses a `stat` line. The name ends at the *last* parenthesis: a process may be called
/// `a) R 1 (b`.
pub fn parse(text: &str) -> Option<Stat> {
    let (open, close) = (text.find('(')?, text.rfind(')')?);
    let pid = text.get(..open)?.trim().parse().ok()?;
    let comm = text.get(open + 1..close)?.to_owned();
    let fields: Vec<&str> = text.get(close + 1..)?.split_ascii_whitespace().collect();
    // Field N of proc(5) is at N - 3: the state is field 3.
    let number = |n: usize| fields.get(n - 3)?.parse::<u64>().ok();
    // What follows the last field that is used tells that it is whole.
    number(23)?;
    Some(Stat {
        pid,
        comm,
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        // One that is ending has neither.
        group: fields.get(2)?.parse().ok(),
        session: fields.get(3)?.parse().ok(),
        minor_faults: number(10)?,
        children_minor_faults: number(11)?,
        major_faults: number(12)?,
        children_major_faults: number(13)?,
        user_ticks: number(14)?,
        system_ticks: number(15)?,
        children_user_ticks: number(16)?,
        children_system_ticks: number(17)?,
        threads: number(20)?.try_into().ok()?,
        started_ticks: number(22)?,
        // Whole when another field follows.
        cpu: number(40).and(number(39)).and_then(|cpu| cpu.try_into().ok()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "4012 (pg) R 1 (x\ny) S 1 4012 4012 0 -1 4194560 1500 90000 3 4 250 60 700 \
                        80 20 0 1 0 31337 221966336 3567 18446744073709551615 1 1 0 0 0 0 0";

    #[test]
    fn odd_names_do_not_shift_the_fields() {
        let stat = parse(LINE).unwrap();
        assert_eq!(stat.comm, "pg) R 1 (x\ny");
        assert_eq!((stat.state, stat.parent, stat.threads), ('S', 1, 1));
        assert_eq!((stat.group, stat.session), (Some(4012), Some(4012)));
        assert_eq!((stat.minor_faults, stat.children_minor_faults), (1500, 90000));
        assert_eq!((stat.major_faults, stat.children_major_faults), (3, 4));
        assert_eq!((stat.user_ticks, stat.children_system_ticks), (250, 80));
        assert_eq!(stat.started_ticks, 31337);
    }

    #[test]
    fn every_truncation_is_refused_or_whole() {
        for end in (0..LINE.len()).filter(|end| LINE.is_char_boundary(*end)) {
            if let Some(stat) = parse(&LINE[..end]) {
                assert_eq!((stat.minor_faults, stat.started_ticks), (1500, 31337));
            }
        }
    }
}
