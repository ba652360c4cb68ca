//! The page in a real browser, as a reader meets it: `tests/browser/report.mjs` looks at it, this test gives it pages.
//!
//! It needs Node and a Chromium (`apt-get install chromium`; another one by `HALOBENCH_CHROMIUM=FILE`) and, once, npm's
//! registry. Without them it says so and checks nothing, unless `HALOBENCH_BROWSER=1` makes that a failure.

#[path = "report_kit/mod.rs"]
mod kit;

use halobench::report::figures::Figures;
use halobench::report::groups::groups;
use halobench::report::{Report, html, words};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Skips, loudly, or fails where a browser is promised.
fn skip(why: &str) {
    assert!(std::env::var_os("HALOBENCH_BROWSER").is_none_or(|v| v != "1"), "HALOBENCH_BROWSER=1, but {why}");
    eprintln!("SKIPPED: the page was not looked at in a browser: {why}");
}

fn runs(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|o| o.status.success())
}

fn chromium() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("HALOBENCH_CHROMIUM") {
        return Some(given.into());
    }
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
        .into_iter()
        .map(PathBuf::from)
        .find(|p| p.exists())
}

/// What the grid must say, drawn from the figures and not from the page.
fn expected(report: &Report) -> serde_json::Value {
    let figures = Figures::of(report);
    let cases: Vec<&str> =
        groups(&figures).iter().flat_map(|g| g.cases.iter().map(|&c| figures.places[c].name)).collect();
    let engines: Vec<&str> =
        report.engines.iter().filter(|e| e.missing.is_none()).map(|e| e.name.as_str()).collect();
    let missing: Vec<&str> =
        report.engines.iter().filter(|e| e.missing.is_some()).map(|e| e.name.as_str()).collect();
    let void = (0..figures.places.len())
        .map(|c| (0..report.engines.len()).filter(|&e| figures.is_void(c, e)).count())
        .sum::<usize>();
    let other = (0..figures.places.len())
        .map(|c| (0..report.engines.len()).filter(|&e| figures.other_class(c, e).is_some()).count())
        .sum::<usize>();
    serde_json::json!({
        "cases": cases, "engines": engines, "missing": missing, "void": void,
        "troubles": report.troubles().len(), "notes": words::notes(report).len(), "other": other, "result": report,
    })
}

fn look(browser: &Path, name: &str, report: &Report) {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-browser");
    std::fs::create_dir_all(&out).unwrap();
    let (page, expect) = (out.join(format!("{name}.html")), out.join(format!("{name}.json")));
    html::write(report, &page).unwrap();
    std::fs::write(&expect, expected(report).to_string()).unwrap();
    let found = Command::new("node")
        .arg(project.join("report.mjs"))
        .args([&page, &expect, &out.join(name)])
        .env("CHROMIUM", browser)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&found.stdout).into_owned() + &String::from_utf8_lossy(&found.stderr);
    println!("{text}");
    assert!(found.status.success(), "{}: {text}", page.display());
    // A check that never ran is no check.
    assert!(text.lines().filter(|l| l.starts_with("ok ")).count() >= 14, "{text}");
}

#[test]
fn the_page_reads_well_in_a_browser() {
    let Some(browser) = chromium() else {
        return skip("there is no Chromium: apt-get install -y chromium, or set HALOBENCH_CHROMIUM");
    };
    if !runs("node", &["--version"]) {
        return skip("there is no node: apt-get install -y nodejs npm");
    }
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    if !project.join("node_modules/playwright-core").exists() {
        let install = ["ci", "--no-audit", "--no-fund", "--prefix", project.to_str().unwrap()];
        if !runs("npm", &install) {
            return skip("npm could not fetch playwright-core");
        }
    }
    look(&browser, "large", &kit::large());
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab/results/2026-11-core.json");
    look(&browser, "core", &Report::load(&core).unwrap());
}
