//! `load`: records of a text into the database, in batches.

use super::{DEFAULT_FAMILY, open_or_create};
use crate::args::Load;
use crate::failure::{Failure, Outcome};
use crate::formats::{self, Record};
use crate::output::{self, bytes, grouped, seconds};
use halocline::{ColumnFamily, Db, Durability, WriteBatch};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::time::Instant;

/// A batch is committed at so many records or bytes.
const BATCH_RECORDS: usize = 1000;
const BATCH_BYTES: usize = 1 << 20;

/// Loads a file or standard input.
pub fn run(args: &Load) -> Outcome {
    let stdin = args.file.as_os_str() == "-";
    let name = if stdin { "standard input".to_owned() } else { args.file.display().to_string() };
    let (source, total): (Box<dyn Read>, Option<u64>) = if stdin {
        (Box::new(std::io::stdin().lock()), None)
    } else {
        let file = File::open(&args.file).map_err(|error| Failure::io(format!("open {name}"), &error))?;
        let total = file.metadata().ok().filter(|data| data.is_file()).map(|data| data.len());
        (Box::new(file), total)
    };
    let bar = output::progress(total, format!("loading {name}"));
    let mut input = BufReader::with_capacity(1 << 20, bar.wrap_read(source));
    let beginning = input.fill_buf().map_err(|error| Failure::io(format!("read {name}"), &error))?;
    let key = args.key.as_deref();
    let format = args.format.unwrap_or_else(|| formats::detect(&name, beginning, key));
    let mut records = formats::reader(format, key, Box::new(input)).map_err(Failure::Input)?;

    let db = open_or_create(&args.db.dir)?;
    let start = Instant::now();
    let mut loader = Loader::new(&db, args.family.name.as_deref(), args.sync)?;
    let mut record = Record::default();
    let end = loop {
        match records.read(&mut record) {
            Ok(true) => loader.add(&record)?,
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    loader.commit()?;
    let (records, user_bytes) = (loader.records, loader.bytes);
    db.close()?;
    bar.finish_and_clear();
    if let Err(error) = end {
        return Err(Failure::Input(format!(
            "{name}, read as {format}: {error} (the {} records before it were loaded)",
            grouped(records)
        )));
    }
    let elapsed = start.elapsed();
    let rate = (records as f64 / elapsed.as_secs_f64().max(1e-9)) as u64;
    eprintln!(
        "loaded {} records, {} ({format}), in {}: {} records/s",
        grouped(records),
        bytes(user_bytes),
        seconds(elapsed),
        grouped(rate)
    );
    Ok(())
}

/// Gathers records into batches.
struct Loader<'d> {
    db: &'d Db,
    /// What `--cf` said: it goes before what a dump says.
    forced: bool,
    durability: Option<Durability>,
    name: String,
    family: ColumnFamily,
    batch: WriteBatch,
    batch_bytes: usize,
    records: u64,
    bytes: u64,
}

impl<'d> Loader<'d> {
    fn new(db: &'d Db, family: Option<&str>, sync: bool) -> Outcome<Loader<'d>> {
        let name = family.unwrap_or(DEFAULT_FAMILY).to_owned();
        Ok(Loader {
            db,
            forced: family.is_some(),
            durability: sync.then_some(Durability::Sync),
            family: db.column_family(&name)?,
            name,
            batch: WriteBatch::new(),
            batch_bytes: 0,
            records: 0,
            bytes: 0,
        })
    }

    fn add(&mut self, record: &Record) -> Outcome {
        if let Some(name) = &record.family
            && !self.forced
            && *name != self.name
        {
            self.family = self.db.column_family(name)?;
            self.name.clone_from(name);
        }
        self.batch.put_cf(&self.family, &record.key, &record.value);
        self.batch_bytes += record.key.len() + record.value.len();
        if self.batch.len() >= BATCH_RECORDS || self.batch_bytes >= BATCH_BYTES {
            self.commit()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Outcome {
        if self.batch.is_empty() {
            return Ok(());
        }
        match self.durability {
            Some(durability) => self.db.write_with(&self.batch, durability)?,
            None => self.db.write(&self.batch)?,
        }
        self.records += self.batch.len() as u64;
        self.bytes += self.batch_bytes as u64;
        self.batch.clear();
        self.batch_bytes = 0;
        Ok(())
    }
}
