//! From rows to a fleet: pure.

use crate::fleet::{Cause, Database, Fleet, Group, SCHEMA, Silent};
use crate::row::{Row, Rows};
use std::collections::{BTreeMap, BTreeSet};

/// A node whose last window ended longer ago is silent. Windows of agents are a minute long by default,
/// and a store looks back for five.
const SILENT_AFTER_S: f64 = 600.0;

/// A database: node and name.
type Key = (String, String);

/// Ranks what a source says; gives at most so many databases.
pub fn rank(rows: &Rows, most: usize) -> Fleet {
    let silent = silent(rows);
    let mut databases = databases(rows, &silent);
    databases.sort_by(|a, b| {
        b.lost_s_per_s
            .total_cmp(&a.lost_s_per_s)
            .then_with(|| (&a.node, &a.name).cmp(&(&b.node, &b.name)))
    });
    let counted = databases.len() as u64;
    databases.truncate(most);
    let causes = causes(rows);
    let change = causes.iter().find(|cause| cause.scope == "platform").cloned();
    let nodes: BTreeSet<&str> = rows.ended.iter().map(|row| row.label("node")).collect();
    Fleet {
        schema: SCHEMA,
        source: rows.source.clone(),
        range_s: rows.range_s,
        databases_total: rows.databases.map_or(counted, |count| (count as u64).max(counted)),
        nodes_total: (nodes.len() + rows.unreachable.len()) as u64,
        databases,
        causes,
        change,
        silent,
        duplicate_machine_ids: duplicates(rows),
    }
}

fn silent(rows: &Rows) -> Vec<Silent> {
    let mut last: BTreeMap<&str, f64> = BTreeMap::new();
    for row in &rows.ended {
        let ended = last.entry(row.label("node")).or_insert(f64::NEG_INFINITY);
        *ended = ended.max(row.value);
    }
    let old = last.into_iter().filter_map(|(node, ended_s)| {
        let ago_s = rows.now_s - ended_s;
        (ago_s > SILENT_AFTER_S).then(|| Silent {
            node: node.to_owned(),
            why: format!("its last window ended {:.0} minutes ago", ago_s / 60.0),
        })
    });
    let unreachable = rows.unreachable.iter();
    let unreachable =
        unreachable.map(|(node, why)| Silent { node: node.clone(), why: why.clone() });
    old.chain(unreachable).collect()
}

fn key(row: &Row) -> Key {
    (row.label("node").to_owned(), row.label("database").to_owned())
}

fn databases(rows: &Rows, silent: &[Silent]) -> Vec<Database> {
    let mut all: BTreeMap<Key, Database> = BTreeMap::new();
    let mut of = |row: &Row, change: &dyn Fn(&mut Database)| {
        let database = all.entry(key(row)).or_insert_with(|| unknown(row, silent));
        change(database);
    };
    for row in &rows.active {
        let seconds = row.value;
        of(row, &|database| {
            let sum_s = database.active_s_per_s.unwrap_or(0.0) + seconds;
            database.active_s_per_s = Some(sum_s);
        });
    }
    for row in rows.taxes.iter().filter(|row| row.value > 0.0) {
        of(row, &|database| {
            database.causes.push(cause(row, 1));
            if row.label("scope") == "platform" {
                database.lost_s_per_s += row.value;
            }
        });
    }
    for row in &rows.unmeasured {
        of(row, &|database| database.unmeasured.push(row.label("rule").to_owned()));
    }
    let mut databases: Vec<Database> = all.into_values().collect();
    for database in &mut databases {
        let active = database.active_s_per_s.filter(|active_s| *active_s > 0.0);
        database.share = active.map(|active_s| (database.lost_s_per_s / active_s).clamp(0.0, 1.0));
        sort(&mut database.causes);
        database.unmeasured.sort();
        database.unmeasured.dedup();
    }
    databases
}

fn unknown(row: &Row, silent: &[Silent]) -> Database {
    let node = row.label("node");
    let is_silent = silent.iter().any(|silent| silent.node == node);
    Database {
        name: row.label("database").to_owned(),
        node: node.to_owned(),
        engine: row.label("engine").to_owned(),
        namespace: row.label("namespace").to_owned(),
        pod: row.label("pod").to_owned(),
        state: if is_silent { "unknown" } else { "told" },
        active_s_per_s: None,
        lost_s_per_s: 0.0,
        share: None,
        causes: Vec::new(),
        unmeasured: Vec::new(),
    }
}

fn cause(row: &Row, databases: u64) -> Cause {
    let rule = row.label("rule");
    Cause {
        rule: rule.to_owned(),
        scope: row.label("scope").to_owned(),
        lost_s_per_s: row.value,
        databases,
        fix: untax_rules::find(rule).map_or_else(String::new, |rule| rule.fix.to_owned()),
    }
}

/// The causes of the whole fleet: as the source sums them up, or as its databases' rows do.
fn causes(rows: &Rows) -> Vec<Cause> {
    if !rows.causes.is_empty() {
        let count = |row: &Row| row.label("count").parse().unwrap_or(0);
        let mut causes: Vec<Cause> = rows.causes.iter().map(|row| cause(row, count(row))).collect();
        causes.retain(|cause| cause.lost_s_per_s > 0.0);
        sort(&mut causes);
        return causes;
    }
    let mut all: BTreeMap<(&str, &str), Cause> = BTreeMap::new();
    for row in rows.taxes.iter().filter(|row| row.value > 0.0) {
        let one = all.entry((row.label("rule"), row.label("scope")));
        let one = one.or_insert_with(|| Cause { lost_s_per_s: 0.0, ..cause(row, 0) });
        one.lost_s_per_s += row.value;
        one.databases += 1;
    }
    let mut causes: Vec<Cause> = all.into_values().collect();
    sort(&mut causes);
    causes
}

