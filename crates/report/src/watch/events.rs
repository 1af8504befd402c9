//! What happens to the view, and the state that follows from it.

use super::detail;
use super::history::{History, MOST_WINDOWS};
use super::state::{HOST, Page, State};
use super::steered::Steered;
use untax_core::Check;

/// What happens to the view.
#[derive(Debug, Clone)]
pub enum Event {
    /// A key was pressed.
    Key(Key),
    /// The terminal has so many columns and rows now.
    Resize(u16, u16),
    /// A window was checked; with what a person should know beside it.
    Checked(Box<Check>, Vec<String>),
    /// There is no result for one window, for this reason.
    Gap(String),
    /// The databases that are steered now; none where nobody steers.
    Steered(Vec<Steered>),
    /// The first window is open, over these databases.
    Opened(Box<Check>),
    /// So many seconds are left of the first window.
    Waiting(u64),
    /// A text to show, instead of the list, until somebody goes back.
    Text(String),
}

/// What keys mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Ends the view.
    Quit,
    /// Goes back to the list, and from there out of the view.
    Back,
    /// Holds the picture, or lets it go on.
    Pause,
    /// Sorts by something else.
    Sort,
    /// Selects a row further down, or scrolls.
    Move(i16),
    /// Opens what is selected.
    Open,
    /// Begins to type a filter of databases.
    Filter,
    /// A character of the filter.
    Typed(char),
    /// Takes back the last character of the filter.
    Erase,
    /// Hides idle databases, or shows them again.
    Idle,
    /// Explains the selected cause; the text comes as an [`Event::Text`].
    Explain,
    /// Plans for the last window; likewise.
    Plan,
    /// Saves the last window as a check.
    Export,
    /// Shows what keys mean.
    Help,
    /// Any other: means nothing but that somebody is there.
    Other,
}

/// For so many windows something is told that was said beside one.
const NOTED: u32 = 12;

impl State {
    /// The state after an event.
    #[must_use]
    pub fn after(mut self, event: Event) -> Self {
        match event {
            Event::Key(key) => self.press(key),
            Event::Resize(columns, rows) => self.size = (columns, rows),
            Event::Checked(check, notes) => match &mut self.held {
                Some(held) => {
                    if held.len() >= MOST_WINDOWS {
                        held.remove(0);
                    }
                    held.push((check, notes));
                }
                None => self.take(check, notes),
            },
            Event::Gap(why) => self.note(vec![why]),
            Event::Steered(steered) => self.steered = steered,
            Event::Opened(check) => self.open(&check),
            Event::Waiting(left) => self.waiting_s = Some(left),
            Event::Text(text) => (self.text, self.page) = (text, Page::Text(0)),
        }
        self.settle();
        self
    }

