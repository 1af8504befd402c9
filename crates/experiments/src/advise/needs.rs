//! What a database needs of the platform: which share of its time is system calls, network and disks.

use untax_core::Reading;
use untax_core::advice::Needs;
use untax_core::check::Checked;
use untax_core::window::Pair;

/// Requests below which counts for each of them mean nothing.
const FEW_REQUESTS: f64 = 100.0;

/// The needs of a database in a window.
pub(super) fn of(pair: &Pair, checked: Option<&Checked>) -> Needs {
    let disk = |checked: &Checked| {
        let time = &checked.time;
        over(time.disk_s.as_ref().map(|s| s.0), time.active_s.as_ref().map(|s| s.0), "active time")
    };
    let unchecked = || Reading::absent("the check does not have this database");
    Needs {
        kernel_share: kernel_share(pair),
        network_share: checked.map_or_else(unchecked, |checked| network_share(pair, checked)),
        disk_share: checked.map_or_else(unchecked, disk),
        connections_per_request: connections_per_request(pair),
    }
}

fn over(part: Reading<f64>, whole: Reading<f64>, of: &str) -> Reading<f64> {
    part.and_then(|part| {
        whole.and_then(|whole| {
            if whole > 0.0 {
                Reading::Present((part / whole).clamp(0.0, 1.0))
            } else {
                Reading::Absent(format!("it had no {of} in the window"))
            }
        })
    })
}

/// Its time on CPU, seconds.
fn on_cpu_s(pair: &Pair) -> Reading<f64> {
    pair.growth("time on CPU", |database| {
        database.counters.on_cpu_s.clone().map(|seconds| seconds.0)
    })
}

/// Its time on CPU for each request, microseconds.
pub(super) fn cpu_us_per_request(pair: &Pair) -> Reading<f64> {
    on_cpu_s(pair).and_then(|cpu_s| {
        requests(pair).and_then(|requests| {
            if cpu_s > 0.0 {
                Reading::Present(cpu_s / requests * 1e6)
            } else {
                Reading::absent("it had no time on CPU in the window")
            }
        })
    })
}

fn kernel_share(pair: &Pair) -> Reading<f64> {
    let system_s = pair.growth("time in the kernel", |database| {
        database.counters.system_s.clone().map(|seconds| seconds.0)
    });
    over(system_s, on_cpu_s(pair), "time on CPU")
}

/// The requests of a window.
fn requests(pair: &Pair) -> Reading<f64> {
    let Some(counter) = &pair.end.traits.requests_counter else {
        return Reading::Absent(format!("{} does not count its requests", pair.end.product));
    };
    pair.told_growth(counter).and_then(|requests| {
        if requests < FEW_REQUESTS {
            return Reading::Absent(format!("it answered {requests:.0} requests in the window"));
        }
        Reading::Present(requests)
    })
}

fn connections_per_request(pair: &Pair) -> Reading<f64> {
    let Some(counter) = &pair.end.traits.connections_counter else {
        return Reading::Absent(format!("{} does not count its connections", pair.end.product));
    };
    pair.told_growth(counter).and_then(|made| requests(pair).map(|requests| made / requests))
}

/// How long a connection takes for a request and the pause after it, microseconds.
fn period_us(pair: &Pair, checked: &Checked) -> Reading<f64> {
    checked.network.client_connections.clone().and_then(|connections| {
        requests(pair).map(|requests| f64::from(connections) * pair.seconds / requests * 1e6)
    })
}

fn network_share(pair: &Pair, checked: &Checked) -> Reading<f64> {
    let on_the_way_us = checked.network.network_per_request_us.clone().map(|us| us.mid);
    over(on_the_way_us, period_us(pair, checked), "request")
}
