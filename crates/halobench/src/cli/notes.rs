//! What a run's table does not say: what was left out and why, what is to be known about a row, whether the machine was
//! busy.

use halobench::report::Report;

/// Above this share of the processors' time in other processes, figures are noisy.
const OTHERS: f64 = 0.1;
/// The same for other machines on the same hardware.
const STEAL: f64 = 0.02;

/// A line each, each once.
pub fn notes(report: &Report) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for run in &report.runs {
        let other = run
            .other_class
            .map(|class| format!("run in durability class {}", halobench::run::classes::word(class)));
        for words in run.left_out.iter().chain(&run.notes).chain(&other) {
            let line = format!("{}, {}: {words}", run.engine, run.case);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    let machine = &report.machine;
    if machine.others_share > OTHERS || machine.steal_share > STEAL {
        lines.push(format!(
            "warning: other processes used {:.0}% of the processors, other machines {:.0}%: figures are noisy",
            machine.others_share * 100.0,
            machine.steal_share * 100.0
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use halobench::report::Run;

    #[test]
    fn what_was_left_out_is_said_once_and_a_busy_machine_too() {
        let left_out =
            Run { engine: "e".into(), case: "c".into(), left_out: Some("why".into()), ..Run::default() };
        let mut report = Report { runs: vec![left_out.clone(), left_out], ..Report::default() };
        assert_eq!(notes(&report), ["e, c: why"]);
        report.machine.others_share = 0.5;
        assert!(notes(&report)[1].contains("used 50% of the processors"));
    }
}
