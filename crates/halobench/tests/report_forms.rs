//! Every form of a report shows the same figures, says what is missing in words, and bears what runs do to it.

#[path = "report_kit/mod.rs"]
mod kit;

use halobench::report::figures::Figures;
use halobench::report::groups::{Knob, families, groups};
use halobench::report::metrics::{METRICS, index};
use halobench::report::{Report, csv, html, markdown, summary, table};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// All forms, by name.
fn forms(report: &Report) -> [(&'static str, String); 6] {
    [
        ("page", html::page(report)),
        ("markdown", markdown::text(report)),
        ("csv", csv::text(report)),
        ("tsv", summary::tsv(report)),
        ("grid", table::grid(report)),
        ("table", table::text(report)),
    ]
}

#[test]
fn results_of_an_older_lab_are_still_read() {
    let report = Report::load(&repository("docs/lab/results/2026-11-core.json")).unwrap();
    assert_eq!(report.troubles(), Vec::<String>::new());
    assert_eq!(report.shortfalls(), Vec::<String>::new());
    for (name, text) in forms(&report) {
        assert!(text.contains("write-random-b1000") && text.contains("lmdb"), "{name}");
    }
    assert!(markdown::text(&report).contains("| read-random | **1.56×** ▲<br>1.80 M/s |"));
}

#[test]
fn what_went_wrong_is_in_every_form() {
    let report = kit::large();
    for (name, text) in forms(&report) {
        assert!(text.contains("VOID"), "{name}");
        assert!(text.contains("FAILED"), "{name}");
        if !matches!(name, "csv" | "tsv") {
            assert!(text.contains("build libsplinterdb.so and pass"), "{name}");
            assert!(text.contains("its process was killed by signal 11"), "{name}");
            assert!(text.contains("bad0bad0bad0bad0, not 00c0ffee00c0ffee from"), "{name}");
        }
    }
    let short = report.shortfalls();
    assert!(short.contains(&"lmdb delete-random-b100: 2 of 3 rounds".to_string()), "{short:?}");
    assert!(short.contains(&"lmdb iterate-uuid: 0 of 3 rounds".to_string()), "{short:?}");
}

#[test]
fn another_durability_class_is_shown_and_compared_with_nobody() {
    let report = kit::large();
    let figures = Figures::of(&report);
    let (case, fjall) = (figures.case("write-seq-b1").unwrap(), figures.engine("fjall").unwrap());
    assert!(figures.median(case, 0, fjall).unwrap() > 1e8);
    assert_eq!(figures.ratio(case, 0, fjall), None);
    assert_eq!(figures.versus(case, 0, figures.subject().unwrap(), fjall), None);
    for e in (0..report.engines.len()).filter(|&e| e != fjall) {
        assert!(figures.ratio(case, 0, e).is_none_or(|r| r.peer != fjall && r.median > 0.01));
    }
    let [(_, page), (_, markdown), _, _, (_, grid), _] = forms(&report);
    assert!(page.contains("<small>† ") && page.contains("compared with nobody"));
    assert!(
        markdown.contains("| † ")
            && markdown.contains("- fjall, write-seq-b1: run in another durability class")
    );
    assert!(grid.contains("other class"), "{grid}");
}

#[test]
fn what_is_to_be_known_stands_at_its_row() {
    let mut report = kit::large();
    let run = report.runs.iter_mut().find(|r| r.engine == "lmdb").unwrap();
    run.limited_peak = Some(3 << 20);
    run.notes = vec!["its database is kept".into()];
    let [(_, page), ..] = forms(&report);
    let cards = page.split("<article class=\"case\"").skip(1);
    let card = cards
        .filter(|card| card.contains("tag\">lmdb</span>: its database is kept</li>"))
        .collect::<Vec<_>>();
    assert!(!card.is_empty());
    for card in card {
        assert!(card.contains("tag\">lmdb</span>: held at most "), "{card}");
    }
}

#[test]
fn what_was_left_out_is_told_with_its_reason_and_is_no_trouble() {
    let report = kit::large();
    let note = "redb, write-seq-b10: left out: too slow in the first round";
    assert!(html::page(&report).contains(note));
    assert!(markdown::text(&report).contains(note));
    assert!(csv::text(&report).contains("write-seq-b10,redb,ops_per_s,,,,0,,left out"));
    assert!(report.troubles().iter().chain(&report.shortfalls()).all(|t| !t.contains("write-seq-b10 ")));
}

#[test]
fn csv_has_medians_ranges_and_the_number_of_rounds() {
    let report = kit::large();
    let text = csv::text(&report);
    let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!(rows[0], csv::HEADER);
    let find = |case: &str, engine: &str, metric: &str| {
        rows.iter()
            .find(|r| r[..3] == [case, engine, metric])
            .unwrap_or_else(|| panic!("{case} {engine} {metric}"))
    };
    // By hand, from the runs.
    let mut rates: Vec<f64> = report
        .runs
        .iter()
        .filter(|r| r.engine == "lmdb" && r.case == "seek-random")
        .map(|r| r.phases[0].ops_per_s)
        .collect();
    rates.sort_by(f64::total_cmp);
    let row = find("seek-random", "lmdb", "ops_per_s");
    assert_eq!(
        row[3..7],
        [&format!("{:.0}", rates[1]), &format!("{:.0}", rates[0]), &format!("{:.0}", rates[2]), "3"]
    );
    assert_eq!(row[8], "ok");
    assert_eq!(find("delete-seq-b100", "lmdb", "ops_per_s")[6], "2");
    assert_eq!(find("write-random-b1000", "redb", "ops_per_s")[3..], ["", "", "", "0", "", "VOID"]);
    assert_eq!(find("mixed-random", "tidesdb", "ops_per_s")[8], "FAILED");
    assert_eq!(find("iterate-uuid", "lmdb", "ops_per_s")[8], "not run");
    assert_eq!(find("seek-random", "xodus", "ops_per_s")[8], "unavailable");
    assert_eq!(find("seek-random", "null", "ops_per_s")[7], "", "null has no ratio");
    assert!(rows.iter().all(|r| r.len() == csv::HEADER.len()));
}

#[test]
fn the_markdown_grid_has_a_row_a_case_and_a_column_an_engine() {
    let report = kit::large();
    let text = markdown::text(&report);
    let rows: Vec<&str> = text.lines().filter(|l| l.starts_with('|')).collect();
    assert_eq!(rows.len(), 2 + report.case_names().len());
    let columns = 1 + report.engines.iter().filter(|e| e.missing.is_none()).count();
    assert!(rows.iter().all(|r| r.matches('|').count() == columns + 1), "{text}");
    assert!(!text.contains("<img"), "words of the report are no markup");
}

/// The content of the page's element, up to its end.
fn element<'a>(page: &'a str, start: &str, end: &str) -> &'a str {
    let from = page.find(start).unwrap_or_else(|| panic!("{start}")) + start.len();
    page[from..].split(end).next().unwrap()
}

