//! The state of the view, and what events make of it.

use super::history::{History, MOST_WINDOWS};
use super::{detail, list};
use std::cmp::Ordering;
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
    /// Shows what keys mean.
    Help,
    /// Any other: means nothing but that somebody is there.
    Other,
}

/// What the databases are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    Tax,
    Name,
    Active,
}

impl Sort {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tax => "tax",
            Self::Name => "name",
            Self::Active => "active",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Tax => Self::Name,
            Self::Name => Self::Active,
            Self::Active => Self::Tax,
        }
    }
}

/// A row of the list: a database or the host, or one of its causes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub key: u64,
    pub rule: Option<String>,
}

/// What fills the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    List,
    /// What is selected, from this line on.
    Detail(usize),
}

/// The history of the host; databases have higher numbers.
const HOST: u64 = 0;

/// For so many windows something is told that was said beside one.
const NOTED: u32 = 12;

/// Everything that the view shows.
#[derive(Debug, Clone)]
pub struct State {
    pub(super) size: (u16, u16),
    pub(super) histories: Vec<History>,
    /// The latest window, without what the histories hold.
    pub(super) latest: Option<Box<Check>>,
    pub(super) sort: Sort,
    pub(super) selected: Option<Row>,
    pub(super) page: Page,
    pub(super) help: bool,
    /// Windows that wait while the picture is held.
    pub(super) held: Option<Vec<(Box<Check>, Vec<String>)>>,
    /// What was said beside the windows, and how many windows ago last.
    pub(super) notes: Vec<(String, u32)>,
    next_key: u64,
    over: bool,
}

impl State {
    /// The view of a terminal of so many columns and rows, before the first window.
    pub fn new(columns: u16, rows: u16) -> Self {
        Self {
            size: (columns, rows),
            histories: vec![History::new(HOST)],
            latest: None,
            sort: Sort::Tax,
            selected: None,
            page: Page::List,
            help: false,
            held: None,
            notes: Vec::new(),
            next_key: HOST + 1,
            over: false,
        }
    }

    /// Whether the view was ended.
    pub fn is_over(&self) -> bool {
        self.over
    }

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
        }
        self.settle();
        self
    }

    fn press(&mut self, key: Key) {
        match (key, self.page) {
            (Key::Quit, _) => self.over = true,
            _ if self.help => self.help = false,
            (Key::Help, _) => self.help = true,
            (Key::Back, Page::List) => self.over = true,
            (Key::Back | Key::Open, Page::Detail(_)) => self.page = Page::List,
            (Key::Open, Page::List) if self.selected.is_some() => self.page = Page::Detail(0),
            (Key::Open, Page::List) | (Key::Other, _) => {}
            (Key::Pause, _) => match self.held.take() {
                Some(held) => held.into_iter().for_each(|(check, notes)| self.take(check, notes)),
                None => self.held = Some(Vec::new()),
            },
            (Key::Sort, _) => self.sort = self.sort.next(),
            (Key::Move(by), Page::Detail(from)) => {
                self.page = Page::Detail(from.saturating_add_signed(by.into()));
            }
            (Key::Move(by), Page::List) => self.select(by),
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
            self.page = Page::List;
        }
        if let Page::Detail(from) = self.page {
            let most = detail::lines(self).len().saturating_sub(self.body().into());
            self.page = Page::Detail(from.min(most));
        }
    }

    /// Rows between the first line and the last.
    pub(super) fn body(&self) -> u16 {
        self.size.1.saturating_sub(2)
    }

    pub(super) fn history(&self, key: u64) -> Option<&History> {
        self.histories.iter().find(|history| history.key == key)
    }

    /// The databases in their order, those that ended after the others, and the host if something
    /// was found for it.
    pub(super) fn in_order(&self) -> Vec<&History> {
        let mut all: Vec<&History> =
            self.histories.iter().filter(|history| history.key != HOST).collect();
        let tax = |history: &History| {
            let tax = history.checked.as_ref().and_then(|db| db.tax.as_ref());
            tax.map_or(-1.0, |tax| tax.share)
        };
        let active = |history: &History| {
            let active = history.now().and_then(|now| now.active.value().copied());
            active.unwrap_or(-1.0)
        };
        all.sort_by(|a, b| {
            let by = match self.sort {
                Sort::Tax => tax(b).total_cmp(&tax(a)),
                Sort::Active => active(b).total_cmp(&active(a)),
                Sort::Name => Ordering::Equal,
            };
            let names = a.name().cmp(&b.name()).then(a.key.cmp(&b.key));
            a.ended.is_some().cmp(&b.ended.is_some()).then(by).then(names)
        });
        all.extend(self.history(HOST).filter(|host| !host.causes.is_empty()));
        all
    }

    /// The rows of the list, in their order.
    pub(super) fn rows(&self) -> Vec<Row> {
        list::rows(self)
    }

    /// Whether there is no database, and none that has ended.
    pub(super) fn is_without_any(&self) -> bool {
        self.histories.iter().all(|history| history.key == HOST)
    }

    /// Databases that are there.
    pub(super) fn databases(&self) -> usize {
        self.histories
            .iter()
            .filter(|history| history.key != HOST && history.ended.is_none())
            .count()
    }
}
