//! Whatever the files of a host hold, nothing panics and nothing unknown is zero or false.

mod support;

use proptest::prelude::*;
use serde_json::Value;
use support::{FILES, machine};
use untax_core::Reading;
use untax_host::{Host, Record, fuzz, process};

/// The places of zeros and of `false` in what was read.
fn zeros(value: &Value, place: &str) -> Vec<String> {
    match value {
        Value::Number(number) if number.as_f64() == Some(0.0) => vec![place.to_owned()],
        Value::Bool(false) => vec![place.to_owned()],
        Value::Array(items) => {
            let each = items.iter().enumerate();
            each.flat_map(|(n, item)| zeros(item, &format!("{place}/{n}"))).collect()
        }
        Value::Object(fields) => {
            fields.iter().flat_map(|(key, item)| zeros(item, &format!("{place}/{key}"))).collect()
        }
        _ => Vec::new(),
    }
}

fn zeros_of(record: Record) -> Vec<String> {
    let mut found = zeros(&fuzz::read_everything(&Host::from_record(record), 7), "");
    // A mount option is off unless it is there: that one is no unknown.
    found.retain(|place| place != "/facts/cgroup/memory_hugetlb_accounting");
    found
}

/// The machine with another content of its file number `n`.
fn with(n: usize, text: &str) -> Record {
    let files = FILES.iter().enumerate();
    machine(files.map(|(m, (path, known))| (*path, if m == n { text } else { known })))
}

#[test]
fn the_whole_machine_is_read() {
    let all = fuzz::read_everything(&Host::from_record(machine(FILES.iter().copied())), 7);
    let text = all.to_string();
    for gap in ["\"denied\"", "\"failed\""] {
        assert!(!text.contains(gap), "{text}");
    }
    // What the machine has no file for: an old kernel would say the same.
    let absent = text.matches("\"absent\"").count();
    let which = "reserved on a node, two unlimited, all held up for CPUs, kills in the scope, no tuned, no cluster";
    assert_eq!(absent, 7, "{which}: {text}");
    assert_eq!(all["container"]["runtime"], "containerd");
    assert_eq!(all["pod"]["qos"], "guaranteed");
    assert!(zeros(&all, "").is_empty(), "{:?}", zeros(&all, ""));
}

#[test]
fn a_file_cut_off_anywhere_gives_no_zero() {
    for (n, (path, text)) in FILES.iter().enumerate() {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let found = zeros_of(with(n, &text[..end]));
            assert!(found.is_empty(), "{path} cut off at {end}: {found:?}");
        }
    }
}

#[test]
fn a_vanished_file_gives_no_zero() {
    for (gone, _) in FILES {
        let rest = FILES.iter().copied().filter(|(path, _)| path != gone);
        let found = zeros_of(machine(rest));
        assert!(found.is_empty(), "without {gone}: {found:?}");
    }
}

#[test]
fn a_process_cut_off_is_refused_or_whole() {
    let text = |path: &str| FILES.iter().find(|(known, _)| *known == path).unwrap().1;
    let stat = text("/proc/7/stat");
    let whole = process::parse_stat(stat).unwrap();
    let maps = text("/proc/7/maps");
    let mappings = process::parse_maps(maps);
    for end in 0..stat.len() {
        assert!(process::parse_stat(&stat[..end]).is_none_or(|found| found == whole), "{end}");
    }
    for end in 0..maps.len() {
        for (found, known) in process::parse_maps(&maps[..end]).iter().zip(&mappings) {
            assert_eq!((found.bytes, found.shared), (known.bytes, known.shared), "{end}");
        }
    }
}

/// Text without the digit zero: no zero in what is read was in the file.
fn garbage() -> impl Strategy<Value = String> {
    let any = "\\PC{0,200}";
    let numbers = "([1-9]{1,40}[ \t\n:,/-]{0,2}){0,20}";
    let keys = "((Mem|Node|Vm|cpu|Hugetlb|[a-z]{1,8})[: \t]{0,2}[1-9]{0,30} ?(kB|K|max)?\n){0,20}";
    let marks = "[\\[\\]()\"'\\\\=:;,./\n\t 1-9-]{0,200}";
    prop_oneof![any, numbers, keys, marks].prop_map(|text| text.replace('0', "1"))
}

/// Each digit in the files of the machine: which file, and where in it.
fn digits() -> Vec<(usize, usize)> {
    let of_file = |(n, (_, text)): (usize, &(&str, &'static str))| {
        text.match_indices(|c: char| c.is_ascii_digit()).map(move |(at, _)| (n, at))
    };
    FILES.iter().enumerate().flat_map(of_file).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn garbage_in_one_file_gives_no_zero(n in 0..FILES.len(), text in garbage()) {
        let found = zeros_of(with(n, &text));
        prop_assert!(found.is_empty(), "{}: {found:?}", FILES[n].0);
    }

    #[test]
    fn garbage_in_every_file_gives_no_zero(texts in prop::collection::vec(garbage(), 1..7)) {
        let texts = texts.iter().map(String::as_str).cycle();
        let found = zeros_of(machine(FILES.iter().map(|(path, _)| *path).zip(texts)));
        prop_assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_changed_number_is_read_as_it_is_or_refused(
        (n, at) in prop::sample::select(digits()), number in "[1-9]{1,40}",
    ) {
        let text = FILES[n].1;
        let found = zeros_of(with(n, &format!("{}{number}{}", &text[..at], &text[at + 1..])));
        prop_assert!(found.is_empty(), "{}: {found:?}", FILES[n].0);
    }

    #[test]
    fn any_bytes_in_any_file_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        untax_host::fuzz_parsers(&bytes);
    }

    #[test]
    fn any_path_is_looked_up_within_the_record(path in "[./a-z]{0,30}") {
        let host = Host::from_record(machine([(path.as_str(), "text")]));
        let read = host.text(&path);
        let climbs = path.split('/').any(|part| part == "..");
        prop_assert_eq!(matches!(read, Reading::Failed(_)), climbs);
        let _names = host.names(&path);
        let _link = host.link(&path);
    }
}
