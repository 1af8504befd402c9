//! The page of `untax bench locality`.

use super::schema::{LocalityBench, Step};
use super::words;
use maud::{Markup, html};
use untax_report::facts;
use untax_report::html::part::{Part, head, line, moment};
use untax_report::html::timeline_sections;

/// What the page says.
pub(super) fn part(bench: &LocalityBench) -> Part {
    let title = words::headline(bench);
    let conditions = [
        moment(&bench.taken_at.to_string()),
        facts::short_model(&bench.cpu_model),
        format!("kernel {}", bench.kernel_release),
    ];
    let body = html! {
        (head("untax bench locality", &title, &conditions))
        (line(&words::scene(&bench.scene)))
        (line(&[words::schedule(bench)]))
        @if !bench.complete { p.warning { "Interrupted: the steps made so far are shown." } }
        @for guard in &bench.guards { p.warning[guard.failed] { (words::guard(guard)) } }
        @for warning in &bench.warnings { p.warning { (warning.text) } }
        section {
            h2 { "What was done, and what the timeline says of it" }
            div.scroll { (steps(bench)) }
            @if !bench.others.is_empty() {
                h3 { "Changes that nobody made" }
                ul {
                    @for other in &bench.others {
                        li {
                            (moment(&other.from.to_string())) ": " (words::levels(&other.levels)) " requests/s, "
                            (words::change(other))
                        }
                    }
                }
            }
        }
        (timeline_sections(&bench.timeline))
        footer { p { "Run " code { (bench.run) } ". Recording " code { (bench.recording) } "." } }
    };
    Part::new(title, body, bench)
}

fn steps(bench: &LocalityBench) -> Markup {
    html! {
        table {
            thead { tr {
                th { "At" } th { "What was done" } th.number { "Clients counted" } th.number { "Timeline" }
                th { "It says" }
            } }
            tbody { @for step in &bench.steps { (row(step)) } }
        }
    }
}

fn row(step: &Step) -> Markup {
    let class = if step.named { "faster" } else { "slower" };
    html! {
        tr class=(class) {
            td { (words::clock(step.from)) }
            td { (step.text) }
            td.number { (step.client.as_ref().map(words::levels).unwrap_or_default()) }
            td.number { (step.seen.as_ref().map(|seen| words::levels(&seen.levels)).unwrap_or_default()) }
            td.verdict { (words::verdict(step)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;

    #[test]
    fn the_page_puts_what_was_done_beside_the_figure_and_holds_the_record() {
        let page = super::part(&example::bench()).page();
        for expected in [
            "What was done, and what the timeline says of it",
            "the CPU limit is raised from 0.08 to 1.10 CPUs",
            "Changes that nobody made",
            "polyline class=\"throughput\"",
            "untax.bench.locality/1",
        ] {
            assert!(page.contains(expected), "{expected}");
        }
    }
}
