//! Pools of pre-allocated huge pages, on the whole host and on each NUMA node.

use super::{Fact, formats};
use crate::Host;
use untax_core::Bytes;
use untax_core::Reading::{self, Absent, Present};
use untax_core::host::{HostFacts, Pool};

pub(super) const FACT: Fact = Fact {
    id: "hugepages",
    summary: "pages in the pool of each size: total, free, reserved, surplus",
    source: "/sys/kernel/mm/hugepages, /sys/devices/system/node/node*/hugepages",
    privilege: "none",
    minimum_kernel: "2.6.32",
    cost: "four small files per size, three more per size and node",
    read,
};

/// The pools of the whole host.
const HOST: &str = "/sys/kernel/mm/hugepages";

fn read(host: &Host, facts: &mut HostFacts) {
    facts.hugepages = match host.names(HOST) {
        Absent(_) => Absent(format!("this kernel has no pools of huge pages: no {HOST}")),
        names => names.map(|names| {
            let mut pools = pools(host, HOST, &names, None);
            for (node, directory) in super::numa::nodes(host).into_value().unwrap_or_default() {
                let directory = format!("{directory}/hugepages");
                let names = host.names(&directory).into_value().unwrap_or_default();
                pools.extend(self::pools(host, &directory, &names, Some(node)));
            }
            pools
        }),
    };
}

fn pools(host: &Host, directory: &str, names: &[String], node: Option<u32>) -> Vec<Pool> {
    let pool = |size_bytes: Bytes| {
        let count = |file: &str| -> Reading<u64> {
            let kib = size_bytes.0 >> 10;
            formats::number(host, &format!("{directory}/hugepages-{kib}kB/{file}"))
        };
        Pool {
            size_bytes,
            node,
            // Surplus pages are counted in `nr_hugepages`.
            total: count("nr_hugepages"),
            free: count("free_hugepages"),
            reserved: match node {
                None => count("resv_hugepages"),
                Some(_) => Absent("the kernel counts reservations for the host only".to_owned()),
            },
            surplus: count("surplus_hugepages"),
        }
    };
    formats::page_sizes(names).into_iter().map(pool).collect()
}

/// The sizes that have a pool, ascending.
pub(super) fn sizes(host: &Host) -> Reading<Vec<Bytes>> {
    host.names(HOST).and_then(|names| Present(formats::page_sizes(&names)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    fn pool(record: Record, directory: &str, counts: [&str; 4]) -> Record {
        let files = ["nr_hugepages", "free_hugepages", "resv_hugepages", "surplus_hugepages"];
        files
            .iter()
            .zip(counts)
            .filter(|(_, count)| !count.is_empty())
            .fold(record, |record, (file, count)| {
                record.with_file(&format!("{directory}/{file}"), count)
            })
    }

    fn read_from(record: Record) -> Reading<Vec<Pool>> {
        super::super::read_all(&Host::from_record(record)).hugepages
    }

    #[test]
    fn the_host_comes_first_then_each_node() {
        let node = "/sys/devices/system/node/node1";
        let mut record = Record::default().with_file(&format!("{node}/cpulist"), "0-1\n");
        record = pool(record, &format!("{HOST}/hugepages-1048576kB"), ["4\n", "3\n", "2\n", "1\n"]);
        record = pool(record, &format!("{HOST}/hugepages-2048kB"), ["9\n", "8\n", "7\n", "6\n"]);
        record = pool(record, &format!("{node}/hugepages/hugepages-2048kB"), ["5", "5", "", "3"]);
        let pools = read_from(record).into_value().unwrap();

        let rows: Vec<_> = pools.iter().map(|pool| (pool.size_bytes, pool.node)).collect();
        let expected = [(Bytes::MIB_2, None), (Bytes::GIB_1, None), (Bytes::MIB_2, Some(1))];
        assert_eq!(rows, expected);
        let whole = &pools[0];
        assert_eq!((&whole.total, &whole.free), (&Present(9), &Present(8)));
        assert_eq!((&whole.reserved, &whole.surplus), (&Present(7), &Present(6)));
        assert!(matches!(&pools[2].reserved, Absent(why) if why.contains("for the host only")));
    }

    #[test]
    fn what_cannot_be_read_is_not_zero() {
        let directory = format!("{HOST}/hugepages-2048kB");
        let pools = read_from(pool(Record::default(), &directory, ["x\n", "-1\n", "\n", ""]));
        let pools = pools.into_value().unwrap();
        for count in [&pools[0].total, &pools[0].free, &pools[0].reserved, &pools[0].surplus] {
            assert!(!count.is_present(), "{count:?}");
        }
    }

    #[test]
    fn a_kernel_without_pools_says_so() {
        let pools = read_from(Record::default());
        assert!(matches!(pools, Absent(why) if why.contains("no pools")));
    }
}
