//! Where a run stands: a bar on a terminal, a line for each child in a pipe. All of it goes to standard error.

use halobench::run::Step;
use halobench::run::eta::clock;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Shows steps.
pub struct Progress {
    bar: ProgressBar,
    lines: bool,
}

impl Progress {
    /// Shows nothing if `quiet`.
    pub fn new(quiet: bool) -> Result<Progress, String> {
        let terminal = std::io::stderr().is_terminal();
        let bar = if quiet || !terminal { ProgressBar::hidden() } else { ProgressBar::new(0) };
        bar.set_style(
            ProgressStyle::with_template("{elapsed_precise} [{bar:24}] {pos}/{len} {msg}")
                .map_err(|e| e.to_string())?,
        );
        bar.enable_steady_tick(Duration::from_millis(500));
        Ok(Progress { bar, lines: !quiet && !terminal })
    }

    /// A child began something, or ended.
    pub fn step(&mut self, step: &Step<'_>) {
        self.bar.set_length(step.of as u64);
        let left = step.left_s.map_or(String::new(), |s| format!(" (about {} left)", clock(s)));
        let Some(ended) = step.ended else {
            self.bar.set_position(step.done as u64);
            let (round, engine, case, doing) = (step.round + 1, step.engine, step.case, step.doing);
            self.bar.set_message(format!("round {round}: {engine} {case}: {doing}{left}"));
            return;
        };
        self.bar.set_position(step.done as u64 + 1);
        if self.lines {
            let how = match (&ended.left_out, &ended.error) {
                (Some(why), _) => format!("left out: {why}"),
                (_, Some(why)) => format!("FAILED: {why}"),
                _ => format!("{:.1} s", ended.seconds),
            };
            let (done, of, round) = (step.done + 1, step.of, step.round + 1);
            eprintln!("[{done}/{of}] round {round} {} {}: {how}{left}", step.engine, step.case);
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
