//! The view on a terminal: keys and windows go in, pictures come out.

use super::asked;
use super::feed::{self, News};
use super::hangup;
use super::screen::Screen;
use super::steering;
use crate::commands::check::Saved;
use crate::recording::Recording;
use crate::state::State;
use anyhow::{Context, bail};
use ratatui::crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};
use untax_pipeline::Options;
use untax_report::watch::{self, Event, Key, Steered};
use untax_trials::Interrupt;

/// How long a key, a signal or a window may wait to be heard.
const HEARING: Duration = Duration::from_millis(100);

/// How often the time left of the first window is said.
const SECOND: Duration = Duration::from_secs(1);

/// Shows the view until it is ended.
pub fn run(options: Options, recording: Option<Recording>, state: &State) -> anyhow::Result<()> {
    let interrupt = &Interrupt::by_signals().context("cannot listen for signals")?;
    let watcher = interrupt.clone();
    std::thread::spawn(move || hangup::watch(&watcher));
    let (sender, news) = channel();
    let (steering, steered) = channel();
    // Without a state directory nobody steers with it.
    let directory = state.directory().map(Path::to_owned).ok();
    let window = options.window;
    std::thread::scope(|scope| {
        // In a thread of its own: a look at the host takes longer than a key may wait.
        let feed = scope.spawn(move || {
            let go_on = || interrupt.check().is_ok();
            feed::run(options, state, recording, go_on, |news| Ok(sender.send(news).is_ok()))
        });
        // Without a first window there is only an error to show.
        let opened = news.recv().ok();
        if let Some(directory) = directory.filter(|_| opened.is_some()) {
            let give = move |now| steering.send(now).is_ok();
            scope.spawn(move || steering::follow(&directory, interrupt, give));
        }
        let heard = Heard { news: &news, steered: &steered, interrupt };
        let shown = opened.map_or(Ok(()), |opened| show(opened, &heard, window, state));
        interrupt.raise();
        match feed.join() {
            Ok(ended) => ended.and(shown),
            Err(_) => bail!("watching ended by a fault of this program"),
        }
    })
}

/// Where events come from, beside the terminal.
struct Heard<'a> {
    news: &'a Receiver<News>,
    steered: &'a Receiver<Vec<Steered>>,
    interrupt: &'a Interrupt,
}

fn show(opened: News, heard: &Heard, window: Duration, state: &State) -> anyhow::Result<()> {
    let (begun, mut last) = (Instant::now(), None);
    let mut screen = Screen::take()?;
    let (columns, rows) = screen.size()?;
    let mut view = watch::State::new(columns, rows);
    if let News::Opened(Some(check)) = opened {
        view = view.after(Event::Opened(check));
    }
    while !view.is_over() {
        screen.draw(&view)?;
        let left = window.saturating_sub(begun.elapsed());
        let first = view.is_waiting().then_some(left);
        let Some(event) = next(heard, view.is_typing(), first, &mut last)? else { break };
        let answer = match event {
            Event::Key(key) if !view.is_typing() => asked::answer(key, &view, last.as_ref(), state),
            _ => None,
        };
        view = view.after(event);
        if let Some(answer) = answer {
            view = view.after(answer);
        }
    }
    Ok(())
}

/// Waits for something to happen; `None` when there will be nothing more. What the rules saw of a window is kept
/// in `last`. Where so much is `left` of the first window, it says so each second.
fn next(
    heard: &Heard,
    typing: bool,
    left: Option<Duration>,
    last: &mut Option<Saved>,
) -> anyhow::Result<Option<Event>> {
    let begun = Instant::now();
    loop {
        match heard.news.try_recv() {
            Ok(News::Checked(check, window, notes)) => {
                *last = Some(Saved { check: (*check).clone(), window: *window });
                return Ok(Some(Event::Checked(check, notes)));
            }
            Ok(News::Gap(why)) => return Ok(Some(Event::Gap(why))),
            Ok(News::Opened(_)) | Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Ok(None),
        }
        if let Ok(now) = heard.steered.try_recv() {
            return Ok(Some(Event::Steered(now)));
        }
        if let Some(left) = left.filter(|_| begun.elapsed() >= SECOND) {
            let left = left.saturating_sub(begun.elapsed());
            return Ok(Some(Event::Waiting(left.as_secs_f64().ceil() as u64)));
        }
        let read = event::poll(HEARING).and_then(|any| any.then(event::read).transpose());
        if heard.interrupt.check().is_err() {
            return Ok(None);
        }
        let read = read.context("the terminal cannot be read")?;
        if let Some(event) = read.and_then(|event| meaning(&event, typing)) {
            return Ok(Some(event));
        }
    }
}

