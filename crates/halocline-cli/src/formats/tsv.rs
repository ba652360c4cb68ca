//! `tsv`: tab-separated columns with the escapes of [`crate::escape`], which `scan --format tsv` writes too.

use super::{Lines, ReadError, Record, Records};
use crate::escape::unescape;

/// Key: one column. Value: the other columns, with the tabs between them.
pub struct Tsv<'a> {
    lines: Lines<'a>,
    column: usize,
}

impl<'a> Tsv<'a> {
    /// `column` counts from 1.
    pub fn new(lines: Lines<'a>, column: usize) -> Tsv<'a> {
        Tsv { lines, column }
    }
}

impl Records for Tsv<'_> {
    fn read(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        loop {
            if !self.lines.advance()? {
                return Ok(false);
            }
            if !self.lines.line().is_empty() {
                break;
            }
        }
        record.key.clear();
        record.value.clear();
        let (mut columns, mut others) = (0, 0);
        for column in self.lines.line().split(|&b| b == b'\t') {
            let bytes = unescape(column)
                .map_err(|message| self.lines.malformed(format!("column {}: {message}", columns + 1)))?;
            columns += 1;
            if columns == self.column {
                record.key.extend_from_slice(&bytes);
                continue;
            }
            if others > 0 {
                record.value.push(b'\t');
            }
            others += 1;
            record.value.extend_from_slice(&bytes);
        }
        if columns < self.column {
            return Err(self.lines.malformed(format!("no column {}: there are {columns}", self.column)));
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::{Format, tests::read_all};

    #[test]
    fn a_column_is_the_key_and_the_rest_the_value() {
        let text = b"k\\t1\ta\tb\\xff\n\nk2\n";
        assert_eq!(
            read_all(Format::Tsv, None, text).unwrap(),
            [(b"k\t1".to_vec(), b"a\tb\xFF".to_vec()), (b"k2".to_vec(), b"".to_vec())]
        );
        assert_eq!(
            read_all(Format::Tsv, Some("2"), b"a\tb\tc\n").unwrap(),
            [(b"b".to_vec(), b"a\tc".to_vec())]
        );
    }

    #[test]
    fn errors_name_the_line_and_the_column() {
        let missing = read_all(Format::Tsv, Some("3"), b"a\tb\tc\na\tb\n").unwrap_err().to_string();
        assert_eq!(missing, "line 2: no column 3: there are 2");
        let escape = read_all(Format::Tsv, None, b"a\tb\n\na\tb\\q\n").unwrap_err().to_string();
        assert!(escape.starts_with("line 3: column 2: unknown escape"), "{escape}");
    }
}
