//! What a run found, as one JSON file, and all that is shown of it.
//!
//! [`Report`] is the file; [`figures::Figures`] is its index, and the only place where figures are computed: the page
//! ([`html`]), the terminal ([`table`]), the files for other programs ([`csv`], [`summary`]), the Markdown table
//! ([`markdown`]) and the comparison of two runs ([`compare`]) only show them. All of them bear runs that were cut
//! short: what is missing is said in words, and the rest is shown.

pub mod benchtool_csv;
pub mod compare;
pub mod csv;
pub mod digests;
pub mod figures;
pub mod groups;
pub mod histogram;
pub mod html;
pub mod markdown;
pub mod metrics;
pub mod stats;
pub mod summary;
pub mod table;
#[cfg(test)]
mod tests;
pub mod units;
pub mod words;

use crate::cases::Case;
use crate::engine::Durability;
use crate::engine::registry::Availability;
use crate::machine::Machine;
use crate::spec::{Ending, PhaseResult};
use serde::{Deserialize, Serialize};

/// Everything about a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The format of this file.
    pub format: u32,
    /// The lab's version.
    pub halobench: String,
    /// The command line.
    pub command: Vec<String>,
    /// When it began.
    pub started_unix_s: u64,
    /// Where.
    pub machine: Machine,
    /// The engines asked for.
    pub engines: Vec<Availability>,
    /// Rounds.
    pub rounds: u32,
    /// What was run, with all sizes and terms.
    pub cases: Vec<Case>,
    /// What came of it.
    pub runs: Vec<Run>,
    /// The suite, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// When the last child ended.
    #[serde(default)]
    pub ended_unix_s: u64,
    /// Whether it was cut short: rounds, cases or engines are missing.
    #[serde(default)]
    pub interrupted: bool,
}

/// One engine through one case in one round.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    /// From 0.
    pub round: u32,
    /// The engine.
    pub engine: String,
    /// The case.
    pub case: String,
    /// Its phases, as far as it got.
    pub phases: Vec<PhaseResult>,
    /// Its end, if it got there.
    pub ending: Option<Ending>,
    /// Why it did not.
    pub error: Option<String>,
    /// Why it was not even tried: the engine lacks the durability class, or was too slow in an earlier round. No
    /// trouble, and no figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// The durability class it was run in, where that is not the case's: never compared without saying so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_class: Option<Durability>,
    /// What else is to be known about it, such as a memory limit that could not be set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The most memory its processes held at once, page cache included, where a limit was set; in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_peak: Option<u64>,
    /// Seconds from the start of its process to its end.
    #[serde(default)]
    pub seconds: f64,
}

impl Report {
    /// The format this program writes and reads.
    pub const FORMAT: u32 = 1;

    /// Reads a file.
    pub fn load(path: &std::path::Path) -> Result<Report, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("reading {}: {e}", path.display()))?;
        let report: Report = serde_json::from_str(&text)
            .map_err(|e| format!("{} is not a result file: {e}", path.display()))?;
        if report.format != Report::FORMAT {
            return Err(format!(
                "{} has format {}; this program reads {}",
                path.display(),
                report.format,
                Report::FORMAT
            ));
        }
        Ok(report)
    }

    /// Writes a file: beside its place, then renamed there, so that whoever reads meanwhile sees a whole one.
    pub fn save(&self, path: &std::path::Path) -> Result<(), String> {
        let failed = |e: &dyn std::fmt::Display| format!("writing {}: {e}", path.display());
        let text = serde_json::to_string_pretty(self).map_err(|e| failed(&e))?;
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        std::fs::write(&part, text + "\n").map_err(|e| failed(&e))?;
        std::fs::rename(&part, path).map_err(|e| failed(&e))
    }

    /// Everything that voids a row, in words; empty if all answers were right, engines that were asked the same answered
    /// the same, and all processes ended well.
    pub fn troubles(&self) -> Vec<String> {
        let mut troubles = Vec::new();
        for run in &self.runs {
            let at = format!("{} {} round {}", run.engine, run.case, run.round + 1);
            for phase in run.phases.iter().filter(|p| p.wrong > 0) {
                let name = if phase.case.is_empty() { "load" } else { &phase.case };
                let examples = phase.wrong_examples.join("; ");
                troubles.push(format!("{at}: VOID: {} wrong answers in {name}: {examples}", phase.wrong));
            }
            if let Some(end) = run.ending.as_ref().filter(|e| e.wrong > 0) {
                let examples = end.wrong_examples.join("; ");
                troubles.push(format!("{at}: VOID: {} wrong entries after reopening: {examples}", end.wrong));
            }
            if let Some(error) = &run.error {
                troubles.push(format!("{at}: FAILED: {error}"));
            }
        }
        for d in digests::disagreements(self) {
            troubles.push(format!("{} {}: VOID: {}", d.engine, d.case, d.words));
        }
        troubles
    }

    /// The names of the reported cases, in the order of the plans.
    pub fn case_names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for phase in self.cases.iter().flat_map(|c| &c.phases) {
            if !phase.case.is_empty() && !names.contains(&phase.case.as_str()) {
                names.push(&phase.case);
            }
        }
        names
    }

    /// Engines and cases that have fewer rounds than the report was to have (interrupted, or not run), in words.
    pub fn shortfalls(&self) -> Vec<String> {
        let mut out = Vec::new();
        for engine in self.engines.iter().filter(|e| e.missing.is_none()) {
            for case in &self.cases {
                let runs = self.runs.iter().filter(|r| r.engine == engine.name && r.case == case.name);
                let (left_out, tried): (Vec<&Run>, Vec<&Run>) = runs.partition(|r| r.left_out.is_some());
                let done = tried.iter().filter(|r| r.error.is_none()).count();
                // What was left out on purpose is told on its own.
                if left_out.is_empty() && done < self.rounds as usize {
                    out.push(format!("{} {}: {done} of {} rounds", engine.name, case.name, self.rounds));
                }
            }
        }
        out
    }
}
