//! The driver in Java: Xodus, MapDB, and an engine that stores nothing.
//!
//! Maven builds it in the cache folder and copies the libraries it needs beside it; the Java virtual machine is started
//! with a heap of [`HEAP`] and the default collector.

use super::cache::{self, Workshop};
use super::{Driver, Guest, Start};
use crate::engine::{Durability, Result};
use include_dir::{Dir, include_dir};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Java;

static SOURCES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/drivers/java");

/// The oldest Java that the sources are written for.
const JAVA: u32 = 17;

/// The most that the heap may hold: engine, harness and garbage.
const HEAP: &str = "-Xmx2g";

/// The jar that Maven makes of the sources, and the folder of those it depends on.
const JAR: &str = "halobench-java.jar";
const LIBRARIES: &str = "lib";

/// The text of [`crate::workload::ValueKind::Prose`], beside them.
const PROSE: &str = "prose.txt";
static PROSE_TEXT: &[u8] = include_bytes!("../../assets/prose.txt");

const GUESTS: [Guest; 3] = [
    Guest {
        name: "xodus",
        about: "Xodus, a log of tree nodes with a collector, in Java",
        classes: &[
            (Durability::Process, "log written at each commit, synced when a file is full"),
            (Durability::Interval, "log synced each 10 s, the default"),
            (Durability::Sync, "exodus.log.durableWrite"),
        ],
    },
    Guest {
        name: "mapdb",
        about: "MapDB, a B-link tree in a mapped file, in Java",
        classes: &[(Durability::None, "no transactions"), (Durability::Sync, "transactionEnable")],
    },
    Guest {
        name: "null-java",
        about: "stores nothing: the Java driver's own cost",
        classes: &[
            (Durability::None, "-"),
            (Durability::Process, "-"),
            (Durability::Interval, "-"),
            (Durability::Sync, "-"),
        ],
    },
];

impl Driver for Java {
    fn name(&self) -> &'static str {
        "Java"
    }

    fn engines(&self) -> &'static [Guest] {
        &GUESTS
    }

    fn version(&self, engine: &str) -> Result<String> {
        self.start()?;
        match engine {
            "xodus" | "mapdb" => Ok(property(&format!("{engine}.version"))),
            _ => Ok("-".into()),
        }
    }

    fn start(&self) -> Result<Start> {
        let product = product(&cache::folder("java", &SOURCES));
        if !product.is_dir() {
            return Err(match missing_tools() {
                None => "the Java driver is not built: run `halobench setup`".into(),
                Some(tools) => format!("{tools}, then run `halobench setup`"),
            });
        }
        let mut classes = OsString::from(product.join(JAR));
        classes.push(":");
        classes.push(product.join(LIBRARIES).join("*"));
        let mut args: Vec<OsString> = [
            HEAP,
            // Its default is to take them back when idle, and with them their counters.
            "-XX:-UseDynamicNumberOfCompilerThreads",
            // Statistics for tools that nobody attaches, in a file that is rewritten all the time.
            "-XX:-UsePerfData",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        ]
        .map(OsString::from)
        .into();
        let mut prose = OsString::from("-Dhalobench.prose=");
        prose.push(product.join(PROSE));
        args.extend([prose, "-cp".into(), classes]);
        args.push("halobench.Main".into());
        Ok(Start { program: program("java"), args })
    }

    fn build(&self, say: &mut dyn FnMut(&str)) -> Result<()> {
        if product(&cache::folder("java", &SOURCES)).is_dir() {
            return Ok(());
        }
        if let Some(tools) = missing_tools() {
            return Err(tools);
        }
        let shop = cache::workshop("java", &SOURCES)?;
        if product(&shop.folder).is_dir() {
            return Ok(());
        }
        say("building with Maven, which fetches Xodus and MapDB from Maven Central");
        package(&shop)?;
        say("built");
        Ok(())
    }
}

/// Where a finished build stands.
fn product(folder: &Path) -> PathBuf {
    folder.join("product")
}

/// Builds in a temporary folder, which takes its final name when it is whole.
fn package(shop: &Workshop) -> Result<()> {
    let failed = |e: std::io::Error| format!("building the Java driver in {}: {e}", shop.folder.display());
    let temp = tempfile::tempdir_in(&shop.folder).map_err(failed)?;
    let out = temp.path().join("out");
    let done = Command::new("mvn")
        .args(["-q", "-B", "-Dstyle.color=never", "package", "-Dmaven.test.skip=true"])
        .arg(format!("-Dout={}", out.display()))
        .current_dir(&shop.sources)
        .output()
        .map_err(failed)?;
    if !done.status.success() {
        let words = String::from_utf8_lossy(&done.stdout).into_owned();
        let last: Vec<&str> = words.lines().filter(|l| l.starts_with("[ERROR]")).take(3).collect();
        return Err(format!(
            "building the Java driver: `mvn package` in {} failed: {}",
            shop.sources.display(),
            last.join(" / ")
        ));
    }
    // Maven's own files stay behind and go with the temporary folder.
    let fresh = temp.path().join("product");
    std::fs::create_dir(&fresh).map_err(failed)?;
    for part in [JAR, LIBRARIES] {
        std::fs::rename(out.join(part), fresh.join(part)).map_err(failed)?;
    }
    std::fs::write(fresh.join(PROSE), PROSE_TEXT).map_err(failed)?;
    std::fs::rename(&fresh, product(&shop.folder)).map_err(failed)
}

/// The Java program `name`: of `JAVA_HOME` where that is set, else of the path.
fn program(name: &str) -> PathBuf {
    match std::env::var_os("JAVA_HOME") {
        Some(home) => Path::new(&home).join("bin").join(name),
        None => name.into(),
    }
}

/// What must be installed before the driver can be built, in words.
fn missing_tools() -> Option<String> {
    let javac = Command::new(program("javac")).arg("-version").output();
    let found = javac.ok().and_then(|out| major(&String::from_utf8_lossy(&out.stdout)));
    let mvn = Command::new("mvn").arg("--version").output().is_ok_and(|out| out.status.success());
    match found {
        None => Some(format!(
            "the Java driver needs a JDK, {JAVA} or newer, and Maven: install them (Debian: default-jdk-headless maven)"
        )),
        Some(version) if version < JAVA => {
            Some(format!("the Java driver needs JDK {JAVA} or newer, and javac is {version}: install one"))
        }
        Some(_) if !mvn => Some("the Java driver is built with Maven: install it (Debian: maven)".into()),
        Some(_) => None,
    }
}

/// The major version that `javac -version` tells.
fn major(words: &str) -> Option<u32> {
    let digits: String = words.strip_prefix("javac ")?.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// A property of the embedded `pom.xml`.
fn property(name: &str) -> String {
    let pom = SOURCES.get_file("pom.xml").and_then(|f| f.contents_utf8()).unwrap_or_default();
    let value = pom.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split('<').next());
    value.unwrap_or("unknown").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_pom() {
        for name in ["xodus", "mapdb"] {
            let version = property(&format!("{name}.version"));
            assert!(version.split('.').all(|part| part.parse::<u32>().is_ok()), "{name} {version}");
        }
        assert_eq!(property("absent.version"), "unknown");
    }

    #[test]
    fn compilers_tell_their_version() {
        assert_eq!(major("javac 17.0.15\n"), Some(17));
        assert_eq!(major("javac 21\n"), Some(21));
        // Java 8 and before counted as "1.8".
        assert_eq!(major("javac 1.8.0_402\n"), Some(1));
        assert_eq!(major("bash: javac: not found"), None);
    }
}
