//! Where each distribution keeps the kernel's command line, for [`super::hugepage_boot`].

use crate::case::Case;
use crate::managed::{self, Managed};
use crate::remedy::Draft;
use untax_core::boot::Arguments;
use untax_core::host::Distribution;
use untax_core::plan::{Effect, Step, Target, Task};
use untax_core::{Bytes, Reading, page_size};

/// The remedy that changes how the host boots.
pub const REMEDY_ID: &str = "hugepage-boot";

/// Other words about huge pages for the kernel's command line.
pub struct Change<'a> {
    /// The size of page that it is about.
    pub page: Bytes,
    /// All pages of that size.
    pub pages: u64,
    /// The size that is meant where none is named.
    pub default: Option<Bytes>,
    /// The words about huge pages that the running kernel was given.
    pub words: &'a [&'a str],
    /// What they are to be.
    pub after: &'a Arguments,
}

/// Distributions whose entries `grubby` changes.
const RED_HAT: [&str; 8] =
    ["almalinux", "amzn", "centos", "fedora", "ol", "rhel", "rocky", "scientific"];
/// Distributions whose grub-mkconfig reads /etc/default/grub.d.
const DEBIAN: [&str; 6] = ["debian", "kali", "linuxmint", "pop", "raspbian", "ubuntu"];
const SUSE: [&str; 6] =
    ["opensuse", "opensuse-leap", "opensuse-tumbleweed", "sled", "sles", "sles_sap"];

const DROP_IN: &str = "/etc/default/grub.d/90-untax.cfg";
const GRUB: &str = "/etc/default/grub";
const MKCONFIG: [&str; 3] = ["grub2-mkconfig", "-o", "/boot/grub2/grub.cfg"];

/// Names of containers as the fact `virtualization` has them where nothing is below.
const CONTAINERS: [&str; 6] = ["container", "docker", "lxc", "oci", "podman", "systemd-nspawn"];

/// Bottlerocket's first release with a setting for pools.
const BOTTLEROCKET_POOLS: (u32, u32) = (1, 64);

/// Whether files in /etc do not decide how this host boots: in a container, and where all settings
/// go through an API.
pub fn is_elsewhere(case: &Case) -> bool {
    let host = &case.snapshot.host;
    let below = host.virtualization.value().map_or("", String::as_str);
    let loader = host.distribution.value().and_then(|d| d.boot_loader.value());
    below.contains(" on ")
        || CONTAINERS.contains(&below)
        || loader.is_some_and(|loader| loader == "bottlerocket")
}

/// What changes the command line on this host.
pub fn draft(case: &Case, change: &Change) -> Draft {
    let Reading::Present(distribution) = &case.snapshot.host.distribution else {
        return by_hand(case, change);
    };
    let id = distribution.id.as_str();
    let loader = distribution.boot_loader.value().map_or("", String::as_str);
    let block = || Target::Block { file: GRUB.to_owned() };
    let lines = || Some(shell_lines(change));
    match loader {
        "bottlerocket" => bottlerocket(case, change, distribution),
        _ if is_elsewhere(case) || managed::of(case.snapshot).is_some() => by_hand(case, change),
        "grub-bls" if RED_HAT.contains(&id) => {
            let from = Some(change.words.join(" ")).filter(|words| !words.is_empty());
            let to = Some(change.after.words().join(" ")).filter(|words| !words.is_empty());
            step(case, change, Target::Grubby, from, to, &[])
        }
        "grub" if DEBIAN.contains(&id) => {
            let target = Target::File { file: DROP_IN.to_owned() };
            let text = format!("# Made by untax.\n{}", shell_lines(change));
            step(case, change, target, None, Some(text), &["update-grub"])
        }
        "grub" if SUSE.contains(&id) => step(case, change, block(), None, lines(), &MKCONFIG),
        "grub" if RED_HAT.contains(&id) => {
            let command = mkconfig(distribution);
            let words: Vec<&str> = match &command {
                Some(command) => vec!["sh", "-c", command],
                None => MKCONFIG.to_vec(),
            };
            step(case, change, block(), None, lines(), &words)
        }
        _ => by_hand(case, change),
    }
}

fn step(
    case: &Case,
    change: &Change,
    target: Target,
    from: Option<String>,
    to: Option<String>,
    refresh: &[&str],
) -> Draft {
    let place = match &target {
        Target::File { file } | Target::Block { file } => file.as_str(),
        _ => "kernel command line by grubby",
    };
    let step = Step {
        id: REMEDY_ID.to_owned(),
        remedy: REMEDY_ID.to_owned(),
        summary: format!("{place}: {} after every boot", shown(change)),
        databases: case.databases(),
        target,
        from,
        to,
        refresh: refresh.iter().map(|word| (*word).to_owned()).collect(),
        effect: Effect::Reboot,
    };
    Draft { steps: vec![step], ..Draft::default() }
}

fn shown(change: &Change) -> String {
    let words = change.after.words().join(" ");
    if words.is_empty() { "no word about huge pages".to_owned() } else { words }
}

