//! The screen of `untax bench locality`.

use super::schema::{LocalityBench, Step};
use super::words;
use untax_report::terminal::screen::{Ink, Screen, span};
use untax_report::terminal::{self, Style};
use untax_report::{facts, format};

/// Where the text behind a label begins.
const COLUMN: usize = 14;

/// What was done beside what the timeline says of it, and the timeline itself.
pub(super) fn screen(bench: &LocalityBench, style: Style) -> String {
    let mut screen = Screen::new(style);
    screen.labelled("", 0, Ink::Bold, &format!("{}.", words::headline(bench)), 2);
    if !bench.complete {
        let note = "Interrupted: the steps made so far are shown.";
        screen.labelled("", 2, Ink::Yellow, note, 1);
    }
    for one in &bench.steps {
        screen.blank();
        step(&mut screen, one);
    }
    for other in &bench.others {
        screen.blank();
        let text = format!("nothing was done, and the timeline says: {}", words::change(other));
        screen.labelled(&format!("  {}", words::clock(other.from)), COLUMN, Ink::Red, &text, 2);
        screen.labelled("", COLUMN, Ink::Plain, &words::levels(&other.levels), 1);
    }
    screen.blank();
    for guard in &bench.guards {
        let ink = if guard.failed { Ink::Red } else { Ink::Green };
        screen.labelled("Guard", COLUMN, ink, &words::guard(guard), 2);
    }
    for warning in &bench.warnings {
        screen.labelled("Warning", COLUMN, Ink::Yellow, &warning.text, 3);
    }
    screen.segments("Scene", COLUMN, Ink::Plain, &words::scene(&bench.scene));
    screen.labelled("Watched", COLUMN, Ink::Plain, &words::schedule(bench), 2);
    screen.labelled("Recording", COLUMN, Ink::Plain, &bench.recording, 2);
    let host = [
        facts::short_model(&bench.cpu_model),
        format!("kernel{}{}", format::THIN, bench.kernel_release),
        format!("run {}", bench.run),
    ];
    screen.segments("Host", COLUMN, Ink::Dim, &host);
    screen.blank();
    screen.line(&[span(Ink::Bold, "What untax timeline says")]);
    screen.finish() + &terminal::timeline(&bench.timeline, style)
}

fn step(screen: &mut Screen, step: &Step) {
    let at = format!("  {}", words::clock(step.from));
    screen.labelled(&at, COLUMN, Ink::Plain, &step.text, 2);
    let client = step.client.as_ref().map(words::levels);
    let client = client.map_or("too short to tell".to_owned(), |text| format!("{text} requests/s"));
    screen.labelled("    clients", COLUMN, Ink::Plain, &client, 1);
    let ink = match (&step.seen, step.named) {
        (None, _) => Ink::Red,
        (Some(_), false) => Ink::Yellow,
        (Some(_), true) => Ink::Green,
    };
    let seen =
        step.seen.as_ref().map(|seen| format!("{} requests/s, ", words::levels(&seen.levels)));
    let text = seen.unwrap_or_default() + &words::verdict(step);
    screen.labelled("    timeline", COLUMN, ink, &text, 3);
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn each_step_stands_beside_what_the_timeline_says_of_it() {
        let screen = screen(&example::bench(), Style { colour: false, width: 100 });
        for expected in [
            "found 3 of 4 steps and named 2 rightly; 1 other change was found, which nobody made",
            "the CPU limit is raised from 0.08 to 1.10 CPUs",
            "250 → 512 requests/s, a step, 0.4 windows off: cpu-limit (98 % of the change)",
            "cache, which is wrong",
            "nothing within two windows",
            "nothing was done, and the timeline says: a step: unexplained",
            "named < 4: failed, counted 2",
            "What untax timeline says",
        ] {
            assert!(screen.contains(expected), "{expected}: {screen}");
        }
    }

    #[test]
    fn a_result_that_was_interrupted_says_so() {
        let bench = LocalityBench { complete: false, ..example::bench() };
        assert!(screen(&bench, Style::default()).contains("Interrupted: the steps made so far"));
    }
}
