//! `jsonl`: a JSON object a line; one field's text is the key, the line is the value.

use super::{Lines, ReadError, Record, Records};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// Key: the field's text (strings as they are, numbers and booleans as JSON). Value: the line.
pub struct Jsonl<'a> {
    lines: Lines<'a>,
    field: String,
}

impl<'a> Jsonl<'a> {
    pub fn new(lines: Lines<'a>, field: &str) -> Jsonl<'a> {
        Jsonl { lines, field: field.to_owned() }
    }
}

impl Records for Jsonl<'_> {
    fn read(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        loop {
            if !self.lines.advance()? {
                return Ok(false);
            }
            if !self.lines.line().trim_ascii().is_empty() {
                break;
            }
        }
        let line = self.lines.line().trim_ascii();
        let mut json = serde_json::Deserializer::from_slice(line);
        let key = Field(&self.field)
            .deserialize(&mut json)
            .and_then(|key| json.end().map(|()| key))
            .map_err(|error| self.lines.malformed(in_words(&error)))?;
        record.key.clear();
        match key {
            Some(serde_json::Value::String(text)) => record.key.extend_from_slice(text.as_bytes()),
            Some(other @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => {
                record.key.extend_from_slice(other.to_string().as_bytes());
            }
            Some(_) => {
                let message = format!("the field `{}` is not a string, a number or a boolean", self.field);
                return Err(self.lines.malformed(message));
            }
            None => return Err(self.lines.malformed(format!("no field `{}`", self.field))),
        }
        record.value.clear();
        record.value.extend_from_slice(line);
        Ok(true)
    }
}

/// The parser's own line number is always 1 here: only its column helps.
pub fn in_words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) => format!("not a JSON object as expected: {what} at column {}", error.column()),
        None => text,
    }
}

/// Takes one field out of an object and checks the rest without building it.
struct Field<'f>(&'f str);

impl<'de> DeserializeSeed<'de> for Field<'_> {
    type Value = Option<serde_json::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Field<'_> {
    type Value = Option<serde_json::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if name == self.0 {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::{Format, tests::read_all};

    #[test]
    fn the_field_is_the_key_and_the_line_the_value() {
        let text =
            b"{\"id\": \"a\\u00e9\", \"x\": [1, {\"id\": 2}]}\r\n\n {\"x\":{},\"id\":17}\n{\"id\":true}";
        let records = read_all(Format::Jsonl, Some("id"), text).unwrap();
        assert_eq!(records[0].0, "aé".as_bytes());
        assert_eq!(records[0].1, b"{\"id\": \"a\\u00e9\", \"x\": [1, {\"id\": 2}]}");
        assert_eq!(records[1], (b"17".to_vec(), b"{\"x\":{},\"id\":17}".to_vec()));
        assert_eq!(records[2].0, b"true");
    }

    #[test]
    fn errors_name_the_line() {
        for (second, part) in [
            (&b"{\"id\":1"[..], "column"),
            (b"[1]", "expected an object"),
            (b"{\"id\":1} x", "trailing"),
            (b"{\"name\":1}", "no field `id`"),
            (b"{\"id\":null}", "is not a string"),
            (b"{\"id\":\"\xFF\"}", "column"),
        ] {
            let mut text = b"{\"id\":0}\n".to_vec();
            text.extend_from_slice(second);
            let message = read_all(Format::Jsonl, Some("id"), &text).unwrap_err().to_string();
            assert!(message.starts_with("line 2: ") && message.contains(part), "{message}");
        }
    }
}
