//! The text formats that `load` reads: one record at a time, in bounded memory.
//!
//! | format | a record | key | value |
//! |---|---|---|---|
//! | `lines` | a line | its number, twelve digits (or the line itself) | the line (or its number) |
//! | `tsv` | a line of columns | column 1 (or another) | the other columns, with the tabs between them |
//! | `jsonl` | a line with a JSON object | the text of a field | the whole line |
//! | `debian` | a stanza of a Debian control file | `Package_Version_Architecture` | the stanza |
//! | `dump` | a line that `halocline dump` wrote | any bytes | any bytes |
//! | `hex` | a line that `halocline dump --format hex` wrote | any bytes | any bytes |
//!
//! A malformed record ends the reading with an error that names the line.

mod debian;
mod dump;
mod jsonl;
mod lines;
mod tsv;

pub use dump::{HEX_FAMILY, HEX_HEADER, JSON_HEADER};

use std::fmt;
use std::io::{self, BufRead};

/// A line longer than this is refused: no file of text has one, and a file of something else must not fill the
/// memory.
const MAX_LINE: usize = 64 << 20;

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A record a line; the key is the line number
    Lines,
    /// Tab-separated columns; the key is the first
    Tsv,
    /// A JSON object a line; --key names the field that is the key
    Jsonl,
    /// Debian control stanzas, as in apt's Packages files
    Debian,
    /// What `halocline dump` writes
    Dump,
    /// What `halocline dump --format hex` writes
    Hex,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Lines => "lines",
            Format::Tsv => "tsv",
            Format::Jsonl => "jsonl",
            Format::Debian => "debian",
            Format::Dump => "dump",
            Format::Hex => "hex",
        })
    }
}

/// A record that was read. Its buffers are reused.
#[derive(Debug, Default)]
pub struct Record {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    /// The column family, in a dump that names it.
    pub family: Option<String>,
}

/// Why reading ended early.
#[derive(Debug)]
pub enum ReadError {
    /// The text is not in its format; lines count from 1.
    Malformed { line: u64, message: String },
    /// The operating system refused.
    Io(io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Malformed { line, message } => write!(f, "line {line}: {message}"),
            ReadError::Io(error) => write!(f, "could not read the input: {error}"),
        }
    }
}

/// Reads records of one format.
pub trait Records {
    /// Reads the next record into `record`; false at the end.
    fn read(&mut self, record: &mut Record) -> Result<bool, ReadError>;
}

/// A reader of `format` over `input`; `key` says where the key is, as `--key` does. An error is for people.
pub fn reader<'a>(
    format: Format,
    key: Option<&str>,
    input: Box<dyn BufRead + 'a>,
) -> Result<Box<dyn Records + 'a>, String> {
    let lines = Lines::new(input);
    Ok(match (format, key) {
        (Format::Lines, None | Some("number")) => Box::new(lines::ByNumber::new(lines)),
        (Format::Lines, Some("line")) => Box::new(lines::ByLine::new(lines)),
        (Format::Lines, Some(_)) => return Err("for lines, --key is `number` or `line`".into()),
        (Format::Tsv, None) => Box::new(tsv::Tsv::new(lines, 1)),
        (Format::Tsv, Some(column)) => match column.parse() {
            Ok(column @ 1..) => Box::new(tsv::Tsv::new(lines, column)),
            _ => return Err("for tsv, --key is the number of a column, from 1".into()),
        },
        (Format::Jsonl, Some(field)) => Box::new(jsonl::Jsonl::new(lines, field)),
        (Format::Jsonl, None) => return Err("for jsonl, --key must name the field that is the key".into()),
        (Format::Debian, None) => Box::new(debian::Debian::new(lines)),
        (Format::Dump, None) => Box::new(dump::JsonDump::new(lines)),
        (Format::Hex, None) => Box::new(dump::HexDump::new(lines)),
        (Format::Debian | Format::Dump | Format::Hex, Some(_)) => {
            return Err(format!("--key has no meaning for the format {format}"));
        }
    })
}

/// The format that a file of that name, with this beginning, seems to have.
pub fn detect(name: &str, beginning: &[u8], key: Option<&str>) -> Format {
    let first = beginning.split(|&b| b == b'\n').find(|line| !line.is_empty()).unwrap_or_default();
    if first.starts_with(JSON_HEADER.as_bytes()) {
        return Format::Dump;
    }
    if first.starts_with(HEX_HEADER.as_bytes()) {
        return Format::Hex;
    }
    let name = name.to_ascii_lowercase();
    if name.ends_with(".jsonl") || name.ends_with(".ndjson") {
        return Format::Jsonl;
    }
    if name.ends_with(".tsv") {
        return Format::Tsv;
    }
    if first.starts_with(b"Package: ") {
        return Format::Debian;
    }
    if first.starts_with(b"{") && key.is_some() {
        return Format::Jsonl;
    }
    if first.contains(&b'\t') {
        return Format::Tsv;
    }
    Format::Lines
}