#[test]
fn the_page_stands_alone_and_carries_the_result() {
    let report = kit::large();
    let page = html::page(&report);
    let result = element(&page, "<script type=\"application/json\" id=\"result\">", "</script>");
    let same = result.replace("\\u003c", "<") == serde_json::to_string(&report).unwrap();
    assert!(same, "the result inside the page is the result file, to the byte");
    assert!(result.contains("script"), "the hostile words are in it");
    // The hostile words, escaped, hold a `src=`; nothing else does.
    assert_eq!(page.matches("src=").count(), page.matches("src=x onerror").count());
    for start in ["@import", "url(", "<img", "href=\"http"] {
        assert!(!page.contains(start), "{start}");
    }
    assert!(page.contains("default-src 'none'"));
    let grid = element(&page, "<table class=\"grid\">", "</table>");
    assert_eq!(grid.matches("<tr data-c=").count(), report.case_names().len());
}

#[test]
fn figures_of_the_page_are_those_of_the_index() {
    let report = kit::large();
    let figures = Figures::of(&report);
    let page = html::page(&report);
    let view = element(&page, "<script type=\"application/json\" id=\"view\">", "</script>");
    let view: serde_json::Value = serde_json::from_str(view).unwrap();
    let (c, m, e) = (figures.case("seek-random").unwrap(), index("p99_us"), figures.engine("lmdb").unwrap());
    let cell = &view["cases"][c]["cells"][m][e];
    let median = figures.median(c, m, e).unwrap();
    assert_eq!(cell[1], METRICS[m].unit.show(median));
    let shown: f64 = cell[2][0].as_f64().unwrap();
    assert!((shown / figures.ratio(c, m, e).unwrap().median - 1.0).abs() < 1e-3);
    let redb = figures.engine("redb").unwrap();
    let void = figures.case("write-random-b1000").unwrap();
    assert!(figures.is_void(void, redb));
    assert_eq!(view["cases"][void]["why"][redb], "VOID");
    assert!(view["cases"][void]["curves"][redb].is_null(), "void rows have no curve");
}

