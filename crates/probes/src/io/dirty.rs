//! Pages that wait to be written, and the journals of filesystems.

use super::devices;
use std::collections::BTreeMap;
use untax_core::io::{Dirty, Journal};
use untax_core::{Bytes, Reading, Seconds};
use untax_host::Host;

/// Reads what waits to be written now, and the thresholds.
pub(super) fn read(host: &Host) -> Reading<Dirty> {
    let meminfo = host.text("/proc/meminfo");
    let vmstat = host.text("/proc/vmstat");
    let page = host.observe("page_size", || Reading::Present(rustix::param::page_size() as u64));
    let read = || {
        let (meminfo, vmstat, page) =
            (meminfo.into_result()?, vmstat.into_result()?, page.into_result()?);
        let kib = |name: &str| field(&meminfo, name).map(Bytes::from_kib);
        let pages = |name: &str| field(&vmstat, name).map(|n| Bytes(n.saturating_mul(page)));
        let dirty = || {
            Some(Dirty {
                dirty_bytes: kib("Dirty:")?,
                writeback_bytes: kib("Writeback:")?,
                threshold_bytes: pages("nr_dirty_threshold")?,
                background_bytes: pages("nr_dirty_background_threshold")?,
            })
        };
        let form = || untax_core::reading::Gap::Failed("/proc/meminfo or vmstat".to_owned());
        dirty().ok_or_else(form)
    };
    read().into()
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split_ascii_whitespace().next() == Some(name))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Of two looks the one with more waiting; one that failed does not undo the other.
pub(super) fn larger(a: Reading<Dirty>, b: Reading<Dirty>) -> Reading<Dirty> {
    let waiting = |dirty: &Dirty| (dirty.dirty_bytes + dirty.writeback_bytes).0;
    match (&a, &b) {
        (Reading::Present(first), Reading::Present(second)) => {
            if waiting(first) >= waiting(second) { a } else { b }
        }
        (Reading::Present(_), _) => a,
        _ => b,
    }
}

/// How many transactions a journal had written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JournalCount {
    folder: String,
    transactions: u64,
}

const JOURNALS: &str = "/proc/fs/jbd2";

/// The journals of ext4 and its kin; none where the kernel shows none.
pub(super) fn journals(host: &Host) -> Vec<JournalCount> {
    let names = host.names(JOURNALS).into_value().unwrap_or_default();
    let count = |folder: &String| {
        let transactions = transactions(&info(host, folder)?)?;
        Some(JournalCount { folder: folder.clone(), transactions })
    };
    names.iter().filter_map(count).collect()
}

fn info(host: &Host, folder: &str) -> Option<String> {
    host.text(&format!("{JOURNALS}/{folder}/info")).into_value()
}

/// `4123 transactions (4120 requested), each up to 8192 blocks`.
fn transactions(info: &str) -> Option<u64> {
    let line = info.lines().find(|line| line.contains(" transactions ("))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// `  1234us average transaction commit time`.
fn commit_time(info: &str) -> Option<Seconds> {
    let line = info.lines().find(|line| line.contains("average transaction commit time"))?;
    let us = line.split_ascii_whitespace().next()?.strip_suffix("us")?;
    Some(Seconds(us.parse::<u64>().ok()? as f64 / 1e6))
}

/// What each journal wrote since.
pub(super) fn journal_growth(host: &Host, before: &[JournalCount]) -> Vec<Journal> {
    let before: BTreeMap<&str, u64> =
        before.iter().map(|count| (count.folder.as_str(), count.transactions)).collect();
    let now = host.names(JOURNALS).into_value().unwrap_or_default();
    let growth = |folder: &String| {
        let info = info(host, folder)?;
        // `vda1-8`: the device and the journal's inode.
        let device = folder.rsplit_once('-').map_or(folder.as_str(), |(device, _)| device);
        let number = host.text(&format!("/sys/class/block/{device}/dev")).into_value();
        let whole = number.and_then(|number| devices::whole(host, number.trim()));
        Some(Journal {
            device: whole.unwrap_or_else(|| device.to_owned()),
            transactions: transactions(&info)?.checked_sub(*before.get(folder.as_str())?)?,
            commit_s: match commit_time(&info) {
                Some(time) => Reading::Present(time),
                None => Reading::Absent(format!("{JOURNALS}/{folder}/info has no commit time")),
            },
        })
    };
    now.iter().filter_map(growth).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_host::Record;

    const INFO: &str = "4123 transactions (4120 requested), each up to 8192 blocks\naverage: \n  \
                        0ms waiting for transaction\n  1234us average transaction commit time\n";

    #[test]
    fn thresholds_are_pages_and_amounts_are_kib() {
        let record = Record::default()
            .with_file("/proc/meminfo", "Dirty:  2048 kB\nWriteback:  4 kB\nWritebackTmp: 9 kB\n")
            .with_file("/proc/vmstat", "nr_dirty_threshold 100\nnr_dirty_background_threshold 50\n")
            .with_answer("page_size", &Reading::Present(4096_u64));
        let dirty = read(&Host::from_record(record)).into_value().unwrap();
        assert_eq!((dirty.dirty_bytes, dirty.writeback_bytes), (Bytes(2 << 20), Bytes(4096)));
        assert_eq!(dirty.threshold_bytes, Bytes(409_600));
        assert!(read(&Host::from_record(Record::default())).value().is_none());
    }

    #[test]
    fn journals_grow() {
        let journal = |n: &str| {
            let text = INFO.replace("4123", n);
            Host::from_record(Record::default().with_file("/proc/fs/jbd2/loop0-8/info", &text))
        };
        let before = journals(&journal("4123"));
        let grown = journal_growth(&journal("4130"), &before);
        assert_eq!((grown[0].device.as_str(), grown[0].transactions), ("loop0", 7));
        assert_eq!(grown[0].commit_s, Reading::Present(Seconds(0.001_234)));
    }
}
