//! What runs in a process of its own: the measurement of one engine, and the writer that gets killed.
//!
//! `measure` prints a line of JSON for each step as it ends; `write-until-killed` writes, for each commit, the number
//! of records acknowledged so far as eight little-endian bytes.

use super::data::{Block, Reader, Sum};
use super::store::{self, Store};
use crate::args::DemoWorker;
use crate::failure::{Failure, Outcome};
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
    let mut block = Block::default();

    let mut store = store::open(engine, path)?;
    let mut time = Duration::ZERO;
    let mut reader = open(&data.join(LOAD_FILE))?;
    let expected = reader.sum;
    loop {
        fill(&mut reader, &mut block)?;
        if block.is_empty() {
            break;
        }
        let start = Instant::now();
        commit(store.as_mut(), &block, BATCH, |_| Ok(()))?;
        time += start.elapsed();
    }
    told(Step::Load { nanoseconds: nanoseconds(time) })?;

    let (mut time, mut wrong) = (Duration::ZERO, 0);
    let mut reader = open(&data.join(READ_FILE))?;
    let mut last = Vec::new();
    loop {
        fill(&mut reader, &mut block)?;
        if block.is_empty() {
            break;
        }
        let start = Instant::now();
        for (key, value) in block.iter() {
            wrong += u64::from(!store.holds(key, value)?);
        }
        time += start.elapsed();
        if let Some(record) = block.iter().last() {
            last = vec![record.0.to_vec(), record.1.to_vec()];
        }
    }
    told(Step::Get { nanoseconds: nanoseconds(time), wrong })?;

    let start = Instant::now();
    let mut sum = Sum::default();
    let mut ordered = true;
    let mut before = Vec::new();
    store.scan(&mut |key, value| {
        ordered &= sum.records == 0 || *before < *key;
        before.clear();
        before.extend_from_slice(key);
        sum.add(key, value);
    })?;
    told(Step::Scan { nanoseconds: nanoseconds(start.elapsed()), ordered, complete: sum == expected })?;

    let start = Instant::now();
    store.close()?;
    let time = start.elapsed();
    told(Step::Close { nanoseconds: nanoseconds(time), disk_bytes: disk_bytes(path) })?;

    let start = Instant::now();
    let store = store::open(engine, path)?;
    let found = match &last[..] {
        [key, value] => store.holds(key, value)?,
        _ => false,
    };
    let time = start.elapsed();
    told(Step::Reopen { nanoseconds: nanoseconds(time), found })?;
    store.close()
}

fn write_until_killed(args: &DemoWorker) -> Result<(), String> {
    let mut store = store::open(&args.engine, &args.db)?;
    let mut reader = open(&args.data.join(LOAD_FILE))?;
    reader.skip(args.skip).map_err(|error| error.to_string())?;
    let mut acknowledged = args.skip;
    let mut block = Block::default();
    let mut out = io::stdout().lock();
    loop {
        fill(&mut reader, &mut block)?;
        if block.is_empty() {
            return store.close();
        }
        commit(store.as_mut(), &block, CRASH_BATCH, |records| {
            acknowledged += records as u64;
            out.write_all(&acknowledged.to_le_bytes())
                .and_then(|()| out.flush())
                .map_err(|error| error.to_string())
        })?;
    }
}

/// Commits a block's records in batches; `done` is told the size of each when it is committed.
fn commit(
    store: &mut dyn Store,
    block: &Block,
    batch: usize,
    mut done: impl FnMut(usize) -> Result<(), String>,
) -> Result<(), String> {
    let mut records = block.iter();
    let mut left = block.len();
    while left > 0 {
        let size = left.min(batch);
        store.write(&mut records.by_ref().take(size))?;
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
