//! The result as XML of `JUnit`, which build servers show.

use super::schema::{CellState, PlatformBench};
use untax_report::format::clean;

/// One test case for each guard in each cell, and one for each arm in each cell: skipped where that was not
/// measured.
pub(super) fn xml(bench: &PlatformBench) -> String {
    let suite = bench.schema.split('/').next().unwrap_or_default();
    let mut cases = String::new();
    let (mut tests, mut failures, mut skipped) = (0, 0, 0);
    for guard in &bench.guards {
        tests += 1;
        let name = attribute(&format!("{} {}", guard.asked, guard.cell.as_deref().unwrap_or("")));
        let said = attribute(&guard.said);
        let inside = if guard.failed {
            failures += 1;
            format!("<failure message={said}/>")
        } else {
            format!("<system-out>{}</system-out>", text(&guard.said))
        };
        cases += &format!("  <testcase classname=\"guards\" name={name}>{inside}</testcase>\n");
    }
    for cell in &bench.cells {
        for arm in &cell.arms {
            tests += 1;
            let class = attribute(&cell.name());
            let name = attribute(&arm.arm);
            let inside = match (arm.state, &arm.value) {
                (CellState::Measured | CellState::Saturated, Some(value)) => {
                    let ratio = arm.ratio.map_or(String::new(), |ratio| {
                        let [factor, low, high] = [ratio.factor, ratio.low, ratio.high];
                        format!(", {factor:.3} ({low:.3}–{high:.3}) {}", ratio.verdict.id())
                    });
                    let said = format!("{} {}{ratio}", value.median, cell.unit);
                    format!("<system-out>{}</system-out>", text(&said))
                }
                (state, _) => {
                    skipped += 1;
                    let why = arm.why.as_deref().unwrap_or(state.id());
                    format!("<skipped message={}/>", attribute(why))
                }
            };
            cases += &format!("  <testcase classname={class} name={name}>{inside}</testcase>\n");
        }
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name={} tests=\"{tests}\" \
         failures=\"{failures}\" skipped=\"{skipped}\">\n{cases}</testsuite>\n",
        attribute(suite)
    )
}

fn attribute(value: &str) -> String {
    format!("\"{}\"", text(value.trim()))
}

/// Text without what XML reads as its own.
fn text(text: &str) -> String {
    let escape = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        '\n' => " ".to_owned(),
        c => c.to_string(),
    };
    clean(text).chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use crate::platform::fake;

    #[test]
    fn a_failed_guard_is_a_failure_and_an_arm_without_a_value_is_skipped() {
        let xml = super::xml(&fake::result());
        assert!(xml.contains("failures=\"1\""), "{xml}");
        assert!(xml.contains("<failure message=\"0.5"), "{xml}");
        assert!(xml.contains("name=\"slow/base &lt; 0.9"), "{xml}");
        assert!(xml.contains("<skipped message="), "{xml}");
    }
}
