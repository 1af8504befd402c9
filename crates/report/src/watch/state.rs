//! The state of the view.

use super::history::History;
use super::steered::Steered;
use crate::{facts, summary};
use std::cmp::Ordering;
use untax_core::Check;

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

    pub(super) fn next(self) -> Self {
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
    /// A text, from this line on.
    Text(usize),
}

/// Which databases are shown.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    /// Those whose line holds this, whatever its case.
    pub(super) filter: String,
    /// Whether the filter is being typed.
    pub(super) is_typing: bool,
    pub(super) hides_idle: bool,
}

/// The history of the host; databases have higher numbers.
pub(super) const HOST: u64 = 0;

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
    /// The databases that are steered now.
    pub(super) steered: Vec<Steered>,
    pub(super) next_key: u64,
    pub(super) over: bool,
    pub(super) shown: Shown,
    /// What is left of the first window, seconds.
    pub(super) waiting_s: Option<u64>,
    /// What [`Page::Text`] shows.
    pub(super) text: String,
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
            steered: Vec::new(),
            next_key: HOST + 1,
            over: false,
            shown: Shown::default(),
            waiting_s: None,
            text: String::new(),
        }
    }

    /// Whether the view was ended.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Whether keys are characters of a filter now.
    pub fn is_typing(&self) -> bool {
        self.shown.is_typing && !self.help
    }

    /// The rule of the selected cause; `None` where a database is selected.
    pub fn selected_rule(&self) -> Option<&str> {
        self.selected.as_ref()?.rule.as_deref()
    }

    /// Whether no window has ended yet.
    pub fn is_waiting(&self) -> bool {
        self.latest.is_none()
    }

    /// Whether a database is shown.
    fn is_shown(&self, history: &History) -> bool {
        let Some(db) = history.checked.as_deref() else { return true };
        let line = || format!("{} {}", history.name(), facts::database_line(db).join(" "));
        let fits = || line().to_lowercase().contains(&self.shown.filter.to_lowercase());
        !(self.shown.hides_idle && summary::is_idle(db)) && (self.shown.filter.is_empty() || fits())
    }

    /// How many databases are not shown.
    pub(super) fn hidden(&self) -> usize {
        self.histories.iter().filter(|history| !self.is_shown(history)).count()
    }

    /// Rows between the first line and the last.
    pub(super) fn body(&self) -> u16 {
        self.size.1.saturating_sub(2)
    }

    /// How a database is steered; `None` where it is not, or has ended.
    pub(super) fn steered(&self, history: &History) -> Option<&Steered> {
        let db = history.checked.as_deref().filter(|_| history.ended.is_none())?;
        self.steered.iter().find(|steered| steered.pid == db.pid)
    }

    pub(super) fn history(&self, key: u64) -> Option<&History> {
        self.histories.iter().find(|history| history.key == key)
    }

    /// The databases in their order, those that ended after the others, and the host if something
    /// was found for it.
    pub(super) fn in_order(&self) -> Vec<&History> {
        let mut all: Vec<&History> =
            self.histories.iter().filter(|h| h.key != HOST && self.is_shown(h)).collect();
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
        let of = |history: &History| {
            let key = history.key;
            let rules = history.causes().into_iter().map(|cause| Some(cause.finding.rule.clone()));
            let rows = std::iter::once(None).chain(rules).map(move |rule| Row { key, rule });
            rows.collect::<Vec<Row>>()
        };
        self.in_order().into_iter().flat_map(of).collect()
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
