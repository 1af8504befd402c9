//! Recording cases anew.

use super::cases::{CASES, Case};
use super::replay;
use crate::bench::program::Untax;
use crate::paths;
use anyhow::bail;
use clap::Args;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// Which cases.
#[derive(Debug, Args)]
pub struct Options {
    /// These cases alone
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    cases: Vec<String>,
    /// Pairs of trials of each
    #[arg(long, value_name = "N", default_value_t = 3)]
    pairs: u32,
}

/// Records them one by one, and goes on where one cannot be had.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let known = |id: &String| CASES.iter().any(|case| case.id == id);
    if let Some(unknown) = options.cases.iter().find(|id| !known(id)) {
        bail!("there is no case {unknown}; xtask/src/truth/cases.rs lists them");
    }
    let untax = Untax::find()?;
    let chosen =
        |case: &&Case| options.cases.is_empty() || options.cases.iter().any(|id| id == case.id);
    std::fs::create_dir_all(replay::folder())?;
    let mut failed = Vec::new();
    for case in CASES.iter().filter(chosen) {
        println!("{}", case.id);
        if let Err(error) = record(&untax, case, options.pairs) {
            println!("{}: {error:#}", case.id);
            failed.push(case.id);
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("not recorded: {}", failed.join(", ")) }
}

fn record(untax: &Untax, case: &Case, pairs: u32) -> anyhow::Result<()> {
    let (pairs, file) = (pairs.to_string(), replay::file(case));
    let file = file.to_string_lossy();
    let rest = ["--pairs", &pairs, "--window", "4s", "--json", "--record", &file];
    let arguments = [&["lab", "run"], case.arguments, &rest].concat();
    let output = untax.command(&arguments).stderr(std::process::Stdio::piped()).output()?;
    // A cause that is not found is a result too.
    if let Some(0 | 1) = output.status.code() {
        return unpin(Path::new(&*file), &paths::cache()?.join("engines"));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    bail!("{}: {}", output.status, said.lines().last().unwrap_or_default())
}

/// Where servers are that no package installs, as any machine could have it.
const ENGINES: &str = "/opt/engines";

/// Takes the place of this machine's servers out of a recording.
fn unpin(file: &Path, engines: &Path) -> anyhow::Result<()> {
    let mut text = String::new();
    GzDecoder::new(File::open(file)?).read_to_string(&mut text)?;
    let Some(text) = anywhere(&text, &engines.to_string_lossy()) else { return Ok(()) };
    let mut zipped = GzEncoder::new(File::create(file)?, Compression::best());
    zipped.write_all(text.as_bytes())?;
    zipped.finish()?;
    Ok(())
}

/// The same without that place; none where it does not occur.
fn anywhere(text: &str, engines: &str) -> Option<String> {
    text.contains(engines).then(|| text.replace(engines, ENGINES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_does_not_say_where_its_machine_keeps_servers() {
        let text = r#"{"program":"/var/cache/ann/engines/mysql9/usr/sbin/mysqld"}"#;
        let unpinned = anywhere(text, "/var/cache/ann/engines").unwrap();
        assert_eq!(unpinned, r#"{"program":"/opt/engines/mysql9/usr/sbin/mysqld"}"#);
        assert_eq!(anywhere(&unpinned, "/var/cache/ann/engines"), None);
    }

    #[test]
    fn a_file_is_written_anew_and_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("case.json.gz");
        let mut zipped = GzEncoder::new(File::create(&file).unwrap(), Compression::fast());
        zipped.write_all(b"[\"/here/engines/a\"]").unwrap();
        zipped.finish().unwrap();
        unpin(&file, Path::new("/here/engines")).unwrap();
        let mut text = String::new();
        GzDecoder::new(File::open(&file).unwrap()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "[\"/opt/engines/a\"]");
    }
}
