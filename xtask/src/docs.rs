//! Documents generated from the definitions they describe, so that they cannot say anything else.

use crate::chart;
use crate::release::manifest;
use crate::test::tiers;
use crate::tidy;
use anyhow::{Context, Result, bail};
use clap_complete::Shell;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use untax::schemas::{FORMATS, Format};

/// Said at the top of each document.
const NOTE: &str = "<!-- Written by `cargo xtask docs`. -->";

/// Writes the documents of the source tree.
pub fn write(root: &Path) -> Result<()> {
    for (path, text) in documents(root)? {
        let file = root.join(&path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, text).context(path)?;
    }
    Ok(())
}

/// Writes manual pages and shell completions into `out`.
pub fn dist(out: &Path) -> Result<()> {
    let (man, completions) = (out.join("man/man1"), out.join("completions"));
    for folder in [&man, &completions] {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    clap_mangen::generate_to(untax::command(), &man)?;
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        clap_complete::generate_to(shell, &mut untax::command(), "untax", &completions)?;
    }
    Ok(())
}

/// Fails when a document of the source tree is not what `write` would write.
pub fn check(root: &Path) -> Result<()> {
    let stale = |(path, text): &(String, String)| {
        fs::read_to_string(root.join(path)).ok().as_ref() != Some(text)
    };
    let stale: Vec<String> =
        documents(root)?.into_iter().filter(stale).map(|(path, _)| path).collect();
    if stale.is_empty() {
        return Ok(());
    }
    bail!("{} is stale; run 'cargo xtask docs' and commit what it writes", stale.join(", "))
}

fn documents(root: &Path) -> Result<Vec<(String, String)>> {
    let pages = [
        ("docs/command-line.md", command_line()),
        ("docs/rules.md", rules()),
        ("docs/facts.md", facts()),
        ("docs/engines.md", engines()),
        ("docs/experiments.md", experiments()),
        ("docs/ids.md", ids()),
        ("docs/untraced.md", untraced()),
        ("docs/metrics.md", metrics()),
        ("deploy/agent.yaml", chart::manifest()?),
        ("docs/testing.md", testing(&tidy::read(root)?)),
        ("docs/results/truth.md", crate::truth::document()?),
        ("docs/schema/index.md", schemas()),
    ];
    let mut documents: Vec<(String, String)> =
        pages.into_iter().map(|(path, text)| (path.to_owned(), text)).collect();
    for format in formats() {
        let text = serde_json::to_string_pretty(&(format.schema)())?;
        documents.push((format!("docs/schema/{}", schema_file(format)), text + "\n"));
    }
    Ok(documents)
}

/// The formats of commands, and that of the manifest of a release.
fn formats() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().chain([&manifest::FORMAT])
}

/// The file of a format's schema.
fn schema_file(format: &Format) -> String {
    format!("{}.json", format.id.replace('/', "-"))
}

fn schemas() -> String {
    let rows = formats().map(|format| {
        let file = schema_file(format);
        format!("| `{}` | {} | [{file}]({file}) |\n", format.id, format.summary)
    });
    format!(
        "{NOTE}\n# Which form has each JSON output?\n\nEach output names its form in `schema`. A JSON Schema \
         (draft 2020-12) of each is beside this page; real outputs are tested against them. [What stays the same \
         between versions](../compatibility.md).\n\n| form | printed by | schema |\n| --- | --- | --- |\n{}",
        rows.collect::<String>()
    )
}

fn testing(tree: &tidy::Tree) -> String {
    format!("{NOTE}\n# What do the tests run, and where?\n\n{}", tiers::page(tree))
}

fn command_line() -> String {
    let options = clap_markdown::MarkdownOptions::new()
        .title("The command line".to_owned())
        .show_footer(false);
    let text = clap_markdown::help_markdown_command_custom(&untax::command(), &options);
    // Examples of the help, which is plain text, are to stay line by line.
    let text = text
        .trim_end()
        .replace("\n  untax ", "\n    untax ")
        .replace("Examples:\n", "Examples:\n\n");
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    format!("{NOTE}\n{}\n", lines.join("\n"))
}

fn rules() -> String {
    let mut text = format!(
        "{NOTE}\n# Rules\n\nThese are the causes that `untax check` looks for; `untax explain \
         RULE` prints the same text.\n"
    );
    for one in untax_rules::RULES {
        text += &rule(one);
    }
    text
}

