//! The driver in Go: Badger, bbolt and Pebble, and an engine that stores nothing.
//!
//! Built by `go build` into the cache; the modules that it needs, at the versions of its `go.mod` and with the digests
//! of its `go.sum`, come from the user's Go proxy.

use super::cache;
use super::{Driver, Guest, Start};
use crate::engine::{Durability, Result};
use include_dir::{Dir, include_dir};
use std::path::PathBuf;
use std::process::{Command, Stdio};

static SOURCES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/drivers/go");

/// The name of the built program.
const PROGRAM: &str = "halobench-go";

/// The prose that values of that kind are made of; the driver finds it beside itself.
static PROSE: &[u8] = include_bytes!("../../assets/prose.txt");

/// How to get Go.
const GET_GO: &str = "install Go 1.25 or newer (https://go.dev/dl) and run `halobench setup`";

const GUESTS: [Guest; 4] = [
    Guest {
        name: "badger",
        about: "Badger, a log-structured merge tree in Go",
        classes: &[
            (Durability::Process, "SyncWrites=false (the default)"),
            (Durability::Sync, "SyncWrites=true"),
        ],
    },
    Guest {
        name: "bbolt",
        about: "bbolt, a copy-on-write B+tree in Go",
        classes: &[(Durability::Process, "NoSync"), (Durability::Sync, "the default")],
    },
    Guest {
        name: "pebble",
        about: "Pebble, a log-structured merge tree in Go",
        classes: &[
            (Durability::None, "NoSync: the log's last 32 KiB wait in the process"),
            (Durability::Process, "Sync, over files whose log is written and not synced"),
            (Durability::Sync, "Sync (the default)"),
        ],
    },
    Guest {
        name: "null-go",
        about: "stores nothing: the Go driver's own cost",
        classes: &[
            (Durability::None, "-"),
            (Durability::Process, "-"),
            (Durability::Interval, "-"),
            (Durability::Sync, "-"),
        ],
    },
];

/// The module of each engine.
const MODULES: [(&str, &str); 3] = [
    ("badger", "github.com/dgraph-io/badger/v4"),
    ("bbolt", "go.etcd.io/bbolt"),
    ("pebble", "github.com/cockroachdb/pebble/v2"),
];

pub struct Go;

/// Where the program is, or will be.
fn program() -> PathBuf {
    cache::folder("go", &SOURCES).join(PROGRAM)
}

/// A module's version, as `go.mod` requires it.
fn required(module: &str) -> Option<&'static str> {
    let text = SOURCES.get_file("go.mod")?.contents_utf8()?;
    text.lines().find_map(|line| {
        let mut words = line.trim().trim_start_matches("require ").split_whitespace();
        (words.next() == Some(module)).then(|| words.next()?.strip_prefix('v')).flatten()
    })
}

/// Go's own words on its version, if it can be run.
fn go_version() -> Result<String> {
    let out = Command::new("go").arg("version").stdin(Stdio::null()).output().map_err(|e| {
        format!("the Go driver cannot be built, for `go version` cannot be run ({e}): {GET_GO}")
    })?;
    if !out.status.success() {
        return Err(format!("the Go driver cannot be built, for `go version` failed: {GET_GO}"));
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_string())
}

impl Driver for Go {
    fn name(&self) -> &'static str {
        "Go"
    }

    fn engines(&self) -> &'static [Guest] {
        &GUESTS
    }

    fn version(&self, engine: &str) -> Result<String> {
        if !GUESTS.iter().any(|g| g.name == engine) {
            return Err(format!("the Go driver does not know {engine}"));
        }
        self.start()?;
        let module = MODULES.iter().find(|(name, _)| *name == engine).map(|(_, module)| *module);
        Ok(module.map_or("-", |m| required(m).unwrap_or("of a version that go.mod does not tell")).into())
    }

    fn start(&self) -> Result<Start> {
        let program = program();
        if program.is_file() {
            return Ok(Start { program, args: Vec::new() });
        }
        Err(match go_version() {
            Ok(_) => "the Go driver is not built: run `halobench setup` (it needs the network once)".into(),
            Err(why) => why,
        })
    }

    fn build(&self, say: &mut dyn FnMut(&str)) -> Result<()> {
        if program().is_file() {
            return Ok(());
        }
        let version = go_version()?;
        say(&format!("waiting for {}", cache::folder("go", &SOURCES).display()));
        let shop = cache::workshop("go", &SOURCES)?;
        if program().is_file() {
            return Ok(());
        }
        say(&format!("building it with {version}: modules are fetched once, and it takes about a minute"));
        let fresh = shop.folder.join(format!("{PROGRAM}.new"));
        let out = Command::new("go")
            .args(["build", "-trimpath", "-buildvcs=false", "-o"])
            .arg(&fresh)
            .arg(".")
            .current_dir(&shop.sources)
            // Neither a workspace around the cache folder nor C code is a part of it.
            .env("GOWORK", "off")
            .env("CGO_ENABLED", "0")
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("building the Go driver: starting go: {e}"))?;
        if !out.status.success() {
            let words = String::from_utf8_lossy(&out.stderr);
            let last: Vec<&str> = words.lines().filter(|l| !l.starts_with("go: downloading")).collect();
            let last = last[last.len().saturating_sub(8)..].join("\n");
            return Err(format!(
                "building the Go driver in {} failed ({}); it needs Go 1.25 or newer, and a Go proxy for its \
                 modules:\n{last}",
                shop.sources.display(),
                out.status
            ));
        }
        // The program comes last: where it is, all is.
        std::fs::write(shop.folder.join("prose.txt"), PROSE)
            .and_then(|()| std::fs::rename(&fresh, shop.folder.join(PROGRAM)))
            .map_err(|e| format!("building the Go driver: moving {} to its place: {e}", fresh.display()))?;
        say("built");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_has_a_pinned_version() {
        for (name, module) in MODULES {
            assert!(GUESTS.iter().any(|g| g.name == name));
            let version = required(module).unwrap_or_else(|| panic!("go.mod does not require {module}"));
            assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{name} {version}");
        }
    }
}
