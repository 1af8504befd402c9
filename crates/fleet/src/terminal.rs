//! A fleet on a terminal.

use crate::fleet::{Cause, Database, Fleet};

/// The longest name of a database that is shown, characters.
const WIDEST: usize = 40;

/// The text. Names come from the fleet: what a terminal would take for a command is for the caller to clean.
pub fn terminal(fleet: &Fleet) -> String {
    let mut text = format!(
        "{} databases on {} nodes, from {}{}\n",
        fleet.databases_total,
        fleet.nodes_total,
        fleet.source,
        fleet.range_s.map_or_else(
            || ", since each agent was started".to_owned(),
            |range_s| format!(", over the last {}", lasting(range_s))
        )
    );
    text.push_str(
        "\nDatabases that lose most to the platform, seconds of active time each second:\n",
    );
    if fleet.databases.is_empty() {
        text.push_str("  none: no cause took any time\n");
    }
    for database in &fleet.databases {
        text.push_str(&line(database));
    }
    text.push_str("\nCauses in the whole fleet:\n");
    for Cause { rule, scope, lost_s_per_s, databases, .. } in &fleet.causes {
        text.push_str(&format!("  {lost_s_per_s:>8.3}  {rule} ({scope}), {databases} databases\n"));
    }
    if let Some(change) = &fleet.change {
        let Cause { rule, lost_s_per_s, databases, fix, .. } = change;
        text.push_str(&format!(
            "\nThe change that frees most: {rule}, {lost_s_per_s:.3} s a second of {databases} databases.\n  {fix}\n"
        ));
    }
    if !fleet.silent.is_empty() {
        text.push_str("\nSilent nodes, whose databases are unknown:\n");
    }
    for silent in &fleet.silent {
        text.push_str(&format!("  {}: {}\n", one_line(&silent.node), silent.why));
    }
    for group in &fleet.duplicate_machine_ids {
        let nodes: Vec<String> = group.nodes.iter().map(|node| one_line(node)).collect();
        let all = nodes.join(", ");
        text.push_str(&format!(
            "\nduplicate-machine-id: {all} have one machine id.\n  {}\n",
            group.fix
        ));
    }
    text
}

/// A period, in seconds where it is short.
fn lasting(seconds: f64) -> String {
    if seconds < 120.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{:.0} minutes", seconds / 60.0)
    }
}

fn line(database: &Database) -> String {
    let share = database.share.map_or_else(
        || "not measured".to_owned(),
        |share| format!("{:.1} % of its time", 100.0 * share),
    );
    let first = database.causes.iter().find(|cause| cause.scope == "platform");
    let cause = first.map_or_else(String::new, |cause| format!(", most of it {}", cause.rule));
    let unknown = if database.state == "unknown" { ", its node is silent now" } else { "" };
    let name: String = one_line(&database.name).chars().take(WIDEST).collect();
    format!(
        "  {:>8.3}  {name:<WIDEST$}  {share}{cause}, node {}{unknown}\n",
        database.lost_s_per_s,
        one_line(&database.node)
    )
}

/// A name without line ends.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::rank;
    use crate::rank::tests::rows;

    #[test]
    fn the_text_says_what_loses_most_to_what_and_who_is_silent() {
        let text = terminal(&rank(&rows(), 10));
        for words in [
            "2 databases on 2 nodes, from a test, over the last 60 minutes",
            "The change that frees most: disk-slow, 0.500 s a second of 2 databases.",
            "most of it small-pages, node b, its node is silent now",
            "b: its last window ended 83 minutes ago",
            "duplicate-machine-id: a, b have one machine id.",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(text.contains("two \"x\" <b>é"), "a name stays on its line: {text}");
        assert_eq!(lasting(1.5), "1.5 s");
    }
}