/// Lines for what grub-mkconfig reads as a shell does: the words that are there already are taken
/// out, wherever they come from, as the kernel heeds the first of a size only.
fn shell_lines(change: &Change) -> String {
    let words = change.after.words().join(" ");
    if change.words.is_empty() {
        return format!("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {words}\"\n");
    }
    let without = |variable: &str| {
        format!(
            "$(echo \"${variable}\" | sed -E 's/(^| )((default_)?hugepagesz|hugepages)=[^ ]*//g')"
        )
    };
    let (all, normal) = ("GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT");
    format!("{all}=\"{} {words}\"\n{normal}=\"{}\"\n", without(all), without(normal))
}

/// Red Hat's two places for the configuration of grub before 9, as a shell tells them apart. Later
/// the one on the EFI partition only points to the other and must stay as it is.
fn mkconfig(distribution: &Distribution) -> Option<String> {
    let vendor = match distribution.id.as_str() {
        "rhel" | "ol" => "redhat",
        id @ ("centos" | "rocky" | "almalinux") => id,
        _ => return None,
    };
    let major = distribution.version.as_deref()?.split('.').next()?.parse::<u32>().ok()?;
    (major < 9).then(|| {
        format!(
            "if [ -d /sys/firmware/efi ]; then grub2-mkconfig -o /boot/efi/EFI/{vendor}/grub.cfg; \
             else {}; fi",
            MKCONFIG.join(" ")
        )
    })
}

/// Its files cannot be changed; settings go through an API, and where they are kept is known to
/// whoever makes the nodes.
fn bottlerocket(case: &Case, change: &Change, distribution: &Distribution) -> Draft {
    let version = distribution.version.as_deref().unwrap_or_default();
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    let version = numbers.next().flatten().zip(numbers.next().flatten());
    let pages = change.pages;
    let size = page_size::kubernetes_word(change.page);
    let settings = if version.is_some_and(|version| version >= BOTTLEROCKET_POOLS) {
        format!("[settings.kernel.hugepages.static]\n\"{size}\" = {{ count = \"{pages}\" }}\n")
    } else if change.default == Some(change.page) {
        format!("[settings.kernel.sysctl]\n\"vm.nr_hugepages\" = \"{pages}\"\n")
    } else {
        format!(
            "[settings.boot]\nreboot-to-reconcile = true\n\n\
             [settings.boot.kernel-parameters]\n\
             \"hugepagesz\" = [\"{}\"]\n\"hugepages\" = [\"{pages}\"]\n",
            page_size::boot_word(change.page)
        )
    };
    let text = format!(
        "# For the user data of the nodes, or: apiclient apply < this file, then reboot.\n{settings}"
    );
    let summary = format!("Bottlerocket: reserve {pages} pages of {} by its API", change.page);
    let task = task(case, summary, "hugepage-boot.toml", text);
    Draft { tasks: vec![task], ..Draft::default() }
}

/// What a person does where no step can be undone safely, or nobody knows how the host boots.
pub fn by_hand(case: &Case, change: &Change) -> Draft {
    let loader = case.snapshot.host.distribution.value().map(|d| &d.boot_loader);
    let how = match loader {
        _ if managed::of(case.snapshot) == Some(Managed::Talos) => {
            "Put these words into the schematic of the node's image, or into\n\
             machine.install.extraKernelArgs, in place of others about huge pages; then\n\
             'talosctl upgrade' the node with that image:"
        }
        _ if managed::of(case.snapshot) == Some(Managed::NixOs) => {
            "Put these words into boot.kernelParams in place of others about huge pages; then\n\
             'nixos-rebuild boot' and reboot:"
        }
        _ if is_elsewhere(case) => {
            "This host is a container: the machine below it has the pool.\nThere, run untax plan, \
             or put these words on its kernel command line:"
        }
        Some(Reading::Present(loader)) if loader == "transactional" => {
            "In /etc/default/grub, put these words into GRUB_CMDLINE_LINUX in place of others \
             about\nhuge pages; then 'transactional-update grub.cfg' and reboot into the new \
             snapshot:"
        }
        Some(Reading::Present(loader)) if loader == "systemd-boot" => {
            "Put these words into /etc/kernel/cmdline in place of others about huge pages\n\
             (made from /proc/cmdline, without BOOT_IMAGE and initrd, where it is missing);\n\
             then 'kernel-install add-all', or, without kernel-install, into the line 'options' \
             of\nthe entries in loader/entries on the EFI partition:"
        }
        Some(Reading::Absent(why)) if why.contains("rpm-ostree") => {
            "With 'rpm-ostree kargs --editor', put these words in place of others about huge \
             pages:"
        }
        _ => "Put these words on the kernel's command line in place of others about huge pages:",
    };
    let text = format!("{how}\n\n{}\n", shown(change));
    let summary = format!("kernel command line, by hand: {}", shown(change));
    let task = task(case, summary, "hugepage-boot.txt", text);
    Draft { tasks: vec![task], ..Draft::default() }
}

/// A task for a person, with the text in a file.
pub(super) fn task(case: &Case, summary: String, name: &str, text: String) -> Task {
    Task {
        remedy: REMEDY_ID.to_owned(),
        summary,
        databases: case.databases(),
        file: Some((name.to_owned(), text)),
    }
}
