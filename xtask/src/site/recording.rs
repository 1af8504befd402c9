//! Recordings of a terminal as one SVG that plays by itself, from what script(1) logged.

use anyhow::{Context, Result, bail};
use clap::Args;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use vt100::{Color, Parser};

/// What was recorded, and where the picture goes.
#[derive(Debug, Args)]
pub struct Arguments {
    /// What `script --log-out` wrote
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// What `script --log-timing` wrote
    #[arg(long, value_name = "FILE")]
    timing: PathBuf,
    /// Columns and rows of the terminal
    #[arg(long, default_value_t = 96)]
    columns: u16,
    #[arg(long, default_value_t = 32)]
    rows: u16,
    /// What it shows, for those who do not see it
    #[arg(long)]
    title: String,
    /// The picture
    #[arg(value_name = "FILE.svg")]
    picture: PathBuf,
}

/// A pause of the recording is shown for this long at most.
const LONGEST_PAUSE_S: f64 = 1.5;
/// Screens that stood for less are left out.
const SHORTEST_FRAME_S: f64 = 0.2;
/// How long the last screen stands before it begins again.
const END_S: f64 = 6.0;

/// Pixels of a character.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;

/// A piece of a line in one colour.
#[derive(Debug, Clone, PartialEq)]
struct Piece {
    column: u16,
    colour: String,
    bold: bool,
    text: String,
}

/// The screen from a moment on.
#[derive(Debug, Clone, PartialEq)]
struct Frame {
    at_s: f64,
    lines: Vec<Vec<Piece>>,
}

/// Makes the picture.
pub fn run(arguments: &Arguments) -> Result<()> {
    let read = |file: &PathBuf| fs::read(file).with_context(|| file.display().to_string());
    let output = read(&arguments.output)?;
    let timing = String::from_utf8_lossy(&read(&arguments.timing)?).into_owned();
    let frames = frames(&output, &timing, arguments.rows, arguments.columns)?;
    let picture = svg(&frames, arguments);
    fs::write(&arguments.picture, picture).with_context(|| arguments.picture.display().to_string())
}

/// Plays what was logged into a terminal, and keeps each screen that stood for a while.
fn frames(output: &[u8], timing: &str, rows: u16, columns: u16) -> Result<Vec<Frame>> {
    // The first line is script's own.
    let begin = output.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let mut rest = &output[begin..];
    let mut parser = Parser::new(rows, columns, 0);
    let mut frames: Vec<Frame> = Vec::new();
    let mut at_s = 0.0;
    for (number, line) in timing.lines().enumerate() {
        let (delay, bytes) = line.split_once(' ').context("no timing of script(1)")?;
        let delay: f64 = delay.parse().with_context(|| format!("timing, line {}", number + 1))?;
        let bytes: usize =
            bytes.trim().parse().with_context(|| format!("timing, line {}", number + 1))?;
        at_s += delay.min(LONGEST_PAUSE_S);
        let Some((now, later)) = rest.split_at_checked(bytes) else { break };
        parser.process(now);
        rest = later;
        let lines = lines(&parser, rows, columns);
        match frames.last_mut() {
            Some(last) if last.lines == lines => {}
            // It stood too short a time to be seen.
            Some(last) if at_s - last.at_s < SHORTEST_FRAME_S => last.lines = lines,
            _ => frames.push(Frame { at_s, lines }),
        }
    }
    if frames.is_empty() {
        bail!("nothing was recorded");
    }
    Ok(frames)
}

fn lines(parser: &Parser, rows: u16, columns: u16) -> Vec<Vec<Piece>> {
    let screen = parser.screen();
    let line = |row: u16| {
        let mut pieces: Vec<Piece> = Vec::new();
        for column in 0..columns {
            let Some(cell) = screen.cell(row, column).filter(|cell| cell.has_contents()) else {
                continue;
            };
            let (mut front, back) = (cell.fgcolor(), cell.bgcolor());
            if cell.inverse() && back != Color::Default {
                front = back;
            }
            let (colour, bold) = (colour(front), cell.bold());
            let column_end = |piece: &Piece| piece.column + piece.text.chars().count() as u16;
            match pieces.last_mut() {
                Some(last)
                    if last.colour == colour
                        && last.bold == bold
                        && column - column_end(last) < 2 =>
                {
                    let gap = usize::from(column - column_end(last));
                    last.text.push_str(&" ".repeat(gap));
                    last.text.push_str(cell.contents());
                }
                _ => pieces.push(Piece { column, colour, bold, text: cell.contents().to_owned() }),
            }
        }
        pieces
    };
    (0..rows).map(line).collect()
}

