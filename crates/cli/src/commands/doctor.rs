//! `untax doctor`.

use crate::Outcome;
use crate::needs::{NEEDS, Need};
use crate::screen::{print, print_json, style};
use serde::Serialize;
use untax_core::Reading;
use untax_host::Host;
use untax_report::terminal::wrap;

/// Arguments of `untax doctor`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 untax sees everything here; 1 something is missing; 3 bad usage.\n\n\
                        Example:\n  untax doctor"
)]
pub struct Args {
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// The schema's name and version.
const SCHEMA: &str = "untax.doctor/1";

/// The needs as JSON.
#[derive(Serialize, schemars::JsonSchema)]
struct Needs {
    schema: &'static str,
    needs: Vec<Seen>,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Seen {
    id: &'static str,
    state: Reading<String>,
    lets: &'static str,
    without: &'static str,
    get: &'static str,
}

/// The JSON Schema of what is printed.
pub fn schema() -> schemars::Schema {
    crate::json_schema::of::<Needs>()
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let host = Host::live();
    let look = |need: &Need| Seen {
        id: need.id,
        state: (need.look)(&host),
        lets: need.lets,
        without: need.without,
        get: need.get,
    };
    let seen: Vec<Seen> = NEEDS.iter().map(look).collect();
    let lacks = seen.iter().any(|seen| !seen.state.is_present());
    if args.json {
        print_json(&Needs { schema: SCHEMA, needs: seen })?;
    } else {
        print(&text(&seen))?;
    }
    Ok(if lacks { Outcome::Findings } else { Outcome::Clean })
}

/// The width of the column of names.
const COLUMN: usize = 16;

fn text(seen: &[Seen]) -> String {
    let room = style().width.saturating_sub(COLUMN).max(COLUMN);
    let mut text = String::new();
    for seen in seen {
        let lines = match &seen.state {
            Reading::Present(state) => vec![format!("yes: {state}; untax can {}", seen.lets)],
            state => vec![
                format!("no: {}", state.why().unwrap_or_default()),
                format!("without it {}", seen.without),
                format!("to get it: {}", seen.get),
            ],
        };
        let wrapped = lines.iter().flat_map(|line| wrap(line, room, usize::MAX));
        for (n, line) in wrapped.enumerate() {
            let name = if n == 0 { seen.id } else { "" };
            text += &format!("{name:<COLUMN$}{line}\n");
        }
    }
    text
}
