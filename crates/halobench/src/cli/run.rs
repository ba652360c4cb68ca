//! `run` and `case`.

use super::args::RunArgs;
use super::{code, output, progress, say, setup};
use halobench::cases::select;
use halobench::interrupt;
use halobench::report::{table, words};
use halobench::run::{self, Job};
use std::io::IsTerminal;
use std::time::Duration;

/// Runs what the flags say.
pub fn run(args: &RunArgs) -> Result<u8, String> {
    let chosen = args.chosen()?;
    if args.list {
        say::text(&select::list(&chosen.cases));
        return Ok(code::GOOD);
    }
    // A suite's results are kept in any case; a single case's where the user says.
    let out = match (&args.out, chosen.suite) {
        (Some(dir), _) => Some(dir.clone()),
        (None, Some(suite)) => Some(output::default_dir(suite.name)),
        (None, None) => None,
    };
    if let Some(dir) = &out {
        std::fs::create_dir_all(dir).map_err(|e| format!("creating {}: {e}", dir.display()))?;
    }
    interrupt::install()?;
    setup::prepare(&chosen.engines, args.rocksdb_lib.as_deref());
    let job = Job {
        engines: chosen.engines,
        cases: chosen.cases,
        suite: chosen.suite.map(|s| s.name.to_string()),
        rounds: chosen.rounds,
        dir: args.dir.clone().or_else(|| out.as_deref().map(|dir| dir.join("databases"))),
        keep: args.keep,
        save: out.as_deref().map(|dir| dir.join(output::RESULT)).or_else(|| args.json.clone()),
        rocksdb_lib: args.rocksdb_lib.clone(),
        settle_limit_s: args.settle_limit,
        latency_every: args.latency_every.max(1),
        timeout: Duration::from_secs(args.timeout),
        skip_slow: chosen.skip_slow,
        any_durability: args.any_durability,
        program: None,
    };
    let mut progress = progress::Progress::new(args.quiet)?;
    let report = run::run(&job, &mut |step| progress.step(step))?;
    progress.finish();
    if let (None, Some(dir)) = (&args.dir, &out) {
        // Empty unless databases are kept.
        let _ = std::fs::remove_dir(dir.join("databases"));
    }

    // Files first: what reads this output may go away before its end.
    let full = table::text(&report);
    let mut files = Vec::new();
    if let Some(path) = &args.report {
        std::fs::write(path, &full).map_err(|e| format!("writing {}: {e}", path.display()))?;
    }
    if let Some(path) = &args.csv {
        output::append_csv(&report, path, args.test_name.as_deref())?;
        files.push(("rows", path.clone()));
    }
    if let Some(path) = &args.json {
        report.save(path)?;
        files.push(("all figures", path.clone()));
    }
    if let Some(dir) = &out {
        files.extend(output::write_all(&report, dir)?);
    }
    // A suite's tables are long: its files have them, and the grid shows where to look.
    let mut text = if chosen.suite.is_some() { table::grid(&report) } else { full };
    if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        for word in ["VOID", "FAILED"] {
            text = text.replace(word, &format!("\x1b[31m{word}\x1b[0m"));
        }
    }
    say::text(&text);
    for line in words::notes(&report) {
        say::line(&line);
    }
    for (what, path) in &files {
        say::line(&format!("{what}: {}", path.display()));
    }
    if report.interrupted {
        say::line(&format!("interrupted: these are the figures of {} children", report.runs.len()));
        return Ok(code::INTERRUPTED);
    }
    Ok(if report.troubles().is_empty() { code::GOOD } else { code::TROUBLE })
}
