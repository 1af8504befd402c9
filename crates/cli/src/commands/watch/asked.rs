//! What keys of the view ask for beyond the view itself: an explanation, a plan, a saved check.

use crate::commands::check::Saved;
use crate::commands::explain;
use crate::state::State;
use untax_remedies::Wish;
use untax_report::terminal::{self, Style};
use untax_report::watch::{self, Event, Key};

/// What a key brings; `None` for one that asks for nothing. `last` is the last window.
pub fn answer(key: Key, view: &watch::State, last: Option<&Saved>, state: &State) -> Option<Event> {
    match key {
        Key::Explain => Some(explanation(view)),
        Key::Plan => Some(last.map_or_else(too_early, plan)),
        Key::Export => Some(last.map_or_else(too_early, |last| export(last, state))),
        _ => None,
    }
}

fn too_early() -> Event {
    Event::Gap("the first window is not over yet".to_owned())
}

fn explanation(view: &watch::State) -> Event {
    match view.selected_rule().and_then(untax_rules::find) {
        Some(rule) => Event::Text(explain::page(rule)),
        None => Event::Gap("select a cause, then press e".to_owned()),
    }
}

fn plan(last: &Saved) -> Event {
    let wish = Wish { significant_only: true, ..Wish::default() };
    let made = untax_remedies::plan(State::new_run("plan"), &last.check, &last.window.end, &wish);
    match made {
        Ok(plan) => {
            let text = terminal::plan(&plan, Style::default());
            Event::Text(format!("{text}\nTo apply it: x saves this check, then untax plan.\n"))
        }
        Err(error) => Event::Gap(format!("no plan: {error}")),
    }
}

fn export(last: &Saved, state: &State) -> Event {
    let run = State::new_run("check");
    let mut check = last.check.clone();
    check.run.clone_from(&run);
    let saved = Saved { check, window: last.window.clone() };
    Event::Gap(match state.save_run(&run, &saved) {
        Ok(_) => format!("saved as {run}: untax plan --from {run}"),
        Err(error) => format!("not saved: {error:#}"),
    })
}
