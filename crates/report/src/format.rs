//! How numbers and other people's text are written, in the terminal and in HTML alike.

use std::borrow::Cow;
use std::fmt::Write;
use untax_core::bench::Estimate;
use untax_core::evidence::Value;
use untax_core::guards::Guard;
use untax_core::power::Power;
use untax_core::verdict::{Affinity, Verdict, Verification, Word};
use untax_core::{Bytes, Evidence, Finding, Gain, Reading, Seconds, Tax, page_size};

/// Narrow no-break space: groups digits and ties a number to its unit. The terminal prints it as
/// a plain space once lines are broken.
pub const THIN: char = '\u{202f}';

/// What stands where a tax was not measured. Never a number.
pub const NOT_MEASURED: &str = "not measured";

/// A share as a percentage, such as `14 %`; finer below ten per cent.
pub fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.0005 {
        return format!("<0.1{THIN}%");
    }
    let decimals = usize::from(share.abs() < 0.0995);
    format!("{:.decimals$}{THIN}%", share * 100.0)
}

/// A tax with its interval, such as `14 % (9–21 %)`.
pub fn tax(tax: &Tax) -> String {
    let (mid, low, high) = (tax.share * 100.0, tax.low * 100.0, tax.high * 100.0);
    if ![mid, low, high].iter().all(|v| v.is_finite()) {
        return NOT_MEASURED.to_owned();
    }
    let modelled = if tax.modelled { ", modelled" } else { "" };
    let interval_is_a_point = tax.low.total_cmp(&tax.high).is_eq();
    if interval_is_a_point {
        return format!("{}{modelled}", percent(tax.share));
    }
    if tax.is_unknown_in_size() {
        return format!("size unknown ({}){modelled}", bounds(tax));
    }
    let decimals = usize::from(mid < 9.95 || high - low < 2.0);
    format!("{mid:.decimals$}{THIN}% ({low:.decimals$}–{high:.decimals$}{THIN}%){modelled}")
}

/// The bounds of a tax, such as `0.9–87 %`.
pub fn bounds(tax: &Tax) -> String {
    let [low, high] = [tax.low, tax.high].map(percent);
    format!("{}–{high}", low.trim_end_matches('%').trim_end_matches(THIN))
}

/// A tax where there is room for one number: its share, or where the size is unknown, its bounds.
pub fn tax_in_short(tax: &Tax) -> String {
    if tax.is_unknown_in_size() { bounds(tax) } else { percent(tax.share) }
}

/// A tax that may be unknown.
pub fn tax_or_not(measured: Option<&Tax>) -> String {
    measured.map_or_else(|| NOT_MEASURED.to_owned(), tax)
}

/// A ratio with its interval, such as `1.12× (1.07–1.19)`.
pub fn ratio(mid: f64, low: f64, high: f64) -> String {
    format!("{mid:.2}× ({low:.2}–{high:.2})")
}

/// A predicted gain with its interval.
pub fn gain(gain: &Gain) -> String {
    ratio(gain.factor, gain.low, gain.high)
}

/// Whether a finding's gain of latency says more than that of throughput: where clients think, requests get
/// faster and not more.
pub fn latency_says_more(finding: &Finding) -> bool {
    let factor = |gain: Option<Gain>| gain.map_or(1.0, |gain| gain.factor);
    factor(finding.latency_gain) > LATENCY_SAYS_MORE * factor(finding.gain)
}

const LATENCY_SAYS_MORE: f64 = 1.1;

/// A predicted gain of latency: by how much less time requests take in the database.
pub fn latency_gain(gain: &Gain) -> String {
    format!("{} less time in the database", ratio(gain.factor, gain.low, gain.high))
}

/// What the measured ratio of a verification is of.
pub fn compared(result: &Verification) -> &'static str {
    match result.affinity {
        Some(_) => "soft affinity over none",
        None => "with the plan over without",
    }
}

/// What the other arm of a verification of steering showed, with labels.
pub fn affinity(affinity: &Affinity) -> Vec<(&'static str, String)> {
    let ratio = |verdict: &Option<Verdict>| {
        let measured = verdict.as_ref().map(|verdict| gain(&Gain::measured(verdict.measured)));
        measured.unwrap_or_else(|| NOT_MEASURED.to_owned())
    };
    let cpus = affinity.preferred.iter().map(|(name, cpus)| format!("{name} prefers CPUs {cpus}"));
    vec![
        ("Hard", format!("{}, hard partitions over none", ratio(&affinity.hard))),
        (
            "Soft",
            format!("{}, soft affinity over hard partitions", ratio(&affinity.soft_over_hard)),
        ),
        ("CPUs", cpus.collect::<Vec<_>>().join("; ")),
    ]
}

