//! A neighbour that floods a disk: its group, the disk, and how much is written there.

use crate::evidence;
use untax_core::io::{Device, Direction, Flow, Role, Writer};
use untax_core::{Evidence, Io};

/// The group that writes the most and is no database's, and the disk that others write the most to; none
/// where either is not known, where it is the root group, which nothing limits, or has a limit already.
pub fn evidence(io: &Io) -> Vec<Evidence> {
    let Some((writer, device)) = largest_writer(io).zip(flooded_device(io)) else {
        return Vec::new();
    };
    let rate = written(io, |flow| flow.device == device.name) / io.window_s.0;
    let source = "block requests, traced";
    vec![
        Evidence::new(
            &evidence::FLOOD_GROUP,
            writer.cgroup.clone(),
            format!("/proc/{}/io and cgroup of {}", writer.pid, writer.comm),
        ),
        Evidence::new(&evidence::FLOOD_DEVICE, device.number.clone(), source).of(&device.name),
        Evidence::new(&evidence::FLOOD_RATE, rate, source).of(&device.name),
    ]
}

fn largest_writer(io: &Io) -> Option<&Writer> {
    let mut writers = io.writers.value()?.iter().filter(|writer| writer.database.is_none());
    let is_limited =
        |writer: &Writer| writer.limits.iter().any(|limit| limit.starts_with("io.max"));
    writers.next().filter(|writer| writer.cgroup != "/" && !is_limited(writer))
}

/// A device made of others is limited like any: requests are held back before they are passed on.
fn flooded_device(io: &Io) -> Option<&Device> {
    let theirs = |device: &Device| {
        written(io, |flow| {
            flow.device == device.name && flow.database.is_none() && flow.role == Role::Other
        })
    };
    let most = io.devices.iter().max_by(|a, b| theirs(a).total_cmp(&theirs(b)))?;
    (theirs(most) > 0.0).then_some(most)
}

fn written(io: &Io, fits: impl Fn(&Flow) -> bool) -> f64 {
    let flows = io.flows.value().into_iter().flatten();
    let writes = flows.filter(|flow| flow.direction == Direction::Write && fits(flow));
    writes.map(|flow| flow.bytes.0 as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_io::{flow, io};
    use untax_core::Reading;

    fn flooded(change: impl FnOnce(&mut Io)) -> Vec<Evidence> {
        let flows = vec![
            flow(Some("postgres:7"), Role::Log, Direction::Write, 100, 0.005),
            flow(None, Role::Other, Direction::Write, 300, 0.005),
        ];
        let mut io = io(flows).into_value().unwrap();
        if let Reading::Present(writers) = &mut io.writers {
            writers[0].limits.clear();
        }
        change(&mut io);
        evidence(&io)
    }

    #[test]
    fn the_group_the_disk_and_its_rate_are_told() {
        let told: Vec<String> = flooded(|_| {}).iter().map(|e| format!("{:?}", e.value)).collect();
        let rate = format!("Number({:?})", 400.0 * 8192.0 / 10.0);
        assert_eq!(told, ["Text(\"/batch\")".to_owned(), "Text(\"254:0\")".to_owned(), rate]);
    }

    #[test]
    fn where_nothing_can_be_limited_nothing_is_told() {
        let with = |change: fn(&mut Writer)| {
            flooded(|io| {
                let Reading::Present(writers) = &mut io.writers else { panic!() };
                change(&mut writers[0]);
            })
        };
        assert!(with(|writer| writer.cgroup = "/".to_owned()).is_empty());
        assert!(with(|writer| writer.database = Some("mysql:8".to_owned())).is_empty());
        assert!(with(|writer| writer.limits = vec!["io.max 254:0 wbps=1".to_owned()]).is_empty());
        assert!(flooded(|io| io.flows = Reading::Denied("root".to_owned())).is_empty());
    }
}
