//! Real text of this machine, as records: what the demo loads.
//!
//! The sources are taken in this order until the budget is used up; each is optional:
//!
//! | source | key | value |
//! |---|---|---|
//! | apt's package lists | `package_version_arch/Field` | the field |
//! | dpkg's status | the same, under `status/` | the field |
//! | dpkg's file lists | `files/package/number` | a path |
//! | the system's word lists | `words/word` | its line number |
//! | the sources that cargo has fetched | `crate-version/path:line` | the line |

use crate::formats::{self, Format, Record};
use std::collections::HashSet;
use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// More records than this make the demo longer than its two minutes.
const MAX_RECORDS: usize = 2_000_000;
/// LMDB takes keys of at most 511 bytes: longer ones are passed over for all engines.
const MAX_KEY: usize = 500;

/// Records in memory, back to back.
pub struct Text {
    bytes: Vec<u8>,
    records: Vec<Place>,
    /// Hashes of the keys: they are unique.
    seen: HashSet<u64>,
    hasher: RandomState,
    budget: usize,
    /// What was taken: source, records, bytes.
    pub sources: Vec<(String, u64, u64)>,
}

/// Where a record lies: the value follows its key.
#[derive(Clone, Copy)]
struct Place {
    offset: usize,
    key: u32,
    value: u32,
}

impl Text {
    /// Gathers at most `budget` bytes of keys and values; `said` is called with each source before it is read.
    pub fn gather(budget: usize, mut said: impl FnMut(&str)) -> Text {
        let mut text = Text {
            bytes: Vec::with_capacity(budget.min(256 << 20)),
            records: Vec::new(),
            seen: HashSet::new(),
            hasher: RandomState::new(),
            budget,
            sources: Vec::new(),
        };
        type Source = (&'static str, fn(&mut Text));
        let sources: [Source; 5] = [
            ("apt's package lists", Text::apt_lists),
            ("dpkg's status", Text::dpkg_status),
            ("dpkg's file lists", Text::dpkg_files),
            ("the system's word lists", Text::words),
            ("the sources that cargo has fetched", Text::cargo_sources),
        ];
        for (name, gather) in sources {
            if text.is_full() {
                break;
            }
            said(name);
            let (records, bytes) = (text.records.len(), text.bytes.len());
            gather(&mut text);
            if text.records.len() > records {
                let taken = ((text.records.len() - records) as u64, (text.bytes.len() - bytes) as u64);
                text.sources.push((name.to_owned(), taken.0, taken.1));
            }
        }
        text
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// The record at that place in the order they have now.
    pub fn record(&self, at: usize) -> (&[u8], &[u8]) {
        let Place { offset, key, value } = self.records[at];
        let (key, value) = (key as usize, value as usize);
        (&self.bytes[offset..offset + key], &self.bytes[offset + key..offset + key + value])
    }

    /// Puts the records into a random order, the same for the same seed.
    pub fn shuffle(&mut self, seed: u64) {
        let mut state = seed;
        for at in (1..self.records.len()).rev() {
            // SplitMix64.
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^= z >> 31;
            let other = ((u128::from(z) * (at as u128 + 1)) >> 64) as usize;
            self.records.swap(at, other);
        }
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= self.budget || self.records.len() >= MAX_RECORDS
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        if self.is_full() || key.is_empty() || key.len() > MAX_KEY {
            return;
        }
        if !self.seen.insert(self.hasher.hash_one(key)) {
            return;
        }
        let place = Place { offset: self.bytes.len(), key: key.len() as u32, value: value.len() as u32 };
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.records.push(place);
    }

    /// Each field of each stanza. A file that cannot be read, or is not what it seems, is left where it breaks off.
    fn stanzas(&mut self, prefix: &[u8], input: impl BufRead) {
        let Ok(mut records) = formats::reader(Format::Debian, None, Box::new(input)) else { return };
        let mut record = Record::default();
        let mut key = Vec::new();
        while !self.is_full() && matches!(records.read(&mut record), Ok(true)) {
            let mut rest = &record.value[..];
            while !rest.is_empty() {
                // A field ends before the next line that is not indented.
                let end = (1..rest.len())
                    .find(|&at| rest[at - 1] == b'\n' && !matches!(rest[at], b' ' | b'\t'))
                    .unwrap_or(rest.len());
                let (field, behind) = rest.split_at(end);
                rest = behind;
                let Some(colon) = field.iter().position(|&b| b == b':') else { continue };
                key.clear();
                key.extend_from_slice(prefix);
                key.extend_from_slice(&record.key);
                key.push(b'/');
                key.extend_from_slice(&field[..colon]);
                self.add(&key, field[colon + 1..].trim_ascii());
            }
        }
    }

    fn apt_lists(&mut self) {
        for path in files_in(Path::new("/var/lib/apt/lists"), 1) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.ends_with("_Packages") {
                if let Ok(file) = File::open(&path) {
                    self.stanzas(b"", BufReader::new(file));
                }
            } else if name.contains("_Packages.") {
                // Compressed: apt's own helper reads whatever apt wrote.
                let child = Command::new("/usr/lib/apt/apt-helper")
                    .arg("cat-file")
                    .arg(&path)
                    .stdin(Stdio::null())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null())
                    .spawn();
                let Ok(mut child) = child else { continue };
                if let Some(output) = child.stdout.take() {
                    self.stanzas(b"", BufReader::with_capacity(1 << 20, output));
                }
                // The pipe is closed by now, so the helper ends; how it ends does not matter.
                let _ = child.wait();
            }
        }
    }

