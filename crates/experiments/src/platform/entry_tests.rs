use super::*;
use crate::platform::fake::Fake;
use clap::Parser;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    common: Arguments,
}

fn arguments(line: &str) -> Arguments {
    let words = std::iter::once("bench").chain(line.split_whitespace());
    Line::try_parse_from(words).unwrap().common
}

fn chosen(line: &str) -> Result<Choice, PlatformError> {
    choose(&arguments(line), &mut Fake::new(&[("base", 1.0), ("slow", 2.0), ("other", 2.0)]))
}

#[test]
fn the_baseline_is_always_among_the_arms() {
    let choice = chosen("--arms slow --workloads work --pin one-cpu,none").unwrap();
    let arms: Vec<&str> = choice.arms.iter().map(|arm| arm.id.as_str()).collect();
    assert_eq!(arms, ["base", "slow"]);
    let cells: Vec<String> = choice.cells.iter().map(|(cell, _)| cell.name()).collect();
    assert_eq!(cells, ["work @ one-cpu", "work @ none"]);
}

#[test]
fn what_does_not_exist_is_refused_with_what_does() {
    for line in
        ["--arms fast", "--workloads play", "--fail-if play:slow/base<1", "--fail-if fast/base<1"]
    {
        let Err(PlatformError::Usage(why)) = chosen(line) else { panic!("{line} was taken") };
        assert!(why.contains("slow") || why.contains("work"), "{why}");
    }
}

#[test]
fn quick_trials_are_shorter_unless_their_length_is_given() {
    let length = |line| chosen(line).unwrap().cells[0].0.workload.trial;
    assert_eq!(length(""), Duration::from_millis(1));
    assert_eq!(length("--quick"), Duration::from_micros(500));
    assert_eq!(length("--quick --trial 3s"), Duration::from_secs(3));
}

#[test]
fn a_result_that_cannot_be_measured_here_says_why_and_can_be_read_again() {
    let result = crate::platform::fake::result();
    let json = serde_json::to_value(&result).unwrap();
    let again = read(json).unwrap();
    assert_eq!(serde_json::from_str::<PlatformBench>(&again.json().unwrap()).unwrap(), result);
    assert_eq!(again.ending(), crate::experiment::Ending::GuardFailed);
}
