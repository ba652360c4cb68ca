//! `lines`: a record a line, keyed by its number or by itself.

use super::{Lines, ReadError, Record, Records};
use std::io::Write as _;

/// Key: the line's number in twelve digits, so that keys sort as the lines stand. Value: the line.
pub struct ByNumber<'a> {
    lines: Lines<'a>,
}

impl<'a> ByNumber<'a> {
    pub fn new(lines: Lines<'a>) -> ByNumber<'a> {
        ByNumber { lines }
    }
}

impl Records for ByNumber<'_> {
    fn read(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        if !self.lines.advance()? {
            return Ok(false);
        }
        record.key.clear();
        write!(record.key, "{:012}", self.lines.number()).map_err(ReadError::Io)?;
        record.value.clear();
        record.value.extend_from_slice(self.lines.line());
        Ok(true)
    }
}

/// Key: the line. Value: its number; of equal lines the last one's stays. Empty lines are passed over.
pub struct ByLine<'a> {
    lines: Lines<'a>,
}

impl<'a> ByLine<'a> {
    pub fn new(lines: Lines<'a>) -> ByLine<'a> {
        ByLine { lines }
    }
}

impl Records for ByLine<'_> {
    fn read(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        while self.lines.advance()? {
            if self.lines.line().is_empty() {
                continue;
            }
            record.key.clear();
            record.key.extend_from_slice(self.lines.line());
            record.value.clear();
            write!(record.value, "{}", self.lines.number()).map_err(ReadError::Io)?;
            return Ok(true);
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::{Format, tests::read_all};

    #[test]
    fn the_key_is_the_number_or_the_line() {
        let text = b"beta\n\nalpha";
        let numbered = read_all(Format::Lines, None, text).unwrap();
        let expected: [(Vec<u8>, Vec<u8>); 3] = [
            (b"000000000001".to_vec(), b"beta".to_vec()),
            (b"000000000002".to_vec(), b"".to_vec()),
            (b"000000000003".to_vec(), b"alpha".to_vec()),
        ];
        assert_eq!(numbered, expected);
        let by_line = read_all(Format::Lines, Some("line"), text).unwrap();
        assert_eq!(by_line, [(b"beta".to_vec(), b"1".to_vec()), (b"alpha".to_vec(), b"3".to_vec())]);
    }
}
