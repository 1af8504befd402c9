//! A closed system: clients that ask again once they have got their answer, CPUs, and delays.

/// Clients, and what each of their requests takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Closed {
    /// How many clients take turns.
    pub clients: f64,
    /// What a request takes of a CPU, s.
    pub demand_s: f64,
    /// How many CPUs there are.
    pub cpus: f64,
    /// What a request and its client wait for anything else, the client's thinking included, s.
    pub delay_s: f64,
}

impl Closed {
    /// The time that a request takes at the CPUs, its waiting for one included: by exact mean value analysis,
    /// several CPUs as one of their joint speed behind a delay (Seidmann, Schweitzer and Shalev-Oren 1987). Between
    /// two whole numbers of clients it is between what these give.
    pub fn at_cpus_s(&self) -> f64 {
        if self.cpus <= 0.0 {
            return f64::INFINITY;
        }
        let speed = self.cpus.max(1.0);
        let station_s = self.demand_s / self.cpus;
        let apart_s = self.demand_s * (speed - 1.0) / speed;
        let [mut queue, mut last_s, mut here_s] = [0.0, station_s, station_s];
        let whole = self.clients.max(1.0).ceil().min(MOST_CLIENTS) as u32;
        for clients in 1..=whole {
            last_s = here_s;
            here_s = station_s * (1.0 + queue);
            let cycle_s = here_s + apart_s + self.delay_s;
            queue = if cycle_s > 0.0 { f64::from(clients) * here_s / cycle_s } else { 0.0 };
        }
        let part = (self.clients.clamp(1.0, MOST_CLIENTS) - f64::from(whole - 1)).clamp(0.0, 1.0);
        apart_s + last_s + (here_s - last_s) * part
    }

    /// The same where all clients queue for CPUs at once: it cannot take longer.
    pub fn at_cpus_at_most_s(&self) -> f64 {
        self.demand_s * (self.clients / self.cpus).max(1.0)
    }
}

/// Above so many clients their number changes nothing any more, but the time that this takes.
const MOST_CLIENTS: f64 = 100_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_wait_for_each_other_once_there_are_more_than_cpus() {
        let at_cpus =
            |clients, cpus, delay_s| Closed { clients, demand_s: 1.0, cpus, delay_s }.at_cpus_s();
        assert!((at_cpus(1.0, 1.0, 5.0) - 1.0).abs() < 1e-12, "alone");
        // Exact for one CPU: two clients, each at the delay half of the time.
        assert!((at_cpus(2.0, 1.0, 1.0) - 1.5).abs() < 1e-12);
        assert!((at_cpus(1.5, 1.0, 1.0) - 1.25).abs() < 1e-12, "between one and two");
        assert!((at_cpus(100.0, 1.0, 1.0) - 99.0).abs() < 0.1, "all but one queue");
        assert!((at_cpus(100.0, 2.0, 1.0) - 49.0).abs() < 0.6, "twice as fast");
        assert!((at_cpus(1.0, 0.25, 0.0) - 4.0).abs() < 1e-12, "a quarter of a CPU");
        assert!((at_cpus(1.0, 2.0, 0.0) - 1.0).abs() < 1e-12, "a request runs on one CPU");
    }

    #[test]
    fn no_request_waits_longer_than_for_all_others() {
        for clients in 1..40 {
            for cpus in [0.3, 1.0, 2.0, 3.5] {
                let clients = f64::from(clients);
                let closed = Closed { clients, demand_s: 1.0, cpus, delay_s: 2.0 };
                let most_s = closed.at_cpus_at_most_s().max(1.0 / cpus);
                assert!(closed.at_cpus_s() <= most_s + 1.0, "{closed:?}");
                assert!(closed.at_cpus_s() >= 1.0, "{closed:?}");
            }
        }
    }
}