    fn press(&mut self, key: Key) {
        match (key, self.page) {
            (Key::Quit, _) => self.over = true,
            _ if self.help => self.help = false,
            (key, _) if self.shown.is_typing => self.type_filter(key),
            (Key::Help, _) => self.help = true,
            (Key::Back, Page::List) if !self.shown.filter.is_empty() => self.shown.filter.clear(),
            (Key::Back, Page::List) => self.over = true,
            (Key::Back | Key::Open, Page::Detail(_) | Page::Text(_)) => self.page = Page::List,
            (Key::Filter, _) => (self.shown.is_typing, self.page) = (true, Page::List),
            (Key::Idle, _) => self.shown.hides_idle = !self.shown.hides_idle,
            (Key::Open, Page::List) if self.selected.is_some() => self.page = Page::Detail(0),
            // What some of these show comes as an event of its own.
            (Key::Open, Page::List)
            | (
                Key::Explain | Key::Plan | Key::Export | Key::Other | Key::Typed(_) | Key::Erase,
                _,
            ) => {}
            (Key::Pause, _) => match self.held.take() {
                Some(held) => held.into_iter().for_each(|(check, notes)| self.take(check, notes)),
                None => self.held = Some(Vec::new()),
            },
            (Key::Sort, _) => self.sort = self.sort.next(),
            (Key::Move(by), Page::Detail(from)) => {
                self.page = Page::Detail(from.saturating_add_signed(by.into()));
            }
            (Key::Move(by), Page::Text(from)) => {
                self.page = Page::Text(from.saturating_add_signed(by.into()));
            }
            (Key::Move(by), Page::List) => self.select(by),
        }
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Typed(c) => self.shown.filter.push(c),
            Key::Erase => drop(self.shown.filter.pop()),
            Key::Back => {
                self.shown.filter.clear();
                self.shown.is_typing = false;
            }
            Key::Open => self.shown.is_typing = false,
            _ => {}
        }
    }

    /// Shows the databases of the first window before it is over.
    fn open(&mut self, check: &Check) {
        for db in &check.databases {
            self.histories.push(History::opened(self.next_key, db));
            self.next_key += 1;
        }
    }

    fn select(&mut self, by: i16) {
        let rows = self.rows();
        let at = self.selected.as_ref().and_then(|own| rows.iter().position(|row| row == own));
        let to = at.unwrap_or(0).saturating_add_signed(by.into());
        self.selected = rows.get(to.min(rows.len().saturating_sub(1))).cloned();
    }

    /// Shows what was said beside one more window, and forgets what was said long ago.
    fn note(&mut self, notes: Vec<String>) {
        self.notes.iter_mut().for_each(|(_, windows)| *windows += 1);
        self.notes.retain(|(said, windows)| *windows < NOTED && !notes.contains(said));
        self.notes.extend(notes.into_iter().map(|note| (note, 0)));
    }

    /// Takes a window over.
    fn take(&mut self, mut check: Box<Check>, notes: Vec<String>) {
        self.note(notes);
        let databases = std::mem::take(&mut check.databases);
        let mut seen = vec![HOST];
        let mut new = Vec::new();
        for db in &databases {
            // A server goes to its data some time after its start: only then is it known again.
            if self
                .histories
                .iter()
                .any(|history| history.ended.is_some() && history.is_restart_of(db))
            {
                self.histories
                    .retain(|history| !history.is_same_process(db) || history.is_restart_of(db));
            }
            match self.histories.iter_mut().find(|history| history.is_same_process(db)) {
                Some(history) => {
                    history.add_window(db, &check);
                    seen.push(history.key);
                }
                None => new.push(db),
            }
        }
        for db in new {
            let again =
                |history: &History| !seen.contains(&history.key) && history.is_restart_of(db);
            let at = self.histories.iter().position(again).unwrap_or_else(|| {
                self.histories.push(History::new(self.next_key));
                self.next_key += 1;
                self.histories.len() - 1
            });
            self.histories[at].add_window(db, &check);
            seen.push(self.histories[at].key);
        }
        let gone = self.histories.iter_mut().filter(|history| !seen.contains(&history.key));
        gone.for_each(|history| history.add_absence(check.taken_at));
        self.histories
            .iter_mut()
            .filter(|t| t.key == HOST)
            .for_each(|host| host.add_host_window(&check));
        self.histories.retain(|history| history.key == HOST || !history.is_forgotten());
        self.latest = Some(check);
    }

    /// Keeps what is selected and shown within what there is.
    fn settle(&mut self) {
        let rows = self.rows();
        let there = self.selected.as_ref().is_some_and(|row| rows.contains(row));
        if !there {
            // Its database, if the cause is forgotten; else the first row.
            let key = self.selected.as_ref().map(|row| row.key);
            let near = rows.iter().find(|row| Some(row.key) == key);
            self.selected = near.or(rows.first()).cloned();
            if matches!(self.page, Page::Detail(_)) {
                self.page = Page::List;
            }
        }
        let last = |lines: usize| lines.saturating_sub(self.body().into());
        self.page = match self.page {
            Page::List => Page::List,
            Page::Detail(from) => Page::Detail(from.min(last(detail::lines(self).len()))),
            Page::Text(from) => Page::Text(from.min(last(detail::text(self).len()))),
        };
    }
}
