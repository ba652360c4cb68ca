//! `stats`, `compact`, `check`: the database as a whole.

use super::{open_to_change, open_to_read};
use crate::args::{self, Database};
use crate::escape::escape;
use crate::failure::{Failure, Outcome};
use crate::output::{self, bytes, grouped, seconds};
use halocline::Options;
use serde_json::json;
use std::io::Write as _;
use std::time::Instant;

/// The tier of the last run.
const LAST_TIER: u8 = 255;

/// Prints figures.
pub fn stats(args: &args::Stats) -> Outcome {
    let db = open_to_read(&args.db.dir)?;
    let stats = db.stats();
    let families = db.column_families()?;
    let mut out = output::stdout();
    if args.json {
        let levels: Vec<_> = stats
            .levels
            .iter()
            .map(|level| {
                json!({
                    "tier": level.tier,
                    "runs": level.runs,
                    "files": level.files,
                    "bytes": level.bytes,
                    "entries": level.entries,
                })
            })
            .collect();
        let json = json!({
            "column_families": families,
            "levels": levels,
            "disk_bytes": stats.disk_bytes,
            "memory_bytes": {
                "memtables": stats.memory.memtables,
                "segments": stats.memory.segments,
                "tables": stats.memory.tables,
                "cache": stats.memory.cache,
            },
        });
        writeln!(out, "{json:#}")?;
        return Ok(out.flush()?);
    }
    let families: Vec<_> = families.iter().map(|name| escape(name.as_bytes())).collect();
    writeln!(out, "column families  {}", families.join(", "))?;
    writeln!(out, "on disk          {}", bytes(stats.disk_bytes))?;
    writeln!(
        out,
        "in memory        {} (memtables {}, filters and fences {}, cache {}), log segments {}",
        bytes(stats.memory.memtables + stats.memory.tables + stats.memory.cache),
        bytes(stats.memory.memtables),
        bytes(stats.memory.tables),
        bytes(stats.memory.cache),
        bytes(stats.memory.segments)
    )?;
    for level in &stats.levels {
        let tier =
            if level.tier == LAST_TIER { "last run".to_owned() } else { format!("tier {}", level.tier) };
        writeln!(
            out,
            "{tier:<15}  {} {}, {} {}, {}, {} entries (all versions)",
            level.runs,
            if level.runs == 1 { "run" } else { "runs" },
            level.files,
            if level.files == 1 { "file" } else { "files" },
            bytes(level.bytes),
            grouped(level.entries)
        )?;
    }
    Ok(out.flush()?)
}

/// Merges everything.
pub fn compact(args: &Database) -> Outcome {
    let db = open_to_change(&args.dir)?;
    let before = db.stats().disk_bytes;
    let start = Instant::now();
    let bar = output::progress(None, "compacting");
    db.compact_range(..)?;
    db.wait_idle()?;
    bar.finish_and_clear();
    let after = db.stats().disk_bytes;
    db.close()?;
    eprintln!(
        "compacted in {}: {} on disk before, {} now",
        seconds(start.elapsed()),
        bytes(before),
        bytes(after)
    );
    Ok(())
}

/// Verifies every file.
pub fn check(args: &args::Check) -> Outcome {
    let bar = output::progress(None, "checking");
    let report = Options::new().create(false).check(&args.db.dir)?;
    bar.finish_and_clear();
    let mut out = output::stdout();
    if args.json {
        let damages: Vec<_> = report
            .damages
            .iter()
            .map(|damage| {
                json!({
                    "file": damage.error.path().map(|path| path.display().to_string()),
                    "offset": damage.error.offset(),
                    "message": damage.error.to_string(),
                })
            })
            .collect();
        let json = json!({
            "files": report.files,
            "bytes": report.bytes,
            "entries": report.entries,
            "damages": damages,
        });
        writeln!(out, "{json:#}")?;
    } else {
        for damage in &report.damages {
            writeln!(out, "damaged: {}", damage.error)?;
        }
        writeln!(
            out,
            "{}: {} files, {}, {} entries read",
            match report.damages.len() {
                0 => "sound".to_owned(),
                1 => "1 damage".to_owned(),
                n => format!("{} damages", grouped(n as u64)),
            },
            grouped(report.files as u64),
            bytes(report.bytes),
            grouped(report.entries)
        )?;
    }
    out.flush()?;
    if report.damages.is_empty() { Ok(()) } else { Err(Failure::No) }
}
