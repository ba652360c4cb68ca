//! Drivers: programs in other languages that run engines of their own.
//!
//! A driver is what a child of this program is, in another language: it reads a [`crate::spec::Plan`], one line of
//! JSON, from its standard input, and writes [`crate::spec::Event`]s, a line of JSON each, to its standard output. It
//! makes the same keys, values and orders (`docs/lab/generators.md`), checks every answer itself, and ends itself,
//! removing the plan's folder, when its standard input ends. Its sources are in `drivers/`; they travel inside this
//! program, and `halobench setup` builds them into the cache folder with the language's own tools, once for each state
//! of the sources.

mod cache;
mod go;
mod java;

use crate::engine::{Durability, Result};
use std::ffi::OsString;
use std::path::PathBuf;

/// An engine that a driver runs.
pub struct Guest {
    /// Its name on the command line, and in a plan.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// As in [`crate::engine::registry::Entry::classes`].
    pub classes: &'static [(Durability, &'static str)],
}

/// How a built driver is started; the plan follows on its standard input.
#[derive(Clone, Debug)]
pub struct Start {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// A driver.
pub trait Driver: Sync {
    /// The language.
    fn name(&self) -> &'static str;
    /// What it runs.
    fn engines(&self) -> &'static [Guest];
    /// The version of one of its engines, if the driver is built; otherwise why it cannot be run and how to get it.
    fn version(&self, engine: &str) -> Result<String>;
    /// How to start it; fails, in words, if it is not built.
    fn start(&self) -> Result<Start>;
    /// Builds it, unless that was done: downloads what it needs from the language's registry. `say` is told the steps.
    fn build(&self, say: &mut dyn FnMut(&str)) -> Result<()>;
}

/// All drivers.
pub fn all() -> [&'static dyn Driver; 2] {
    [&go::Go, &java::Java]
}
