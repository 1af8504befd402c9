//! The profile of `tuned` that sets transparent huge pages, at every boot.

use super::Fact;
use crate::Host;
use untax_core::Reading::{self, Absent, Present};
use untax_core::host::{HostFacts, ThpSetter};

pub(super) const FACT: Fact = Fact {
    id: "thp_setter",
    summary: "the profile of tuned, or of the Node Tuning Operator, that sets transparent huge pages",
    source: "/etc/tuned/active_profile, tuned.conf of that profile and of those it includes",
    privilege: "none",
    minimum_kernel: "any",
    cost: "up to ten small files",
    read,
};

const ACTIVE: &str = "/etc/tuned/active_profile";

/// Where the Node Tuning Operator of `OpenShift` keeps its profiles on a node (4.14 and newer). Its
/// `active_profile` is inside its container. Source: openshift/cluster-node-tuning-operator,
/// `tunedProfilesDirCustom`.
const OF_OPERATOR: &str = "/var/lib/ocp-tuned/profiles";

/// Where profiles are, the first that has one counts. Source: tuned.conf(5); in versions before 2.24
/// without `profiles`.
const FOLDERS: [&str; 5] =
    ["/etc/tuned/profiles", "/etc/tuned", OF_OPERATOR, "/usr/lib/tuned/profiles", "/usr/lib/tuned"];

/// How deep profiles may include each other.
const MOST_DEPTH: u32 = 8;

fn read(host: &Host, facts: &mut HostFacts) {
    let mode = facts.thp.value().map(|thp| thp.enabled.as_str());
    facts.thp_set_by = match host.text(ACTIVE) {
        Present(active) => by_profiles(host, &active),
        Absent(_) => by_operator(host, mode),
        gap => gap.and_then(|_| Absent(format!("no {ACTIVE}"))),
    };
}

/// The last of the active profiles that sets the mode: later ones override.
fn by_profiles(host: &Host, active: &str) -> Reading<ThpSetter> {
    let set = active.split_whitespace().rev().find_map(|profile| setter(host, profile, profile, 0));
    set.map_or_else(
        || Absent(format!("tuned's profile {} sets no transparent huge pages", active.trim())),
        Present,
    )
}

/// Which profile is active is not to be seen: one that sets the mode which is in force.
fn by_operator(host: &Host, mode: Option<&str>) -> Reading<ThpSetter> {
    let names = host.names(OF_OPERATOR).into_value().unwrap_or_default();
    let mut set = names.iter().filter_map(|profile| setter(host, profile, profile, 0));
    match set.find(|setter| Some(setter.mode.as_str()) == mode) {
        Some(setter) => Present(setter),
        None => Absent(format!("no {ACTIVE}: tuned is not in use here")),
    }
}

fn setter(host: &Host, active: &str, profile: &str, depth: u32) -> Option<ThpSetter> {
    // Names of files elsewhere, and functions whose value tuned alone knows.
    if depth > MOST_DEPTH || profile.contains(['/', '$']) || profile.starts_with('.') {
        return None;
    }
    let (file, text) = FOLDERS.iter().find_map(|folder| {
        let file = format!("{folder}/{profile}/tuned.conf");
        let text = host.filter_lines(&file, keep).into_value()?;
        // A capture made by hand may hold all of it.
        Some((file, text.lines().filter_map(keep).collect::<Vec<String>>()))
    })?;
    let values = |key: fn(&str) -> bool| {
        let pairs = text.iter().filter_map(|line| line.split_once('='));
        pairs.filter(move |(name, _)| key(name)).map(|(_, value)| value)
    };
    if let Some(mode) = values(|key| MODES.contains(&key)).next_back() {
        let of_operator = file.starts_with(OF_OPERATOR) || active.starts_with("openshift");
        let program = if of_operator { "Node Tuning Operator" } else { "tuned" };
        let [program, active, mode] = [program, active, mode].map(str::to_owned);
        return Some(ThpSetter { program, active, file, mode });
    }
    // A profile that cannot be found may be left out where a dash stands before its name.
    let included: Vec<&str> = values(|key| key == INCLUDE).flat_map(|all| all.split(',')).collect();
    let included = included.iter().rev().map(|name| name.trim().trim_start_matches('-'));
    included.filter(|name| *name != profile).find_map(|name| setter(host, active, name, depth + 1))
}