fn sort(causes: &mut [Cause]) {
    causes.sort_by(|a, b| b.lost_s_per_s.total_cmp(&a.lost_s_per_s));
}

/// What the article about cloned machines advises.
const CLONES: &str = "Empty /etc/machine-id and /var/lib/dbus/machine-id in the template that the nodes were \
                      cloned from, and on each of them but one; then reboot these. Or let the DHCP client \
                      identify itself by its MAC address (systemd-networkd: ClientIdentifier=mac).";

fn duplicates(rows: &Rows) -> Vec<Group> {
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for row in &rows.nodes {
        let id = row.label("machine_id");
        if !id.is_empty() {
            all.entry(id).or_default().insert(row.label("node"));
        }
    }
    let shared = all.into_iter().filter(|(_, nodes)| nodes.len() > 1);
    let group = |(id, nodes): (&str, BTreeSet<&str>)| Group {
        machine_id: id.to_owned(),
        nodes: nodes.into_iter().map(str::to_owned).collect(),
        fix: CLONES.to_owned(),
    };
    shared.map(group).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn row(labels: &[(&str, &str)], value: f64) -> Row {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Row { labels: labels.collect(), value }
    }

    /// A fleet of two nodes, one of which fell silent, with a database each.
    pub(crate) fn rows() -> Rows {
        let of = |node, name| [("node", node), ("database", name), ("engine", "postgres")];
        let tax = |node, name, rule, scope, value| {
            row(&[&of(node, name)[..], &[("rule", rule), ("scope", scope)]].concat(), value)
        };
        Rows {
            source: "a test".to_owned(),
            now_s: 10_000.0,
            range_s: Some(3600.0),
            taxes: vec![
                tax("a", "one", "disk-slow", "platform", 0.2),
                tax("a", "one", "lock-contended", "database", 0.7),
                tax("b", "two \"x\"\n<b>é", "disk-slow", "platform", 0.3),
                tax("b", "two \"x\"\n<b>é", "small-pages", "platform", 0.4),
                tax("a", "one", "vm-steal", "platform", 0.0),
            ],
            active: vec![row(&of("a", "one"), 2.0), row(&of("b", "two \"x\"\n<b>é"), 1.0)],
            unmeasured: vec![row(&[&of("a", "one")[..], &[("rule", "numa-remote")]].concat(), 1.0)],
            ended: vec![row(&[("node", "a")], 9_970.0), row(&[("node", "b")], 5_000.0)],
            nodes: vec![
                row(&[("node", "a"), ("machine_id", "x")], 1.0),
                row(&[("node", "b"), ("machine_id", "x")], 1.0),
                row(&[("node", "c"), ("machine_id", "")], 1.0),
                row(&[("node", "d"), ("machine_id", "")], 1.0),
            ],
            ..Rows::default()
        }
    }

    #[test]
    fn databases_are_ranked_by_the_seconds_that_the_platform_takes() {
        let fleet = rank(&rows(), 10);
        let names: Vec<&str> = fleet.databases.iter().map(|it| it.node.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        let [two, one] = &fleet.databases[..] else { panic!("{fleet:?}") };
        assert!((two.lost_s_per_s - 0.7).abs() < 1e-9 && (two.share.unwrap() - 0.7).abs() < 1e-9);
        assert!((one.lost_s_per_s - 0.2).abs() < 1e-9, "a lock is not the platform's");
        assert_eq!(one.causes[0].rule, "lock-contended", "and is named all the same");
        assert_eq!(one.unmeasured, ["numa-remote"]);
        assert_eq!(rank(&rows(), 1).databases.len(), 1);
        assert_eq!(rank(&rows(), 1).databases_total, 2);
    }

    #[test]
    fn the_change_that_frees_most_is_of_the_platform() {
        let fleet = rank(&rows(), 10);
        assert_eq!(fleet.causes[0].rule, "lock-contended");
        let change = fleet.change.unwrap();
        assert_eq!((change.rule.as_str(), change.databases), ("disk-slow", 2));
        assert!((change.lost_s_per_s - 0.5).abs() < 1e-9 && !change.fix.is_empty());
    }

    #[test]
    fn databases_of_a_silent_node_are_unknown() {
        let mut rows = rows();
        rows.unreachable.push(("c:9871".to_owned(), "does not answer".to_owned()));
        let fleet = rank(&rows, 10);
        let silent: Vec<&str> = fleet.silent.iter().map(|it| it.node.as_str()).collect();
        assert_eq!(silent, ["b", "c:9871"]);
        assert_eq!((fleet.databases[0].state, fleet.databases[1].state), ("unknown", "told"));
        assert_eq!(fleet.nodes_total, 3);
    }

    #[test]
    fn nodes_with_one_machine_id_are_clones_and_an_id_that_is_not_known_is_none() {
        let groups = rank(&rows(), 10).duplicate_machine_ids;
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].nodes, ["a", "b"]);
    }

    #[test]
    fn time_that_is_not_measured_gives_no_share() {
        let mut rows = rows();
        rows.active.clear();
        let fleet = rank(&rows, 10);
        assert!(fleet.databases.iter().all(|database| database.share.is_none()));
        let empty = rank(&Rows::default(), 10);
        assert!(empty.change.is_none() && empty.databases.is_empty());
    }
}