/// A rule's part of the page: what `untax explain` says.
pub fn rule(rule: &untax_rules::Rule) -> String {
    let mut text = format!("\n## `{}`\n\n{}\n", rule.id, escape(&sentence(rule.summary)));
    for (head, body) in [
        ("How to fix it", rule.fix),
        ("What it is", rule.what),
        ("How it is measured", rule.method),
    ] {
        let _ = write!(text, "\n**{head}.** {}\n", escape(&sentence(body)));
    }
    text.push_str("\n<details><summary>Details and sources</summary>\n\n");
    let _ = writeln!(text, "{}\n", escape(&sentence(rule.measured)));
    for (head, body) in [
        ("Privilege", rule.privilege),
        ("Scope", rule.scope.name()),
        ("Kernel", rule.minimum_kernel),
        ("Cost", rule.cost),
    ] {
        let _ = writeln!(text, "- {head}: {}", escape(body));
    }
    for source in rule.sources {
        let is_address = source.starts_with("http");
        let source = if is_address { format!("<{source}>") } else { escape(source) };
        let _ = writeln!(text, "- source: {source}");
    }
    text.push_str("\n</details>\n");
    text
}

/// Text in which brackets outside of code are no tags.
pub fn escape(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(n, part)| {
        if n % 2 == 0 { part.replace('<', "&lt;").replace('>', "&gt;") } else { part.to_owned() }
    });
    parts.collect::<Vec<_>>().join("`")
}

fn facts() -> String {
    let rows = untax_host::facts::FACTS
        .iter()
        .map(|f| [f.id, f.summary, f.source, f.privilege, f.minimum_kernel, f.cost]);
    let head = ["fact", "what it says", "read from", "privilege", "kernel", "cost"];
    table("Facts", "untax reads these facts of the host before any rule judges them.", head, rows)
}

fn engines() -> String {
    let rows = untax_engines::ENGINES
        .iter()
        .map(|e| [e.id, e.summary, e.privilege, e.minimum_kernel, e.cost]);
    let head = ["engine", "what it is", "privilege", "kernel", "cost"];
    let list = table("Engines", "The kinds of database that are recognised.", head, rows);
    let traits = untax_engines::ENGINES
        .iter()
        .map(|e| [e.id, e.connection_model, e.usual_bottleneck, e.reads, e.unproven]);
    let head = [
        "engine",
        "how it serves connections",
        "usual bottleneck",
        "what untax reads of it alone",
        "not tried",
    ];
    format!("{list}\n{}", self::rows(head, traits))
}

fn experiments() -> String {
    let rows = untax_experiments::EXPERIMENTS
        .iter()
        .map(|e| [e.id, e.summary, e.privilege, e.minimum_kernel, e.cost]);
    let head = ["experiment", "what it shows", "privilege", "kernel", "cost"];
    table("Experiments", "The benchmarks of `untax bench`.", head, rows)
}

fn metrics() -> String {
    let labels = |metric: &untax_agent::Metric| {
        let all: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        all.join(", ")
    };
    let all = untax_agent::METRICS.iter().map(|metric| {
        let kind = metric.kind.name().to_owned();
        let of = metric.of.name().to_owned();
        let texts = [metric.help, metric.source].map(str::to_owned);
        let [help, source] = texts;
        [metric.name(), kind, of, labels(metric), help, source]
    });
    let head = ["metric", "kind", "of", "labels", "what it says", "comes from"];
    format!("{NOTE}\n# Which metrics does the agent export?\n\n{METRICS}\n\n{}", rows(head, all))
}

const METRICS: &str = "\
`untax agent` exports these metrics at `/metrics`, in the OpenMetrics format. Every series has the label
`node`. A series of a database also has `namespace`, `pod`, `container`, `engine` and `database`; the
first three are absent where the database runs in no pod. The label `database` keeps its value over a
restart: `ENGINE@PORT` on a host, `NAMESPACE/POD/CONTAINER` in a cluster.