fn meaning(event: &event::Event, typing: bool) -> Option<Event> {
    match *event {
        event::Event::Resize(columns, rows) => Some(Event::Resize(columns, rows)),
        event::Event::Key(key) if key.kind != KeyEventKind::Release => {
            Some(Event::Key(if typing { typed(key) } else { key_of(key) }))
        }
        _ => None,
    }
}

/// What a key means while a filter is typed.
fn typed(key: KeyEvent) -> Key {
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Key::Quit,
        KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::CONTROL) => Key::Typed(c),
        KeyCode::Backspace => Key::Erase,
        KeyCode::Enter => Key::Open,
        KeyCode::Esc => Key::Back,
        _ => Key::Other,
    }
}

fn key_of(key: KeyEvent) -> Key {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return if key.code == KeyCode::Char('c') { Key::Quit } else { Key::Other };
    }
    match key.code {
        KeyCode::Char('q') => Key::Quit,
        KeyCode::Esc => Key::Back,
        KeyCode::Char('p' | ' ') => Key::Pause,
        KeyCode::Char('s') => Key::Sort,
        KeyCode::Char('/') => Key::Filter,
        KeyCode::Char('i') => Key::Idle,
        KeyCode::Char('e') => Key::Explain,
        KeyCode::Char('P') => Key::Plan,
        KeyCode::Char('x') => Key::Export,
        KeyCode::Up | KeyCode::Char('k') => Key::Move(-1),
        KeyCode::Down | KeyCode::Char('j') => Key::Move(1),
        KeyCode::PageUp => Key::Move(-10),
        KeyCode::PageDown => Key::Move(10),
        KeyCode::Home => Key::Move(i16::MIN),
        KeyCode::End => Key::Move(i16::MAX),
        KeyCode::Enter => Key::Open,
        KeyCode::Char('?') => Key::Help,
        _ => Key::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_the_help_says() {
        let plain = |code| key_of(KeyEvent::new(code, KeyModifiers::NONE));
        assert_eq!(plain(KeyCode::Char('q')), Key::Quit);
        assert_eq!(plain(KeyCode::Esc), Key::Back);
        assert_eq!(plain(KeyCode::Char(' ')), plain(KeyCode::Char('p')));
        assert_eq!(plain(KeyCode::Char('j')), plain(KeyCode::Down));
        assert_eq!(plain(KeyCode::Char('k')), plain(KeyCode::Up));
        assert_eq!(plain(KeyCode::Char('/')), Key::Filter);
        assert_eq!(plain(KeyCode::Char('P')), Key::Plan);
        assert_eq!(plain(KeyCode::Char('z')), Key::Other);
        let letter = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
        assert_eq!(typed(letter), Key::Typed('q'), "of a filter");
        let control = |code| key_of(KeyEvent::new(code, KeyModifiers::CONTROL));
        assert_eq!(control(KeyCode::Char('c')), Key::Quit);
        assert_eq!(control(KeyCode::Char('q')), Key::Other);
    }

    #[test]
    fn a_key_that_is_let_go_means_nothing() {
        let press = KeyEvent::new(KeyCode::Char('s'), KeyModifiers::NONE);
        assert!(meaning(&event::Event::Key(press), false).is_some());
        let release = KeyEvent { kind: KeyEventKind::Release, ..press };
        assert!(meaning(&event::Event::Key(release), false).is_none());
    }
}
