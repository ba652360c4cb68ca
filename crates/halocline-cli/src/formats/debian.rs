//! `debian`: stanzas of a Debian control file, as in apt's `Packages` and in dpkg's `status`.

use super::{Lines, ReadError, Record, Records};

/// Key: `Package_Version_Architecture`, as packages' file names are made, of the fields that are there.
/// Value: the stanza, its lines joined by newlines.
pub struct Debian<'a> {
    lines: Lines<'a>,
    package: Vec<u8>,
    version: Vec<u8>,
    architecture: Vec<u8>,
}

impl<'a> Debian<'a> {
    pub fn new(lines: Lines<'a>) -> Debian<'a> {
        Debian { lines, package: Vec::new(), version: Vec::new(), architecture: Vec::new() }
    }

    /// Takes in one line of a stanza; `first` says that no field came before it.
    fn line(&mut self, first: bool) -> Result<(), ReadError> {
        let line = self.lines.line();
        if line.starts_with(b"#") {
            return Ok(());
        }
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            return match first {
                true => Err(self.lines.malformed("a continuation line, but no field before it")),
                false => Ok(()),
            };
        }
        let Some(colon) = line.iter().position(|&b| b == b':').filter(|&at| at > 0) else {
            return Err(self.lines.malformed(format!(
                "neither `Field: value`, a continuation (indented) nor a comment: `{}`",
                line[..line.len().min(40)].escape_ascii()
            )));
        };
        let (name, text) = (&line[..colon], line[colon + 1..].trim_ascii());
        let field = match name {
            name if name.eq_ignore_ascii_case(b"Package") => &mut self.package,
            name if name.eq_ignore_ascii_case(b"Version") => &mut self.version,
            name if name.eq_ignore_ascii_case(b"Architecture") => &mut self.architecture,
            _ => return Ok(()),
        };
        field.clear();
        field.extend_from_slice(text);
        Ok(())
    }
}

impl Records for Debian<'_> {
    fn read(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        for field in [&mut self.package, &mut self.version, &mut self.architecture] {
            field.clear();
        }
        record.value.clear();
        let mut begin = 0;
        while self.lines.advance()? {
            if self.lines.line().trim_ascii().is_empty() {
                match begin {
                    0 => continue,
                    _ => break,
                }
            }
            let first = begin == 0;
            if first {
                begin = self.lines.number();
            } else {
                record.value.push(b'\n');
            }
            self.line(first)?;
            record.value.extend_from_slice(self.lines.line());
        }
        if begin == 0 {
            return Ok(false);
        }
        if self.package.is_empty() {
            return Err(ReadError::Malformed {
                line: begin,
                message: "this stanza has no Package field".into(),
            });
        }
        record.key.clear();
        record.key.extend_from_slice(&self.package);
        for field in [&self.version, &self.architecture] {
            if !field.is_empty() {
                record.key.push(b'_');
                record.key.extend_from_slice(field);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::{Format, tests::read_all};

    #[test]
    fn a_stanza_is_a_record() {
        let text = b"\nPackage: zlib1g\nVersion: 1:1.2.13\nArchitecture: amd64\nDescription: library\n with a second line\n .\n\n\n# a comment\nPackage: tiny\nStatus: gone\n";
        let records = read_all(Format::Debian, None, text).unwrap();
        assert_eq!(records.len(), 2);
        assert_eq!(records[0].0, b"zlib1g_1:1.2.13_amd64");
        assert!(records[0].1.starts_with(b"Package: zlib1g\nVersion: "));
        assert!(records[0].1.ends_with(b"\n with a second line\n ."));
        assert_eq!(records[1].0, b"tiny");
        assert_eq!(records[1].1, b"# a comment\nPackage: tiny\nStatus: gone");
    }

    #[test]
    fn errors_name_the_line() {
        for (text, line, part) in [
            (&b"Package: a\n\nVersion: 1\nSize: 2\n"[..], 3, "no Package"),
            (b"Package: a\nnonsense\n", 2, "nonsense"),
            (b"\n continued\n", 2, "no field before"),
            (b"Package: a\n: empty\n", 2, "Field: value"),
        ] {
            let message = read_all(Format::Debian, None, text).unwrap_err().to_string();
            assert!(message.starts_with(&format!("line {line}: ")) && message.contains(part), "{message}");
        }
    }
}
