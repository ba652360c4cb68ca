//! One self-contained page for a run.

use super::Report;
use std::path::Path;

/// Writes the page.
pub fn write(report: &Report, path: &Path) -> Result<(), String> {
    std::fs::write(path, page(report)).map_err(|e| format!("writing {}: {e}", path.display()))
}

/// The page.
pub fn page(report: &Report) -> String {
    format!("<!doctype html><title>{}</title>", super::words::title(report))
}
