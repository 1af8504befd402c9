use super::*;
use crate::platform::measured::Measured;
use crate::platform::placement::{Cpus, Placement};
use crate::platform::schema::{CellState, TrialResult};

/// Two arms of a series and one of none; blocks differ by what they add to all arms alike.
fn example(numbers: &[u32], value: impl Fn(u32, u32) -> f64) -> (Vec<Arm>, CellResult) {
    let step =
        |number| Step { series: "services".to_owned(), counts: "services".to_owned(), number };
    let mut arms = vec![Arm::new("wire", "none")];
    arms.extend(numbers.iter().map(|number| Arm {
        step: Some(step(*number)),
        ..Arm::new(&format!("services-{number}"), "a service")
    }));
    let result = |arm: &Arm| {
        let number = arm.step.as_ref().map_or(0, |step| step.number);
        let values: Vec<f64> = (0..7).map(|block| value(number, block)).collect();
        let trial = |(block, value): (usize, &f64)| TrialResult {
            block: block as u32,
            measured: Measured::of(*value),
            spoiled: Vec::new(),
        };
        ArmResult {
            arm: arm.id.clone(),
            state: CellState::Measured,
            why: None,
            value: stats::median_interval(&values).map(Into::into),
            extras: Vec::new(),
            explained: None,
            ratio: None,
            trials: values.iter().enumerate().map(trial).collect(),
        }
    };
    let cell = CellResult {
        workload: "crr".to_owned(),
        summary: String::new(),
        unit: "us".to_owned(),
        better: Better::Lower,
        explains: false,
        placement: Placement::OneCpu,
        cpus: Cpus::default(),
        state: CellState::Measured,
        why: None,
        blocks: 7,
        arms: arms.iter().map(result).collect(),
        stands_for: None,
        published: Vec::new(),
        noise: None,
        aa: None,
    };
    (arms, cell)
}

#[test]
fn the_slope_is_what_a_thousand_add_whatever_a_block_adds_to_all() {
    let (arms, cell) = example(&[1, 100, 1000], |number, block| {
        20.0 + f64::from(number) * 0.01 + f64::from(block * block)
    });
    let lines = of(&arms, &[cell]);
    assert_eq!(lines.len(), 1);
    let line = &lines[0];
    assert!((line.per_thousand.median - 10.0).abs() < 1e-9, "{line:?}");
    assert!(line.per_thousand.high - line.per_thousand.low < 1e-9, "{line:?}");
    assert_eq!((line.blocks, line.numbers), (7, [1, 1000]));
    assert!(line.at_none.low < 21.0 && line.at_none.high > 29.0, "{line:?}");
}

#[test]
fn a_cost_that_is_no_line_says_how_far_it_is_from_one() {
    let (arms, cell) = example(&[1, 100, 10_000], |number, _| if number > 1 { 40.0 } else { 20.0 });
    assert!(of(&arms, &[cell])[0].most_apart > 0.2);
}

#[test]
fn one_number_makes_no_line() {
    let (arms, cell) = example(&[100], |_, _| 20.0);
    assert!(of(&arms, &[cell]).is_empty());
}
