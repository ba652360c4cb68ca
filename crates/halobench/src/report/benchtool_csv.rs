//! Rows in the columns of benchtool's CSV, so that its plots can be drawn from them: a row for each reported phase, engine
//! and round.
//!
//! A phase that mixes operations has a row for each sort; there the counters of the process are those of the whole phase.
//! What was not measured is empty: a pass has no latencies, and the size of the address space (`peak_vms_mb`) is nobody's
//! figure. benchtool shifts the columns of its ITER rows by one; here they stand under their names.

use super::{Report, Run};
use crate::cases::Case;
use crate::spec::{Kind, Latency, Phase, PhaseResult};
use crate::workload::{Encoding, Order};
use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

/// The header.
pub const COLUMNS: [&str; 33] = [
    "engine",
    "test_name",
    "operation",
    "ops_per_sec",
    "duration_sec",
    "avg_latency_us",
    "stddev_us",
    "cv_percent",
    "p50_us",
    "p95_us",
    "p99_us",
    "min_us",
    "max_us",
    "peak_rss_mb",
    "peak_vms_mb",
    "disk_read_mb",
    "disk_write_mb",
    "cpu_user_sec",
    "cpu_sys_sec",
    "cpu_percent",
    "db_size_mb",
    "write_amp",
    "read_amp",
    "space_amp",
    "workload",
    "pattern",
    "threads",
    "num_operations",
    "batch_size",
    "key_size",
    "value_size",
    "range_size",
    "sync_enabled",
];

const MIB: f64 = (1 << 20) as f64;

/// The rows, behind the header if asked for. `test_name` stands in place of the cases' names.
pub fn text(report: &Report, test_name: Option<&str>, header: bool) -> Result<String, String> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let failed = |e: ::csv::Error| format!("writing CSV: {e}");
    if header {
        writer.write_record(COLUMNS).map_err(failed)?;
    }
    for run in &report.runs {
        let Some(case) = report.cases.iter().find(|c| c.name == run.case) else { continue };
        for result in run.phases.iter().filter(|p| !p.case.is_empty()) {
            let Some(phase) = case.phases.iter().find(|p| p.case == result.case) else { continue };
            for row in rows(run, case, phase, result, test_name) {
                writer.write_record(row).map_err(failed)?;
            }
        }
    }
    let bytes = writer.into_inner().map_err(|e| format!("writing CSV: {e}"))?;
    String::from_utf8(bytes).map_err(|e| format!("writing CSV: {e}"))
}

/// benchtool's word for what a kind of phase does.
fn operation(kind: Kind) -> &'static str {
    match kind {
        Kind::Write => "PUT",
        Kind::Read => "GET",
        Kind::Delete => "DELETE",
        Kind::Seek => "SEEK",
        Kind::Range => "RANGE",
        Kind::Iterate => "ITER",
        Kind::Mixed | Kind::Mix => "MIXED",
    }
}

fn workload(case: &Case, kind: Kind) -> &'static str {
    // benchtool's mixed: reported puts, then reported gets, of one database.
    let has = |kind| case.reported().any(|p| p.kind == kind);
    match kind {
        Kind::Write | Kind::Read | Kind::Iterate if has(Kind::Write) && has(Kind::Read) => "mixed",
        Kind::Iterate => case.reported().next().map_or("iterate", |p| match p.kind {
            Kind::Iterate => "iterate",
            first => workload(case, first),
        }),
        Kind::Write => "write",
        Kind::Read => "read",
        Kind::Delete => "delete",
        Kind::Seek => "seek",
        Kind::Range => "range",
        Kind::Mixed | Kind::Mix => "concurrent",
    }
}

fn pattern(case: &Case, phase: &Phase) -> &'static str {
    match (case.set.encoding, phase.order) {
        (_, Order::Zipf) => "zipfian",
        (Encoding::Timestamp, _) => "timestamp",
        (Encoding::Uuid, _) => "uuid",
        (Encoding::Compat, _) => "compat",
        (Encoding::Ordered, Order::Down) => "reverse",
        (Encoding::Ordered, Order::Up) => "seq",
        _ => "random",
    }
}

