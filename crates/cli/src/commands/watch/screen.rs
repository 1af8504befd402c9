//! The terminal while the view has it.

use anyhow::Context;
use ratatui::DefaultTerminal;
use untax_report::watch::{State, draw};

/// The terminal, drawn on; given back as it was when dropped. A panic gives it back as well,
/// before it says anything.
pub struct Screen(Option<DefaultTerminal>);

impl Screen {
    /// Takes the terminal.
    pub fn take() -> anyhow::Result<Self> {
        let terminal = ratatui::try_init().inspect_err(|_| {
            // It may have been taken by half.
            let _ = ratatui::try_restore();
        });
        Ok(Self(Some(terminal.context("the terminal cannot be drawn on")?)))
    }

    /// Columns and rows.
    pub fn size(&self) -> anyhow::Result<(u16, u16)> {
        let size = self.0.as_ref().map(DefaultTerminal::size).transpose();
        let size = size.context("the size of the terminal is not known")?.unwrap_or_default();
        Ok((size.width, size.height))
    }

    /// Draws the view.
    pub fn draw(&mut self, view: &State) -> anyhow::Result<()> {
        if let Some(terminal) = &mut self.0 {
            terminal.draw(|frame| draw(frame, view)).context("the terminal cannot be drawn on")?;
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let restored = ratatui::try_restore();
        if let Some(mut terminal) = self.0.take() {
            // Where the terminal is gone, the library would panic over it when dropped.
            if terminal.show_cursor().is_err() || restored.is_err() {
                std::mem::forget(terminal);
            }
        }
    }
}
