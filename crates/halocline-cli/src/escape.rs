//! Bytes as text and back: keys and values are bytes, terminals and text files want text.
//!
//! | bytes | written as | also read |
//! |---|---|---|
//! | valid UTF-8 that prints | itself | |
//! | backslash | `\\` | |
//! | newline, carriage return, tab | `\n` `\r` `\t` | |
//! | other control characters, and bytes that are not UTF-8 | `\xNN`, two hexadecimal digits a byte | `\0` for the byte 0 |
//!
//! `unescape(escape(bytes)) == bytes` for all bytes, and escaped text never holds a newline or a tab.

/// Appends `bytes` to `out` as escaped text.
pub fn escape_into(bytes: &[u8], out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c if c.is_control() => {
                    let mut utf8 = [0; 4];
                    for byte in c.encode_utf8(&mut utf8).bytes() {
                        push_hex_escape(byte, out);
                    }
                }
                c => out.push(c),
            }
        }
        for &byte in chunk.invalid() {
            push_hex_escape(byte, out);
        }
    }
}

/// `bytes` as escaped text.
pub fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    escape_into(bytes, &mut out);
    out
}

fn push_hex_escape(byte: u8, out: &mut String) {
    out.push_str("\\x");
    hex_into(&[byte], out);
}

/// The bytes that escaped text stands for; the error says what is wrong with it.
pub fn unescape(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        if byte != b'\\' {
            out.push(byte);
            rest = behind;
            continue;
        }
        let Some((&letter, behind)) = behind.split_first() else {
            return Err("a backslash at the end: write `\\\\` for a backslash".into());
        };
        rest = behind;
        match letter {
            b'\\' => out.push(b'\\'),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'0' => out.push(0),
            b'x' => {
                let Some((digits, behind)) = rest.split_at_checked(2) else {
                    return Err("`\\x` needs two hexadecimal digits".into());
                };
                let (Some(high), Some(low)) = (nibble(digits[0]), nibble(digits[1])) else {
                    return Err(format!("`\\x{}` is not two hexadecimal digits", digits.escape_ascii()));
                };
                out.push(high << 4 | low);
                rest = behind;
            }
            other => {
                return Err(format!(
                    "unknown escape `\\{}`: write `\\\\` for a backslash",
                    char::from(other).escape_default()
                ));
            }
        }
    }
    Ok(out)
}

/// Appends `bytes` in lowercase hexadecimal.
pub fn hex_into(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// The bytes of a hexadecimal text; the error says what is wrong with it.
pub fn unhex(text: &[u8]) -> Result<Vec<u8>, String> {
    if !text.len().is_multiple_of(2) {
        return Err(format!("{} hexadecimal digits: an even number is needed", text.len()));
    }
    text.chunks_exact(2)
        .map(|pair| match (nibble(pair[0]), nibble(pair[1])) {
            (Some(high), Some(low)) => Ok(high << 4 | low),
            _ => Err(format!("`{}` is not hexadecimal", pair.escape_ascii())),
        })
        .collect()
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|n| n as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).chain("grün \u{85} 🦀 \\x41".bytes()).chain([0xF0, 0x9F]).collect();
        let text = escape(&all);
        assert_eq!(unescape(text.as_bytes()).unwrap(), all);
        assert!(!text.contains(['\n', '\t', '\r']));
        let mut hex = String::new();
        hex_into(&all, &mut hex);
        assert_eq!(unhex(hex.as_bytes()).unwrap(), all);
    }

    #[test]
    fn text_that_prints_stays_as_it_is() {
        assert_eq!(escape("grün 🦀".as_bytes()), "grün 🦀");
        assert_eq!(escape(b"a\\b\n\xFF\x00"), "a\\\\b\\n\\xff\\x00");
        assert_eq!(unescape(b"\\0\\x4a").unwrap(), b"\0J");
    }

    #[test]
    fn wrong_escapes_are_named() {
        for (text, part) in [
            (&b"a\\"[..], "at the end"),
            (b"\\x4", "two hexadecimal digits"),
            (b"\\xg0", "\\xg0"),
            (b"\\q", "unknown escape `\\q`"),
        ] {
            let message = unescape(text).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
        assert!(unhex(b"abc").unwrap_err().contains("3"));
        assert!(unhex(b"zz").unwrap_err().contains("zz"));
    }
}
