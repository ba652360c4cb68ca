//! `dump`: all entries as text that `load` reads back.

use super::{DEFAULT_FAMILY, family, open_to_read};
use crate::args::{Dump, DumpFormat};
use crate::escape::hex_into;
use crate::failure::Outcome;
use crate::formats::{HEX_FAMILY, HEX_HEADER, JSON_HEADER};
use crate::output;
use std::io::Write as _;

/// Writes one column family, or all.
pub fn run(args: &Dump) -> Outcome {
    let db = open_to_read(&args.db.dir)?;
    let families = match &args.family.name {
        Some(name) => {
            family(&db, &args.family)?;
            vec![name.clone()]
        }
        None => db.column_families()?,
    };
    let mut out = output::stdout();
    let mut text = String::new();
    text.push_str(match args.format {
        DumpFormat::Jsonl => JSON_HEADER,
        DumpFormat::Hex => HEX_HEADER,
    });
    text.push('\n');
    for name in &families {
        let Some(family) = db.find_column_family(name)? else { continue };
        if name != DEFAULT_FAMILY {
            match args.format {
                DumpFormat::Jsonl => {
                    text.push_str(&format!("{{\"family\":{}}}\n", output::json_string(name)))
                }
                DumpFormat::Hex => {
                    text.push_str(HEX_FAMILY);
                    hex_into(name.as_bytes(), &mut text);
                    text.push('\n');
                }
            }
        }
        for entry in family.iter() {
            let (key, value) = entry?;
            match args.format {
                DumpFormat::Jsonl => output::json_entry(&key, Some(&value), &mut text),
                DumpFormat::Hex => output::hex_entry(&key, Some(&value), &mut text),
            }
            output::drain(&mut text, &mut out)?;
        }
    }
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
