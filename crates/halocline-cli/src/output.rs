//! What commands print: entries in several formats, numbers for people, and a progress line on terminals.

use crate::escape::{escape_into, hex_into};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};
use std::time::Duration;

/// Buffered standard output. Call `flush` at the end, so that its errors are seen.
pub fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 << 10, io::stdout().lock())
}

/// How `text` output looks.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Colour the keys.
    pub color: bool,
    /// Cut values to so many characters.
    pub width: Option<usize>,
}

impl Look {
    /// What suits standard output: colours and cut values on a terminal, neither elsewhere.
    pub fn of_stdout() -> Look {
        let terminal = io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Look { color: terminal && !no_color, width: terminal.then_some(120) }
    }
}

/// Appends an entry for people: key, a colon, value.
pub fn text_entry(look: Look, key: &[u8], value: Option<&[u8]>, out: &mut String) {
    if look.color {
        out.push_str("\x1b[36m");
    }
    escape_into(key, out);
    if look.color {
        out.push_str("\x1b[0m");
    }
    if let Some(value) = value {
        out.push_str(": ");
        let begin = out.len();
        match look.width {
            // An escaped character is at most four times as long as its bytes: more need not be looked at.
            Some(width) if value.len() > width => {
                escape_into(&value[..value.len().min(4 * width)], out);
                if let Some((end, _)) = out[begin..].char_indices().nth(width) {
                    out.truncate(begin + end);
                }
                out.push_str(&format!("... ({} bytes)", grouped(value.len() as u64)));
            }
            _ => escape_into(value, out),
        }
    }
    out.push('\n');
}

/// Appends an entry as escaped columns.
pub fn tsv_entry(key: &[u8], value: Option<&[u8]>, out: &mut String) {
    escape_into(key, out);
    if let Some(value) = value {
        out.push('\t');
        escape_into(value, out);
    }
    out.push('\n');
}

/// Appends an entry in hexadecimal.
pub fn hex_entry(key: &[u8], value: Option<&[u8]>, out: &mut String) {
    hex_into(key, out);
    if let Some(value) = value {
        out.push('\t');
        hex_into(value, out);
    }
    out.push('\n');
}

/// Appends an entry as a JSON object: text where it is UTF-8, hexadecimal elsewhere.
pub fn json_entry(key: &[u8], value: Option<&[u8]>, out: &mut String) {
    out.push('{');
    json_bytes("key", key, out);
    if let Some(value) = value {
        out.push(',');
        json_bytes("value", value, out);
    }
    out.push_str("}\n");
}

fn json_bytes(name: &str, bytes: &[u8], out: &mut String) {
    out.push('"');
    out.push_str(name);
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            out.push_str("\":");
            out.push_str(&json_string(text));
        }
        Err(_) => {
            out.push_str("_hex\":\"");
            hex_into(bytes, out);
            out.push('"');
        }
    }
}

/// A text as a JSON string.
pub fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// `1234567` as `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes for people, in powers of 1000: `512 B`, `1.4 MB`.
pub fn bytes(n: u64) -> String {
    let mut scaled = n as f64;
    for unit in ["B", "KB", "MB", "GB"] {
        if scaled < 999.5 {
            return match unit {
                "B" => format!("{n} B"),
                _ if scaled < 9.95 => format!("{scaled:.1} {unit}"),
                _ => format!("{scaled:.0} {unit}"),
            };
        }
        scaled /= 1000.0;
    }
    format!("{scaled:.1} TB")
}

/// Seconds for people: `2.41 s`, `381 ms`, `12 us`.
pub fn seconds(duration: Duration) -> String {
    let s = duration.as_secs_f64();
    match s {
        _ if s >= 9.995 => format!("{s:.1} s"),
        _ if s >= 0.9995 => format!("{s:.2} s"),
        _ if s >= 0.0995 => format!("{:.0} ms", s * 1e3),
        _ if s >= 0.000_995 => format!("{:.1} ms", s * 1e3),
        _ => format!("{:.0} us", s * 1e6),
    }
}

/// A progress line: on a terminal only.
pub fn progress(total: Option<u64>, message: impl Into<String>) -> ProgressBar {
    let bar = match total {
        Some(total) => ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr()),
        None => ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()),
    };
    let template = match total {
        Some(_) => "{msg} [{bar:30}] {bytes}/{total_bytes}, {eta} left",
        None => "{spinner} {msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(message.into());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Writes `text` when it has grown enough, and empties it.
pub fn drain(text: &mut String, out: &mut impl Write) -> io::Result<()> {
    if text.len() >= 32 << 10 {
        out.write_all(text.as_bytes())?;
        text.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_in_each_format() {
        let plain = Look { color: false, width: None };
        let mut out = String::new();
        text_entry(plain, b"a\tb", Some(b"1\n2"), &mut out);
        tsv_entry(b"a\tb", Some(b"1\n2"), &mut out);
        hex_entry(b"a", Some(b"\xFF"), &mut out);
        json_entry(b"a\"", Some(b"\xFF"), &mut out);
        json_entry(b"k", None, &mut out);
        assert_eq!(
            out,
            "a\\tb: 1\\n2\na\\tb\t1\\n2\n61\tff\n{\"key\":\"a\\\"\",\"value_hex\":\"ff\"}\n{\"key\":\"k\"}\n"
        );
    }

    #[test]
    fn long_values_are_cut_on_a_terminal() {
        let look = Look { color: true, width: Some(3) };
        let mut out = String::new();
        text_entry(look, b"k", Some("éééé".as_bytes()), &mut out);
        assert_eq!(out, "\x1b[36mk\x1b[0m: ééé... (8 bytes)\n");
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(
            [grouped(0), grouped(999), grouped(1000), grouped(1_234_567)],
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [bytes(0), bytes(999), bytes(1000), bytes(9_949_000), bytes(9_990_000)],
            ["0 B", "999 B", "1.0 KB", "9.9 MB", "10 MB"]
        );
        assert_eq!(bytes(1_500_000_000_000), "1.5 TB");
        let times = [12_345.0, 2.414, 0.381, 0.0124, 0.000_012].map(|s| seconds(Duration::from_secs_f64(s)));
        assert_eq!(times, ["12345.0 s", "2.41 s", "381 ms", "12.4 ms", "12 us"]);
    }
}
