//! Wrong answers, and the check of the whole state.

use crate::engine::{Engine, Result};
use crate::workload::{Bits, Expect, Generator};
use xxhash_rust::xxh3::Xxh3;

/// Examples kept of each kind of trouble.
const EXAMPLES: usize = 5;

/// Wrong answers seen.
#[derive(Debug, Default)]
pub struct Wrong {
    /// How many.
    pub count: u64,
    /// The first few, in words.
    pub examples: Vec<String>,
}

impl Wrong {
    /// Notes one.
    #[cold]
    pub fn note(&mut self, words: impl FnOnce() -> String) {
        self.count += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(words());
        }
    }

    /// Adds another's.
    pub fn merge(&mut self, other: Wrong) {
        self.count += other.count;
        let room = EXAMPLES - self.examples.len().min(EXAMPLES);
        self.examples.extend(other.examples.into_iter().take(room));
    }
}

/// Reads everything and compares it with what is expected: keys, their order and number, and every value. Returns the
/// wrong ones and a digest of all there is.
pub fn state(engine: &dyn Engine, generator: &Generator, expect: &Expect) -> Result<(Wrong, String)> {
    let mut wrong = Wrong::default();
    let mut digest = Xxh3::new();
    let mut seen = Bits::new(generator.set.n);
    let mut previous: Vec<u8> = Vec::new();
    let mut count = 0u64;
    let mut session = engine.session()?;
    let mut cursor = session.cursor()?;
    let mut more = cursor.seek_first()?;
    while more {
        let key = cursor.key();
        if count > 0 && key <= previous.as_slice() {
            wrong.note(|| format!("a scan returned {} behind {}", show(key), show(&previous)));
        }
        previous.clear();
        previous.extend_from_slice(key);
        let value = cursor.value()?;
        digest.update(&previous);
        digest.update(value);
        match generator.keys.decode(&previous) {
            Some(id) if id < generator.set.n => {
                if !seen.insert(id) {
                    wrong.note(|| format!("{} is there twice", show(&previous)));
                } else if !expect.check(generator, id, value) {
                    let what =
                        if expect.has(id) { "has a wrong or old value" } else { "should have been deleted" };
                    wrong.note(|| format!("{} {what}", show(&previous)));
                }
            }
            _ => wrong.note(|| format!("{} was never written", show(&previous))),
        }
        count += 1;
        more = cursor.next()?;
    }
    if count != expect.count() {
        wrong.note(|| format!("a scan found {count} keys where {} are expected", expect.count()));
    }
    Ok((wrong, format!("{:016x}", digest.digest())))
}

/// A key for people.
pub fn show(key: &[u8]) -> String {
    if key.iter().all(u8::is_ascii_graphic) {
        String::from_utf8_lossy(key).into_owned()
    } else {
        key.iter().map(|b| format!("{b:02x}")).collect()
    }
}
