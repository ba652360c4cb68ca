//! `get`, `put`, `delete`: one key at a time.

use super::{DEFAULT_FAMILY, family, key, open_or_create, open_to_change, open_to_read};
use crate::args::{Delete, Get, Put};
use crate::escape::{escape, hex_into};
use crate::failure::{Failure, Outcome};
use crate::output;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;

/// Prints the value; without one, says so and exits with 1.
pub fn get(args: &Get) -> Outcome {
    let key = key(&args.key)?;
    let db = open_to_read(&args.db.dir)?;
    let Some(value) = family(&db, &args.family)?.get(&key)? else {
        eprintln!("halocline: no such key: {}", escape(&key));
        return Err(Failure::No);
    };
    let mut out = output::stdout();
    if args.hex {
        let mut text = String::new();
        hex_into(&value, &mut text);
        out.write_all(text.as_bytes())?;
    } else {
        out.write_all(&value)?;
    }
    if !args.raw {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Sets a key.
pub fn put(args: &Put) -> Outcome {
    let key = key(&args.key)?;
    let mut value = Vec::new();
    if args.value == "-" {
        std::io::stdin()
            .lock()
            .read_to_end(&mut value)
            .map_err(|error| Failure::io("read standard input", &error))?;
    } else {
        value.extend_from_slice(args.value.as_bytes());
    }
    let db = open_or_create(&args.db.dir)?;
    db.column_family(args.family.name.as_deref().unwrap_or(DEFAULT_FAMILY))?.put(&key, &value)?;
    finish(&db, args.sync)
}

/// Removes a key; it is no error if it was not there.
pub fn delete(args: &Delete) -> Outcome {
    let key = key(&args.key)?;
    let db = open_to_change(&args.db.dir)?;
    family(&db, &args.family)?.delete(&key)?;
    finish(&db, args.sync)
}

fn finish(db: &halocline::Db, sync: bool) -> Outcome {
    if sync {
        db.sync()?;
    }
    Ok(db.close()?)
}
