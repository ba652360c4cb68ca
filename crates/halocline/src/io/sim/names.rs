//! The names of a simulated disk: what they are now, what is durable, and the changes between the two.
//!
//! A change becomes durable by a sync of its directory. Until then a crash keeps it or not: half the time the
//! disk is one with a journal, and a prefix of the changes survives; half the time each goes its own way. A rename
//! is one change, so that it happens whole or not at all.

use super::CrashMode;
use super::rng::Rng;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file's number.
pub(super) type InodeId = u64;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Create { path: PathBuf, file: InodeId },
    Remove { path: PathBuf, file: InodeId },
    Rename { from: PathBuf, to: PathBuf, file: InodeId },
}

impl Change {
    fn directory(&self) -> &Path {
        let (Change::Create { path, .. } | Change::Remove { path, .. } | Change::Rename { to: path, .. }) =
            self;
        path.parent().unwrap_or(Path::new(""))
    }

    fn file(&self) -> InodeId {
        let (Change::Create { file, .. } | Change::Remove { file, .. } | Change::Rename { file, .. }) = self;
        *file
    }

    /// Applies it to names to which the changes before it may or may not have been applied.
    fn apply(&self, names: &mut BTreeMap<PathBuf, InodeId>) {
        match self {
            Change::Create { path, file } => {
                names.insert(path.clone(), *file);
            }
            Change::Remove { path, file } => {
                if names.get(path) == Some(file) {
                    names.remove(path);
                }
            }
            Change::Rename { from, to, file } => {
                if names.get(from) == Some(file) {
                    names.remove(from);
                }
                names.insert(to.clone(), *file);
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    now: BTreeMap<PathBuf, InodeId>,
    durable: BTreeMap<PathBuf, InodeId>,
    pending: Vec<Change>,
}

impl Names {
    pub(super) fn get(&self, path: &Path) -> Option<InodeId> {
        self.now.get(path).copied()
    }

    /// All names and files, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, InodeId)> {
        self.now.iter().map(|(path, file)| (path.as_path(), *file))
    }

    /// Whether the disk may still need `file`: it has a name, or had a durable one, or may get one by a crash.
    pub(super) fn mention(&self, file: InodeId) -> bool {
        self.now.values().chain(self.durable.values()).any(|f| *f == file)
            || self.pending.iter().any(|c| c.file() == file)
    }

    pub(super) fn create(&mut self, path: &Path, file: InodeId) {
        self.change(Change::Create { path: path.into(), file });
    }

    pub(super) fn remove(&mut self, path: &Path, file: InodeId) {
        self.change(Change::Remove { path: path.into(), file });
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path, file: InodeId) {
        self.change(Change::Rename { from: from.into(), to: to.into(), file });
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.now);
        self.pending.push(change);
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) {
        let within = |path: &Path| path.parent().unwrap_or(Path::new("")) == dir;
        self.durable.retain(|path, _| !within(path));
        let now = self.now.iter().filter(|(path, _)| within(path));
        self.durable.extend(now.map(|(path, file)| (path.clone(), *file)));
        self.pending.retain(|change| change.directory() != dir);
    }

    /// Makes one name durable as it is now, past all that is pending for it.
    pub(super) fn sync_name(&mut self, path: &Path) {
        if let Some(file) = self.get(path) {
            self.durable.insert(path.into(), file);
            self.pending.retain(|change| match change {
                Change::Create { path: p, .. } | Change::Remove { path: p, .. } => p != path,
                Change::Rename { from, to, .. } => from != path && to != path,
            });
        }
    }

    pub(super) fn after_crash(&self, rng: &mut Rng, mode: CrashMode) -> Names {
        let mut names = self.durable.clone();
        if mode != CrashMode::DropUnsynced {
            if rng.chance(1, 2) {
                let survive = rng.below(self.pending.len() as u64 + 1) as usize;
                self.pending[..survive].iter().for_each(|change| change.apply(&mut names));
            } else {
                let survivors = self.pending.iter().filter(|_| rng.chance(1, 2));
                survivors.for_each(|change| change.apply(&mut names));
            }
        }
        Names { now: names.clone(), durable: names, pending: Vec::new() }
    }
}
