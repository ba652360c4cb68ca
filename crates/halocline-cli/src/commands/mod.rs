//! The commands, but for the demo.

pub mod dump;
pub mod load;
pub mod point;
pub mod scan;
pub mod state;

use crate::args::{Bounds, Family};
use crate::escape::unescape;
use crate::failure::{Failure, Outcome};
use halocline::{ColumnFamily, Db, Iter, Options};
use std::ops::Bound;
use std::path::Path;

/// The name of the column family that is always there.
pub const DEFAULT_FAMILY: &str = "default";

/// Opens a database that is there, to read.
fn open_to_read(dir: &Path) -> Outcome<Db> {
    Ok(Options::new().create(false).open_read_only(dir)?)
}

/// Opens a database that is there, to change it.
fn open_to_change(dir: &Path) -> Outcome<Db> {
    Ok(Options::new().create(false).open(dir)?)
}

/// Opens a database, creating it if need be.
fn open_or_create(dir: &Path) -> Outcome<Db> {
    Ok(Db::open(dir)?)
}

/// The column family that a command names; it must be there.
fn family(db: &Db, name: &Family) -> Outcome<ColumnFamily> {
    let name = name.name.as_deref().unwrap_or(DEFAULT_FAMILY);
    db.find_column_family(name)?.ok_or_else(|| {
        let there = db.column_families().unwrap_or_default().join(", ");
        Failure::Input(format!("there is no column family `{name}`; there are: {there}"))
    })
}

/// A key or a bound from the command line.
fn key(text: &str) -> Outcome<Vec<u8>> {
    unescape(text.as_bytes()).map_err(|message| Failure::Input(format!("the key `{text}`: {message}")))
}

/// The entries of a column family within bounds from the command line.
fn entries(family: &ColumnFamily, bounds: &Bounds) -> Outcome<Iter> {
    if let Some(prefix) = &bounds.prefix {
        return Ok(family.prefix(key(prefix)?));
    }
    let from = bounds.from.as_deref().map(key).transpose()?;
    let to = bounds.to.as_deref().map(key).transpose()?;
    if let (Some(from), Some(to)) = (&from, &to)
        && from > to
    {
        return Err(Failure::Input("--from is behind --to: there is nothing between them".into()));
    }
    let from = from.map_or(Bound::Unbounded, Bound::Included);
    let to = to.map_or(Bound::Unbounded, Bound::Excluded);
    Ok(family.range((from, to)))
}
