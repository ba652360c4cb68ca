//! The files of a run.

use halobench::report::{Report, benchtool_csv, html, summary, table};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// All figures, in a run's folder.
pub const RESULT: &str = "result.json";
/// The same for people.
const PAGE: &str = "report.html";

/// `halobench-results/YYYYmmdd-HHMMSS-SUITE`, in UTC.
pub fn default_dir(suite: &str) -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    Path::new("halobench-results").join(format!("{}-{suite}", stamp(now)))
}

/// Seconds since 1970 as `YYYYmmdd-HHMMSS`.
fn stamp(seconds: u64) -> String {
    // Days are counted from 0000-03-01, so that a leap day is the last of its year; eras have 400 years.
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (year, month) =
        (era * 400 + year + u64::from(month >= 10), if month < 10 { month + 3 } else { month - 9 });
    let s = seconds % 86_400;
    format!("{year:04}{month:02}{date:02}-{:02}{:02}{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// Writes the run's files into its folder: what each is, and where.
pub fn write_all(report: &Report, dir: &Path) -> Result<Vec<(&'static str, PathBuf)>, String> {
    let (result, page) = (dir.join(RESULT), dir.join(PAGE));
    report.save(&result)?;
    let mut written = vec![("all figures", result)];
    for (what, name, text) in
        [("tables", "tables.txt", table::text(report)), ("summary", "summary.tsv", summary::tsv(report))]
    {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|e| format!("writing {}: {e}", path.display()))?;
        written.push((what, path));
    }
    html::write(report, &page)?;
    written.push(("report", page));
    Ok(written)
}

/// Appends benchtool's rows; a new file begins with the header.
pub fn append_csv(report: &Report, path: &Path, test_name: Option<&str>) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("writing {}: {e}", path.display());
    let mut file = OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
    let new = file.metadata().map_err(failed)?.len() == 0;
    let text = benchtool_csv::text(report, test_name, new)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::stamp;

    #[test]
    fn stamps_are_dates() {
        assert_eq!(stamp(0), "19700101-000000");
        assert_eq!(stamp(951_782_399), "20000228-235959");
        assert_eq!(stamp(951_782_400), "20000229-000000");
        assert_eq!(stamp(1_798_761_599), "20261231-235959");
    }
}
