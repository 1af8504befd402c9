//! The screen of `untax verify`.

use super::Style;
use super::screen::{Ink, Screen, span};
use crate::format;
use untax_core::Gain;
use untax_core::sleeps::Summary;
use untax_core::verdict::{LEAST_PAIRS, Verification, Word};

/// Where labels end.
const COLUMN: usize = 14;

/// What trials with and without a plan showed.
pub fn verification(result: &Verification, style: Style) -> String {
    let mut screen = Screen::new(style);
    let verdict = &result.verdict;
    let ink = match verdict.word {
        Word::Proven => Ink::Green,
        Word::Disproven => Ink::Red,
        Word::Inconclusive => Ink::Yellow,
    };
    let measured = format::gain(&Gain::measured(verdict.measured));
    screen.line(&[
        span(ink, format::verdict(verdict.word)),
        span(Ink::Bold, format!(": {measured}, {} pairs", verdict.pairs)),
    ]);
    screen.blank();
    let mut say = |label: &str, text: &str| screen.labelled(label, COLUMN, Ink::Plain, text, 4);
    let compared = format::compared(result);
    say("Measured", &format!("{measured} ({}), {compared}", result.measure));
    for (label, text) in result.affinity.iter().flat_map(|one| format::affinity(one)) {
        say(label, &text);
    }
    let predicted = result.predicted.as_ref().map(format::gain);
    say("Predicted", &predicted.unwrap_or_else(|| format::NOT_MEASURED.to_owned()));
    let floor = format::percent(verdict.floor);
    say("Noise", &format!("such a median strays by up to {floor} without any change"));
    if let Some(power) = &result.power {
        say("Power", &format::power(power));
    }
    for (applied, arm) in [(false, "without"), (true, "with it")] {
        let of = result.trials.iter().filter(|trial| trial.applied == applied);
        if let Some(sleeps) = Summary::of(of.filter_map(|trial| trial.sleeps.as_ref())) {
            say(if applied { "" } else { "Idle CPUs" }, &format!("{arm}: {sleeps}"));
        }
    }
    for trial in result.trials.iter().filter(|trial| !trial.counts()) {
        let reasons = format::guards(&trial.spoiled);
        say("Spoiled", &format!("a trial of pair {}, left out: {reasons}", trial.pair + 1));
    }
    say("Next", &next(result));
    screen.finish()
}

fn next(result: &Verification) -> String {
    if let (Word::Proven, Some(affinity)) = (result.verdict.word, &result.affinity) {
        let instances =
            affinity.preferred.iter().map(|(name, cpus)| format!(" --instance {name}={cpus}"));
        return format!("untax steer{}", instances.collect::<String>());
    }
    match (result.verdict.word, &result.receipt) {
        (Word::Proven, Some(receipt)) => {
            format!("keep it: the plan is applied, as before; untax undo {receipt} takes it back")
        }
        (Word::Disproven, Some(receipt)) => {
            format!("untax undo {receipt}: the plan is applied, as before, and it does harm")
        }
        (Word::Proven, None) => format!("untax apply {}", result.plan),
        (Word::Disproven, None) => {
            "leave it: what was tried was undone, and the host is as before".to_owned()
        }
        (Word::Inconclusive, _) if result.verdict.pairs < LEAST_PAIRS => {
            format!("at least {LEAST_PAIRS} pairs are needed: --pairs, --budget")
        }
        (Word::Inconclusive, _) => {
            "more or longer trials, or a quieter machine: the gain, if there is one, is \
             smaller than the noise"
                .to_owned()
        }
    }
}
