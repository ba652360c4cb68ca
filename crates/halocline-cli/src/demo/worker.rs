//! What runs in a process of its own: the measurement of one engine, and the writer that gets killed.
//!
//! `measure` prints a line of JSON for each step as it ends; `write-until-killed` writes, for each commit, the number
//! of records acknowledged so far as eight little-endian bytes.

use super::data::{Block, Reader, Sum};
use super::terms;
use crate::args::DemoWorker;
use crate::failure::{Failure, Outcome};
use halobench::engine::{self, Session};
use serde::{Deserialize, Serialize};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Records in a commit of the measured load.
const BATCH: usize = 1000;
/// Records in a commit of the writer that gets killed.
pub const CRASH_BATCH: usize = 100;
/// Records read into memory between timed sections.
const BLOCK: usize = 20_000;

/// The file with the records in the order of the load, in the folder given to a worker.
pub const LOAD_FILE: &str = "load";
/// The file with the records in the order of the reads.
pub const READ_FILE: &str = "read";

/// A step that ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    Load { nanoseconds: u64 },
    Get { nanoseconds: u64, wrong: u64 },
    Scan { nanoseconds: u64, ordered: bool, complete: bool },
    Close { nanoseconds: u64, disk_bytes: u64 },
    Reopen { nanoseconds: u64, found: bool },
    Failed { message: String },
}

/// Runs a worker.
pub fn run(args: &DemoWorker) -> Outcome {
    match args.task.as_str() {
        "measure" => {
            if let Err(message) = measure(&args.engine, &args.db, &args.data) {
                say(&Step::Failed { message })?;
            }
            Ok(())
        }
        "write-until-killed" => write_until_killed(args).map_err(Failure::Failed),
        other => Err(Failure::Input(format!("no such task: {other}"))),
    }
}

fn say(step: &Step) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, step)?;
    out.write_all(b"\n")?;
    out.flush()
}

fn told(step: Step) -> Result<(), String> {
    say(&step).map_err(|error| error.to_string())
}

fn measure(engine: &str, path: &Path, data: &Path) -> Result<(), String> {
    std::fs::create_dir_all(path).map_err(|error| format!("could not create {}: {error}", path.display()))?;
    let expected = open(&data.join(LOAD_FILE))?.sum;
    let database = engine::open(engine, path, &terms::config(expected))?;
    let mut session = database.session()?;
    load(session.as_mut(), data)?;
    let last = get(session.as_mut(), data)?;
    scan(session.as_mut(), expected)?;
    drop(session);

    let start = Instant::now();
    database.close()?;
    let time = start.elapsed();
    told(Step::Close { nanoseconds: nanoseconds(time), disk_bytes: disk_bytes(path) })?;

    let start = Instant::now();
    let database = engine::open(engine, path, &terms::config(expected))?;
    let found = holds(database.session()?.as_mut(), &last.0, &last.1)?;
    let time = start.elapsed();
    told(Step::Reopen { nanoseconds: nanoseconds(time), found })?;
    database.close()
}

fn load(session: &mut dyn Session, data: &Path) -> Result<(), String> {
    let (mut reader, mut block) = (open(&data.join(LOAD_FILE))?, Block::default());
    let mut time = Duration::ZERO;
    loop {
        fill(&mut reader, &mut block)?;
        if block.is_empty() {
            return told(Step::Load { nanoseconds: nanoseconds(time) });
        }
        let start = Instant::now();
        commit(session, &block, BATCH, |_| Ok(()))?;
        time += start.elapsed();
    }
}

/// Gets every record; returns the last one.
fn get(session: &mut dyn Session, data: &Path) -> Result<(Vec<u8>, Vec<u8>), String> {
    let (mut reader, mut block) = (open(&data.join(READ_FILE))?, Block::default());
    let (mut time, mut wrong) = (Duration::ZERO, 0);
    let mut last = Default::default();
    loop {
        fill(&mut reader, &mut block)?;
        let Some((key, value)) = block.iter().last() else {
            told(Step::Get { nanoseconds: nanoseconds(time), wrong })?;
            return Ok(last);
        };
        last = (key.to_vec(), value.to_vec());
        let start = Instant::now();
        for (key, value) in block.iter() {
            wrong += u64::from(!holds(session, key, value)?);
        }
        time += start.elapsed();
    }
}

fn scan(session: &mut dyn Session, expected: Sum) -> Result<(), String> {
    let start = Instant::now();
    let (mut sum, mut ordered) = (Sum::default(), true);
    let (mut key, mut before) = (Vec::new(), Vec::new());
    let mut cursor = session.cursor()?;
    let mut more = cursor.seek_first()?;
    while more {
        std::mem::swap(&mut key, &mut before);
        key.clear();
        key.extend_from_slice(cursor.key());
        ordered &= sum.records == 0 || before < key;
        sum.add(&key, cursor.value()?);
        more = cursor.next()?;
    }
    told(Step::Scan { nanoseconds: nanoseconds(start.elapsed()), ordered, complete: sum == expected })
}

/// Whether `key` has exactly this value, compared where the engine keeps it.
#[inline]
pub fn holds(session: &mut dyn Session, key: &[u8], value: &[u8]) -> Result<bool, String> {
    Ok(session.get(key)?.is_some_and(|found| found == value))
}

fn write_until_killed(args: &DemoWorker) -> Result<(), String> {
    let (mut reader, mut block) = (open(&args.data.join(LOAD_FILE))?, Block::default());
    let database = engine::open(&args.engine, &args.db, &terms::config(reader.sum))?;
    let mut session = database.session()?;
    reader.skip(args.skip).map_err(|error| error.to_string())?;
    let mut acknowledged = args.skip;
    let mut out = io::stdout().lock();
    loop {
        fill(&mut reader, &mut block)?;
        if block.is_empty() {
            return Ok(());
        }
        commit(session.as_mut(), &block, CRASH_BATCH, |records| {
            acknowledged += records as u64;
            out.write_all(&acknowledged.to_le_bytes())
                .and_then(|()| out.flush())
                .map_err(|error| error.to_string())
        })?;
    }
}

/// Commits a block's records in batches; `done` is told the size of each when it is committed.
fn commit(
    session: &mut dyn Session,
    block: &Block,
    batch: usize,
    mut done: impl FnMut(usize) -> Result<(), String>,
) -> Result<(), String> {
    let mut records = block.iter();
    let mut left = block.len();
    while left > 0 {
        let size = left.min(batch);
        for (key, value) in records.by_ref().take(size) {
            session.batch_put(key, value)?;
        }
        session.commit()?;
        done(size)?;
        left -= size;
    }
    Ok(())
}

fn open(path: &Path) -> Result<Reader, String> {
    Reader::open(path).map_err(|error| format!("could not read the demo's records: {error}"))
}

fn fill(reader: &mut Reader, block: &mut Block) -> Result<(), String> {
    reader.block(block, BLOCK).map_err(|error| format!("could not read the demo's records: {error}"))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Bytes that a folder's files take on disk: blocks, not lengths, since files may have holes.
pub fn disk_bytes(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let data = entry.metadata().ok()?;
            Some(if data.is_dir() { disk_bytes(&entry.path()) } else { data.blocks() * 512 })
        })
        .sum()
}