#[test]
fn cases_are_grouped_and_families_turn_one_knob() {
    let report = kit::large();
    let figures = Figures::of(&report);
    let sizes: BTreeMap<&str, usize> = groups(&figures).iter().map(|g| (g.name, g.cases.len())).collect();
    let wanted = [("Writes", 25), ("Point reads", 8), ("Seeks and scans", 7), ("Mixes", 3), ("Removals", 2)];
    assert_eq!(sizes, wanted.into_iter().collect());
    assert_eq!(sizes.values().sum::<usize>(), report.case_names().len());
    let found: Vec<(Knob, String, Vec<u64>)> = families(&figures)
        .into_iter()
        .map(|f| (f.knob, f.name, f.points.into_iter().map(|p| p.0).collect()))
        .collect();
    let family = |knob, name: &str, values: &[u64]| {
        assert!(found.contains(&(knob, name.into(), values.to_vec())), "{name}: {found:?}");
    };
    family(Knob::Batch, "write-random", &[1, 10, 100, 1000, 10_000, 100_000]);
    family(Knob::Threads, "write-random-b100", &[1, 2, 4, 8, 16]);
    family(Knob::Threads, "read-zipfian", &[1, 2, 4, 8]);
    family(Knob::ValueSize, "write-random-b100", &[16, 100, 256, 1024, 4096, 16_384]);
    family(Knob::RangeSize, "range-random", &[10, 100, 1000]);
}

#[test]
fn reports_that_were_cut_short_are_shown() {
    let full = kit::large();
    let nothing = Report { runs: Vec::new(), ..full.clone() };
    let empty =
        Report { cases: Vec::new(), engines: Vec::new(), runs: Vec::new(), rounds: 0, ..full.clone() };
    let alone = Report {
        runs: full.runs.iter().filter(|r| r.engine == "lmdb" && r.round == 0).cloned().collect(),
        ..full.clone()
    };
    for report in [&nothing, &empty, &alone] {
        for (name, text) in forms(report) {
            assert!(!text.is_empty(), "{name}");
            assert!(!text.contains("NaN") && !text.contains("inf "), "{name}");
        }
    }
    assert!(html::page(&nothing).contains("No engine ran to an end"));
    assert!(table::grid(&alone).contains("lmdb ran without a peer"), "{}", table::grid(&alone));
    let dir = tempfile::tempdir().unwrap();
    let error = html::write(&nothing, &dir.path().join("no/such/folder.html")).unwrap_err();
    assert!(error.contains("writing the page"), "{error}");
}

#[test]
fn the_chart_library_is_the_pinned_one() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/vendor/update.sh");
    let out = Command::new("bash").arg(script).arg("--check").output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}
