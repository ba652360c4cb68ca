//! The demo: real text of this machine into Halocline, RocksDB and LMDB, each in a process of its own, every answer
//! checked; a proof by `kill -9` that acknowledged writes survive; one table.
//!
//! All engines get the same terms: a commit is 1,000 records in random order and survives a killed process (no
//! fsync), 64 MB of write buffer, 64 MB of cache, LZ4 where the engine compresses. Reads begin as soon as the load
//! ends; nobody waits for background work.

mod crash;
mod data;
mod memory;
mod table;
mod terms;
mod text;
pub mod worker;

use crate::args::Demo;
use crate::failure::{Failure, Outcome};
use crate::output::{self, bytes, grouped, seconds};
use halobench::interrupt;
use memory::Sampler;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use table::{Column, Measured, Missing};
use text::Text;
use worker::Step;

/// Kills of the crash proof.
const KILLS: u32 = 5;
/// Most records that the crash proof writes.
const CRASH_RECORDS: u64 = 600_000;

/// Runs the demo.
pub fn run(args: &Demo) -> Outcome {
    let start = Instant::now();
    let dir = work_folder(args.dir.as_deref())?;
    interrupt::install().map_err(Failure::Failed)?;
    interrupt::set_dir(Some(dir.path()));
    // Halocline is what the others are compared with: always there, and first.
    let mut engines = vec!["halocline"];
    engines.extend(args.engines.iter().map(String::as_str).filter(|&engine| engine != "halocline"));
    let steps = engines.len() + 2;
    let mut progress = Progress { step: 0, steps };
    eprintln!("databases under {} (removed at the end)", dir.path().display());

    progress.begin("gathering text of this machine");
    let sum = prepare(args, dir.path())?;

    let mut columns = Vec::new();
    for engine in engines {
        columns.push(compete(engine, dir.path(), sum, &mut progress)?);
    }

    progress.begin("proof by kill -9: a process loads and reports each commit, and is killed in the middle");
    let bar = output::progress(None, "writing, killing, verifying");
    let proof = crash::prove(
        "halocline",
        &dir.path().join("killed"),
        dir.path(),
        sum.records.min(CRASH_RECORDS),
        KILLS,
    );
    bar.finish_and_clear();

    let mut out = output::stdout();
    let (text, ratios) = table::render(&columns);
    writeln!(
        out,
        "\n{} records, {} of keys and values; every value compared\n",
        grouped(sum.records),
        bytes(sum.bytes)
    )?;
    out.write_all(text.as_bytes())?;
    writeln!(out, "\nx: how many times better Halocline is (above 1) or worse (below 1).")?;
    writeln!(out, "{}", table::verdict(&ratios))?;
    let mut verified = true;
    for column in &columns {
        match &column.result {
            Ok(measured) => {
                for wrong in &measured.wrong {
                    verified = false;
                    writeln!(out, "NOT VERIFIED: {}: {wrong}", column.name)?;
                }
            }
            Err(Missing::Absent(why)) => writeln!(out, "{} was not measured: {why}", column.name)?,
            Err(Missing::Failed(why)) => {
                verified = false;
                writeln!(out, "NOT VERIFIED: {} failed: {why}", column.name)?;
            }
        }
    }
    match &proof {
        Ok(proof) if proof.holds() => writeln!(
            out,
            "kill -9: {} kills while writing; {} acknowledged records, all there with the right value; no commit \
             half there; slowest recovery {}.",
            proof.kills,
            grouped(proof.acknowledged),
            seconds(proof.slowest_recovery)
        )?,
        Ok(proof) => {
            verified = false;
            writeln!(
                out,
                "NOT VERIFIED: kill -9: of {} acknowledged records {} were lost, and {} commits were torn",
                grouped(proof.acknowledged),
                grouped(proof.lost),
                proof.torn
            )?;
        }
        Err(why) => {
            verified = false;
            writeln!(out, "NOT VERIFIED: kill -9: {why}")?;
        }
    }
    if args.json {
        writeln!(out, "{:#}", json(&columns, sum, &ratios, proof.as_ref().ok()))?;
    }
    out.flush()?;
    eprintln!("took {}", seconds(start.elapsed()));
    if verified { Ok(()) } else { Err(Failure::No) }
}

/// A line for each step.
struct Progress {
    step: usize,
    steps: usize,
}

impl Progress {
    fn begin(&mut self, what: &str) {
        self.step += 1;
        eprintln!("[{}/{}] {what}", self.step, self.steps);
    }
}

