//! Transparent huge pages.

use super::{Fact, formats};
use crate::Host;
use untax_core::Reading::{self, Absent};
use untax_core::host::{HostFacts, Thp, ThpSize};

pub(super) const FACT: Fact = Fact {
    id: "thp",
    summary: "transparent huge pages: global and per-size settings, defrag, khugepaged",
    source: "/sys/kernel/mm/transparent_hugepage",
    privilege: "none",
    minimum_kernel: "2.6.38; sizes of their own since 6.8",
    cost: "seven small files and one per size",
    read,
};

const DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";

fn read(host: &Host, facts: &mut HostFacts) {
    let enabled = match word(host, &format!("{DIRECTORY}/enabled")) {
        Absent(_) => Absent(format!("this kernel has no transparent huge pages: no {DIRECTORY}")),
        other => other,
    };
    facts.thp = enabled.map(|enabled| Thp {
        enabled,
        defrag: word(host, &format!("{DIRECTORY}/defrag")),
        shmem_enabled: word(host, &format!("{DIRECTORY}/shmem_enabled")),
        pmd_bytes: formats::number(host, &format!("{DIRECTORY}/hpage_pmd_size"))
            .map(untax_core::Bytes),
        sizes: sizes(host),
        khugepaged_defrag: flag(host, &format!("{DIRECTORY}/khugepaged/defrag")),
        khugepaged_pages_to_scan: khugepaged(host, "pages_to_scan"),
        khugepaged_max_ptes_none: khugepaged(host, "max_ptes_none"),
    });
}

fn word(host: &Host, path: &str) -> Reading<String> {
    host.text(path).parse(path, |text| formats::bracketed_word(text))
}

fn khugepaged(host: &Host, file: &str) -> Reading<u64> {
    formats::number(host, &format!("{DIRECTORY}/khugepaged/{file}"))
}

fn flag(host: &Host, path: &str) -> Reading<bool> {
    host.text(path).parse(path, |text| match text.trim() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    })
}

/// The sizes with a setting of their own. Some exist for shared memory only (8 KiB) and have none
/// here. One that cannot be read makes the list unknown: left out, it would be taken for such.
fn sizes(host: &Host) -> Reading<Vec<ThpSize>> {
    host.names(DIRECTORY).and_then(|names| {
        let sizes = formats::page_sizes(&names);
        if sizes.is_empty() {
            return Absent("kernels before 6.8 have no settings for each size".to_owned());
        }
        let settings = sizes.into_iter().filter_map(|size_bytes| {
            let unread = ThpSize { size_bytes, enabled: String::new() };
            match word(host, &unread.file()) {
                Absent(_) => None,
                setting => Some(setting.map(|enabled| ThpSize { enabled, ..unread }).into_result()),
            }
        });
        settings.collect::<Result<Vec<_>, _>>().into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use untax_core::Bytes;
    use untax_core::Reading::Present;

    fn read_from(files: &[(&str, &str)]) -> Reading<Thp> {
        let record = files.iter().fold(Record::default(), |record, (file, text)| {
            record.with_file(&format!("{DIRECTORY}/{file}"), text)
        });
        super::super::read_all(&Host::from_record(record)).thp
    }

    #[test]
    fn every_setting_is_the_word_in_brackets() {
        let thp = read_from(&[
            ("enabled", "always [madvise] never\n"),
            ("defrag", "always defer [defer+madvise] madvise never\n"),
            ("shmem_enabled", "always within_size advise [never] deny force\n"),
            ("hpage_pmd_size", "2097152\n"),
            ("hugepages-8kB/shmem_enabled", "always inherit within_size advise [never]\n"),
            ("hugepages-64kB/enabled", "always inherit [madvise] never\n"),
            ("hugepages-2048kB/enabled", "always [inherit] madvise never\n"),
            ("khugepaged/defrag", "1\n"),
            ("khugepaged/pages_to_scan", "4096\n"),
            ("khugepaged/max_ptes_none", "511\n"),
        ]);
        let thp = thp.into_value().unwrap();
        assert_eq!(thp.enabled, "madvise");
        assert_eq!(thp.defrag, Present("defer+madvise".to_owned()));
        assert_eq!(thp.shmem_enabled, Present("never".to_owned()));
        assert_eq!(thp.pmd_bytes, Present(Bytes::MIB_2));
        let sizes = thp.sizes.into_value().unwrap();
        let sizes: Vec<_> = sizes.iter().map(|s| (s.size_bytes.0, s.enabled.as_str())).collect();
        assert_eq!(sizes, [(64 << 10, "madvise"), (2 << 20, "inherit")]);
        assert_eq!(thp.khugepaged_defrag, Present(true));
        assert_eq!(thp.khugepaged_pages_to_scan, Present(4096));
        assert_eq!(thp.khugepaged_max_ptes_none, Present(511));
    }

    #[test]
    fn an_old_kernel_has_fewer_settings() {
        let thp = read_from(&[("enabled", "[always] never"), ("khugepaged/defrag", "yes\n")]);
        let thp = thp.into_value().unwrap();
        assert!(matches!(thp.sizes, Absent(why) if why.contains("before 6.8")));
        assert!(matches!(thp.defrag, Absent(_)));
        assert!(matches!(thp.khugepaged_defrag, Reading::Failed(_)), "false would be a guess");
    }

    #[test]
    fn a_size_that_cannot_be_read_is_not_left_out() {
        let thp = read_from(&[("enabled", "[always]"), ("hugepages-64kB/enabled", "always")]);
        assert!(matches!(thp.into_value().unwrap().sizes, Reading::Failed(_)));
    }

    #[test]
    fn a_kernel_without_them_says_so() {
        assert!(matches!(read_from(&[]), Absent(why) if why.contains("no transparent")));
        assert!(matches!(read_from(&[("enabled", "garbage")]), Reading::Failed(_)));
    }
}