fn rows(run: &Run, case: &Case, phase: &Phase, result: &PhaseResult, name: Option<&str>) -> Vec<Vec<String>> {
    let one = |operation: &str, latency: Option<&Latency>, ops: f64, moments: Option<Moments>| {
        let usage = &result.usage;
        let number = |v: f64, digits: usize| format!("{v:.digits$}");
        let us = |ns: Option<f64>| ns.map_or_else(String::new, |ns| number(ns / 1e3, 2));
        let amp = |a: f64, b: u64| if b > 0 { number(a / b as f64, 2) } else { number(0.0, 2) };
        let cpu = usage.cpu_user_s + usage.cpu_system_s;
        let latency = latency.filter(|l| l.samples > 0);
        let of = |f: fn(&Latency) -> f64| us(latency.map(f));
        let space = run.ending.as_ref().map_or(result.space, |e| e.space);
        let memory = result.memory.anon + result.memory.file + result.memory.shmem;
        let read_bytes = if phase.kind.changes() { 0 } else { ops as u64 * entry(case) };
        vec![
            run.engine.clone(),
            name.unwrap_or(&result.case).into(),
            operation.into(),
            number(ops / result.seconds.max(1e-9), 2),
            number(result.seconds, 3),
            of(|l| l.mean_ns),
            us(moments.map(|m| m.deviation_ns)),
            moments.map_or_else(String::new, |m| number(m.deviation_ns / m.mean_ns.max(1e-9) * 100.0, 2)),
            of(|l| l.p50_ns as f64),
            of(|l| l.p95_ns as f64),
            of(|l| l.p99_ns as f64),
            us(moments.map(|m| m.min_ns)),
            of(|l| l.max_ns as f64),
            number(memory.saturating_sub(result.memory.harness) as f64 / MIB, 2),
            String::new(),
            number(usage.read_bytes as f64 / MIB, 2),
            number(usage.write_bytes as f64 / MIB, 2),
            number(usage.cpu_user_s, 3),
            number(usage.cpu_system_s, 3),
            number(cpu / result.seconds.max(1e-9) * 100.0, 1),
            number(space.allocated as f64 / MIB, 2),
            amp(usage.write_bytes as f64, result.user_bytes),
            amp(usage.read_bytes as f64, read_bytes),
            amp(space.allocated as f64, result.live_bytes),
            workload(case, phase.kind).into(),
            pattern(case, phase).into(),
            phase.threads.to_string(),
            result.ops.to_string(),
            phase.batch.to_string(),
            case.set.key_len.to_string(),
            case.set.value_len.to_string(),
            phase.range_size.to_string(),
            u8::from(class_is_sync(run, case)).to_string(),
        ]
    };
    if result.parts.is_empty() {
        let latency = (phase.kind != Kind::Iterate).then_some(&result.latency);
        let moments = latency.and(result.histogram.as_deref()).and_then(moments);
        return vec![one(operation(phase.kind), latency, result.ops as f64, moments)];
    }
    // Samples stand for operations: the same share of each sort is timed.
    let samples: u64 = result.parts.values().map(|l| l.samples).sum();
    result
        .parts
        .iter()
        .map(|(sort, latency)| {
            let ops = result.ops as f64 * latency.samples as f64 / samples.max(1) as f64;
            one(&sort.to_uppercase(), Some(latency), ops, None)
        })
        .collect()
}

fn entry(case: &Case) -> u64 {
    (case.set.key_len + case.set.value_len) as u64
}

fn class_is_sync(run: &Run, case: &Case) -> bool {
    run.other_class.unwrap_or(case.config.durability) == crate::engine::Durability::Sync
}

/// What a histogram knows beyond the percentiles.
#[derive(Clone, Copy)]
struct Moments {
    mean_ns: f64,
    deviation_ns: f64,
    min_ns: f64,
}

fn moments(encoded: &str) -> Option<Moments> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
    let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).ok()?;
    (!histogram.is_empty()).then(|| Moments {
        mean_ns: histogram.mean(),
        deviation_ns: histogram.stdev(),
        min_ns: histogram.min() as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{Params, Workload};
    use hdrhistogram::serialization::{Serializer, V2Serializer};

    fn cells(text: &str) -> Vec<Vec<String>> {
        let mut reader = ::csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
        reader.records().map(|r| r.unwrap().iter().map(String::from).collect()).collect()
    }

    fn result(name: &str, ops: u64) -> PhaseResult {
        PhaseResult {
            case: name.into(),
            ops,
            seconds: 2.0,
            ops_per_s: ops as f64 / 2.0,
            user_bytes: 1160,
            live_bytes: 1160,
            latency: Latency {
                samples: ops,
                mean_ns: 1500.0,
                p50_ns: 1000,
                max_ns: 9000,
                ..Latency::default()
            },
            ..PhaseResult::default()
        }
    }

    #[test]
    fn every_row_has_the_columns_of_the_header() {
        let params =
            Params { workload: Workload::Mixed, ops: 10, batch: 5, iterate: true, ..Params::default() };
        let case = params.case();
        let mut phases: Vec<PhaseResult> = case.phases.iter().map(|p| result(&p.case, 10)).collect();
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        histogram.record(1000).unwrap();
        histogram.record(3000).unwrap();
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&histogram, &mut bytes).unwrap();
        phases[0].histogram = Some(base64::engine::general_purpose::STANDARD.encode(bytes));
        phases[1].parts = [("get", 6), ("put", 4)]
            .map(|(sort, samples)| (sort.to_string(), Latency { samples, ..Latency::default() }))
            .into();
        let run = Run { engine: "e,1".into(), case: case.name.clone(), phases, ..Run::default() };
        let report = Report { cases: vec![case], runs: vec![run], rounds: 1, ..Report::default() };

        let rows = cells(&text(&report, Some("my \"test\""), true).unwrap());
        assert_eq!(rows[0], COLUMNS);
        assert!(rows.iter().all(|r| r.len() == 33));
        let column = |name: &str| COLUMNS.iter().position(|c| *c == name).unwrap();
        let operations: Vec<&str> = rows[1..].iter().map(|r| r[column("operation")].as_str()).collect();
        assert_eq!(operations, ["PUT", "GET", "PUT", "ITER"]);
        let put = &rows[1];
        assert_eq!((put[0].as_str(), put[1].as_str()), ("e,1", "my \"test\""));
        assert_eq!((put[column("min_us")].as_str(), put[column("stddev_us")].as_str()), ("1.00", "1.00"));
        assert_eq!((put[column("workload")].as_str(), put[column("batch_size")].as_str()), ("mixed", "5"));
        assert_eq!(rows[2][column("ops_per_sec")], "3.00", "six of ten in two seconds");
        // The pass: no latencies, and everything behind them under its name.
        let pass = &rows[4];
        assert!(COLUMNS[5..13].iter().all(|c| pass[column(c)].is_empty()), "{pass:?}");
        assert_eq!((pass[column("threads")].as_str(), pass[column("key_size")].as_str()), ("1", "16"));
        assert_eq!(pass[column("sync_enabled")], "0");

        assert_eq!(cells(&text(&report, None, false).unwrap()).len(), 4, "no header when rows are appended");
    }
}
