//! A full verification, read-only: every byte of every file, and what they say of each other.

use super::open::open_core;
use super::options::Options;
use super::read::dropped;
use crate::iter::{Source, Visibility};
use crate::sync::Arc;
use crate::{Error, ErrorKind, Result};
use std::path::Path;

/// What [`Options::check`] found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// Files read.
    pub files: usize,
    /// Bytes of these.
    pub bytes: u64,
    /// Entries read, all versions.
    pub entries: u64,
    /// Each damage found; empty for a sound database.
    pub damages: Vec<Damage>,
}

impl CheckReport {
    /// Whether no damage was found.
    pub fn is_sound(&self) -> bool {
        self.damages.is_empty()
    }
}

/// One damaged place.
#[derive(Clone, Debug)]
pub struct Damage {
    /// What is wrong, with the file and the offset.
    pub error: Error,
}

/// Verifies the database in `dir`.
pub(crate) fn check(options: Options, dir: &Path) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let vfs = Arc::clone(&options.vfs);
    let core = match open_core(options, dir) {
        Ok(core) => core,
        // A manifest, a log segment or a table's frame is damaged: that is what was asked for.
        Err(error) if matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported) => {
            report.damages.push(Damage { error });
            return Ok(report);
        }
        Err(e) => return Err(e),
    };
    for entry in vfs.list(dir).map_err(|e| Error::io("list the database directory", dir, e))? {
        report.files += 1;
        report.bytes += entry.len;
    }
    let version = core.version.load_arc();
    for mem in &version.sealed {
        let mut cursor = mem.memtable.cursor(Visibility::All);
        cursor.seek_first()?;
        while cursor.valid() {
            report.entries += 1;
            cursor.next()?;
        }
    }
    for family in &version.tree.families {
        let family = version.tree.family(family.id).ok_or_else(|| dropped(family.id))?;
        for table in family.all_runs().flat_map(|run| run.tables()) {
            match table.verify() {
                Ok(entries) => report.entries += entries,
                Err(error) => report.damages.push(Damage { error }),
            }
        }
    }
    Ok(report)
}
