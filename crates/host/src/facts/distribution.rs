//! The distribution and what sets the kernel's command line.

use super::Fact;
use crate::Host;
use untax_core::Reading::{self, Absent, Present};
use untax_core::host::{Distribution, HostFacts};

pub(super) const FACT: Fact = Fact {
    id: "distribution",
    summary: "the distribution, and the boot loader that sets the kernel's command line",
    source: "/etc/os-release, /usr/lib/os-release, /etc/default/grub, files below /boot",
    privilege: "none; root where /boot is closed",
    minimum_kernel: "any",
    cost: "two small files, a few looks whether a file exists",
    read,
};

/// The keys of os-release that are used.
const KEPT: [&str; 3] = ["ID", "VERSION_ID", "PRETTY_NAME"];

/// The line of grub's settings that is used.
const BLS: &str = "GRUB_ENABLE_BLSCFG=";

fn read(host: &Host, facts: &mut HostFacts) {
    let release = |path: &str| {
        host.filter_lines(path, |line| entry(line).map(|_| line.to_owned()))
            .parse(path, |text| parse(text))
    };
    let found = release("/etc/os-release").or_else(|| release("/usr/lib/os-release"));
    facts.distribution = found.map(|mut distribution| {
        distribution.boot_loader = boot_loader(host, &distribution.id);
        distribution
    });
}

fn entry(line: &str) -> Option<(&str, String)> {
    let (key, value) = line.trim().split_once('=')?;
    KEPT.contains(&key).then(|| (key, unquote(value)))
}

/// Parses os-release(5). Without an ID the distribution is `linux`, as the manual has it.
fn parse(text: &str) -> Option<Distribution> {
    let value = |wanted: &str| {
        let mut entries = text.lines().filter_map(entry);
        entries.find(|(key, _)| *key == wanted).map(|(_, value)| value).filter(|v| !v.is_empty())
    };
    let (id, version, name) = (value("ID"), value("VERSION_ID"), value("PRETTY_NAME"));
    if id.is_none() && name.is_none() {
        return None;
    }
    let id = id.unwrap_or_else(|| "linux".to_owned());
    let name = name.unwrap_or_else(|| id.clone());
    Some(Distribution { id, version, name, boot_loader: Absent("not read".to_owned()) })
}

/// A value as a shell would read it: quotes are removed, backslashes escape.
fn unquote(value: &str) -> String {
    let mut plain = String::new();
    let mut quote = None;
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), close) if open == close => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None | Some('"'), '\\') => plain.extend(letters.next()),
            _ => plain.push(letter),
        }
    }
    plain
}

fn boot_loader(host: &Host, id: &str) -> Reading<String> {
    let any = |paths: &[&str]| paths.iter().any(|path| host.exists(path));
    let has_grub = || any(&["/etc/default/grub", "/boot/grub/grub.cfg", "/boot/grub2/grub.cfg"]);
    let found = if id == "bottlerocket" {
        "bottlerocket"
    } else if host.exists("/usr/sbin/transactional-update") {
        "transactional"
    } else if host.exists("/run/ostree-booted") {
        return Absent("an ostree system sets its command line with 'rpm-ostree kargs'".to_owned());
    } else if has_grub() {
        if uses_bls(host) { "grub-bls" } else { "grub" }
    } else if any(&[
        "/boot/loader/loader.conf",
        "/boot/efi/loader/loader.conf",
        "/efi/loader/loader.conf",
    ]) {
        "systemd-boot"
    } else {
        return Absent("no boot loader is configured here, as in most containers".to_owned());
    };
    Present(found.to_owned())
}

/// Whether grub takes its entries from /boot/loader/entries, as on RHEL 8 and newer: then
/// /etc/default/grub alone changes nothing.
fn uses_bls(host: &Host) -> bool {
    let keep = |line: &str| line.trim().starts_with(BLS).then(|| line.trim().to_owned());
    let setting = host.filter_lines("/etc/default/grub", keep).into_value().unwrap_or_default();
    let last = setting.lines().filter_map(|line| line.strip_prefix(BLS)).next_back();
    last.is_some_and(|value| unquote(value) == "true")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    fn read_from(record: Record) -> Reading<Distribution> {
        super::super::read_all(&Host::from_record(record)).distribution
    }

    fn loader(id: &str, files: &[(&str, &str)]) -> Reading<String> {
        let record = Record::default().with_file("/etc/os-release", &format!("ID={id}\n"));
        let record = files.iter().fold(record, |record, (path, text)| record.with_file(path, text));
        read_from(record).into_value().unwrap().boot_loader
    }

    #[test]
    fn values_are_unquoted_as_by_a_shell() {
        let text = "PRETTY_NAME=\"Red Hat \\\"Plow\\\" 9\"\nID='rhel'\nVERSION_ID=9.4\n# ID=x\n";
        let distribution = parse(text).unwrap();
        assert_eq!(distribution.name, "Red Hat \"Plow\" 9");
        assert_eq!(distribution.id, "rhel");
        assert_eq!(distribution.version.as_deref(), Some("9.4"));
        assert_eq!(unquote("a\\"), "a");
        assert_eq!(unquote("'a\\b'\"c"), "a\\bc");
    }

    #[test]
    fn a_rolling_distribution_has_no_version() {
        let arch = parse("ID=arch\nPRETTY_NAME=\"Arch Linux\"\nVERSION_ID=\n").unwrap();
        assert_eq!(arch.version, None);
        assert!(parse("HOME_URL=x\n").is_none());
    }

    #[test]
    fn the_second_place_is_looked_at() {
        let record = Record::default().with_file("/usr/lib/os-release", "ID=debian\n");
        assert_eq!(read_from(record).into_value().unwrap().id, "debian");
        assert!(matches!(read_from(Record::default()), Absent(_)));
    }

    #[test]
    fn boot_loaders_are_told_from_files() {
        let is = |name: &str| Present(name.to_owned());
        let grub = ("/etc/default/grub", "GRUB_TIMEOUT=5\n");
        let bls = ("/etc/default/grub", "GRUB_TIMEOUT=5\nGRUB_ENABLE_BLSCFG=true\n");
        let turned_off =
            ("/etc/default/grub", "GRUB_ENABLE_BLSCFG=true\nGRUB_ENABLE_BLSCFG=false\n");
        assert_eq!(loader("debian", &[grub]), is("grub"));
        assert_eq!(loader("debian", &[("/boot/grub/grub.cfg", "")]), is("grub"));
        assert_eq!(loader("rhel", &[bls]), is("grub-bls"));
        assert_eq!(loader("rhel", &[turned_off]), is("grub"));
        assert_eq!(loader("arch", &[("/boot/loader/loader.conf", "")]), is("systemd-boot"));
        assert_eq!(loader("bottlerocket", &[]), is("bottlerocket"));
        let micro = [grub, ("/usr/sbin/transactional-update", "")];
        assert_eq!(loader("sle-micro", &micro), is("transactional"));
        assert!(matches!(loader("fedora", &[grub, ("/run/ostree-booted", "")]), Absent(_)));
        assert!(matches!(loader("alpine", &[]), Absent(_)));
    }
}
