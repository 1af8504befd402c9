//! What a bench of page sizes shows, in sentences for the terminal and the page.

use super::schema::{PagesBench, Ratio};
use untax_core::bench::RatioVerdict;
use untax_report::format::{self, THIN, count_of, page};

/// The answer of a page-size bench in one sentence.
pub(super) fn headline(bench: &PagesBench) -> String {
    let best = bench
        .ratios
        .iter()
        .filter(|r| r.verdict == RatioVerdict::Faster)
        .max_by(|a, b| a.factor.total_cmp(&b.factor));
    match best {
        Some(r) => {
            let (of, over) = (page(&r.of), page(&r.over));
            format!("{of} pages read up to {:.2}× as fast as {over} pages here", r.factor)
        }
        None if bench.ratios.is_empty() => "Reads per second by page size".to_owned(),
        None => "No page size beats the others beyond the noise here".to_owned(),
    }
}

/// What each page size is worth: from its smallest to its largest ratio, and how many of them
/// stand clear of the noise.
pub(super) fn page_sizes(bench: &PagesBench) -> Vec<String> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for r in &bench.ratios {
        if !pairs.contains(&(&r.of, &r.over)) {
            pairs.push((&r.of, &r.over));
        }
    }
    pairs.into_iter().map(|(of, over)| one_summary(of, over, &bench.ratios)).collect()
}

fn one_summary(of: &str, over: &str, ratios: &[Ratio]) -> String {
    let same: Vec<_> = ratios.iter().filter(|r| r.of == of && r.over == over).collect();
    let least = same.iter().map(|r| r.factor).fold(f64::INFINITY, f64::min);
    let most = same.iter().map(|r| r.factor).fold(0.0, f64::max);
    let verdicts: Vec<_> = [RatioVerdict::Faster, RatioVerdict::Slower, RatioVerdict::Inconclusive]
        .into_iter()
        .map(|v| (same.iter().filter(|r| r.verdict == v).count(), v.id()))
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| format!("{word} in {n}"))
        .collect();
    let (all, verdicts) = (same.len(), verdicts.join(", "));
    format!("{} over {}: {least:.2}–{most:.2}×; {verdicts} of {all}", page(of), page(over))
}

/// The noise floor in words.
pub(super) fn noise(bench: &PagesBench) -> String {
    let pairs = bench.noise.ratios.len();
    if pairs == 0 {
        return format::NOT_MEASURED.to_owned();
    }
    format!(
        "±{}: 95{THIN}% of medians stray less by chance, judged by {} of one and the same cell",
        format::percent(bench.noise.floor),
        count_of(pairs as u64, "pair")
    )
}

/// The bench's conditions, in segments.
pub(super) fn conditions(bench: &PagesBench) -> Vec<String> {
    let trials = bench.cells.iter().map(|c| c.trials.len()).max().unwrap_or(0);
    vec![
        rows(bench),
        format!("{} access", bench.access),
        format!("one {} per connection", bench.model),
        format!("{} of {} per cell", count_of(trials as u64, "trial"), seconds(bench.trial_s)),
    ]
}

/// How many rows the tables have: one number, or a range where memory set it.
fn rows(bench: &PagesBench) -> String {
    let of_cells = || bench.cells.iter().map(|c| c.rows).filter(|n| *n > 0);
    let least = of_cells().min().unwrap_or(bench.rows);
    let most = of_cells().max().unwrap_or(bench.rows);
    if least == most {
        return format!("{}{THIN}rows", format::count(most));
    }
    format!("{}–{}{THIN}rows", format::count(least), format::count(most))
}

fn seconds(s: f64) -> String {
    format!("{}{}s", format::number(s), THIN)
}