const INCLUDE: &str = "include";

/// The options of the `vm` plugin, and the file as the `sysfs` plugin names it.
const MODES: [&str; 3] = [
    "transparent_hugepages",
    "transparent_hugepage",
    "/sys/kernel/mm/transparent_hugepage/enabled",
];

/// Other lines of a profile may hold what is nobody's business.
fn keep(line: &str) -> Option<String> {
    let (key, value) = line.split_once('=')?;
    let (key, value) = (key.trim(), value.split('#').next()?.trim());
    (key == INCLUDE || MODES.contains(&key)).then(|| format!("{key}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    fn set_by(files: &[(&str, &str)]) -> Reading<ThpSetter> {
        let thp = "/sys/kernel/mm/transparent_hugepage/enabled";
        let record = Record::default().with_file(thp, "always madvise [never]\n");
        let record = files.iter().fold(record, |record, (file, text)| record.with_file(file, text));
        super::super::read_all(&Host::from_record(record)).thp_set_by
    }

    #[test]
    fn the_profile_that_names_the_mode_is_found_through_includes() {
        let files = [
            (ACTIVE, "virtual-guest mydb\n"),
            ("/etc/tuned/mydb/tuned.conf", "[main]\nsummary=x\ninclude=throughput-performance\n"),
            (
                "/usr/lib/tuned/throughput-performance/tuned.conf",
                "[main]\n[vm]\ntransparent_hugepages=never # see the wiki\n",
            ),
            ("/usr/lib/tuned/virtual-guest/tuned.conf", "[vm]\ntransparent_hugepages=always\n"),
        ];
        let setter = set_by(&files).into_value().unwrap();
        assert_eq!((setter.program.as_str(), setter.active.as_str()), ("tuned", "mydb"));
        assert_eq!(setter.mode, "never");
        assert_eq!(setter.file, "/usr/lib/tuned/throughput-performance/tuned.conf");
    }

    #[test]
    fn a_profile_overrides_what_it_includes_and_etc_what_was_installed() {
        let installed = "/usr/lib/tuned/profiles/db/tuned.conf";
        let own = "[main]\ninclude=base\n[sysfs]\n\
                   /sys/kernel/mm/transparent_hugepage/enabled=madvise\n";
        let files = [
            (ACTIVE, "db\n"),
            (installed, own),
            ("/usr/lib/tuned/base/tuned.conf", "[vm]\ntransparent_hugepages=always\n"),
        ];
        assert_eq!(set_by(&files).into_value().unwrap().mode, "madvise");
        let mut files = files.to_vec();
        files.push(("/etc/tuned/profiles/db/tuned.conf", "[vm]\ntransparent_hugepage = never\n"));
        assert_eq!(set_by(&files).into_value().unwrap().mode, "never");
    }

    #[test]
    fn on_openshift_it_is_the_operators_profile_with_the_mode_in_force() {
        let files = [
            (
                "/var/lib/ocp-tuned/profiles/other/tuned.conf",
                "[vm]\ntransparent_hugepages=always\n",
            ),
            (
                "/var/lib/ocp-tuned/profiles/openshift-db/tuned.conf",
                "transparent_hugepages=never\n",
            ),
        ];
        let setter = set_by(&files).into_value().unwrap();
        assert_eq!(setter.program, "Node Tuning Operator");
        assert_eq!(setter.active, "openshift-db");
    }

    #[test]
    fn profiles_that_set_none_or_include_themselves_are_no_setter() {
        let ring = [
            (ACTIVE, "a ../../root\n"),
            ("/etc/tuned/a/tuned.conf", "include=b, -missing, ${f:x}, /etc/passwd\n"),
            ("/etc/tuned/b/tuned.conf", "include=a\npassword=transparent_hugepages=never\n"),
        ];
        assert!(matches!(set_by(&ring), Absent(why) if why.contains("sets no")));
        assert!(matches!(set_by(&[]), Absent(why) if why.contains("not in use")));
    }
}
