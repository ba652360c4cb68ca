//! `dump` and `hex`: what `halocline dump` writes, without loss.
//!
//! ```text
//! {"halocline_dump":1}                          first line: format and version
//! {"family":"users"}                            what follows is of this column family (default without one)
//! {"key":"apple","value":"red"}                 text that is valid UTF-8
//! {"key_hex":"ff00","value_hex":"c0"}           other bytes; the two kinds mix freely
//!
//! #halocline-dump 1 hex                         first line
//! #family 7573657273                            a column family, its name in hexadecimal
//! 6170706c65<TAB>726564                         key and value in hexadecimal
//! ```

use super::{Lines, ReadError, Record, Records, jsonl};
use crate::escape::unhex;
use serde::Deserialize;

/// The first line of a dump.
pub const JSON_HEADER: &str = "{\"halocline_dump\":1}";
/// The first line of a dump in hexadecimal.
pub const HEX_HEADER: &str = "#halocline-dump 1 hex";
/// Before a column family's name, in a dump in hexadecimal.
pub const HEX_FAMILY: &str = "#family ";

/// A line of a dump in JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    halocline_dump: Option<u32>,
    family: Option<String>,
    key: Option<String>,
    key_hex: Option<String>,
    value: Option<String>,
    value_hex: Option<String>,
}

/// Reads a dump in JSON. The header may be left out.
pub struct JsonDump<'a> {
    lines: Lines<'a>,
}

impl<'a> JsonDump<'a> {
    pub fn new(lines: Lines<'a>) -> JsonDump<'a> {
        JsonDump { lines }
    }

    fn bytes(&self, what: &str, text: Option<String>, hex: Option<String>) -> Result<Vec<u8>, ReadError> {
        match (text, hex) {
            (Some(text), None) => Ok(text.into_bytes()),
            (None, Some(hex)) => unhex(hex.as_bytes())
                .map_err(|message| self.lines.malformed(format!("`{what}_hex`: {message}"))),
            (None, None) => Err(self.lines.malformed(format!("neither `{what}` nor `{what}_hex`"))),
            (Some(_), Some(_)) => Err(self.lines.malformed(format!("both `{what}` and `{what}_hex`"))),
        }
    }
}

impl Records for JsonDump<'_> {
    fn read(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        while self.lines.advance()? {
            if self.lines.line().trim_ascii().is_empty() {
                continue;
            }
            let line: Line = serde_json::from_slice(self.lines.line())
                .map_err(|error| self.lines.malformed(jsonl::in_words(&error)))?;
            match line {
                Line { halocline_dump: Some(1), .. } => {}
                Line { halocline_dump: Some(version), .. } => {
                    let message = format!("a dump of version {version}; this program reads version 1");
                    return Err(self.lines.malformed(message));
                }
                Line { family: Some(family), .. } => record.family = Some(family),
                Line { key, key_hex, value, value_hex, .. } => {
                    record.key = self.bytes("key", key, key_hex)?;
                    record.value = self.bytes("value", value, value_hex)?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Reads a dump in hexadecimal. The header may be left out.
pub struct HexDump<'a> {
    lines: Lines<'a>,
}

impl<'a> HexDump<'a> {
    pub fn new(lines: Lines<'a>) -> HexDump<'a> {
        HexDump { lines }
    }
}

impl Records for HexDump<'_> {
    fn read(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        while self.lines.advance()? {
            let line = self.lines.line();
            if line.is_empty() || line == HEX_HEADER.as_bytes() {
                continue;
            }
            if let Some(name) = line.strip_prefix(HEX_FAMILY.as_bytes()) {
                let name = unhex(name).map_err(|message| self.lines.malformed(message))?;
                let name = String::from_utf8(name)
                    .map_err(|_| self.lines.malformed("a column family's name is not UTF-8"))?;
                record.family = Some(name);
                continue;
            }
            let Some(tab) = line.iter().position(|&b| b == b'\t') else {
                return Err(self.lines.malformed("no tab between a key and a value"));
            };
            record.key = unhex(&line[..tab]).map_err(|m| self.lines.malformed(format!("key: {m}")))?;
            record.value =
                unhex(&line[tab + 1..]).map_err(|m| self.lines.malformed(format!("value: {m}")))?;
            return Ok(true);
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Format, tests::read_all};

    #[test]
    fn text_and_bytes_mix() {
        let text = format!(
            "{JSON_HEADER}\n{{\"key\":\"a\\n\",\"value_hex\":\"ff00\"}}\n\n{{\"key_hex\":\"\",\"value\":\"é\"}}\n"
        );
        let records = read_all(Format::Dump, None, text.as_bytes()).unwrap();
        assert_eq!(records, [(b"a\n".to_vec(), b"\xFF\0".to_vec()), (b"".to_vec(), "é".into())]);
        let text = format!("{HEX_HEADER}\n610A\tff00\n\t\n");
        let records = read_all(Format::Hex, None, text.as_bytes()).unwrap();
        assert_eq!(records, [(b"a\n".to_vec(), b"\xFF\0".to_vec()), (b"".to_vec(), b"".to_vec())]);
    }

    #[test]
    fn column_families_are_read() {
        for (format, text) in [
            (Format::Dump, "{\"family\":\"users\"}\n{\"key\":\"a\",\"value\":\"\"}\n"),
            (Format::Hex, "#family 7573657273\n61\t\n"),
        ] {
            let mut records = super::super::reader(format, None, Box::new(text.as_bytes())).unwrap();
            let mut record = Record::default();
            assert!(records.read(&mut record).unwrap());
            assert_eq!(record.family.as_deref(), Some("users"));
            assert!(!records.read(&mut record).unwrap());
        }
    }

    #[test]
    fn errors_name_the_line() {
        for (format, second, part) in [
            (Format::Dump, "{\"key\":\"a\"}", "neither `value`"),
            (Format::Dump, "{\"key\":\"a\",\"key_hex\":\"00\",\"value\":\"\"}", "both `key`"),
            (Format::Dump, "{\"key_hex\":\"0\",\"value\":\"\"}", "even number"),
            (Format::Dump, "{\"halocline_dump\":2}", "version 2"),
            (Format::Dump, "{\"keys\":1}", "unknown field `keys`"),
            (Format::Hex, "00", "no tab"),
            (Format::Hex, "0g\t00", "key: `0g`"),
            (Format::Hex, "00\t0", "value: 1 hexadecimal"),
            (Format::Hex, "#family ff", "not UTF-8"),
        ] {
            let message = read_all(format, None, format!("\n{second}\n").as_bytes()).unwrap_err().to_string();
            assert!(message.starts_with("line 2: ") && message.contains(part), "{message}");
        }
    }
}