/// A folder on a disk: a file system in memory would make every engine look better than it is.
fn work_folder(wanted: Option<&Path>) -> Outcome<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("halocline-demo-");
    if let Some(wanted) = wanted {
        fs::create_dir_all(wanted)
            .map_err(|error| Failure::io(format!("create {}", wanted.display()), &error))?;
        return builder
            .tempdir_in(wanted)
            .map_err(|error| Failure::io("create a folder for the demo", &error));
    }
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let candidates = [std::env::temp_dir(), PathBuf::from("/var/tmp"), PathBuf::from(".")];
    let on_disk = candidates.iter().find(|path| {
        let Ok(path) = path.canonicalize() else { return false };
        !in_memory(&mounts, &path) && builder.tempdir_in(path).is_ok()
    });
    builder
        .tempdir_in(on_disk.unwrap_or(&candidates[0]))
        .map_err(|error| Failure::io("create a folder for the demo (--dir chooses another place)", &error))
}

/// Whether the file system of `path` lies in memory, by the table of mounts.
fn in_memory(mounts: &str, path: &Path) -> bool {
    let mount = mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((fields.next()?, fields.next()?))
        })
        .filter(|(point, _)| path.starts_with(point))
        .max_by_key(|(point, _)| point.len());
    matches!(mount, Some((_, "tmpfs" | "ramfs")))
}

/// Gathers the text and writes it for the workers, in two random orders.
fn prepare(args: &Demo, dir: &Path) -> Outcome<data::Sum> {
    let budget = usize::try_from(args.megabytes * 1_000_000).unwrap_or(usize::MAX);
    let bar = output::progress(None, "reading");
    let mut text = Text::gather(budget, |source| bar.set_message(format!("reading {source}")));
    bar.finish_and_clear();
    if text.len() == 0 {
        return Err(Failure::Failed(
            "found no text on this machine: neither package lists nor sources".into(),
        ));
    }
    for (source, records, size) in &text.sources {
        eprintln!("      {source}: {} records, {}", grouped(*records), bytes(*size));
    }
    let written = |text: &Text, name: &str| {
        data::write(text, &dir.join(name)).map_err(|error| Failure::io("write the demo's records", &error))
    };
    text.shuffle(1);
    let sum = written(&text, worker::LOAD_FILE)?;
    text.shuffle(2);
    written(&text, worker::READ_FILE)?;
    Ok(sum)
}

/// Measures one engine, if it is there.
fn compete(engine: &str, dir: &Path, sum: data::Sum, progress: &mut Progress) -> Outcome<Column> {
    let bar = output::progress(None, format!("fetching the library of {}", terms::title(engine)));
    let availability = terms::availability(engine, &mut |done, total| {
        bar.set_message(format!("fetching its library: {} of {}", bytes(done), bytes(total)));
    });
    bar.finish_and_clear();
    let availability = availability.map_err(Failure::Input)?;
    let (name, result) = match (availability.version, availability.missing) {
        (Some(version), None) => {
            let name = format!("{} {version}", terms::title(engine));
            progress.begin(&format!("{name}: load, get every key, scan, close, reopen"));
            let db = dir.join(engine);
            let result = measure(engine, &db, dir, sum).map_err(Missing::Failed);
            // It makes room for the next engine; what cannot be removed now goes with the whole folder.
            let _ = fs::remove_dir_all(&db);
            (name, result)
        }
        (_, missing) => {
            let name = terms::title(engine).to_owned();
            progress.begin(&format!("{name}: not here"));
            (name, Err(Missing::Absent(missing.unwrap_or_default())))
        }
    };
    if let Err(Missing::Absent(why) | Missing::Failed(why)) = &result {
        eprintln!("      not measured: {why}");
    }
    Ok(Column { name, result })
}

/// Runs a worker and takes in its steps.
fn measure(engine: &str, db: &Path, data: &Path, sum: data::Sum) -> Result<Measured, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .args(["demo-worker", "measure", engine])
        .arg(db)
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("could not start its process: {error}"))?;
    interrupt::set_child(Some(child.id()));
    let sampler = Sampler::start(child.id());
    let Some(output) = child.stdout.take() else { return Err("its process has no pipe".into()) };
    let mut measured = Measured { records: sum.records, ..Measured::default() };
    let mut steps = 0;
    let mut failed = None;
    let bar = output::progress(None, "loading");
    for line in BufReader::new(output).lines() {
        let line = line.map_err(|error| error.to_string())?;
        let step: Step =
            serde_json::from_str(&line).map_err(|error| format!("unexpected output: {error}: {line}"))?;
        steps += 1;
        bar.suspend(|| report(&step, sum.records));
        bar.set_message(match step {
            Step::Load { .. } => "reading every key",
            Step::Get { .. } => "scanning",
            _ => "closing and reopening",
        });
        take_in(step, &mut measured, &mut failed);
    }
    bar.finish_and_clear();
    measured.peak = sampler.finish();
    interrupt::set_child(None);
    let status = child.wait().map_err(|error| error.to_string())?;
    match failed {
        Some(message) => Err(message),
        None if !status.success() => Err(format!("its process ended early: {status}")),
        None if steps < 5 => Err("its process left steps out".into()),
        None => Ok(measured),
    }
}

