//! `storage-remote`: the database's files are behind a network.

use crate::evidence;
use crate::model::disk_charges;
use crate::model::disk_charges::Charged;
use crate::model::disk_requests;
use crate::model::stall::{self, Words, percent};
use crate::model::without_tax;
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::finding::Says;
use untax_core::io::{Place, Role};
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Finding, Io, Severity, Window};

pub const RULE: Rule = Rule {
    id: "storage-remote",
    summary: "the database's data or log is on storage behind a network",
    what: "Each commit, and each page that is not cached, crosses a network to another machine. \
           The network adds a fraction of a millisecond to several milliseconds to every wait. All \
           users of the network share its limits and its slow moments.",
    method: "The rule reads the filesystem and the device below each directory. It has no tax of \
             its own.",
    measured: "The rule reads the filesystem and the device below each directory of the database. \
               The rule recognises NFS, Ceph, Gluster and other network filesystems; nbd, rbd, \
               DRBD, iSCSI, Fibre Channel and NVMe over a fabric; and disk models of cloud network \
               storage (AWS, Azure, Google). A hypervisor may hide such storage; the rule then \
               does not see it. The tax is the part of the waiting above what a local flash disk \
               takes, as in disk-slow. Filesystems without a block device make no block requests, \
               and their tax is unmeasured.",
    fix: "Use local storage where the database replicates by itself. Otherwise use a faster class \
          of network storage for the log alone, and enough memory for the data.",
    sources: &[
        "kernel.org: admin-guide/nfs, nvme transports in sysfs",
        "aws.amazon.com: NVMe EBS volumes, model number in sysfs",
        "Azure/azure-vm-utils: models of Azure's NVMe controllers",
    ],
    privilege: "root for other users' processes",
    minimum_kernel: "2.6.26 (mountinfo)",
    cost: "mountinfo of one process for each database",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let found = stall::per_database(window, RULE.id, |pair| {
        window.io.as_ref().map(|io| {
            let far = remote_places(io, &pair.end.id);
            (!far.is_empty()).then(|| finding(window, pair, &far))
        })
    });
    without_tax::with_reasons(window, found, |pair| why_unpriced(window, pair))
}

/// The places of a database behind a network, but for its temporary files.
fn remote_places<'a>(io: &'a Io, database: &'a str) -> Vec<&'a Place> {
    let places = io.places_of(database).filter(|place| place.role != Role::Temp);
    places.filter(|place| network(place).is_some()).collect()
}

/// Why nothing is charged for them.
fn why_unpriced(window: &Window, pair: &Pair) -> String {
    let far = window.io.value().map(|io| remote_places(io, &pair.end.id));
    let why = far.filter(|far| is_blockless(far)).map(|_| BLOCKLESS.to_owned());
    why.or_else(|| disk_charges::why_unknown(window, pair)).unwrap_or_else(|| INACTIVE.to_owned())
}

const BLOCKLESS: &str = "its filesystem has no block device whose requests could be traced";

const INACTIVE: &str = "it was never active in the window";

fn is_blockless(places: &[&Place]) -> bool {
    let has_none = |place: &&Place| place.filesystem.value().is_some_and(|f| f.device.is_none());
    places.iter().all(has_none)
}

fn network(place: &Place) -> Option<&str> {
    place.filesystem.value()?.network.as_deref()
}

fn finding(window: &Window, pair: &Pair, far: &[&Place]) -> Says {
    let named: Vec<String> = far
        .iter()
        .filter_map(|place| Some(format!("{} on {}", place.role.name(), network(place)?)))
        .collect();
    let mut evidence: Vec<Evidence> = far
        .iter()
        .filter_map(|place| {
            let source = format!("mountinfo and sysfs: {}", place.directory);
            Some(Evidence::new(&evidence::STORAGE, network(place)?, source).of(place.role.name()))
        })
        .collect();
    evidence.extend(
        window.io.value().map(|io| disk_requests::evidence(io, &pair.end.id)).unwrap_or_default(),
    );
    let fix = "use local storage for the log, or a faster class of network storage".to_owned();
    let stall = disk_requests::disk_stall(window, pair).into_value().flatten();
    let charged = Charged::of(window, pair).into_value().filter(|_| !is_blockless(far));
    let (Some(mut stall), Some(charged)) = (stall, charged) else {
        return Says::Found(Finding {
            evidence,
            ..Finding::new(
                RULE.id,
                Severity::Info,
                format!("{}; what it costs is not measured", named.join(", ")),
                fix,
            )
        });
    };
    stall.share = stall.share.times(charged.remote);
    let summary = format!("{}: {} of its time", named.join(", "), percent(stall.share.mid));
    let method = "time waiting for block devices, traced, x part above 0.5 ms for each of its \
                  requests, over active time"
        .to_owned();
    stall::finding(RULE.id, &stall, Words { summary, fix, evidence, method, remedy: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_io::{flow, io};
    use crate::test_window::{self, found as findings, gaps};
    use untax_core::Reading;
    use untax_core::activity::Doing;
    use untax_core::io::Direction;

    #[test]
    fn network_storage_is_charged_for_what_a_local_disk_would_not_take() {
        let mut window = test_window::postgres();
        test_window::trace(&mut window, &[(Doing::OnCpu, 5.0), (Doing::Disk, 5.0)]);
        window.io = io(vec![flow(Some("postgres:7"), Role::Log, Direction::Write, 900, 0.001)]);
        assert!(findings(evaluate(&window)).is_empty());
        if let Reading::Present(io) = &mut window.io
            && let Reading::Present(filesystem) = &mut io.places[1].filesystem
        {
            filesystem.network = Some("iSCSI".to_owned());
        }
        let found = findings(evaluate(&window));
        assert!((found[0].tax.as_ref().unwrap().share - (0.5 - 0.45 / 10.0)).abs() < 1e-9);
        assert!(found[0].summary.contains("log on iSCSI"));
        window.activity = Reading::Denied("root".to_owned());
        let found = findings(evaluate(&window));
        assert!(found[0].tax.is_none() && found[0].severity == Severity::Info);
        assert_eq!(gaps(evaluate(&window)), ["tax: permission denied: root"]);
        if let Reading::Present(io) = &mut window.io
            && let Reading::Present(filesystem) = &mut io.places[1].filesystem
        {
            filesystem.device = None;
        }
        assert!(gaps(evaluate(&window))[0].contains("no block device"));
    }
}