/// How surely an effect would have been found.
pub fn power(power: &Power) -> String {
    format!(
        "{} more would be found in {} of such verifications, of {} at this noise",
        percent(power.factor - 1.0),
        percent(power.found),
        count_of(power.pairs.into(), "pair")
    )
}

/// The guards that a trial exceeded.
pub fn guards(guards: &[Guard]) -> String {
    guards.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// A whole number in groups of three digits; four digits stay together.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(THIN);
        }
        out.push(digit);
    }
    out
}

/// A count with its noun, such as `1 connection` or `64 connections`.
pub fn count_of(n: u64, noun: &str) -> String {
    format!("{}{THIN}{noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A size, such as `522 MiB`.
pub fn bytes(size: Bytes) -> String {
    size.to_string().replace(' ', &THIN.to_string())
}

/// A duration, such as `6.3 us`.
pub fn seconds(duration: Seconds) -> String {
    duration.to_string().replace(' ', &THIN.to_string())
}

/// Any number with about three significant digits and no needless zeros.
pub fn number(n: f64) -> String {
    match n.abs() {
        _ if !n.is_finite() => "not a number".to_owned(),
        a if a >= 1000.0 && a < u64::MAX as f64 => {
            format!("{}{}", if n < 0.0 { "−" } else { "" }, count(a.round() as u64))
        }
        a if a >= 100.0 => format!("{n:.0}"),
        a if a >= 10.0 => trim_zeros(format!("{n:.1}")),
        a if a >= 0.01 || a == 0.0 => trim_zeros(format!("{n:.2}")),
        _ => format!("{n:.1e}"),
    }
}

fn trim_zeros(decimal: String) -> String {
    if decimal.contains('.') {
        decimal.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        decimal
    }
}

/// A power of a thousand and its letter, so that a group of large numbers can share them.
pub fn magnitude(largest: f64) -> (f64, &'static str) {
    match largest.abs() {
        a if a >= 1e9 => (1e9, "G"),
        a if a >= 1e6 => (1e6, "M"),
        a if a >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    }
}

/// A rate per second with its interval, such as `4.41 M (4.38–4.45)`.
pub fn estimate(e: Estimate) -> String {
    let (scale, letter) = magnitude(e.median);
    let [mid, low, high] = [e.median, e.low, e.high].map(|v| v / scale);
    let decimals = match mid {
        m if m.abs() < 10.0 => 2,
        m => usize::from(m.abs() < 100.0),
    };
    let gap = if letter.is_empty() { String::new() } else { format!("{THIN}{letter}") };
    format!("{mid:.decimals$}{gap} ({low:.decimals$}–{high:.decimals$})")
}

/// The value of a piece of evidence with its unit.
pub fn evidence(e: &Evidence) -> String {
    match &e.value {
        Value::Truth(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Text(text) => text.clone(),
        Value::Count(n) => quantity(*n as f64, || count(*n), &e.unit),
        Value::Number(n) => quantity(*n, || number(*n), &e.unit),
    }
}

fn quantity(n: f64, plain: impl Fn() -> String, unit: &str) -> String {
    match unit {
        "bytes" if n >= 0.0 => bytes(Bytes(n as u64)),
        "share" => percent(n),
        "s" => seconds(Seconds(n)),
        "Hz" => format!("{:.1}{THIN}GHz", n / 1e9),
        "" | "count" => plain(),
        _ if unit.starts_with("1/") => format!("{}{}", plain(), &unit[1..]),
        _ => format!("{}{THIN}{unit}", plain()),
    }
}

/// A page size as the command line spells it, in words: `2m` is `2 MiB`.
pub fn page(token: &str) -> String {
    match token {
        "thp" => "THP".to_owned(),
        other => page_size::from_token(other).map_or_else(|| other.to_owned(), bytes),
    }
}

/// A reading shown by `f`, or `not known`; the reason is for the caller to place.
pub fn value_or_why<T>(reading: &Reading<T>, f: impl FnOnce(&T) -> String) -> String {
    reading.value().map_or_else(|| "not known".to_owned(), f)
}

/// Other people's text made harmless: control characters, and those that change the direction
/// or vanish on the screen, become visible escapes such as `\n` or `\u{1b}`.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_unsafe(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// JSON in which [`clean`]'s characters are escaped as JSON does it: the same value, safe to show.
pub fn clean_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !is_unsafe(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

/// Control characters (Cc) and the format characters (Cf) that hide or reorder text.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// A verdict in a word.
pub fn verdict(word: Word) -> &'static str {
    match word {
        Word::Proven => "Proven",
        Word::Disproven => "Disproven",
        Word::Inconclusive => "Inconclusive",
    }
}

/// Text in ASCII, column for column: for terminals that show nothing else.
pub fn ascii(text: &str) -> String {
    let plain = |c: char| match c {
        _ if c.is_ascii() => c,
        '·' | '–' | '−' | '—' => '-',
        '█' | '▌' => '#',
        '░' => '.',
        '×' => 'x',
        '…' => '~',
        '≥' => '>',
        '≤' => '<',
        '’' | '‘' => '\'',
        _ if c.is_whitespace() => ' ',
        _ => '?',
    };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use untax_core::{EvidenceKind, Interval};

    fn plain(text: &str) -> String {
        text.replace(THIN, " ")
    }

    fn of(share: f64, low: f64, high: f64) -> Tax {
        Tax::new(Interval { low, mid: share, high }, "")
    }

    #[test]
    fn a_modelled_tax_says_so_and_one_of_unknown_size_has_no_middle() {
        let shown = |low, share, high| {
            let tax = of(share, low, high).with_model(true);
            [plain(&super::tax(&tax)), plain(&tax_in_short(&tax))]
        };
        assert_eq!(shown(0.09, 0.33, 0.63), ["33 % (9–63 %), modelled", "33 %"]);
        let unknown = shown(0.009, 0.66, 0.87);
        assert_eq!(unknown, ["size unknown (0.9–87 %), modelled", "0.9–87 %"]);
    }

    #[test]
    fn percents_are_as_fine_as_they_deserve() {
        let shown = [0.0, 0.0001, 0.004, 0.031, 0.0996, 0.14, 1.0].map(|s| plain(&percent(s)));
        assert_eq!(shown, ["0.0 %", "<0.1 %", "0.4 %", "3.1 %", "10 %", "14 %", "100 %"]);
        assert_eq!(plain(&tax(&of(0.14, 0.09, 0.21))), "14 % (9–21 %)");
        assert_eq!(plain(&tax(&of(0.031, 0.02, 0.05))), "3.1 % (2.0–5.0 %)");
        assert_eq!(plain(&tax(&of(0.14, 0.138, 0.143))), "14.0 % (13.8–14.3 %)");
        assert_eq!(tax(&of(f64::NAN, 0.0, 1.0)), NOT_MEASURED);
    }

    #[test]
    fn digits_are_grouped_from_five_on() {
        let shown = [0, 9999, 10_000, 123_456, 100_000_000].map(|n| plain(&count(n)));
        assert_eq!(shown, ["0", "9999", "10 000", "123 456", "100 000 000"]);
        assert_eq!(plain(&count_of(1, "connection")), "1 connection");
        assert_eq!(plain(&count_of(64, "connection")), "64 connections");
    }

    #[test]
    fn numbers_keep_three_digits() {
        let shown = [0.0, 0.5, 0.00012, 12.34, 640.4, 182_340.7, -1500.0].map(number);
        assert_eq!(
            shown.map(|s| plain(&s)),
            ["0", "0.5", "1.2e-4", "12.3", "640", "182 341", "−1500"]
        );
        assert_eq!(number(f64::NAN), "not a number");
    }

    #[test]
    fn estimates_share_one_magnitude() {
        let of = |median: f64| Estimate { median, low: median * 0.99, high: median * 1.02 };
        let shown = [4.41e6, 66.7e6, 670e3, 812.0, 0.97].map(|m| plain(&estimate(of(m))));
        let expected =
            ["4.41 M (4.37–4.50)", "66.7 M (66.0–68.0)", "670 k (663–683)", "812 (804–828)"];
        assert_eq!(shown[..4], expected);
        assert_eq!(shown[4], "0.97 (0.96–0.99)", "a ratio keeps its digits");
    }

    #[test]
    fn evidence_carries_its_unit() {
        let of = |unit, value: Value| {
            Evidence::new(&EvidenceKind { id: "a-kind", name: "a", unit, meaning: "" }, value, "")
        };
        let shown = [
            of("bytes", 547_356_672_u64.into()),
            of("1/s", 182_340.0.into()),
            of("share", 0.11.into()),
            of("s", 6.3e-6.into()),
            of("pages", 3170_u64.into()),
            of("", false.into()),
            of("", "try".into()),
        ]
        .map(|e| plain(&evidence(&e)));
        assert_eq!(shown, ["522 MiB", "182 340/s", "11 %", "6.3 us", "3170 pages", "no", "try"]);
    }

    #[test]
    fn hostile_text_becomes_visible() {
        assert_eq!(clean("plain – ünïcode 数据"), "plain – ünïcode 数据");
        assert_eq!(clean("a\n\u{1b}[2J\u{202e}b\u{9b}"), "a\\n\\u{1b}[2J\\u{202e}b\\u{9b}");
        assert_eq!(clean_json("{\n\"a\u{202e}\u{e0001}\""), "{\n\"a\\u202e\\udb40\\udc01\"");
    }
}
