//! Everything on a simulated disk, behind its one lock.

use super::CrashMode;
use super::Observer;
use super::fault::Faults;
use super::inode::Inode;
use super::names::{InodeId, Names};
use super::rng::Rng;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

pub(super) struct State {
    pub(super) inodes: BTreeMap<InodeId, Inode>,
    pub(super) names: Names,
    /// Directories are durable as soon as they are made, as `Vfs::create_dir_all` promises.
    pub(super) dirs: BTreeSet<PathBuf>,
    pub(super) locks: BTreeSet<PathBuf>,
    pub(super) faults: Faults,
    pub(super) observer: Option<Observer>,
    pub(super) ops: u64,
    pub(super) capacity: u64,
    pub(super) mapped_writes: bool,
    pub(super) now_ms: u64,
    pub(super) monotonic_ns: u64,
    pub(super) boot_id: [u8; 16],
    pub(super) rng: Rng,
    next_inode: InodeId,
}

/// The path without `.` and `..`, so that each file has one.
pub(super) fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

impl State {
    pub(super) fn new(seed: u64) -> State {
        let mut rng = Rng::new(seed);
        State {
            inodes: BTreeMap::new(),
            names: Names::default(),
            // The root, and the directory that relative paths start from.
            dirs: [PathBuf::from("/"), PathBuf::new()].into(),
            locks: BTreeSet::new(),
            faults: Faults::default(),
            observer: None,
            ops: 0,
            capacity: 1 << 40,
            mapped_writes: true,
            now_ms: 1_700_000_000_000,
            monotonic_ns: 0,
            boot_id: rng.id(),
            rng,
            next_inode: 1,
        }
    }

    /// The file of that name.
    pub(super) fn find(&self, path: &Path) -> io::Result<InodeId> {
        match self.names.get(path) {
            Some(file) => Ok(file),
            None if self.dirs.contains(path) => Err(Errno::ISDIR.into()),
            None => Err(Errno::NOENT.into()),
        }
    }

    pub(super) fn inode(&mut self, file: InodeId) -> &mut Inode {
        self.inodes.get_mut(&file).expect("a file that is open or has a name is kept")
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<InodeId> {
        if self.names.get(path).is_some() || self.dirs.contains(path) {
            return Err(Errno::EXIST.into());
        }
        if !path.parent().is_some_and(|dir| self.dirs.contains(dir)) {
            return Err(Errno::NOENT.into());
        }
        let file = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(file, Inode::linked());
        self.names.create(path, file);
        Ok(file)
    }

    pub(super) fn create_dirs(&mut self, path: &Path) -> io::Result<()> {
        if path.ancestors().any(|dir| self.names.get(dir).is_some()) {
            return Err(Errno::NOTDIR.into());
        }
        self.dirs.extend(path.ancestors().map(PathBuf::from));
        Ok(())
    }

    /// Takes note that a file lost its name.
    pub(super) fn unlinked(&mut self, file: InodeId) {
        self.inode(file).linked = false;
        self.forget_if_unused(file);
    }

    /// Drops a file that nothing can lead to any more, not even a crash.
    pub(super) fn forget_if_unused(&mut self, file: InodeId) {
        if self.inode(file).handles == 0 && !self.names.mention(file) {
            self.inodes.remove(&file);
        }
    }

    /// Bytes that are free. What has neither a name nor an opener takes no room, though a crash may bring it back.
    pub(super) fn room(&self) -> u64 {
        let used = self.inodes.values().filter(|i| i.linked || i.handles > 0).map(Inode::used).sum();
        self.capacity.saturating_sub(used)
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        if !self.dirs.contains(dir) {
            return Err(Errno::NOENT.into());
        }
        self.names.sync_dir(dir);
        let gone = |(file, inode): (&InodeId, &Inode)| {
            (inode.handles == 0 && !self.names.mention(*file)).then_some(*file)
        };
        let gone: Vec<InodeId> = self.inodes.iter().filter_map(gone).collect();
        for file in gone {
            self.inodes.remove(&file);
        }
        Ok(())
    }

    pub(super) fn write_back(&mut self, rng: &mut Rng) {
        for inode in self.inodes.values_mut() {
            inode.write_back(|_| rng.chance(1, 2));
        }
    }

    pub(super) fn read_file(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.find(&clean(path))?;
        Ok(self.inodes[&file].content())
    }

    pub(super) fn write_file(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let path = clean(path);
        let dir = path.parent().ok_or(Errno::ISDIR)?;
        let file = match self.find(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                self.create_dirs(dir)?;
                self.create(&path)?
            }
            Err(e) => return Err(e),
        };
        self.inode(file).replace(bytes);
        self.names.sync_name(&path);
        Ok(())
    }

    pub(super) fn files(&self) -> Vec<(PathBuf, u64)> {
        self.names.iter().map(|(path, file)| (path.to_path_buf(), self.inodes[&file].len())).collect()
    }

    /// Everything that a process leaves behind.
    pub(super) fn after_kill(&mut self) -> State {
        // Looked at until nothing has changed since the last look: then all of it was there at one instant. Threads
        // that never pause would keep us here, so there is an end to it.
        for _ in 0..100 {
            let mut changed = false;
            for inode in self.inodes.values_mut() {
                changed |= inode.absorb();
            }
            if !changed {
                break;
            }
        }
        let mut inodes = BTreeMap::new();
        for (file, inode) in &self.inodes {
            // Without a name, kept only by being open: it goes with the process.
            if self.names.mention(*file) {
                inodes.insert(*file, inode.after_kill());
            }
        }
        State {
            boot_id: self.boot_id,
            monotonic_ns: self.monotonic_ns,
            ..self.successor(inodes, self.names.clone(), 0)
        }
    }

    /// What the machine finds when it starts again.
    pub(super) fn after_crash(&mut self, seed: u64, mode: CrashMode) -> State {
        let mut rng = Rng::new(seed);
        let names = self.names.after_crash(&mut rng, mode);
        let mut inodes = BTreeMap::new();
        for (_, file) in names.iter() {
            inodes.insert(file, self.inode(file).after_crash(&mut rng, mode));
        }
        self.successor(inodes, names, seed)
    }

    /// A disk of the same size and time with other content, and nothing open, locked, armed or watched.
    fn successor(&self, inodes: BTreeMap<InodeId, Inode>, names: Names, seed: u64) -> State {
        // The new disk's numbers continue neither the old one's nor those the crash was made with.
        let seed = self.rng.clone().next() ^ Rng::new(!seed).next();
        State {
            inodes,
            names,
            dirs: self.dirs.clone(),
            capacity: self.capacity,
            mapped_writes: self.mapped_writes,
            now_ms: self.now_ms,
            next_inode: self.next_inode,
            ..State::new(seed)
        }
    }
}
