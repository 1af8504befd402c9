//! The same pool after every boot: what the plan does on each distribution, and that undoing it
//! leaves every byte as it was.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic as the test does")]

mod support;

use support::{host, plan, postgres, shown, snapshot};
use untax_core::Reading::{self, Absent, Present};
use untax_core::plan::{Plan, Target};
use untax_core::{Bytes, Snapshot};

const REMEDY: &str = "hugepage-boot";

fn loader(name: &str) -> Reading<String> {
    Present(name.to_owned())
}

/// A host with 1.5 GiB to be on huge pages: two of 1 GiB, 768 of 2 MiB.
fn machine(id: &str, version: &str, loader: Reading<String>, cmdline: &str) -> Snapshot {
    snapshot(host(id, version, loader, cmdline), vec![postgres(Bytes::from_mib(1536))])
}

/// Both sizes, one below the other.
fn both(snapshot: &Snapshot) -> String {
    let shown = |page| format!("== {page}\n{}", shown(&plan(snapshot, page), REMEDY));
    format!("{}\n{}", shown("2m"), shown("1g"))
}

fn golden(name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => "boot",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, { insta::assert_snapshot!(name, text) });
}

#[test]
fn distributions() {
    let ostree = "an ostree system sets its command line with 'rpm-ostree kargs'";
    for (name, id, version, loader) in [
        ("debian", "debian", "12", loader("grub")),
        ("ubuntu", "ubuntu", "24.04", loader("grub")),
        ("rhel-9", "rhel", "9.4", loader("grub-bls")),
        ("oracle-linux-8", "ol", "8.10", loader("grub-bls")),
        ("rhel-8-without-bls", "rhel", "8.10", loader("grub")),
        ("rocky-9-without-bls", "rocky", "9.4", loader("grub")),
        ("centos-7", "centos", "7", loader("grub")),
        ("sles", "sles", "15.6", loader("grub")),
        ("micro-os", "sl-micro", "6.0", loader("transactional")),
        ("bottlerocket-old", "bottlerocket", "1.20.0", loader("bottlerocket")),
        ("bottlerocket", "bottlerocket", "1.64.0", loader("bottlerocket")),
        ("systemd-boot", "arch", "", loader("systemd-boot")),
        ("ostree", "fedora", "41", Absent(ostree.to_owned())),
        ("no-loader", "alpine", "3.20", Absent("no boot loader is configured here".to_owned())),
    ] {
        golden(name, &both(&machine(id, version, loader, "")));
    }
}

#[test]
fn a_container_hands_over() {
    let mut snapshot = machine("debian", "12", loader("grub"), "");
    snapshot.host.virtualization = Present("docker on kvm".to_owned());
    golden("container", &both(&snapshot));
}

/// What is on the command line is replaced; what is about other sizes stays.
#[test]
fn words_that_are_there_are_replaced() {
    let words = "default_hugepagesz=2M hugepages=16 hugepagesz=1G hugepages=1 hugepages=9 psi=1";
    for (name, id, version, kind) in
        [("rhel-9-again", "rhel", "9.4", "grub-bls"), ("debian-again", "debian", "12", "grub")]
    {
        golden(name, &both(&machine(id, version, loader(kind), words)));
    }
}

#[test]
fn who_cannot_name_a_size_needs_another_default() {
    let mut snapshot = machine("rhel", "9.4", loader("grub-bls"), "");
    snapshot.databases[0].version = Present("13.16".to_owned());
    golden("default-size", &both(&snapshot));
}

#[test]
fn an_old_kernel_spreads_the_pages_itself() {
    let mut snapshot = machine("centos", "7", loader("grub"), "");
    let Present(kernel) = &mut snapshot.host.kernel else { unreachable!() };
    kernel.release = "3.10.0-1160.el7.x86_64".to_owned();
    let Present(pools) = &mut snapshot.host.hugepages else { unreachable!() };
    for pool in pools.iter_mut().filter(|pool| pool.node != Some(1)) {
        let pages = if pool.size_bytes == Bytes::GIB_1 { 7 } else { 300 };
        (pool.total, pool.free) = (Present(pages), Present(0));
    }
    golden("old-kernel", &both(&snapshot));
}

#[test]
fn nothing_is_done_where_the_command_line_asks_for_it_already() {
    for words in ["hugepagesz=1G hugepages=2", "hugepagesz=1G hugepages=0:1,1:1"] {
        let snapshot = machine("rhel", "9.4", loader("grub-bls"), words);
        assert_eq!(shown(&plan(&snapshot, "1g"), REMEDY), "");
    }
    let snapshot = machine("rhel", "9.4", loader("grub-bls"), "hugepagesz=1G hugepages=0:2");
    assert_ne!(shown(&plan(&snapshot, "1g"), REMEDY), "");
}

#[test]
fn a_pool_as_large_as_the_machine_is_refused() {
    let mut snapshot = machine("rhel", "9.4", loader("grub-bls"), "hugepagesz=2M hugepages=9000");
    let refused = |snapshot: &Snapshot| {
        let plan = plan(snapshot, "1g");
        plan.warnings.iter().any(|w| w.refuses && w.id == "boot-overcommit")
    };
    assert!(!refused(&snapshot), "20 of 24 GiB");
    snapshot.databases = vec![postgres(Bytes(5 << 30))];
    assert!(refused(&snapshot), "23 of 24 GiB");
}

/// The guest of tests/vm/boot.sh is booted with these words.
#[test]
fn the_guest_boots_with_what_the_plan_writes() {
    let plan = plan(&machine("rhel", "9.4", loader("grub-bls"), ""), "1g");
    assert_eq!(words(&plan), include_str!("boot/guest.words").trim_end());
}

fn words(plan: &Plan) -> &str {
    let step = plan.steps.iter().find(|step| step.target == Target::Grubby).unwrap();
    step.to.as_deref().unwrap()
}