    fn dpkg_status(&mut self) {
        if let Ok(file) = File::open("/var/lib/dpkg/status") {
            self.stanzas(b"status/", BufReader::new(file));
        }
    }

    fn dpkg_files(&mut self) {
        for path in files_in(Path::new("/var/lib/dpkg/info"), 1) {
            if path.extension().is_some_and(|extension| extension == "list") {
                let package = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                self.numbered_lines(&path, &format!("files/{package}/"));
            }
        }
    }

    fn words(&mut self) {
        for path in files_in(Path::new("/usr/share/dict"), 1) {
            let Ok(file) = File::open(&path) else { continue };
            let Ok(mut records) =
                formats::reader(Format::Lines, Some("line"), Box::new(BufReader::new(file)))
            else {
                continue;
            };
            let mut record = Record::default();
            while !self.is_full() && matches!(records.read(&mut record), Ok(true)) {
                let key = [b"words/", &record.key[..]].concat();
                self.add(&key, &record.value);
            }
        }
    }

    fn cargo_sources(&mut self) {
        let home = std::env::var_os("CARGO_HOME")
            .map(PathBuf::from)
            .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
        let Some(home) = home else { return };
        // One folder a registry, in it one a crate: the crates are named in the keys, the registry is not.
        for registry in sorted(&home.join("registry/src")) {
            for path in files_in(&registry, 16) {
                if self.is_full() {
                    return;
                }
                let text = ["rs", "toml", "md", "c", "h", "cc", "txt"];
                if !path.extension().is_some_and(|extension| text.iter().any(|&t| extension == t)) {
                    continue;
                }
                let name = path.strip_prefix(&registry).unwrap_or(&path).to_string_lossy().into_owned();
                self.numbered_lines(&path, &format!("{name}:"));
            }
        }
    }

    /// Each line of a file, under `prefix` and its number in five digits.
    fn numbered_lines(&mut self, path: &Path, prefix: &str) {
        let Ok(content) = fs::read(path) else { return };
        for (at, line) in content.split(|&b| b == b'\n').enumerate() {
            self.add(format!("{prefix}{:05}", at + 1).as_bytes(), line);
        }
    }
}

/// The files below a folder, sorted, symbolic links left out.
fn files_in(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in sorted(folder) {
        let Ok(data) = fs::symlink_metadata(&path) else { continue };
        if data.is_file() {
            files.push(path);
        } else if data.is_dir() && depth > 1 {
            files.extend(files_in(&path, depth - 1));
        }
    }
    files
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A few records of known content.
    pub fn sample(n: usize) -> Text {
        let mut text = Text {
            bytes: Vec::new(),
            records: Vec::new(),
            seen: HashSet::new(),
            hasher: RandomState::new(),
            budget: usize::MAX,
            sources: Vec::new(),
        };
        for i in 0..n {
            text.add(format!("key/{i:06}").as_bytes(), "v".repeat(i % 300).as_bytes());
        }
        text
    }

    #[test]
    fn stanzas_become_fields() {
        let mut text = sample(0);
        text.stanzas(b"x/", &b"Package: a\nVersion: 1\nTag: b,\n c\n\nPackage: a\nVersion: 1\n"[..]);
        let records: Vec<_> = (0..text.len()).map(|at| text.record(at)).collect();
        let expected: [(&[u8], &[u8]); 3] =
            [(b"x/a_1/Package", b"a"), (b"x/a_1/Version", b"1"), (b"x/a_1/Tag", b"b,\n c")];
        assert_eq!(records, expected);
    }

    #[test]
    fn a_shuffle_is_a_permutation_and_repeats() {
        let (mut one, mut two, plain) = (sample(1000), sample(1000), sample(1000));
        one.shuffle(7);
        two.shuffle(7);
        let keys = |text: &Text| (0..text.len()).map(|at| text.record(at).0.to_vec()).collect::<Vec<_>>();
        assert_eq!(keys(&one), keys(&two));
        assert_ne!(keys(&one), keys(&plain));
        let mut sorted = keys(&one);
        sorted.sort();
        assert_eq!(sorted, keys(&plain));
    }

    #[test]
    fn the_budget_and_the_key_limit_hold() {
        let mut text = sample(0);
        text.budget = 100;
        text.add(&[b'k'; MAX_KEY + 1], b"v");
        assert_eq!(text.len(), 0);
        for i in 0..100_u32 {
            text.add(&i.to_be_bytes(), &[0; 20]);
        }
        assert_eq!((text.len(), text.bytes.len()), (5, 120));
    }
}
