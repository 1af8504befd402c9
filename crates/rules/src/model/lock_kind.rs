//! Which locks threads wait for, as the server says.

use untax_core::window::Pair;

/// What is locked, mostly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Rows, by transactions.
    Rows,
    /// The log: commits wait for their turn to write it.
    Log,
    /// Memory that threads share: pages, lists.
    Latches,
    /// The server does not say.
    Unknown,
}

impl LockKind {
    /// The kind of most of `waited_s` seconds of waiting.
    pub fn of(pair: &Pair, waited_s: f64) -> Self {
        Self::met(pair).or_else(|| Self::counted(pair, waited_s)).unwrap_or(Self::Unknown)
    }

    /// What most processes waited for when they were asked, at both ends of the window.
    fn met(pair: &Pair) -> Option<Self> {
        let seen = |name: &str| -> f64 {
            let ends = [pair.start, Some(pair.end)].into_iter().flatten();
            ends.filter_map(|database| database.counters.told(name).into_value()).sum()
        };
        let kinds = [
            (Self::Rows, seen("waiting_for_locks")),
            (Self::Log, seen("waiting_for_log")),
            (Self::Latches, seen("waiting_for_latches")),
        ];
        let most = kinds.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        most.filter(|(_, count)| *count > 0.0).map(|(kind, _)| kind)
    }

    /// Rows where the server waited for these for half of the time at least; otherwise the log, where it was
    /// flushed, or latches.
    fn counted(pair: &Pair, waited_s: f64) -> Option<Self> {
        let grown = |name: &str| pair.told_growth(name).into_value();
        let rows_s = grown("Innodb_row_lock_time")? / 1000.0;
        let flushes = grown("Innodb_os_log_fsyncs").unwrap_or(0.0);
        let other = if flushes > 0.0 { Self::Log } else { Self::Latches };
        Some(if rows_s >= waited_s / 2.0 { Self::Rows } else { other })
    }

    /// What is the case, for a share of time in words.
    pub fn summary(self, share: &str) -> String {
        match self {
            Self::Rows => format!("{share} of its time waiting for rows that transactions hold"),
            Self::Log => format!("{share} of its time in commits that queue for the log"),
            Self::Latches => format!("{share} of its time waiting for latches of shared memory"),
            Self::Unknown => format!("{share} of its time waiting for locks of its own"),
        }
    }

    /// What to change.
    pub fn fix(self) -> &'static str {
        match self {
            Self::Rows => "shorten the transactions that hold the hot rows",
            Self::Log => {
                "commit less often: put more into a transaction, or let commits share a flush"
            }
            Self::Latches => "let fewer connections work at once (a pooler); spread the hot pages",
            Self::Unknown => {
                "shorten what holds the hot rows or pages; let fewer connections work at once"
            }
        }
    }
}
