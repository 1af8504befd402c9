//! Limits of dirty pages: lower where the disk is the cause, higher where a database's own bursts
//! find no room, and good ones left alone.

#![expect(clippy::unwrap_used, reason = "a test's helpers panic as the test does")]

mod support;

use support::{check, gap, host, postgres, snapshot};
use untax_core::Bytes;
use untax_core::Reading::Present;
use untax_remedies::Wish;

/// The steps for a finding of this remedy on a host with so many MiB available: what each limit is
/// set to, in MiB. `background` and `limit` are in MiB, or in percent when below 100.
fn steps(remedy: &str, available: u64, background: u64, limit: u64) -> Vec<(String, u64)> {
    let mut host = host("debian", "12", gap(), "");
    if let Present(memory) = &mut host.memory {
        memory.available_bytes = Present(Bytes::from_mib(available));
    }
    let sysctls = [("vm.dirty_background", background), ("vm.dirty", limit)];
    let sysctls = sysctls.into_iter().flat_map(|(name, value)| {
        let (bytes, ratio) = if value < 100 { (0, value) } else { (value << 20, 0) };
        [(format!("{name}_bytes"), bytes.to_string()), (format!("{name}_ratio"), ratio.to_string())]
    });
    host.sysctls = Present(sysctls.collect());
    let snapshot = snapshot(host, vec![postgres(Bytes::from_mib(512))]);
    let check = check(&snapshot, "dirty-burst", remedy);
    let plan = untax_remedies::plan("a".to_owned(), &check, &snapshot, &Wish::default()).unwrap();
    let set = plan.steps.iter().filter(|step| step.id.starts_with("dirty"));
    let mib = |to: &str| to.parse::<u64>().map_or(0, |bytes| bytes >> 20);
    set.map(|step| (step.id.clone(), mib(step.to.as_ref().unwrap()))).collect()
}

#[test]
fn limits_are_lowered_raised_or_left_alone() {
    let set = |background, limit| {
        let both = [("dirty-background", background), ("dirty", limit)];
        let both = both.into_iter().filter(|(_, mib)| *mib > 0).chain([("dirty-boot", 0)]);
        both.map(|(id, mib)| (id.to_owned(), mib)).collect::<Vec<_>>()
    };
    // The disk is the cause.
    assert_eq!(steps("dirty-limits", 20_000, 10, 20), set(128, 1024));
    assert_eq!(steps("dirty-limits", 20_000, 100, 20), set(0, 1024));
    assert_eq!(steps("dirty-limits", 20_000, 100, 900), []);
    // Bursts find no room.
    assert_eq!(steps("dirty-room", 20_000, 100, 200), set(128, 1024));
    assert_eq!(steps("dirty-room", 20_000, 10, 200), set(0, 1024));
    assert_eq!(steps("dirty-room", 20_000, 10, 20), [], "never lowered");
    // Little memory: a fifth of it at most, in steps that the next moment does not change.
    assert_eq!(steps("dirty-room", 1000, 1, 2), set(64, 128));
    assert_eq!(steps("dirty-room", 1000, 100, 128), []);
}
