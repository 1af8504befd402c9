//! Disks for the tests of rules.

use untax_core::io::{
    Counted, Device, Direction, Dirty, Filesystem, Flow, Mount, Place, Role, Spread, Writer,
};
use untax_core::{Bytes, Io, Reading, Seconds};

/// Requests of 8 KiB on `vda` that took `mean_s` each.
pub fn flow(
    database: Option<&str>,
    role: Role,
    direction: Direction,
    requests: u64,
    mean_s: f64,
) -> Flow {
    let time = Seconds(mean_s);
    Flow {
        device: "vda".to_owned(),
        database: database.map(str::to_owned),
        role,
        direction,
        requests,
        bytes: Bytes(requests * 8192),
        sequential: 0.0,
        latency: Spread { mean_s: time, p50_s: time, p90_s: time, p99_s: time, max_s: time },
        queued_s: Seconds(0.0),
        latencies: Vec::new(),
        sizes: Vec::new(),
        burst: 1.0,
        seconds: None,
    }
}

/// Ten seconds of `vda`, busy for 80 %, with the data and the log of `postgres:7`.
pub fn io(flows: Vec<Flow>) -> Reading<Io> {
    let place = |role, directory: &str| Place {
        database: "postgres:7".to_owned(),
        role,
        directory: directory.to_owned(),
        filesystem: Reading::Present(Filesystem {
            number: "254:0".to_owned(),
            kind: "ext4".to_owned(),
            point: "/".to_owned(),
            device: Some("vda".to_owned()),
            network: None,
        }),
    };
    Reading::Present(Io {
        flows: Reading::Present(flows),
        devices: vec![Device {
            mounts: vec![Mount { point: "/".to_owned(), filesystem: "ext4".to_owned() }],
            counted: Reading::Present(Counted {
                reads: 1,
                writes: 1,
                read_bytes: Bytes(4096),
                written_bytes: Bytes(4096),
                reading_s: Seconds(1.0),
                writing_s: Seconds(1.0),
                busy: 0.8,
            }),
            ..Device::unknown("vda", "254:0", "not read")
        }],
        places: vec![place(Role::Data, "/data"), place(Role::Log, "/data/pg_wal")],
        dirty: Reading::Present(Dirty {
            dirty_bytes: Bytes(10 << 20),
            writeback_bytes: Bytes(0),
            threshold_bytes: Bytes(100 << 20),
            background_bytes: Bytes(50 << 20),
        }),
        writers: Reading::Present(vec![Writer {
            pid: 99,
            comm: "dd".to_owned(),
            cgroup: "/batch".to_owned(),
            database: None,
            written_bytes: Bytes(500 << 20),
            limits: vec!["io.max 254:0 wbps=1048576".to_owned()],
        }]),
        ..Io::unseen(Seconds(10.0), "not read")
    })
}