fn colour(colour: Color) -> String {
    const NAMED: [&str; 16] = [
        "#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9",
        "#7f8896", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#ffffff",
    ];
    match colour {
        Color::Default => "#d8dee9".to_owned(),
        Color::Idx(n) => NAMED.get(usize::from(n)).unwrap_or(&"#d8dee9").to_string(),
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
    }
}

/// Each frame is a group that is visible in its part of one endless animation.
fn svg(frames: &[Frame], arguments: &Arguments) -> String {
    let whole_s = frames.last().map_or(0.0, |last| last.at_s) + END_S;
    let (width, height) =
        (f64::from(arguments.columns) * WIDTH + 24.0, f64::from(arguments.rows) * HEIGHT + 24.0);
    let title = escape(&arguments.title);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"{title}\"><title>{title}</title>\n<style>\n\
         text {{ font: 14px ui-monospace, 'DejaVu Sans Mono', monospace; white-space: pre; }}\n\
         g {{ visibility: hidden; animation: {whole_s:.2}s step-end infinite; }}\n"
    );
    for (n, frame) in frames.iter().enumerate() {
        let percent = |at_s: f64| at_s / whole_s * 100.0;
        let end = frames.get(n + 1).map_or(100.0, |next| percent(next.at_s));
        let begin = percent(frame.at_s);
        let _ = writeln!(
            text,
            "#f{n} {{ animation-name: a{n}; }} @keyframes a{n} {{ 0% {{ visibility: hidden; }} {begin:.3}% \
             {{ visibility: visible; }} {end:.3}% {{ visibility: hidden; }} }}"
        );
    }
    let last = frames.len() - 1;
    let _ = writeln!(
        text,
        "@media (prefers-reduced-motion: reduce) {{ g {{ animation: none; }} #f{last} {{ visibility: visible; }} }}\n\
         </style>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#20242c\"/>"
    );
    for (n, frame) in frames.iter().enumerate() {
        let _ = writeln!(text, "<g id=\"f{n}\">");
        for (row, pieces) in frame.lines.iter().enumerate() {
            let y = 26.0 + row as f64 * HEIGHT;
            for piece in pieces {
                let bold = if piece.bold { " font-weight=\"bold\"" } else { "" };
                let x = 12.0 + f64::from(piece.column) * WIDTH;
                let long = piece.text.chars().count() as f64 * WIDTH;
                let _ = writeln!(
                    text,
                    "<text x=\"{x:.1}\" y=\"{y:.0}\" textLength=\"{long:.1}\" fill=\"{}\"{bold}>{}</text>",
                    piece.colour,
                    escape(&piece.text)
                );
            }
        }
        text += "</g>\n";
    }
    text + "</svg>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &[u8] = b"Script started\none\r\n\x1b[31mtwo\x1b[0m three\r\nfour";

    #[test]
    fn a_screen_is_kept_for_each_moment_and_pauses_are_cut() {
        let frames = frames(LOG, "0.5 5\n60 24\n0.01 4\n", 4, 20).unwrap();
        let [one, rest] = &frames[..] else { panic!("{frames:?}") };
        assert_eq!((one.at_s, one.lines[0][0].text.as_str()), (0.5, "one"));
        assert!((rest.at_s - 2.0).abs() < 1e-9, "{rest:?}");
        let [two, three] = &rest.lines[1][..] else { panic!("{rest:?}") };
        assert_eq!((two.text.as_str(), two.colour.as_str()), ("two", "#e06c75"));
        assert_eq!((three.text.as_str(), three.column), (" three", 3));
        assert_eq!(rest.lines[2][0].text, "four", "what came within a moment is one screen");
    }

    #[test]
    fn nothing_recorded_is_an_error() {
        assert!(frames(b"", "", 4, 20).is_err());
    }
}
