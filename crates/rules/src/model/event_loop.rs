//! What the one thread of an event loop takes for connections and reads: its system calls are sampled;
//! nothing tells apart what it executes of its own program, so that counts have to.

use untax_core::Interval;
use untax_core::activity::Call;
use untax_core::window::Pair;

/// What a read takes, over what a command takes: at least, likely and at most. Of Redis 7, a user
/// time of 3.3 to 4.4 us for each GET that is read alone, and of 1.6 to 2.3 of 16 that are read
/// together.
const READ: [f64; 3] = [0.0, 1.2, 2.4];

/// The same of the beginning and end of a connection. Of Redis 7, 1.4 by samples of its functions;
/// 2.7 to 4.5 by its user time with and without, over Unix sockets, which a colder cache is a part
/// of; 5 to 7 over TCP.
const CONNECTION: [f64; 3] = [0.0, 4.0, 7.0];

/// What an event loop did in a window.
pub struct Counts {
    connections: f64,
    /// But for those that learn that a connection has ended; `None` before Redis 6.0.
    reads: Option<f64>,
    commands: f64,
}

impl Counts {
    /// As its server counts; `None` where it does not.
    pub fn of(pair: &Pair) -> Option<Self> {
        let grown = |name: &str| pair.told_growth(name).into_value();
        let connections = grown("total_connections_received")?;
        let commands = grown(pair.end.traits.requests_counter.as_ref()?)?;
        let commands = Some(commands).filter(|count| *count > 0.0)?;
        // A few may be counted late.
        let reads = grown("total_reads_processed").map(|reads| (reads - connections).max(1.0));
        Some(Self { connections, reads, commands })
    }

    /// How many commands are read at once; `None` where reads are not counted.
    pub fn commands_of_read(&self) -> Option<f64> {
        self.reads.map(|reads| (self.commands / reads).max(1.0))
    }

    /// The part (0..1) of its own program's time that goes into connections.
    pub fn connecting_part(&self) -> Interval {
        self.part(CONNECTION.map(|each| self.connections * each), READ.map(|r| r * self.reads()))
    }

    /// The part (0..1) that goes into reading.
    pub fn reading_part(&self) -> Interval {
        let connecting = CONNECTION.map(|each| self.connections * each);
        self.part(READ.map(|each| self.reads() * each), connecting)
    }

    /// As many as there are commands where nobody counts them.
    fn reads(&self) -> f64 {
        self.reads.map_or(self.commands, |reads| reads.min(self.commands))
    }

    /// What `taken` is of all, `other` being the rest of it but for commands.
    fn part(&self, taken: [f64; 3], other: [f64; 3]) -> Interval {
        let of = |taken: f64| taken / (taken + other[1] + self.commands);
        let [low, mid, high] = taken.map(of);
        Interval::new(low, mid, high)
    }
}

/// The share of its time on a CPU that a loop spends in system calls for connections: those that
/// begin, set up and end them, that read that one has ended, and that learn of either.
pub fn connection_call_share(pair: &Pair) -> Option<Interval> {
    let activity = pair.activity.value()?;
    let grown = |name: &str| pair.told_growth(name).into_value();
    let connections = grown("total_connections_received");
    let parts = connections.zip(grown("total_reads_processed")).map(|(connections, reads)| {
        // Servers before 6.0 do not count what they read; a few reads may be counted late.
        let reads = reads.max(connections);
        // Who ends a connection begins another: the loop learns of both at once.
        [connections / reads, connections / (connections + reads)]
    });
    let [receive, wait] = parts.filter(|parts| parts[0].is_finite()).unwrap_or([0.0; 2]);
    let share = |call: Call, part: f64| Some(activity.share_calling(call)?.scale(part));
    let [calls, ends] = [share(Call::Connection, 1.0)?, share(Call::Receive, receive)?];
    Some(calls.plus(ends).plus(share(Call::Wait, wait)?).clamp(0.0, 1.0))
}

/// The share of its time on a CPU that a loop executes its own program to begin and end connections.
pub fn connection_own_share(pair: &Pair) -> Option<Interval> {
    let on_cpu = pair.growth("time on CPU", |d| d.counters.on_cpu_s.clone().map(|s| s.0));
    let system = pair.growth("time in the kernel", |d| d.counters.system_s.clone().map(|s| s.0));
    let (on_cpu_s, system_s) = (on_cpu.into_value()?, system.into_value()?);
    let own = (1.0 - system_s / on_cpu_s).clamp(0.0, 1.0);
    let connecting = Counts::of(pair)?.connecting_part();
    (on_cpu_s > 0.0).then(|| connecting.scale(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_go_by_counts() {
        let counts = Counts { connections: 1.0, reads: Some(1.0), commands: 16.0 };
        assert!((counts.commands_of_read().unwrap() - 16.0).abs() < 1e-9);
        let (connecting, reading) = (counts.connecting_part(), counts.reading_part());
        assert!((connecting.mid - 4.0 / 21.2).abs() < 1e-9 && connecting.low.abs() < 1e-9);
        assert!((connecting.high - 7.0 / 24.2).abs() < 1e-9);
        assert!((reading.mid - 1.2 / 21.2).abs() < 1e-9);
    }

    #[test]
    fn who_does_not_count_reads_is_taken_to_read_each_command_alone() {
        let counts = Counts { connections: 0.0, reads: None, commands: 10.0 };
        assert!((counts.reading_part().mid - 1.2 / 2.2).abs() < 1e-9);
        assert!(counts.commands_of_read().is_none());
    }
}
