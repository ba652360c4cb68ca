//! `run` and `case`.

use super::args::RunArgs;
use super::{code, notes, output, progress, setup};
use halobench::cases::select;
use halobench::interrupt;
use halobench::report::table;
use halobench::run::{self, Job};
use std::io::IsTerminal;
use std::time::Duration;

/// Runs what the flags say.
pub fn run(args: &RunArgs) -> Result<u8, String> {
    let chosen = args.chosen()?;
    if args.list {
        print!("{}", select::list(&chosen.cases));
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

    // A suite's tables are long: its files have them, and the grid shows where to look.
    let full = table::text(&report);
    if let Some(path) = &args.report {
        std::fs::write(path, &full).map_err(|e| format!("writing {}: {e}", path.display()))?;
    }
    let mut text = if chosen.suite.is_some() { table::grid(&report) } else { full };
    if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        for word in ["VOID", "FAILED"] {
            text = text.replace(word, &format!("\x1b[31m{word}\x1b[0m"));
        }
    }
    print!("{text}");
    for line in notes::notes(&report) {
        println!("{line}");
    }
    if let Some(path) = &args.csv {
        output::append_csv(&report, path, args.test_name.as_deref())?;
        println!("rows: {}", path.display());
    }
    if let Some(path) = &args.json {
        report.save(path)?;
        println!("all figures: {}", path.display());
    }
    if let Some(dir) = &out {
        for (what, path) in output::write_all(&report, dir)? {
            println!("{what}: {}", path.display());
        }
    }
    if report.interrupted {
        println!("interrupted: these are the figures of {} children", report.runs.len());
        return Ok(code::INTERRUPTED);
    }
    Ok(if report.troubles().is_empty() { code::GOOD } else { code::TROUBLE })
}
