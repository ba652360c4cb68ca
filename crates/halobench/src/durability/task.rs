//! What a child is told in this test, and what it tells back: JSON, a line each.
//!
//! The first line of a child's standard input is a [`Line`] instead of a [`crate::spec::Plan`]; a driver in another
//! language tells them apart by the field `durability`. As with a plan, the end of standard input tells the child that
//! the parent is gone: it removes the task's folder and ends.

use crate::engine::Config;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The line that holds a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// The task.
    pub durability: Task,
}

/// What the child does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Opens the database and commits until it is killed, each thread going on behind its number in the ledger.
    Write,
    /// Opens the database, writes every entry to the dump, and says [`Said::Checked`].
    Check,
}

/// One child's task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// What to do.
    pub mode: Mode,
    /// Which engine.
    pub engine: String,
    /// A folder for this test alone, that the child removes when the parent goes.
    pub dir: PathBuf,
    /// The database's folder, below it.
    pub db: PathBuf,
    /// The terms.
    pub config: Config,
    /// The file of [`super::ledger`].
    pub ledger: PathBuf,
    /// The file to write entries to: for each, in the order of keys, the lengths of key and value (32 bits each, little
    /// endian), the key, the value.
    pub dump: PathBuf,
    /// The numbers behind what is written.
    pub shape: Shape,
    /// Whether a check closes the database; otherwise it ends without a word to the engine.
    pub close: bool,
}

/// The numbers that [`super::work`] needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Threads that write.
    pub threads: u64,
    /// Slots of a thread, which its commits take in turn. Even.
    pub slots: u64,
    /// Writes in a batch, at least 2.
    pub batch: u64,
    /// The seed of keys and values.
    pub seed: u64,
}

/// What a child says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// The dump is written.
    Checked(Checked),
    /// It cannot go on.
    Failed(String),
}

/// What a check found on its way.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Checked {
    /// Seconds the open took.
    pub open_s: f64,
    /// Entries in the dump.
    pub entries: u64,
    /// Keys whose `get` did not say what the scan said.
    pub disagreements: u64,
    /// The first of them, in words.
    pub example: String,
}
