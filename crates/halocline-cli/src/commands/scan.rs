//! `scan` and `count`: entries in the order of their keys.

use super::{entries, family, open_to_read};
use crate::args::{Count, Scan, ScanFormat};
use crate::failure::Outcome;
use crate::output::{self, Look};
use std::io::Write;

/// Prints entries.
pub fn scan(args: &Scan) -> Outcome {
    let db = open_to_read(&args.db.dir)?;
    let family = family(&db, &args.family)?;
    let limit = args.limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let found = entries(&family, &args.bounds)?;
    let mut writer =
        Writer { format: args.format, look: Look::of_stdout(), text: String::new(), out: output::stdout() };
    match (args.keys_only, args.reverse) {
        (true, false) => {
            for key in found.keys().take(limit) {
                writer.entry(&key?, None)?;
            }
        }
        (true, true) => {
            for key in found.keys().rev().take(limit) {
                writer.entry(&key?, None)?;
            }
        }
        (false, false) => {
            for entry in found.take(limit) {
                let (key, value) = entry?;
                writer.entry(&key, Some(&value))?;
            }
        }
        (false, true) => {
            for entry in found.rev().take(limit) {
                let (key, value) = entry?;
                writer.entry(&key, Some(&value))?;
            }
        }
    }
    writer.finish()
}

/// Prints the number of entries.
pub fn count(args: &Count) -> Outcome {
    let db = open_to_read(&args.db.dir)?;
    let family = family(&db, &args.family)?;
    let mut n = 0_u64;
    for key in entries(&family, &args.bounds)?.keys() {
        key?;
        n += 1;
    }
    let mut out = output::stdout();
    writeln!(out, "{n}")?;
    Ok(out.flush()?)
}

/// Writes entries in one format.
struct Writer<W: Write> {
    format: ScanFormat,
    look: Look,
    text: String,
    out: W,
}

impl<W: Write> Writer<W> {
    fn entry(&mut self, key: &[u8], value: Option<&[u8]>) -> Outcome {
        match self.format {
            ScanFormat::Text => output::text_entry(self.look, key, value, &mut self.text),
            ScanFormat::Tsv => output::tsv_entry(key, value, &mut self.text),
            ScanFormat::Jsonl => output::json_entry(key, value, &mut self.text),
            ScanFormat::Hex => output::hex_entry(key, value, &mut self.text),
        }
        Ok(output::drain(&mut self.text, &mut self.out)?)
    }

    fn finish(mut self) -> Outcome {
        self.out.write_all(self.text.as_bytes())?;
        Ok(self.out.flush()?)
    }
}