fn take_in(step: Step, measured: &mut Measured, failed: &mut Option<String>) {
    let time = Duration::from_nanos;
    match step {
        Step::Load { nanoseconds } => measured.load = time(nanoseconds),
        Step::Get { nanoseconds, wrong } => {
            measured.get = time(nanoseconds);
            if wrong > 0 {
                measured.wrong.push(format!("{} gets did not return the value", grouped(wrong)));
            }
        }
        Step::Scan { nanoseconds, ordered, complete } => {
            measured.scan = time(nanoseconds);
            if !ordered {
                measured.wrong.push("the scan was out of order".into());
            }
            if !complete {
                measured.wrong.push("the scan did not return what was loaded".into());
            }
        }
        Step::Close { disk_bytes, .. } => measured.disk_bytes = disk_bytes,
        Step::Reopen { nanoseconds, found } => {
            measured.reopen = time(nanoseconds);
            if !found {
                measured.wrong.push("a record was not there after reopening".into());
            }
        }
        Step::Failed { message } => *failed = Some(message),
    }
}

fn report(step: &Step, records: u64) {
    let rate = |nanoseconds: u64| {
        let rate = records as f64 / Duration::from_nanos(nanoseconds).as_secs_f64().max(1e-9);
        format!("{} a second", grouped(rate as u64))
    };
    match step {
        Step::Load { nanoseconds } => eprintln!("      loaded {}", rate(*nanoseconds)),
        Step::Get { nanoseconds, wrong } => eprintln!("      read {}, {wrong} wrong", rate(*nanoseconds)),
        Step::Scan { nanoseconds, ordered, complete } => eprintln!(
            "      scanned {}, {}",
            rate(*nanoseconds),
            if *ordered && *complete { "in order and complete" } else { "WRONG" }
        ),
        Step::Close { nanoseconds, disk_bytes } => {
            eprintln!(
                "      closed in {}, {} on disk",
                seconds(Duration::from_nanos(*nanoseconds)),
                bytes(*disk_bytes)
            );
        }
        Step::Reopen { nanoseconds, .. } => {
            eprintln!("      reopened in {}", seconds(Duration::from_nanos(*nanoseconds)));
        }
        // Said with the engine's name when its process has ended.
        Step::Failed { .. } => {}
    }
}

fn json(
    columns: &[Column],
    sum: data::Sum,
    ratios: &[table::Ratio],
    proof: Option<&crash::Proof>,
) -> serde_json::Value {
    let engines: Vec<_> = columns
        .iter()
        .map(|column| match &column.result {
            Ok(m) => serde_json::json!({
                "engine": column.name,
                "load_seconds": m.load.as_secs_f64(),
                "get_seconds": m.get.as_secs_f64(),
                "scan_seconds": m.scan.as_secs_f64(),
                "reopen_seconds": m.reopen.as_secs_f64(),
                "disk_bytes": m.disk_bytes,
                "peak_anonymous_bytes": m.peak.anonymous,
                "peak_file_bytes": m.peak.file,
                "wrong": m.wrong,
            }),
            Err(Missing::Absent(why) | Missing::Failed(why)) => {
                serde_json::json!({ "engine": column.name, "not_measured": why })
            }
        })
        .collect();
    serde_json::json!({
        "records": sum.records,
        "bytes": sum.bytes,
        "engines": engines,
        "ratios": ratios,
        "kill_proof": proof.map(|proof| serde_json::json!({
            "kills": proof.kills,
            "acknowledged": proof.acknowledged,
            "lost": proof.lost,
            "torn": proof.torn,
            "slowest_recovery_seconds": proof.slowest_recovery.as_secs_f64(),
        })),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_in_memory_is_recognised() {
        let mounts = "/dev/sda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/sdb /tmp/disk ext4 rw 0 0\n";
        assert!(!in_memory(mounts, Path::new("/var/tmp")));
        assert!(in_memory(mounts, Path::new("/tmp/x")));
        assert!(!in_memory(mounts, Path::new("/tmp/disk/x")));
        assert!(!in_memory(mounts, Path::new("/tmpx")));
    }
}
