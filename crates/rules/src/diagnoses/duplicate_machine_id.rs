//! `duplicate-machine-id`: two containers, or a container and its host, have one identity.

use crate::evidence;
use crate::model::without_tax::{self, Words};
use crate::rule::{Rule, Scope, TaxBase};
use untax_core::window::Pair;
use untax_core::{Diagnosis, Evidence, Severity, Window};

pub const RULE: Rule = Rule {
    id: "duplicate-machine-id",
    summary: "two systems say that they are the same machine",
    what: "/etc/machine-id must be unique. Clones of an image, or of a machine that was started \
           before, keep the id. Such clones share everything that is derived from the id: the \
           address that DHCP gives them, names in logs and metrics, and identities of agents. Two \
           replicas of a database with one address lose connections in turns.",
    method: "The rule takes the machine id of each container that runs a database, and compares it \
             with the ids of the other containers and the host. It has no tax.",
    measured: "The rule reads the id in the root directory of each container with a database. The \
               rule compares each id with the ids of the other containers and the host. Only \
               digests of ids are kept and shown, as machine-id(5) asks. Compare machines by the \
               digests in their results (host.machine_id and host.product_uuid of untax check \
               --json): the same digest means the same id. A shared id takes no time of the \
               database by itself, so the tax is unmeasured.",
    fix: "Empty the file in the image or template: truncate -s 0 /etc/machine-id (an empty file, \
          not a missing one). On a clone, remove its content, run systemd-machine-id-setup, and \
          restart the clone.",
    sources: &["freedesktop.org: machine-id(5)", "freedesktop.org: systemd-machine-id-setup(1)"],
    privilege: "root, to see the root directories of other users' processes",
    minimum_kernel: "5.6 (openat2, to stay inside of a container's root)",
    cost: "one small file for each container",
    tax_base: TaxBase::ActiveTime,
    scope: Scope::Platform,
    evaluate,
};

fn evaluate(window: &Window) -> Vec<Diagnosis> {
    let pairs: Vec<Pair> = window.databases().collect();
    pairs.iter().flat_map(|pair| evaluate_one(window, &pairs, pair)).collect()
}

fn evaluate_one(window: &Window, pairs: &[Pair], pair: &Pair) -> Vec<Diagnosis> {
    let id = Some(pair.end.id.as_str());
    let Some(container) = &pair.end.container else { return Vec::new() };
    let digest = match &pair.end.machine_id {
        untax_core::Reading::Present(digest) => digest,
        // An image without one is as it should be.
        untax_core::Reading::Absent(_) => return Vec::new(),
        gap => return without_tax::unmeasured(RULE.id, id, gap.why().unwrap_or_default()),
    };
    let shares = |other: &&Pair| {
        other.end.container.as_ref().is_some_and(|other| other.id != container.id)
            && other.end.machine_id.value() == Some(digest)
    };
    let mut sharing: Vec<String> = pairs
        .iter()
        .filter(shares)
        .map(|other| format!("the container of {}", other.end.id))
        .collect();
    let of_host = window.end.host.machine_id.value() == Some(digest);
    // A container that was given the host's own file has it on purpose.
    let severity = if sharing.is_empty() || of_host { Severity::Info } else { Severity::Low };
    if of_host {
        sharing.push("its host".to_owned());
    }
    if sharing.is_empty() {
        return Vec::new();
    }
    let source = format!("/proc/{}/root/etc/machine-id", pair.end.pid);
    let words = Words {
        severity,
        summary: format!("its container has the same machine-id as {}", sharing.join(" and ")),
        fix: "empty /etc/machine-id in the image; run systemd-machine-id-setup in the clone"
            .to_owned(),
        evidence: vec![
            Evidence::new(&evidence::DIGEST, digest.as_str(), source),
            Evidence::new(&evidence::SHARED_WITH, sharing.join(", "), "the same file there"),
        ],
        gain: None,
        remedy: Some("machine-id"),
        why: "an identity takes no time; clashes because of it do",
    };
    without_tax::finding_and_gap(RULE.id, id, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_window;
    use untax_core::database::Container;
    use untax_core::{Finding, Reading};

    /// Two databases in these containers with these digests, on a host with that one.
    fn found(containers: [&str; 2], digests: [&str; 2], host: &str) -> Vec<Finding> {
        let mut window = test_window::postgres();
        window.end.host.machine_id = Reading::Present(host.to_owned());
        let mut second = window.end.databases[0].clone();
        second.id = "postgres:8".to_owned();
        window.end.databases.push(second);
        for (n, database) in window.end.databases.iter_mut().enumerate() {
            let (id, runtime) = (containers[n].to_owned(), "runc".to_owned());
            database.container = (!id.is_empty()).then_some(Container { id, runtime });
            database.machine_id = Reading::Present(digests[n].to_owned());
        }
        test_window::found(evaluate(&window))
    }

    #[test]
    fn containers_that_share_an_id_are_both_told() {
        let findings = found(["a", "b"], ["feed", "feed"], "c0de");
        assert_eq!(findings.len(), 2);
        assert!(findings[0].summary.ends_with("as the container of postgres:8"));
        assert_eq!(findings[1].severity, Severity::Low);
        assert!(found(["a", "b"], ["feed", "face"], "c0de").is_empty());
        assert!(found(["a", "a"], ["feed", "feed"], "c0de").is_empty(), "it is one container");
        assert!(found(["", ""], ["feed", "feed"], "feed").is_empty(), "it is one machine");
    }

    #[test]
    fn the_hosts_own_file_is_worth_knowing_and_no_more() {
        let findings = found(["a", "b"], ["c0de", "face"], "c0de");
        assert_eq!((findings.len(), findings[0].severity), (1, Severity::Info));
        assert!(findings[0].summary.ends_with("as its host"));
    }
}
