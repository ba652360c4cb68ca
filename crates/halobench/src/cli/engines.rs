//! `engines`: what can be run, in which durability classes, and how to get what cannot.

use super::code;
use clap::Args;
use halobench::engine::registry::{self, Availability};
use halobench::run::classes::word;
use std::path::PathBuf;

#[derive(Args)]
pub struct EnginesArgs {
    /// A RocksDB library of your own, with the C API.
    #[arg(long, value_name = "FILE")]
    rocksdb_lib: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub fn engines(args: &EnginesArgs) -> Result<u8, String> {
    let all: Vec<Availability> =
        registry::all().iter().map(|e| e.availability(args.rocksdb_lib.as_deref())).collect();
    if args.json {
        println!("{}", serde_json::to_string_pretty(&all).map_err(|e| e.to_string())?);
    } else {
        print!("{}", text(&all));
    }
    Ok(code::GOOD)
}

/// An engine a line, its classes under it.
fn text(all: &[Availability]) -> String {
    let width = all.iter().map(|a| a.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for a in all {
        let state = match (&a.version, &a.missing) {
            (Some(version), _) => version.clone(),
            (None, missing) => format!("missing: {}", missing.as_deref().unwrap_or("")),
        };
        out += &format!("{:<width$}  {}: {state}\n", a.name, a.about);
        let classes: Vec<String> =
            a.classes.iter().map(|(class, how)| format!("{}: {how}", word(*class))).collect();
        if !classes.is_empty() && a.classes.iter().any(|(_, how)| how != "-") {
            out += &format!("{:<width$}    {}\n", "", classes.join("; "));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use halobench::engine::Durability;

    #[test]
    fn a_missing_engine_tells_how_to_get_it() {
        let a = Availability {
            name: "e".into(),
            about: "an engine".into(),
            version: None,
            missing: Some("run `x`".into()),
            classes: vec![(Durability::Sync, "fsync".into())],
        };
        assert_eq!(text(&[a]), "e  an engine: missing: run `x`\n     sync: fsync\n");
    }
}
