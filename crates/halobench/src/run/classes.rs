//! In which durability class an engine runs a case.

use crate::cases::Case;
use crate::engine::Durability;
use crate::engine::registry::Availability;

/// A class, and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The class.
    pub class: Durability,
    /// It is not the case's, and that matters to its figures.
    pub other: bool,
    /// It is not the case's, but only an unreported load knows.
    pub note: Option<String>,
}

/// The case's own class where the engine has it. Where it has not, the nearest stronger one, or else the nearest weaker
/// one, if the figures do not depend on it or the user allows it (`any`); otherwise the reason why the case is left out.
pub fn choose(engine: &Availability, case: &Case, any: bool) -> Result<Choice, String> {
    let asked = case.config.durability;
    let has = |class| engine.classes.iter().any(|(c, _)| *c == class);
    if engine.classes.is_empty() || has(asked) {
        return Ok(Choice { class: asked, other: false, note: None });
    }
    let classes = || engine.classes.iter().map(|(c, _)| *c);
    let nearest = classes().filter(|c| *c > asked).min().or_else(|| classes().filter(|c| *c < asked).max());
    let Some(class) = nearest else {
        return Ok(Choice { class: asked, other: false, note: None });
    };
    if !case.class_matters() {
        let note = format!("loaded in class {}: the reads do not depend on it", word(class));
        return Ok(Choice { class, other: false, note: Some(note) });
    }
    if any {
        return Ok(Choice { class, other: true, note: None });
    }
    let there: Vec<String> = engine.classes.iter().map(|(c, how)| format!("{} ({how})", word(*c))).collect();
    Err(format!(
        "{} has no durability class {}, only {}; --any-durability runs it in another",
        engine.name,
        word(asked),
        there.join(", ")
    ))
}

/// A class's word on the command line.
pub fn word(class: Durability) -> String {
    crate::cases::params::word(&class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{Params, Workload};

    fn engine(classes: &[Durability]) -> Availability {
        Availability {
            name: "e".into(),
            about: String::new(),
            version: None,
            missing: None,
            classes: classes.iter().map(|c| (*c, "a setting".into())).collect(),
        }
    }

    #[test]
    fn an_engine_is_never_run_in_another_class_unasked() {
        use Durability::{Interval, None, Process, Sync};
        let write = Params { ops: 10, ..Params::default() }.case();
        let read = Params { ops: 10, workload: Workload::Read, ..Params::default() }.case();
        let own = Choice { class: Process, other: false, note: Option::None };
        assert_eq!(choose(&engine(&[None, Process, Sync]), &write, true), Ok(own));
        let two = engine(&[None, Sync]);
        let why = choose(&two, &write, false).unwrap_err();
        assert!(why.contains("no durability class process, only none (a setting), sync"), "{why}");
        assert_eq!(choose(&two, &write, true).map(|c| (c.class, c.other)), Ok((Sync, true)));
        let reads = choose(&two, &read, false).unwrap();
        assert_eq!((reads.class, reads.other), (Sync, false));
        assert!(reads.note.unwrap().contains("class sync"));
        assert_eq!(choose(&engine(&[None]), &read, false).map(|c| c.class), Ok(None));
        assert_eq!(choose(&engine(&[Interval, Sync]), &read, false).map(|c| c.class), Ok(Interval));
    }
}
