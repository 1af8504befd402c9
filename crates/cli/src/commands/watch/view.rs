//! The view on a terminal: keys and windows go in, pictures come out.

use super::feed::{self, News};
use super::hangup;
use super::screen::Screen;
use super::steering;
use crate::state::State;
use anyhow::{Context, bail};
use ratatui::crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;
use untax_pipeline::Options;
use untax_report::watch::{self, Event, Key, Steered};
use untax_trials::Interrupt;

/// How long a key, a signal or a window may wait to be heard.
const HEARING: Duration = Duration::from_millis(100);

/// Shows the view until it is ended.
pub fn run(options: Options, state: &State) -> anyhow::Result<()> {
    let interrupt = &Interrupt::by_signals().context("cannot listen for signals")?;
    let watcher = interrupt.clone();
    std::thread::spawn(move || hangup::watch(&watcher));
    let (sender, news) = channel();
    let (steering, steered) = channel();
    // Without a state directory nobody steers with it.
    let directory = state.directory().map(Path::to_owned).ok();
    std::thread::scope(|scope| {
        // In a thread of its own: a look at the host takes longer than a key may wait.
        let feed = scope.spawn(move || {
            let go_on = || interrupt.check().is_ok();
            feed::run(options, state, go_on, |news| Ok(sender.send(news).is_ok()))
        });
        // Without a first window there is only an error to show.
        let is_open = news.recv().is_ok();
        if let Some(directory) = directory.filter(|_| is_open) {
            let give = move |now| steering.send(now).is_ok();
            scope.spawn(move || steering::follow(&directory, interrupt, give));
        }
        let shown = if is_open { show(&news, &steered, interrupt) } else { Ok(()) };
        interrupt.raise();
        match feed.join() {
            Ok(ended) => ended.and(shown),
            Err(_) => bail!("watching ended by a fault of this program"),
        }
    })
}

fn show(
    news: &Receiver<News>,
    steered: &Receiver<Vec<Steered>>,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let mut screen = Screen::take()?;
    let (columns, rows) = screen.size()?;
    let mut view = watch::State::new(columns, rows);
    while !view.is_over() {
        screen.draw(&view)?;
        match next(news, steered, interrupt)? {
            Some(event) => view = view.after(event),
            None => break,
        }
    }
    Ok(())
}

/// Waits for something to happen; `None` when there will be nothing more.
fn next(
    news: &Receiver<News>,
    steered: &Receiver<Vec<Steered>>,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Event>> {
    loop {
        match news.try_recv() {
            Ok(News::Checked(check, notes)) => return Ok(Some(Event::Checked(check, notes))),
            Ok(News::Gap(why)) => return Ok(Some(Event::Gap(why))),
            Ok(News::Opened) | Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Ok(None),
        }
        if let Ok(now) = steered.try_recv() {
            return Ok(Some(Event::Steered(now)));
        }
        let heard = event::poll(HEARING).and_then(|any| any.then(event::read).transpose());
        if interrupt.check().is_err() {
            return Ok(None);
        }
        if let Some(event) = heard.context("the terminal cannot be read")?.and_then(|e| meaning(&e))
        {
            return Ok(Some(event));
        }
    }
}

fn meaning(event: &event::Event) -> Option<Event> {
    match *event {
        event::Event::Resize(columns, rows) => Some(Event::Resize(columns, rows)),
        event::Event::Key(key) if key.kind != KeyEventKind::Release => {
            Some(Event::Key(key_of(key)))
        }
        _ => None,
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
        assert_eq!(plain(KeyCode::Char('x')), Key::Other);
        let control = |code| key_of(KeyEvent::new(code, KeyModifiers::CONTROL));
        assert_eq!(control(KeyCode::Char('c')), Key::Quit);
        assert_eq!(control(KeyCode::Char('q')), Key::Other);
    }

    #[test]
    fn a_key_that_is_let_go_means_nothing() {
        let press = KeyEvent::new(KeyCode::Char('s'), KeyModifiers::NONE);
        assert!(meaning(&event::Event::Key(press)).is_some());
        let release = KeyEvent { kind: KeyEventKind::Release, ..press };
        assert!(meaning(&event::Event::Key(release)).is_none());
    }
}