/// Lines of a text, counted, without their newline.
pub struct Lines<'a> {
    input: Box<dyn BufRead + 'a>,
    buffer: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    pub fn new(input: Box<dyn BufRead + 'a>) -> Lines<'a> {
        Lines { input, buffer: Vec::new(), number: 0 }
    }

    /// Moves to the next line; false at the end.
    pub fn advance(&mut self) -> Result<bool, ReadError> {
        self.buffer.clear();
        self.number += 1;
        let mut limited = io::Read::take(&mut self.input, MAX_LINE as u64 + 1);
        if limited.read_until(b'\n', &mut self.buffer).map_err(ReadError::Io)? == 0 {
            return Ok(false);
        }
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
        } else if self.buffer.len() > MAX_LINE {
            return Err(self.malformed(format!("longer than {} MiB", MAX_LINE >> 20)));
        }
        Ok(true)
    }

    /// The line, without its newline.
    pub fn line(&self) -> &[u8] {
        &self.buffer
    }

    /// Its number, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// An error about this line.
    pub fn malformed(&self, message: impl Into<String>) -> ReadError {
        ReadError::Malformed { line: self.number, message: message.into() }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    type Pair = (Vec<u8>, Vec<u8>);

    /// All records of a text, or the error that ends it.
    pub fn read_all(format: Format, key: Option<&str>, text: &[u8]) -> Result<Vec<Pair>, ReadError> {
        let mut records = reader(format, key, Box::new(text)).unwrap();
        let mut record = Record::default();
        let mut all = Vec::new();
        while records.read(&mut record)? {
            all.push((record.key.clone(), record.value.clone()));
        }
        Ok(all)
    }

    #[test]
    fn formats_are_told_apart() {
        for (name, text, key, format) in [
            ("words", &b"one\ntwo\n"[..], None, Format::Lines),
            ("-", b"", None, Format::Lines),
            ("data", b"\n\na\tb\n", None, Format::Tsv),
            ("DATA.TSV", b"a b\n", None, Format::Tsv),
            ("x.ndjson", b"whatever", None, Format::Jsonl),
            ("-", b"{\"id\":1}\n", Some("id"), Format::Jsonl),
            ("-", b"{\"id\":1}\n", None, Format::Lines),
            ("Packages", b"Package: a\nVersion: 1\n", None, Format::Debian),
            ("x.jsonl", JSON_HEADER.as_bytes(), None, Format::Dump),
            ("-", HEX_HEADER.as_bytes(), None, Format::Hex),
        ] {
            assert_eq!(detect(name, text, key), format, "{name} {:?}", text.escape_ascii().to_string());
        }
    }

    #[test]
    fn a_key_that_a_format_cannot_have_is_refused() {
        for (format, key) in [
            (Format::Lines, Some("id")),
            (Format::Tsv, Some("0")),
            (Format::Tsv, Some("name")),
            (Format::Jsonl, None),
            (Format::Debian, Some("Package")),
        ] {
            assert!(reader(format, key, Box::new(&b""[..])).is_err(), "{format} {key:?}");
        }
    }

    #[test]
    fn the_last_line_needs_no_newline_and_any_bytes_may_be_in_one() {
        let mut lines = Lines::new(Box::new(&b"a\r\n\n\xFF\x00"[..]));
        let mut seen = Vec::new();
        while lines.advance().unwrap() {
            seen.push((lines.number(), lines.line().to_vec()));
        }
        assert_eq!(seen, [(1, b"a\r".to_vec()), (2, b"".to_vec()), (3, b"\xFF\x00".to_vec())]);
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        let endless = io::BufReader::new(io::repeat(b'x'));
        let error = Lines::new(Box::new(endless)).advance().unwrap_err();
        assert!(error.to_string().starts_with("line 1: longer than"), "{error}");
    }

    #[test]
    fn an_empty_text_has_no_records() {
        for (format, key) in [
            (Format::Lines, None),
            (Format::Tsv, None),
            (Format::Jsonl, Some("id")),
            (Format::Debian, None),
            (Format::Dump, None),
            (Format::Hex, None),
        ] {
            assert!(read_all(format, key, b"").unwrap().is_empty(), "{format}");
        }
    }
}
