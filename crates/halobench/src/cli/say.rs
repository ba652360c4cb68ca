//! Standard output, whose reader may go away before the end: a pipe into `head` is no reason to fail.

use std::io::Write;

/// Writes `text` as it is.
pub fn text(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes a line.
pub fn line(line: &str) {
    text(&format!("{line}\n"));
}
