//! The few styles that text uses.

use anstyle::{AnsiColor, Color, Style};

const fn coloured(colour: AnsiColor) -> Style {
    Style::new().bold().fg_color(Some(Color::Ansi(colour)))
}

/// Names of artefacts and sections.
pub const TITLE: Style = Style::new().bold();
/// Holds.
pub const GOOD: Style = coloured(AnsiColor::Green);
/// Does not hold.
pub const BAD: Style = coloured(AnsiColor::Red);
/// Somebody should look.
pub const WARN: Style = coloured(AnsiColor::Yellow);
/// What supports the rest.
pub const DIM: Style = Style::new().dimmed();

/// `text` in a style.
pub fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}