An absent series does not mean 0: it means that nothing was measured. The tax of a rule over any range
and any number of databases is

    sum(rate(untax_tax_seconds_total{rule=\"disk-slow\"}[1h]))
      / sum(rate(untax_measured_active_seconds_total{rule=\"disk-slow\"}[1h]))

The denominator grows only in windows in which the rule could measure its tax. Where the denominator
does not grow, the quotient is not a number, and `untax_unmeasured` gives the reason.

While `untax bench`, `verify`, `lab` or `demo` runs on the host as root, databases are slow on purpose. A window
that overlaps one is marked: `untax_agent_beside_trial` is 1, and it is counted as `beside-trial`. It adds nothing to
taxes, nor to the active time that they are divided by; all else is told as ever.

An agent exports at most 50 databases of its node, and only those older than 30 s. For each database it
exports at most 155 series, counters before gauges. It counts what it leaves out.";

fn untraced() -> String {
    let all = untax_rules::UNTRACED.iter();
    let rows = all.map(|(rule, says, source)| [*rule, says.words(), *source]);
    let head = ["rule", "without tracing", "goes by"];
    table("What does a check say where nothing is traced?", UNTRACED, head, rows)
}

const UNTRACED: &str = "\
untax traces threads and disks with BPF programs. untax tries to load the programs, and does not guess
from the kernel's version whether it can. A kernel refuses them

- to users without `CAP_BPF` and `CAP_PERFMON`: run untax as root;
- where it lacks a function that they call: that is so before 5.15 (`bpf_task_pt_regs`), unless the
  distribution carried it back;
- where it was built without type information (`CONFIG_DEBUG_INFO_BTF`, `/sys/kernel/btf/vmlinux`);
- where it is locked down for confidentiality (`lockdown=confidentiality`).

A check names the reason, and continues with data from `/proc`, `/sys`, control groups, pressure (PSI)
and the server. A test covers each row of the table. The test takes a traced window in which the rule
finds something, removes the traced data, and compares the results.

In the table, \"the same\" means that the finding and its tax, if it has one, do not need \
tracing. With \"tax unmeasured\", the finding stays, and the reason is given beside it. With \
\"not judged\", the rule finds nothing and gives the reason.";

fn ids() -> String {
    let evidence = untax_rules::EVIDENCE.iter().map(|e| [e.id, e.name, e.unit, e.meaning]);
    let warnings = untax_experiments::EXPERIMENTS.iter().flat_map(|e| e.warnings);
    let warnings = warnings.map(|w| [w.id, w.meaning, w.action]);
    let reasons = untax_core::reason::REASONS.iter().map(|r| [r.id, r.meaning, r.action]);
    format!(
        "{NOTE}\n# Which ids can scripts use?\n\nScripts can rely on ids: a later version may \
         reword a text, but an id stays. `untax check --json` prints the id beside each text.\n\n\
         ## Evidence\n\n`databases[].findings[].evidence[].id` and `findings[].evidence[].id`. One id has \
         one unit. Where several pieces of evidence have the same id, the field `of` names the \
         device, control group, setting or process of each. In the name, `{{of}}` stands for this \
         field.\n\n{}\n\
         ## What was not measured\n\nThese are the values of `databases[].unmeasured[].id` and \
         `unmeasured[].id`; the field `why` holds the reason in words. What is not measured is never 0.\n\n{}\n\
         ## Warnings of benches\n\nThese are the values of `warnings[].id` of `untax bench … \
         --json`; the field `text` holds the warning in words.\n\n{}",
        rows(["id", "name", "unit", "what it says"], evidence),
        rows(["id", "what it means", "what to do"], reasons),
        rows(["id", "what it means", "what to do"], warnings),
    )
}

fn table<const N: usize>(
    title: &str,
    about: &str,
    head: [&str; N],
    all: impl Iterator<Item = [&'static str; N]>,
) -> String {
    format!("{NOTE}\n# {title}\n\n{about}\n\n{}", rows(head, all))
}

fn rows<const N: usize, T: AsRef<str>>(
    head: [&str; N],
    rows: impl Iterator<Item = [T; N]>,
) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "| {} |\n|{}", head.join(" | "), " --- |".repeat(N));
    for mut row in rows.map(|row| row.map(|cell| cell.as_ref().replace('|', "\\|"))) {
        row[0] = format!("`{}`", row[0]);
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

/// Text as a sentence of its own. What begins with a name (`wal_fpi`, gVisor) stays as it is.
fn sentence(text: &str) -> String {
    let text = text.trim();
    let word = text.split(' ').next().unwrap_or_default().trim_end_matches([',', ':']);
    let is_name = !word.chars().all(|c| c.is_ascii_lowercase());
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    let first = if is_name { first.to_owned() } else { first.to_uppercase() };
    let end = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{first}{rest}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_are_fresh() {
        if let Err(e) = check(&crate::paths::root()) {
            panic!("{e}");
        }
    }

    #[test]
    fn names_keep_their_spelling() {
        assert_eq!(sentence("wal_fpi over all, and so on"), "wal_fpi over all, and so on.");
        assert_eq!(sentence("gVisor runs it."), "gVisor runs it.");
        assert_eq!(sentence("traced, over all"), "Traced, over all.");
    }

    #[test]
    fn a_stale_document_is_named_with_what_refreshes_it() {
        let root = tempfile::tempdir().unwrap();
        write(root.path()).unwrap();
        check(root.path()).unwrap();
        fs::write(root.path().join("docs/rules.md"), "old").unwrap();
        let said = check(root.path()).unwrap_err().to_string();
        assert!(said.starts_with("docs/rules.md is stale; run 'cargo xtask docs'"), "{said}");
    }

    #[test]
    fn manual_and_completions_are_written() {
        let out = tempfile::tempdir().unwrap();
        dist(out.path()).unwrap();
        for file in ["man/man1/untax.1", "man/man1/untax-check.1", "completions/untax.bash"] {
            assert!(out.path().join(file).is_file(), "{file}");
        }
    }

    #[test]
    fn a_table_keeps_its_columns() {
        let text = table("T", "About.", ["a", "b"], [["x", "y|z"]].into_iter());
        assert!(text.ends_with("| a | b |\n| --- | --- |\n| `x` | y\\|z |\n"), "{text}");
    }
}
